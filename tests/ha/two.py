"""two.py - two managers of one store, of which a client knows the one that is not the owner."""

import json
import pathlib
import signal
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "kvcm")]

from server import Slabkvd, until  # noqa: E402

LEASE_MS = 2000
KV = json.dumps({"specs": [{"name": "kv", "size": 4096}]})
DONE = json.dumps({"success": True})
REGISTRATION = {"trace_id": "t", "instance_group": "default", "instance_id": "peer", "block_size": 4,
                "model_deployment": {"model_name": "m", "dtype": "bf16", "tp_size": 1},
                "location_spec_infos": [{"name": "tp0", "size": 4096}]}


class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


opener = urllib.request.build_opener(Stay)


def call(member, method, path, body=None, **headers):
    """Status, headers and text of the answer, whatever it is."""
    headers = {k.replace("_", "-"): v for k, v in headers.items()}
    ask = urllib.request.Request(member.url + path, method=method, data=body.encode() if body else None, headers=headers)
    try:
        with opener.open(ask, timeout=30) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.headers, e.read().decode()


def good(member, method, path, body=None, **headers):
    status, _, text = call(member, method, path, body, **headers)
    assert status in (200, 201, 204), (path, status, text)
    return json.loads(text) if text else None


class Member(Slabkvd):
    """It may be a standby, so nobody waits until it is ready."""

    def __init__(self, program, folder, **more):
        super().__init__(program, store=f"{folder}/store.db", storage_root=f"{folder}/data", owner_lease_ms=LEASE_MS, **more)
        self.expect_log("another manager has taken over|a newer manager of this store runs")

    def await_that(self, condition, what):
        return None if what == "/readyz" else super().await_that(condition, what)

    def count(self, name, **headers):
        _, _, text = call(self, "GET", "/metrics", **headers)
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.split("\n") if line.startswith(f"slabkv_{name} "))


class Two:
    """The owner, and another that clients ask."""

    def __init__(self, program, owner=None, **more):
        self.folder = tempfile.TemporaryDirectory(prefix="skv-forward-")
        self.owner = Member(program, self.folder.name, **more, **(owner or {}))
        self.asked = Member(program, self.folder.name, **more)

    def __enter__(self):
        self.owner.__enter__()
        until(self.owner.ready, 20, "the owner")
        self.asked.__enter__()
        return self

    def __exit__(self, *how):
        for m in (self.asked, self.owner):
            m.__exit__(*how)
        self.folder.cleanup()


class Clients:
    """Threads that write a block and look it up, again and again."""

    def __init__(self, member, threads=4, write=True):
        self.write, self.busy = write, 0
        self.member, self.stop, self.lock = member, threading.Event(), threading.Lock()
        self.calls, self.longest, self.errors = 0, 0, []
        self.threads = [threading.Thread(target=self.go, args=(n,)) for n in range(threads)]
        for t in self.threads:
            t.start()

    def go(self, thread):
        n = 0
        while not self.stop.is_set():
            n, begin = n + 1, time.monotonic()
            try:
                if not self.round(f"{thread}-{n}"):
                    continue
                self.stop.wait(0.03)
            except Exception as e:  # pylint: disable=broad-except
                with self.lock:
                    self.errors.append(repr(e)[:300])
            with self.lock:
                self.calls += 3 if self.write else 1
                self.longest = max(self.longest, round((time.monotonic() - begin) * 1000))

    def round(self, name):
        """False: nothing was to be written."""
        key = json.dumps({"keys": [name]})
        if self.write:
            told = good(self.member, "POST", "/v1/instances/i/start", key)
            # None: it was carried out just as the ownership went, and its second run found the key busy
            self.busy += not told["session"]
            if not told["session"]:
                return False
            good(self.member, "POST", f"/v1/sessions/{told['session']}/finish", DONE)
        found = good(self.member, "POST", "/v1/instances/i/lookup", key)
        assert found["matched"] == self.write, found
        return True

    def end(self, case):
        self.stop.set()
        for t in self.threads:
            t.join()
        print(f"{case}: {self.calls} calls, the longest round of one client took {self.longest} ms, {len(self.errors)} errors")
        assert not self.errors, self.errors[:3]
        assert self.calls > 0 and self.busy <= len(self.threads) * 4, (self.calls, self.busy)


def takes_over(two, how):
    """The owner may have been stopped inside a commit, with SQLite's lock: then it goes on, and is stopped once more."""
    two.owner.send(how)
    for _ in range(300 if how == signal.SIGSTOP else 3000):
        if two.asked.ready():
            return True
        time.sleep(0.02)
    two.owner.send(signal.SIGCONT)
    return False


def failover(program, how, kind=Clients):
    """The owner is killed or stopped: the one that is asked takes over, and calls on their way wait for that."""
    with Two(program, storage_capacity="1G", hold_ms=60000) as two:
        good(two.asked, "PUT", "/v1/instances/i", KV)
        until(lambda: two.asked.count("standby_loads_total") > 0, 20, "a standby that follows")
        clients = kind(two.asked, write=how == signal.SIGKILL)  # one that is stopped inside a commit stops the store, too
        until(lambda: clients.calls > 100, 20, "calls")
        assert any(takes_over(two, how) for _ in range(10)), "it did not take over"
        calls = clients.calls
        until(lambda: clients.calls > calls + 100, 20, "calls")
        if how == signal.SIGSTOP:
            two.owner.send(signal.SIGCONT)
        else:
            two.owner.kill()
            two.owner.start()
        # Now the one that is asked owns it; its clients need nobody else.
        calls = clients.calls
        until(lambda: clients.calls > calls + 100, 20, "calls")
        clients.end(f"{how.name} of the owner")
        assert two.asked.count("calls_forwarded_total") > 50
