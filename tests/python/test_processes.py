"""Eight processes on one host through one package: two stores at a time killed with SIGKILL, whatever they were doing. No process ever reads
a byte that nobody wrote for that key, and nothing is left in /dev/shm. And: a buffer is the caller's again when its operation is over."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
import unittest

import slabkv
from daemon import Daemon, wait_for
from slabkv import Result

SIZE, KEYS, PROCESSES, KILLS = 65536, 200, 8, 12
SECONDS = float(os.environ.get("SKV_SECONDS", "6"))


def content(key):
    """What a block must hold: every byte of it tells its key."""
    return random.Random(key).randbytes(256) * (SIZE // 256)


def worker(url, seed):
    """Puts, gets and deletes for ever, through calls and a queue; a wrong byte ends it with 3."""
    r = random.Random(seed)
    rooms = [bytearray(SIZE) for _ in range(8)]
    with slabkv.Client(url, timeout=10) as kv, kv.queue() as queue:
        print("ready", flush=True)
        while True:
            keys = r.sample(range(KEYS), 8)
            what = r.randrange(8)
            try:
                if what < 3:
                    kv.put("i", keys, [content(k) for k in keys])
                elif what == 3:
                    kv.delete("i", keys[:2])
                elif what == 4:
                    queue.put("i", keys, [content(k) for k in keys], independent=True)
                    while queue.in_flight:
                        queue.drain()
                        time.sleep(0.001)
                else:
                    for k, found, room in zip(keys, kv.get("i", keys, rooms), rooms):
                        if found == Result.HIT and room != content(k):
                            print(f"wrong: {k}", flush=True)
                            os._exit(3)
            except slabkv.Error as e:
                if not isinstance(e, (slabkv.FullError, slabkv.TimedOutError, slabkv.UnreachableError)):
                    raise


def start(url, seed):
    return subprocess.Popen([sys.executable, "-B", __file__, "worker", url, str(seed)], stdout=subprocess.PIPE, text=True)


class Killed(unittest.TestCase):
    def test_eight_processes_some_of_them_killed(self):
        before = set(os.listdir("/dev/shm"))
        r = random.Random(1)
        with Daemon(capacity="512M") as d:  # what was deleted while it was leased stays taken so long, what killed writers had begun too
            with slabkv.Client(d.url) as kv:
                kv.put_instance("i", SIZE)
                workers = [start(d.url, i) for i in range(PROCESSES)]
                try:
                    for w in workers:
                        self.assertEqual(w.stdout.readline(), "ready\n")
                    for n in range(KILLS):
                        time.sleep(SECONDS / KILLS)
                        i = r.randrange(PROCESSES)
                        self.assertIsNone(workers[i].poll(), "a worker ended by itself")
                        workers[i].send_signal(signal.SIGKILL)
                        workers[i].wait()
                        workers[i].stdout.close()
                        workers[i] = start(d.url, 100 + n)
                        self.assertEqual(workers[i].stdout.readline(), "ready\n")
                    self.assertEqual([w.poll() for w in workers], [None] * PROCESSES)
                finally:
                    for w in workers:
                        w.kill()
                        w.wait()
                        w.stdout.close()
                room, hits = bytearray(SIZE), 0
                for k in range(KEYS):
                    if kv.get("i", [k], [room])[0] == Result.HIT:
                        self.assertEqual(room, content(k), k)
                        hits += 1
        left = {n for n in set(os.listdir("/dev/shm")) - before if "slabkv" in n or "hf3fs" in n}
        print(f"{PROCESSES} processes, {KILLS} killed: 0 wrong bytes, {hits} of {KEYS} blocks there and right, {len(left)} files in /dev/shm")
        self.assertEqual(left, set())
        self.assertGreater(hits, 0)


class Stuck(unittest.TestCase):
    """The manager stands still for longer than the timeout, again and again, so that calls fail while others of the same queue read. (Storage
    that hangs: tests/client.) A buffer whose operation is over belongs to the test, which fills it with a pattern."""

    def test_no_io_after_the_end(self):
        with Daemon() as d, slabkv.Client(d.url, timeout=0.2) as kv:
            kv.put_instance("i", SIZE)
            keys = list(range(64))
            data = [content(k) for k in keys]
            for at in range(0, 64, 16):
                kv.put("i", keys[at : at + 16], data[at : at + 16])
            stop = threading.Event()

            def jolt():
                while not stop.is_set():
                    d.signal(signal.SIGSTOP)
                    time.sleep(0.35)
                    d.signal(signal.SIGCONT)
                    time.sleep(0.05)

            thread = threading.Thread(target=jolt)
            thread.start()
            outcomes = {"in time": 0, "failed": 0}
            pattern = b"\xa5" * SIZE
            try:
                with kv.queue() as queue:
                    used = []
                    for turn in range(12):
                        rooms = {queue.get("i", keys[i : i + 4], room): room for i in range(0, 64, 4)
                                 for room in [[bytearray(SIZE) for _ in range(4)]]}

                        def over():
                            for c in queue.drain():
                                outcomes["failed" if c.error else "in time"] += 1
                                for room in rooms.pop(c.tag):  # it is ours again
                                    room[:] = pattern
                                    used.append(room)
                            return not rooms

                        self.assertTrue(wait_for(over, 60))
            finally:
                stop.set()
                thread.join()
                d.signal(signal.SIGCONT)
            time.sleep(0.5)
            self.assertTrue(all(room == pattern for room in used))
            print(f"{len(used)} buffers used again after their operation was over ({outcomes}): every pattern intact")


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(sys.argv[2], int(sys.argv[3]))
    unittest.main()
