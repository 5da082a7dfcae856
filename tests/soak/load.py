"""load.py INSTANCE GROUP - one client process of the soak: a writer, a reader and instances that come and go, by the real library.

What it is told comes by the environment (SLABKV_URL, CA_FILE, TOKEN), its end by the end of standard input; it prints its counts then, as
JSON. A block's bytes follow from its key, so every byte that is read can be checked.
"""

import collections
import hashlib
import json
import os
import random
import sys
import threading

import slabkv

INSTANCE, GROUP = sys.argv[1:3]
BLOCK, CHAIN, WINDOW = 16384, 16, 48
PAUSE_S = float(os.environ.get("PAUSE_S", "0.05"))  # between two chains of one thread
MAY_FAIL = (slabkv.UnreachableError, slabkv.TimedOutError, slabkv.FullError)  # a manager that restarts; no room for now
count = collections.Counter()
errors = []
stop = threading.Event()
chains = collections.deque(maxlen=WINDOW)  # first keys of what was acknowledged


def content(instance, key):
    return hashlib.blake2b(f"{instance}/{key}".encode()).digest() * (BLOCK // 64)


def attempt(what, *arguments, **options):
    """None if the manager could not, for a reason that may be."""
    try:
        return what(*arguments, **options)
    except MAY_FAIL as e:
        count[f"refused_{e.code}"] += 1
    except slabkv.Error as e:
        count["unexpected"] += 1
        if len(errors) < 5:
            errors.append(f"{what.__name__}: {e.code}: {e}")
    return None


def put(kv, instance, first):
    keys = list(range(first, first + CHAIN))
    results = attempt(kv.put, instance, keys, [content(instance, k) for k in keys])
    count["written"] += sum(r in (slabkv.Result.WRITTEN, slabkv.Result.EXISTS) for r in results or [])
    return results is not None and all(results)


def read(kv, instance, first):
    """Right bytes or a miss."""
    keys = list(range(first, first + CHAIN))
    room = [bytearray(BLOCK) for _ in keys]
    for key, block, result in zip(keys, room, attempt(kv.get, instance, keys, room) or []):
        if result == slabkv.Result.MISMATCH or (result == slabkv.Result.HIT and block != content(instance, key)):
            count["wrong"] += 1
            if len(errors) < 5:
                errors.append(f"{instance}/{key}: {result.name}, not the bytes that were written")
        count[result.name.lower()] += 1


def register(kv, instance):
    while not stop.is_set() and attempt(kv.put_instance, instance, BLOCK, tokens=64, group=GROUP, extra=None) is None and not registered(kv, instance):
        stop.wait(0.2)


def registered(kv, instance):
    return attempt(kv.match, instance, [1]) is not None


def write_on(kv):
    first = 1
    while not stop.is_set():
        if put(kv, INSTANCE, first):
            chains.append(first)
        first += CHAIN
        stop.wait(PAUSE_S)


def read_on(kv):
    while not stop.is_set():
        if chains:
            read(kv, INSTANCE, random.choice(list(chains)))
        stop.wait(PAUSE_S / 2)


def come_and_go(kv):
    """An instance: used, pinned in part, removed with its blocks."""
    number = 0
    while not stop.is_set():
        number += 1
        name = f"{INSTANCE}-{number}"
        register(kv, name)
        if put(kv, name, 1):
            attempt(kv.pin, name, list(range(1, 5)), 60)
        read(kv, name, 1)
        removed = False
        for _ in range(100):
            try:
                kv.delete_instance(name)
                removed = True
                break
            except MAY_FAIL:
                stop.wait(0.2)
        count["came_and_went"] += removed
        stop.wait(PAUSE_S * 20)


def main():
    with slabkv.Client(os.environ["SLABKV_URL"], token=os.environ["TOKEN"], ca_file=os.environ["CA_FILE"]) as kv:
        register(kv, INSTANCE)
        threads = [threading.Thread(target=work, args=(kv,)) for work in (write_on, read_on, come_and_go)]
        for thread in threads:
            thread.start()
        sys.stdin.read()
        stop.set()
        for thread in threads:
            thread.join()
        for first in list(chains):  # what is left, once more
            read(kv, INSTANCE, first)
    print(json.dumps({"count": count, "errors": errors}))


main()
