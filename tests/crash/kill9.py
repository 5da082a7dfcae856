"""Kills a manager at random moments under load, checks its store, starts it again; nothing may go wrong.

usage: kill9.py KVBLOCKD SLOTS full|normal KILLS

The load (slots.c) finds blocks that are lost, come back, or share bytes. One kill in four comes while the
manager starts and recovers. At the end, when every deadline and grace is over, nothing may be left in use
but the blocks. Two phases: with room for everything, and in a storage that is too small.
"""

import json
import random
import subprocess
import sys

from manager import Failed, Manager, check, die_with_parent, pause, scratch, settled, until

SLOT_BYTES = {"small": 4096, "large": 12288}


def tell(load, word):
    try:
        load.stdin.write(word + "\n")
        load.stdin.flush()
    except BrokenPipeError:
        pass
    check(load.poll() is None or word == "check", "the load ended with status", load.poll())


def kill_once(m, load, rng):
    """Returns the number of kills that it took."""
    kills = 1
    pause(rng.uniform(0.02, 0.2))
    m.kill()
    tell(load, "killed")
    m.fsck()
    while rng.random() < 0.25:  # in the middle of its recovery
        m.launch()
        pause(rng.uniform(0, 0.06))
        m.kill()
        kills += 1
        m.fsck()
    m.start()
    return kills


def phase(directory, kvblockd, slots, durability, kills, evict):
    rng = random.Random(kills + evict)
    m = Manager(directory, kvblockd, "--durability", durability, "--journal-limit", "1M",
                "--storage-capacity", "16M" if evict else "128M")
    m.start()
    m.must("PUT", "/v1/instances/small", {"specs": [{"name": "kv", "size": 4096}]})
    m.must("PUT", "/v1/instances/large", {"specs": [{"name": "k", "size": 8192}, {"name": "v", "size": 4096}]})
    with subprocess.Popen([slots, f"http://127.0.0.1:{m.port}", m.root, "evict" if evict else "room"], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=die_with_parent) as load:
        try:
            done = 0
            while done < kills:
                done += kill_once(m, load, rng)
            tell(load, "check")
            answer = load.stdout.read()
            check(load.wait() == 0, "the load ended with status", load.returncode)
        finally:
            load.kill()
    until(20, lambda: settled(m, SLOT_BYTES), "everything settled")
    blocks = m.stats()["blocks"]
    m.stop()
    m.fsck()
    m.start()
    check(m.stats()["blocks"] == blocks, "an orderly restart changes the number of blocks")
    m.stop()
    counts = json.loads(answer)
    for name in ("blocks put", "blocks read", "sessions finished after a kill", "acknowledged blocks found at the end"):
        check(counts[name] > 0, "nothing was tested:", counts)
    print(f"{durability}, {'with eviction' if evict else 'with room'}: {done} kills, fsck clean after each; "
          + ", ".join(f"{v} {k}" for k, v in counts.items()) + f"; {blocks} blocks left, nothing else in use", flush=True)


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
