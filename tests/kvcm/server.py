"""server.py - real servers for the KVCM tests: slabkvd, and kv_cache_manager_bin as a test rig starts it.

Each has a temporary directory of its own, free ports, and goes away with its `with` block, whatever
happened; if the test is killed, the kernel kills the server. `kill` is kill -9, `start` starts it again on
the same directory. When it ends in the orderly way, its log must not hold errors that the test did not
announce with `expect_log`.
"""

import ctypes
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

SLOW = 5 if os.environ.get("SKV_SLOW") else 1  # set for builds with sanitizers
READY_S = 20
PR_SET_PDEATHSIG = 1


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def patience():
    """By how much deadlines are longer here: a machine with too much to do is slow too."""
    return SLOW * (5 if os.getloadavg()[0] > 2 * os.cpu_count() else 1)


def until(condition, seconds=10, what="the condition"):
    """Polls until it is true, and returns what it gave; fails when the time is over."""
    begin = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() - begin > seconds * patience():
            raise AssertionError(f"{what}: not within {seconds * patience()} s")
        time.sleep(0.02)


CLAIMS = []  # of ports, until the process ends


def await_stopped(pid):
    """Until SIGSTOP has reached every thread of it: where there is much to do, they go on for a while."""
    def stopped():
        try:
            return all((t / "stat").read_text().rsplit(")", 1)[1].split()[0] == "T" for t in tasks.iterdir())
        except OSError:  # a thread that has just ended
            return False

    tasks = pathlib.Path(f"/proc/{pid}/task")
    until(stopped, 20, "a process that stands still")


def free_ports(n):
    """Free ports, which no other test gets while this process lives, and the kernel gives to no client: who was killed finds its own again."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        end = int(f.read().split()[0])
    ports = []
    while len(ports) < n:
        port = random.randrange(end // 2, end)
        claim = socket.socket(socket.AF_UNIX)
        with socket.socket() as s:
            try:
                claim.bind(f"\0skv-test-port-{port}")
                s.bind(("127.0.0.1", port))
            except OSError:
                claim.close()
                continue
        CLAIMS.append(claim)
        ports.append(port)
    return ports


def environment():
    keep = {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS") or k == "SLABKV_PARTITIONS"}
    return {"PATH": "/usr/bin:/bin", **keep}


class Process:
    """One program in a directory; what Slabkvd and Peer have in common."""

    def __init__(self, program, folder=None):
        self.program = os.path.abspath(program)
        self.own = None
        if folder is None:
            self.own = tempfile.TemporaryDirectory(prefix="skv-kvcm-")
            folder = self.own.name
        self.dir = folder
        self.process = None
        self.expected = []

    def spawn(self, arguments):
        self.log = open(self.path("log"), "ab")
        self.process = subprocess.Popen([self.program, *arguments], cwd=self.dir, stdout=self.log, stderr=self.log,
                                        stdin=subprocess.DEVNULL, env=environment(), preexec_fn=die_with_parent)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def text(self, name):
        try:
            with open(self.path(name), encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def await_that(self, condition, what):
        def probe():
            if not self.alive():
                raise SystemExit(f"{self.program} ended:\n{self.text('log')[-4000:]}")
            return condition()
        try:
            return until(probe, READY_S, what)
        except AssertionError as e:
            raise SystemExit(f"{e}\n{self.text('log')[-4000:]}") from e

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_):
        if self.alive() and kind is None:
            try:
                self.end()
            finally:
                self.kill()
                self.clean()
            return
        self.kill()
        if kind and kind is not KeyboardInterrupt:
            sys.stderr.write(f"--- log of {os.path.basename(self.program)}\n{self.text('log')[-6000:]}")
        self.clean()

    def clean(self):
        if self.own:
            self.own.cleanup()

    def kill(self):
        if self.alive():
            self.process.kill()
        if self.process:
            self.process.wait()
            self.log.close()

    def send(self, number):
        """A signal; when SIGSTOP returns, it stands still."""
        self.process.send_signal(number)
        if number == signal.SIGSTOP:
            await_stopped(self.process.pid)

    def expect_log(self, pattern):
        """An error in the log that matches is part of the test."""
        self.expected.append(re.compile(pattern))

    def report(self):
        """What a sanitizer has reported, or the end of the log."""
        found = re.search(r"(WARNING: ThreadSanitizer|ERROR: \w+Sanitizer|runtime error:).*", self.text("log"), re.S)
        return found.group()[:8000] if found else self.text("log")[-4000:]

    def end(self):
        """SIGTERM ends it with status 0, and it has logged no error that was not announced."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.show_threads()
            raise
        assert status == 0, (status, self.report())
        errors = [line for line in self.text("log").split("\n") if re.match(r"\S+ error ", line)]
        strange = [line for line in errors if not any(p.search(line) for p in self.expected)]
        assert not strange, strange
        without = [line for line in self.text("log").split("\n") if re.match(r"\S+ \w+ +(core|storage): (?!.* partition=\d)", line)]
        assert not without, ("no partition", without)

    def show_threads(self):
        """Where it hangs, if there is a debugger."""
        if shutil.which("gdb"):
            subprocess.run(["gdb", "-batch", "-p", str(self.process.pid), "-ex", "thread apply all bt 14"], stdout=sys.stderr, timeout=60,
                           stdin=subprocess.DEVNULL, check=False)

    def ready(self):
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False


