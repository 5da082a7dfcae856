"""replicated.py - a store on three real etcd servers ($SLABKV_TEST_ETCD), all on this machine: what its writers do beside SQLite's,
how long nobody answers when a standby that followed takes over, and what calls cost where managers share partitions.
"""

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

from capacity import line, median, starts
from lab import SOURCE, Manager, Missing
from pages import cpu_us

sys.path[:0] = [os.path.join(SOURCE, "tests", name) for name in ("ha", "kvcm")]

import etcd  # noqa: E402 of tests/ha
from server import until  # noqa: E402

LOOKUP = json.dumps({"keys_int": [1], "mode": "batch"})


def engine(lab):
    if not etcd.program():
        raise Missing(f"this machine has no {etcd.NEEDED}")
    return etcd.Servers(tempfile.mkdtemp(prefix="etcd-", dir=lab.dir), 3)


def engine_name():
    return "three etcd " + subprocess.run([etcd.program(), "--version"], capture_output=True, text=True, check=True).stdout.split()[2]


def url(lab, servers):
    return servers.url("bench", tempfile.mkdtemp(prefix="checkpoints-", dir=lab.dir))


def writers(lab):
    """8 writers, in turns on etcd and on SQLite."""
    rates, p99s = {}, {}
    with engine(lab) as servers:
        name = engine_name()
        managers = {"etcd": lab.manager("etcd-writers", "--store", url(lab, servers)),
                    "sqlite": lab.manager("sqlite-writers")}
        try:
            for _ in range(lab.rounds):
                for which, m in managers.items():
                    op, _ = starts(lab, m, "--population", 1)
                    rates.setdefault(which, []).append(op["keys_per_s"])
                    p99s.setdefault(which, []).append(op["start"]["p99_us"] / 1000)
        finally:
            for m in managers.values():
                m.remove()
    rate, base = median(rates["etcd"]), median(rates["sqlite"])
    yield line(f"8 writers over {name}: start and finish", ">= 300,000 blocks/s",
               f"{rate:,.0f} blocks/s; p99 of start {median(p99s['etcd']):.1f} ms",
               f"SQLite, durability full: {base:,.0f} blocks/s; p99 {median(p99s['sqlite']):.1f} ms", rate >= 300000)


class Member(Manager):
    """One of two on a store: it may be a standby, so nobody waits until it is ready."""

    def is_ready(self):
        try:
            with open(self.path("port"), encoding="ascii") as f:
                self.url = f"http://127.0.0.1:{int(f.read())}"
            return True
        except (OSError, ValueError):
            return False

    def ask(self, method, path, body=None):
        c = http.client.HTTPConnection(self.url[7:], timeout=60)
        c.request(method, path, body)
        answer = c.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")

    def owns(self):
        return self.ask("GET", "/readyz")[0] == 200

    def follows(self):
        return all(p["loaded"] and p["behind"] == 0 for p in self.ask("GET", "/v1/cluster")[1]["partitions"])


class Prober:
    """Asks one manager for a block again and again, and remembers when it was answered first and last."""

    def __init__(self, member):
        self.member, self.first, self.last, self.stop = member, None, None, False
        self.thread = threading.Thread(target=self.go)
        self.thread.start()

    def go(self):
        c = http.client.HTTPConnection(self.member.url[7:], timeout=10)
        while not self.stop:
            try:
                c.request("POST", "/v1/instances/probe/lookup", LOOKUP, {"Slabkv-Route": "direct"})
                answer = c.getresponse()
                if json.loads(answer.read()).get("matched") == 1 and answer.status == 200:
                    self.last = time.monotonic()
                    self.first = self.first or self.last
                    time.sleep(0.001)
            except (OSError, http.client.HTTPException):
                c.close()
                time.sleep(0.001)

    def end(self):
        self.stop = True
        self.thread.join()


def fill(lab, m, blocks):
    """Blocks of `slabkv bench`, and the one that is asked for."""
    for method, path, body in (("PUT", "/v1/instances/probe", {"specs": [{"name": "kv", "size": 4096}]}),
                               ("POST", "/v1/instances/probe/start", {"keys_int": [1]})):
        status, told = m.ask(method, path, json.dumps(body))
        assert status in (200, 201), told
    assert m.ask("POST", f"/v1/sessions/{told['session']}/finish", json.dumps({"success": True}))[0] == 200
    while m.blocks() < blocks:
        m.bench("--ops", "start", "--keys", 512, "--clients", 8, "--seconds", 600, "--max-blocks", blocks - m.blocks(), "--keep",
                "--population", 1)


def gap_ms(owner, standby, go):
    """From the last answer of the one to the first of the other, when `go` ends the ownership."""
    until(standby.follows, 300, "a standby that follows")
    old, new = Prober(owner), Prober(standby)
    until(lambda: old.first, 30, "answers of the owner")
    time.sleep(0.3)
    assert new.first is None
    go()
    until(lambda: new.first, 60, "answers of the standby")
    for p in (old, new):
        p.end()
    return (new.first - old.last) * 1000


