"""Signal handlers that raise, at every line of the main thread: no byte lands in memory that was freed, and nothing waits for ever.

test_signals.py [COUNT]: COUNT interruptions by a timer (2000)."""

import asyncio
import contextlib
import gc
import os
import pathlib
import random
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time
import unittest

import slabkv
from managed import WithManager, block
from slabkv import Result, _calls

SIZE = 65536
KEYS = range(16)
COUNT = 2000
PACKAGE = str(pathlib.Path(slabkv.__file__).parent)


class Interruption(BaseException):
    """What a handler raises."""


BLOCKS = {k: block(k) for k in KEYS}


class Freed:
    """Memory of the size of the buffers that were given up, with a pattern: whoever still writes to those writes here."""

    def __init__(self):
        self.rooms = []

    def add(self):
        self.rooms.append(bytearray(b"\xa5" * SIZE))
        if len(self.rooms) > 64:
            self.check()

    def check(self):
        while self.rooms:
            assert self.rooms.pop() == b"\xa5" * SIZE, "foreign bytes"


class WithInstance(WithManager):
    def setUp(self):
        super().setUp()
        self.kv.put_instance("i", SIZE)
        self.kv.put("i", list(KEYS), list(BLOCKS.values()), independent=True)


def in_finalizer(frame):
    """Of something that was dropped earlier: Python ignores what is raised there, and the call that is meant goes on."""
    while frame and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    return frame is not None


def at_line(n):
    """A trace function that raises at the n-th line of the package that this thread comes to. What does not raise has come to an end."""
    left = [n]

    def trace(frame, event, _arg):
        if not frame.f_code.co_filename.startswith(PACKAGE) or in_finalizer(frame):
            return None
        # Python looks for signals after calls and where it jumps back, not between these two lines of drain.
        if event == "line" and not (frame.f_code.co_name == "drain" and "done" in frame.f_locals):
            left[0] -= 1
            if left[0] == 0:
                sys.settrace(None)
                raise Interruption
        return trace

    return trace


def each_line(scene):
    """Runs scene(interrupt) with an interruption at line 1, 2, 3... inside `with interrupt`, until there are no more lines."""
    n = 0
    interrupted = True
    while interrupted:
        n += 1
        interrupted = False

        @contextlib.contextmanager
        def interrupt():
            nonlocal interrupted
            sys.settrace(at_line(n))
            try:
                yield
            except Interruption:
                interrupted = True
            finally:
                sys.settrace(None)

        scene(interrupt())
    return n


