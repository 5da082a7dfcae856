"""etcd.py - real etcd servers for tests: one or three members on free ports of 127.0.0.1, in a directory of their own.

SLABKV_TEST_ETCD names the program; by default it is the etcd of the PATH (Debian: etcd-server). `Servers` starts members in its
`with` block and ends them after it; the kernel ends them with the test. A member is named by its number: `kill` is kill -9, `start`
starts it again with its data, `signal` stops and continues it. `save` and `restore` are etcdctl's snapshots. `Hold` is a TCP proxy
in front of all members, which holds back what one manager sends or gets.
"""

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

from server import await_stopped, die_with_parent, free_ports, until

START_S = 60  # an election on a busy machine
FAST = ("--heartbeat-interval", "50", "--election-timeout", "500")
NEEDED = "etcd, etcdctl (Debian: etcd-server, etcd-client; SLABKV_TEST_ETCD names another etcd)"


def program():
    """None if there is none."""
    return shutil.which(os.environ.get("SLABKV_TEST_ETCD", "etcd")) if shutil.which("etcdctl") else None


def post(port, path, body, timeout=2):
    """One call of the member's JSON gateway. OSError: no answer, or an error."""
    ask = urllib.request.Request(f"http://{port}/v3/{path}", data=json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(ask, timeout=timeout) as answer:
        return json.loads(answer.read() or b"{}")


def text64(text):
    return base64.b64encode(text.encode()).decode()


class Servers:
    """`n` members. `arguments` go to each. `fast`: elections within 0.5 to 1 s; else etcd's own defaults. `sync_ms`: each sync of a
    file lasts so much longer (strace). `host`: the address that members listen on and advertise."""

    def __init__(self, folder, n=3, fast=True, arguments=(), sync_ms=0, host="127.0.0.1"):
        self.folder, self.n, self.host = folder, n, host
        self.arguments = ["--snapshot-count", "1000", *(FAST if fast else ()), *arguments]
        self.wrapper = []
        if sync_ms:
            self.wrapper = ["strace", "-D", "-f", "--seccomp-bpf", "-qqq", "-o", "/dev/null", "-e", "trace=fdatasync,fsync",
                            "-e", f"inject=fdatasync,fsync:delay_exit={sync_ms * 1000}"]
        ports = free_ports(2 * n)
        self.ports, self.peers = ports[:n], ports[n:]
        self.process = [None] * n

    def __enter__(self):
        os.makedirs(self.folder, exist_ok=True)
        try:
            self.start(*range(self.n))
        except BaseException:
            self.kill(*range(self.n))
            raise
        return self

    def __exit__(self, *_):
        self.kill(*range(self.n))

    def url(self, prefix, checkpoints, tail=""):
        """Of a store. Its checkpoints are files in a directory that all managers see."""
        os.makedirs(checkpoints, exist_ok=True)
        return f"etcd://{self.endpoints()}/{prefix}?checkpoints={checkpoints}{tail}"

    def endpoints(self):
        return ",".join(self.endpoint(i) for i in range(self.n))

    def endpoint(self, i):
        return f"{self.host}:{self.ports[i]}"

    def peer(self, i):
        return f"http://{self.host}:{self.peers[i]}"

    def home(self, i):
        return os.path.join(self.folder, f"m{i}")

    def cluster(self):
        return ",".join(f"m{i}={self.peer(i)}" for i in range(self.n))

    # ---- members ---------------------------------------------------------------------------------

    def start(self, *members, wait=True):
        """With the data that it has. `wait`: until each answers with a quorum."""
        for i in members:
            at, scheme = self.endpoint(i), "http://"
            with open(os.path.join(self.folder, f"m{i}.log"), "ab") as log:
                self.process[i] = subprocess.Popen(
                    [*self.wrapper, program(), "--name", f"m{i}", "--data-dir", self.home(i), "--listen-client-urls", scheme + at,
                     "--advertise-client-urls", scheme + at, "--listen-peer-urls", self.peer(i), "--initial-advertise-peer-urls",
                     self.peer(i), "--initial-cluster", self.cluster(), "--initial-cluster-token", self.folder, *self.arguments],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent)
        for i in members if wait else ():
            until(lambda m=i: self.serves(m), START_S, f"member {i} serves: {self.folder}/m{i}.log")

    def kill(self, *members):
        for i in members:
            if self.runs(i):
                self.process[i].kill()
            if self.process[i]:
                self.process[i].wait()

    def signal(self, number, *members):
        for i in members:
            self.process[i].send_signal(number)
            if number == signal.SIGSTOP:
                await_stopped(self.process[i].pid)

    def runs(self, i):
        return self.process[i] is not None and self.process[i].poll() is None

    def serves(self, i):
        """It answers a linearizable read, so a majority has a leader."""
        try:
            return bool(post(self.endpoint(i), "kv/range", {"key": text64("/")}))
        except OSError:
            return False

    def leader(self):
        """The number of the member that leads."""
        return until(self.find_leader, START_S, "a leader")[0]

    def find_leader(self):
        for i in range(self.n):
            try:
                status = post(self.endpoint(i), "maintenance/status", {})
                if status["leader"] == status["header"]["member_id"] and self.serves(i):
                    return [i]
            except (OSError, KeyError):
                pass
        return None

    # ---- data ------------------------------------------------------------------------------------

    def ctl(self, *words, at=None):
        """etcdctl, at all members or one; what it prints."""
        done = subprocess.run(["etcdctl", "--endpoints", self.endpoint(at) if at is not None else self.endpoints(),
                               "--command-timeout", "30s", *words], env={"ETCDCTL_API": "3", "PATH": os.environ["PATH"]},
                              capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def save(self, path):
        """A snapshot, of the leader's data."""
        self.ctl("snapshot", "save", path, at=self.leader())

    def restore(self, path):
        """All members end, and start with what the snapshot has, as the manual of etcd tells it."""
        self.kill(*range(self.n))
        for i in range(self.n):
            shutil.rmtree(self.home(i))
            self.ctl("snapshot", "restore", path, "--name", f"m{i}", "--initial-cluster", self.cluster(),
                     "--initial-cluster-token", self.folder, "--initial-advertise-peer-urls", self.peer(i),
                     "--data-dir", self.home(i))
        self.start(*range(self.n))

    def fill(self, key="filler"):
        """Writes until the quota of the database is reached: then nobody can write. (Give --quota-backend-bytes.)"""
        def refused():
            try:
                post(self.endpoint(self.leader()), "kv/put", {"key": text64(key), "value": text64("x" * (512 << 10))}, 10)
                return False
            except urllib.error.HTTPError as e:
                return b"space exceeded" in e.read()
            except OSError:
                return False
        until(refused, 60, "a database that is full")

    def make_room(self, key="filler"):
        """What fill() wrote is removed, and the alarm ended: what an operator does."""
        revision = json.loads(self.ctl("del", key, "-w", "json"))["header"]["revision"]
        self.ctl("compact", "--physical", str(revision))

        def disarmed():
            """A write that came meanwhile may have raised it again, at a member that was not defragmented yet."""
            for i in range(self.n):
                self.ctl("defrag", at=i)
            self.ctl("alarm", "disarm")
            time.sleep(0.5)
            return not self.ctl("alarm", "list").strip()

        until(disarmed, 60, "etcds without an alarm")


class Hold:
    """A proxy of one manager's connections to all members; `url` is the store's by way of it. What it holds back, of what is sent
    (`requests`) or answered (`answers`), is not lost: it arrives when it is let go."""

    def __init__(self, servers):
        self.servers, self.lock = servers, threading.Condition()
        self.held = {"requests": False, "answers": False}
        self.sockets, self.passed, self.over = [], 0, False

    def __enter__(self):
        self.listening = [socket.create_server(("127.0.0.1", 0)) for _ in range(self.servers.n)]
        for i, s in enumerate(self.listening):
            threading.Thread(target=self.accept, args=(i, s), daemon=True).start()
        return self

    def __exit__(self, *_):
        with self.lock:
            self.over = True
            self.lock.notify_all()
        for s in [*self.listening, *self.sockets]:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()

    def url(self, url):
        return url.replace(self.servers.endpoints(), ",".join(f"127.0.0.1:{s.getsockname()[1]}" for s in self.listening))

    def hold(self, **which):
        """hold(requests=True), hold(answers=True); False lets go."""
        with self.lock:
            self.held |= which
            self.lock.notify_all()

    def accept(self, i, listening):
        while True:
            try:
                ours, _ = listening.accept()
            except OSError:
                return
            try:
                theirs = socket.create_connection((self.servers.host, self.servers.ports[i]), 5)
            except OSError:
                ours.close()
                continue
            theirs.settimeout(None)
            self.sockets += [ours, theirs]
            for a, b, what in ((ours, theirs, "requests"), (theirs, ours, "answers")):
                threading.Thread(target=self.copy, args=(a, b, what), daemon=True).start()

    def copy(self, source, target, what):
        try:
            while part := source.recv(1 << 16):
                with self.lock:
                    late = self.held[what]
                    self.lock.wait_for(lambda: self.over or not self.held[what])
                    self.passed += late and what == "requests"  # such requests arrived late
                target.sendall(part)
        except OSError:
            pass
        for s in (source, target):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