class Slabkvd(Process):
    """slabkvd with KVCM on its one HTTP port and its one gRPC port."""

    DEFAULTS = {
        "http-port": "0", "port-file": "port", "grpc-port": "0",
        "storage-capacity": "64M", "storage-unit": "1M", "storage-file-size": "16M",
        "owner-lease-ms": "30000", "grace-ms": "300", "kvcm-debug": "true", "kvcm-any-mount": "true",
        "kvcm-check-writes": "false",  # most cases finish what they have not written
    }

    def __init__(self, program, folder=None, **parameters):
        super().__init__(program, folder)
        self.parameters = {**self.DEFAULTS, **{k.replace("_", "-"): str(v) for k, v in parameters.items()}}

    def start(self):
        for name in ("port", "port.grpc"):
            if os.path.exists(self.path(name)):
                os.unlink(self.path(name))
        self.spawn([f"--{k}={v}" for k, v in self.parameters.items()])
        self.http_port = int(self.await_that(lambda: self.whole("port"), "its port file"))
        if self.parameters["grpc-port"] != "off":
            self.grpc_port = int(self.await_that(lambda: self.whole("port.grpc"), "its gRPC port file"))
        self.await_that(self.ready, "/readyz")

    def whole(self, name):
        text = self.text(name)
        return text if text.endswith("\n") else ""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def meta_url(self):
        return self.url

    @property
    def admin_url(self):
        return self.url

    @property
    def meta_address(self):
        return f"127.0.0.1:{self.grpc_port}"

    @property
    def admin_address(self):
        return self.meta_address

    def native(self, method, path, body=None, token=None):
        """A call of the native API: what this server does beside the peer's."""
        head = {"Authorization": f"Bearer {token}"} if token else {}
        ask = urllib.request.Request(self.url + path, method=method, data=body.encode() if body else None, headers=head)
        with urllib.request.urlopen(ask, timeout=20) as answer:
            return answer.read().decode()

    def metrics(self, token=None):
        lines = self.native("GET", "/metrics", token=token).split("\n")
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if line and line[0] != "#"}


# The start-up file as the peer's deployments write it, with what its built-in one says.
STARTUP = """{"storage_config": {"type": "file", "is_available": true, "global_unique_name": "nfs_01",
    "storage_spec": {"root_path": "%s/nfs/", "key_count_per_file": 8}},
 "instance_group": {"name": "default", "storage_candidates": ["nfs_01"],
    "global_quota_group_name": "default_quota_group", "max_instance_count": 100,
    "quota": {"capacity": 30000000000, "quota_config": [{"storage_type": "file", "capacity": 10000000000},
        {"storage_type": "hf3fs", "capacity": 10000000000}, {"storage_type": "pace", "capacity": 10000000000}]},
    "cache_config": {"cache_prefer_strategy": 2,
        "reclaim_strategy": {"storage_unique_name": "nfs_01", "reclaim_policy": 1, "delay_before_delete_ms": 1000,
            "trigger_strategy": {"used_percentage": 0.8}},
        "meta_indexer_config": {"max_key_count": 1000000, "mutex_shard_num": 16,
            "meta_storage_backend_config": {"storage_type": "local", "storage_uri": ""}}},
    "user_data": "", "version": 1}}
"""


