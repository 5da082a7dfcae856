"""slabkv.lmcache without LMCache: what its adapter calls, over a real manager."""

import json
import pathlib
import select
import signal
import tempfile
import time
import types
import unittest

from daemon import Daemon, wait_for

import slabkv
from slabkv._lmcache_names import Names, guard, named
from slabkv.lmcache import L2Client

SIZE = 65536
OPTIONS = dict(kv_dtype="bfloat16", namespace_tag="weights-1", lmcache_version="0.5.6", timeout=5.0, retry=0.3)


NAMED = "~slabkv-" + 32 * "e"  # as the plugin of one engine names requests without an adapter or a salt


def name(i, model="org/model", rank=0, group=0, salt=NAMED):
    """As LMCache makes it of a request that slabkv's plugin has named."""
    return f"{model}@{rank:08x}@{group:x}@{i:032x}" + (f"@{salt}" if salt else "")


class Params:
    def __init__(self, extra_args=None):
        self.extra_args = extra_args


def request(number="r", salt=None, lora=None, embeds=None, extra=None):
    """As much of vLLM's as is looked at."""
    return types.SimpleNamespace(request_id=number, cache_salt=salt, lora_request=lora, prompt_embeds=embeds, sampling_params=Params(extra))


def adapter(folder, fill, name="a", number=1):
    """A LoRA adapter with other weights for each fill."""
    path = pathlib.Path(folder)
    path.mkdir(exist_ok=True)
    head = json.dumps({"w": {"dtype": "U8", "shape": [64], "data_offsets": [0, 64]}}).encode()
    (path / "adapter_model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + bytes([fill]) * 64)
    return types.SimpleNamespace(lora_name=name, lora_int_id=number, lora_path=str(path))


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


class Naming(unittest.TestCase):
    def test_names_differ_by_what_made_the_bytes(self):
        with tempfile.TemporaryDirectory() as d:
            a, b = adapter(d + "/a", 1), adapter(d + "/b", 2, "a", 2)  # one name, other weights
            same = adapter(d + "/c", 1, "c", 3)
            kinds = [dict(), dict(salt="alice"), dict(salt="bob"), dict(salt="a/l@ce"), dict(salt="x" * 500), dict(salt="~slabkv"),
                     dict(salt="alice~slabkv"), dict(lora=a), dict(lora=b), dict(lora=a, salt="alice"), dict(lora=a, salt="~slabkv"),
                     dict(lora=b, salt="a/l@ce")]
            names = [Names().of(request(**k)) for k in kinds]
            self.assertEqual(len(set(names)), len(kinds))
            self.assertEqual(names, [Names().of(request("other", **k)) for k in kinds])  # another engine
            self.assertEqual(Names().of(request(lora=a)), Names().of(request(lora=same)))
            for n in names:
                self.assertTrue(named(n) and len(n) <= 128 and not set(n) & set("@/\\\0"), n)
            self.assertTrue(names[0].startswith("~slabkv-") and names[1].startswith("alice~slabkv-"))
            config = types.SimpleNamespace(lora_config=types.SimpleNamespace(lora_dtype="float16", target_modules=["q_proj"]))
            self.assertNotEqual(Names(config).of(request(lora=a)), Names().of(request(lora=a)))

    def test_what_cannot_be_named_is_nobody_elses(self):
        with tempfile.TemporaryDirectory() as d, self.assertLogs("slabkv", "WARNING") as said:
            names, a = Names(), adapter(d + "/a", 1)
            self.assertTrue(named(names.of(request(lora=a))))
            time.sleep(0.02)
            adapter(d + "/a", 2)  # while the engine runs
            gone = types.SimpleNamespace(lora_name="x", lora_int_id=9, lora_path="org/not-here")
            found = [names.of(request(n, **k)) for n in "rs" for k in (dict(lora=a), dict(lora=gone), dict(embeds=[1]))]
            self.assertFalse(any(map(named, found)))
            self.assertEqual(names.of(request("r", lora=gone)), found[0])  # each time it is asked
            self.assertEqual(set(found[:3]) & set(found[3:]), set())
        self.assertEqual(len(said.output), 3)

    def test_a_connector_sees_names_and_the_engine_its_own_request(self):
        seen = []

        class LMCacheConnector:
            def get_num_new_matched_tokens(self, r, n):
                seen.append((r.cache_salt, dict(r.sampling_params.extra_args["kv_transfer_params"])))
                return n, False

        class Other:
            def get_num_new_matched_tokens(self, r, n):
                seen.append(r.cache_salt)

        LMCacheConnector.__module__ = "lmcache.integration.vllm.x"
        child, other = LMCacheConnector(), Other()
        guard(types.SimpleNamespace(_connectors=[child, other]), None)
        guard(other, None)
        r = request(salt="alice", extra={"kv_transfer_params": {"lmcache.tag.slabkv": "forged", "lmcache.tag.b": 1}, "x": 2})
        params = r.sampling_params
        self.assertEqual(child.get_num_new_matched_tokens(r, 7), (7, False))
        other.get_num_new_matched_tokens(r, 7)
        made = Names().of(request(salt="alice"))
        self.assertEqual(seen, [(made, {"lmcache.tag.slabkv": made, "lmcache.tag.b": 1}), "alice"])
        self.assertEqual(list(seen[0][1]), ["lmcache.tag.slabkv", "lmcache.tag.b"])  # the first one of the key's
        self.assertEqual((r.cache_salt, r.sampling_params.extra_args["x"]), ("alice", 2))
        self.assertEqual(params.extra_args["kv_transfer_params"]["lmcache.tag.slabkv"], "forged")  # the caller's own are as they were


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

    def test_damage_is_reported_and_stored_again(self):
        self.store(self.client, [name(1), name(2)], [data(1), data(2)])
        for path in self.daemon.slabs():
            at = path.read_bytes().find(bytes(data(1))[:512])
            if at >= 0:
                with open(path, "r+b") as f:
                    f.seek(at + 100)
                    f.write(b"\0")
        ((_n, _ok, _e, bits),) = finish(self.client, self.client.submit_batch_get([name(1), name(2)], rooms(2)))
        self.assertEqual(bits, [False, True])
        self.assertEqual(self.exists(self.client, [name(1), name(2)]), [False, True])
        self.store(self.client, [name(1)], [data(1)])
        room = rooms(1)
        ((_n, _ok, _e, bits),) = finish(self.client, self.client.submit_batch_get([name(1)], room))
        self.assertEqual((bits, room), ([True], [data(1)]))

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
        alice, bob = "alice" + NAMED, "bob" + NAMED
        self.store(self.client, [name(1), name(2, salt=alice)], [data(1), data(2)])
        self.assertEqual(self.exists(self.client, [name(1, salt=bob), name(2), name(2, salt=bob)]), [False] * 3)
        for other in (dict(kv_dtype="float8_e4m3fn"), dict(kv_dtype="float8_e5m2"), dict(namespace_tag="weights-2"),
                      dict(lmcache_version="0.6.0")):
            client = self.open(**other)
            self.assertEqual(self.exists(client, [name(1)]), [False], other)
            ((_n, _ok, _e, bits),) = finish(client, client.submit_batch_get([name(1)], rooms(1)))
            self.assertEqual(bits, [False], other)

    def test_what_does_not_name_an_adapter_is_not_cached(self):
        nameless = [name(1, salt=s) for s in ("", "alice", "~private-" + 32 * "0", "~slabkv-12", "~slabkv")]
        with self.assertLogs("slabkv", "WARNING") as said:
            ((_n, ok, error, _b),) = finish(self.client, self.client.submit_batch_set([*nameless, name(1)], [data(1)] * 6))
        self.assertFalse(ok)
        self.assertIn("without_plugin", error)
        self.assertEqual(len(said.output), 1)
        self.assertEqual(self.exists(self.client, [*nameless, name(1)]), [False] * 5 + [True])
        other = self.open(without_plugin=True)
        self.assertEqual(self.exists(other, nameless), [False] * 5)
        self.store(other, nameless, [data(2)] * 5)
        self.assertEqual(self.exists(other, [*nameless, name(1)]), [True] * 6)
        ((_n, _ok, _e, bits),) = finish(self.client, self.client.submit_batch_get(nameless, rooms(5)))
        self.assertEqual(bits, [False] * 5)
        ((_n, _ok, _e, bits),) = finish(self.client, self.client.submit_batch_lock([*nameless, name(1)]))
        self.assertEqual(bits, [False] * 5 + [True])

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
        self.client = self.open(timeout=0.5)
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


    def test_what_was_looked_up_with_a_lock_stays(self):
        client = self.open(lock_seconds=1.0)
        keys = [name(i) for i in range(4)]
        self.store(client, keys, [data(i) for i in range(4)])
        slabkv.Client(self.daemon.url).call("PUT", "/v1/groups/default", {"storages": ["default"], "policy": "lru"})

        def fill(first):  # twice what there is room for
            for i in range(first, first + 2048, 128):
                finish(client, client.submit_batch_set([name(j) for j in range(i, i + 128)], [data(1)] * 128))

        ((_n, ok, error, bits),) = finish(client, client.submit_batch_lock([*keys, name(99)]))
        self.assertEqual((ok, error, bits, client.locked), (True, "", [True] * 4 + [False], 4))
        time.sleep(1.5)  # longer than a lease: it is renewed
        fill(1000)
        self.assertEqual(self.exists(client, keys), [True] * 4)
        client.unlock(keys)
        self.assertEqual(client.locked, 0)

        def evicted():
            fill(int(time.monotonic() * 1000) << 20)
            return not any(self.exists(client, keys))

        self.assertTrue(wait_for(evicted))

    def test_what_does_not_pay_is_not_loaded(self):
        keys = [name(i) for i in range(8)]
        self.store(self.client, keys, [data(i) for i in range(8)])
        client = self.open(min_tokens=1024)  # chunks of 256 tokens
        self.assertEqual(self.exists(client, keys), [True] * 8)
        self.assertEqual(self.exists(client, keys[:3]), [False] * 3)
        slow = self.open(prefill_tokens_per_s=1e9)  # faster than any storage
        finish(slow, slow.submit_batch_get(keys, rooms(8)))
        self.assertEqual(self.exists(slow, keys), [False] * 8)


if __name__ == "__main__":
    unittest.main()
