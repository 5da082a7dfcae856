"""LMCache's own code around slabkv's classes: the L2 adapter of type plugin with its locks, and RemoteBackend as inside an engine."""

import argparse
import asyncio
import dataclasses
import itertools
import json
import random
import signal
import threading
import time
import types

import torch
from lmcache.cli.commands.bench.l2_adapter_bench.data import (
    create_l1_memory_desc, make_aligned_tensor, make_memory_objects, make_object_keys, wait_eventfd,
)
from lmcache.utils import CacheEngineKey
from lmcache.v1.config import LMCacheEngineConfig
from lmcache.v1.distributed.l2_adapters import create_l2_adapter
from lmcache.v1.distributed.l2_adapters.config import parse_args_to_l2_adapters_config
from lmcache.v1.metadata import LMCacheMetadata
from lmcache.v1.distributed.l2_adapters.native_connector_l2_adapter import _object_key_to_string as _name
from lmcache.v1.storage_backend import CreateStorageBackends

import slabkv
import slow
from daemon import Daemon, wait_for

SIZE, N = 1 << 20, 8
FRESH = itertools.count(1000, 4)


def plugin(url, **more):
    return {"type": "plugin", "module_path": "slabkv.lmcache", "class_name": "L2Adapter",
            "adapter_params": {"url": url, "kv_dtype": "bfloat16", "namespace_tag": "bench", "without_plugin": True, **more}}