class EveryLine(WithInstance):
    def test_submit(self):
        freed = Freed()
        queue = self.kv.queue()

        def scene(interrupt):
            room = bytearray(SIZE)
            with interrupt:
                queue.get("i", [1], [room])
            del room
            freed.add()

        lines = each_line(scene)
        self.assertGreater(lines, 20)
        drained = self.everything(queue)
        self.assertTrue(all(c.results == [Result.HIT] for c in drained))
        freed.check()
        queue.close()

    def everything(self, queue):
        done = []
        while queue.in_flight:
            self.assertTrue(select.select([queue], [], [], 20)[0])
            done += queue.drain()
        return done

    def test_drain(self):
        queue = self.kv.queue()

        def scene(interrupt):
            tags = {queue.exists("i", [k]) for k in KEYS}
            done = []
            self.assertTrue(select.select([queue], [], [], 20)[0])
            with interrupt:
                done += queue.drain()
            while len(done) < len(tags):
                done += queue.drain()
            self.assertEqual({c.tag for c in done}, tags)
            self.assertEqual(len(done), len(tags))

        self.assertGreater(each_line(scene), 10)
        queue.close()

    def test_close(self):
        def scene(interrupt):
            queue = self.kv.queue()
            rooms = [bytearray(SIZE) for _ in KEYS]
            for k, room in zip(KEYS, rooms):
                queue.get("i", [k], [room])
            with interrupt:
                queue.close()
            queue.close()
            for room in rooms:
                room[:] = b"\xa5" * SIZE
            gc.collect()
            self.assertEqual([bytes(r) == b"\xa5" * SIZE for r in rooms], [True] * len(rooms))

        self.assertGreater(each_line(scene), 5)

    def test_calls_that_wait(self):
        freed = Freed()

        def scene(interrupt):
            room = bytearray(SIZE)
            with interrupt:
                self.kv.get("i", [1], [room])
                with self.kv.lease("i", [1, 2]) as lease:
                    self.assertEqual(lease.matched, 2)
                self.kv.pin("i", [1], 5.0)
                self.kv.match("i", [1, 2])
            del room
            freed.add()

        self.assertGreater(each_line(scene), 50)
        freed.check()
        self.kv.close()
        self.assertFalse(self.kv._handle.in_use())

    def test_a_handler_that_calls(self):
        queue = self.kv.queue()
        self.addCleanup(queue.close)
        seen = []
        before = signal.signal(signal.SIGUSR1, lambda *_: seen.append((queue.exists("i", [1]), len(queue.drain()), self.kv.exists("i", [1]))))
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        thread = threading.Thread(target=lambda: [os.kill(os.getpid(), signal.SIGUSR1) for _ in range(200)])
        thread.start()
        while thread.is_alive():
            queue.exists("i", [2])
            queue.drain()
            self.kv.exists("i", [2])
        thread.join()
        self.everything(queue)
        self.assertTrue(seen)


class Timer(WithInstance):
    def test_interruptions_without_end(self):
        """A handler raises some COUNT times, wherever the program is."""
        count = 0
        freed = Freed()
        rng = random.Random(7)
        armed = False

        def handler(*_):
            nonlocal count
            if armed:
                count += 1
                raise Interruption

        before = signal.signal(signal.SIGALRM, handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        queue = self.kv.queue()
        n = 0
        while count < COUNT:
            n += 1
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.0001, 0.002))
            try:
                try:
                    armed = True
                    for _ in range(20):  # the signal may have come already
                        k = rng.choice(KEYS)
                        queue.get("i", [k], [bytearray(SIZE)])
                        queue.put("i", [1000 + n], [bytearray(SIZE)])
                        self.kv.get("i", [k], [bytearray(SIZE)])
                        with self.kv.lease("i", [k]):
                            queue.drain()
                except slabkv.FullError:
                    queue.drain()
                finally:
                    armed = False
            except Interruption:
                armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            freed.add()
            if n % 50 == 0:
                other = self.kv.queue()
                other.get("i", [1], [bytearray(SIZE)])
                signal.setitimer(signal.ITIMER_REAL, 0.0002)
                try:
                    armed = True
                    other.close()
                except Interruption:
                    pass
                armed = False
                signal.setitimer(signal.ITIMER_REAL, 0)
                del other
        while queue.in_flight:
            self.assertTrue(select.select([queue], [], [], 20)[0])
            queue.drain()
        freed.check()
        queue.close()
        room = bytearray(SIZE)
        self.assertEqual(self.kv.get("i", [1], [room]), [Result.HIT])
        self.assertEqual(room, BLOCKS[1])
        print(count, "interruptions")


class Finalizers(unittest.TestCase):
    def test_the_last_reference_goes_within_the_close(self):
        """in_use lets a frame of an ended thread go, and with it the owner of the handle, or of the one around it."""
        for around in (False, True):
            closed = []
            outer = _calls.Handle("client", 1, closed.append)
            inner = _calls.Handle("queue", 2, closed.append, outer)
            dropped = [outer if around else inner]

            def in_use(_but=None, dropped=dropped):
                while dropped:
                    dropped.pop().drop()
                return False

            inner.in_use = in_use
            thread = threading.Thread(target=inner._end, args=(0,), daemon=True)
            thread.start()
            thread.join(20)
            self.assertFalse(thread.is_alive())
            outer.close()
            self.assertEqual(closed, [2, 1])


