#!/usr/bin/env python3
"""selftest.py - breaks each rule on purpose, in a small tree of its own, and expects to be told.

A rule that cannot fail is worse than none. Each case is a tree that is clean for every rule, with one
file changed or added.
"""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import rules
import state
import tree

CLEAN = {
    "CMakeLists.txt": "project(x C)\n",
    "README.md": "A tree for tests.\n",
    "api/base/mem.c": "/* mem.c - memory. */\n#include <stdlib.h>\n\nvoid *skv_malloc(size_t n);\n"
    "void *skv_malloc(size_t n)\n{\n\treturn malloc(n);\n}\n",
    "allocator/pool.c": "/* pool.c - slots. */\nint skv_pool_size(void);\n\nint skv_pool_size(void)\n{\n\treturn 1;\n}\n",
    "allocator/include/skv/pool.h": "/* pool.h - slots. */\n#ifndef P\n#define P\n\n/* How many. */\n"
    "int skv_pool_size(void);\n\n#endif\n",
    "tests/pool/test_pool.c": "/* Tests of the pool. */\nint main(void)\n{\n\treturn 0;\n}\n",
    "tests/pool/run.sh": '#!/bin/sh\necho "$1"\n',
    "deploy/slabkvd.service.in": "[Unit]\n# What it is.\nDescription=a test\n\n[Service]\n# How it starts.\n"
    "Type=exec\nExecStart=/usr/sbin/slabkvd\n",
    "deploy/slabkvd-fs-master.service.in": "[Unit]\n# What it is.\nDescription=a test\n\n[Service]\n# How it starts.\n"
    "Type=exec\nExecStart=/usr/sbin/slabkvd\n",
    "docs/decisions/README.md": "# Decisions\n\n- [0001](0001-slots.md) Keep slots\n\n## By file\n\n| file | decisions |\n"
    "|---|---|\n| `allocator/pool.c` | [0001](0001-slots.md) |\n",
    "docs/decisions/0001-slots.md": "# 1. Keep slots\n\n## Context\n\nA.\n\n## Decision\n\n`allocator/pool.c`.\n\n"
    "## Rejected\n\n- B.\n\n## Consequences\n\nC.\n",
    "deploy/slabkvd.socket": "[Socket]\n# Where.\nListenStream=127.0.0.1:7333\n",
}


