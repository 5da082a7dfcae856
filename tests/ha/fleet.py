"""fleet.py - managers of one store on real etcd servers, and what watches them.

`Load`: libslabkv's clients with a ledger (load.c). `Owners`: writers that ask one manager each, and nobody else, so that two
owners at the same time are noticed. `Site`: both of them over managers of which one owns the store; its `row` judges: nothing
lost, nothing wrong, never two owners. Pauses are printed, not judged. `Fleet`: three managers that share 16 partitions.
"""

import bisect
import http.client
import json
import pathlib
import random
import re
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "hf3fs"), str(HERE.parent / "kvcm")]

import etcd  # noqa: E402
from manager import Manager, until  # noqa: E402
from server import die_with_parent, free_ports  # noqa: E402

SKIPPED = 77
THREADS, LEASE_MS, DEFAULT_LEASE_MS = 4, 1000, 5000
PARTITIONS = 16  # of those that share
SHARED = {"partitions": PARTITIONS, "storage_capacity": "512M", "storage_file_size": "4M", "storage_unit": "1M", "pages": "true"}
SPEC = json.dumps({"specs": [{"name": "kv", "size": 4096}]})
# A lease that ends, or a store that does not answer, is an error of the manager's log, and expected here.
EXPECTED = "another manager has taken over|a newer manager of this store runs|cannot load the partition|store|etcd"


def skip_without_etcd():
    """Ends the test, if there is no etcd."""
    if not etcd.program():
        print(f"skipped: this machine has no {etcd.NEEDED}")
        sys.exit(SKIPPED)


def wait_ms(begin):
    return (time.monotonic() - begin) * 1000


class Member(Manager):
    """One of several on a store: it may be a standby, so nobody waits until it is ready. `patient`: it is started again until it
    stays, as a service manager does; without etcd a manager ends."""

    def __init__(self, program, store, data, lease_ms=LEASE_MS, **more):
        self.patient, self.lease_ms = False, lease_ms
        more = {"storage_capacity": "1G", "storage_file_size": "256M", "pages": "false", **more}
        super().__init__(program, store=store, owner_lease_ms=lease_ms, storage_root=data, http_port=free_ports(1)[0], **more)
        self.expect_log(EXPECTED)

    def await_that(self, condition, what):
        return None if what == "/readyz" else super().await_that(condition, what)

    def start(self):
        end = time.monotonic() + 60
        while True:
            try:
                return super().start()
            except SystemExit:
                if not self.patient or time.monotonic() > end:
                    raise

    def start_once(self):
        """Without etcd it ends again."""
        try:
            super().start()
        except SystemExit:
            pass

    def count(self, name):
        return sum(v for k, v in self.metrics().items() if k.split("{")[0] == f"slabkv_{name}")

    def warm(self):
        """It follows every partition. (When groups or instances are made, it loads anew, half a second later.)"""
        return all(p["loaded"] for p in json.loads(self.native("GET", "/v1/cluster"))["partitions"])


