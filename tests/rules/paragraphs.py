"""paragraphs.py - pages that people follow step by step have short paragraphs.

Only the Python standard library. Tables (also those behind a comment that marks them), headings and code are no paragraphs; an
entry of a list is one.
"""

import os
import re

import tree

FOLDERS = {os.path.join("docs", "operate"), os.path.join("docs", "start")}
MAX_WORDS = 90


def paragraphs(text):
    """[(line, words)] of a page."""
    text = re.sub(r"^```.*?^```$", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S | re.M)
    at = 0
    for piece in re.split(r"(\n\s*\n|\n(?=- |\d+\. ))", text):
        if piece.strip() and not piece.startswith(("|", "#", "<!--")):
            yield text[:at].count("\n") + 1, len(piece.split())
        at += len(piece)


def rule_paragraphs(args):
    """Paragraphs of docs/operate and docs/start have at most 90 words."""
    report = args.report()
    pages = [p for p in tree.files(args.source, ".md", under=("docs",)) if os.path.dirname(p) in FOLDERS]
    for path in pages:
        for line, words in paragraphs(tree.text(args.source, path)):
            if words > MAX_WORDS:
                report.breach(path, line, f"a paragraph of {words} words, {MAX_WORDS} is the most: split it, or make a list or table")
    return report.end(f"{len(pages)} pages")
