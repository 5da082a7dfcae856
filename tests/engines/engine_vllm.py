"""vLLM's tiered offloading over slabkv.vllm: the tier alone, with vLLM's own interfaces and a host cache in shared memory; then whole
engines (vllm_whole.py)."""

import itertools
import json
import mmap
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import types

import numpy as np
from vllm.v1.kv_offload.base import LookupResult, ReqContext, ScheduleEndContext
from vllm.v1.kv_offload.config import (
    OffloadingCacheConfig, OffloadingConfig, OffloadingGroupConfig, OffloadingModelConfig, OffloadingParallelConfig,
)
from vllm.v1.kv_offload.tiering.base import TransferJob
from vllm.v1.kv_offload.tiering.factory import SecondaryTierFactory

import slow
import vllm_whole
from cases import run_cases
from daemon import Daemon, wait_for
from slabkv import Client, InvalidError, _engines, _native, _vllm_plugin
from slabkv._connector import Settings
from slabkv.vllm import SlabkvTier

ROW, ROWS = 65536, 16


def spec(model="m", dtype="bfloat16", tp=1):
    parallel = OffloadingParallelConfig(rank=0, world_size=tp, tp_size=tp, pp_size=1, pcp_size=1, dcp_size=1, data_parallel_index=0,
                                        data_parallel_size=1, data_parallel_rank_local=None, is_parallelism_agnostic=False)
    config = OffloadingConfig(groups=(OffloadingGroupConfig(tokens_per_block=128, layer_names=("l0", "l1"), group_id=0),),
                              worker_kv_bytes_per_block=ROW, enable_kv_cache_events=True, extra_config={}, engine_id="e",
                              model=OffloadingModelConfig(name=model, dtype=dtype),
                              cache=OffloadingCacheConfig(tokens_per_hash=128, blocks_per_chunk=1), parallel=parallel,
                              kv_cache_layout="LBHNC")
    return types.SimpleNamespace(config=config)


def look_up(tier, keys, request="r"):
    """Verdicts, as a scheduler comes to them: first RETRY, in a later step the answer."""
    context = ReqContext(request)
    tier.on_new_request(context)

    def step():
        verdicts = [tier.lookup(k, context) for k in keys]
        tier.on_schedule_end(ScheduleEndContext((), ()))
        return None if LookupResult.RETRY in verdicts else verdicts

    return wait_for(step)


class Side:
    """A tier and its host cache, two-dimensional as vLLM's."""

    def __init__(self, url, engine_spec=None, **more):
        self.memory = mmap.mmap(-1, ROW * ROWS)
        self.rows = np.frombuffer(self.memory, np.int8).reshape(ROWS, ROW)
        config = {"url": url, "namespace_tag": "w", "timeout": 1.0, "retry": 0.3, "enable_kv_events": True, **more}
        self.tier = SlabkvTier(engine_spec or spec(), memoryview(self.rows), "slabkv", **config)
        self.job = 0

    def run(self, keys, chunks, store):
        self.job += 1
        job = TransferJob(self.job, keys, np.array(chunks), not store, ReqContext("r"))
        (self.tier.submit_store if store else self.tier.submit_load)(job)
        found = []
        assert wait_for(lambda: found.extend(self.tier.get_finished_jobs()) or found), "the job never ended"
        assert found[0].job_id == self.job and not self.tier.has_pending_work()
        return found[0]

    def lookup(self, keys, request="r"):
        return look_up(self.tier, keys, request)

    def forget(self, request="r"):
        self.tier.on_request_finished(ReqContext(request))


def key(i):
    return random.Random(i).randbytes(32) + (0).to_bytes(4, "big")


def zero(folder, begin):
    for path in folder.rglob("*"):
        if path.is_file() and (at := path.read_bytes().find(begin)) >= 0:
            with open(path, "r+b") as f:
                f.seek(at)
                f.write(bytes(len(begin)))
            return True
    return False


