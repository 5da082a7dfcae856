"""scale.py - memory and restart with many blocks (10 million; --quick: 1 million).

Blocks have one spec and lie in a storage of type null, so that only the manager's own state is measured.
Room on the disk and in memory is looked at first, and progress is printed: other work runs on the machine.
"""

import os
import shutil
import signal
import sqlite3
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
    """RSS when nothing is going on any more: checkpoints have ended, and free memory was returned (5 s)."""
    last, same = -1, 0
    for _ in range(240):
        now = rss(m.process.pid)["VmRSS"]
        same = same + 1 if abs(now - last) < 1 << 20 else 0
        last = now
        if same >= 20:
            break
        time.sleep(0.25)
    return last


def read_store(m):
    """The floor of a restart: SQLite reads every value of the newest checkpoint and of the journal, and nothing more."""
    begin, size = time.monotonic(), 0
    for name, table in (("slabkv.db", "journal"), ("slabkv.db-checkpoint", "slice")):
        db = sqlite3.connect(m.path(name))
        size += sum(len(bytes_) for (bytes_,) in db.execute(f"SELECT bytes FROM {table}"))
        db.close()
    return time.monotonic() - begin, size


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
        yield line(f"memory, {have:,} blocks of one spec in chains, steady", "<= 80 B a block", f"{each:.1f} B",
                   "fields alone 64 B; 12 B more for each block that is no inner one of a chain", each <= 80)
        yield line("memory while the table grows, at most", "<= 120 B a block", f"{worst:.1f} B",
                   f"store on disk {store / have:.0f} B", worst <= 120)
        for how, name in ((signal.SIGKILL, "kill -9"), (signal.SIGTERM, "a clean stop")):
            took, ready, cpu, again = [], [], [], have
            for _ in range(lab.rounds):
                took.append(m.end(how))
                floor, size = read_store(m)
                ready.append(m.start())
                cpu.append(cpu_seconds(m.process.pid))
                again = min(again, m.blocks())
                print(f"  ready {ready[-1]:.1f} s after {name}", flush=True)
            stop = f"; the stop took {min(took):.1f} s" if how == signal.SIGTERM else ""
            yield line(f"ready after {name}, {have:,} blocks", "<= 3 s",
                       f"{min(ready):.1f} s at best, {max(ready):.1f} at worst; {min(cpu):.1f} s of CPU{stop}",
                       f"SQLite reads these {size / 1e6:.0f} MB in {floor:.1f} s; store {store / GIB:.2f} GiB",
                       min(ready) <= 3 and again == have)
    finally:
        m.remove()


def policies(lab):
    """Memory of a full store when as many blocks as fit have been evicted: what a policy remembers of these is there too."""
    capacity, blocks = ("4G", 1 << 20) if lab.quick else ("16G", 4 << 20)
    check_room(lab, blocks)
    for policy, how, bar in (("lru", "in chains", 80), ("lru", "each by itself", None),
                             ("reuse", "in chains", 96), ("reuse", "each by itself", None)):
        m = lab.manager("policies", "--durability", "normal", "--storage-capacity", "64M")
        try:
            empty = settled(m)
            m.bench("--ops", "start", "--keys", 4096 if how == "in chains" else 512, "--clients", 4, "--seconds", 1800,
                    "--max-blocks", blocks, "--keep", "--full", "--capacity", capacity, "--population", 1, "--policy", policy,
                    *([] if how == "in chains" else ["--independent"]))
            each = (settled(m) - empty) / m.blocks()
        finally:
            m.remove()
        yield line(f"memory, {blocks:,} blocks {how}, `{policy}`, full, as many evicted", f"<= {bar} B a block" if bar else "-",
                   f"{each:.1f} B", "fields alone 64 B", each <= bar if bar else None)


def churn(lab, m, capacity):
    """Writers on a full store over three checkpoints. Returns what was counted from the end of one checkpoint to the end
    of another, and the length of the journal when the manager was killed: about as long as it gets."""
    load = subprocess.Popen([lab.slabkv, "--url", m.url, "--timeout", "60000", "bench", "--ops", "start", "--keys", "128",
                             "--clients", "4", "--seconds", "1800", "--max-blocks", "4000000000", "--keep", "--full",
                             "--capacity", capacity, "--population", "1"], cwd=m.dir, stdout=subprocess.DEVNULL)
    first = last = None
    seen = longest = 0
    try:
        while True:
            time.sleep(0.05)
            if load.poll() is not None:
                raise RuntimeError(f"the writers ended with {load.returncode}")
            now = m.counters()
            if now["evicted_blocks"] and now["checkpoints"] > seen and first is None:
                first = now
            if first and last is None and now["checkpoints"] >= first["checkpoints"] + 3:
                last = now
            seen = now["checkpoints"]
            if last and now["journal_bytes"] >= 0.9 * longest:
                break
            longest = max(longest, now["journal_bytes"]) if first else 0
        m.end(signal.SIGKILL)
    finally:
        load.kill()
        load.wait()
    return {k: last[k] - first.get(k, 0) for k in last}, now


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", maxsplit=1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def checkpoints(lab):
    """What checkpoints write while the blocks of a full store change, and a restart with the longest journal."""
    capacity, blocks = ("4G", 1 << 20) if lab.quick else ("40G", 10 << 20)
    check_room(lab, blocks)
    m = lab.manager("checkpoints", "--durability", "normal")
    try:
        counted, end = churn(lab, m, capacity)
        ratio = counted["checkpoint_bytes"] / counted["store_append_bytes"]
        size = counted["checkpoint_bytes"] / max(1, counted["checkpoints"])
        yield line(f"bytes of checkpoints per byte of journal, {blocks:,} blocks, full, 4 writers", "<= 2",
                   f"{ratio:.2f}; a checkpoint {size / 1e6:.0f} MB",
                   f"{counted['checkpoints']} checkpoints, {counted['evicted_blocks']:,} blocks evicted", ratio <= 2)
        ready = m.start()
        cpu = cpu_seconds(m.process.pid)
        yield line("ready after kill -9 there", "<= 3 s",
                   f"{ready:.1f} s, {cpu:.1f} s of CPU; {m.blocks():,} blocks, {end['journal_bytes'] / 1e6:.0f} MB of journal",
                   f"reading {(size + end['journal_bytes']) / 1e6:.0f} MB", ready <= 3)
    finally:
        m.remove()
