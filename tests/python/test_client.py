"""The package with a real manager."""

import asyncio
import gc
import http.server
import multiprocessing
import os
import pathlib
import re
import select
import signal
import ssl
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
from unittest import mock

import slabkv
from daemon import Daemon, wait_for
from managed import WithManager, block
from slabkv import Result

SIZE = 65536


class WithInstance(WithManager):
    def setUp(self):
        super().setUp()
        self.name = self.id().rsplit(".", 1)[-1]
        self.kv.put_instance(self.name, SIZE)
        self.addCleanup(lambda: slabkv.Client(self.daemon.url).delete_instance(self.name))


class Blocks(WithInstance):
    def test_what_is_written_when_all_is_purged_is_gone(self):
        self.assertEqual(self.kv.put(self.name, ["a"], [block("a")]), [Result.WRITTEN])
        session = self.kv.call("POST", f"/v1/instances/{self.name}/start", {"keys": ["b"]})["session"]
        self.assertEqual(self.kv.purge([self.name]), {"instances": [self.name], "blocks": 1, "sessions": 1})
        self.assertEqual(self.kv.call("POST", f"/v1/sessions/{session}/finish", {"success": True})["deleted"], [0])
        self.assertEqual(self.kv.exists(self.name, ["a", "b"]), [False, False])
        self.assertEqual(self.kv.purge(prefix=self.name)["blocks"], 0)
        with self.assertRaises(slabkv.InvalidError):
            self.kv.purge()
        with self.assertRaises(slabkv.NotFoundError):
            self.kv.purge(["nobody"])
        self.assertFalse(Result.DELETED)

    def test_there_and_back_with_each_form_of_keys(self):
        for keys in (["a", "bé", "c" * 1000], [1, 2, (1 << 64) - 1], [bytes([i]) * 16 for i in range(3)]):
            data = [block(str(k)) for k in keys]
            self.assertEqual(self.kv.put(self.name, keys, data), [Result.WRITTEN] * 3)
            self.assertEqual(self.kv.put(self.name, keys, data), [Result.EXISTS] * 3)
            room = [bytearray(SIZE) for _ in keys]
            self.assertEqual(self.kv.get(self.name, keys, room), [Result.HIT] * 3)
            self.assertEqual(room, data)
            self.assertEqual(self.kv.exists(self.name, keys), [True] * 3)
            self.assertEqual(self.kv.match(self.name, keys), 3)
            self.kv.delete(self.name, keys[1:2])
            self.assertEqual(self.kv.exists(self.name, keys), [True, False, True])
            self.assertEqual(self.kv.match(self.name, keys), 1)

    def test_every_sort_of_buffer(self):
        import array
        import mmap

        whole = mmap.mmap(-1, 2 * SIZE)
        whole[:SIZE] = block(1)
        sorts = [bytes(block(1)), bytearray(block(1)), memoryview(bytearray(block(1))), memoryview(block(1)),
                 array.array("Q", block(1)), memoryview(whole)[:SIZE], memoryview(bytearray(block(1))).cast("B", [256, 256])]
        keys = list(range(len(sorts)))
        self.assertTrue(all(self.kv.put(self.name, keys, sorts)))
        rooms = [bytearray(SIZE), memoryview(whole)[SIZE:], array.array("Q", bytes(SIZE))]
        self.assertTrue(all(self.kv.get(self.name, keys[:3], rooms)))
        self.assertEqual([bytes(r) for r in rooms], [block(1)] * 3)
        del rooms, sorts
        gc.collect()
        whole.close()

    def test_parts_and_pointers(self):
        name = self.name + "-parts"
        self.kv.put_instance(name, {"k": 4096, "v": 8192})
        self.addCleanup(lambda: slabkv.Client(self.daemon.url).delete_instance(name))
        k, v = block(1, 4096), block(2, 8192)
        self.assertTrue(self.kv.put(name, [1], [[k, v]])[0])
        import ctypes
        room = (ctypes.c_char * 12288)()
        base = ctypes.addressof(room)
        where = slabkv.Pointers([base, base + 4096], [4096, 8192], room)
        self.assertTrue(self.kv.get(name, [1], where)[0])
        self.assertEqual(room.raw, k + v)

    def test_wrong_sizes_are_refused(self):
        with self.assertRaises(slabkv.InvalidError) as e:
            self.kv.put(self.name, [1], [bytes(SIZE - 1)])
        self.assertIn(str(SIZE), str(e.exception))
        self.kv.put(self.name, [1], [bytes(SIZE)])
        with self.assertRaises(slabkv.InvalidError):
            self.kv.get(self.name, [1], [bytearray(SIZE - 1)])
        with self.assertRaises(slabkv.InvalidError):
            self.kv.put(self.name, [1, 2, 3], [bytes(SIZE)] * 2)
        with self.assertRaises(slabkv.ConflictError):
            self.kv.put_instance(self.name, SIZE * 2)

    def test_errors_are_exceptions_with_the_sentence(self):
        with self.assertRaises(slabkv.NotFoundError) as e:
            self.kv.get("no-such-instance", [1], [bytearray(8)])
        self.assertIn("no-such-instance", str(e.exception))
        self.assertEqual(e.exception.code, "not_found")
        with slabkv.Client("http://127.0.0.1:9", timeout=0.3) as nobody:
            with self.assertRaises((slabkv.UnreachableError, slabkv.TimedOutError)):
                nobody.exists(self.name, [1])
            self.assertFalse(nobody.ready())

    def test_a_chain_and_a_lease(self):
        self.kv.put(self.name, ["1", "2"], [block(1), block(2)])
        self.kv.put(self.name, ["3"], [block(3)], parent="2")
        with self.kv.lease(self.name, ["1", "2", "3", "4"], seconds=2) as lease:
            self.assertEqual((lease.matched, lease.hits), (3, [True, True, True, False]))
            self.assertTrue(0 < lease.seconds <= 2)
        with self.kv.lease(self.name, ["4", "3"], seconds=2, prefix=False) as lease:
            self.assertEqual(lease.hits, [False, True])
        self.assertEqual(self.kv.pin(self.name, ["1", "4"], 60), 1)
        self.assertEqual(self.kv.unpin(self.name), 1)

    def test_damage_on_disk_is_a_miss(self):
        self.kv.put(self.name, ["x"], [block("damaged")])
        head = block("damaged")[:64]
        for path in self.daemon.slabs():
            data = path.read_bytes()
            at = data.find(head)
            if at >= 0:
                with open(path, "r+b") as f:
                    f.seek(at + 100)
                    f.write(b"\0" * 64)
        posix = slabkv.Client(self.daemon.url, engine="posix")
        self.addCleanup(posix.close)
        self.assertEqual(posix.get(self.name, ["x"], [bytearray(SIZE)]), [Result.MISMATCH])
        self.assertEqual(self.kv.match(self.name, ["x"]), 0)  # it was reported
        self.assertEqual(self.kv.put(self.name, ["x"], [block("damaged")]), [Result.WRITTEN])
        room = bytearray(SIZE)
        self.assertEqual((posix.get(self.name, ["x"], [room]), room), ([Result.HIT], block("damaged")))

    def test_none_at_all(self):
        self.assertEqual(self.kv.get(self.name, [], []), [])
        self.assertEqual(self.kv.match(self.name, []), 0)

    def test_the_manager_tells(self):
        self.assertIn("blocks", self.kv.stats())
        self.assertIn(self.name, [i["id"] for i in self.kv.objects("instances")])

    def test_lists_in_pages(self):
        for i in range(5):
            self.kv.put_instance(f"{self.name}-{i}", SIZE)
        everything = [i["id"] for i in self.kv.objects("instances")]
        self.assertEqual(everything, sorted(set(everything)))
        first = everything.index(f"{self.name}-0")
        self.assertEqual([i["id"] for i in self.kv.objects("instances", after=everything[first], limit=3)],
                         [f"{self.name}-{i}" for i in range(1, 4)])
        self.assertEqual(list(self.kv.objects("instances", limit=0)), [])
        with mock.patch("slabkv.client.PAGE", 2):
            self.assertEqual([i["id"] for i in self.kv.objects("instances")], everything)
            self.assertEqual([i["id"] for i in self.kv.objects("instances", limit=3)], everything[:3])

    def test_each_block_that_failed_says_why(self):
        """A host that finds the storage in none of its directories; the library tells the log, but not for each call."""
        self.kv.put(self.name, ["a"], [block("a")])
        script = f"""if True:
            import slabkv
            kv = slabkv.Client({self.daemon.url!r}, mounts={str(self.daemon.folder)!r})
            for i in range(3):
                put = kv.put({self.name!r}, ["a", f"b{{i}}"], [bytes({SIZE})] * 2)
                got = kv.get({self.name!r}, ["a", "nothing"], [bytearray({SIZE})] * 2)
            print([r.name for r in put], repr(put.why(0)), put.why(1), sep="|")
            print([r.name for r in got], got.why(0), repr(got.why(1)), sep="|")
            """
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
        put, got = (line.split("|") for line in done.stdout.splitlines())
        self.assertEqual(put[:2], ["['EXISTS', 'FAILED']", "None"])
        self.assertEqual((got[0], got[2]), ("['ERROR', 'MISS']", "None"))
        for why in (put[2], got[1]):
            self.assertIn("marker slabkv-storage", why)
        told = [line for line in done.stderr.splitlines() if "blocks failed: " in line]
        self.assertEqual(len(told), 1, done.stderr)
        self.assertIn("marker slabkv-storage", told[0])

    def test_memory_is_registered_once(self):
        pool = bytearray(1 << 20)
        self.kv.register(pool)
        view = memoryview(pool)
        self.kv.put(self.name, [1], [view[:SIZE]])
        self.kv.unregister(pool)