def tier_alone():
    hit, miss = LookupResult.HIT, LookupResult.MISS
    for _ in range(2):  # vLLM calls it in each process, perhaps twice
        _vllm_plugin.register()
    assert SecondaryTierFactory.get_tier_class({"type": "slabkv"}) is SlabkvTier
    with Daemon() as d:
        a = Side(d.url)
        a.rows[:] = np.random.default_rng(1).integers(-128, 128, a.rows.shape, np.int8)
        want = a.rows.copy()
        keys = [key(i) for i in range(8)]
        assert a.lookup(keys) == [miss] * 8
        assert a.run(keys, range(8), True).success
        assert [len(e.keys) for e in a.tier.take_events()] == [8]
        a.forget()
        assert a.lookup(keys) == [hit] * 8
        b = Side(d.url)  # a fresh engine
        assert b.lookup([*keys, key(99)]) == [hit] * 8 + [miss]
        result = b.run(keys, range(15, 7, -1), False)
        assert result.success and result.transfer_bytes == 8 * ROW
        assert (b.rows[15:7:-1] == want[:8]).all() and not b.rows[:8].any()
        print("tier: 8 of 8 blocks equal in a fresh engine")
        for other in (dict(engine_spec=spec(dtype="float8_e5m2")), dict(engine_spec=spec(model="n")), dict(engine_spec=spec(tp=2)),
                      dict(namespace_tag="other weights")):
            c = Side(d.url, **other)
            assert c.lookup(keys) == [miss] * 8, other
            c.tier.shutdown()
        print("tier: 0 foreign hits")
        # Damage and a block that went: the load fails for these alone, and the verdict after it is MISS, or vLLM would load for ever.
        assert zero(d.root, bytes(want[3, :64]))
        c = Side(d.url, engine="posix")
        assert c.lookup(keys) == [hit] * 8
        result = c.run(keys, range(8), False)
        assert not result.success and set(result.successful_keys) == set(keys) - {keys[3]}
        assert c.lookup(keys) == [hit] * 3 + [miss] + [hit] * 4
        told = c.tier.get_stats().data["data"]
        assert told["vllm:slabkv_loaded_blocks"][()] == 7 and told["vllm:slabkv_failed_loads"][()] == 1, told
        assert set(told) <= set(SlabkvTier.build_metric_definitions({})) and c.tier.get_stats().data["data"].keys() < told.keys()
        # A reset begins a new namespace: the weights may be others.
        b.tier.drain_jobs()
        b.forget()
        assert b.lookup(keys, "after") == [miss] * 8
        # A manager that is stopped costs a timeout, not the scheduler's time; then nothing.
        e = Side(d.url)
        d.signal(signal.SIGSTOP)
        begin = time.monotonic()
        assert e.tier.lookup(keys[0], ReqContext("s")) == LookupResult.RETRY
        assert time.monotonic() - begin < 0.1
        assert e.lookup(keys, "s") == [miss] * 8
        assert not e.run(keys, range(8), True).success
        d.signal(signal.SIGCONT)
        for side in (a, b, c, e):
            side.tier.shutdown()
        print("tier: damage is a miss, a reset begins anew, a stopped manager holds nobody up")


def configurations():
    """vLLM's own configurations after its overrides: what shapes bytes makes another namespace, another path or a reload does not."""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.platforms import cpu, current_platform

    if not current_platform.device_type:  # a wheel for GPUs finds none here; modules have this object already
        current_platform.__class__ = cpu.CpuPlatform

    with tempfile.TemporaryDirectory() as folder:
        model = vllm_whole.llama(pathlib.Path(folder, "model"))
        copy = shutil.copytree(model, pathlib.Path(folder, "elsewhere"))

        def identity(path=model, **args):
            own = EngineArgs(**{"model": str(path), "skip_tokenizer_init": True, "dtype": "bfloat16", **args}).create_engine_config()
            settings = Settings("it", {})
            return _engines.label(settings, str(path), own.model_config), json.dumps(_engines.vllm_identity(settings, own), sort_keys=True)

        base = identity()
        rope = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}
        others = [dict(hf_overrides={"rope_parameters": rope}), dict(hf_overrides={"rms_norm_eps": 1e-5}), dict(quantization="fp8"),
                  dict(load_format="dummy"), dict(dtype="float16"), dict(kv_cache_dtype="fp8_e5m2"), dict(load_format="pt"),
                  dict(hf_overrides={"sliding_window": 128}, disable_sliding_window=True)]
        found = [identity(**o) for o in others]
        assert len({base, *found}) == 1 + len(others), [o for o, f in zip(others, found) if [base, *found].count(f) > 1]
        for same in (dict(path=copy), dict(load_format="safetensors"), dict(seed=7), dict(max_model_len=512), dict(served_model_name="x"),
                     dict(gpu_memory_utilization=0.5), dict(tensor_parallel_size=2), dict(enforce_eager=True), dict(enable_lora=True)):
            assert identity(**same) == base, same
        print(f"   {len(others)} of {len(others)} are others, 9 of 9 the same")


