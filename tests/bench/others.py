"""others.py - servers of other projects, to be asked the same in the same run: `tests/bench/run --peers`.

Each comes from PyPI into a virtual environment of its own below the build, once. Where that fails, or --peers was not
given, lab.Missing says so.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile

from lab import Missing, command

MOONCAKE = "mooncake-transfer-engine-non-cuda==0.3.13.post1"
SGLANG = "sglang==0.5.23"
SGLANG_USES = ["fastapi", "uvicorn", "orjson", "requests"]
SGLANG_SERVER = "sglang/srt/mem_cache/storage/hf3fs/mini_3fs_metadata_server.py"

# What that file takes from the rest of SGLang, which would bring torch: two names that its server only mentions.
SGLANG_REST = {
    "sglang/srt/mem_cache/hicache_storage.py":
        "import enum\n\n\nclass PoolName(str, enum.Enum):\n    KV = \"kv\"\n",
    "sglang/srt/mem_cache/storage/hf3fs/storage_hf3fs.py": "class Hf3fsMetadataInterface:\n    pass\n",
}


def environment(lab, name, packages):
    """A folder with a Python that has these packages."""
    folder = os.path.join(lab.build, "peers", name)
    python, done = os.path.join(folder, "bin", "python"), os.path.join(folder, "done")
    if not os.path.exists(done):
        shutil.rmtree(folder, ignore_errors=True)
        made = command([sys.executable, "-m", "venv", folder])
        if made.returncode == 0:
            made = command([python, "-m", "pip", "install", "-q", *packages], timeout=300)
        if made.returncode != 0:
            raise Missing(f"{' '.join(packages)} could not be installed: {made.stderr.strip().splitlines()[-1:]}")
        with open(done, "w", encoding="ascii"):
            pass
    return folder, python


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait(process, url, name):
    end = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError as e:
            if process.poll() is not None or time.monotonic() > end:
                process.kill()
                process.wait()
                raise Missing(f"{name} did not start: {e}") from e
            time.sleep(0.1)


# ---- Mooncake ----------------------------------------------------------------------------------------

# Its client, in a process with its Python: a round for each line of "hit|miss|put keys calls".
ASK = """
import hashlib, importlib, sys
population, batch = int(sys.argv[2]), int(sys.argv[3])
store = importlib.import_module("mooncake.store").MooncakeDistributedStore()
if store.setup("127.0.0.1", "P2PHANDSHAKE", 512 << 20, 16 << 20, "tcp", "", sys.argv[1]):
    sys.exit("setup failed")
name = lambda i: hashlib.sha256(b"%d" % i).hexdigest()
keys = [name(i) for i in range(population)]
value = b"x" * 64
fresh = population
for i in range(0, population, batch):
    if store.put_batch(keys[i:i + batch], [value] * batch):
        sys.exit("put failed")
print("ready", flush=True)
for text in sys.stdin:
    kind, n, calls = text.split()
    n, wrong = int(n), 0
    for i in range(int(calls)):
        at = i * n % (population - n + 1)
        if kind == "put":
            wrong += store.put_batch([name(k) for k in range(fresh, fresh + n)], [value] * n) != 0
            fresh += n
            continue
        asked = keys[at:at + n] if kind == "hit" else [k[:-1] + "-" for k in keys[at:at + n]]
        found = store.batch_is_exist(asked) if n > 1 else [store.is_exist(asked[0])]
        wrong += sum(f != (kind == "hit") for f in found)
    print(wrong, flush=True)
"""


class Mooncake:
    """Its master, and a client of one connection that has put `population` keys."""

    def __init__(self, lab, population, batch):
        if not lab.peers:
            raise Missing("--peers was not given")
        bin_, python = environment(lab, "mooncake", ["--no-deps", MOONCAKE])
        if command([python, "-c", "import mooncake.store"], timeout=60).returncode != 0:
            raise Missing(f"{MOONCAKE} is installed, but does not load here")
        folder = os.path.join(lab.dir, "mooncake")
        os.makedirs(folder, exist_ok=True)
        port, metrics = free_port(), free_port()
        self.client = None
        with open(os.path.join(folder, "log"), "wb") as log:
            self.master = subprocess.Popen(
                [os.path.join(bin_, "bin", "mooncake_master"), f"--rpc_port={port}", f"--metrics_port={metrics}"],
                cwd=folder, stdout=log, stderr=log)
            wait(self.master, f"http://127.0.0.1:{metrics}/health", "Mooncake's master")
            self.client = subprocess.Popen(
                [python, "-c", ASK, f"127.0.0.1:{port}", str(population), str(batch)], cwd=folder, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        if self.answer() != "ready":
            self.close()
            raise Missing("Mooncake's client could not put its keys: see its log")
        self.pid = self.master.pid

    def answer(self):
        """Its library writes to stdout, too."""
        for text in self.client.stdout:
            word = text.strip()
            if word == "ready" or word.isdigit():
                return word
        return ""

    def ask(self, kind, n, calls):
        self.client.stdin.write(f"{kind} {n} {calls}\n")
        self.client.stdin.flush()
        if self.answer() != "0":
            raise RuntimeError("Mooncake's master did not answer as it should")

    def close(self):
        for process in (self.client, self.master):
            if process:
                process.kill()
                process.wait()


# ---- SGLang ------------------------------------------------------------------------------------------

class Sglang:
    """Its metadata server, unmodified, with the two names that it takes from the rest of SGLang. SKV_SGLANG_URL: one that
    runs already, fresh, whose CPU time nobody sees here."""

    def __init__(self, lab):
        self.url, self.process = os.environ.get("SKV_SGLANG_URL"), None
        if self.url:
            return
        if not lab.peers:
            raise Missing("neither --peers nor SKV_SGLANG_URL was given")
        folder, python = environment(lab, "sglang", SGLANG_USES)
        if not os.path.exists(os.path.join(folder, SGLANG_SERVER)):
            self.unpack(folder, python)
        port = free_port()
        with open(os.path.join(lab.dir, "sglang-log"), "wb") as log:
            self.process = subprocess.Popen(
                [python, os.path.join(folder, SGLANG_SERVER), "--host", "127.0.0.1", "--port", str(port)],
                env={**os.environ, "PYTHONPATH": folder}, stdout=log, stderr=log)
        self.url = f"http://127.0.0.1:{port}"
        wait(self.process, self.url + "/docs", "SGLang's server")

    @staticmethod
    def unpack(folder, python):
        """Of a wheel of 40 MB that is thrown away one file."""
        got = command([python, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", folder, SGLANG],
                      timeout=300)
        wheels = [name for name in os.listdir(folder) if name.endswith(".whl")]
        if got.returncode != 0 or not wheels:
            raise Missing(f"{SGLANG} could not be had: {got.stderr.strip().splitlines()[-1:]}")
        for path, text in SGLANG_REST.items():
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            with open(os.path.join(folder, path), "w", encoding="ascii") as f:
                f.write(text)
        with zipfile.ZipFile(os.path.join(folder, wheels[0])) as wheel:
            wheel.extract(SGLANG_SERVER, folder)
        os.unlink(os.path.join(folder, wheels[0]))

    def close(self):
        if self.process:
            self.process.kill()
            self.process.wait()


def sglang(lab):
    """None: it is not to be had, and the row goes without."""
    try:
        return Sglang(lab)
    except Missing as e:
        print(f"  without SGLang's own server: {e}", flush=True)
        return None
