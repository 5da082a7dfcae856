"""walks.py - the way of a call through a running manager, traced by uftrace, as Markdown.

The manager is a build with -finstrument-functions, as tests/walks/build makes it. Each line is a file below the one that called it, with
those of its functions that call other files, in the order of their first calls; behind the arrow are files that call none. Each paragraph
is a thread. Left out: api/base, functions of headers, and what happens anyway.
"""

import os
import re
import signal
import subprocess
import time

ROUNDS = 8
RECORD = ["/usr/bin/uftrace", "record", "--no-libcall", "--srcline", "-d", "trace"]
ROW = re.compile(r"^ *\[ *(\d+)\] +([\d.]+) \| ( *)(?:([\w.]+)\(\)(;| \{)(?: /\* (\S+):\d+ \*/)?|\} /\* [\w.]+ \*/)")
TICKS = ("tick_once", "watch_once")  # come round now and then, call or no call
COLUMN, WIDTH = 38, 100


class Node:
    def __init__(self, path):
        self.path, self.functions, self.below = path, [], {}
        self.ways = []  # functions that call other files

    def child(self, path):
        return self.below.setdefault(path, Node(path))


def short(path):
    """server/x.c and api/x.c below the root of the sources, whatever the build called them."""
    return re.sub(r"^(?:.*/)?(?=(?:server|api|allocator|backends)/)", "", path)


def told(path):
    return path.endswith(".c") and not path.startswith("api/base/") and "/build" not in path


def rows(folder):
    """(thread, time, depth, function, file) of each call, in order."""
    command = ["uftrace", "replay", "--no-libcall", "--srcline", "--no-pager", "-f", "tid,time", "-d", folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as out:
        for line in out.stdout:
            m = ROW.match(line)
            if m and m[4]:
                yield int(m[1]), float(m[2]), len(m[3]) // 2, m[4], short(m[6] or "")


def walk(calls, begin, end, anyway):
    """One tree for each thread that did something for the call."""
    threads = {}
    for row in calls:
        threads.setdefault(row[0], []).append(row)
    trees = []
    for of_thread in threads.values():
        root, stack, idle = Node(""), {}, None
        for _, at, depth, name, path in of_thread:
            stack = {d: n for d, n in stack.items() if d < depth}
            idle = None if idle is None or depth <= idle else idle
            if not begin <= at <= end or not told(path) or idle is not None:
                continue
            if not stack and name in TICKS:
                idle = depth
                continue
            above, caller = stack[max(stack)] if stack else (root, "")
            node = above if above.path == path else above.child(path)
            if above is not node and caller not in above.ways:
                above.ways.append(caller)
            if name not in node.functions:
                node.functions.append(name)
            stack[depth] = node, name
            root.begin = min(getattr(root, "begin", at), at)
        if any(f not in anyway for n in nodes(root) for f in n.functions):
            trees.append((root.begin, root))
    return [root for _, root in sorted(trees, key=lambda t: t[0])]


def nodes(node):
    yield node
    for n in node.below.values():
        yield from nodes(n)


def label(path):
    return re.sub(r"^server/", "", path)


def line(text, depth, path):
    """A file, and what is told of it, wrapped."""
    lines = [("  " * depth + label(path)).ljust(COLUMN - 1)]
    for word in text.split(" "):
        if len(lines[-1]) + 1 + len(word) > WIDTH:
            lines.append(" " * (COLUMN - 1))
        lines[-1] += " " + word
    return "\n".join(lines)


def show(node, depth, out, everything):
    """A line for each file that calls others; files that call none stand behind those that call them."""
    for n in node.below.values():
        leaves = [label(b.path) for b in n.below.values() if not b.below]
        text = ", ".join(n.functions if everything or not n.ways else n.ways)
        if n.below or everything or depth == 0:
            out.append(line(text + ("" if everything or not leaves else " -> " + ", ".join(leaves)), depth, n.path))
        show(n, depth + 1, out, everything)


def look(todo, quiet_s):
    """Does each of what is to be looked at ROUNDS times; gives (name, begin, end) of each time, the first of which is of doing nothing:
    what happens then happens anyway."""
    time.sleep(0.5)
    windows = [(None, time.monotonic(), time.monotonic() + quiet_s)]
    time.sleep(quiet_s)
    for name, do in todo:
        do()  # once before, on the same connection: nothing is done for the first time
        for _ in range(ROUNDS):
            time.sleep(0.05)
            begin = time.monotonic()
            do()
            time.sleep(0.02)
            windows.append((name, begin, time.monotonic()))
        time.sleep(0.3)
    return windows


def stop(process):
    """SIGTERM to the manager itself, below uftrace."""
    below = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], stdout=subprocess.PIPE, text=True, check=True)
    for pid in below.stdout.split():
        os.kill(int(pid), signal.SIGTERM)
    process.wait(timeout=60)


def count(calls, window, name):
    """How often functions whose names match are called meanwhile."""
    return sum(bool(re.fullmatch(name, c[3])) for c in calls if window[1] <= c[1] <= window[2])


def calmest(calls, windows):
    """(name, begin, end, trees) of each walk, of the round in which fewest functions of other things came between."""
    (_, begin, end), *windows = windows
    anyway = {r[3] for r in calls if begin <= r[1] <= end}
    found = {}
    for name, begin, end in windows:
        trees = walk(calls, begin, end, anyway)
        n = sum(len(x.functions) for t in trees for x in nodes(t))
        if name not in found or n < found[name][0]:
            found[name] = n, (name, begin, end, trees)
    return [f[1] for f in found.values()]


def tell(walked, numbers, everything):
    """Prints what calmest() gave; numbers alone if these are asked for."""
    for name, _, _, trees in walked:
        every = [n for t in trees for n in nodes(t) if n.path]
        files, functions = {n.path for n in every}, {(n.path, f) for n in every for f in n.functions}
        print(f"{'**' if not numbers else ''}{name}{'.**' if not numbers else ':'} {len(files)} files, {len(functions)} functions")
        if numbers:
            continue
        out = []
        for t in trees:
            if out:
                out.append("")
            show(t, 0, out, everything)
        print("\n```\n" + "\n".join(out) + "\n```\n")