class Rules(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="skv-rules-")
        self.addCleanup(shutil.rmtree, self.root)
        for path, text in CLEAN.items():
            self.write(path, text)

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def compile(self, path):
        obj = os.path.join(self.root, "build", path + ".o")
        os.makedirs(os.path.dirname(obj), exist_ok=True)
        subprocess.run(["cc", "-c", os.path.join(self.root, path), "-o", obj], check=True)

    def run_rule(self, rule):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            code = rules.main([rule, "--source", self.root, "--build", os.path.join(self.root, "build")])
        return code, said.getvalue()

    def clean(self, rule):
        code, said = self.run_rule(rule)
        if code == rules.SKIPPED:
            self.skipTest(said)
        self.assertEqual(code, 0, said)
        return said

    def breaks(self, rule, path, text, words):
        """The tree is clean for the rule, and no longer when `path` holds `text`."""
        self.clean(rule)
        self.write(path, text)
        if rule == "layers" and path.endswith(".c"):
            self.compile(path)
        code, said = self.run_rule(rule)
        self.assertEqual(code, 1, said)
        self.assertIn(words, said)

    def test_header_that_needs_another(self):
        self.breaks("headers", "api/include/skv/x.h", "/* x.h - x. */\nint skv_x(uint32_t n);\n", "with gcc")

    def test_header_without_guard(self):
        self.breaks("headers", "api/include/skv/x.h", "/* x.h - x. */\nstruct x { int n; };\n", "alone")

    def compile_all(self):
        for path in CLEAN:
            if path.endswith(".c"):
                self.compile(path)

    def test_layer_by_symbol(self):
        self.compile_all()
        self.breaks(
            "layers", "allocator/pool.c",
            "/* pool.c - slots. */\nint sqlite3_open(void);\nint f(void);\nint f(void)\n{\n\treturn sqlite3_open();\n}\n",
            "needs sqlite3_open",
        )

    def test_layer_by_include(self):
        self.compile_all()
        self.breaks("layers", "allocator/pool.h", "/* pool.h - x. */\n#include <skv/store.h>\n", "must not include")

    def test_layer_round_the_path(self):
        self.compile_all()
        self.breaks("layers", "allocator/pool.h", '/* pool.h - x. */\n#include "../api/x.h"\n', "goes round")

    def test_layer_that_is_not_built(self):
        self.compile_all()
        self.clean("layers")
        self.write("server/core/core.c", "/* core.c - x. */\n")
        code, said = self.run_rule("layers")
        self.assertEqual(code, 1)
        self.assertIn("server/core:0: has sources", said)

    def compile_core(self, **files):
        """files: {component_file: body}; each object lies where CMake puts it."""
        for name, body in files.items():
            layer, file = name.split("_")
            source = f"server/core/{layer}/{file}.c"
            self.write(source, f"/* {file}.c - x. */\n{body}\n")
            obj = os.path.join(self.root, "build/server/core", layer, "CMakeFiles/x.dir", file + ".c.o")
            os.makedirs(os.path.dirname(obj), exist_ok=True)
            subprocess.run(["cc", "-c", os.path.join(self.root, source), "-o", obj], check=True)

    def test_core_points_down(self):
        self.compile_core(lock_a="int a(void);\nint a(void)\n{\n\treturn 1;\n}",
                          model_b="int a(void);\nint b(void);\nint b(void)\n{\n\treturn a();\n}")
        self.assertIn("model: 1 files, largest circle 1; needs lock 1", self.clean("core"))
        self.compile_core(lock_a="int a(void);\nint b(void);\nint a(void)\n{\n\treturn b();\n}")
        code, said = self.run_rule("core")
        self.assertEqual(code, 1)
        self.assertIn("server/core/lock/a.c:0: lock must not need model (b.c)", said)

    def test_core_calls_up_by_pointers(self):
        self.write("server/core/lock/t.h", "/* t.h - x. */\nstruct t {\n\tint (*go)(void);\n};\n")
        self.compile_core(lock_a="int a(void);\nint a(void)\n{\n\treturn 1;\n}",
                          model_b='struct t {\n\tint (*go)(void);\n};\nextern const struct t b;\nstatic int goes(void)\n{\n'
                          "\treturn 1;\n}\nconst struct t b = { .go = goes };")
        self.assertIn("lock calls model by 1 pointers: go = goes (b.c)", self.clean("core"))

    def test_core_circle_of_files(self):
        names = [f"f{i}" for i in range(6)]
        self.compile_core(**{
            f"model_{n}": f"int {n}(void);\nint {m}(void);\nint {n}(void)\n{{\n\treturn {m}();\n}}"
            for n, m in zip(names, names[1:] + names[:1])
        })
        code, said = self.run_rule("core")
        self.assertEqual(code, 1)
        self.assertIn("a circle of 6 files, 5 at most", said)

    def test_core_keeps_no_variables(self):
        self.compile_core(lock_a="static const char *const names[] = { \"a\" };\nconst char *a(int i);\n"
                                 "const char *a(int i)\n{\n\treturn names[i];\n}")
        self.clean("core")
        self.compile_core(lock_a="static int n;\nint a(void);\nint a(void)\n{\n\treturn n++;\n}")
        code, said = self.run_rule("core")
        self.assertEqual(code, 1)
        self.assertIn("server/core/lock/a.c:0: keeps 4 bytes of variables", said)

    def test_core_lends_what_is_named(self):
        body = ("struct c {\n\tint clock, secret;\n};\nstruct p {\n\tstruct c *core;\n};\nint a(struct p *p);\n"
                "int a(struct p *p)\n{\n\treturn p->core->%s;\n}")
        self.compile_core(lock_a=body % "clock")
        self.clean("core")
        self.compile_core(lock_a=body % "secret")
        code, said = self.run_rule("core")
        self.assertEqual(code, 1)
        self.assertIn("server/core/lock/a.c:0: a partition uses core->secret, which is not lent to it", said)

    def test_core_does_not_know_the_cluster(self):
        body = "struct skv_cluster;\nint %s(struct skv_cluster *c);\nint %s(struct skv_cluster *c)\n{\n\treturn !c;\n}"
        self.compile_core(route_a=body % ("a", "a"))
        self.clean("core")
        self.compile_core(lock_b=body % ("b", "b"))
        code, said = self.run_rule("core")
        self.assertEqual(code, 1)
        self.assertIn("server/core/lock/b.c:0: lock names skv_cluster, which only route knows", said)

    def test_core_file_that_is_not_built(self):
        self.write("server/core/lock/a.c", "/* a.c - x. */\n")
        code, said = self.run_rule("core")
        self.assertEqual(code, 1)
        self.assertIn("server/core/lock/a.c:0:", said)

    def test_forbidden(self):
        body = "/* pool.c - slots. */\nvoid f(char *s)\n{\n\t%s;\n}\n"
        for call in ("strcpy(s, s)", "sprintf(s, s)", "system (s)", "rand()", "s = malloc(3)", "s = strdup(s)"):
            self.write("allocator/pool.c", CLEAN["allocator/pool.c"])
            self.breaks("forbidden", "allocator/pool.c", body % call, "pool.c:4")
        for fine in ("/* strcpy(s, s) */", 'f("system(1)")', "skv_malloc(3)", "p->malloc(3)", "int operand(3)"):
            self.write("allocator/pool.c", body % fine)
            self.clean("forbidden")

    def test_sleeping_test(self):
        body = "/* Tests. */\nint main(void)\n{\n\tusleep(5);\n}\n"
        self.breaks("forbidden", "tests/pool/test_pool.c", body, "usleep")

    def test_long_function(self):
        body = "/* pool.c - slots. */\nint f(int n)\n{\n" + "\tn++;\n" * 89 + "}\n"
        self.breaks("lengths", "allocator/pool.c", body, "f has 91 lines")

    def test_long_file(self):
        self.breaks("lengths", "allocator/pool.c", "/* pool.c - slots. */\n" + "\n" * 700, "701 lines")

    def test_long_line(self):
        fits = "/* pool.c - slots. */\n\tint x; /* " + 79 * "x" + " */\n"
        self.write("allocator/pool.c", fits)
        self.assertEqual(self.run_rule("columns")[0], 0)
        self.breaks("columns", "allocator/pool.c", fits.replace("xx", "xxx", 1), "pool.c:2: 101 columns")

    def test_brace_that_hides_a_function(self):
        self.breaks("lengths", "allocator/pool.c", "/* pool.c - x. */\nint f(int n) {\n\treturn n;\n}\n", "pool.c:2")

    def test_opening(self):
        self.breaks("openings", "allocator/pool.c", "#include <x.h>\n", "does not begin with a comment")
        self.write("allocator/pool.c", CLEAN["allocator/pool.c"])
        self.breaks("openings", "allocator/pool.c", "/* slots */\n", "pool.c - what it is")
        self.write("allocator/pool.c", CLEAN["allocator/pool.c"])
        self.breaks("openings", "allocator/pool.c", "/* old.c - slots. */\n", "calls itself old.c")

    def test_mark(self):
        self.breaks("marks", "README.md", "TO" + "DO: write it\n", "README.md:1")

    def test_top_level(self):
        self.breaks("toplevel", "src/x.c", "/* x.c - x. */\n", "src:0")

    def test_public(self):
        head = "/* pool.h - slots. */\n\n"
        self.breaks("public", "allocator/include/skv/pool.h", head + "/* x. */\nint size(void);\n", "without the prefix")
        self.write("allocator/include/skv/pool.h", CLEAN["allocator/include/skv/pool.h"])
        self.breaks("public", "allocator/include/skv/pool.h", head + "int skv_size(void);\n", "not documented")

    def test_shell(self):
        self.breaks("shell", "tests/pool/run.sh", "#!/bin/sh\nrm -rf $1/x\n", "SC2086")

    def test_python(self):
        self.breaks("python", "tests/pool/x.py", "import requests\n", "imports requests")
        self.write("tests/kvcm/x.py", "import requests\n")  # a stock client may be used where it is the point
        self.write("tests/pool/x.py", "import os\n")
        self.breaks("python", "tests/pool/x.py", "def f(:\n", "x.py:1")

    def test_unit_without_words(self):
        text = CLEAN["deploy/slabkvd.service.in"] + "\nNoNewPrivileges=yes\n"
        self.breaks("unit", "deploy/slabkvd.service.in", text, "NoNewPrivileges stands in a paragraph")

    def test_unit_that_systemd_does_not_know(self):
        text = CLEAN["deploy/slabkvd.service.in"] + "\n# Safe.\nNoNewPrivilegs=yes\n"
        self.breaks("unit", "deploy/slabkvd.service.in", text, "NoNewPrivilegs")

    def test_log_lines(self):
        body = "/* pool.c - slots. */\nvoid f(int n)\n{\n\t%s;\n}\n"
        for wrong, words in (('skv_log(LOG, "x", "%u calls waited", n)', "may be '1 calls'"),
                             ('skv_log(LOG, "x", "%s: %" PRIu64\n\t\t" open sessions", f(1, 2), n)', "may be '1 sessions'"),
                             ('skv_log(LOG, "x", "giving up partition %u", n)', "is a field of the line"),
                             ('skv_log(LOG, "x", "mounted anew (%s)", err->message)', "may end in parentheses"),
                             ('skv_fail(err, rc, NULL, "%.80s (%s)", why.message, path)', "may end in parentheses")):
            self.write("allocator/pool.c", CLEAN["allocator/pool.c"])
            self.breaks("logs", "allocator/pool.c", body % wrong, "pool.c:4: ")
            self.assertIn(words, self.run_rule("logs")[1])
        for fine in ('skv_log(LOG, "x", "calls waited: %u", n)', 'skv_log(LOG, "x", "%u calls are the limit", SKV_MAX_CALLS)',
                     'skv_fail(err, rc, NULL, "no such file (%s)", path)', 'skv_log(LOG, "x", "it ends: %s", err->message)'):
            self.write("allocator/pool.c", body % fine)
            self.clean("logs")

    def test_thread_without_partition(self):
        body = "/* t.c - x. */\nstatic void *work(void *arg)\n{\n%s\treturn arg;\n}\nint f(void)\n{\n\treturn pthread_create(&t, NULL, work, c);\n}\n"
        self.breaks("logs", "server/core/lock/t.c", body % "", "the thread work does not begin with core_log")
        self.write("server/core/lock/t.c", body % "\tcore_log(arg);\n")
        self.clean("logs")

    def test_a_further_file_knows_routing(self):
        body = "/* x.c - x. */\nint x(void);\n\nint x(void)\n{\n\treturn skv_find(1);\n}\n"
        self.breaks("routing", "server/v1/x.c", body, "knows about routing (skv_find)")

    def test_a_file_that_knows_routing_no_more(self):
        self.breaks("routing", "server/v1/match.c", "/* match.c - x. */\nint x;\n", "take it off the list")

    def test_state_of_two_components(self):
        self.write(state.HEADER, "/* p. */\nstruct partition {\n\tuint32_t *a, b;\n\tstruct { int c; } d;\n};\n")
        body = "/* x. */\nvoid f(struct partition *p)\n{\n\t%s;\n}\n"
        self.write("server/core/model/x.c", body % "p->b = 1")
        for write in ("p->b++", "--r->p->b", "p->b |= 1", "grow(&p->b)", "p->d.c = 2", "p->a = NULL"):
            self.write("server/core/model/x.c", body % write)
            self.write("server/core/ops/x.c", body % "x = p->b")
            self.breaks("state", "server/core/ops/x.c", body % write, "is written by model, ops")
        for read in ("x = p->b", "p->b == 1", "p->a[1] = 2", "atomic_load(&p->b)", "x && p->b", "const int *x = &p->b", "x == &p->b"):
            self.write("server/core/ops/x.c", body % read)
            self.clean("state")

    def test_locks(self):
        with open(os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
                               "api/base/include/skv/lock.h"), encoding="utf-8") as f:
            self.write("api/base/include/skv/lock.h", f.read())
        path = os.path.join(self.root, "api/x.c")
        command = f"cc -Wall -Iapi/base/include -std=gnu11 -c {path}"
        self.write("build/compile_commands.json", json.dumps([{"directory": self.root, "file": path, "command": command}]))
        body = ("/* x.c - x. */\n#include <skv/lock.h>\nstruct x {\n\tstruct skv_mutex lock;\n\tstruct skv_cond wake;\n\tint n;\n};\n"
                "static void add_locked(struct x *x) SKV_REQUIRES(x->lock)\n{\n\tx->n++;\n}\n"
                "void f(struct x *x);\nvoid f(struct x *x)\n{\n%s}\n")
        right = "\tskv_mutex_lock(&x->lock);\n\tadd_locked(x);\n\tskv_mutex_unlock(&x->lock);\n"
        for wrong, words in ((right[: right.rindex("\tskv")], "still held"), ("\tadd_locked(x);\n", "requires holding"),
                             (right + "\tskv_mutex_unlock(&x->lock);\n", "was not held"),
                             ("\tskv_cond_wait(&x->wake, &x->lock);\n\tadd_locked(x);\n", "requires holding"),
                             ("\tif (x->n)\n\t\tskv_mutex_lock(&x->lock);\n", "not held on every path")):
            self.write("api/x.c", body % right)
            self.breaks("locks", "api/x.c", body % wrong, words)

    def test_decisions(self):
        page, index = "docs/decisions/0001-slots.md", "docs/decisions/README.md"
        right = CLEAN[page]
        self.write(page, right.replace("Context\n", "Context\n\n" + "w " * 285))
        self.clean("decisions")
        for wrong, said in ((right.replace("# 1.", "# 2."), "does not begin with"), (right.replace("## Rejected", "## Cost"), "has the headings"),
                            (right.replace("Context\n", "Context\n\n" + "w " * 300), "300 is the most"),
                            (right.replace("## Context", "Superseded.\n\n## Context"), "is superseded"),
                            (right.replace("Keep slots", "Keep it"), "does not have"),
                            (right.replace("pool.c", "include"), "names allocator/include")):
            self.breaks("decisions", page, wrong, said)
            self.write(page, right)
        self.breaks("decisions", "docs/decisions/0001-twice.md", right, "has the number of")
        os.remove(os.path.join(self.root, "docs/decisions/0001-twice.md"))
        self.breaks("decisions", index, CLEAN[index].replace("allocator/pool.c", "allocator/none.c"), "is not there")

    def test_paragraphs(self):
        page = "docs/operate/X.md"
        self.write(page, "# X\n\n- a " + "w " * 80 + "\n- b " + "w " * 80 + "\n\n```\n" + "w " * 200 + "\n```\n\n| " + "w " * 200 + "|\n")
        self.breaks("paragraphs", page, "# X\n\nw.\n\n" + "w " * 91 + "\n", page + ":5: a paragraph of 91 words")

    def test_comments(self):
        page, right = "allocator/pool.c", CLEAN["allocator/pool.c"]
        ends = right + "/*\n * A list:\n *  - a\n */\nint a; /* short */\n/* Two\n * lines. */\nconst char *s = \"/* it */\";\n"
        self.write(page, ends)
        for wrong, said in ((right + "/* It is one. */\n", ":8: a comment begins with 'it'"),
                            (right + "\t/*\n\t * What's left. */\n", ":8: a comment begins with 'what's'"),
                            (right.replace("slots.", "those of a pool."), ":1: a comment begins with 'those'"),
                            (right + "int a; /* first\n\t* second */\n", ":8: a comment of several lines beside code"),
                            (right + "/* first\n * second */ int a;\n", ":8: a comment of several lines beside code"),
                            (right + "/* ---- title\n * ------- */\n", ":8: a title whose line is broken"),
                            (right + "/* first\n\t\t\t\t*/\nint a;\n", ":8: the end of a comment stands apart")):
            self.breaks("comments", page, wrong, page + said)
            self.write(page, ends)

    def test_code_keeps_lines(self):
        self.assertEqual(tree.code('a /* b\n c */ "d\\"/*" // e\nf'), 'a  \n ""  \nf')

    def test_left_by_runs(self):
        for name in ("build", "build-asan/x.c", "slabkv-data"):
            self.write(name + "/CMakeLists.c", "int x;\n")
        self.clean("toplevel")
        self.clean("openings")


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    unittest.main()
