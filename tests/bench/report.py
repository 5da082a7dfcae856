"""report.py - docs/internals/BENCHMARKS.md from what was measured."""

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

[README](../../README.md#status) has them: CPU time of the server on two cores of the same kind, with each one's own client.
slabkv's numbers are the rows above; neither of the others makes anything durable before it answers. Puts of 4 writers
into a full store: Mooncake's master succeeds with 0.29-0.96, p99 11-33x; SGLang's server has no eviction.

## What limits

Profiles by `perf` of the manager alone, two cores of a virtual machine, one connection, so that every call finds a
thread asleep:

- *A lookup of one key*: 81 % is the kernel's (the answer wakes the client's thread, the thread goes to sleep: 53 %; TCP),
  19 % everything else. A third of what Mooncake's master takes, 7 us, is less than a socket costs.
- *512 hits*: 45 % the kernel's, 0.06 us a key, which is more than a fifteenth of 0.62; 46 % (0.06 us a key) in slabkvd:
  hashes of the texts, cells, entries and marks, the answer.
- *A put of 512 blocks*, durable: 64 % the kernel's: the syncs of two commits 16, their writes 9, pages for what is new 12
  to 15, switching threads 13; 24 % (0.2 us a block) in slabkvd, 5 in SQLite. `reserve` and `confirm` do the same.
- *A restart of a full store that changes*: [0070](../decisions/0070-pre-fault-index-memory-in-a-thread.md).
- *Bytes of a block of a full `lru` store* of 4 million, chains: entries 65.3 (2 % of the slots are kept free), index 9.5,
  owners of slots 4.3, pages of SQLite 2.1 (8 MiB), and 2 to 4 in pages of malloc that are used in part. `reuse` remembers
  as many that went, 14 each.

## Instructions of a lookup

`tests/bench/instructions --base BUILD` (callgrind, JSON, one key that is there, all that a manager does between a parsed header and its
answer), on 2026-11-30, 300 calls each, 13df2122 beside 28fc1d27:

| partitions of the manager | 13df2122 | 28fc1d27 |
|---|---|---|
| 1 | 17,403 | 17,728 (+1.9 %) |
| 16 | 19,976 | 19,216 (-3.8 %) |

The bar was: not more with 1, fewer with 16. Three managers with 16 partitions beside one with one are a row (`shared`, bars
of 1.3x for lookups and 2.5x for starts); it has not been measured on an idle machine.

## Again

```
cmake -S . -B build && cmake --build build
tests/bench/run              # everything, about ten minutes; --quick: two
tests/bench/run --row scale  # one row; --list names them
tests/bench/run --peers      # and Mooncake's and SGLang's servers from PyPI, in the same run
tests/bench/against COMMIT   # CPU time a call beside another commit, rounds in turns
tests/bench/instructions COMMIT  # instructions of a lookup beside another commit's
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
