"""lab.py - what the rows of the table share: a manager of their own, the programs, the machine.

Only the Python standard library. Everything lives below one temporary directory, and every process that
is started here ends with it.
"""

import glob
import json
import os
import platform
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Missing(Exception):
    """A row cannot be measured with this build or on this machine; the text says why."""


def command(args, **kw):
    return subprocess.run(args, capture_output=True, text=True, check=False, **kw)


PRODUCT = ("allocator", "api", "backends", "client", "server", "CMakeLists.txt")


def commit():
    """The last commit that changed the product: what the scripts here are does not change a number's owner."""
    if not shutil.which("git"):
        return "unknown"
    git = ["git", "-C", SOURCE]
    last = command([*git, "log", "-1", "--format=%h", "--", *PRODUCT]).stdout.strip()
    dirty = command([*git, "diff", "--quiet", "HEAD", "--", *PRODUCT]).returncode != 0
    return (last or "unknown") + ("-dirty" if last and dirty else "")


def built(commit, folder):
    """A build of another commit, in a worktree below `folder`."""
    tree = os.path.join(folder, "tree")
    subprocess.run(["git", "-C", SOURCE, "worktree", "add", "-q", "--detach", tree, commit], check=True)
    print(f"building {commit}", flush=True)
    for args in (["cmake", "-S", tree, "-B", tree + "/build", "-G", "Ninja", "-DBUILD_TESTING=OFF"],
                 ["cmake", "--build", tree + "/build"]):
        subprocess.run(args, check=True, stdout=subprocess.DEVNULL)
    return tree + "/build"


def manager_of(build):
    """The program's name was another one before it was slabkvd."""
    found = [p for p in glob.glob(os.path.join(build, "server/main/*d")) if os.access(p, os.X_OK) and os.path.isfile(p)]
    if len(found) != 1:
        raise SystemExit(f"tests/bench: no manager below {build}")
    return found[0]


def drop(folder):
    """The worktree of built()."""
    tree = os.path.join(folder, "tree")
    if os.path.isdir(tree):
        subprocess.run(["git", "-C", SOURCE, "worktree", "remove", "--force", tree], check=False)


def machine():
    model = "unknown CPU"
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo", encoding="utf-8") as f:
        total = int(f.readline().split()[1]) / (1 << 20)
    return {"cpu": model, "cores": os.cpu_count(), "memory": f"{total:.0f} GiB",
            "kernel": platform.system() + " " + platform.release()}


def meminfo_available():
    with open("/proc/meminfo", encoding="utf-8") as f:
        return int(re.search(r"MemAvailable:\s+(\d+)", f.read()).group(1)) << 10


def rss(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        text = f.read()
    return {name: int(re.search(name + r":\s+(\d+)", text).group(1)) << 10 for name in ("VmRSS", "VmHWM")}


class Manager:
    """A slabkvd on a directory of its own, with a storage `default` of files."""

    def __init__(self, lab, name, *args, ca=None):
        self.lab, self.ca = lab, ca  # ca: it speaks TLS, with a certificate of this file
        self.context = ssl.create_default_context(cafile=ca) if ca else None
        self.dir = os.path.join(lab.dir, name)
        os.makedirs(self.dir, exist_ok=True)
        self.args = args
        self.process = None
        self.url = self.engine = self.grpc = ""
        self.start()

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def parameters(self):
        """What the manager is started with. Finishes of KVCM are not checked, since a bench moves no bytes, unless a row says
        so; an older manager does not know that parameter."""
        known = subprocess.run([self.lab.slabkvd, "--help"], capture_output=True, text=True, check=True).stdout
        return [a for a in ("--kvcm-check-writes=false", *self.args)
                if not a.startswith("--kvcm-check-writes") or "kvcm-check-writes" in known]

    def start(self):
        """Starts it; returns the seconds until /readyz says 200."""
        for name in ("port", "port.grpc"):
            if os.path.exists(self.path(name)):
                os.unlink(self.path(name))
        begin = time.monotonic()
        with open(self.path("log"), "ab") as log:
            self.process = subprocess.Popen(
                [self.lab.slabkvd, "--http-port", "0", "--port-file", "port", "--grpc-port", "0",
                 "--grace-ms", "300", *self.parameters()],
                cwd=self.dir, stdout=log, stderr=log,
                env={k: v for k, v in os.environ.items() if k != "SLABKV_TEST_ETCD"})  # no parameter of slabkvd
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() - begin > 300:
                with open(self.path("log"), encoding="utf-8", errors="replace") as f:
                    raise RuntimeError("slabkvd did not become ready:\n" + f.read()[-2000:])
            time.sleep(0.01)
        return time.monotonic() - begin

    def is_ready(self):
        try:
            with open(self.path("port"), encoding="ascii") as f:
                self.url = ("https" if self.ca else "http") + "://127.0.0.1:" + f.read().strip()
            with open(self.path("port.grpc"), encoding="ascii") as f:
                self.grpc = "127.0.0.1:" + f.read().strip()
            with urllib.request.urlopen(self.url + "/readyz", timeout=5, context=self.context) as answer:
                return answer.status == 200
        except (OSError, ValueError, urllib.error.URLError):
            return False

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=60, context=self.context) as answer:
            return answer.read().decode()

    def counters(self):
        found = {}
        for line in self.get("/metrics").split("\n"):
            m = re.match(r"slabkv_(\w+?)(?:_total)? (\d+)$", line)
            if m:
                found[m.group(1)] = int(m.group(2))
        return found

    def blocks(self):
        return json.loads(self.get("/v1/stats"))["blocks"]

    def wait_free(self):
        """Until no slot waits for a lease to end, so that the next puts take the same places again."""
        end = time.monotonic() + 60
        while any(s["used_bytes"] or s["quarantined_bytes"] for s in json.loads(self.get("/v1/stats"))["storages"]):
            if time.monotonic() > end:
                raise RuntimeError("slots did not become free")
            time.sleep(0.05)

    def bench(self, *args, kvcm=False):
        """The rows of one run of `slabkv bench`, or of KVCM's calls, with what the manager counted meanwhile. The engine
        of the client's data path is in self.engine afterwards."""
        before = self.counters()
        trust = ["-o", f"ca_file={self.ca}"] if self.ca else []
        program = [self.lab.kvcm_calls, self.grpc] if kvcm else [self.lab.slabkv, "bench"]
        run = command([*program, "--url", self.url, *trust, "--json", "--timeout", "60000",
                       "--manager-pid", str(self.process.pid), *map(str, args)], cwd=self.dir)
        if run.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, [*program, *args]))}: {run.stderr}")
        after = self.counters()
        found = json.loads(run.stdout)
        self.engine = found["engine"]
        return found["operations"], {k: after[k] - before.get(k, 0) for k in after}

    def call_bytes(self, *args, **how):
        """Bytes of a request's and an answer's body: what 2 runs of different length differ by."""
        one, many = (self.bench("--seconds", s, *args, **how) for s in (0.05, 0.5))
        calls = max(1, many[0][0]["calls"] - one[0][0]["calls"])
        return [max(1, round((many[1][k] - one[1][k]) / calls)) for k in ("http_request_bytes", "http_response_bytes")]

    def end(self, how=signal.SIGTERM):
        """Returns the seconds it took."""
        begin = time.monotonic()
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(timeout=300)
        return time.monotonic() - begin

    def remove(self):
        self.end(signal.SIGKILL)
        shutil.rmtree(self.dir, ignore_errors=True)


