#!/usr/bin/env python3
"""state.py [DIR] - which components of server/core read and write each member of a partition.

A partition's state is open to all components; this rule keeps count of who uses that. A member has one component that
writes it. Run as a program it prints the table.

A member is written where it is assigned, counted up or down, or its address is taken (unless to compare it, for a const pointer
or an atomic load). What a member points at is not a member.
"""

import os
import re
import sys

import core
import tree

HEADER = os.path.join("server", "core", "model", "include", "model", "partition.h")
DECLARED = re.compile(r"(\**)\s*(\w+)\s*((?:\[[^\]]*\])*)\s*(?:,|$)")
OTHER_P = re.compile(r"struct (?!partition\b)\w+ \*(?:const )?p\b")
ASSIGNED = re.compile(r"\s*(?:=(?!=)|[-+*/%&|^]=|<<=|>>=|\+\+|--)")

def members(root):
    """{member: is it a pointer?} of struct partition; a nested struct is one member."""
    text = tree.code(tree.text(root, HEADER))
    body = re.search(r"^struct partition \{(.*?)^\};", text, re.S | re.M).group(1)
    while re.search(r"\{[^{}]*\}", body):
        body = re.sub(r"\{[^{}]*\}", "", body)
    found = {}
    for line in body.split(";"):
        names = re.sub(r"^\s*(?:(?:const|struct \w+|struct|enum \w+|unsigned|_Atomic)\s+)*", "", line)
        names = re.sub(r"^(?:u?int\d+_t|size_t|bool|void|int|damages)\s+(?=[\w*])", "", names.strip())
        for stars, name, _ in DECLARED.findall(names):
            found[name] = bool(stars)
    return found


def functions(text):
    """The text of each top-level definition."""
    return re.split(r"(?m)^\}", text)


def place_of(text, at, pointer):
    """Where the member's own part of an expression ends, which begins at text[at:]; None: it goes on in what it points at."""
    while True:
        step = re.match(r"\.\w+|\[", text[at:]) if not pointer else None
        if not step:
            break
        if step.group(0) != "[":
            at += step.end()
            continue
        depth = 0
        while True:
            depth += {"[": 1, "]": -1}.get(text[at], 0)
            at += 1
            if depth == 0:
                break
    return None if pointer and re.match(r"->|\[", text[at:]) else at


def is_written(text, begin, end):
    """Does the expression text[begin:end] change?"""
    if ASSIGNED.match(text, end) or re.search(r"(?:\+\+|--)\s*$", text[:begin]):
        return True
    before = text[max(0, begin - 200):begin]
    if not re.search(r"(?<!&)&\s*$", before) or re.search(r"[=!]=\s*&\s*$", before):
        return False
    statement = re.split(r"[;{}]", before)[-1]
    return not (re.search(r"atomic_load\w*\(\s*&\s*$", before) or re.match(r"\s*const\b", statement))


def uses(root):
    """{member: ({component that writes it}, {component that reads it})}"""
    known = members(root)
    found = {m: (set(), set()) for m in known}
    pattern = re.compile(r"(?:\b\w+(?:->|\.))*\b(?:p|part|partition)->(%s)\b" % "|".join(known))
    for path in tree.files(root, ".c", ".h", under=("server",)):
        by = core.component(path)
        if not by or path == HEADER:
            continue
        for function in functions(tree.code(tree.text(root, path))):
            if OTHER_P.search(function):
                continue
            for m in pattern.finditer(function):
                end = place_of(function, m.end(), known[m.group(1)])
                written = end is not None and is_written(function, m.start(), end)
                found[m.group(1)][0 if written else 1].add(by)
    return found


def rule_state(args):
    """A member of a partition is written by one component."""
    root, report = args.source, args.report()
    if not os.path.exists(os.path.join(root, HEADER)):
        return report.end("no partition")
    found = uses(root)
    for member, (writers, _) in found.items():
        if len(writers) > 1:
            report.breach(HEADER, 0, f"{member} is written by {', '.join(sorted(writers))}: give it to one component")
    return report.end(f"{len(found)} members of a partition")


if __name__ == "__main__":
    for name, (w, r) in uses(sys.argv[1] if sys.argv[1:] else ".").items():
        print(f"{name:20} written by {' '.join(sorted(w)) or '-':40} read by {' '.join(sorted(r - w)) or '-'}")