def restart_ms(a, b):
    """Both are killed, and one is started with nothing in memory, until it owns the store."""
    for m in (a, b):
        m.end(signal.SIGKILL)
    begin = time.monotonic()
    a.start()
    until(a.owns, 120, "an owner again")
    return (time.monotonic() - begin) * 1000


def takeover(lab):
    """Killed, and drained, with all that it has in memory at a standby of the same host; both killed."""
    blocks = 1 << 20 if lab.quick else 10 << 20
    gaps = {"kill -9": [], "drain": []}
    with engine(lab) as servers:
        name = engine_name()
        args = ["--store", url(lab, servers), "--storage-root", os.path.join(lab.dir, "takeover-data"), "--partitions", "1",
                "--storage-capacity", "1G"]
        a, b = (Member(lab, f"takeover-{n}", *args) for n in "ab")
        lab.managers += [a, b]
        try:
            until(lambda: a.owns() or b.owns(), 60, "an owner")
            fill(lab, a if a.owns() else b, blocks)
            for _ in range(lab.rounds):
                owner, standby = (a, b) if a.owns() else (b, a)
                gaps["kill -9"].append(gap_ms(owner, standby, lambda m=owner: m.end(signal.SIGKILL)))
                owner.start()
                gaps["drain"].append(gap_ms(standby, owner, lambda m=standby: m.ask("PUT", "/v1/cluster", '{"draining":true}')))
                standby.ask("PUT", "/v1/cluster", '{"draining":false}')
                until(lambda: a.owns() or b.owns(), 60, "an owner")
            restarted = restart_ms(a, b)
        finally:
            for m in (a, b):
                m.remove()
    bar = 500 if lab.quick else 1000
    for how, ms in gaps.items():
        yield line(f"nobody answers, {how} of the owner of {blocks:,} blocks, {name}, a standby of the same host", f"< {bar} ms",
                   ", ".join(f"{v:.0f}" for v in ms) + " ms", "0", max(ms) < bar)
    yield line(f"restart after kill -9 of all managers, {blocks:,} blocks, {name}", "< 5000 ms", f"{restarted:.0f} ms", "0",
               restarted < 5000)


MANAGERS, PARTITIONS, CLIENTS = 3, 16, 8
SHARED = (("lookup of 1 key", ("lookup", 1), 1.3), ("start and finish of 1 block", ("start", 1), 2.5),
          ("start and finish of 512 blocks", ("start", 512), 2.5))


def is_shared(members):
    """Each has its part of the partitions."""
    own = [sum(p["state"] == "ready" for p in m.ask("GET", "/v1/cluster")[1]["partitions"]) for m in members]
    return sum(own) == PARTITIONS and max(own) <= -(-PARTITIONS // len(members))


def cpu_each(lab, members, op, keys):
    """us of the managers' CPU for each key, by CLIENTS clients, each of which has a group and knows all managers."""
    command = [lab.slabkv, "--url", ",".join(m.url for m in members), "--json", "--timeout", "60000", "bench", "--ops", op, "--keys",
               str(keys), "--clients", "1", "--population", "4096", "--max-blocks", "100000000", "--seconds"]

    def cost(seconds):
        before = [cpu_us(m.process.pid) for m in members]
        clients = [subprocess.Popen([*command, str(seconds)], stdout=subprocess.PIPE, text=True) for _ in range(CLIENTS)]
        told = [json.loads(c.communicate()[0])["operations"][0] for c in clients]
        assert all(t["success"] == 1 for t in told), told
        return sum(cpu_us(m.process.pid) for m in members) - sum(before), sum(t["calls"] for t in told) * keys

    short, long = cost(lab.seconds / 8), cost(lab.seconds)  # what both do besides, to begin and to end, is not counted
    return (long[0] - short[0]) / (long[1] - short[1])


def shared(lab):
    """By the managers that share partitions, and by one that has a single one, in turns."""
    with engine(lab) as servers:
        name, store = engine_name(), url(lab, servers)
        three = [Member(lab, f"shared-{n}", "--store", store, "--storage-root", os.path.join(lab.dir, "shared-data"), "--partitions",
                        str(PARTITIONS), "--storage-capacity", "1G") for n in range(MANAGERS)]
        lab.managers += three
        one = [lab.manager("alone", "--store", servers.url("alone", tempfile.mkdtemp(prefix="checkpoints-", dir=lab.dir)), "--partitions", "1")]
        try:
            until(lambda: is_shared(three), 120, "partitions that are shared")
            found = {what: [(cpu_each(lab, one, *call), cpu_each(lab, three, *call)) for _ in range(lab.rounds)]
                     for what, call, _ in SHARED}
        finally:
            for m in (*three, *one):
                m.remove()
    for what, _, bar in SHARED:
        alone, many = (median([pair[i] for pair in found[what]]) for i in range(2))
        yield line(f"{what}, {CLIENTS} clients, {MANAGERS} managers x {PARTITIONS} partitions over {name}", f"<= {bar:g}x one of one, CPU",
                   f"{many:.1f} us CPU a block = {many / alone:.1f}x", f"one manager, one partition: {alone:.1f} us", many <= bar * alone)


ROWS = {"etcd-writers": writers, "takeover": takeover, "shared": shared}
