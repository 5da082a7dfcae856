"""fleet.py - managers of one store, of which one owns it, and libslabkv's clients (load.c) that know them all."""

import json
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "hf3fs"), str(HERE.parent / "kvcm")]

import redis  # noqa: E402
from manager import Manager, until  # noqa: E402
from server import die_with_parent  # noqa: E402

THREADS, LEASE_MS = 4, 1000
PARTITIONS = 16  # of those that share
SHARED = {"partitions": PARTITIONS, "storage_capacity": "512M", "storage_file_size": "4M", "storage_unit": "1M", "pages": "true"}


class Member(Manager):
    """One of several on a store: it may be a standby, so nobody waits until it is ready."""

    def __init__(self, program, store, data, lease_ms=LEASE_MS, **more):
        more = {"storage_capacity": "256M", "storage_file_size": "256M", "pages": "false", **more}
        super().__init__(program, store=store, owner_lease_ms=lease_ms, storage_root=data,
                         http_port=redis.free_ports(1)[0], **more)

    def await_that(self, condition, what):
        return None if what == "/readyz" else super().await_that(condition, what)

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

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.stdin.close()
        line = self.process.stdout.read()
        self.process.wait()
        return {k: int(v) for k, v in re.findall(r"([a-z]+) (\d+)", line)}


def owner(members):
    return until(lambda: next((m for m in members if m.alive() and m.ready()), None), 30, "an owner")


def commits(members):
    return sum(m.count("committed_blocks_total") for m in members if m.alive())


def goes_on(members, n=40):
    """So many more starts are durable, at whoever owns the store."""
    before = commits(members)
    until(lambda: commits(members) >= before + n, 60, "clients that go on")


def judge(case, ends):
    """Nothing may be lost, and no call may fail."""
    assert ends["errors"] == 0 and ends["missing"] == 0, (case, ends)


def told(case, load, errors=False):
    """What clients saw until now. `errors`: calls may fail, when it takes too long."""
    ends = load.end()
    print(f"{case:<48} {ends['puts'] + ends['gets']} calls, longest {ends['longest']} ms, {ends['errors']} told that it failed, "
          f"{ends['missing']} lost", flush=True)
    judge(case, {**ends, "errors": 0} if errors else ends)


class Fleet:
    """Managers that share the partitions."""

    def __init__(self, program, servers, data, n=3, **more):
        self.members = [Member(program, servers.url("spread"), data, **{**SHARED, **more}) for _ in range(n)]
        for m in self.members:
            m.expect_log("another manager has taken over|a newer manager of this store runs|cannot load the partition")

    def __enter__(self):
        self.members[0].__enter__()
        until(lambda: self.owned([self.members[0]]) == [PARTITIONS], 30, "an owner of all")
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
        owned = self.owned(members)
        return owned if sum(owned) == PARTITIONS and max(owned) <= -(-PARTITIONS // len(members)) else None

    def await_shared(self, members, what):
        begin = time.monotonic()
        owned = until(lambda: self.shared(members), 60, what)
        print(f"{what}: {owned} after {redis.wait_ms(begin):.0f} ms", flush=True)

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