class Adapter:
    """An L2 adapter as LMCache makes it, with room for objects that are stored and for those that are loaded."""

    def __init__(self, config, objects=64):
        self.memory = make_aligned_tensor(objects * SIZE, 4096)
        spec = parse_args_to_l2_adapters_config(argparse.Namespace(l2_adapter=[json.dumps(config)])).adapters[0]
        self.adapter = create_l2_adapter(spec, l1_memory_desc=create_l1_memory_desc(self.memory, 4096))

    def objects(self, n, fill):
        """At the beginning of the memory, filled."""
        return make_memory_objects(self.memory, n, SIZE, 0, fill)

    def end(self, fd, ask):
        """What ask() says when it is over."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            wait_eventfd(fd, 1.0)
            answer = ask()
            if answer is not None and answer != {}:
                return answer
        raise AssertionError("no answer")

    def store(self, keys, objects):
        self.adapter.submit_store_task(keys, objects)
        (result,) = self.end(self.adapter.get_store_event_fd(), self.adapter.pop_completed_store_tasks).values()
        return result.is_successful()

    def lookup(self, keys):
        task = self.adapter.submit_lookup_and_lock_task(keys, {})
        bits = self.end(self.adapter.get_lookup_and_lock_event_fd(), lambda: self.adapter.query_lookup_and_lock_result(task))
        return [bits.test(i) for i in range(len(keys))]

    def load(self, keys, objects):
        task = self.adapter.submit_load_task(keys, objects)
        bits = self.end(self.adapter.get_load_event_fd(), lambda: self.adapter.query_load_result(task))
        return [bits.test(i) for i in range(len(keys))]


def fill_up(side, rounds):
    """Stores more than there is room for, four objects at a time; how many of these stores succeeded."""
    done = 0
    for r in range(rounds):
        keys = make_object_keys(4, key_offset=next(FRESH))
        done += side.store(keys, side.objects(4, 100 + r))
    return done


def plugin_locks():
    """What a lookup has found outlives a store that is filled several times over and the time of a lease; without a lock it does not."""
    for how in ("plugin", "native_plugin"):
        with Daemon(capacity="32M", unit="16M") as d:
            with slabkv.Client(d.url) as kv:  # the default policy might keep what was looked up by itself
                kv.call("PUT", "/v1/groups/default", {"storages": ["default"], "policy": "lru"})
            config = plugin(d.url, lock_seconds=1.0)
            if how == "native_plugin":
                config = {**config, "type": how, "class_name": "L2Client"}
            side = Adapter(config)
            keys = make_object_keys(N)
            assert side.store(keys, side.objects(N, 1))
            time.sleep(0.1)
            assert side.lookup(keys) == [True] * N
            done = fill_up(side, 12)
            time.sleep(2.0)  # longer than the lease
            done += fill_up(side, 12)
            objects = side.objects(N, 77)
            found = side.load(keys, objects)
            right = sum(bool((o.raw_data == (i + 1)).all()) for i, o in enumerate(objects) if found[i])
            print(f"   {how}: {done} of 24 stores of 4 MiB into 32 MiB; of {N} locked objects {sum(found)} loaded, {right} equal")
            assert right == sum(found) and done > 4
            if how == "native_plugin":
                assert not any(found), "the store was not filled: this shows nothing"
            else:
                assert all(found) and side.adapter.report_status()["locked"] == N
                side.adapter.submit_unlock(keys)
                assert side.adapter.report_status()["locked"] == 0
                with slabkv.Client(d.url) as kv:
                    (instance,) = [i["id"] for i in kv.call("GET", "/v1/instances")["instances"]]
                    names = [_name(k) for k in keys]
                    begin = time.monotonic()  # the load has a lease of its own; asking counts as use, so much is stored between
                    assert wait_for(lambda: fill_up(side, 12) and not any(kv.exists(instance, names)), 60), "never evicted"
                print(f"   unlocked and loaded: evicted {time.monotonic() - begin:.1f} s later")
            side.adapter.close()


def plugin_manager_gone():
    """A manager that is stopped, then killed: lookups are misses, stores fail, nobody asks it again until the pause is over; it comes back,
    and so do hits. The pause is longer than the test, which ends it."""
    with Daemon(capacity="64M", unit="16M") as d:
        side = Adapter(plugin(d.url, timeout=1.0, retry=3600))
        breaker, keys = side.adapter._slabkv._breaker, make_object_keys(N)

        def healthy(what):
            breaker.until = 0.0
            return what()

        assert wait_for(lambda: healthy(lambda: side.store(keys, side.objects(N, 1)))), "never stored"
        for what in ("stopped", "killed"):
            assert wait_for(lambda: healthy(lambda: side.lookup(keys)) == [True] * N), what
            if what == "stopped":
                d.signal(signal.SIGSTOP)
            else:
                d.kill()
            begin = time.monotonic()
            assert side.lookup(keys) == [False] * N and not side.store(make_object_keys(1, key_offset=50), side.objects(1, 9))
            print(f"   {what}: a lookup and a store ended after {time.monotonic() - begin:.2f} s (timeout 1 s)")
            assert not side.adapter.report_status()["is_healthy"]
            if what == "stopped":
                d.signal(signal.SIGCONT)
            else:
                d.start()
            assert side.lookup(keys) == [False] * N, "asked within the pause"
            assert wait_for(lambda: healthy(lambda: side.lookup(keys)) == [True] * N), what
        assert side.adapter.report_status()["is_healthy"]
        side.adapter.close()


def late(storage, url):
    """L2Adapter: tasks end, and close returns, only when no I/O touches LMCache's objects."""
    for how in ("ended", "closed"):
        for store in (True, False):
            side = Adapter(plugin(url, engine="posix", timeout=0.5, namespace_tag=how))
            keys, objects = make_object_keys(N), side.objects(N, 1)
            if not store:
                assert side.store(keys, objects) and side.lookup(keys) == [True] * N

            def begin(side=side, store=store, how=how, keys=keys, objects=objects):
                if store:
                    side.adapter.submit_store_task(keys, objects)
                else:
                    task = side.adapter.submit_load_task(keys, objects)

                def report():
                    if how == "closed":
                        assert wait_for(lambda: storage.held)
                        side.adapter.close()
                    elif store:
                        side.end(side.adapter.get_store_event_fd(), side.adapter.pop_completed_store_tasks)
                    else:
                        side.end(side.adapter.get_load_event_fd(), lambda: side.adapter.query_load_result(task))

                return report

            buffers = [(o.raw_data.data_ptr(), SIZE) for o in objects]
            storage.late(f"L2Adapter, {how}, {'store' if store else 'load'}", begin, buffers, 2.0)
            if how == "ended":
                side.adapter.close()


def late_storage():
    """Storage later than every timeout; in an engine, too: a get that was given up keeps its memory from others."""
    storage = slow.Storage()
    with Daemon(capacity="256M", unit="16M") as d:
        late(storage, d.url)
        engine = Engine(d.url, engine="posix")
        keys = [engine.key(i) for i in range(N)]
        engine.store(range(N))
        taken = []

        def begin():
            get = asyncio.run_coroutine_threadsafe(engine.remote.connection.batched_get(keys), engine.loop)

            def report():
                assert wait_for(lambda: storage.held)
                time.sleep(1.0)
                get.cancel()
                while (o := engine.object_or_none()) is not None:  # all memory that is not in use
                    taken.append(o)
                for o in taken:
                    buffers.append((o.raw_data.data_ptr(), o.raw_data.numel()))

            return report

        buffers = []
        storage.late("RemoteAdapter, given up, load", begin, buffers, 2.0)
        assert taken
        for o in taken:
            o.ref_count_down()
        assert wait_for(lambda: engine.remote.batched_contains(keys) == N)
        engine.close()


# ---- inside an engine ----

