"""slabkv.lmcache without LMCache: what its adapter calls, over a real manager."""

import select
import signal
import time
import unittest

from daemon import Daemon, wait_for

import slabkv
from slabkv.lmcache import L2Client

SIZE = 65536
OPTIONS = dict(kv_dtype="bfloat16", namespace_tag="weights-1", lmcache_version="0.5.6", timeout=0.5, retry=0.3)


def name(i, model="org/model", rank=0, group=0, salt=""):
    return f"{model}@{rank:08x}@{group:x}@{i:032x}" + (f"@{salt}" if salt else "")


def data(i, size=SIZE):
    return memoryview(bytearray((i * 7 + j) % 251 for j in range(256)) * (size // 256))


def rooms(n, size=SIZE):
    return [memoryview(bytearray(size)) for _ in range(n)]


def finish(client, *numbers):
    """Completions of these submits, in their order."""
    done = {}
    end = time.monotonic() + 20
    while not set(numbers) <= set(done):
        if not select.select([client.event_fd()], [], [], max(0, end - time.monotonic()))[0]:
            raise AssertionError(f"no completion of {set(numbers) - set(done)}")
        done.update((d[0], d) for d in client.drain_completions())
    return [done[n] for n in numbers]


class Adapter(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon().start()
        self.addCleanup(self.daemon.__exit__)
        self.client = self.open()

    def open(self, **more):
        client = L2Client(url=self.daemon.url, **{**OPTIONS, **more})
        self.addCleanup(client.close)
        return client

    def store(self, client, keys, views):
        ((_n, ok, error, bits),) = finish(client, client.submit_batch_set(keys, views))
        self.assertTrue(ok, error)
        self.assertIsNone(bits)

    def exists(self, client, keys):
        ((_n, ok, error, bits),) = finish(client, client.submit_batch_exists(keys))
        self.assertTrue(ok, error)
        return bits

    def test_there_and_back_and_after_a_restart(self):
        keys = [name(i) for i in range(40)]
        views = [data(i) for i in range(40)]
        self.assertEqual(self.exists(self.client, keys), [False] * 40)
        self.store(self.client, keys, views)
        self.store(self.client, keys, views)  # again: nothing to do
        fresh = self.open()
        self.assertEqual(self.exists(fresh, [*keys, name(99)]), [True] * 40 + [False])
        room = rooms(41)
        ((_n, ok, _e, bits),) = finish(fresh, fresh.submit_batch_get([*keys, name(99)], room))
        self.assertEqual((ok, bits), (True, [True] * 40 + [False]))
        self.assertEqual(room[:40], views)
        self.assertEqual(select.select([fresh.event_fd()], [], [], 0)[0], [])
        finish(fresh, fresh.submit_batch_delete(keys[:2]))
        self.assertEqual(self.exists(fresh, keys[:3]), [False, False, True])

    def test_a_get_before_anything_is_known(self):
        self.store(self.client, [name(1)], [data(1)])
        room = rooms(1)
        fresh = self.open()
        ((_n, ok, _e, bits),) = finish(fresh, fresh.submit_batch_get([name(1)], room))
        self.assertEqual((ok, bits, room), (True, [True], [data(1)]))
        never = self.open(namespace_tag="never stored")
        ((_n, ok, error, bits),) = finish(never, never.submit_batch_get([name(1)], room))
        self.assertEqual((ok, error, bits), (True, "", [False]))

    def test_objects_of_several_sizes_groups_and_ranks(self):
        keys = [name(1), name(1, group=1), name(1, rank=0x01000200), name(1, model="other"), name(2)]
        views = [data(1), data(2, 4096), data(3), data(4, 8192), data(5, 32768)]
        self.store(self.client, keys, views)
        fresh = self.open()
        self.assertEqual(self.exists(fresh, keys), [True] * 5)
        room = [memoryview(bytearray(v.nbytes)) for v in views]
        ((_n, _ok, _e, bits),) = finish(fresh, fresh.submit_batch_get(keys, room))
        self.assertEqual((bits, room), ([True] * 5, views))

    def test_foreign_bytes_stay_out(self):
        self.store(self.client, [name(1), name(2, salt="alice")], [data(1), data(2)])
        self.assertEqual(self.exists(self.client, [name(1, salt="bob"), name(2), name(2, salt="bob")]), [False] * 3)
        for other in (dict(kv_dtype="float8_e4m3fn"), dict(kv_dtype="float8_e5m2"), dict(namespace_tag="weights-2"),
                      dict(lmcache_version="0.6.0")):
            client = self.open(**other)
            self.assertEqual(self.exists(client, [name(1)]), [False], other)
            ((_n, _ok, _e, bits),) = finish(client, client.submit_batch_get([name(1)], rooms(1)))
            self.assertEqual(bits, [False], other)

    def test_what_is_not_told_is_asked_for(self):
        for options, said in ((dict(namespace_tag="x"), "kv_dtype"), (dict(kv_dtype="bfloat16", model="org/m"), "namespace_tag"),
                              (dict(kv_dtype="bfloat16", namespace_tag="x", ulr="y"), "there is no option 'ulr'")):
            with self.assertRaises(slabkv.InvalidError) as e:
                L2Client(**options)
            self.assertIn(said, str(e.exception))
        client = self.open(namespace_tag=None)  # the model's name is no directory here
        ((_n, ok, error, _b),) = finish(client, client.submit_batch_set([name(1)], [data(1)]))
        self.assertFalse(ok)
        self.assertIn("namespace_tag", error)
        ((_n, _ok, _e, bits),) = finish(client, client.submit_batch_exists([name(1)]))
        self.assertEqual(bits, [False])

    def test_submitting_never_waits_and_every_submit_ends(self):
        self.store(self.client, [name(1)], [data(1)])
        self.daemon.signal(signal.SIGSTOP)
        try:
            t = time.monotonic()
            numbers = [self.client.submit_batch_exists([name(1)]), self.client.submit_batch_get([name(1)], rooms(1)),
                       self.client.submit_batch_set([name(2)], [data(2)]), self.client.submit_batch_set([name(2, group=9)], [data(2)]),
                       self.client.submit_batch_exists([name(2, group=8)])]
            self.assertLess(time.monotonic() - t, 0.2)
            done = finish(self.client, *numbers)
            self.assertFalse(any(any(d[3]) for d in done if d[3]))
            self.assertFalse(done[2][1])
            t = time.monotonic()
            finish(self.client, self.client.submit_batch_get([name(1)], rooms(1)))
            self.assertLess(time.monotonic() - t, 0.2)  # nobody is asked for a while
        finally:
            self.daemon.signal(signal.SIGCONT)
        self.assertTrue(wait_for(lambda: self.exists_now(name(1))))

    def exists_now(self, key):
        ((_n, _ok, _e, bits),) = finish(self.client, self.client.submit_batch_exists([key]))
        return bits == [True]

    def test_a_manager_that_was_killed_and_started_again(self):
        self.store(self.client, [name(1)], [data(1)])
        self.daemon.kill()
        finish(self.client, self.client.submit_batch_exists([name(1)]), self.client.submit_batch_set([name(2)], [data(2)]))
        self.daemon.start()
        self.assertTrue(wait_for(lambda: self.exists_now(name(1))))

    def test_a_backlog_of_stores_is_dropped_not_kept(self):
        client = self.open(max_pending_stores=4, timeout=5.0)
        self.store(client, [name(0)], [data(0)])
        self.daemon.signal(signal.SIGSTOP)
        try:
            numbers = [client.submit_batch_set([name(i)], [data(i)]) for i in range(1, 11)]
            early = finish(client, *numbers[4:])
        finally:
            self.daemon.signal(signal.SIGCONT)
        self.assertTrue(all(not d[1] and "max_pending_stores" in d[2] for d in early))
        self.assertTrue(all(d[1] for d in finish(client, *numbers[:4])))


if __name__ == "__main__":
    unittest.main()
