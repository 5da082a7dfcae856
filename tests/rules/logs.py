"""logs.py - what log lines and error texts look like: the partition's number, no doubled parentheses, no "1 calls".

Reads calls of skv_log and skv_fail with their format and arguments. Only the Python standard library.
"""

import os
import re

import tree

# Threads of the core that work for no partition: one makes memory, one moves capacity between all partitions.
OF_NO_PARTITION = {("server/core/model/region.c", "keep"), ("server/core/route/capacity.c", "run")}

NOUNS = ("blocks bundles calls characters checks chunks columns connections copies days documents entries elements faults files "
         "groups holds instances keys lines locations managers members moves names objects operations pages partitions pieces "
         "pins pools problems reads records references requests sessions slabs slices slots spaces specs storages tenants times "
         "tokens tries units values writers writes").split()
COUNTED = re.compile(r"%(?:l|ll|z|j)?[ud] (?:[a-z]+ )?(" + "|".join(NOUNS) + r")\b")
CONVERSION = re.compile(r"%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j|t)?([a-zA-Z%])")
STRING = re.compile(r'"((?:\\.|[^"\\])*)"')


def calls(source, names):
    """[(line, name, [arguments])] of calls of these functions; arguments as text."""
    plain = tree.SKIP.sub(lambda m: m.group(0) if m.group(0)[0] != "/" else re.sub(r"[^\n]", " ", m.group(0)), source)
    found = []
    for m in re.finditer(r"(?<![\w.>])(" + "|".join(names) + r")\s*\(", plain):
        depth, at, begin, words = 1, m.end(), m.end(), []
        while depth and at < len(plain):
            if plain[at] in "\"'":
                at = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'').match(plain, at).end()
                continue
            depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(plain[at], 0)
            if depth == 0 or (depth == 1 and plain[at] == ","):
                words.append(plain[begin:at].strip())
                begin = at + 1
            at += 1
        found.append((plain.count("\n", 0, m.start()) + 1, m.group(1), words))
    return found


def format_of(word):
    """The text of string literals beside each other, PRIu64 and the like as what they stand for."""
    word = re.sub(r"\bPRI([ux])(8|16|32|64)\b", r'"ll\1"', word)
    return "".join(STRING.findall(word)) if re.fullmatch(r'(?:\s*"(?:\\.|[^"\\])*")+\s*', word) else None


def check_parentheses(report, path, line, text, given):
    """A message may end in '(path)': in parentheses of its own that is '((path))', and before a path '(path) (path)'."""
    marks = [m for m in CONVERSION.finditer(text) if m.group(1) != "%"]
    for m, word, after in zip(marks, given, [*marks[1:], None]):
        within = text[:m.start()].endswith("(") and text[m.end():m.end() + 1] == ")"
        before = after and text[m.end():after.start()] == " ("
        if re.search(r"(\.|->)message\b", word) and (within or before):
            report.breach(path, line, f"'{text[max(0, m.start() - 1):m.end() + 4]}': {word} may end in parentheses: use ': '")


def check_plural(report, path, line, text, given):
    marks = [m for m in CONVERSION.finditer(text) if m.group(1) != "%"]
    for m in COUNTED.finditer(text):
        which = [c.start() for c in marks].index(m.start())
        if not re.search(r"\b[A-Z_]{4,}", given[which]):  # a limit, more than one
            report.breach(path, line, f"'{m.group(0)}' may be '1 {m.group(1)}': write '{m.group(1)}: {m.group(0).split()[0]}'")


def check_thread(report, path, source, name):
    body = re.search(r"^static void \*" + name + r"\(void \*\w+\)\n\{\n(.*?)^\}", source, re.M | re.S)
    if not body or "core_log(" not in body.group(1):
        report.breach(path, 1, f"the thread {name} does not begin with core_log: its log lines have no partition")


def rule_logs(args):
    """Log lines know their partition; they and error texts say '1 call', and no '((path))'."""
    report = args.report()
    count = 0
    for path in tree.files(args.source, ".c", under=tree.COMPONENTS):
        source = tree.text(args.source, path)
        for line, name, words in calls(source, ("skv_log", "skv_fail")):
            at = 2 if name == "skv_log" else 3
            text = format_of(words[at]) if len(words) > at else None
            if text is None:
                continue
            count += 1
            check_parentheses(report, path, line, text, words[at + 1:])
            if name == "skv_log":
                check_plural(report, path, line, text, words[at + 1:])
            if name == "skv_log" and "partition %" in text:
                report.breach(path, line, "a partition's number is a field of the line: skv_log_partition")
        if path.startswith(os.path.join("server", "core")):
            threads = {m.group(1) for m in re.finditer(r"pthread_create\([^;]*?, NULL, (\w+),", source)}
            threads |= {w for m in re.finditer(r"\(\*const \w+\[\]\)\(void \*\) = \{([^}]*)\}", source) for w in re.findall(r"\w+", m.group(1))}
            for name in sorted(threads - {"run"} if "run[]" in source else threads):
                if (path, name) not in OF_NO_PARTITION:
                    check_thread(report, path, source, name)
    return report.end(f"{count} texts of log lines and errors")
