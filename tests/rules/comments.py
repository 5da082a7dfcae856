"""comments.py - comments name their subject, and none is split beside code.

A comment that begins with a pronoun makes its reader search for the noun. In memcached, nbdkit, Varnish and Valkey 2.5 to
4.3 % of the comments begin so. Only the Python standard library.
"""

import re

import tree

MOST = 3.0  # percent of the comments of all C files
PRONOUNS = ("it its they them their he she we you i that those one ones what who whom whose whoever whatever "
            "whichever there such").split()
WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")


def comments(source):
    """[(offset, text)] of comments, those in strings left out."""
    return [(m.start(), m.group(0)) for m in tree.SKIP.finditer(source) if m.group(0).startswith("/")]


def first_word(comment):
    """The first word in lower case, of a file's head the one after its name; None if the comment has none."""
    text = re.sub(r"^[\s/*]+", "", comment)
    text = re.sub(r"^[\w.]+\.[ch] - ", "", text)
    m = WORD.match(text)
    return m.group(0).lower() if m else None


def begins_with_pronoun(comment):
    word = first_word(comment)
    return word is not None and word.split("'")[0] in PRONOUNS


def split(source, at, comment):
    """How a comment of several lines is split: it shares a line with code, or its end stands far from its begin. None: it is not."""
    if "\n" not in comment:
        return None
    begin = source.rfind("\n", 0, at) + 1
    end = source.find("\n", at + len(comment))
    before = source[begin:at]
    after = source[at + len(comment) : end if end >= 0 else len(source)]
    if before.strip() or after.strip(" \t\\"):
        return "a comment of several lines beside code: move it above the line"
    last = comment[comment.rfind("\n") + 1 :].expandtabs(8)
    if last.strip() == "*/" and len(last) - len("*/") > len(before.expandtabs(8)) + 1:
        return "the end of a comment stands apart from its begin"
    if re.fullmatch(r"-+ \*/", last.lstrip(" *")):
        return "a title whose line is broken: one line, of at most 100 columns"
    return None


def rule_comments(args):
    """At most 3 % of the comments begin with a pronoun; none of several lines stands beside code."""
    report = args.report()
    paths = tree.files(args.source, ".c", ".h", under=(*tree.COMPONENTS, "tests"))
    count, pronouns = 0, []
    for path in paths:
        source = tree.text(args.source, path)
        for at, comment in comments(source):
            count += 1
            line = source.count("\n", 0, at) + 1
            if begins_with_pronoun(comment):
                pronouns.append((path, line, first_word(comment)))
            what = split(source, at, comment)
            if what:
                report.breach(path, line, what)
    share = 100.0 * len(pronouns) / max(count, 1)
    if share > MOST:
        for path, line, word in pronouns:
            report.breach(path, line, f"a comment begins with '{word}': name the subject")
    return report.end(f"{count} comments, {share:.1f} % begin with a pronoun ({MOST:.0f} % is the most)")
