"""tiers.py - a trace that is replayed, all bytes verified, on files with a fast tier of memory, and on files alone.

Hits of each tier beside what `slabkvd simulate --tiers` says, and how long a request waits for its blocks, as computed from the
bytes of each tier and that tier's rate, measured here: a stand-in for the time to the first token, without the model.
"""

import json
import os
import pathlib
import subprocess
import sys

from capacity import line
from lab import SOURCE

sys.path.append(os.path.join(SOURCE, "tests", "memory"))

from node import KIB, MIB, Manager, MemoryNode, environment, node_storage  # noqa: E402 of tests/memory

BLOCK, SLOW_BLOCKS, SHARE = 64 * KIB, 10240, 0.1  # whole slab files of both
TRACES = os.path.join(SOURCE, "..", "shared", "traces", "conversation_trace.jsonl")


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, env=environment(), timeout=3600)
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


def trace_of(lab, m):
    """(path, requests, name): a recorded one where it is there ($SKV_TRACE names another), else one that is made."""
    given, requests = os.environ.get("SKV_TRACE", TRACES), 1000 if lab.quick else 12000
    if os.path.exists(given):
        path, name = m.path("trace"), os.path.basename(given)
        lines = pathlib.Path(given).read_text(encoding="ascii").splitlines(keepends=True)[:requests]
        pathlib.Path(path).write_text("".join(lines), encoding="ascii")
        return path, len(lines), name
    path = m.path("made")
    run(lab.slabkv, "gen-trace", "--kind", "mix", "--conversations", requests // 8, "--seed", 3, "--out", path)
    return path, len(pathlib.Path(path).read_text(encoding="ascii").splitlines()), "gen-trace mix"


def prepare(m, node, slow, fast):
    m.good("PUT", "/v1/storages/files", {"type": "file", "root": m.path("files"), "capacity": slow, "unit": MIB, "file_size": 64 * MIB})
    m.healthy("files")
    m.good("PUT", "/v1/groups/slow", {"storages": ["files"], "policy": "lru"})
    if node:
        m.good("PUT", "/v1/storages/fast", node_storage(node, capacity=fast, file_size=32 * MIB))
        m.healthy("fast")
        m.good("PUT", "/v1/groups/fast", {"storages": ["fast"], "tier_of": "slow", "write_through": True, "policy": "lru"})


def replay(lab, m, path):
    got = json.loads(run(lab.slabkv, "replay", "--url", m.url, "--json", "--clients", 1, "--lease", 0, "--block-bytes", BLOCK, "--group",
                         "slow", "--instance", "i", path))
    if got["mismatches"] or got["verified"] != got["prefix_hits"]:
        raise RuntimeError(f"not all bytes are right: {got}")
    return got


def rate(lab, m, storage):
    """MiB/s of gets of one client."""
    out = run(lab.slabkv, "--url", m.url, "--json", "bench", "--data", BLOCK, "--data-bytes", "24M", "--storage", storage, "--keys", 16,
              "--clients", 1, "--seconds", lab.seconds)
    return json.loads(out)["operations"][1]["mib_per_s"]


def tiers(lab):
    slow, fast = SLOW_BLOCKS * BLOCK, int(SLOW_BLOCKS * BLOCK * SHARE)
    options = {"grace_ms": 100, "free_percent": 0, "durability": "normal"}
    with MemoryNode(lab.slabkvd, memory=fast) as node, Manager(lab.slabkvd, **options) as m:
        prepare(m, node, slow, fast)
        rates = {s: rate(lab, m, s) for s in ("fast", "files")}
    with MemoryNode(lab.slabkvd, memory=fast) as node, Manager(lab.slabkvd, **options) as m:
        path, requests, name = trace_of(lab, m)
        prepare(m, node, slow, fast)
        got = replay(lab, m, path)
        found = {g["name"]: g["hits"] for g in m.good("GET", "/v1/groups")["groups"]}
        want = json.loads(run(lab.slabkvd, "simulate", "--json", "--block-bytes", BLOCK, "--tiers", f"{fast},{slow}", "--promote-after", 0,
                              "--write-through", "--policy", "lru", path))["traces"][0]["runs"][0]
    with Manager(lab.slabkvd, **options) as m:
        prepare(m, None, slow, fast)
        alone = replay(lab, m, trace_of(lab, m)[0])
    what = f"{name}, {requests:,} requests of blocks of {BLOCK // KIB} KiB, files of {SLOW_BLOCKS:,} blocks, memory {SHARE:.0%} of it"
    hits, simulated = (got["prefix_hits"], found["fast"]), (want["prefix_hits"], want["fast_hits"])
    yield line(f"{what}: hits, those in memory", "the simulator's, 2 %", f"{hits[0]:,}, {hits[1]:,}; all bytes verified",
               f"simulated {simulated[0]:,}, {simulated[1]:,}", all(abs(a - b) <= 0.02 * b for a, b in zip(hits, simulated)))
    wait = (hits[1] / rates["fast"] + (hits[0] - hits[1]) / rates["files"]) * BLOCK / MIB / requests * 1000
    base = alone["prefix_hits"] / rates["files"] * BLOCK / MIB / requests * 1000
    yield line("the same: a request waits for its blocks, computed from each tier's rate", "told",
               f"{wait:.2f} ms ({rates['fast']:,.0f} MiB/s of memory, {rates['files']:,.0f} of files)",
               f"files alone: {base:.2f} ms, {alone['prefix_hits']:,} hits", None)


ROWS = {"tiers": tiers}
