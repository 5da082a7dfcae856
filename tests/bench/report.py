"""report.py - docs/BENCHMARKS.md from what was measured."""

import lab

HEAD = """# Benchmarks

Written by `tests/bench/run`; do not edit. Every row was measured with its floor, on the same machine in the same run.

{machine}

{origin}

All keys hit; writes have 8 clients and are durable (FULL and NORMAL are the manager's `durability`), those into a full
store are of 128 blocks a call, NORMAL. *CPU* is the manager's own time from `/proc`, the least of three rounds. Recovery
works on one core; syncs of the virtual disk take 0.05 to 3 ms. Rows of get, exists, reserve, delete_keys, release and
clear are SGLang's calls, from wrk over 4 connections.

Floors: *echo* is a bare libmicrohttpd server with requests and answers of the same length, under the same load; *touch*
is XXH3 of a key and one random cache line of 512 MiB; *bare SQLite* commits as many bytes as the manager's appends had,
one after the other, with the same `synchronous`; bytes (verified; 32 blocks in flight, in two calls of each client) stand
beside fio with O_DIRECT, 32 deep, before, between and after: medians of both, and fio's spread (highest less lowest, of the
median) where it is over 5 %.

| what | bar | measured | floor | met |
|---|---|---|---|---|
"""

TAIL = """
## Beside others

[README](../README.md#status) has them: CPU time of the server on two cores of the same kind, with each one's own client.
slabkv's numbers are the rows above; neither of the others makes anything durable before it answers. Puts of 4 writers
into a full store: Mooncake's master succeeds with 0.29-0.96, p99 11-33x; SGLang's server has no eviction.

## Again

```
cmake -S . -B build && cmake --build build
tests/bench/run              # everything, about ten minutes; --quick: two
tests/bench/run --row scale  # one row; --list names them
tests/bench/run --peers      # and Mooncake's and SGLang's servers from PyPI, in the same run
tests/bench/against COMMIT   # CPU time a call beside another commit, rounds in turns
slabkv bench --help         # against a manager that runs
```

Run it on an idle machine, with `--dir` on the disk that is meant.
"""


def mark(line):
    return "-" if line["met"] is None else "yes" if line["met"] else "**no**"


def text(found):
    m = lab.machine()
    commits = sorted({e["commit"] for e in found.values()})
    dates = sorted(e["date"] for e in found.values())
    origin = f"Commit {', '.join(commits)}; {dates[0]} to {dates[-1]}. " if found else ""
    if found:
        loads = [e["load"] for e in found.values()]
        origin += f"Load average when a row began, other work included: {min(loads):.1f} to {max(loads):.1f}."
    out = HEAD.format(machine=f"{m['cpu']}, {m['cores']} cores, {m['memory']}, {m['kernel']}.", origin=origin)
    for name, entry in found.items():
        short = " (quick)" if entry["quick"] else ""
        for line in entry["lines"]:
            out += f"| {line['what']}{short} | {line['bar']} | {line['measured']} | {line['floor']} | {mark(line)} |\n"
        if "missing" in entry:
            out += f"| {name} | - | not measured: {entry['missing']} | - | - |\n"
    return out + TAIL
