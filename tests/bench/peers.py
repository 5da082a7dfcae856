"""peers.py - the rows beside others' servers (others.py), in turns in the same run.

What is compared is the CPU time of the server's process; keys are 64 hex characters; one client has one connection and one
call at a time. Mooncake's master is asked by Mooncake's client, ours by the client library (protobuf over HTTP): a
look-up of each key by itself, which leases it, as theirs does; a put is a start and an end, ours with checksums and
durable, theirs in memory. SGLang's metadata server and ours get the same bodies of the hf3fs API.
"""

import statistics

from lab import Missing, meminfo_available
from others import Mooncake, Sglang
from pages import Client, cpu_us, key, settled_cpu
from scale import GIB, fill, line, settled

POPULATION, BATCH = 8192, 512


def compare(what, bar, pairs, n, peer):
    """`pairs`: microseconds of a call, ours and theirs."""
    ratio = statistics.median(b / a for a, b in pairs)
    ours, theirs = (statistics.median(p[i] for p in pairs) / n for i in (0, 1))
    each = "us a key" if n > 1 else "us"
    return line(f"{what}, one connection, CPU of the server, beside {peer}", f">= {bar}x less" if bar else "-",
                f"{ours:.3f} {each} = {ratio:.1f}x less", f"{peer} {theirs:.3f} {each}", ratio >= bar if bar else None)


def cpu_of(pid, calls, do):
    before = cpu_us(pid)
    do()
    return (cpu_us(pid) - before) / calls


# ---- Mooncake ----------------------------------------------------------------------------------------

LOOKUPS = {"hit": ["--ops", "lookup", "--batch"], "miss": ["--ops", "lookup", "--batch", "--hits", 0]}


def native(lab, m, n, *args):
    found = m.bench("--text", "--clients", 1, "--keys", n, "--population", POPULATION, "--seconds",
                    lab.seconds / 2, *args)[0][0]
    if found["success"] != 1:
        raise RuntimeError("a key was not found, or one too many")
    return found["manager_cpu_us_per_call"]


def mooncake(lab):
    peer = Mooncake(lab, POPULATION, BATCH)
    m = lab.manager("beside-mooncake")
    try:
        for n, kind, bar in ((BATCH, "hit", 15), (BATCH, "miss", 15), (1, "hit", 3)):
            calls = max(20, int((50 if n > 1 else 500) * lab.seconds))
            pairs = [(native(lab, m, n, *LOOKUPS[kind]),
                      cpu_of(peer.pid, calls, lambda n=n, kind=kind, calls=calls: peer.ask(kind, n, calls)))
                     for _ in range(2 * lab.rounds + 1)]
            what = "1 hit" if n == 1 else f"{n} hits" if kind == "hit" else f"{n} misses"
            yield compare(f"{what} of 64 characters", bar, pairs, n, "Mooncake's master")
    finally:
        m.remove()
        peer.close()


def mooncake_puts(lab):
    """Theirs always has few blocks, which costs it least."""
    blocks = 1000000 if lab.quick else 4000000 if lab.seconds >= 1 else 20000
    if meminfo_available() < 2 * GIB + blocks * 400:
        raise Missing(f"{blocks} blocks want {(2 * GIB + blocks * 400) / GIB:.0f} GiB of memory to be free")
    peer = Mooncake(lab, POPULATION, BATCH)
    m = lab.manager("put-beside-mooncake")
    try:
        for there in (0, blocks):
            if there:
                fill(lab, m, there, settled(m))
            calls, pairs = max(4, int(15 * lab.seconds)), []
            for _ in range(2 * lab.rounds + 1):
                settled_cpu(m)  # what the round before made has been removed
                pairs.append((native(lab, m, BATCH, "--ops", "start", "--checksums", "--max-blocks", 4000000000),
                              cpu_of(peer.pid, calls, lambda calls=calls: peer.ask("put", BATCH, calls))))
            yield compare(f"put of {BATCH} blocks, {there:,} there", 10, pairs, BATCH, "Mooncake's master")
    finally:
        m.remove()
        peer.close()


# ---- SGLang ------------------------------------------------------------------------------------------

def exists(c, n, miss, calls):
    for i in range(calls):
        at = i * n % (POPULATION - n + 1)
        found = c.post("exists", keys=[key(k, "-" if miss else "") for k in range(at, at + n)])["exists"]
        if found != [not miss] * n:
            raise RuntimeError("a key was not found, or one too many")


def sglang(lab):
    peer = Sglang(lab)
    m = lab.manager("beside-sglang")
    try:
        if not peer.process:
            raise Missing("whose CPU time SGLang's server costs is not known with SKV_SGLANG_URL")
        clients = {m.process.pid: Client(m), peer.process.pid: Client(peer)}
        for c in clients.values():
            c.post("initialize", num_pages=4000000)
            c.fill(0, POPULATION)
        ways = [("512 hits", BATCH, lambda c, _, calls: exists(c, BATCH, False, calls)),
                ("512 misses", BATCH, lambda c, _, calls: exists(c, BATCH, True, calls)),
                ("1 hit", 1, lambda c, _, calls: exists(c, 1, False, calls)),
                ("put of 512 blocks", BATCH, lambda c, turn, calls: c.fill((turn + 1) * 100000, calls * BATCH))]
        for what, n, do in ways:
            calls = max(8, int((20 if n > 1 else 200) * lab.seconds))
            pairs = [[cpu_of(pid, calls, lambda c=c, turn=turn, do=do, calls=calls: do(c, turn, calls))
                      for pid, c in clients.items()] for turn in range(2 * lab.rounds + 1)]
            yield compare(f"{what} of 64 characters, hf3fs API, JSON", 0, pairs, n, "SGLang's own server")
    finally:
        m.remove()
        peer.close()


ROWS = {"peer-mooncake": mooncake, "peer-mooncake-puts": mooncake_puts, "peer-sglang": sglang}
