"""locks.py - what clang's thread-safety analysis says of the locks: the attributes of skv/lock.h, checked.

Compiles nothing: each .c file of the product that calls a function of locks is parsed with the include folders of its own command
in compile_commands.json, by clang, whichever compiler the build uses. Only the Python standard library.
"""

import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess

import tree

SKIPPED = 77
CALL = re.compile(r"lock(?:ed)?\(|skv_cond_wait|\bSKV_REQUIRES")
FINDING = re.compile(r"^(.+?):(\d+):\d+: (?:fatal )?error: (.*)$", re.M)


def flags(command):
    """Of a compiler's command line: language, defines and include folders, no warnings."""
    words, found = iter(shlex.split(command)), []
    for word in words:
        if word in ("-isystem", "-I", "-D"):
            found += [word, next(words)]
        elif word.startswith(("-I", "-D", "-U", "-std=")):
            found.append(word)
    return found


def analyse(entry):
    command = ["clang", "-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety", *flags(entry["command"]), entry["file"]]
    return subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True).stderr


def rule_locks(args):
    """Each function takes, holds and releases the locks that its prototype names."""
    database = os.path.join(args.build, "compile_commands.json")
    if not shutil.which("clang") or not os.path.exists(database):
        print(f"skipped: clang is not installed, or there is no {database}")
        return SKIPPED
    report = args.report()
    with open(database, encoding="utf-8") as f:
        entries = {os.path.relpath(os.path.realpath(e["file"]), os.path.realpath(args.source)): e for e in json.load(f)}
    paths = [p for p in tree.files(args.source, ".c", under=tree.COMPONENTS) if p in entries and CALL.search(tree.text(args.source, p))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = "\n".join(pool.map(lambda p: analyse(entries[p]), paths))
    for path, line, what in sorted(set(FINDING.findall(said))):
        report.breach(os.path.relpath(path, args.source), int(line), what)
    return report.end(f"{len(paths)} files with locks")
