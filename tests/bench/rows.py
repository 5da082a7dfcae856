"""rows.py - the rows of docs/internals/BENCHMARKS.md: how each number is made, its bar and its floor.

A row is a function of the lab that yields lines (what, bar, measured, floor, met). `met` is None when
there is nothing to meet. A row that cannot be measured here raises lab.Missing.
"""

import os
import statistics

import capacity
import encrypted
import fairness
import lookups
import many
import pages
import peers
import replicated
import scale
import tiers

MIB = 1 << 20
WIRES = {"json": "HTTP/JSON", "grpc": "gRPC"}


def line(what, bar, measured, floor="", met=None):
    return {"what": what, "bar": bar, "measured": measured, "floor": floor, "met": met}


def least_cpu(lab, manager, *args, **how):
    """Of some rounds the one with the least CPU time: other work on the machine only ever adds to it."""
    best = None
    for _ in range(lab.rounds):
        ops, counted = manager.bench("--seconds", lab.seconds, *args, **how)
        op = ops[0]
        if best is None or op["manager_cpu_us_per_call"] < best[0]["manager_cpu_us_per_call"]:
            best = op, counted
    return best


def floors_of_call(lab, manager, keys, clients, *args, **how):
    request, answer = manager.call_bytes(*args, **how)
    echo = lab.floor("echo", request, answer, clients, lab.seconds, 2)
    touch = lab.floor("floor", 512, keys, request, answer, lab.seconds)
    text = f"echo {echo['cpu_us_per_call']:.1f} us a call, touch {touch['ns_per_key']:.0f} ns a key"
    return text, echo


def lookup(lab, keys, *more, clients=4):
    m = lab.manager("lookup")
    args = ["--ops", "lookup", "--keys", keys, "--clients", clients, *more]
    try:
        op, _ = least_cpu(lab, m, *args)
        if op["success"] != 1:
            raise RuntimeError(f"a lookup missed: success {op['success']}")
        floor, echo = floors_of_call(lab, m, keys, clients, *args)
        return op, floor, echo
    finally:
        m.remove()


def lookup_512(lab, bar, *more, where="65,536 blocks side by side"):
    op, floor, _ = lookup(lab, 512, *more)
    cpu = op["manager_cpu_us_per_call"]
    yield line(f"prefix of 512 keys, protobuf, {where}", f"<= {bar} us CPU a call",
               f"{cpu:.0f} us ({cpu / 512 * 1000:.0f} ns a key)", floor, cpu <= bar)


def lookup_1(lab, bar):
    op, floor, echo = lookup(lab, 1)
    per_core = 1e6 / op["manager_cpu_us_per_call"]
    yield line("1 key, protobuf, one core", f">= {bar:,} /s",
               f"{per_core:,.0f} /s ({op['manager_cpu_us_per_call']:.1f} us a call)",
               floor, per_core >= bar)


def kvcm_get(lab, wire, bar):
    """What a connector written for KVCM asks before each prompt."""
    m = lab.manager("kvcm-get")
    try:
        args = ["--ops", f"get-{wire}", "--keys", 1000]
        op, _ = least_cpu(lab, m, *args, kvcm=True)
        if op["success"] != 1:
            raise RuntimeError(f"a query missed: success {op['success']}")
        floor = floors_of_call(lab, m, 1000, 4, *args, kvcm=True)[0] if wire == "json" else \
            f"native API: {native(lab, m):.0f} us"
    finally:
        m.remove()
    cpu = op["manager_cpu_us_per_call"]
    yield line(f"KVCM getCacheLocation of 1,000 keys, {WIRES[wire]}", f"<= {bar:,} us CPU a call",
               f"{cpu:.0f} us", floor,
               cpu <= bar)


def native(lab, m):
    op, _ = least_cpu(lab, m, "--ops", "lookup", "--keys", 1000)
    return op["manager_cpu_us_per_call"]


def kvcm_write(lab, wire, bar):
    m = lab.manager("kvcm-write", "--durability", "full")
    best = None
    try:
        for _ in range(lab.rounds):
            ops, _ = m.bench("--ops", f"write-{wire}", "--keys", 512, "--clients", 8, "--seconds", lab.seconds,
                             "--max-blocks", 100000000, "--population", 1, kvcm=True)
            if best is None or ops[0]["keys_per_s"] > best["keys_per_s"]:
                best = ops[0]
    finally:
        m.remove()
    yield line(f"KVCM start+finish of 512 blocks, FULL, {WIRES[wire]}",
               f">= {bar:,} blocks/s" if bar else "-",
               f"{best['keys_per_s']:,.0f} blocks/s, {best['manager_cpu_us_per_key']:.2f} us CPU a block; p99 of start "
               f"{best['start']['p99_us'] / 1000:.1f} ms", "the native rows above",
               best["keys_per_s"] >= bar if bar else None)


