"""redis.py - real Redis servers for tests: a primary with replicas, or a cluster of three masters with replicas, on
ports of their own, in a directory of their own. Debian's redis-tools has the server's program under the name of another: which
of the two it is, is its argv[0]'s matter.
"""

import os
import shutil
import signal
import socket
import subprocess
import time

from server import await_stopped, die_with_parent, free_ports, until

PROGRAMS = ("/usr/bin/redis-check-rdb", "/usr/bin/redis-server", "/usr/bin/valkey-server")


def program():
    """None if there is none."""
    named = os.environ.get("SLABKV_TEST_REDIS")
    return named or next((p for p in PROGRAMS if os.access(p, os.X_OK)), None)


def ask(port, *words, timeout=2):
    """One command; the answer's text, errors with '-' before them."""
    with socket.create_connection(("127.0.0.1", port), timeout) as s:
        s.settimeout(timeout)
        parts = [str(w).encode() for w in words]
        s.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
        f = s.makefile("rb")
        head = f.readline().rstrip().decode()
        if head[:1] != "$":
            return head[1:] if head[:1] in "+:" else head
        return "" if head == "$-1" else f.read(int(head[1:])).decode()


def ask_all(port, *words, timeout=2):
    """One command whose answer is an array of bulk strings, as bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout) as s:
        s.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in (w.encode() for w in words)))
        f = s.makefile("rb")
        n = int(f.readline()[1:])
        return [f.read(int(f.readline()[1:]) + 2)[:-2] for _ in range(n)]


MASTERS = 3  # of a cluster: servers 0 to 2; those of server i are i + 3, i + 6 ...


class NoReplicas(Exception):
    """Valkey 8 moves no slots while a replica does not acknowledge that."""


def set_slot(port, *words):
    told = ask(port, "CLUSTER", "SETSLOT", *words, timeout=10)
    if "NOREPLICAS" in told:
        raise NoReplicas(told)
    assert told == "OK", told


class Servers:
    """`replicas` of one primary (2), or of each master of a cluster (1)."""

    def __init__(self, folder, replicas=None, cluster=False, arguments=(), node_timeout=500):
        self.folder, self.cluster, self.arguments = folder, cluster, list(arguments)
        if cluster:
            self.arguments += ["--cluster-enabled", "yes", "--cluster-node-timeout", str(node_timeout),
                               "--cluster-replica-validity-factor", "0"]
        replicas = (1 if cluster else 2) if replicas is None else replicas
        n = MASTERS * (1 + replicas) if cluster else 1 + replicas
        self.ports, self.bus = free_ports(n), [0] * n
        self.process = [None] * n

    def __enter__(self):
        for i in range(len(self.ports)):
            self.start(i)
        if self.cluster:
            self.join()
            return self
        self.replicate()
        return self

    def __exit__(self, *_):
        for p in self.process:
            if p and p.poll() is None:
                p.kill()
                p.wait()

    def start(self, i):
        """On other ports, if somebody has taken these meanwhile."""
        home = os.path.join(self.folder, str(i))
        os.makedirs(home, exist_ok=True)
        for _ in range(10):
            bus = []
            if self.cluster:
                self.bus[i] = free_ports(1)[0]
                bus = ["--cluster-port", str(self.bus[i])]
            self.process[i] = subprocess.Popen(
                ["redis-server", "--bind", "127.0.0.1", "--port", str(self.ports[i]), "--dir", home, "--save", "",
                 "--logfile", "log", "--repl-diskless-sync-delay", "0", *self.arguments, *bus],
                executable=program(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, preexec_fn=die_with_parent)
            until(lambda: self.answers(i) or self.process[i].poll() is not None, 20, "an answer")
            if self.process[i].poll() is None:
                return
            self.ports[i] = free_ports(1)[0]
        raise AssertionError(f"server {i} does not start: {home}/log")

    def replicate(self):
        """Not a cluster: all follow server 0."""
        for i in range(1, len(self.ports)):
            until(lambda p=self.ports[i]: ask(p, "REPLICAOF", "127.0.0.1", self.ports[0]) == "OK", 20, "it has loaded its file")
        n = len(self.ports) - 1
        until(lambda: ask(self.ports[0], "INFO", "replication").count("state=online") == n, 20, "its replicas")

    def power_loss(self, came_back):
        """All processes end; what they had on disk is in `came_back` (a copy of their folders), or gone (None)."""
        for i in range(len(self.ports)):
            self.signal(i, signal.SIGKILL)
        shutil.rmtree(self.folder)
        if came_back:
            shutil.copytree(came_back, self.folder)
        for i in range(len(self.ports)):
            self.start(i)
        self.replicate()

    def answers(self, i):
        """It, and not who has taken its port."""
        try:
            return f"process_id:{self.process[i].pid}\r" in ask(self.ports[i], "INFO", "server")
        except OSError:
            return False

    def join(self):
        n = len(self.ports)
        for i in range(MASTERS):
            last = 16383 if i == MASTERS - 1 else i * 5461 + 5460
            assert ask(self.ports[i], "CLUSTER", "ADDSLOTSRANGE", i * 5461, last) == "OK"
        for port, bus in zip(self.ports[1:], self.bus[1:]):
            assert ask(self.ports[0], "CLUSTER", "MEET", "127.0.0.1", port, bus) == "OK"
        for port in self.ports:
            until(lambda p=port: f"cluster_known_nodes:{n}" in ask(p, "CLUSTER", "INFO"), 20, "all nodes")
        for i in range(MASTERS, n):
            of = ask(self.ports[i % MASTERS], "CLUSTER", "MYID")
            until(lambda p=self.ports[i], o=of: ask(p, "CLUSTER", "REPLICATE", o) == "OK", 20, "a replica")
        for i in range(MASTERS):
            until(lambda p=self.ports[i]: ask(p, "INFO", "replication").count("state=online") == n // MASTERS - 1, 20,
                  "its replicas")
        for port in self.ports:
            until(lambda p=port: "cluster_state:ok" in ask(p, "CLUSTER", "INFO"), 20, "the cluster")

    def url(self, prefix, tail=""):
        return "redis://" + ",".join(f"127.0.0.1:{p}" for p in self.ports) + f"/{prefix}{tail}"

    def primary(self, key):
        """The number of the server that has it."""
        for i, p in enumerate(self.process):
            if p and p.poll() is None and "role:master" in ask(self.ports[i], "INFO", "replication") and \
                    ask(self.ports[i], "EXISTS", key)[:1] != "-":
                return i
        raise AssertionError(f"nobody has {key}")

    def move(self, key, to):
        """The slot of `key` goes to master `to`, key by key, as redis-cli --cluster reshard does it."""
        slot, source = ask(self.ports[0], "CLUSTER", "KEYSLOT", key), self.primary(key)
        if source == to:
            return
        ids = {i: ask(self.ports[i], "CLUSTER", "MYID") for i in (source, to)}
        set_slot(self.ports[to], slot, "IMPORTING", ids[source])
        set_slot(self.ports[source], slot, "MIGRATING", ids[to])
        while keys := ask_all(self.ports[source], "CLUSTER", "GETKEYSINSLOT", slot, "100"):
            for k in keys:
                told = ask(self.ports[source], "MIGRATE", "127.0.0.1", self.ports[to], k.decode(), 0, 10000, timeout=20)
                assert told in ("OK", "NOKEY"), told
        for i in (to, source):
            set_slot(self.ports[i], slot, "NODE", ids[to])
        until(lambda: self.primary(key) == to, 20, "the slot at its new place")

    def is_primary(self, i):
        try:
            return "role:master" in ask(self.ports[i], "INFO", "replication")
        except OSError:
            return False

    def lists(self, node):
        """How many masters that answer list it."""
        n = 0
        for i, p in enumerate(self.process):
            try:
                n += i < MASTERS and p.poll() is None and node in ask(self.ports[i], "CLUSTER", "NODES")
            except OSError:
                pass
        return n

    def recorded(self, prefix, node):
        """The number of its record, that writing goes on without it: some master has it. None: there is none."""
        for port, process in zip(self.ports, self.process):
            try:
                for k in range(16) if process.poll() is None else ():
                    if ask(port, "HEXISTS", f"{{{prefix}.silent.{k}}}:nodes", node) == "1":
                        return str(k)
            except OSError:
                pass
        return None

    def signal(self, i, number):
        self.process[i].send_signal(number)
        if number == signal.SIGSTOP:
            await_stopped(self.process[i].pid)
        if number in (signal.SIGKILL, signal.SIGTERM):
            self.process[i].wait()


def wait_ms(begin):
    return (time.monotonic() - begin) * 1000