class SmallStore(unittest.TestCase):
    def test_more_than_a_session_may_hold_goes_in_several(self):
        """A group allows half of what it may hold at a time: a long prompt in a small store is stored all the same."""
        n, size = 40, 4 * SIZE  # of about 60 that there is room for
        data = [block(i, size) for i in range(n)]
        for how, keys in (("chain", [f"k{i}" for i in range(n)]), ("independent", list(range(n))), ("queue", [slabkv.key(i) for i in range(n)])):
            with self.subTest(how), Daemon(capacity="16M", unit="4M") as d, slabkv.Client(d.url) as kv:
                kv.put_instance("small", size)
                if how == "queue":  # which makes one call of several operations
                    with kv.queue() as queue:
                        tags = [queue.put("small", [k], [b]) for k, b in zip(keys, data)]
                        done = {}
                        while len(done) < n:
                            select.select([queue], [], [], 20)
                            done.update((c.tag, c.results[0]) for c in queue.drain())
                        results = [done[t] for t in tags]
                else:
                    results = kv.put("small", keys, data, independent=how == "independent")
                self.assertEqual(results, [Result.WRITTEN] * n)
                rooms = [bytearray(size) for _ in range(n)]
                self.assertEqual(kv.get("small", keys, rooms), [Result.HIT] * n)
                self.assertEqual(rooms, data)
                kv.put_instance("huge", 12 << 20)
                with self.assertRaises(slabkv.InvalidError) as e:
                    kv.put("huge", [1], [bytes(12 << 20)])
                self.assertIn("this group allows", str(e.exception))