class Peer(Process):
    """kv_cache_manager_bin, started with the peer's flags and keys, on ports of its own.

    settings: keys without "kvcm.", a dot written as two underscores. Without `built_in`, storage nfs_01 lies in
    the directory of the test. A node of a cluster is not waited for until it leads."""

    PORTS = ("rpc_port", "http_port", "admin_rpc_port", "admin_http_port")
    SMALL = {"slabkvd.storage_capacity": "64M", "slabkvd.storage_unit": "1M", "slabkvd.storage_file_size": "16M",
             "slabkvd.kvcm_any_mount": "true", "slabkvd.kvcm_check_writes": "false"}

    def __init__(self, program, folder=None, flags=(), built_in=False, node=False, **settings):
        super().__init__(program, folder)
        os.makedirs(self.dir, exist_ok=True)
        self.flags, self.built_in, self.node = list(flags), built_in, node
        self.keys = {**self.SMALL, "kvcm.service.enable_debug_service": "true"}
        self.ports = dict(zip(self.PORTS, free_ports(4)))
        self.keys |= {f"kvcm.service.{k}": str(v) for k, v in self.ports.items()}
        self.keys |= {"kvcm." + k.replace("__", "."): str(v) for k, v in settings.items()}

    def start(self):
        if not self.built_in and "kvcm.startup_config" not in self.keys:
            self.keys["kvcm.startup_config"] = self.path("startup.json")
            with open(self.path("startup.json"), "w", encoding="utf-8") as f:
                f.write(STARTUP % self.dir)
        self.spawn([*self.flags, *(x for k, v in self.keys.items() for x in ("-e", f"{k}={v}"))])
        self.await_that(self.answers, "an answer on its ports")

    def answers(self):
        """Its meta port answers a call; leading, if it is alone."""
        ask = urllib.request.Request(f"{self.meta_url}/api/getInstanceInfo", method="POST", data=b"{}")
        try:
            with urllib.request.urlopen(ask, timeout=5) as answer:
                return self.node or b"SERVER_NOT_LEADER" not in answer.read()
        except (urllib.error.URLError, OSError):
            return False

    @property
    def url(self):
        return self.meta_url

    @property
    def meta_url(self):
        return f"http://127.0.0.1:{self.ports['http_port']}"

    @property
    def admin_url(self):
        return f"http://127.0.0.1:{self.ports['admin_http_port']}"

    @property
    def meta_address(self):
        return f"127.0.0.1:{self.ports['rpc_port']}"

    @property
    def admin_address(self):
        return f"127.0.0.1:{self.ports['admin_rpc_port']}"


class Pair(Process):
    """Two nodes with one file lock, whose leader has a lease of two seconds."""

    def __init__(self, program):
        super().__init__(program)
        self.nodes = []

    def start(self):
        with open(self.path("startup.json"), "w", encoding="utf-8") as f:
            f.write(STARTUP % self.dir)
        for n in (0, 1):
            self.nodes.append(Peer(
                self.program, self.path(f"node-{n}"), node=True, coordination__uri=f"file://{self.path('lock')}",
                startup_config=self.path("startup.json"), leader_elector__lease_ms=2000,
                leader_elector__node_id=f"node-{n}", service__advertised_host="127.0.0.1"))
            self.nodes[n].start()

    @property
    def meta_url(self):
        return self.nodes[0].meta_url

    @property
    def admin_url(self):
        return self.nodes[0].admin_url

    @property
    def meta_address(self):
        return self.nodes[0].meta_address

    @property
    def admin_address(self):
        return self.nodes[0].admin_address

    def __exit__(self, kind, *_):
        try:
            for node in self.nodes:
                node.__exit__(kind)
        finally:
            for node in self.nodes:
                node.kill()
            self.clean()

    def text(self, name):
        return "".join(node.text(name) for node in self.nodes)
