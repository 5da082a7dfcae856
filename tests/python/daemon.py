"""A real slabkvd in a folder of its own, for tests in Python."""

import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

PR_SET_PDEATHSIG = 1
SLABKVD = os.environ.get("SLABKVD", "slabkvd")


def wait_for(what, seconds=20.0):
    """Polls until what() is true; its value."""
    end = time.monotonic() + seconds
    while True:
        value = what()
        if value or time.monotonic() >= end:
            return value
        time.sleep(0.01)


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Daemon:
    """`with Daemon() as d:` a manager with one storage; d.url. More flags of slabkvd as arguments."""

    def __init__(self, *flags, capacity="64M", unit="1M"):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="skv-python-"))
        self.root = self.folder / "blocks"
        self.flags = ["--grpc-port", "off", "--store", "s.db", "--storage-root", str(self.root), "--storage-capacity", capacity,
                      "--storage-unit", unit, "--owner-lease-ms", "10000", *flags]
        self.process = None
        self.port = 0
        self.log = None

    def start(self):
        port_file = self.folder / "port"
        port_file.unlink(missing_ok=True)
        self.log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen([SLABKVD, "--http-port", str(self.port), "--port-file", "port", *self.flags], cwd=self.folder,
                                        stdout=self.log, stderr=self.log, preexec_fn=die_with_parent,
                                        env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"})
        try:
            self.port = int(wait_for(lambda: port_file.exists() and port_file.read_text().strip(), 30) or 0)
            if not self.port or not wait_for(self.ready):
                raise RuntimeError((self.folder / "log").read_text()[-2000:])
        except BaseException:
            self.kill()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        return self

    def unread(self):
        """Whether bytes of requests wait in sockets of the manager, as they do while it is stopped."""
        sockets = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return any(s[1].endswith(f":{self.port:04X}") and s[3] == "01" and not s[4].endswith(":00000000") for s in sockets)

    def ready(self):
        try:
            return urllib.request.urlopen(self.url + "/readyz", timeout=5).status == 200
        except OSError:
            return False

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def signal(self, number):
        """SIGSTOP: returns when every thread stands still."""
        self.process.send_signal(number)
        if number == signal.SIGSTOP:
            tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
            wait_for(lambda: all((t / "stat").read_text().rsplit(")", 1)[1].split()[0] == "T" for t in tasks.iterdir()))

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()
        self.log.close()

    def slabs(self):
        """Its slab files."""
        return [p for p in self.root.rglob("*") if p.is_file() and p.stat().st_size >= 1 << 20]

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
