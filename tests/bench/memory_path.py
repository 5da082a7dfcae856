#!/usr/bin/env python3
"""memory_path.py SLABKVD MEMORY_PATH [--size BYTES] [--seconds S] - the library's way to a memory node beside the bare one.

Bars: mapped at least 0.85 of memcpy between the same pages, TCP at least 0.80 of a send and recv loop, with and without
checksums. --check ends with 1 if one is missed.
"""

import argparse
import os
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "memory"))

from node import MIB, MemoryNode, environment, uuid_of  # noqa: E402

BARS = {"mapped": 0.85, "tcp": 0.80}


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("slabkvd")
    ask.add_argument("memory_path")
    ask.add_argument("--size", type=int, default=4497408)
    ask.add_argument("--seconds", type=float, default=0.3, help="of each of 9 rounds, for each side")
    ask.add_argument("--length", type=int, default=256, help="MiB of the slab")
    ask.add_argument("--check", action="store_true")
    o = ask.parse_args()
    missed = 0
    print(f"{'':24} {'engine':>8} {'bare':>8} ratio  (MB/s, {o.size} B at a time)")
    with MemoryNode(os.path.abspath(o.slabkvd), memory=(o.length + 1) * MIB) as n:
        storage = {"storage": "s", "type": "memory", "uuid": uuid_of(1), "unit": MIB}
        assert n.call("POST", "/fs/m0/open", storage)[0] == 200
        assert n.call("POST", "/fs/m0/create", {**storage, "file": 0, "length": o.length * MIB}) == (200, {})
        for way in ("", "tcp"):
            out = subprocess.run([o.memory_path, n.node_url(), uuid_of(1), "0", str(o.length * MIB), str(o.size), str(o.seconds)],
                                 env={**environment(), "SLABKV_MEMORY_TRANSPORT": way}, check=True, stdout=subprocess.PIPE, text=True).stdout
            for line in out.splitlines():
                name, engine, bare, ratio = line.split()
                bad = float(ratio) < BARS[name.split("_")[0]]
                missed += bad
                print(f"{name:24} {engine:>8} {bare:>8} {ratio}{'  MISSED' if bad else ''}")
    return 1 if o.check and missed else 0


sys.exit(main())