def keys_of(seed=5, n=4, **more):
    """Keys of a prompt's blocks, as vLLM's own code makes them."""
    from vllm import SamplingParams
    from vllm.utils.hashing import sha256_cbor
    from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
    from vllm.v1.kv_offload.base import make_offload_key
    from vllm.v1.request import Request

    init_none_hash(sha256_cbor)
    tokens = random.Random(seed).choices(range(3, 1000), k=n * 128)
    request = Request("r", tokens, SamplingParams(max_tokens=1), None, block_hasher=get_request_block_hasher(128, sha256_cbor), **more)
    return [make_offload_key(h, 0) for h in request.block_hashes]


def foreign_requests():
    """Keys of vLLM's own code: LoRA A and B, two salts, two images with equal tokens find nothing of each other; nor do the two types of
    8 bits."""
    from vllm.lora.request import LoRARequest
    from vllm.multimodal.inputs import MultiModalFeatureSpec, PlaceholderRange

    def image(name):
        return [MultiModalFeatureSpec(data=None, modality="image", identifier=name, mm_position=PlaceholderRange(0, 64), mm_hash=name)]

    kinds = {"none": {}, "lora A": dict(lora_request=LoRARequest("a", 1, "/a")), "lora B": dict(lora_request=LoRARequest("b", 2, "/b")),
             "salt A": dict(cache_salt="alice"), "salt B": dict(cache_salt="bob"), "image A": dict(mm_features=image("x" * 64)),
             "image B": dict(mm_features=image("y" * 64))}
    asked = foreign = 0
    with Daemon() as d:
        keys = {name: keys_of(**more) for name, more in kinds.items()}
        for name in kinds:
            side = Side(d.url, namespace_tag=name)
            assert side.run(keys[name], range(4), True).success
            assert side.lookup(keys[name], "same") == [LookupResult.HIT] * 4
            for other in kinds:
                if other != name:
                    found = side.lookup(keys[other], other)
                    asked, foreign = asked + 4, foreign + found.count(LookupResult.HIT)
            side.tier.shutdown()
        side = Side(d.url, spec(dtype="fp8"), kv_dtype="float8_e4m3fn")
        assert side.run(keys["none"], range(4), True).success
        other = Side(d.url, spec(dtype="fp8"), kv_dtype="float8_e5m2")
        foreign += other.lookup(keys["none"]).count(LookupResult.HIT)
        asked += 4
        try:
            Side(d.url, spec(dtype="fp8"))
            raise AssertionError("fp8 says too little")
        except InvalidError as e:
            print(f"   {e}")
        for s in (side, other):
            s.tier.shutdown()
    print(f"   {foreign} foreign hits of {asked}")
    assert foreign == 0


def adapters_by_weights():
    """Once a tier has met an engine with LoRA adapters, keys of vLLM's own code name an adapter by its weights: the same under another path are
    found, others of the same name are not."""
    from vllm.lora.request import LoRARequest
    from vllm.v1.core import kv_cache_utils

    before = kv_cache_utils._gen_lora_extra_hash_keys
    with tempfile.TemporaryDirectory() as folder, Daemon() as d:
        a, b = (pathlib.Path(vllm_whole.lora(pathlib.Path(folder, n), i)) for i, n in enumerate("ab"))
        same = shutil.copytree(a, pathlib.Path(folder, "elsewhere"))
        vllm_config = types.SimpleNamespace(parallel_config=None, lora_config=types.SimpleNamespace())  # as the connector that makes a tier has it
        side = Side(d.url)
        del vllm_config
        try:
            keys = [keys_of(lora_request=LoRARequest("sql", 1, str(path))) for path in (a, same, b)]
        finally:
            kv_cache_utils._gen_lora_extra_hash_keys = before
        assert side.run(keys[0], range(4), True).success
        found = [side.lookup(k, str(i)) for i, k in enumerate([*keys, keys_of()])]
        side.tier.shutdown()
    assert found == [[LookupResult.HIT] * 4] * 2 + [[LookupResult.MISS] * 4] * 2, found