class Lab:
    """Folders, programs, how long to measure."""

    def __init__(self, build, folder, quick):
        self.build = os.path.abspath(build)
        self.slabkvd = self.program("server/main/slabkvd")
        self.slabkv = self.program("client/slabkv")
        self.kvcm_calls = self.program("tests/bench/bench_kvcm_calls")
        self.dir = tempfile.mkdtemp(prefix="skv-bench-", dir=os.path.abspath(folder) if folder else None)
        self.seconds = 1 if quick else 4
        self.rounds = 1 if quick else 3
        self.quick = quick
        self.peers = False  # others' servers are measured, too
        self.managers = []

    def program(self, path):
        found = os.path.join(self.build, path)
        if not os.access(found, os.X_OK):
            raise SystemExit(f"tests/bench/run: {found} is not there: build first, or name the folder with --build")
        return found

    def manager(self, name, *args, ca=None):
        m = Manager(self, name, *args, ca=ca)
        self.managers.append(m)
        return m

    def floor(self, name, *args):
        run = command([self.program("tests/bench/bench_" + name), *map(str, args)], cwd=self.dir)
        if run.returncode != 0:
            raise RuntimeError(f"{name}: {run.stderr}")
        return json.loads(run.stdout)

    def serve(self, name, *args):
        """A floor that somebody else puts load on: it ends with its stdin."""
        return subprocess.Popen([self.program("tests/bench/bench_" + name), *map(str, args)], cwd=self.dir, text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def fio(self, file, block, mode, depth, size, fresh):
        """MiB/s of fio with O_DIRECT; without fio, of direct.c."""
        if fresh and os.path.exists(file):
            os.unlink(file)
        if not os.path.exists(file):
            with open(file, "wb") as f:
                os.posix_fallocate(f.fileno(), 0, size)
        if not shutil.which("fio"):
            print("  fio is not installed: its place is taken by tests/bench/direct.c")
            kind = "write" if "write" in mode else "read"
            return self.floor("direct", file, block, depth, self.seconds, kind, size)["mib_per_s"]
        for engine in ("io_uring", "libaio", "psync"):
            run = command(["fio", "--name=floor", "--filename=" + file, f"--bs={block}", f"--rw={mode}", "--direct=1",
                           f"--ioengine={engine}", f"--iodepth={depth}", f"--size={size // block * block}",
                           "--output-format=json", "--allow_file_create=0", "--fallocate=none", "--overwrite=0",
                           "--end_fsync=1", *([] if "write" in mode else ["--time_based", f"--runtime={self.seconds}"])],
                          cwd=self.dir)
            if run.returncode == 0:
                job = json.loads(run.stdout[run.stdout.index("{"):])["jobs"][0]
                side = job["write" if "write" in mode else "read"]
                return side["io_bytes"] / (1 << 20) / max(job["job_runtime"] / 1000, 1e-9)
        raise RuntimeError("fio: " + run.stderr)

    def close(self):
        for m in self.managers:
            m.remove()
        shutil.rmtree(self.dir, ignore_errors=True)
