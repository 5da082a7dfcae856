"""Runs real managers for tests: a temporary directory, processes that never outlive the test, and HTTP calls.

    with Scratch() as dir:
        m = Manager(dir, kvblockd, "--grace-ms", "300")
        m.start()
        status, answer = m.call("GET", "/v1/stats")

A test that fails raises Failed (or any other exception); the end of the manager's log is then printed. Nothing
here sleeps for a fixed time: until() polls a condition up to a deadline.
"""

import contextlib
import ctypes
import http.client
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)

# Small enough that a test meets its limits within seconds.
SHORT = (
    "--storage-unit", "1M", "--storage-file-size", "16M", "--owner-lease-ms", "2000", "--grace-ms", "200",
    "--session-default-ms", "2000", "--session-max-ms", "4000", "--lease-default-ms", "200", "--lease-max-ms", "1000",
)


class Failed(Exception):
    """A check that did not hold."""


def check(condition, *words):
    if not condition:
        raise Failed(" ".join(str(w) for w in words))


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def pause(seconds):
    """Between two looks at a condition, and for random moments; never to hope that something is done."""
    select.select([], [], [], seconds)


def until(seconds, condition, *words):
    """Polls; returns what the condition returned when it held."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < end, f"not within {seconds} s:", *words)
        pause(0.02)


@contextlib.contextmanager
def scratch():
    """A directory of the test's own, removed whatever happens; on failure the logs in it are shown first."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    path = tempfile.mkdtemp(prefix="kvb-crash-")
    try:
        yield path
    except BaseException:
        keep = os.environ.get("KVB_KEEP")
        if keep:  # for a look: the manager dies first, so that its files stay as they are
            Manager.end_all()
            shutil.copytree(path, keep, dirs_exist_ok=True)
        for name in sorted(os.listdir(path)):
            if name.endswith(".log"):
                with open(os.path.join(path, name), errors="replace") as f:
                    sys.stderr.write(f"--- {name}\n{''.join(f.readlines()[-25:])}")
        raise
    finally:
        Manager.end_all()
        shutil.rmtree(path, ignore_errors=True)


class Manager:
    """One kvblockd process at a time on a directory; a restart keeps the port."""

    running = []

    def __init__(self, directory, kvblockd, *arguments, name="manager"):
        self.directory = directory
        self.kvblockd = os.path.abspath(kvblockd)
        self.arguments = list(arguments)
        self.name = name
        self.root = os.path.join(directory, "kvblock-data")
        self.port = 0
        self.process = None

    def launch(self):
        """Starts the process; does not wait for anything."""
        port_file = os.path.join(self.directory, self.name + ".port")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(port_file)
        with open(os.path.join(self.directory, self.name + ".log"), "ab") as log:
            self.process = subprocess.Popen(
                [self.kvblockd, *SHORT, "--http-port", str(self.port), "--port-file", port_file, *self.arguments],
                cwd=self.directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent)
        Manager.running.append(self)

    def start(self):
        """Starts the process and waits until it is ready."""
        self.launch()
        self.wait_ready()

    def read_port(self):
        check(self.process.poll() is None, f"{self.name} ended with status {self.process.returncode}")
        try:
            with open(os.path.join(self.directory, self.name + ".port")) as f:
                self.port = int(f.read() or 0)
        except FileNotFoundError:
            return False
        return self.port != 0

    def is_ready(self):
        try:
            return self.read_port() and self.call("GET", "/readyz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def wait_ready(self, seconds=30):
        until(seconds, self.is_ready, f"{self.name} ready")

    def kill(self):
        """SIGKILL, and reaped: nothing of it runs when this returns."""
        self.process.send_signal(signal.SIGKILL)
        status = self.process.wait()
        Manager.running.remove(self)
        check(status == -signal.SIGKILL, f"{self.name} had ended by itself, status {status}")

    def stop(self):
        """SIGTERM; it must drain and end with 0."""
        self.process.terminate()
        status = self.process.wait(timeout=60)
        Manager.running.remove(self)
        check(status == 0, f"{self.name} ended with status {status} after SIGTERM")

    def ended(self):
        return self.process.poll() is not None

    def reap(self):
        """The status of one that ended by itself."""
        Manager.running.remove(self)
        return self.process.wait()

    def last_words(self):
        with open(os.path.join(self.directory, self.name + ".log"), errors="replace") as f:
            return "".join(f.readlines()[-1:])

    def fsck(self):
        """The store, and the slab files, of a manager that does not run."""
        r = subprocess.run([self.kvblockd, "fsck", "--files"], cwd=self.directory, capture_output=True, text=True)
        check(r.returncode == 0, f"fsck: status {r.returncode}:", r.stdout, r.stderr)
        return r.stdout

    def call(self, method, path, body=None, timeout=30):
        """Status and decoded answer. A body that is no text or bytes is sent as JSON."""
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            c.request(method, path, body)
            r = c.getresponse()
            text = r.read()
        finally:
            c.close()
        with contextlib.suppress(ValueError):
            return r.status, json.loads(text) if text else None
        return r.status, text.decode(errors="replace")

    def must(self, method, path, body=None):
        """The answer of a call that has to succeed."""
        status, answer = self.call(method, path, body)
        check(200 <= status < 300, method, path, "gave", status, answer)
        return answer

    def freeze(self):
        """SIGSTOP; returns when every thread of it stands still."""
        self.process.send_signal(signal.SIGSTOP)
        until(10, lambda: self.state() == "T", f"{self.name} stopped")

    def state(self):
        with open(f"/proc/{self.process.pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0]

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def stats(self):
        return self.must("GET", "/v1/stats")

    def storage(self, name="default"):
        return self.must("GET", f"/v1/storages/{name}")

    @classmethod
    def end_all(cls):
        for m in cls.running:
            m.process.kill()
            m.process.wait()
        cls.running.clear()


def settled(m, slot_bytes):
    """True when nothing is open or waiting any more, and what is in use is what the blocks take: {instance: bytes}."""
    s = m.stats()
    used = sum(i["blocks"] * slot_bytes[i["id"]] for i in s["instances"])
    return (s["sessions"] == 0 and all(st["quarantined_bytes"] == 0 for st in s["storages"])
            and sum(st["used_bytes"] for st in s["storages"]) == used)
