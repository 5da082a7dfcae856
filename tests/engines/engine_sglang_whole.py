"""Whole engines of SGLang over slabkv.sglang, on a CPU: cold; fresh processes that find what that has stored; bytes zeroed on disk; storage
slowed to a tenth; a manager that is stopped, killed, and back again; a store far too small. Tokens are equal to the cold ones in each. Engines
that are configured otherwise find nothing in the same directory."""

import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from daemon import Daemon, wait_for

HERE = pathlib.Path(__file__).parent
LENGTH, N, TIMEOUT = 640, 32, 1.0
STORED = LENGTH // 16 * 16


def prompt(seed):
    source = random.Random(seed)
    return [source.randrange(3, 1000) for _ in range(LENGTH)]


def make_model(folder):
    """A small model with random weights, so that its tokens are diverse."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(hidden_size=512, intermediate_size=1024, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=4,
                         vocab_size=1024, max_position_embeddings=4096, initializer_range=0.06, torch_dtype="float32")
    LlamaForCausalLM(config).save_pretrained(folder)


def sweep():
    """Removes what engines that were killed have left in /dev/shm: SGLang's own files that no process has mapped."""
    mapped = set()
    for maps in pathlib.Path("/proc").glob("[0-9]*/maps"):
        try:
            mapped.update(line.split(None, 5)[5].strip() for line in maps.read_text().splitlines() if "/dev/shm/" in line)
        except OSError:
            pass
    for path in pathlib.Path("/dev/shm").glob("sglang_loads_*"):
        if str(path) not in mapped:
            path.unlink(missing_ok=True)


