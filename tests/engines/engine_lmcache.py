"""LMCache's own benchmark over slabkv.lmcache: everything is stored, found, loaded and equal; and the same benchmark over LMCache's own
file adapters beside it.

Each adapter runs twice: a process that stores, then, with its files out of the page cache, a fresh one that looks up and loads. The
files of LMCache's adapters are synced within the time of their store, as slabkv's are.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from daemon import Daemon

LMCACHE = str(pathlib.Path(os.environ["VENV"]) / "bin" / "lmcache")
KEYS, IN_FLIGHT, ROUNDS, KB = 16, 2, 2, 1024
TOTAL = KEYS * IN_FLIGHT * ROUNDS


def ours(url, **more):
    return {"type": "native_plugin", "module_path": "slabkv.lmcache", "class_name": "L2Client",
            "adapter_params": {"url": url, "kv_dtype": "bfloat16", "namespace_tag": "bench", **more}}


def bench(adapter, *flags):
    """Runs it; name of the operation to its numbers, and the text."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as out:
        command = [LMCACHE, "bench", "l2", "--l2-adapter", json.dumps(adapter), "--num-keys", str(KEYS), "--in-flight", str(IN_FLIGHT),
                   "--data-size-kb", str(KB), "--l1-align-bytes", "4096", "--rounds", str(ROUNDS), "--lookup-max-hit-rate", "0.5",
                   "--format", "json", "--output", out.name, *flags]
        run = subprocess.run(command, text=True, capture_output=True, timeout=300)
        text = run.stdout + run.stderr
        if run.returncode != 0:
            print(text[-4000:])
            raise SystemExit(f"lmcache bench ended with {run.returncode}")
        found = json.load(out)["metrics"].values()
        return {op["operation"]: op for op in found if "operation" in op}, text


def files(folder):
    return [p for p in pathlib.Path(folder).rglob("*") if p.is_file()]


def out_of_the_page_cache(folder):
    for path in files(folder):
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def measure(name, adapter, folder, sync):
    """(MB/s stored, MB/s loaded) of one adapter."""
    stored, _text = bench(adapter, "--only", "store")
    t = time.monotonic()
    if sync:  # their time, for as many bytes as were measured of what was written
        for path in files(folder):
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)
    share = ROUNDS / (ROUNDS + 1)  # one round more warms up
    seconds = stored["Store"]["duration_avg_ms"] * ROUNDS / 1000 + (time.monotonic() - t) * share
    out_of_the_page_cache(folder)
    loaded, _text = bench(adapter, "--only", "load")
    for operation, numbers in (("Store", stored), ("Load", loaded)):
        if numbers[operation]["total_success"] != TOTAL:
            raise SystemExit(f"{name}: {operation} of {TOTAL}: {numbers[operation]['total_success']}")
    rates = TOTAL * KB / 1024 / seconds, loaded["Load"]["throughput_avg_mbps"]
    print(f"{name:10} store {rates[0]:6.0f} MB/s, load {rates[1]:6.0f} MB/s, {TOTAL} of {TOTAL}")
    return rates


def main():
    with Daemon(capacity="512M", unit="16M") as d:
        numbers, text = bench(ours(d.url), "--no-skip-verify")
        assert numbers["Store"]["total_success"] == TOTAL, numbers["Store"]
        assert numbers["Load"]["total_success"] == TOTAL, numbers["Load"]
        assert numbers["Lookup"]["total_success"] == TOTAL // 2, numbers["Lookup"]
        assert f"All {KEYS * IN_FLIGHT} keys data verified OK" in text, text[-3000:]
        print(f"stored, loaded and verified: {TOTAL} of {TOTAL}")
    rates = {}
    with Daemon(capacity="512M", unit="16M") as d:
        rates["slabkv"] = measure("slabkv", ours(d.url), d.root, False)
    for name in ("fs", "fs_native"):
        with tempfile.TemporaryDirectory() as folder:
            rates[name] = measure(name, {"type": name, "base_path": folder}, folder, True)
    for i, what in enumerate(("store", "load")):
        best = max(rates["fs"][i], rates["fs_native"][i])
        print(f"{what}: {rates['slabkv'][i] / best:.2f} of the better of theirs")


if __name__ == "__main__":
    sys.exit(main())
