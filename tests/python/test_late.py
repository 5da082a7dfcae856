"""Storage that answers later than every timeout: a job is reported as finished, failed or closed only when no I/O can touch its buffers, so
that what the caller puts there next stays, and is not stored."""

import asyncio
import random
import select
import unittest

import slow

slow.preload()

import slabkv  # noqa: E402
from daemon import Daemon  # noqa: E402
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
            names = [f"m@00000000@0@{i:064x}@~slabkv" for i in range(N)]
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


if __name__ == "__main__":
    unittest.main()
