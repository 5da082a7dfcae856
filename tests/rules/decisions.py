"""decisions.py - the form of docs/decisions: headings, length, and the index by topic and by file.

Only the Python standard library. A link counts as its text. Its target is checked by docs_named.
"""

import glob
import os
import re

import tree

FOLDER = os.path.join("docs", "decisions")
INDEX = os.path.join(FOLDER, "README.md")
HEADINGS = ["Context", "Decision", "Rejected", "Consequences"]
MAX_WORDS = 300
CODE = re.compile(r"`((?:server|allocator|backends|api|client|tests|deploy)/[\w./*-]+)")
SUPERSEDED = re.compile(r"^\*\*Superseded(?: in part)?\*\* by \[\d{4}\]\(\d{4}-[\w.-]+\)\.$", re.M)


def words(text):
    plain = re.sub(r"\]\([^)]*\)", "]", text)
    return sum(1 for word in plain.split() if re.search(r"\w", word))


def check_page(report, path, text):
    """Returns the title of one decision, or None; reports breaches of its form."""
    number = int(os.path.basename(path)[:4])
    title = re.match(r"# (\d+)\. (.+)\n", text)
    if not title or int(title.group(1)) != number:
        report.breach(path, 1, f"does not begin with '# {number}. TITLE'")
        return None
    headings = re.findall(r"^#+ (.+)$", text, re.M)[1:]
    if headings != HEADINGS:
        report.breach(path, 1, f"has the headings {', '.join(headings) or '(none)'} instead of {', '.join(HEADINGS)}")
    if words(text) > MAX_WORDS:
        report.breach(path, 1, f"{words(text)} words, {MAX_WORDS} is the most: details belong in docs/internals")
    if "uperseded" in text.split("\n## ")[0] and not SUPERSEDED.search(text):
        report.breach(path, 1, "is superseded, but does not begin with '**Superseded** by [NUMBER](FILE).'")
    return title.group(2)


def rule_decisions(args):
    """Each decision has four headings and at most 300 words; the index has its title, and the files that it names."""
    report = args.report()
    pages = [p for p in tree.files(args.source, ".md", under=("docs",)) if os.path.dirname(p) == FOLDER and p != INDEX]
    index = tree.text(args.source, INDEX) if os.path.exists(os.path.join(args.source, INDEX)) else ""
    topics, _, by_file = index.partition("## By file")
    rows = dict(re.findall(r"^\| `([^`]+)` \| (.+) \|$", by_file, re.M))
    seen = {}
    for path in pages:
        name, text = os.path.basename(path), tree.text(args.source, path)
        if not re.match(r"\d{4}-[a-z0-9-]+\.md$", name):
            report.breach(path, 1, "is not called NUMBER-WORDS.md")
            continue
        if name[:4] in seen:
            report.breach(path, 1, f"has the number of {seen[name[:4]]}")
        seen[name[:4]] = name
        title, link = check_page(report, path, text), f"[{name[:4]}]({name})"
        if title and topics.count(f"- {link} {title}\n") != 1:
            report.breach(path, 1, f"{INDEX} does not have '{link} {title}' once, by topic")
        for file in sorted(set(CODE.findall(text))):
            if glob.glob(os.path.join(args.source, file)) and link not in rows.get(file, ""):
                report.breach(path, 1, f"names {file}; {INDEX} does not say so, by file")
    for file in rows:
        if not glob.glob(os.path.join(args.source, file)):
            report.breach(INDEX, 1, f"{file} is not there")
    return report.end(f"{len(pages)} decisions")