class Documents(WithInstance):
    def test_what_they_show_runs(self):
        """The blocks of Python that stand alone: `python` fences with a client in them, and the package's own words."""
        root = pathlib.Path(__file__).resolve().parents[2]
        texts = {"slabkv": textwrap.dedent(slabkv.__doc__.split("\n\n", 1)[1])}
        for name in ("README.md", "client/python/README.md", "docs/start/PYTHON.md"):
            if (root / name).exists():  # with the wheel alone there are none
                for i, text in enumerate(re.findall(r"```python\n(.*?)```", (root / name).read_text(), re.S)):
                    if "import slabkv" in text:
                        texts[f"{name} {i}"] = text
        self.assertGreater(len(texts), 3)
        for name, text in texts.items():
            with self.subTest(name):
                self.kv.delete_instance("llama")
                self.assertIn("http://127.0.0.1:7333", text)
                out = subprocess.run([sys.executable, "-c", text.replace("http://127.0.0.1:7333", self.daemon.url)], text=True,
                                     capture_output=True, timeout=60)
                self.assertEqual(out.returncode, 0, out.stderr)
                for line in text.splitlines():  # what it says that is printed
                    if "print(" in line and "# [" in line:
                        self.assertIn(line.split("# ", 1)[1], out.stdout)


class Lives(WithInstance):
    def test_closed(self):
        self.kv.close()
        self.kv.close()
        with self.assertRaises(slabkv.ClosedError):
            self.kv.exists(self.name, [1])

    def test_close_waits_for_calls_of_other_threads(self):
        self.kv.put(self.name, [1], [block(1)])
        self.daemon.signal(signal.SIGSTOP)
        results = []
        t = threading.Thread(target=lambda: results.append(self.kv.exists(self.name, [1])))
        t.start()
        wait_for(self.kv._handle.in_use)
        closer = threading.Thread(target=self.kv.close)
        closer.start()
        wait_for(lambda: self.kv._handle.closing)
        self.daemon.signal(signal.SIGCONT)
        t.join()
        closer.join()
        self.assertEqual(results, [[True]])

    def test_garbage_is_closed_queues_first(self):
        """The collector finalizes what refers to each other in any order, here the client first."""
        closed = []
        kv = slabkv.Client(self.daemon.url)
        kv.mine = kv, kv.queue(), kv.queue()
        for handle in (kv._handle, *(q._handle for q in kv.mine[1:])):
            handle._close = lambda pointer, close=handle._close, what=handle.what: (closed.append(what), close(pointer))
        del kv, handle
        gc.collect()
        self.assertEqual(closed, ["Queue", "Queue", "Client"])

    def test_after_a_fork_the_child_is_refused(self):
        def child(out):
            try:
                self.kv.exists(self.name, [1])
            except slabkv.ClosedError as e:
                out.send(str(e))
            try:
                queue.get(self.name, [1], [bytearray(SIZE)])
            except slabkv.ClosedError as e:
                out.send(str(e))
            with slabkv.Client(self.daemon.url) as own:
                out.send(own.exists(self.name, [1]))
            out.close()

        self.kv.put(self.name, [1], [block(1)])
        queue = self.kv.queue()
        here, there = multiprocessing.Pipe()
        p = multiprocessing.get_context("fork").Process(target=child, args=(there,))
        p.start()
        for _ in range(2):
            self.assertIn("after a fork the child opens its own", here.recv())
        self.assertEqual(here.recv(), [True])
        p.join()
        queue.close()
        self.assertEqual(self.kv.exists(self.name, [1]), [True])

    def test_a_manager_that_stops_answering(self):
        with slabkv.Client(self.daemon.url, timeout=0.5) as kv:
            self.daemon.signal(signal.SIGSTOP)
            try:
                with self.assertRaises((slabkv.TimedOutError, slabkv.UnreachableError)):
                    kv.exists(self.name, [1])
            finally:
                self.daemon.signal(signal.SIGCONT)
        self.assertEqual(self.kv.exists(self.name, [1]), [False])