def sqlite_floor(lab, counted, blocks, durability):
    """Bare commits of as many bytes as the manager's appends had."""
    appends = max(1, counted["store_appends"])
    size = max(64, counted["store_append_bytes"] // appends)
    floor = lab.floor("sqlite_append", lab.dir, size, durability.upper(), lab.seconds)
    return floor, floor["commits_per_s"] * blocks / appends, size


def start_finish(lab, durability, bar):
    """Ours and the floor in turns, the best round of each: how long a sync takes changes by the minute."""
    m = lab.manager("start-" + durability, "--durability", durability)
    best = floor = None
    try:
        for _ in range(lab.rounds):
            ops, counted = m.bench("--ops", "start", "--keys", 512, "--clients", 8, "--seconds", lab.seconds,
                                   "--max-blocks", 100000000, "--population", 1)
            if best is None or ops[0]["keys_per_s"] > best[0]["keys_per_s"]:
                best = ops[0], counted
            now = sqlite_floor(lab, counted, ops[0]["calls"] * 512, durability)
            if floor is None or now[1] > floor[1]:
                floor = now
        op, (floor, could, size) = best[0], floor
    finally:
        m.remove()
    yield line(f"start+finish of 512 blocks, {durability.upper()}", f">= {bar:,} blocks/s",
               f"{op['keys_per_s']:,.0f} blocks/s, {op['manager_cpu_us_per_key']:.2f} us CPU a block",
               f"bare SQLite {could:,.0f}",
               op["keys_per_s"] >= bar)
    limit = max(20000, 2 * floor["p99_us"])
    yield line(f"p99 of that start, {durability.upper()}", "<= 20 ms or 2x floor",
               f"{op['start']['p99_us'] / 1000:.1f} ms",
               f"bare SQLite {floor['p99_us'] / 1000:.1f} ms",
               op["start"]["p99_us"] <= limit)


def start_calm(lab, m, *args):
    """Of some rounds the one with the lowest p99: a neighbour's burst is not ours."""
    ops = [m.bench("--ops", "start", "--keys", 128, "--seconds", lab.seconds, "--max-blocks", 100000000, *args)[0][0]
           for _ in range(lab.rounds)]
    return min(ops, key=lambda op: op["start"]["p99_us"]), min(op["success"] for op in ops)


def eviction(lab):
    """Stores of 262,144 and of 1,048,576 blocks: a share of the store is evicted ahead of need."""
    for clients in (4, 8):
        m = lab.manager("eviction", "--durability", "normal")
        try:
            empty, _ = start_calm(lab, m, "--clients", clients, "--population", 1)
            full = {size: start_calm(lab, m, "--clients", clients, "--full", "--capacity", size) for size in ("1G", "4G")}
        finally:
            m.remove()
        for size, blocks in (("1G", 262144), ("4G", 1048576)):
            op, success = full[size]
            ratio = op["start"]["p99_us"] / max(1, empty["start"]["p99_us"])
            yield line(f"start, {clients} writers, full with {blocks:,} blocks",
                       "success 1; p99 <= 3x empty",
                       f"success {success:.4f}; p99 {op['start']['p99_us'] / 1000:.1f} ms = {ratio:.1f}x; "
                       f"{op['keys_per_s']:,.0f} blocks/s",
                       f"{empty['start']['p99_us'] / 1000:.1f} ms; {empty['keys_per_s']:,.0f} blocks/s",
                       success == 1 and ratio <= 3)


def scaling(lab):
    """CPU time of a call with one server thread and with two. Waiting for a lock costs no CPU time: the calls
    per second stand beside it."""
    found = {}
    for threads in (1, 2):
        m = lab.manager("scaling", "--threads", str(threads))
        try:
            found[threads], _ = least_cpu(lab, m, "--ops", "lookup", "--keys", 512, "--clients", 4)
        finally:
            m.remove()
    cpu = {n: op["manager_cpu_us_per_call"] for n, op in found.items()}
    factor = 2 * cpu[1] / cpu[2]
    yield line("512 keys, 2 server threads against 1", ">= 1.7x",
               f"{factor:.2f}x by CPU time",
               f"{found[1]['calls_per_s']:.0f} and {found[2]['calls_per_s']:.0f} calls/s", factor >= 1.7)


DEEP = 32  # blocks in flight, ours and the floor's


def ways(m):
    """How DEEP blocks are kept in flight: each client has two calls under way, so that one's start, checksums and sync
    take place while the other's bytes move."""
    m.bench("--ops", "match", "--seconds", 0.01)
    if m.engine == "posix":
        return {"16 clients, engine posix: through the page cache": ["--clients", 16, "--keys", 1]}
    return {f"{m.engine}, 1 client": ["--clients", 1, "--keys", 16, "--depth", 16],
            f"{m.engine}, 4 clients": ["--clients", 4, "--keys", 4, "--depth", 4]}


def put_get(m, seconds, block, size, how):
    m.wait_free()
    (put, get), _ = m.bench("--seconds", seconds, "--data", block, "--data-bytes", size, *how)
    if put["success"] != 1 or get["success"] != 1:
        raise RuntimeError(f"blocks did not come back: {put['success']} {get['success']}")
    return put["mib_per_s"], get["mib_per_s"]


def data_line(what, ours, fio):
    """Medians: the disk is not ours alone. Where fio does not agree with itself, one run of it is no floor."""
    floor, spread = statistics.median(fio), (max(fio) - min(fio)) / statistics.median(fio)
    part = statistics.median(ours) / floor
    said = f"{floor:.0f}" + (f", from {min(fio):.0f} to {max(fio):.0f}: spread {spread:.0%}" if spread > 0.05 else "")
    return line(what, ">= 95 % of fio", f"{statistics.median(ours):.0f} MiB/s = {part:.0%}", said, part >= 0.95)


def data_manager(lab, name):
    return lab.manager(name, "--storage-capacity", "4G", "--storage-file-size", "4G", "--durability", "normal",
                       "--lease-default-ms", "3000")


def data_fresh(lab, block, size, how):
    """MiB/s of puts into files that were never written: a new manager's each time."""
    m = data_manager(lab, "data-fresh")
    try:
        return put_get(m, lab.seconds, block, size, how)[0]
    finally:
        m.remove()


def data_lines(lab, block, way, how, m):
    """Ours and fio in turns: fio before, between and after."""
    size = 512 * MIB if lab.quick else 2048 * MIB
    file = os.path.join(lab.dir, "floor.bin")

    def fio(mode, fresh=False):
        return lab.fio(file, block, mode, DEEP, size, fresh)

    floor, ours = [fio("write", True)], []
    for _ in range(lab.rounds):
        ours.append(data_fresh(lab, block, size, how))
        floor.append(fio("write", True))
    yield data_line(f"put {block:,} B, fresh, {way}", ours, floor)

    put_get(m, lab.seconds, block, size, how)  # writes the places of those below
    floor, ours = [(fio("write"), fio("randread"))], []
    for _ in range(lab.rounds):
        ours.append(put_get(m, lab.seconds, block, size, how))
        floor.append((fio("write"), fio("randread")))
    (puts, gets), (writes, reads) = zip(*ours), zip(*floor)
    yield data_line(f"put {block:,} B, warm, {way}", puts, writes)
    yield data_line(f"get {block:,} B, {way}", gets, reads)


def data(lab):
    m = data_manager(lab, "data")
    try:
        for block in (MIB, 4497408):
            for way, how in ways(m).items():
                yield from data_lines(lab, block, way, how, m)
    finally:
        m.remove()


def ios(lab):
    m = lab.manager("ios")
    try:
        ops, _ = m.bench("--seconds", 0.2, "--clients", 1, "--keys", 512, "--data", "64K", "--data-bytes", "32M")
    finally:
        m.remove()
    get = ops[1]
    each = get["ios"] / max(1, get["blocks"])
    yield line("reading a fresh prefix of 512 blocks of 64 KiB", "<= 64 I/Os",
               f"{each * 512:.0f} I/Os for 512 blocks", "1",
               get["success"] == 1 and each <= 1 / 8)


ROWS = {
    "lookup-512-protobuf": lambda lab: lookup_512(lab, 80),
    "lookup-512-scattered": lambda lab: lookup_512(lab, 70, "--scatter", "--population", 1000000,
                                                   where="1,000,000 scattered"),
    "lookup-1-protobuf": lambda lab: lookup_1(lab, 50000),
    **lookups.ROWS,
    "scaling": scaling,
    "start-normal": lambda lab: start_finish(lab, "normal", 500000),
    "start-full": lambda lab: start_finish(lab, "full", 300000),
    "kvcm-get-json": lambda lab: kvcm_get(lab, "json", 1500),
    "kvcm-get-grpc": lambda lab: kvcm_get(lab, "grpc", 350),
    "kvcm-write-json": lambda lab: kvcm_write(lab, "json", 100000),
    "kvcm-write-grpc": lambda lab: kvcm_write(lab, "grpc", 0),
    "eviction": eviction,
    **encrypted.ROWS,
    **capacity.ROWS,
    "data": data,
    "ios": ios,
    **pages.ROWS,
    "scale": scale.rows,
    "memory-policies": scale.policies,
    "checkpoints": scale.checkpoints,
    **fairness.ROWS,
    **many.ROWS,
    **replicated.ROWS,
    **tiers.ROWS,
    **peers.ROWS,
}
