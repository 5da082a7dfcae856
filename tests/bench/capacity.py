"""capacity.py - what a full store costs: its writers, and the readers beside them.

Blocks are addresses in storages of type null. Empty and full are measured in turns, because other work on the machine
changes what either can do.
"""

import json
import signal
import subprocess
import time

from lab import Missing, meminfo_available

GIB = 1 << 30


def line(what, bar, measured, floor, met):
    return {"what": what, "bar": bar, "measured": measured, "floor": floor, "met": met}


def median(values):
    return sorted(values)[len(values) // 2]


def starts(lab, m, *args):
    ops, counted = m.bench("--ops", "start", "--keys", 128, "--clients", 8, "--seconds", lab.seconds,
                           "--max-blocks", 400000000, *args)
    return ops[0], counted


def summary(ops):
    return (median([op["keys_per_s"] for op in ops]), median([op["start"]["p99_us"] for op in ops]),
            median([op["start"]["p50_us"] for op in ops]), min(op["success"] for op in ops))


def writers(lab):
    """8 writers on an empty store, then on one that is full."""
    capacity, blocks = ("4G", 1 << 20) if lab.quick else ("40G", 10 << 20)
    if meminfo_available() < 2 * GIB + blocks * 400:
        raise Missing(f"{blocks} blocks want {(2 * GIB + blocks * 400) / GIB:.0f} GiB of memory to be free")
    empty, full, looked, gone = [], [], 0, 0
    m = lab.manager("full", "--durability", "normal")
    try:
        for _ in range(lab.rounds):
            empty.append(starts(lab, m, "--population", 1)[0])
            op, counted = starts(lab, m, "--full", "--capacity", capacity, "--population", 1)
            full.append(op)
            looked += counted["evict_examined"]
            gone += counted["evicted_blocks"]
    finally:
        m.remove()
    rate, p99, p50, success = summary(full)
    base, base_p99, base_p50, _ = summary(empty)
    floor = f"{base:,.0f} blocks/s, p99 {base_p99 / 1000:.1f} ms"
    what = f"8 writers, full with {blocks:,} blocks"
    yield line(f"{what}: blocks/s", "success 1; >= 85 % of empty",
               f"success {success:.4f}; {rate:,.0f} blocks/s = {rate / base:.0%}", floor,
               success == 1 and rate >= 0.85 * base)
    yield line(f"{what}: p99 of start", "<= 2x empty",
               f"{p99 / 1000:.1f} ms = {p99 / max(1, base_p99):.1f}x", floor, p99 <= 2 * base_p99)
    most = 1.0 if lab.quick else 1.25
    cpu, least = (median([op["manager_cpu_us_per_key"] for op in ops]) for ops in (full, empty))
    yield line(f"{what}: processor time of the manager for a block", f"<= {most} us", f"{cpu:.2f} us", f"{least:.2f} us, empty",
               cpu <= most)
    yield line(f"{what}: entries examined per eviction", "< 4", f"{looked / max(1, gone):.2f}",
               "1", looked < 4 * gone)


def watch(m, seconds, seen):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        seen.append(json.loads(m.get("/v1/stats"))["blocks"])
        time.sleep(0.02)


def bursts(lab, m, on, off, fits):
    """Writers that run and are stopped in turns. Of what fits: how much is there, in the mean and at least, while they run
    and while they rest. Blocks that are being written do not count."""
    load = subprocess.Popen([lab.slabkv, "--url", m.url, "--timeout", "60000", "bench", "--ops", "start", "--keys",
                             str(fits // 2048), "--clients", "8", "--seconds", "600", "--max-blocks", "4000000000", "--full",
                             "--capacity", "16G", "--slot", str((16 << 30) // fits), "--population", "1"], cwd=m.dir,
                            stdout=subprocess.DEVNULL)
    run, rest = [], []
    try:
        before = m.counters()["evicted_blocks"]
        while m.counters()["evicted_blocks"] < before + fits // 4:
            if load.poll() is not None:
                raise RuntimeError("the writers ended before the store was full")
            time.sleep(0.05)
        for _ in range(3 if lab.quick else 10):
            load.send_signal(signal.SIGSTOP)
            watch(m, off, rest)
            load.send_signal(signal.SIGCONT)
            watch(m, on, run)
    finally:
        load.send_signal(signal.SIGCONT)
        load.terminate()
        load.wait()
    return [f(v) / fits for v in (run, rest) for f in (lambda v: sum(v) / len(v), min)]


def space(lab):
    """How much of 16 GiB holds blocks when writes come in bursts: what is kept free ahead of them is lost to readers."""
    for size, fits in (("64 KiB", 1 << 18), ("1 MiB", 1 << 14)):
        for on, off in ((0.1, 0.9), (1, 1), (2, 8)):
            m = lab.manager("space", "--durability", "normal")
            try:
                run, run_least, rest, rest_least = bursts(lab, m, on, off, fits)
            finally:
                m.remove()
            yield line(f"16 GiB full of blocks of {size}, 8 writers for {on:g} s, then none for {off:g} s: blocks there",
                       ">= 97 % of what fits, in the mean",
                       f"{run:.1%} while they write (at least {run_least:.1%}), {rest:.1%} while they rest "
                       f"(at least {rest_least:.1%})",
                       "all but open sessions: 99.6%", min(run, rest) >= 0.97)


def lookups_beside(lab, m, rate, *args):
    """Lookups of two clients while a writer makes `rate` blocks a second."""
    writer = subprocess.Popen([lab.slabkv, "--url", m.url, "--json", "--timeout", "60000", "bench", "--ops", "start", "--keys",
                               "128", "--clients", "2", "--rate", str(rate), "--seconds", str(lab.seconds + 4), "--max-blocks",
                               "400000000", "--population", "1", *args], cwd=m.dir, stdout=subprocess.PIPE, text=True)
    try:
        full = "--full" in args
        before = m.counters()["evicted_blocks"]
        while full and m.counters()["evicted_blocks"] < before + rate // 4:
            if writer.poll() is not None:
                raise RuntimeError("the writer ended before the store was full")
        ops, counted = m.bench("--ops", "lookup", "--keys", 128, "--clients", 2, "--seconds", lab.seconds)
        evicted = counted["evicted_blocks"]
        if full != (evicted > rate * lab.seconds // 4):
            raise RuntimeError(f"{evicted} blocks were evicted while the store was {'full' if full else 'empty'}")
    finally:
        writer.communicate(timeout=120)
    return ops[0]["calls_per_s"], evicted


def readers(lab):
    """The same lookups and the same writer; in the second half of each turn the writer's store is full."""
    rate = 100000
    without, beside, evicted = [], [], 0
    m = lab.manager("beside", "--durability", "normal")
    try:
        for _ in range(lab.rounds):
            without.append(lookups_beside(lab, m, rate)[0])
            calls, n = lookups_beside(lab, m, rate, "--full", "--capacity", "1G")
            beside.append(calls)
            evicted += n
    finally:
        m.remove()
    a, b = median(without), median(beside)
    yield line(f"lookups of 128 keys, 2 clients, beside a writer of {rate:,} blocks/s, store full",
               ">= 85 % of floor", f"{b:,.0f} calls/s = {b / a:.0%}",
               f"not full: {a:,.0f} calls/s", b >= 0.85 * a)


def ticks(lab):
    """The ticker's own work, in a core by itself: full of blocks of 1 GiB, at rest and while leases run."""
    small, large = lab.floor("ticks", 1), lab.floor("ticks", 64 if lab.quick else 1024)
    size = "64 TiB" if lab.quick else "1 PiB"
    for when in ("rest", "leases"):
        a, b = small[when]["mean_us"], large[when]["mean_us"]
        what = "at rest" if when == "rest" else "while leases run"
        yield line(f"a tick with {size} of `null` storage, full, {what}", "<= 2x that of 1 TiB, and 5 us of CPU",
                   f"{b:.2f} us of CPU, {large[when]['max_us']:.1f} at most", f"1 TiB: {a:.2f} us", b <= 2 * a + 5)


ROWS = {"full-writers": writers, "full-space": space, "full-readers": readers, "ticks": ticks}