def refused_hosts():
    """A group that spans hosts is refused with a sentence that names LMCache; a library that is missing is told, and all are misses."""
    for parallel in (types.SimpleNamespace(nnodes=2, world_size=4), types.SimpleNamespace(nnodes=1, world_size=4,
                                                                                          distributed_executor_backend="ray")):
        vllm_config = types.SimpleNamespace(parallel_config=parallel)  # as the connector that makes a tier has it
        try:
            Side("http://127.0.0.1:1")
            raise AssertionError(vllm_config)
        except InvalidError as e:
            print(f"   {e}")
            assert "LMCache" in str(e)
    del vllm_config
    library, _native._library = _native._library, None
    before = os.environ["SLABKV_LIBRARY"]
    os.environ["SLABKV_LIBRARY"] = "/nowhere/libslabkv.so"
    try:
        side = Side("http://127.0.0.1:1")
    finally:
        os.environ["SLABKV_LIBRARY"], _native._library = before, library
    assert side.lookup([key(1)]) == [LookupResult.MISS]
    assert not side.run([key(1)], [0], True).success and not side.run([key(1)], [0], False).success
    side.tier.drain_jobs()
    side.tier.shutdown()


def late_verdicts():
    """A load that fails while the same key is being looked up anew: vLLM's own bookkeeping stays whole."""
    with Daemon() as d:
        side = Side(d.url)
        context = ReqContext("q")
        assert side.tier.lookup(key(1), context) == LookupResult.RETRY
        assert not side.run([key(1)], [0], False).success  # not flushed yet
        side.tier.on_schedule_end(ScheduleEndContext((), ()))
        assert side.tier.lookup(key(1), context) == LookupResult.MISS
        side.forget("q")
        assert side.tier.lookup(key(2), context) == LookupResult.RETRY
        side.tier.on_schedule_end(ScheduleEndContext((), ()))
        assert not side.run([key(2)], [0], False).success  # flushed, perhaps answered
        for _ in range(50):
            side.tier.on_schedule_end(ScheduleEndContext((), ()))
            assert side.tier.lookup(key(2), context) == LookupResult.MISS
            time.sleep(0.002)
        side.tier.shutdown()


def late_storage():
    """Storage later than every timeout: a job is reported, and the tier is drained or shut down, only when no I/O touches its rows."""
    storage, fresh = slow.Storage(), itertools.count(1000, 8)
    with Daemon() as d:
        keys = [key(i) for i in range(8)]
        first = Side(d.url)
        assert first.run(keys, range(8), True).success
        first.tier.shutdown()
        for how in ("reported", "drained", "shut down"):
            for store in (False, True):
                side = Side(d.url, engine="posix", timeout=0.5, renew_on_reset=False)
                some = [key(i) for i in itertools.islice(itertools.count(next(fresh)), 8)] if store else keys
                assert side.lookup(some) == [LookupResult.MISS if store else LookupResult.HIT] * 8
                side.rows[:] = np.random.default_rng(2).integers(-128, 128, side.rows.shape, np.int8)
                want = side.rows[0].copy()

                def begin(side=side, some=some, store=store, how=how):
                    job = TransferJob(1, some, np.arange(8), not store, ReqContext("r"))
                    (side.tier.submit_store if store else side.tier.submit_load)(job)

                    def report():
                        if how == "reported":
                            wait_for(lambda: list(side.tier.get_finished_jobs()))
                            return
                        wait_for(lambda: storage.held)
                        (side.tier.drain_jobs if how == "drained" else side.tier.shutdown)()

                    return report

                base = side.rows.ctypes.data
                storage.late(f"{how}, {'store' if store else 'load'}", begin, [(base, 8 * ROW)], 2.0)
                if how != "shut down":
                    side.tier.shutdown()
                if store:
                    other = Side(d.url, engine="posix", options={"verify": False})
                    result = other.run(some, range(8), False)
                    assert some[0] not in (some if result.success else result.successful_keys or ()) or (other.rows[0] == want).all()
                    other.tier.shutdown()