NAMED = "~slabkv-" + 32 * "e"  # as the plugin of one engine names requests without an adapter or a salt
CHUNK, SHAPE = 16, (4, 2, 16, 2, 64)  # layers, K and V, tokens, heads, size of a head


class Engine:
    """LMCache's storage backends as its engine makes them, with their event loop."""

    def __init__(self, url, dtype=torch.bfloat16, model="org/model", **more):
        options = {"module_path": "slabkv.lmcache", "class_name": "RemoteAdapter", "url": url, "namespace_tag": "w", "timeout": 0.5,
                   "retry": 0.3, **more}
        config = LMCacheEngineConfig.from_defaults(
            chunk_size=CHUNK, local_cpu=False, max_local_cpu_size=0.1, remote_storage_plugins=["slabkv"], remote_serde="naive",
            extra_config={f"remote_storage_plugin.slabkv.{k}": v for k, v in options.items()})
        metadata = LMCacheMetadata(model_name=model, world_size=1, local_world_size=1, worker_id=0, local_worker_id=0, kv_dtype=dtype,
                                   kv_shape=SHAPE, chunk_size=CHUNK, role="worker")
        self.dtype, self.model = dtype, model
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        backends = CreateStorageBackends(config, metadata, self.loop, "cpu")
        self.local = backends["LocalCPUBackend"]
        self.remote = backends["RemoteBackend-slabkv"]
        self.metadata = metadata

    def key(self, i, name=NAMED):
        """Of a request with this tag, as slabkv's plugin names it."""
        return CacheEngineKey(self.model, 1, 0, random.Random(i).getrandbits(64), self.dtype, {"lmcache.tag.slabkv": name} if name else None)

    def object(self, i):
        from lmcache.v1.memory_management import MemoryFormat

        room = self.local.allocate(self.metadata.get_shapes(), self.metadata.get_dtypes(), MemoryFormat.KV_2LTD)
        torch.manual_seed(i)
        room.raw_data.copy_(torch.randint(0, 255, room.raw_data.shape, dtype=torch.uint8))
        return room

    def object_or_none(self):
        from lmcache.v1.memory_management import MemoryFormat

        return self.local.allocate(self.metadata.get_shapes(), self.metadata.get_dtypes(), MemoryFormat.KV_2LTD, busy_loop=False)

    def store(self, numbers):
        objects = [self.object(i) for i in numbers]
        want = [bytes(o.byte_array) for o in objects]
        self.remote.batched_submit_put_task([self.key(i) for i in numbers], objects)
        assert wait_for(lambda: self.remote.batched_contains([self.key(i) for i in numbers]) == len(objects)), "not stored"
        # What still has an object, as LMCache's own cache in memory has, keeps it: else others would write over it.
        assert wait_for(lambda: all(o.get_ref_count() <= 1 for o in objects))
        assert [o.get_ref_count() for o in objects] == [1] * N
        for o in objects:
            o.ref_count_down()
        return want

    def close(self):
        self.remote.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


