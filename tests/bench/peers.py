"""peers.py - the same questions to others' servers, in the same run: `tests/bench/run --peers`.

Mooncake's master comes from PyPI, into a folder of its own, and is asked by Mooncake's own client; its cost is the CPU time
of the server's process, as ours is. Keys are 64 hex characters. Both answer whether each key is there, and lease it: our
call is the hf3fs API's. SKV_SGLANG_URL: SGLang's own metadata server, for the rows of pages.py that compare with it.
"""

import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.request

from lab import Missing, command
from pages import Client, cpu_us, key
from scale import line

PACKAGE = "mooncake-transfer-engine-non-cuda==0.3.13.post1"
POPULATION, BATCH = 8192, 512

# Mooncake's client, in a process with Mooncake's Python: a round for each line of "keys first miss calls".
ASK = """
import hashlib, importlib, sys
store = importlib.import_module("mooncake.store").MooncakeDistributedStore()
if store.setup("127.0.0.1", "P2PHANDSHAKE", 64 << 20, 16 << 20, "tcp", "", sys.argv[1]):
    sys.exit("setup failed")
keys = [hashlib.sha256(b"%d" % i).hexdigest() for i in range(POPULATION)]
for i in range(0, POPULATION, BATCH):
    if store.put_batch(keys[i:i + BATCH], [b"x" * 64] * BATCH):
        sys.exit("put failed")
print("ready", flush=True)
for text in sys.stdin:
    n, miss, calls = map(int, text.split())
    wrong = 0
    for i in range(calls):
        at = i * n % (POPULATION - n + 1)
        asked = [k[:-1] + "-" for k in keys[at:at + n]] if miss else keys[at:at + n]
        found = store.batch_is_exist(asked) if n > 1 else [store.is_exist(asked[0])]
        wrong += sum(f != (not miss) for f in found)
    print(wrong, flush=True)
""".replace("POPULATION", str(POPULATION)).replace("BATCH", str(BATCH))


def installed(lab):
    """A Python with Mooncake's client, and its master."""
    folder = os.path.join(lab.build, "peers")
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(os.path.join(folder, "bin", "mooncake_master")):
        shutil.rmtree(folder, ignore_errors=True)
        made = command([sys.executable, "-m", "venv", folder])
        if made.returncode == 0:
            made = command([python, "-m", "pip", "install", "-q", "--no-deps", PACKAGE], timeout=300)
        if made.returncode != 0:
            raise Missing(f"{PACKAGE} could not be installed: {made.stderr.strip().splitlines()[-1:]}")
    if command([python, "-c", "import mooncake.store"], timeout=60).returncode != 0:
        raise Missing(f"{PACKAGE} is installed, but does not load here")
    return python, os.path.join(folder, "bin", "mooncake_master")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Mooncake:
    def __init__(self, lab, folder):
        python, master = installed(lab)
        port, metrics = free_port(), free_port()
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "log"), "wb") as log:
            self.master = subprocess.Popen([master, f"--rpc_port={port}", f"--metrics_port={metrics}"], cwd=folder,
                                           stdout=log, stderr=log)
            self.wait(f"http://127.0.0.1:{metrics}/health")
            self.client = subprocess.Popen([python, "-c", ASK, f"127.0.0.1:{port}"], cwd=folder, text=True,
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        if self.answer() != "ready":
            self.close()
            raise Missing("Mooncake's client could not put its keys: see its log")

    def wait(self, url):
        end = time.monotonic() + 30
        while True:
            try:
                with urllib.request.urlopen(url, timeout=2):
                    return
            except OSError as e:
                if self.master.poll() is not None or time.monotonic() > end:
                    self.master.kill()
                    raise Missing(f"Mooncake's master did not start: {e}") from e
                time.sleep(0.1)

    def answer(self):
        """Its library writes to stdout, too."""
        for text in self.client.stdout:
            word = text.strip()
            if word == "ready" or word.isdigit():
                return word
        return ""

    def cpu(self, n, miss, calls):
        before = cpu_us(self.master.pid)
        self.client.stdin.write(f"{n} {int(miss)} {calls}\n")
        self.client.stdin.flush()
        if self.answer() != "0":
            raise RuntimeError("Mooncake's master did not answer as it should")
        return (cpu_us(self.master.pid) - before) / calls

    def close(self):
        for process in (getattr(self, "client", None), self.master):
            if process:
                process.kill()
                process.wait()


def ours(c, n, miss, calls):
    before = cpu_us(c.m.process.pid)
    for i in range(calls):
        at = i * n % (POPULATION - n + 1)
        found = c.post("exists", keys=[key(k, "-" if miss else "") for k in range(at, at + n)])["exists"]
        if found != [not miss] * n:
            raise RuntimeError("a key was not found, or one too many")
    return (cpu_us(c.m.process.pid) - before) / calls


def mooncake(lab):
    if not lab.peers:
        raise Missing("--peers was not given")
    peer = Mooncake(lab, os.path.join(lab.dir, "mooncake"))
    m = lab.manager("beside-mooncake")
    try:
        c = Client(m)
        c.post("initialize", num_pages=4 * POPULATION)
        c.fill(0, POPULATION)
        for n, miss, bar in ((BATCH, False, 15), (BATCH, True, 15), (1, False, 3)):
            calls = max(20, int((50 if n > 1 else 500) * lab.seconds))
            pairs = [(ours(c, n, miss, calls), peer.cpu(n, miss, calls)) for _ in range(2 * lab.rounds + 1)]
            ratio = statistics.median(b / a for a, b in pairs)
            what = f"{n} {'misses' if miss else 'hit' if n == 1 else 'hits'} of 64 characters, one connection, CPU of the server"
            yield line(f"{what}, beside Mooncake's master", f">= {bar}x less",
                       f"{statistics.median(a for a, _ in pairs) / n:.3f} us a key = {ratio:.1f}x less",
                       f"Mooncake {statistics.median(b for _, b in pairs) / n:.3f} us a key", ratio >= bar)
    finally:
        m.remove()
        peer.close()


ROWS = {"peer-mooncake": mooncake}