class Load:
    def __init__(self, program, members, groups=0, threads=THREADS):
        self.process = subprocess.Popen([program, ",".join(m.url for m in members), str(threads), str(groups)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
        assert self.process.stdout.readline() == "begun\n"

    def end(self):
        self.process.stdin.close()
        line = self.process.stdout.read()
        self.process.wait()
        return {k: int(v) for k, v in re.findall(r"([a-z]+) (\d+)", line)}


class Owners:
    """Starts of new keys at each manager, by two threads for each, answered by an owner only (Slabkv-Route: direct), who tells its
    epoch. An acknowledged write that was sent after one of a later epoch was answered proves two owners; so does an epoch of two
    managers."""

    def __init__(self, members, token=None):
        self.stop, self.lock, self.acks, self.owner_of, self.failures = threading.Event(), threading.Lock(), [], {}, []
        self.headers = {"Slabkv-Route": "direct", "Content-Type": "application/json"}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"
        self.threads = [threading.Thread(target=self.ask, args=(m, n), daemon=True) for m in members for n in range(2)]
        for t in self.threads:
            t.start()

    def ask(self, member, thread):
        n, wire = 0, None
        while not self.stop.wait(0.02):
            n += 1
            sent = time.monotonic()
            try:
                wire = wire or http.client.HTTPConnection(urlsplit(member.url).netloc, timeout=60)
                body = json.dumps({"keys": [f"{member.url}-{thread}-{n}"], "deadline_ms": 1000})
                wire.request("POST", "/v1/instances/owned/start", body, self.headers)
                answer = wire.getresponse()
                answer.read()
                if answer.status == 200:
                    self.note(member.url, sent, int(answer.headers["Slabkv-Owner"].split()[1]))
            except (OSError, http.client.HTTPException):
                wire = wire.close() if wire else None

    def note(self, url, sent, epoch):
        with self.lock:
            self.acks.append((time.monotonic(), sent, epoch))
            if self.owner_of.setdefault(epoch, url) != url:
                self.failures.append((epoch, url, self.owner_of[epoch]))

    def end(self):
        """How many acknowledged writes prove two owners, and how many owners there were."""
        self.stop.set()
        with self.lock:
            acks = sorted(self.acks)
            answered, newest = [a for a, _, _ in acks], []
            for _, _, epoch in acks:
                newest.append(max(epoch, newest[-1] if newest else 0))
            for _, sent, epoch in acks:
                before = bisect.bisect_left(answered, sent)
                if before and newest[before - 1] > epoch:
                    self.failures.append((epoch, newest[before - 1]))
            if self.failures:
                print("two owners:", self.failures[:5])
            return len(self.failures), len(self.owner_of)


class Site:
    """`n` managers over `store`, clients that know them all, and a row for what happens to them. With `restarts` managers are killed
    (kill -9) and started at random while time passes."""

    def __init__(self, load, members, restarts=False, groups=0):
        self.load_program, self.members, self.restarts, self.groups = load, members, restarts, groups
        self.cut = None  # it has no store now: started then, it would end
        self.random = random.Random()
        for m in members:
            m.patient = restarts

    def __enter__(self):
        for m in self.members:
            m.__enter__()
        first = self.owner()
        first.native("PUT", "/v1/instances/owned", SPEC)
        self.load = Load(self.load_program, self.members, self.groups)
        self.owners = Owners(self.members, getattr(first, "TOKEN", None))
        return self

    def __exit__(self, *how):
        self.owners.stop.set()
        self.load.process.kill()
        for m in reversed(self.members):
            m.__exit__(*how)

    def owner(self, of=None):
        return owner(of or self.members)

    def pair(self):
        """The owner, who acknowledges, and the others, who follow."""
        first = self.owner()
        self.goes_on()
        others = [m for m in self.members if m is not first]
        until(lambda: all(m.alive() and m.warm() for m in others), 60, "standbys that follow")
        return first, others

    def passes(self, seconds):
        """Time passes."""
        end = time.monotonic() + seconds
        while self.restarts and time.monotonic() < end:
            time.sleep(self.random.random() / 2)
            victims = [m for m in self.members if m.alive()]
            for m in self.random.sample(victims, len(victims) if self.random.random() < 0.3 else min(1, len(victims))):
                m.kill()
                if m is not self.cut:
                    m.start_once()
        time.sleep(max(0, end - time.monotonic()))

    def started(self):
        """All run that can."""
        for m in self.members if self.restarts else ():
            if not m.alive() and m is not self.cut:
                m.start()

    def goes_on(self, n=40):
        """So many more starts are acknowledged, by whoever owns the store."""
        self.started()
        before = len(self.owners.acks)
        until(lambda: len(self.owners.acks) >= before + n, 60, "an owner that acknowledges")

    def row(self, case, times, failures=False, stale=False):
        """Ends the clients. `failures`: calls may fail, because this lasts longer than managers hold them. `stale`: reads may be."""
        evicted = self.owner().stats()["evicted_blocks"]
        assert not evicted, f"the storage is too small for {case}: {evicted} blocks were evicted"
        ends, (two, epochs) = self.load.end(), self.owners.end()
        row(case, times, ends, two, epochs)
        judge(case, {**ends, "errors": 0 if failures else ends["errors"], "stale": 0 if stale else ends["stale"]})
        assert two == 0 and epochs > 0, case


def row(case, times, ends, two=0, epochs=0):
    calls = ends["puts"] + ends["gets"] + ends["deletes"]
    print(f"{case:<52} {times:>3} x | lost {ends['missing']}, wrong {ends['wrong']}, two owners {two} | longest pause {ends['longest']} ms | "
          f"{calls} calls, {ends['errors']} failed, {ends['stale']} stale; {epochs} owners", flush=True)


def finish(case, load):
    """Ends clients without a Site."""
    ends = load.end()
    row(case, 1, ends)
    judge(case, ends)


def judge(case, ends):
    """Nothing may be lost or wrong, and no call may fail."""
    assert ends["puts"] > 0, (case, ends)
    assert ends["errors"] == ends["missing"] == ends["wrong"] == ends["stale"] == 0, (case, ends)


def owner(members):
    return until(lambda: next((m for m in members if m.alive() and m.ready()), None), 60, "an owner")


class Fleet:
    """Managers that share the partitions. `first`: the class of the first one, who owns all before the others come."""

    def __init__(self, program, servers, data, n=3, partitions=PARTITIONS, first=Member, **more):
        self.n_partitions, store = partitions, servers.url("spread", f"{data}-checkpoints")
        more = {**SHARED, "partitions": partitions, **more}
        self.members = [(Member if i else first)(program, store, data, **more) for i in range(n)]

    def __enter__(self):
        self.members[0].__enter__()
        until(lambda: self.owned([self.members[0]]) == [self.n_partitions], 30, "an owner of all")
        for m in self.members[1:]:
            m.__enter__()
        return self

    def __exit__(self, *how):
        for m in reversed(self.members):
            m.__exit__(*how)

    @staticmethod
    def partitions(member):
        """Those that it owns and answers for."""
        try:
            told = json.loads(member.native("GET", "/v1/cluster"))
        except OSError:
            return set()
        return {p["number"] for p in told["partitions"] if p["state"] == "ready"}

    def owned(self, members):
        """How many each has, if nobody has one of another's."""
        sets = [self.partitions(m) for m in members]
        return [len(s) for s in sets] if sum(map(len, sets)) == len(set().union(*sets)) else []

    def shared(self, members):
        """All are owned, and nobody has more than its share: then how many each has."""
        owned, all_of = self.owned(members), self.n_partitions
        return owned if sum(owned) == all_of and max(owned) <= -(-all_of // len(members)) else None

    def await_shared(self, members, what, out=None):
        begin = time.monotonic()
        owned = until(lambda: self.shared(members), 60, what)
        print(f"{what}: {owned} after {wait_ms(begin):.0f} ms", file=out, flush=True)

    def warm(self):
        return all(m.warm() for m in self.members)


class Command:
    """`slabkv cluster`."""

    NOBODY = "http://nobody:1"

    def __init__(self, program):
        self.program = program

    def __call__(self, member, *words, status=0):
        """A member whose beats are late, on a machine that is busy, is gone for a moment: then it is asked once more."""
        return until(lambda: self.once(member, words, status), 60, words)[0]

    def once(self, member, words, status):
        done = subprocess.run([self.program, "--url", member.url, "cluster", *map(str, words)], capture_output=True, text=True,
                              timeout=120, stdin=subprocess.DEVNULL, check=False)
        if self.NOBODY not in words and ("no member" in done.stderr or "nobody" in done.stdout):
            return None
        assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
        return (done.stdout + done.stderr,)