class Queues(WithInstance):
    def finish(self, queue, n):
        done = {}
        while len(done) < n:
            self.assertTrue(select.select([queue], [], [], 20)[0])
            done.update((c.tag, c) for c in queue.drain())
        self.assertEqual(select.select([queue], [], [], 0)[0], [])
        return done

    def test_many_at_a_time(self):
        with self.kv.queue() as queue:
            puts = [queue.put(self.name, [10 * i, 10 * i + 1], [block(i), block(i + 1)]) for i in range(20)]
            done = self.finish(queue, 20)
            self.assertTrue(all(all(done[t].results) for t in puts))
            rooms = [bytearray(SIZE) for _ in range(20)]
            gets = [queue.get(self.name, [10 * i], [rooms[i]]) for i in range(20)]
            asked = queue.exists(self.name, [10, 12])
            gone = queue.get("no-such-instance", [1], [bytearray(8)])
            done = self.finish(queue, 22)
            self.assertTrue(all(done[t].results == [Result.HIT] for t in gets))
            self.assertEqual(rooms, [block(i) for i in range(20)])
            self.assertEqual(done[asked].results, [Result.HIT, Result.MISS])
            self.assertIsInstance(done[gone].error, slabkv.NotFoundError)
            self.assertEqual(queue.in_flight, 0)

    def test_buffers_live_as_long_as_their_operation(self):
        with self.kv.queue() as queue:
            tags = [queue.put(self.name, [i], [bytearray(block(i))]) for i in range(50)]
            gc.collect()
            done = self.finish(queue, 50)
            self.assertTrue(all(done[t].results[0] for t in tags))
        room = bytearray(SIZE)
        for i in range(50):
            self.kv.get(self.name, [i], [room])
            self.assertEqual(room, block(i))

    def test_close_means_that_nothing_touches_the_buffers(self):
        data = {i: block(i) for i in range(40)}
        self.kv.put(self.name, list(data), list(data.values()))
        pattern = b"\xa5" * SIZE
        for round_ in range(5):
            rooms = [bytearray(SIZE) for _ in data]
            queue = self.kv.queue()
            for i in data:
                queue.get(self.name, [i], [rooms[i]])
            queue.close()
            for room in rooms:
                room[:] = pattern
            time.sleep(0.05)  # for what must not come
            self.assertTrue(all(room == pattern for room in rooms), round_)

    def test_python_costs_little(self):
        """128 operations cost at most 0.2 ms of CPU here, without the library's own time."""
        from slabkv import _job, _native

        room = memoryview(bytearray(128 * 512))
        views = [room[i * 512 : (i + 1) * 512] for i in range(128)]
        keys = [slabkv.key(i) for i in range(128)]
        best = 1.0
        for _ in range(200):
            t = time.thread_time()
            _job.Job(_native.GET, b"i", keys, views).outcome()
            best = min(best, time.thread_time() - t)
        print(f"128 operations: {best * 1e3:.3f} ms")
        self.assertLess(best, 0.0002)


