"""fleet.py - managers of one store, of which one owns it, and libslabkv's clients (load.c) that know them all."""

import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "hf3fs"), str(HERE.parent / "kvcm")]

import redis  # noqa: E402
from manager import Manager, until  # noqa: E402
from server import die_with_parent  # noqa: E402

THREADS, LEASE_MS = 4, 1000


class Member(Manager):
    """One of several on a store: it may be a standby, so nobody waits until it is ready."""

    def __init__(self, program, store, data, lease_ms=LEASE_MS, **more):
        super().__init__(program, store=store, owner_lease_ms=lease_ms, storage_root=data, storage_capacity="256M",
                         storage_file_size="256M", pages="false", http_port=redis.free_ports(1)[0], **more)

    def await_that(self, condition, what):
        return None if what == "/readyz" else super().await_that(condition, what)

    def count(self, name):
        return sum(v for k, v in self.metrics().items() if k.split("{")[0] == f"slabkv_{name}")

    def warm(self):
        """It follows every partition. (When groups or instances are made, it loads anew, half a second later.)"""
        return all(p["loaded"] for p in json.loads(self.native("GET", "/v1/cluster"))["partitions"])


class Load:
    def __init__(self, program, members, groups=0):
        self.process = subprocess.Popen([program, ",".join(m.url for m in members), str(THREADS), str(groups)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
        assert self.process.stdout.readline() == "begun\n"

    def end(self):
        self.process.stdin.close()
        line = self.process.stdout.read()
        self.process.wait()
        return {k: int(v) for k, v in re.findall(r"([a-z]+) (\d+)", line)}


def owner(members):
    return until(lambda: next((m for m in members if m.alive() and m.ready()), None), 30, "an owner")