def image_tokens(name):
    """One prompt with one image in it, as LMCache's own code makes its token ids: all images have equal placeholders."""
    from lmcache.integration.vllm.lmcache_mp_metadata import LMCacheMPRequestTracker
    from vllm import SamplingParams
    from vllm.multimodal.inputs import MultiModalFeatureSpec, PlaceholderRange
    from vllm.v1.request import Request

    image = MultiModalFeatureSpec(data=None, modality="image", identifier=name, mm_position=PlaceholderRange(0, CHUNK // 2), mm_hash=name)
    request = Request("r", list(range(3, 3 + N * CHUNK)), SamplingParams(max_tokens=1), None, mm_features=[image] if name else None)
    return LMCacheMPRequestTracker(request).mm_adjusted_prompt_ids or request.prompt_token_ids


def foreign_images():
    """Two images with equal tokens, and none: LMCache's code makes the keys, of its server and inside an engine; none finds another's."""
    from lmcache.v1.multiprocess.token_hasher import TokenHasher
    try:
        from lmcache.inprocess.v1.token_database import ChunkedTokenDatabase  # since 0.5.7
    except ImportError:
        from lmcache.v1.token_database import ChunkedTokenDatabase

    tokens = {name: image_tokens(name) for name in ("", 64 * "x", 64 * "y")}
    hasher = TokenHasher(CHUNK)
    config = LMCacheEngineConfig.from_defaults(chunk_size=CHUNK, pre_caching_hash_algorithm="sha256_cbor")
    for name in tokens:  # each into a store of its own
        with Daemon(capacity="64M", unit="16M") as d:
            side, engine = Adapter(plugin(d.url)), Engine(d.url)
            database = ChunkedTokenDatabase(config, engine.metadata)
            of_server = {n: [dataclasses.replace(k, chunk_hash=h, kv_rank=0) for k, h in
                             zip(make_object_keys(N), hasher.compute_chunk_hashes(list(ids)))] for n, ids in tokens.items()}
            of_engine = {n: [key for _, _, key in database.process_tokens(list(ids), request_configs={"lmcache.tag.slabkv": NAMED})]
                         for n, ids in tokens.items()}
            assert side.store(of_server[name], side.objects(N, 1))
            engine.remote.batched_submit_put_task(of_engine[name], objects := [engine.object(i) for i in range(N)])
            assert wait_for(lambda: engine.remote.batched_contains(of_engine[name]) == N) and side.lookup(of_server[name]) == [True] * N
            for o in objects:
                o.ref_count_down()
            for other in tokens.keys() - {name}:
                assert len(of_engine[other]) == len(of_server[other]) == N
                assert side.lookup(of_server[other]) == [False] * N and not any(engine.remote.contains(k) for k in of_engine[other])
            side.adapter.close()
            engine.close()
    print(f"   0 foreign hits of {2 * 6 * N}")


def remote_connector():
    """RemoteBackend over RemoteAdapter: equal in a fresh engine, other types and models find nothing, a manager that is gone is a miss."""
    with Daemon(capacity="64M", unit="16M") as d:
        a = Engine(d.url)
        keys = [a.key(i) for i in range(N)]
        assert a.remote.batched_contains(keys) == 0
        want = a.store(range(N))
        a.close()
        b = Engine(d.url)
        assert b.remote.batched_contains([*keys, b.key(99)]) == N and b.remote.contains(keys[3])
        found = b.remote.batched_get_blocking([*keys, b.key(99)])
        assert [bytes(o.byte_array) for o in found[:N]] == want and found[N] is None
        ask = b.remote.batched_async_contains("r", keys, True)
        assert asyncio.run_coroutine_threadsafe(ask, b.loop).result(10) == N
        for o in found[:N]:
            o.ref_count_down()
        print(f"   {N} of {N} chunks equal in a fresh engine")
        others = dict(dtype=dict(dtype=torch.float16), model=dict(model="org/other"), weights=dict(namespace_tag="v"),
                      e4m3=dict(kv_dtype="float8_e4m3fn"), e5m2=dict(kv_dtype="float8_e5m2"))
        for name, other in others.items():
            c = Engine(d.url, **other)
            assert c.remote.batched_contains([c.key(i) for i in range(N)]) == 0, name
            c.close()
        print(f"   0 foreign hits of {len(others) * N}")
        d.signal(signal.SIGSTOP)
        begin = time.monotonic()
        assert b.remote.batched_contains(keys) == 0 and b.remote.get_blocking(keys[0]) is None
        took = time.monotonic() - begin
        d.signal(signal.SIGCONT)
        assert took < 1.5 and wait_for(lambda: b.remote.batched_contains(keys) == N)
        print(f"   a stopped manager: misses after {took:.2f} s (timeout 0.5 s)")
        b.close()
        uint8 = Engine(d.url, dtype=torch.uint8)  # what is not told: no connection, and the engine goes on
        assert uint8.remote.connection is None and uint8.remote.batched_contains(keys) == 0
        c = Engine(d.url)
        for name in (None, "~private-" + 32 * "0", "~slabkv", "alice" + NAMED, "~slabkv-" + 32 * "0"):  # no name, and other salts and adapters
            foreign = [c.key(i, name) for i in range(N)]
            assert c.remote.batched_contains(foreign) == 0 and c.remote.batched_get_blocking(foreign) == [None] * N, name
        c.remote.batched_submit_put_task([c.key(77, None), c.key(78)], objects := [c.object(1), c.object(2)])
        for o in objects:
            o.ref_count_down()
        assert wait_for(lambda: c.remote.contains(c.key(78))) and not c.remote.contains(c.key(77, None))
        c.close()
        c = Engine(d.url, without_plugin=True)
        assert not c.remote.contains(c.key(77, None)), "stored without a name"
        c.close()
        for lora in (None, object()):  # what adapters made would be found by others: not with this engine
            vllm_config = types.SimpleNamespace(parallel_config=None, lora_config=lora)  # as what makes the backend has it
            adapters = Engine(d.url, without_plugin=True)
            assert (adapters.remote.connection is None) == (lora is not None)
            assert adapters.remote.batched_contains(keys) == (0 if lora else N)
            if lora:
                del vllm_config
                adapters.remote.init_connection()  # as LMCache does later, from elsewhere
                assert adapters.remote.connection is None
            adapters.close()