class Asyncio(WithInstance):
    def run_async(self, body):
        async def main():
            async with slabkv.AsyncClient(self.daemon.url) as kv:
                return await body(kv)

        return asyncio.run(main())

    def test_there_and_back(self):
        async def body(kv):
            await asyncio.gather(*(kv.put(self.name, [i], [block(i)]) for i in range(30)))
            rooms = [bytearray(SIZE) for _ in range(30)]
            found = await asyncio.gather(*(kv.get(self.name, [i], [rooms[i]]) for i in range(30)))
            self.assertTrue(all(f == [Result.HIT] for f in found))
            self.assertEqual(rooms, [block(i) for i in range(30)])
            self.assertEqual(await kv.exists(self.name, [1, 99]), [True, False])
            self.assertEqual(await kv.match(self.name, [1, 2, 99]), 2)
            self.assertEqual(await kv.match([self.name], [1, 2, 99]), [2])
            with await kv.lease(self.name, [1]) as lease:
                self.assertEqual(lease.matched, 1)
            await kv.delete(self.name, [1])
            self.assertEqual(await kv.exists(self.name, [1]), [False])
            with self.assertRaises(slabkv.NotFoundError):
                await kv.get("no-such-instance", [1], [bytearray(8)])

        self.run_async(body)

    def test_a_cancelled_get_ends_when_nothing_touches_its_buffer(self):
        async def body(kv):
            await kv.put(self.name, [1], [block(1)])
            for delay in (0, 0.0001, 0.001, 0.005):
                room = bytearray(SIZE)
                with self.assertRaises(asyncio.TimeoutError) if delay == 0 else self.subTest(delay=delay):
                    try:
                        await asyncio.wait_for(kv.get(self.name, [1], [room]), delay)
                    except asyncio.TimeoutError:
                        if delay == 0:
                            raise
                room[:] = b"\xa5" * SIZE
                await asyncio.sleep(0.02)
                self.assertEqual(room, b"\xa5" * SIZE)
            self.assertEqual(await kv.exists(self.name, [1]), [True])

        self.run_async(body)

    def test_a_cancelled_call_to_a_manager_that_is_stopped(self):
        async def body(kv):
            room = bytearray(SIZE)
            self.daemon.signal(signal.SIGSTOP)
            try:
                task = asyncio.ensure_future(kv.get(self.name, [1], [room]))
                while not self.daemon.unread():  # the call has begun
                    await asyncio.sleep(0.01)
                task.cancel()
                await asyncio.sleep(0.1)
                self.assertFalse(task.done())  # it has begun: the buffer is not free yet
            finally:
                self.daemon.signal(signal.SIGCONT)
            with self.assertRaises(asyncio.CancelledError):
                await task

        self.run_async(body)


class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


class Tls(unittest.TestCase):
    """https with a certificate that nobody has signed: which file says that it is trusted?"""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.cert, key = self.folder.name + "/cert.pem", self.folder.name + "/key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                        "-out", self.cert, "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                       check=True, capture_output=True)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ready)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.url = f"https://localhost:{self.server.server_port}"

    def ready(self, **options):
        with slabkv.Client(self.url, timeout=30, **options) as kv:
            return kv.ready()

    def test_the_option_the_environment_and_neither(self):
        self.assertTrue(self.ready(ca_file=self.cert))
        self.assertFalse(self.ready())
        os.environ["SSL_CERT_FILE"] = self.cert
        try:
            self.assertTrue(self.ready())
            self.assertFalse(self.ready(ca_file="/etc/ssl/certs/ca-certificates.crt"))
        finally:
            del os.environ["SSL_CERT_FILE"]

    def test_the_sentence_says_what_to_give(self):
        with slabkv.Client(self.url, timeout=30, options={"rounds": 1}) as kv, self.assertRaises(slabkv.UnreachableError) as e:
            kv.exists("x", [1])
        self.assertIn("SSL_CERT_FILE", str(e.exception))


class Tokens(unittest.TestCase):
    def test_a_token_is_needed_and_sent(self):
        with tempfile.NamedTemporaryFile("w") as tokens:
            tokens.write("write public s3cret-of-16-chars\n")
            tokens.flush()
            os.chmod(tokens.name, 0o600)
            with Daemon("--tokens-file", tokens.name) as d:
                with slabkv.Client(d.url) as kv, self.assertRaises(slabkv.DeniedError):
                    kv.exists("x", [1])
                with slabkv.Client(d.url, token="s3cret-of-16-chars") as kv:
                    kv.put_instance("x", 4096)
                    self.assertEqual(kv.exists("x", [1]), [False])


if __name__ == "__main__":
    unittest.main()
