"""pages.py - the rows of SGLang's hf3fs metadata API: wrk is the load of the short calls, a client of one
connection that of the others.

Keys are 64 hex characters, as SGLang's are; pages are filled through the API, 512 a call, durable (FULL), which is not the
default of reserve and confirm (synced within a tenth of a second). Two rows compare with SGLang's own server: others.py says where it comes from.
"""

import contextlib
import glob
import hashlib
import http.client
import json
import math
import os
import random
import shutil
import signal
import statistics
import time
import urllib.parse

import others
from lab import Missing, command, rss
from scale import line, settled

BATCH = 512
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pages.lua")
JSON = {"Content-Type": "application/json"}


def key(i, suffix=""):
    return hashlib.sha256(b"%d" % i).hexdigest() + suffix


def compact(body):
    return json.dumps(body, separators=(",", ":"))


def cpu_us(pid):
    """CPU time of a process so far, to the nanosecond where the kernel tells."""
    found = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with contextlib.suppress(FileNotFoundError), open(path, encoding="ascii") as f:  # threads end
            found += int(f.read().split()[0])
    return found / 1000


class Client:
    """One connection to rank 0."""

    def __init__(self, m):
        where = urllib.parse.urlsplit(m.url)
        self.m = m
        self.http = http.client.HTTPConnection(where.hostname, where.port, timeout=120)

    def post(self, op, **body):
        self.http.request("POST", "/0/" + op, compact(body), JSON)
        answer = self.http.getresponse()
        text = answer.read()
        if answer.status not in (200, 204):
            raise RuntimeError(f"{op}: {answer.status} {text[:200]!r}")
        return json.loads(text) if text else {}

    def reserve(self, keys):
        indices = self.post("reserve_and_allocate_page_indices", keys=[[k, ""] for k in keys])["indices"]
        return [page for known, page in indices if not known and page >= 0]

    def fill(self, first, n, suffix=""):
        for i in range(first, first + n, BATCH):
            keys = [key(j, suffix) for j in range(i, min(i + BATCH, first + n))]
            pages = self.reserve(keys)
            if len(pages) != len(keys):
                raise RuntimeError(f"filling: {len(keys) - len(pages)} of {len(keys)} keys got no page")
            self.post("confirm_write", written_keys_to_confirm=list(zip(keys, pages)), pages_to_release=[])

    def timed(self, op, bodies):
        """Microseconds of each call, and the manager's CPU a call."""
        took, cpu = [], cpu_us(self.m.process.pid)
        for body in bodies:
            begin = time.monotonic()
            self.post(op, **body)
            took.append((time.monotonic() - begin) * 1e6)
        return took, (cpu_us(self.m.process.pid) - cpu) / len(took)


def sized(lab, pages):
    """A fiftieth where a test only sees whether a row can be measured."""
    return pages if lab.seconds >= 1 else pages // 50


def filled(lab, pages, room, *args):
    m = lab.manager("pages", "--durability", "full", *args)
    try:
        c = Client(m)
        c.post("initialize", num_pages=room)
        begin = time.monotonic()
        c.fill(0, pages)
        print(f"  {pages:,} pages after {time.monotonic() - begin:.1f} s", flush=True)
    except BaseException:
        m.remove()
        raise
    return m, c


# ---- wrk -------------------------------------------------------------------------------------------

def wrk(lab, url, pid, threads, seconds, *args):
    if not shutil.which("wrk"):
        raise Missing("wrk is not installed")
    cpu = cpu_us(pid)
    run = command(["wrk", f"-t{threads}", "-c4", f"-d{seconds}s", "--timeout", "30s", "-s", SCRIPT, url,
                   "--", *map(str, args)])
    cpu = cpu_us(pid) - cpu
    if run.returncode != 0 or "{" not in run.stdout:
        raise RuntimeError("wrk: " + run.stderr + run.stdout)
    found = json.loads(run.stdout[run.stdout.index("{"):])
    if found["errors"] or not found["requests"]:
        raise RuntimeError(f"wrk: {found}")
    found["cpu"] = cpu / found["requests"]
    found["per_s"] = found["requests"] * 1e6 / found["us"]
    return found


def echo(lab, file, request, answer):
    server = lab.serve("echo", request, answer, 0, 0, 2)
    try:
        port, pid = server.stdout.readline().split()
        return wrk(lab, f"http://127.0.0.1:{port}", pid, 2, math.ceil(lab.seconds), "repeat", file)
    finally:
        server.stdin.close()
        server.wait()


def best(rounds):
    """The fastest round's numbers, and of CPU time the least: other work only ever adds to it."""
    found = dict(max(rounds, key=lambda r: r["per_s"]))
    found["cpu"] = min(r["cpu"] for r in rounds)
    return found


