"""Kills a manager at random moments under load, checks its store, starts it again; nothing may go wrong.

usage: kill9.py KVBLOCKD SLOTS full|normal KILLS

The load (slots.c) finds blocks that are lost, come back, or share bytes. One kill in four comes while the
manager starts and recovers. At the end, when every deadline and grace is over, nothing may be left in use
but the blocks. Two phases: with room for everything, and in a storage that is too small.

Each recovery begins holds (deadlines, graces, leases) anew, so kills without a pause would fill any storage
with held slots: in the first phase a kill waits while these are too many, which also shows that they end.
"""

import json
import random
import subprocess
import sys

from manager import Failed, Manager, check, die_with_parent, pause, scratch, settled, until

HELD_MAX = 48 << 20  # of 128 MiB

SLOT_BYTES = {"small": 4096, "large": 12288}


def tell(load, word):
    check(load.poll() is None, "the load ended with status", load.poll())
    load.stdin.write(word + "\n")
    load.stdin.flush()


def puts(load):
    tell(load, "puts")
    return int(load.stdout.readline() or 0)


def kill_once(m, load, rng, evict):
    """Waits until some more was put. Returns the kills that were made, and the blocks evicted before."""
    if not evict:
        until(60, lambda: m.storage()["quarantined_bytes"] < HELD_MAX, "held slots become free")
    enough = puts(load) + rng.randrange(50, 600)
    until(60, lambda: puts(load) >= enough, "the load goes on")
    evicted = m.stats()["evicted_blocks"]
    check(evict or evicted == 0, evicted, "blocks evicted, though there is room")
    pause(rng.uniform(0, 0.05))
    m.kill()
    tell(load, "killed")
    m.fsck()
    kills = 1
    while rng.random() < 0.25:  # in the middle of its recovery
        m.launch()
        pause(rng.uniform(0, 0.06))
        m.kill()
        kills += 1
        m.fsck()
    m.start()
    return kills, evicted


def under_load(m, slots, kills, evict):
    """The counts of the load, after `kills` kills or one more."""
    rng = random.Random(kills + evict)
    with subprocess.Popen([slots, f"http://127.0.0.1:{m.port}", m.root, "evict" if evict else "room"], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=die_with_parent) as load:
        try:
            if evict:
                until(60, lambda: m.stats()["evicted_blocks"] > 100, "the storage is full and blocks are evicted")
            done = evicted = 0
            while done < kills:
                k, e = kill_once(m, load, rng, evict)
                done += k
                evicted += e
            tell(load, "check")
            answer = load.stdout.read()
            check(load.wait() == 0, "the load ended with status", load.returncode)
        finally:
            load.kill()
    return {"kills": done, "fsck clean": done, **json.loads(answer), "blocks evicted": evicted}


def phase(directory, kvblockd, slots, durability, kills, evict):
    m = Manager(directory, kvblockd, "--durability", durability, "--journal-limit", "1M",
                "--storage-capacity", "16M" if evict else "128M")
    m.start()
    m.must("PUT", "/v1/instances/small", {"specs": [{"name": "kv", "size": 4096}]})
    m.must("PUT", "/v1/instances/large", {"specs": [{"name": "k", "size": 8192}, {"name": "v", "size": 4096}]})
    counts = under_load(m, slots, kills, evict)
    until(20, lambda: settled(m, SLOT_BYTES), "everything settled")
    blocks = m.stats()["blocks"]
    m.stop()
    m.fsck()
    m.start()
    check(m.stats()["blocks"] == blocks, "an orderly restart changes the number of blocks")
    m.stop()
    for name in ("blocks put", "blocks read", "blocks deleted", "sessions finished after a kill",
                 "acknowledged blocks found at the end"):
        check(counts[name] > 0, "this was not tested:", name)
    check((counts["blocks evicted"] > 0) == evict, counts["blocks evicted"], "blocks evicted")
    print(f"{durability}, {'with eviction' if evict else 'with room'}:",
          ", ".join(f"{v} {k}" for k, v in counts.items()), f"- {blocks} blocks left, nothing else in use", flush=True)


def main():
    kvblockd, slots, durability, kills = sys.argv[1:5]
    for evict in (False, True):
        with scratch() as directory:
            phase(directory, kvblockd, slots, durability, int(kills), evict)


if __name__ == "__main__":
    try:
        main()
    except Failed as e:
        sys.exit(f"FAILED: {e}")