class Engine:
    """A process of its own."""

    def __init__(self, model, url, slow, args=None, **more):
        config = {"backend_name": "slabkv", "module_path": "slabkv.sglang", "class_name": "HiCacheSlabkv", "interface_v1": 1, "url": url,
                  "timeout": TIMEOUT, "retry": 1.0, "prefetch_threshold": 16, **more}
        env = {**os.environ, "SKV_TIMES": str(slow), "SGLANG_USE_CPU_ENGINE": "1",
               "PYTHONPATH": os.pathsep.join([str(HERE / "sglang_cpu"), os.environ["PYTHONPATH"]])}
        sweep()
        self.log = tempfile.TemporaryFile("w+")
        command = [sys.executable, "-W", "ignore", str(HERE / "sglang_once.py"), model, json.dumps(config), json.dumps(args or {})]
        self.process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env=env,
                                        start_new_session=True)
        self.timer = threading.Timer(900, self.kill)
        self.timer.daemon = True
        self.timer.start()

    def line(self, begins):
        for line in self.process.stdout:
            if line.startswith(begins):
                return line[len(begins) :]
        self.log.seek(0)
        print(self.log.read()[-6000:])
        raise SystemExit("the engine ended")

    def __enter__(self):
        self.line("READY")
        self.ask(0, 4)  # what a first call costs
        return self

    def send(self, what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()

    def ask(self, seed, n=N):
        self.send({"tokens": prompt(seed), "n": n})
        return json.loads(self.line("RESULT"))

    def flush(self):
        self.send("flush")
        assert json.loads(self.line("RESULT")), "SGLang did not flush its cache"

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def __exit__(self, *_):
        self.timer.cancel()
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # its children
        except ProcessLookupError:
            pass
        self.process.wait()
        sweep()


def zero(daemon):
    """All bytes that blocks hold on disk, but their slabs' own."""
    for path in daemon.slabs():
        size = path.stat().st_size
        with open(path, "r+b") as f:
            for at in range(1 << 20, size, 4096):
                f.seek(at)
                f.write(bytes(64))


def same(name, cold, got):
    equal = sum(x == y for x, y in zip(cold["tokens"], got["tokens"]))
    print(f"{name}: storage {got['storage']} of {LENGTH} tokens, first token after {got['ttft']:.2f} s (cold {cold['ttft']:.2f} s), "
          f"{equal} of {N} tokens equal", flush=True)
    assert equal == N == len(got["tokens"]), (cold["tokens"], got["tokens"])


def stored(daemon, least):
    """Backups come after the answer."""
    import slabkv

    with slabkv.Client(daemon.url) as kv:
        def count():
            text = json.dumps(kv.stats())
            return int(json.loads(text)["blocks"]) >= least
        assert wait_for(count, 60), kv.stats()


FRESH = itertools.count(1000)


def soon(what, b, d, cold, seed, limit, begin=lambda: None, end=lambda: None):
    """The prompt again while something is wrong: tokens are equal, and the first one comes within limit(cold) of a cold one. Others use
    this machine, too: what is cold is measured beside it, with prompts that nobody has seen, and what took longer is tried again."""
    for _ in range(5):
        b.flush()
        before = b.ask(next(FRESH), 2)["ttft"]
        begin()
        got = b.ask(seed)
        end()
        same(what, cold[seed], got)
        most = limit(max(before, b.ask(next(FRESH), 2)["ttft"]))
        print(f"{what}: first token after {got['ttft']:.2f} s (at most {most:.2f})", flush=True)
        if got["ttft"] <= most:
            return got
    raise AssertionError(f"{what}: each time longer")


def slowed(b, d, cold, slow):
    slow.write_text("10")
    for seed in (2, 3):
        soon("storage slowed to a tenth", b, d, cold, seed, lambda c: 1.1 * c)
    slow.unlink()


def once(c):
    """A request waits once for a manager that is not there; then nobody asks it for a while."""
    return 1.1 * c + TIMEOUT


def stopped(b, d, cold, _slow):
    def resume():
        timer.join()
        d.signal(signal.SIGCONT)
        time.sleep(2)

    def stop():
        nonlocal timer
        timer = threading.Timer(0.05, d.signal, [signal.SIGSTOP])
        timer.start()

    timer = None
    soon("the manager stopped during a load", b, d, cold, 4, once, stop, resume)


def killed(b, d, cold, _slow):
    def resume():
        timer.join()
        d.start()
        time.sleep(1.5)

    def kill():
        nonlocal timer
        timer = threading.Timer(0.05, d.kill)
        timer.start()

    timer = None
    soon("the manager killed during a load", b, d, cold, 5, once, kill, resume)
    b.flush()
    got = b.ask(6)
    same("the manager is back", cold[6], got)
    assert got["storage"] > 0


def zeroed(b, d, cold, _slow):
    zero(d)
    b.flush()
    got = b.ask(1)
    same("bytes zeroed on disk", cold[1], got)
    assert got["storage"] == 0


def small(model, cold, slow):
    with Daemon(capacity="16M", unit="4M") as d, Engine(model, d.url, slow) as c:
        hits = 0
        for turn in range(2):
            for seed in (1, 2, 3, 3):
                c.flush()
                got = c.ask(seed)
                hits += got["storage"]
                same(f"a store far too small, turn {turn + 1}", cold[seed], got)
                time.sleep(0.5)
        print(f"a store far too small: {hits} tokens from storage")
        assert hits


def resolved(model, d, cold, slow):
    """The same directory, in other engines: with rope parameters overridden and with dummy weights they find nothing of it; the same files
    under another path find all."""
    copy = shutil.copytree(model, model + "/../on/another/host")
    rope = json.dumps({"rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}})
    for name, path, args in (("overrides", model, {"json_model_override_args": rope}), ("dummy weights", model, {"load_format": "dummy"}),
                             ("another path", copy, {})):
        with Engine(str(path), d.url, slow, args) as e:
            got = e.ask(1)
        equal = sum(x == y for x, y in zip(cold[1]["tokens"], got["tokens"]))
        print(f"{name}: storage {got['storage']} of {LENGTH} tokens, {equal} of {N} tokens as without", flush=True)
        if path == copy:
            assert got["storage"] >= STORED - 16 and equal == N
        else:
            assert got["storage"] == 0 and got["tokens"] != cold[1]["tokens"]


def main():
    scenes = [f for f in (slowed, stopped, killed, zeroed) if not sys.argv[1:] or f.__name__ in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder, Daemon(capacity="1G", unit="16M") as d:
        slow = pathlib.Path(folder, "slow")
        model = folder + "/model"
        make_model(model)
        cold = {}
        with Engine(model, d.url, slow) as a:
            for seed in range(1, 7):
                cold[seed] = a.ask(seed)
                assert cold[seed]["storage"] == 0
            stored(d, 6 * STORED // 16)
        times = [c["ttft"] for c in cold.values()]
        print(f"cold: first token after {min(times):.2f} to {max(times):.2f} s", flush=True)
        if not sys.argv[1:] or "resolved" in sys.argv[1:]:
            resolved(model, d, cold, slow)
        with Engine(model, d.url, slow) as b:
            warm = b.ask(1)
            same("a fresh process", cold[1], warm)
            assert warm["storage"] >= STORED - 16
            for scene in scenes:
                scene(b, d, cold, slow)
        if not sys.argv[1:] or "small" in sys.argv[1:]:
            small(model, cold, slow)


if __name__ == "__main__":
    main()
