"""tree.py - the source tree as the rules see it: which files there are, and C without its comments.

Only the Python standard library. Build folders, dotfolders and what a run leaves behind are not part
of the tree, whether git knows them or not, so the rules also run on an unpacked archive.
"""

import os
import re

COMPONENTS = ("allocator", "api", "backends", "client", "server")  # where product code lives


def is_left_by_runs(name):
    """Top-level names that a build or a first run makes; .gitignore has the same list."""
    return name.startswith(("build", "slabkv.db")) or name == "slabkv-data"


def files(root, *suffixes, under=None):
    """Paths relative to root, sorted. No suffixes: every file. `under`: only these top-level folders."""
    found = []
    for folder, folders, names in os.walk(root):
        top = os.path.relpath(folder, root)
        if top == ".":
            folders[:] = [d for d in folders if not is_left_by_runs(d)]
            if under is not None:
                folders[:] = [d for d in folders if d in under]
        folders[:] = sorted(d for d in folders if d not in (".git", "__pycache__"))
        for name in names:
            path = os.path.normpath(os.path.join(top, name))
            if under is not None and os.sep not in path:
                continue
            if not suffixes or name.endswith(suffixes):
                found.append(path)
    return sorted(found)


def text(root, path):
    with open(os.path.join(root, path), "rb") as f:
        return f.read().decode("utf-8", "replace")


def is_test(path):
    return path.split(os.sep)[0] == "tests"


# A comment, a string or a character constant, whichever begins first.
SKIP = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code(source):
    """C source without comments and without the contents of strings; line numbers stay."""

    def blank(match):
        s = match.group(0)
        if s[0] == "/":
            return " " + "\n" * s.count("\n")
        return s[0] + s[0]

    return SKIP.sub(blank, source)


def includes(source):
    """[(line number, name)] of #include lines, comments left out."""
    plain = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), source, flags=re.S)
    found = []
    for number, line in enumerate(plain.split("\n"), 1):
        m = re.match(r'\s*#\s*include\s+[<"]([^">]+)[>"]', line)
        if m:
            found.append((number, m.group(1)))
    return found


def functions(source):
    """[(name, first line, last line)] of C functions in K&R form: both braces in column 0."""
    found = []
    begin = None
    lines = code(source).split("\n")
    for number, line in enumerate(lines, 1):
        if line.rstrip() == "{":
            begin = number
        elif line.startswith("}") and begin is not None:
            head = " ".join(lines[max(0, begin - 6) : begin - 1])
            names = re.findall(r"\b(?!SKV_)(\w+)\s*\(", head)  # not the attributes of skv/lock.h
            found.append((names[-1] if names else "?", begin, number))
            begin = None
    return found