def purged_beside():
    """A store that storage holds while its instance is purged is not found after it, also when a reset of the tier waits for it; what is
    stored after the purge is."""
    storage = slow.Storage()
    keys = [key(i) for i in range(8)]
    for reset in (False, True):
        with Daemon() as d, Client(d.url) as operator:
            side = Side(d.url, engine="posix")
            assert side.lookup(keys) == [LookupResult.MISS] * 8  # registers the instance
            instance = side.tier._instance
            storage.say("hold")
            try:
                side.tier.submit_store(TransferJob(1, keys, np.arange(8), False, ReqContext("r")))
                assert wait_for(lambda: storage.held)
                waiter = threading.Thread(target=side.tier.drain_jobs if reset else lambda: None)
                waiter.start()
                assert operator.purge([instance])["sessions"] == 1
            finally:
                storage.say("0")
            waiter.join()
            done = []
            assert wait_for(lambda: done.extend(side.tier.get_finished_jobs()) or done)
            assert not done[0].success
            side.forget()
            other = Side(d.url, engine="posix")
            assert side.lookup(keys) == other.lookup(keys) == [LookupResult.MISS] * 8
            side.forget()
            assert side.run(keys, range(8), True).success
            assert side.lookup(keys, "after") == [LookupResult.HIT] * 8
            other.forget()
            assert other.lookup(keys, "after") == [LookupResult.MISS if reset else LookupResult.HIT] * 8
            for tier in (side.tier, other.tier):
                tier.shutdown()
    print("   a store beside a purge: 0 of 8 found, with a reset and without")


def rates():
    """The tier beside vLLM's own fs tier, both with a cold page cache: 64 rows of 2 MiB in four jobs, in turns. The best of each counts: the disk is
    others', too; so it is tried up to eight times."""
    from vllm.v1.kv_offload.tiering.fs.manager import FileSystemTierManager

    row, n, jobs = 2 << 20, 64, 4
    memory = mmap.mmap(-1, row * n)
    rows = np.frombuffer(memory, np.int8).reshape(n, row)
    rows[:] = np.random.default_rng(1).integers(-128, 128, rows.shape, np.int8)
    want = rows.copy()
    keys = [key(i) for i in range(n)]
    best = {}

    def transfer(tier, store):
        begin = time.monotonic()
        for j in range(jobs):
            some = range(j * n // jobs, (j + 1) * n // jobs)
            job = TransferJob(j, [keys[i] for i in some], np.array(some), not store, ReqContext("r"))
            (tier.submit_store if store else tier.submit_load)(job)
        done = []
        while len(done) < jobs and time.monotonic() < begin + 60:
            time.sleep(0.0005)
            done.extend(tier.get_finished_jobs())
        assert len(done) == jobs and all(r.success for r in done)
        return row * n / (time.monotonic() - begin) / 1e6

    ratio = 0.0
    for turn in range(8):
        if turn >= 2 and ratio >= 1:
            break
        for name in ("slabkv", "fs"):
            with tempfile.TemporaryDirectory() as folder, Daemon(capacity="512M", unit="16M") as d:
                def tier():
                    view = memoryview(rows)
                    if name == "slabkv":
                        return SlabkvTier(spec(), view, "slabkv", url=d.url, namespace_tag="w")
                    fs = spec()
                    fs.blocks_per_chunk = 1
                    return FileSystemTierManager(fs, view, "fs", root_dir=folder)

                a = tier()
                stored = transfer(a, True)
                a.shutdown()
                time.sleep(0.3)  # the kernel gives back what a process had registered when it is closed, and takes its time
                for path in [*pathlib.Path(folder).rglob("*.bin"), *d.slabs()]:
                    fd = os.open(path, os.O_RDONLY)
                    os.fsync(fd)
                    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                    os.close(fd)
                rows[:] = 0
                b = tier()
                assert look_up(b, keys) == [LookupResult.HIT] * n  # as a scheduler does before each load
                loaded = transfer(b, False)
                b.shutdown()
                assert (rows == want).all()
                best.setdefault(name, []).append((stored, loaded))
        ratio = max(x for _, x in best["slabkv"]) / max(x for _, x in best["fs"])
    for name, found in best.items():
        print(f"   {name}: store {', '.join(f'{s:.0f}' for s, _ in found)}; load {', '.join(f'{x:.0f}' for _, x in found)} MB/s")
    print(f"   load: {ratio:.2f} of fs")
    assert ratio >= float(os.environ.get("SKV_BAR", "0.9"))


def main():
    cases = [tier_alone, configurations, foreign_requests, adapters_by_weights, refused_hosts, late_verdicts, late_storage, purged_beside, rates]
    if os.environ.get("SKV_SHORT"):
        print("whole engines: not run (SKV_SHORT)")
    else:
        cases += vllm_whole.CASES
    return run_cases(*cases)


if __name__ == "__main__":
    sys.exit(main())