class Waits(WithInstance):
    def test_control_c_ends_each_wait(self):
        """The manager stands still, and calls would wait for ten minutes: an interruption ends the wait, and the program."""
        code = textwrap.dedent("""
            import inspect, os, signal, sys, threading
            import slabkv
            kv = slabkv.Client(sys.argv[1], timeout=600)
            kv.put_instance("j", 8)
            queue = kv.queue()
            room = bytearray(8)
            tried = dict(match=lambda: kv.match("j", [1]), exists=lambda: kv.exists("j", [1]), lease=lambda: kv.lease("j", [1]), stats=kv.stats)
            calls = dict(get=lambda: kv.get("j", [1], [room]), put=lambda: kv.put("j", [1], [room]), delete=lambda: kv.delete("j", [1]),
                         purge=lambda: kv.purge(["j"]), pin=lambda: kv.pin("j", [1], 5.0), unpin=lambda: kv.unpin("j"), ready=kv.ready,
                         call=lambda: kv.call("GET", "/v1/groups"), put_instance=lambda: kv.put_instance("k", 8),
                         delete_instance=lambda: kv.delete_instance("k"), objects=lambda: [*kv.objects("groups")], **tried)
            every = {n for n, f in inspect.getmembers(slabkv.Client, inspect.isfunction) if n[0] != "_"}
            assert every - {"queue", "register", "unregister"} == {*calls, "close"}, every  # these ask no manager
            calls = [*((0.2, c) for c in calls.values()), (0.2, queue.close), (0.2, kv.close)]
            calls = [*((0.01, c) for c in tried.values()), *calls]  # 10 ms: while they are tried on this thread
            print("ready", len(calls), flush=True)
            sys.stdin.readline()
            queue.get("j", [1], [room])
            for delay, call in calls:
                timer = threading.Thread(target=lambda: [os.kill(os.getpid(), signal.SIGINT) if over.wait(delay) is False else 0])
                over = threading.Event()
                timer.start()
                try:
                    call()
                    print("it returned")
                except KeyboardInterrupt:
                    print("interrupted", flush=True)
                over.set()
                timer.join()
        """)
        self.addCleanup(self.daemon.signal, signal.SIGCONT)
        program = subprocess.Popen([sys.executable, "-B", "-c", code, self.daemon.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True)
        self.addCleanup(program.kill)
        ready, n = program.stdout.readline().split()
        self.assertEqual(ready, "ready")
        self.daemon.signal(signal.SIGSTOP)
        said, _ = program.communicate("go on\n", timeout=60)
        self.assertEqual(said, "interrupted\n" * int(n))
        self.assertEqual(program.returncode, 0)

    def test_close_ends_what_is_awaited(self):
        async def scene(timeout):
            kv = slabkv.AsyncClient(self.daemon.url, timeout=timeout)
            rooms = [bytearray(SIZE) for _ in range(32)]
            tasks = [asyncio.ensure_future(kv.get("i", [1], [room])) for room in rooms]
            tasks += [asyncio.ensure_future(kv.match("i", [1, 2]))]
            await asyncio.sleep(0)
            if timeout < 1:
                self.daemon.signal(signal.SIGSTOP)
            try:
                await kv.close()
            finally:
                self.daemon.signal(signal.SIGCONT)
            results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
            with self.assertRaises(slabkv.ClosedError):
                await kv.get("i", [1], [rooms[0]])
            self.assertEqual([t for t in asyncio.all_tasks() if t is not asyncio.current_task()], [])
            return results

        for timeout in (10, 0.5):
            for result in asyncio.run(scene(timeout))[:-1]:
                self.assertTrue(result in ([Result.HIT], [Result.MISS]) or isinstance(result, slabkv.Error), result)  # a lease that has ended


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        COUNT = int(sys.argv.pop(1))
    unittest.main()
