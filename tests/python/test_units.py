"""What needs no manager: keys, buffers, namespaces, options, and sentences about what is wrong."""

import ast
import os
import pathlib
import subprocess
import sys
import unittest

import slabkv
from slabkv import _job, _native
from slabkv._connector import Settings, relying_on
from slabkv.namespace import Namespace

PACKAGE = pathlib.Path(slabkv.__file__).parent


def job(keys, blocks=None, kind=_native.PUT):
    return _job.Job(kind, b"i", keys, blocks)


class Keys(unittest.TestCase):
    def test_keys_of_one_form(self):
        for keys in (["a", 1], [1, "a"], [b"0" * 16, "a"], [b"short"], [-1], [1 << 64], [None], []):
            with self.assertRaises(slabkv.InvalidError, msg=repr(keys)) as e:
                job(keys)
            self.assertEqual(e.exception.field, "keys")

    def test_keys_of_other_lengths_that_add_up(self):
        with self.assertRaises(slabkv.InvalidError):
            job([b"0" * 15, b"1" * 17])

    def test_parts_do_not_run_together(self):
        found = [slabkv.key("a", "bc"), slabkv.key("ab", "c"), slabkv.key("abc"), slabkv.key(b"abc"), slabkv.key(1), slabkv.key("1")]
        self.assertEqual(len(set(found)), len(found))
        self.assertEqual(slabkv.key("a", 1, b"x"), slabkv.key("a", 1, b"x"))
        self.assertEqual(len(found[0]), 16)


class DeviceTensor:
    class device:  # noqa: N801
        type = "cuda"

    def data_ptr(self):
        raise AssertionError("a device pointer was asked for")


class CudaArray:
    __cuda_array_interface__ = {"data": (1, False)}


class Buffers(unittest.TestCase):
    def refused(self, blocks, kind=_native.PUT, error=slabkv.InvalidError):
        with self.assertRaises(error) as e:
            job(["a"], blocks, kind)
        self.assertEqual(e.exception.field, "blocks")
        return str(e.exception)

    def test_memory_of_a_device_is_refused_with_what_to_do(self):
        for thing in (DeviceTensor(), CudaArray()):
            self.assertIn("copy it to host memory first", self.refused([thing], error=slabkv.DeviceMemoryError))

    def test_what_is_no_buffer(self):
        self.refused(["text"])
        self.refused([memoryview(bytearray(8))[::2]])
        self.refused([b""])
        self.assertIn("read-only", self.refused([b"bytes"], _native.GET))
        self.refused([b"1", b"2", b"3", b"4", b"5"][:0] or [[b"1"], [b"1", b"2"]])

    def test_lengths(self):
        j = job(["a", "b"], [b"12345678", memoryview(bytearray(8)).cast("I")])
        self.assertEqual(list(j.refs[-1]), [8, 8])
        j = job(["a"], [[b"1", bytearray(2)]])
        self.assertEqual((j.batch.n_bufs, list(j.refs[-1])), (2, [1, 2]))

    def test_a_buffer_is_held_while_the_job_lives(self):
        room = bytearray(8)
        j = job(["a"], [room], _native.GET)
        with self.assertRaises(BufferError):
            room.clear()
        del j
        room.clear()


