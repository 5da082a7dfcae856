"""Kills a manager at random moments under load, checks its store, starts it again; nothing may go wrong.

usage: kill9.py KVBLOCKD SLOTS full|normal KILLS

The load (slots.c) finds blocks that are lost, come back, or share bytes. One kill in four comes while the
manager starts and recovers. At the end, when every deadline and grace is over, nothing may be left in use
but the blocks. Two phases: with room for everything, and in a storage that is too small.

Each recovery begins deadlines, graces and holds anew, so kills without a pause would fill any storage with
sessions and slots that nobody comes back for, and blocks would rightly be evicted. In the first phase a kill
waits while these take too much, which also shows that they end.
"""

import random
import sys

from load import SLOT_BYTES, Load
from manager import Failed, Manager, check, pause, scratch, settled, until

TAKEN_MAX = 64 << 20  # of 256 MiB


def taken(m):
    st = m.storage()
    return st["used_bytes"] + st["quarantined_bytes"]


def kill_once(m, load, rng, evict):
    """Waits until some more was put. Returns the kills that were made, and the blocks evicted before."""
    if not evict:
        until(60, lambda: taken(m) < TAKEN_MAX, "what nobody comes back for becomes free")
    enough = load.puts() + rng.randrange(50, 600)
    until(60, lambda: load.puts() >= enough, "the load goes on")
    evicted = m.stats()["evicted_blocks"]
    check(evict or evicted == 0, evicted, "blocks evicted, though there is room")
    pause(rng.uniform(0, 0.05))
    m.kill()
    load.killed()
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


def kill_often(m, load, kills, evict):
    rng = random.Random(kills + evict)
    if evict:
        until(60, lambda: m.stats()["evicted_blocks"] > 100, "the storage is full and blocks are evicted")
    done = evicted = 0
    while done < kills:
        k, e = kill_once(m, load, rng, evict)
        done += k
        evicted += e
    return {"kills": done, "fsck clean": done, "blocks evicted": evicted}


def phase(directory, kvblockd, slots, durability, kills, evict):
    m = Manager(directory, kvblockd, "--durability", durability, "--journal-limit", "1M",
                "--storage-capacity", "16M" if evict else "256M")
    m.start()
    with Load(slots, [m], evict) as load:
        counts = kill_often(m, load, kills, evict)
        counts.update(load.check())
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
