#!/usr/bin/env python3
"""measure.py - the shape of the product code, in numbers: a table, one line for each component.

	tests/rules/measure.py [--build build] [--json] [--check]

lines      of .c and .h files, without those of tables (initializers at file scope) and #include lines
asserts    per 1,000 of these lines; bare null checks do not count
p50 p90    lines of a function, from its opening to its closing brace
includes   of the project's own headers, in a .c file on average
circle     the most .c files of the component that need each other's symbols, directly or over others. Taken from the
           objects of the build folder, so calls, callbacks and tables of operations count alike.

--check ends with 1 where a number is worse than the one that BARS allows: they only ever get stricter.
"""

import argparse
import json
import os
import re
import subprocess
import sys

import tree

# component: (least asserts per 1,000 lines, most files of a circle)
BARS = {
    "total": (11.5, 17),
    "allocator": (19.0, 2),
    "api/base": (10.0, 1),
    "api/http": (10.0, 1),
    "api/kvcm": (13.0, 1),
    "api/proto": (10.0, 1),
    "api/trace": (14.0, 1),
    "api/v1": (13.0, 1),
    "backends/fsmaster": (12.0, 1),
    "backends/storage": (12.0, 3),
    "backends/store": (11.5, 6),
    "client/cli": (16.5, 3),
    "client/lib": (10.0, 17),
    "server/request": (12.0, 1),
    "server/core": (10.0, 5),
    "server/http": (10.0, 2),
    "server/fsmaster": (10.0, 2),
    "server/memnode": (10.0, 5),
    "server/grpc": (14.5, 7),
    "server/kvcm": (10.0, 1),
    "server/main": (10.5, 1),
    "server/v1": (12.0, 5),
    "server/hf3fs": (10.5, 11),
    "server/policy": (9.5, 1),
    "server/simulate": (15.0, 4),
}

OWN = {"skv", "lock", "model", "journal", "storage", "evict", "ops", "recovery", "admin"}  # folders of our headers
ASSERT = re.compile(r"\b(?:assert|_Static_assert|MUST|SKV_CHECK|ASSERT_[A-Z_]+)\s*\(")
NULL_CHECK = re.compile(r"\b(?:assert|SKV_CHECK)\s*\(\s*!?[\w.>-]+\s*(?:!=\s*NULL\s*)?\)")
TABLE = re.compile(r"^(?:static |extern )*(?:const |struct )[^;(]*\] = \{\n.*?^\};\n", re.M | re.S)


def component(path):
    """The first folder, with the second where code lies in it."""
    parts = path.split(os.sep)
    return parts[0] if len(parts) < 3 or parts[0] == "allocator" else os.path.join(*parts[:2])


def sources(root):
    found = {}
    for path in tree.files(root, ".c", ".h", under=tree.COMPONENTS):
        found.setdefault(component(path), []).append(path)
    return found


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(len(values) * q))] if values else 0


def objects(build):
    """{source, relative to the project: object}"""
    found = {}
    for folder, _, names in os.walk(build):
        if ".dir" not in folder or os.sep + "tests" + os.sep in folder:
            continue
        where, _, below = os.path.relpath(folder, build).partition("/CMakeFiles/")
        inner = below.split(os.sep, 1)[1] if os.sep in below else ""
        for name in names:
            if name.endswith(".c.o"):
                found[os.path.normpath(os.path.join(where, inner, name[:-2]))] = os.path.join(folder, name)
    return found


def needs(objs):
    """{source: the sources that define what it needs}"""
    paths = sorted(objs)
    defines, wants = {}, {path: set() for path in paths}
    for path in paths:
        out = subprocess.run(["nm", objs[path]], capture_output=True, text=True, check=True).stdout
        for line in out.splitlines():
            kind, name = line.split()[-2:]
            if kind in "TDBRVW":
                defines.setdefault(name, path)
            elif kind == "U":
                wants[path].add(name)
    return {path: {defines[s] for s in wants[path] if defines.get(s, path) != path} for path in paths}


def largest_circle(paths, edges):
    """Size of the largest strongly connected component, 1 if there is no circle; Tarjan, without recursion."""
    index, low, on, stack, best = {}, {}, set(), [], 1
    for root in paths:
        if root in index:
            continue
        work = [(root, iter(sorted(edges.get(root, ()))))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on.add(root)
        while work:
            at, rest = work[-1]
            for to in rest:
                if to not in paths:
                    continue
                if to not in index:
                    index[to] = low[to] = len(index)
                    stack.append(to)
                    on.add(to)
                    work.append((to, iter(sorted(edges.get(to, ())))))
                    break
                if to in on:
                    low[at] = min(low[at], index[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == index[at]:
                    size = 0
                    while True:
                        top = stack.pop()
                        on.discard(top)
                        size += 1
                        if top == at:
                            break
                    best = max(best, size)
    return best


def measure(root, paths, edges):
    lines = asserts = longest = 0
    lengths, includes = [], []
    for path in paths:
        text = tree.text(root, path)
        plain = tree.code(text)
        lines += text.count("\n") - sum(m.group(0).count("\n") for m in TABLE.finditer(plain)) - len(tree.includes(text))
        asserts += sum(not NULL_CHECK.match(plain, m.start()) and "#define" not in
                       plain[plain.rfind("\n", 0, m.start()) + 1 : m.start()] for m in ASSERT.finditer(plain))
        if path.endswith(".c"):
            lengths += [last - first for _, first, last in tree.functions(text)]
            longest = max(longest, text.count("\n"))
            includes.append(sum(name.split("/")[0] in OWN or "/" not in name and name.endswith(".h") and os.path.exists(
                os.path.join(root, os.path.dirname(path), name)) for _, name in tree.includes(text)))
    c_files = {p for p in paths if p.endswith(".c")}
    return {
        "files": len(paths),
        "lines": lines,
        "asserts": round(1000 * asserts / max(1, lines), 1),
        "functions": len(lengths),
        "p50": quantile(lengths, 0.5),
        "p90": quantile(lengths, 0.9),
        "longest_file": longest,
        "includes": round(sum(includes) / max(1, len(includes)), 1),
        "circle": largest_circle(c_files, edges) if edges else None,
    }


def main():
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--source", default=here)
    ap.add_argument("--build", default=os.path.join(here, "build"))
    ap.add_argument("--json", action="store_true")
    ap.add_argument("--check", action="store_true")
    a = ap.parse_args()

    objs = {path: obj for path, obj in objects(a.build).items() if os.path.exists(os.path.join(a.source, path))}
    if not objs:
        sys.exit(f"{a.build}: no objects there: build first, or name the folder with --build")
    edges = needs(objs)
    parts = sources(a.source)
    rows = {name: measure(a.source, paths, edges) for name, paths in sorted(parts.items())}
    rows["total"] = measure(a.source, [p for paths in parts.values() for p in paths], edges)
    if a.json:
        print(json.dumps(rows, indent=1))
    else:
        heads = list(rows["total"])
        print(f"{'':20}" + "".join(f"{h:>13}" for h in heads))
        for name, row in rows.items():
            print(f"{name:20}" + "".join(f"{row[h]:>13}" for h in heads))
    worse = [
        f"{name}: {row['asserts']} asserts per 1,000 lines (at least {BARS[name][0]}), a circle of {row['circle']} files (at most "
        f"{BARS[name][1]})"
        for name, row in rows.items()
        if name in BARS and (row["asserts"] < BARS[name][0] or row["circle"] > BARS[name][1])
    ]
    for line in worse if a.check else ():
        print(line, file=sys.stderr)
    return 1 if a.check and worse else 0


if __name__ == "__main__":
    sys.exit(main())
