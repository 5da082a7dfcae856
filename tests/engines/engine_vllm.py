"""vLLM's tiered offloading over slabkv.vllm. First the tier alone, with vLLM's own interfaces and a host cache in shared memory; then
whole engines, each in a process of its own: one cold, a fresh one that finds what that has stored, and one whose store was zeroed on disk.
"""

import json
import mmap
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import types

import numpy as np
from vllm.v1.kv_offload.base import LookupResult, ReqContext, ScheduleEndContext
from vllm.v1.kv_offload.config import (
    OffloadingCacheConfig, OffloadingConfig, OffloadingGroupConfig, OffloadingModelConfig, OffloadingParallelConfig,
)
from vllm.v1.kv_offload.tiering.base import TransferJob
from vllm.v1.kv_offload.tiering.factory import SecondaryTierFactory

from daemon import Daemon, wait_for
from slabkv import _vllm_plugin
from slabkv.vllm import SlabkvTier

ROW, ROWS = 65536, 16
HERE = pathlib.Path(__file__).parent


def spec(model="m", dtype="bfloat16", tp=1):
    parallel = OffloadingParallelConfig(rank=0, world_size=tp, tp_size=tp, pp_size=1, pcp_size=1, dcp_size=1, data_parallel_index=0,
                                        data_parallel_size=1, data_parallel_rank_local=None, is_parallelism_agnostic=False)
    config = OffloadingConfig(groups=(OffloadingGroupConfig(tokens_per_block=128, layer_names=("l0", "l1"), group_id=0),),
                              worker_kv_bytes_per_block=ROW, enable_kv_cache_events=True, extra_config={}, engine_id="e",
                              model=OffloadingModelConfig(name=model, dtype=dtype),
                              cache=OffloadingCacheConfig(tokens_per_hash=128, blocks_per_chunk=1), parallel=parallel,
                              kv_cache_layout="LBHNC")
    return types.SimpleNamespace(config=config)


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
        """Verdicts, as a scheduler comes to them: first RETRY, in a later step the answer."""
        context = ReqContext(request)
        self.tier.on_new_request(context)

        def step():
            verdicts = [self.tier.lookup(k, context) for k in keys]
            self.tier.on_schedule_end(ScheduleEndContext((), ()))
            return None if LookupResult.RETRY in verdicts else verdicts

        return wait_for(step)

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
                      dict(namespace_tag="other weights"), dict(speculative="eagle")):
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


def make_model(folder):
    """A small model with random weights, so that its tokens are diverse."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(hidden_size=512, intermediate_size=1024, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=4,
                         vocab_size=1024, max_position_embeddings=4096, initializer_range=0.06, torch_dtype="float32")
    LlamaForCausalLM(config).save_pretrained(folder)


def engine(model, url, warm_seed):
    config = {}
    if url:
        tier = {"type": "SlabkvTier", "module_path": "slabkv.vllm", "url": url}
        config = {"kv_connector": "OffloadingConnector", "kv_role": "kv_both", "kv_connector_extra_config": {
            "spec_name": "CpuTieringSpec", "spec_module_path": "vllm_cpu", "cpu_bytes_to_use": 512 << 20, "secondary_tiers": [tier]}}
    path = os.pathsep.join([os.environ["PYTHONPATH"], str(HERE)])
    run = subprocess.run([sys.executable, str(HERE / "vllm_once.py"), model, json.dumps(config)], text=True, capture_output=True,
                         timeout=600, env={**os.environ, "PYTHONPATH": path, "WARM_SEED": str(warm_seed)})
    for line in run.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line[7:])
    print((run.stdout + run.stderr)[-6000:])
    raise SystemExit("the engine gave no result")


def whole_engines():
    with tempfile.TemporaryDirectory() as model, Daemon(capacity="1G", unit="16M") as d:
        make_model(model)
        cold = engine(model, d.url, 1)
        print(f"vLLM, cold: cached {cold['cached']}, first token after {cold['ttft']:.2f} s")
        warm = engine(model, d.url, 2)
        print(f"vLLM, a fresh process: cached {warm['cached']}, first token after {warm['ttft']:.2f} s")
        same = sum(x == y for x, y in zip(cold["tokens"], warm["tokens"]))
        print(f"tokens equal: {same} of 32")
        assert cold["cached"] == 0 and warm["cached"] >= 1920 - 128 and same == 32
        for path in d.slabs():
            size = path.stat().st_size
            with open(path, "r+b") as f:
                for at in range(1 << 20, size, 4096):
                    f.seek(at)
                    f.write(bytes(64))
        damaged = engine(model, d.url, 3)
        print(f"vLLM, bytes zeroed on disk: cached {damaged['cached']}")
        assert damaged["tokens"] == cold["tokens"]


def main():
    tier_alone()
    if os.environ.get("SKV_SHORT"):
        print("whole engines: not run (SKV_SHORT)")
    else:
        whole_engines()


if __name__ == "__main__":
    main()