class Names(unittest.TestCase):
    BASE = dict(weights="w", dtype="bfloat16", layout="page_first", tokens=16)

    def test_whatever_shapes_the_bytes_is_another_name(self):
        base = Namespace("org/Model", **self.BASE)
        others = [
            Namespace("org/Model", **{**self.BASE, **change})
            for change in (dict(weights="v"), dict(dtype="float8_e4m3fn"), dict(dtype="float8_e5m2"), dict(layout="layer_first"),
                           dict(tokens=32), dict(parallel={"tp": 2, "tp_rank": 0}), dict(parallel={"tp": 2, "tp_rank": 1}),
                           dict(speculative="eagle"), dict(groups=["a"]), dict(hash_seed=1))
        ] + [Namespace("other/Model", **self.BASE)]
        names = {n.instance(64) for n in [base, *others]}
        self.assertEqual(len(names), 1 + len(others))
        self.assertEqual(base.instance(64), Namespace("org/Model", **self.BASE).instance(64))
        self.assertNotEqual(base.instance(64), base.instance(128))
        self.assertRegex(base.instance(64), r"^Model:[0-9a-f]{32}:64$")

    def test_a_new_start_after_new_weights(self):
        n = Namespace("m", **self.BASE)
        before = n.instance(1)
        n.renew()
        self.assertNotEqual(n.instance(1), before)

    def test_types_that_say_too_little(self):
        for dtype in ("fp8", "auto", ""):
            with self.assertRaises(slabkv.InvalidError):
                Namespace("m", **{**self.BASE, "dtype": dtype})

    def test_names_are_names(self):
        for model in ("", "/", "a b/c d", ".hidden", "x" * 500, "ü"):
            self.assertRegex(Namespace(model, **self.BASE).instance(1), r"^[A-Za-z0-9_][A-Za-z0-9._:=@+,-]{0,126}$")


class Package(unittest.TestCase):
    def test_an_unknown_option_names_those_that_there_are(self):
        with self.assertRaises(slabkv.InvalidError) as e:
            Settings("it", {"urll": "x"})
        self.assertIn("url", str(e.exception))
        with self.assertRaises(slabkv.InvalidError):
            slabkv.Client(options={"no_such_option": 1})
        with self.assertRaises(slabkv.InvalidError):
            slabkv.Client(engine="fast")

    def test_options_of_a_wrong_type_are_named(self):
        wrong = {"url": 5, "token": 1, "timeout": "soon", "retry": None, "mounts": ["/mnt", 1], "group": ["g"], "options": 3, "min_tokens": "few",
                 "register": "perhaps", "lock_seconds": {}, "locality": 7}
        for name, value in wrong.items():
            with self.subTest(name), self.assertRaises(slabkv.InvalidError) as e, relying_on("slabkv.it", "it"):
                Settings("slabkv.it", {name: value}, register=True, lock_seconds=30.0, locality=None)
            self.assertEqual(e.exception.field, name)
            self.assertIn(f"{name} is ", str(e.exception))
        s = Settings("slabkv.it", {"register": "false", "timeout": "2.5", "min_tokens": 0.5, "url": ["a", "b"], "model": pathlib.Path("m")}, register=True)
        self.assertEqual((s.register, s.timeout, s.min_tokens, s.url), (False, 2.5, 0.5, ["a", "b"]))

    def test_options_are_listed(self):
        self.assertIn("hf3fs_io_depth", slabkv.options())

    def test_a_library_that_is_none(self):
        for path, said in (("/nowhere/libslabkv.so", "cannot be loaded"), ("libc.so.6", "no libslabkv")):
            run = subprocess.run([sys.executable, "-c", "import slabkv; slabkv.Client()"], text=True, capture_output=True,
                                 env={**os.environ, "SLABKV_LIBRARY": path})
            self.assertNotEqual(run.returncode, 0)
            self.assertIn(said, run.stderr.splitlines()[-1])
            self.assertIn("ImportError", run.stderr.splitlines()[-1])

    def test_it_reads_as_python_3_9(self):
        for path in PACKAGE.glob("*.py"):
            ast.parse(path.read_text(), feature_version=(3, 9))

    def test_nothing_beside_the_standard_library(self):
        run = subprocess.run([sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); import slabkv; "
                              "print([m for m in sys.modules if m.split('.')[0] in ('numpy', 'torch', 'vllm', 'lmcache', 'sglang')])"],
                             text=True, capture_output=True, env=os.environ)
        self.assertEqual(run.stdout.strip(), "[]", run.stderr)


if __name__ == "__main__":
    unittest.main()
