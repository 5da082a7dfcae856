"""report.py - docs/BENCHMARKS.md from what was measured."""

import lab

HEAD = """# Benchmarks

Written by `tests/bench/run`; do not edit. Every row was measured with its floor, on the same machine in the same run.

{machine}

{origin}

*CPU* is the manager's own time from `/proc`, the least of three rounds; calls per second are with the load on the same cores, so
a p99 of milliseconds is also a measure of what else ran there. Recovery works on one core. The disk is a virtual one, whose
syncs take 0.05 to 3 ms. FULL and NORMAL are the manager's `durability`. Puts into a full store are of 128 blocks a call, NORMAL; SGLang's calls
come from wrk over 4 connections; bytes are verified.

Floors: *echo* is a bare libmicrohttpd server with requests and answers of the same length, under the same load; *hash and touch*
is XXH3 of a key and one random cache line of 512 MiB; *bare SQLite* commits as many bytes as the manager's appends had, one after
the other, with the same `synchronous`; *fio* does the same I/O with O_DIRECT, 16 deep.

| what | bar | measured | floor | met |
|---|---|---|---|---|
"""

TAIL = """
## Beside others

CPU time of the server, measured by us on two cores of the same kind, with each server's own client. slabkv's numbers are the rows
above; neither of the others makes anything durable before it answers.

| | Mooncake master (RPC) | SGLang's hf3fs metadata server (HTTP, at its best) |
|---|---|---|
| a hit in a lookup of 512 keys | 2.5-3.2 us a key | 1.5-1.7 us a key (775-861 us a call) |
| a lookup of 1 key | 19-23 us | 220-314 us |
| put (start and end) of 512 blocks | 7.6-10 us a block | 4-5.6 us a block (two calls) |
| put with 4 writers, store full | success 0.29-0.96, p99 11-33x | no eviction |
| memory of a block | 830-1,000 B | - |

## Again

```
cmake -S . -B build && cmake --build build
tests/bench/run              # everything, about ten minutes; --quick: two
tests/bench/run --row scale  # one row; --list names them
tests/bench/against COMMIT   # CPU time a call beside another commit, rounds in turns
slabkv bench --help         # against a manager that runs
```

Run it on a machine that does nothing else, with `--dir` on the disk that is meant.
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
