#!/usr/bin/env python3
"""rules.py RULE [--source DIR] [--build DIR] [--cc CC...] - habits of this project, as a test.

Each rule prints what it looked at, then every breach as FILE:LINE: WHAT. Exit 0: none; 1: some; 77:
the rule cannot run here, with the reason (ctest reports it as skipped). docs/internals/TESTING.md says why the
rules are there; selftest.py breaks each one on purpose.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

import comments
import core
import decisions
import layers
import locks
import logs
import paragraphs
import routing
import state
import tree

SKIPPED = 77

TOP_LEVEL = {
    "CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE",
    "server", "allocator", "backends", "api", "client", "tests", "deploy", "docs",
}

# What to use instead. Names are matched as calls, outside comments and strings.
FORBIDDEN = {
    "strcpy": "snprintf or memcpy with a length", "strcat": "snprintf or struct skv_buf",
    "sprintf": "snprintf", "vsprintf": "vsnprintf", "gets": "fgets", "alloca": "an arena",
    "system": "a function of ours", "popen": "a function of ours",
    "rand": "skv_random", "srand": "skv_random", "random": "skv_random", "tmpnam": "mkstemp", "mktemp": "mkstemp",
}
RAW_MEMORY = {"malloc": "skv_malloc", "calloc": "skv_calloc", "realloc": "skv_realloc",
              "strdup": "skv_strdup", "strndup": "skv_arena_strndup", "reallocarray": "skv_grow",
              "asprintf": "skv_buf_printf"}
SLEEPS = {"sleep": 0, "usleep": 0, "nanosleep": 0, "clock_nanosleep": 0}

# Stock clients are the point of these tests; without them they are skipped.
STOCK_CLIENTS = {"tests/grpc": {"grpc", "google"}, "tests/kvcm": {"grpc", "google", "requests"},
                 "tests/hf3fs": {"requests", "urllib3"}, "tests/sglang": {"sglang", "torch"},
                 # A connector is imported by its engine.
                 "client/python/slabkv": {"lmcache", "sglang", "slabkv", "torch", "vllm"}, "tests/python": {"slabkv"},
                 "tests/soak": {"slabkv"}, "tests/http": {"slabkv"}, "tests/bench": {"grpc"},
                 "tests/engines/sglang_cpu": {"torch"}, "tests/engines": {"numpy", "safetensors", "sglang", "slabkv", "torch", "transformers", "vllm"}}

MAX_FUNCTION = 90  # lines from brace to brace
MAX_FILE = 700  # lines of a .c file of the product
MAX_COLUMNS = 100  # of a C line, with tabs of 8

# Put together here, so that this file is not a breach of its own rule.
MARKS = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")


class Report:
    def __init__(self):
        self.breaches = []

    def breach(self, path, line, what):
        self.breaches.append(f"{path}:{line}: {what}")

    def end(self, looked_at):
        for b in self.breaches:
            print(b)
        print(f"looked at {looked_at}: {len(self.breaches)} breaches")
        return 1 if self.breaches else 0


def skip(reason):
    print(f"skipped: {reason}")
    return SKIPPED


# ---- headers ---------------------------------------------------------------------------------------


def public_headers(source):
    """Every header below a folder named include of the product."""
    return [h for h in tree.files(source, ".h", under=tree.COMPONENTS) if "include" in h.split(os.sep)]


def is_inside(header):
    """Of a component of the core: seen by the components above it, and by nobody else."""
    return core.component(header) in core.LAYERS


def include_folders(headers):
    mark = os.sep + "include" + os.sep
    return sorted({h[: h.index(mark) + len(mark) - 1] for h in headers})


def rule_headers(args):
    """Every public header compiles alone, with each compiler, without a warning."""
    report = Report()
    headers = public_headers(args.source)
    compilers = [c for c in args.cc if shutil.which(c)]
    if not compilers:
        return skip("none of these compilers is installed: " + " ".join(args.cc))
    flags = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes", "-Werror"]
    flags += ["-I" + os.path.join(args.source, d) for d in include_folders(headers)]
    with tempfile.TemporaryDirectory() as folder:
        for header in headers:
            unit = os.path.join(folder, "alone.c")
            with open(unit, "w", encoding="utf-8") as f:
                path = os.path.join(args.source, header)
                f.write(f'#include "{path}"\n#include "{path}"\nint skv_alone;\n')
            for cc in compilers:
                run = subprocess.run([cc, *flags, "-fsyntax-only", unit], capture_output=True, text=True)
                if run.returncode != 0:
                    report.breach(header, 1, f"does not compile alone with {cc}:\n{run.stderr.strip()}")
    return report.end(f"{len(headers)} public headers with {', '.join(compilers)}")


# ---- sources ---------------------------------------------------------------------------------------


def rule_forbidden(args):
    """No function that cannot be used safely; our memory comes from skv/mem.h; tests never sleep."""
    report = Report()
    sources = tree.files(args.source, ".c", ".h", under=(*tree.COMPONENTS, "tests"))
    for path in sources:
        words = dict(FORBIDDEN)
        if tree.is_test(path):
            words.update({name: "a condition, or poll(2) with a deadline" for name in SLEEPS})
        elif path != os.path.join("api", "base", "mem.c"):
            words.update(RAW_MEMORY)
        call = re.compile(r"(?<![\w.>])(" + "|".join(words) + r")\s*\(")
        for number, line in enumerate(tree.code(tree.text(args.source, path)).split("\n"), 1):
            for m in call.finditer(line):
                report.breach(path, number, f"{m.group(1)}() is not used here: {words[m.group(1)]}")
    return report.end(f"{len(sources)} C files")


def rule_lengths(args):
    """A function fits two screens at most, a file has one subject."""
    report = Report()
    sources = tree.files(args.source, ".c", under=(*tree.COMPONENTS, "tests"))
    count = 0
    for path in sources:
        source = tree.text(args.source, path)
        lines = source.count("\n")
        if lines > MAX_FILE and not tree.is_test(path):
            report.breach(path, lines, f"{lines} lines, {MAX_FILE} is the most: find the seam")
        for name, first, last in tree.functions(source):
            count += 1
            if last - first + 1 > MAX_FUNCTION:
                report.breach(path, first, f"{name} has {last - first + 1} lines, {MAX_FUNCTION} is the most")
        for number, line in enumerate(tree.code(source).split("\n"), 1):
            if re.match(r"[A-Za-z_][^=;]*\)\s*\{\s*$", line):
                report.breach(path, number, "the opening brace of a function stands on a line of its own")
    return report.end(f"{count} functions in {len(sources)} .c files")


def rule_columns(args):
    """No C line has more than 100 columns."""
    report = Report()
    sources = tree.files(args.source, ".c", ".h", under=(*tree.COMPONENTS, "tests"))
    for path in sources:
        for number, line in enumerate(tree.text(args.source, path).split("\n"), 1):
            columns = len(line.expandtabs(8))
            if columns > MAX_COLUMNS:
                report.breach(path, number, f"{columns} columns, {MAX_COLUMNS} is the most")
    return report.end(f"{len(sources)} C files")


def rule_openings(args):
    """Every C file begins with a comment; product files name themselves and say what they are."""
    report = Report()
    sources = tree.files(args.source, ".c", ".h", under=(*tree.COMPONENTS, "tests"))
    for path in sources:
        name = os.path.basename(path)
        source = tree.text(args.source, path)
        named = re.match(r"/\*\s+(?:\* )?([\w.]+\.[ch]) - \S", source)
        if not source.startswith("/*"):
            report.breach(path, 1, "does not begin with a comment that says what it is")
        elif named and named.group(1) != name:
            report.breach(path, 1, f"calls itself {named.group(1)}")
        elif not named and not tree.is_test(path):
            report.breach(path, 1, f"begins without '/* {name} - what it is'")
    return report.end(f"{len(sources)} C files")


def rule_marks(args):
    """Nothing is left for later in the sources: that is what issues are for."""
    report = Report()
    paths = [p for p in tree.files(args.source) if os.path.basename(p) != "LICENSE"]
    for path in paths:
        for number, line in enumerate(tree.text(args.source, path).split("\n"), 1):
            m = MARKS.search(line)
            if m:
                report.breach(path, number, f"'{m.group(1)}' is left")
    return report.end(f"{len(paths)} files")


def rule_toplevel(args):
    """The folder shows the architecture: nothing else at the top."""
    report = Report()
    names = sorted(n for n in os.listdir(args.source) if not n.startswith(".") and not tree.is_left_by_runs(n))
    for name in names:
        if name not in TOP_LEVEL:
            report.breach(name, 0, "does not belong at the top level")
    return report.end(f"{len(names)} entries")


DECLARATION = re.compile(r"^(?!static|typedef|#)[a-z][\w \t*]*?\*?(\w+)\([^;{]*\)[^;{]*;", re.M)


def rule_public(args):
    """Functions of public headers begin with skv_, kvcm_ or slabkv_, and each paragraph explains itself."""
    report = Report()
    headers = [h for h in public_headers(args.source) if not is_inside(h)]
    count = 0
    for header in headers:
        line = 1
        for paragraph in re.split(r"(?<=\n)\n", tree.text(args.source, header)):
            names = DECLARATION.findall(tree.code(paragraph))
            count += len(names)
            if names and "/*" not in paragraph:
                report.breach(header, line, f"{names[0]} is not documented")
            for name in names:
                if not name.startswith(("skv_", "kvcm_", "slabkv_")):
                    report.breach(header, line, f"{name} is exported without the prefix skv_")
            line += paragraph.count("\n") + 1
    return report.end(f"{count} declarations in {len(headers)} public headers")


# ---- scripts and deploy ----------------------------------------------------------------------------


def shell_scripts(source):
    """[(path, dialect)] of shell scripts, by name or first line."""
    found = []
    for path in tree.files(source):
        if path.endswith(".bash"):
            found.append((path, "bash"))
            continue
        if os.path.basename(path).startswith("_"):  # zsh completions: shellcheck does not know zsh
            continue
        with open(os.path.join(source, path), "rb") as f:
            first = f.readline(80).decode("utf-8", "replace")
        m = re.match(r"#!.*?\b(bash|dash|sh)\b", first)
        if m or path.endswith(".sh"):
            found.append((path, m.group(1) if m else "bash"))
    return found


def rule_shell(args):
    """Shell scripts are clean for shellcheck."""
    report = Report()
    scripts = shell_scripts(args.source)
    if not shutil.which("shellcheck"):
        return skip(f"shellcheck is not installed; {len(scripts)} scripts not checked")
    for path, dialect in scripts:
        command = ["shellcheck", "-x", "-s", dialect, "-f", "gcc", os.path.join(args.source, path)]
        run = subprocess.run(command, capture_output=True, text=True, cwd=args.source)
        if run.returncode != 0:
            report.breach(path, 1, "shellcheck:\n" + (run.stdout + run.stderr).strip())
    return report.end(f"{len(scripts)} shell scripts")


def rule_python(args):
    """Python scripts compile and need nothing beside the standard library."""
    report = Report()
    scripts = tree.files(args.source, ".py")
    own = {os.path.basename(p)[:-3] for p in scripts}
    for path in scripts:
        source = tree.text(args.source, path)
        try:
            compile(source, path, "exec")
        except SyntaxError as e:
            report.breach(path, e.lineno, e.msg)
        allowed = own | STOCK_CLIENTS.get(os.path.dirname(path), set())
        for m in re.finditer(r"^\s*(?:import|from)\s+(\w+)", source, re.M):
            if m.group(1) not in sys.stdlib_module_names and m.group(1) not in allowed:
                report.breach(path, source[: m.start()].count("\n") + 1, f"imports {m.group(1)}")
    return report.end(f"{len(scripts)} Python scripts")


def rule_unit(args):
    """The systemd units are ones that systemd understands, and every paragraph of them is explained."""
    report = Report()
    units = {os.path.join("deploy", n): n.removesuffix(".in") for n in ("slabkvd.service.in", "slabkvd-fs-master.service.in", "slabkvd.socket")}
    sources = {unit: tree.text(args.source, unit) for unit in units}
    for unit, source in sources.items():
        line = 1
        for paragraph in re.split(r"(?<=\n)\n", source):
            directives = re.findall(r"^(\w+)=", paragraph, re.M)
            if directives and not re.search(r"^#", paragraph, re.M):
                report.breach(unit, line, f"{directives[0]} stands in a paragraph without a comment")
            line += paragraph.count("\n") + 1
    if not shutil.which("systemd-analyze"):
        report.end("the comments of the units")
        return 1 if report.breaches else skip("systemd-analyze is not installed; the units were not verified")
    with tempfile.TemporaryDirectory() as folder:
        # verify wants the program to exist where the unit says; any program does.
        for unit, name in units.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(re.sub(r"^(ExecStart=)\S+", r"\1/bin/true", sources[unit], flags=re.M))
        for unit, name in units.items():
            run = subprocess.run(["systemd-analyze", "verify", "--man=no", os.path.join(folder, name)],
                                 capture_output=True, text=True)
            said = [s for s in run.stderr.split("\n") if name in s]
            if run.returncode != 0 or said:
                report.breach(unit, 1, "systemd-analyze verify:\n" + ("\n".join(said) or run.stderr).strip())
    return report.end("units with systemd-analyze")


RULES = {
    "headers": rule_headers, "layers": layers.rule_layers, "core": core.rule_core, "forbidden": rule_forbidden,
    "lengths": rule_lengths, "columns": rule_columns, "openings": rule_openings, "marks": rule_marks, "toplevel": rule_toplevel,
    "public": rule_public, "shell": rule_shell, "python": rule_python, "unit": rule_unit, "logs": logs.rule_logs,
    "state": state.rule_state, "routing": routing.rule_routing, "locks": locks.rule_locks,
    "decisions": decisions.rule_decisions, "paragraphs": paragraphs.rule_paragraphs,
    "comments": comments.rule_comments,
}


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("rule", choices=sorted(RULES))
    parser.add_argument("--source", default=os.path.dirname(os.path.dirname(here)))
    parser.add_argument("--build", default="build")
    parser.add_argument("--cc", nargs="+", default=["gcc", "clang"])
    args = parser.parse_args(argv)
    args.report = Report
    print(RULES[args.rule].__doc__)
    return RULES[args.rule](args)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
