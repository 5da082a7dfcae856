"""Storage that answers later than every timeout: a job is reported as finished, failed or closed only when no I/O can touch its buffers, so
that what the caller puts there next stays, and is not stored."""

import asyncio
import gc
import random
import select
import types
import unittest
from unittest import mock

import slow

slow.preload()

import slabkv  # noqa: E402
import slabkv.lmcache  # noqa: E402
from daemon import Daemon, wait_for  # noqa: E402
from slabkv.lmcache import L2Client  # noqa: E402

SIZE, N, TIMEOUT = 1 << 18, 4, 0.5
LATE = 2.5 * TIMEOUT


def data(i):
    return random.Random(i).randbytes(SIZE)


class Late(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.storage = slow.Storage()
        cls.daemon = Daemon(capacity="256M", unit="16M").start()
        with slabkv.Client(cls.daemon.url) as patient:
            patient.put_instance("late", SIZE)
            patient.put("late", list(range(N)), [data(i) for i in range(N)])
        cls.kv = cls.client()
        cls.fresh = iter(range(1000, 9000, N))

    @classmethod
    def tearDownClass(cls):
        cls.kv.close()
        cls.daemon.__exit__()

    @classmethod
    def client(cls, kind=slabkv.Client):
        return kind(cls.daemon.url, timeout=TIMEOUT, engine="posix")

    def each(self, what, begin, stop=lambda: None):
        """begin(rooms, keys, store) as a load and as a store; what was stored is whole, or not there."""
        for store in (False, True):
            first = next(self.fresh) if store else 0
            keys = list(range(first, first + N))
            rooms = [bytearray(data(k) if store else SIZE) for k in keys]
            told = f"{what}, {'store' if store else 'load'}"
            self.storage.late(told, lambda: begin(rooms, keys, store), [slow.span(r) for r in rooms], LATE, stop)
            if store:
                there = [bytearray(SIZE) for _ in keys]
                with slabkv.Client(self.daemon.url, engine="posix", verify=False) as other:
                    results = other.get("late", keys, there)
                for key, room, result in zip(keys, there, results):
                    self.assertTrue(not result or room == data(key), told)

    def test_client(self):
        def begin(rooms, keys, store):
            return lambda: (self.kv.put if store else self.kv.get)("late", keys, rooms)

        self.each("Client", begin)

    def test_client_closed(self):
        kv = [self.client()]

        def begin(rooms, keys, store):
            kv[0] = self.client()
            return lambda: (kv[0].put if store else kv[0].get)("late", keys, rooms)

        self.each("Client, closed", begin, lambda: kv[0].close())

    def test_queue(self):
        with self.kv.queue() as queue:
            def begin(rooms, keys, store):
                tag = (queue.put if store else queue.get)("late", keys, rooms)

                def report():
                    select.select([queue], [], [])
                    self.assertEqual([c.tag for c in queue.drain()], [tag])

                self.tag = tag
                return report

            self.each("Queue", begin)
            self.each("Queue, cancelled", begin, lambda: queue.cancel(self.tag))

    def test_queue_closed(self):
        def begin(rooms, keys, store):
            queue = self.kv.queue()
            (queue.put if store else queue.get)("late", keys, rooms)

            def report():
                while not self.storage.held:
                    pass
                queue.close()

            return report

        self.each("Queue, closed", begin)

    def test_asyncio(self):
        def begin(rooms, keys, store):
            async def run():
                async with self.client(slabkv.AsyncClient) as kv:
                    await asyncio.wait_for((kv.put if store else kv.get)("late", keys, rooms), TIMEOUT)

            return lambda: asyncio.run(run())

        self.each("AsyncClient, given up", begin)

    def test_lmcache(self):
        for closed in (False, True):
            client = L2Client(url=self.daemon.url, kv_dtype="bfloat16", namespace_tag="w", timeout=TIMEOUT, engine="posix")
            names = [f"m@00000000@0@{i:064x}@~slabkv-{32 * 'e'}" for i in range(N)]
            rooms = [bytearray(data(i)) for i in range(N)]
            views = [memoryview(r) for r in rooms]

            def wait(client=client):
                while True:
                    select.select([client.event_fd()], [], [])
                    if done := client.drain_completions():
                        return done

            if closed:  # else stored below
                names = [n.replace("@~", "f@~") for n in names[:1]] + names[1:]
            client.submit_batch_set(names, views)
            self.assertTrue(wait()[0][1])
            for store in (False, True):
                if store:
                    names = [n.replace("@0@", "@0@aa") for n in names]

                def begin(store=store, names=names, client=client):
                    (client.submit_batch_set if store else client.submit_batch_get)(names, views)

                    def close():
                        while not self.storage.held:
                            pass
                        client.close()

                    return close if closed else wait

                if closed and store:
                    client = L2Client(url=self.daemon.url, kv_dtype="bfloat16", namespace_tag="w", timeout=TIMEOUT, engine="posix")
                    begin = (lambda b: lambda client=client: b(client=client))(begin)
                self.storage.late(f"LMCache{', closed' if closed else ''}, {'store' if store else 'load'}", begin,
                                  [slow.span(r) for r in rooms], LATE)
            client.close()

    def test_what_has_not_begun_by_its_deadline_has_failed(self):
        """Every thread waits for storage that does not answer: what comes later is not undecided for ever, and no I/O touches it."""
        for queue in ("Queue", "LMCache"):
            self.storage.say("hold")
            try:
                with self.kv.queue(threads=1) as q:
                    self.undecided(q) if queue == "Queue" else self.undecided_lmcache()
            finally:
                self.storage.say("0")

    def undecided(self, queue):
        rooms = [bytearray(SIZE) for _ in range(2)]
        held, later = queue.get("late", [0], rooms[:1]), queue.get("late", [1], rooms[1:])
        self.assertTrue(wait_for(lambda: self.storage.held))
        queue.cancel_late(3600)
        self.assertEqual(queue.drain(), [])
        queue.cancel_late(0)
        self.assertTrue(wait_for(lambda: queue.in_flight == 2 and select.select([queue], [], [], 1)[0]))
        (over,) = queue.drain()
        self.assertEqual((over.tag, over.results, over.error), (later, [slabkv.Result.CANCELLED], None))
        self.storage.say("0")
        select.select([queue], [], [])
        (over,) = queue.drain()
        self.assertEqual((over.tag, over.results, rooms), (held, [slabkv.Result.HIT], [data(0), bytearray(SIZE)]))

    def test_others_submit_while_late_ones_are_taken_back(self):
        """Another thread may run wherever memory is allocated: here a hook of the collector's stands for it."""
        with self.kv.queue() as queue:
            def submit(_phase, _info):
                queue._jobs[len(queue._jobs)] = job

            job = types.SimpleNamespace(submitted=0.0, number=types.SimpleNamespace(value=0))
            queue._jobs.update((i, job) for i in range(1000))
            threshold = gc.get_threshold()
            gc.callbacks.append(submit)
            gc.set_threshold(1)
            try:
                queue.cancel_late(0)
            finally:
                gc.set_threshold(*threshold)
                gc.callbacks.remove(submit)
            self.assertGreater(len(queue._jobs), 1000, "nobody submitted meanwhile: this shows nothing")
            queue._jobs.clear()

    def undecided_lmcache(self):
        client = L2Client(url=self.daemon.url, kv_dtype="bfloat16", namespace_tag="u", timeout=10.0, engine="posix")
        names = [f"m@00000000@0@{i:064x}@~slabkv-{0:032x}" for i in range(9)]
        room = [memoryview(bytearray(SIZE)) for _ in names]

        def over():
            select.select([client.event_fd()], [], [], 20)
            return {number: bits if bits is not None else ok for number, ok, _error, bits in client.drain_completions()}

        self.storage.say("0")
        number = client.submit_batch_set(names, room)
        self.assertEqual(over(), {number: True})
        self.storage.say("hold")
        loads = [client.submit_batch_get([n], [r]) for n, r in zip(names[:8], room)]
        self.assertTrue(wait_for(lambda: self.storage.held >= 4))
        later = [client.submit_batch_exists(names[8:]), client.submit_batch_get(names[8:], room[8:])]
        found = {}
        with mock.patch.object(slabkv.lmcache, "DEADLINE_S", 3600):
            with client._lock:  # they waited for the worker so long, and are in the queue since just now
                for future, _ in client._parts.values():
                    future.began -= 3600
            self.assertTrue(wait_for(lambda: found.update(over()) or set(later) <= set(found)), "undecided")
        self.assertEqual([found[n] for n in later], [[False], [False]])
        self.storage.say("0")
        self.assertTrue(wait_for(lambda: found.update(over()) or set(loads) <= set(found)))
        self.assertIn([True], [found[n] for n in loads])  # those that had begun
        client.close()


if __name__ == "__main__":
    unittest.main()
