"""scale.py - memory and restart with many blocks (10 million; --quick: 1 million).

Blocks have one spec and lie in a storage of type null, so that only the manager's own state is measured.
Room on the disk and in memory is looked at first, and progress is printed: other work runs on the machine.
"""

import os
import shutil
import signal
import subprocess
import time

from lab import Missing, meminfo_available, rss

GIB = 1 << 30


def line(what, bar, measured, floor, met):
    return {"what": what, "bar": bar, "measured": measured, "floor": floor, "met": met}


def check_room(lab, blocks):
    need_memory, need_disk = 2 * GIB + blocks * 400, 2 * GIB + blocks * 600
    if meminfo_available() < need_memory:
        raise Missing(f"{blocks} blocks want {need_memory / GIB:.0f} GiB of memory to be free")
    if shutil.disk_usage(lab.dir).free < need_disk:
        raise Missing(f"{blocks} blocks want {need_disk / GIB:.0f} GiB of disk to be free below {lab.dir}")


def fill(lab, m, blocks, empty):
    """Fills and watches: the most bytes a block while the table grows (from a tenth on)."""
    worst, told = 0.0, 0.0
    load = subprocess.Popen([lab.slabkv, "--url", m.url, "--timeout", "60000", "bench", "--ops", "start", "--keys",
                             "4096", "--clients", "4", "--seconds", "1800", "--max-blocks", str(blocks), "--keep",
                             "--population", "1"], cwd=m.dir, stdout=subprocess.PIPE, text=True)
    try:
        while load.poll() is None:
            time.sleep(0.25)
            have, now = m.blocks(), rss(m.process.pid)["VmRSS"]
            if have >= blocks // 10:
                worst = max(worst, (now - empty) / have)
            if time.monotonic() - told > 5:
                told = time.monotonic()
                print(f"  {have / 1e6:.1f} of {blocks / 1e6:.0f} million blocks, RSS {now / GIB:.2f} GiB", flush=True)
            if meminfo_available() < GIB:
                raise Missing("memory ran short while filling")
    finally:
        if load.poll() is None:
            load.kill()
            load.wait()
    if load.returncode != 0:
        raise RuntimeError(f"filling ended with {load.returncode}")
    return worst


def settled(m):
    """RSS when nothing is going on any more: checkpoints have ended."""
    last, same = -1, 0
    for _ in range(240):
        now = rss(m.process.pid)["VmRSS"]
        same = same + 1 if abs(now - last) < 1 << 20 else 0
        last = now
        if same >= 12:
            break
        time.sleep(0.25)
    return last


def rows(lab):
    blocks = 1000000 if lab.quick else 10000000
    check_room(lab, blocks)
    m = lab.manager("scale", "--durability", "normal", "--storage-capacity", "64M")
    try:
        empty = settled(m)
        worst = fill(lab, m, blocks, empty)
        have, steady = m.blocks(), settled(m)
        store = sum(os.path.getsize(m.path(n)) for n in os.listdir(m.dir) if n.startswith("slabkv.db"))
        each = (steady - empty) / have
        yield line(f"memory, {have:,} blocks of one spec, steady", "<= 96 B a block", f"{each:.1f} B",
                   "the fields alone (key, parent, place, generation, checksum, last use): 64 B", each <= 96)
        yield line("memory while the table grows, at most", "<= 120 B a block", f"{worst:.1f} B",
                   f"store on disk {store / have:.0f} B a block", worst <= 120)
        for how, name in ((signal.SIGKILL, "kill -9"), (signal.SIGTERM, "a clean stop")):
            took, ready, again = [], [], have
            for _ in range(lab.rounds):
                took.append(m.end(how))
                ready.append(m.start())
                again = min(again, m.blocks())
                print(f"  ready {ready[-1]:.1f} s after {name}", flush=True)
            stop = f"; the stop took {min(took):.1f} s" if how == signal.SIGTERM else ""
            yield line(f"ready after {name}, {have:,} blocks", "<= 8 s",
                       f"{min(ready):.1f} s at best of {len(ready)}, {max(ready):.1f} at worst; {again:,} blocks "
                       f"there{stop}",
                       f"reading {store / GIB:.2f} GiB of store", min(ready) <= 8 and again == have)
    finally:
        m.remove()