def read(lab, op, keys, bar):
    """Hits only. Chains of neighbours, as a prompt's pages are; the chains lie all over the store."""
    population = sized(lab, 250000)
    m, c = filled(lab, population, population * 11 // 10)  # a full store evicts ahead
    try:
        chains = population // max(keys, 100) // 4  # a half at most may be leased
        bodies = [{"keys": [key(at + i) for i in range(keys)], "namespace": "kv"}
                  for at in range(0, population - keys, population // chains)]
        name = {"get": "get_page_indices"}.get(op, op)
        file = m.path("requests")
        with open(file, "w", encoding="ascii") as f:
            f.writelines(f"/0/{name} {compact(b)}\n" for b in bodies)
        rounds = [wrk(lab, m.url, m.process.pid, 2, math.ceil(lab.seconds), "repeat", file) for _ in range(lab.rounds)]
        for body in bodies:
            answer = c.post(name, **body)
            if not all(hit is not None and hit is not False for hit in answer.popitem()[1]):
                raise RuntimeError(f"{op} missed")
        floor = echo(lab, file, len(compact(bodies[0])), len(compact(c.post(name, **bodies[0]))))
    finally:
        m.remove()
    r = best(rounds)
    yield line(f"{op} of {keys} keys",
               f">= {bar:,} requests/s" + ("; < 100 us CPU a call" if keys > 1 else ""),
               f"{r['per_s']:,.0f} requests/s, {r['cpu']:.1f} us CPU",
               f"echo {floor['per_s']:,.0f}, {floor['cpu']:.1f} us",
               r["per_s"] >= bar and (keys == 1 or r["cpu"] < 100))


def reserve_confirm(lab):
    """80 % of each batch are new keys; the rest is its prefix and there already. Rounds are short, so that the store
    stays of about that size."""
    population, new = sized(lab, 250000), BATCH * 4 // 5
    rounds, counted = [], None
    for _ in range(2 * lab.rounds):  # a store for each
        m, _ = filled(lab, population, population + 4000000)
        try:
            file = m.path("requests")
            with open(file, "w", encoding="ascii") as f:
                for at in range(0, population - BATCH, BATCH):
                    f.write(",".join(f'["{key(at + i)}",""]' for i in range(BATCH - new)) + "\n")
            before = m.counters()
            r = wrk(lab, m.url, m.process.pid, 4, 1, "pair", file, new)
            counted = {k: v - before.get(k, 0) for k, v in m.counters().items()}
        finally:
            m.remove()
        if r["short"] or not r["pairs"]:
            raise RuntimeError(f"reserve found no room, or lost keys: {r}")
        r["cpu"] *= r["requests"] / r["pairs"]
        rounds.append(r)
    r = best(rounds)
    size = max(64, counted["store_append_bytes"] // max(1, counted["store_appends"]))
    floor = lab.floor("sqlite_append", lab.dir, size, "FULL", lab.seconds)
    yield line(f"reserve + confirm of {BATCH} keys, {new} new, FULL",
               "<= 300 us CPU for the pair",
               f"{r['cpu']:.0f} us; {r['pairs'] * new * 1e6 / r['us']:,.0f} pages/s",
               f"bare SQLite, {floor['commits_per_s']:,.0f} commits/s of {size} B", r["cpu"] <= 300)


# ---- one writer, one call after the other ---------------------------------------------------------

def write_alone(c, seconds, first, keys):
    """Calls a second of reserve, confirm, reserve... of new keys."""
    end, n, spent = time.monotonic() + seconds, 0, 0.0
    while time.monotonic() < end or n == 0:
        batch = [key(first + n * keys + i) for i in range(keys)]
        begin = time.monotonic()
        pages = c.reserve(batch)
        c.post("confirm_write", written_keys_to_confirm=list(zip(batch, pages)), pages_to_release=[])
        spent += time.monotonic() - begin
        n += 1
        if len(pages) != keys:
            raise RuntimeError(f"{keys - len(pages)} of {keys} keys got no page")
    return 2 * n / spent


def one_writer(lab, keys):
    """The servers take turns, so that the same weather is over all of them."""
    managers = {"slabkv": lab.manager("writer", "--durability", "full")}
    found, peer = {d: [] for d in managers}, others.sglang(lab)
    try:
        clients = {d: Client(m) for d, m in managers.items()}
        if peer:
            clients["sglang"] = Client(peer)
            found["sglang"] = []
        for c in clients.values():
            c.post("initialize", num_pages=4000000)
        for i in range(lab.rounds):
            for name, c in clients.items():
                c.http.close()  # SGLang's server ends connections that were idle for 5 s
                found[name].append(write_alone(c, lab.seconds, (keys * 100 + i) * 10000000, keys))
    finally:
        for m in managers.values():
            m.remove()
        if peer:
            peer.close()
    rate = {name: statistics.median(v) for name, v in found.items()}
    other = rate.get("sglang")
    yield line(f"SGLang reserve, confirm of {keys} new keys, one call after the other, Python client",
               ">= SGLang's own server in the same run", f"{rate['slabkv']:,.0f} calls/s",
               "SGLang's own server "
               + (f"{other:,.0f}" if other else "not there (--peers)"),
               rate["slabkv"] >= other if other else rate["slabkv"] > 0)


# ---- readers and writers of more than there is room for ---------------------------------------------

class Rules:
    """In the place of SGLang's own server: its table, which evicts what was used longest ago and knows no leases."""

    def __init__(self):
        self.page, self.free = {}, []  # keys in the order of their uses

    def post(self, op, **body):
        return getattr(self, op)(**body) or {}

    def initialize(self, num_pages):
        self.free = list(range(num_pages))

    def exists(self, keys):
        return {"exists": [k in self.page for k in keys]}

    def use(self, k):
        if k in self.page:
            self.page[k] = self.page.pop(k)
        return self.page.get(k)

    def get_page_indices(self, keys):
        return {"indices": [self.use(k) for k in keys]}

    def room(self):
        return self.free.pop() if self.free else self.page.pop(next(iter(self.page)))

    def reserve_and_allocate_page_indices(self, keys):
        there = [self.use(k) for k, _ in keys]
        return {"indices": [[False, self.room()] if p is None else [True, p] for p in there]}

    def confirm_write(self, written_keys_to_confirm, pages_to_release):
        self.page.update(written_keys_to_confirm)
        self.free += pages_to_release


def read_or_write(c, keys):
    """As a rank does for a prompt: asks, reads what is there from the begin on, writes the rest. Gives what was read."""
    there = c.post("exists", keys=keys)["exists"]
    n = there.index(False) if False in there else len(there)
    pages = c.post("get_page_indices", keys=keys[:n])["indices"] if n else []
    if n < len(keys):
        given = c.post("reserve_and_allocate_page_indices", keys=[[k, ""] for k in keys[n:]])["indices"]
        new = [[k, page] for k, (known, page) in zip(keys[n:], given) if not known and page >= 0]
        c.post("confirm_write", written_keys_to_confirm=new, pages_to_release=[])
    return len(pages) - pages.count(None)


MIXED_PAGES, MIXED_PROMPTS, MIXED_EACH = 1000, 182, 8


def mixed(lab):
    """The same prompts in the same order for each server."""
    m, peer, hits = lab.manager("mixed"), others.sglang(lab), {}
    other = "SGLang's own server" if peer else "its rules (--peers: its server)"
    try:
        servers = {"ours": Client(m), other: Client(peer) if peer else Rules()}
        prompts = [[key(p * MIXED_EACH + i, "-mixed") for i in range(MIXED_EACH)] for p in range(MIXED_PROMPTS)]
        for name, c in servers.items():
            rng, found = random.Random(1), []
            c.post("initialize", num_pages=MIXED_PAGES)
            for _ in range(int(2000 * lab.seconds)):
                found.append(read_or_write(c, rng.choice(prompts)))
            hits[name] = statistics.mean(found[len(found) // 4:])
        hidden = m.counters()["lease_hidden"]
    finally:
        m.remove()
        if peer:
            peer.close()
    yield line(f"SGLang: pages read for a prompt of {MIXED_EACH}, of {MIXED_PROMPTS} at random, {MIXED_PAGES:,} pages; what is "
               "missing is written", ">= 0.85 of SGLang's", f"{hits['ours']:.2f}; {hidden:,} keys hidden by the cap on leases",
               f"{other} {hits[other]:.2f}", hits["ours"] >= 0.85 * hits[other])


# ---- what must not grow with the store ------------------------------------------------------------

def calm_median(took):
    """Of the calmest quarter of the calls: other work on the machine comes in bursts."""
    n = max(1, len(took) // 4)
    return min(statistics.median(took[i:i + n]) for i in range(0, len(took) - n + 1, n))


def no_growth(what, upstream, found):
    """`found`: pages -> (microseconds of each call, CPU of a call, note)."""
    p50 = {pages: calm_median(took) for pages, (took, _, _) in found.items()}
    # A call is mostly the sync of the disk: twice the small store's time is noise; 4x would be growth.
    met = max(p50.values()) < 1000 and p50[max(p50)] < 2 * p50[min(p50)]
    for pages, (took, cpu, note) in found.items():
        yield line(f"{what}, {pages:,} pages there, FULL", "< 1 ms, not growing",
                   f"p50 {p50[pages] / 1000:.2f} ms; {cpu:.0f} us CPU{note}", f"upstream {upstream} ms", met)


SIZES = (250000, 1000000)


def delete(lab):
    found = {}
    for pages in (sized(lab, n) for n in SIZES):
        m, c = filled(lab, pages, pages)
        try:
            calls = 50 * lab.rounds
            step = pages // calls
            found[pages] = *c.timed("delete_keys", [{"keys": [key(i * step + j) for j in range(64)]}
                                                    for i in range(calls)]), ""
        finally:
            m.remove()
    yield from no_growth("delete_keys of 64 keys", 584, found)


def release(lab):
    found = {}
    for pages in (sized(lab, n) for n in SIZES):
        calls = 50 * lab.rounds
        m, c = filled(lab, pages, pages + calls * 64)
        try:
            given = [c.reserve([key(pages + i * 64 + j) for j in range(64)]) for i in range(calls)]
            found[pages] = *c.timed("confirm_write", [{"pages_to_release": g} for g in given]), ""
        finally:
            m.remove()
    yield from no_growth("release of 64 pages", 637, found)


def clear(lab):
    found = {}
    for pages in (sized(lab, n) for n in SIZES):
        m, c = filled(lab, pages, pages)
        try:
            took, cpus, rest = [], [], []
            for i in range(lab.rounds):
                if i:
                    c.fill(0, pages)
                before = settled_cpu(m)
                c.timed("clear", [{"namespace": "other"}] * 50)  # awake, as in the other rows
                once, cpu = c.timed("clear", [{}])
                took += once
                cpus.append(cpu)
                rest.append(settled_cpu(m) - before - cpu)
                if c.post("exists", keys=[key(0)])["exists"] != [False]:
                    raise RuntimeError("a key is there after clear")
            note = f", then {min(rest) / 1000:.0f} ms in portions"
            found[pages] = took, min(cpus), note
        finally:
            m.remove()
    yield from no_growth("clear", 39, found)


def settled_cpu(m):
    """CPU time of the manager when nothing is going on any more."""
    last = cpu_us(m.process.pid)
    for _ in range(100):
        time.sleep(0.2)
        now = cpu_us(m.process.pid)
        if now - last < 2000:
            break
        last = now
    return last


# ---- memory and restart ----------------------------------------------------------------------------

def memory(lab):
    pages = sized(lab, 1000000)
    m = lab.manager("pages", "--durability", "full")
    try:
        empty = settled(m)
        c = Client(m)
        c.post("initialize", num_pages=pages)
        c.fill(0, pages, "-k")
        steady, peak = settled(m), rss(m.process.pid)["VmHWM"]
    finally:
        m.remove()
    yield line(f"memory at {pages:,} pages, keys of 66 bytes", "<= 200 MB in all",
               f"{steady / 1e6:.0f} MB ({peak / 1e6:.0f} at most), {(steady - empty) / pages:.0f} B a page",
               f"empty manager {empty / 1e6:.0f} MB", steady <= 200e6)


def restart(lab):
    """From the start of the new process to the first answer: the key written last is there."""
    pages = sized(lab, 1000000)
    m, c = filled(lab, pages, pages)
    try:
        took = []
        for _ in range(lab.rounds):
            m.end(signal.SIGKILL)
            begin = time.monotonic()
            m.start()
            while Client(m).post("exists", keys=[key(pages - 1)])["exists"] != [True]:
                time.sleep(0.005)
            took.append(time.monotonic() - begin)
    finally:
        m.remove()
    yield line(f"first answer after kill -9, {pages:,} pages", "<= 1.8 s, a client's retries",
               f"{min(took):.2f} s at best of {len(took)}, {max(took):.2f} at worst", "upstream: nothing is left",
               min(took) <= 1.8)


ROWS = {
    "pages-get-1": lambda lab: read(lab, "get", 1, 40000),
    "pages-get-512": lambda lab: read(lab, "get", BATCH, 10000),
    "pages-exists-1": lambda lab: read(lab, "exists", 1, 40000),
    "pages-exists-512": lambda lab: read(lab, "exists", BATCH, 10000),
    "pages-reserve-confirm-512": reserve_confirm,
    "pages-writer-1": lambda lab: one_writer(lab, 1),
    "pages-writer-128": lambda lab: one_writer(lab, 128),
    "pages-mixed": mixed,
    "pages-delete-64": delete,
    "pages-release-64": release,
    "pages-clear": clear,
    "pages-memory": memory,
    "pages-restart": restart,
}
