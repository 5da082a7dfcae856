"""vLLM's tiered KV offloading over slabkv (docs/VLLM.md):

    --kv-transfer-config '{"kv_connector": "OffloadingConnector", "kv_role": "kv_both", "kv_connector_extra_config": {
        "spec_name": "TieringOffloadingSpec", "cpu_bytes_to_use": 20000000000,
        "secondary_tiers": [{"type": "slabkv", "url": "http://127.0.0.1:7333"}]}}'

The tier lives in vLLM's scheduler process and never makes it wait: lookups of a step go to a thread in one call, loads and stores to
queues. A block is one row of vLLM's host cache with the shards of all workers of this host side by side.
"""

from __future__ import annotations

import ctypes
import hashlib
import select
import time
from collections.abc import Collection, Iterable
from typing import Any, ClassVar, Optional

from vllm.v1.kv_offload.base import Locality, LookupResult, Medium, OffloadingEvent, ReqContext, RequestOffloadingContext, ScheduleEndContext
from vllm.v1.kv_offload.tiering.async_lookup import AsyncLookupManager
from vllm.v1.kv_offload.tiering.base import JobResult, SecondaryTierManager, TransferJob

from ._connector import Breaker, Settings, log
from ._job import Pointers, Result
from .client import Queue
from .errors import Error, FullError, InvalidError
from .namespace import Namespace


def _key(key: bytes) -> bytes:
    """128 bits of vLLM's block hash (tokens, LoRA, salt, images) with its group."""
    return hashlib.blake2b(key, digest_size=16).digest()


class _Lookups(AsyncLookupManager):
    """vLLM's thread for lookups: a step's keys in one call."""

    def __init__(self, tier: SlabkvTier) -> None:
        self._tier = tier
        super().__init__(tier_type=tier.tier_type)

    def batch_lookup(self, keys: list[Any], req_context: ReqContext) -> Iterable[bool]:
        return self._tier.exist(keys)


class SlabkvTier(SecondaryTierManager):
    """A secondary tier."""

    medium: ClassVar[Medium] = Medium.STORAGE

    def __init__(self, offloading_spec: Any, primary_kv_view: memoryview, tier_type: str, backpressure_detector: Any = None,
                 **config: Any) -> None:
        super().__init__(offloading_spec, primary_kv_view, tier_type, backpressure_detector)
        self._settings = s = Settings("slabkv.vllm", config, model=None, revision=None, speculative="", max_pending_stores=256,
                                      renew_on_reset=True, enable_kv_events=False, locality=None)
        self.locality = Locality(s.locality) if s.locality is not None else None
        c = offloading_spec.config
        nodes = getattr(getattr(getattr(offloading_spec, "vllm_config", None), "parallel_config", None), "nnodes", 1)
        if nodes > 1:
            raise InvalidError("slabkv.vllm: this engine's workers span hosts, and a tier sees the memory of one: use LMCache's connector "
                               "(docs/LMCACHE.md)", field="parallel")
        p = c.parallel
        self._namespace = Namespace(
            c.model.name, weights=s.weights(s.model or c.model.name, s.revision), dtype=str(s.kv_dtype or c.model.dtype),
            layout=str(c.kv_cache_layout), tokens=c.cache.tokens_per_hash,
            parallel=dict(tp=p.tp_size, pp=p.pp_size, pcp=p.pcp_size, dcp=p.dcp_size, world=p.world_size), speculative=s.speculative,
            groups=[[g.tokens_per_block, list(g.layer_names)] for g in c.groups], engine="vllm", blocks=c.cache.blocks_per_chunk,
            replicated=c.replicated_layout, canonical=c.canonical_layout, worker_bytes=c.worker_kv_bytes_per_block)
        self._events: Optional[list[OffloadingEvent]] = [] if s.enable_kv_events and c.enable_kv_cache_events else None
        self._instance: Optional[str] = None
        self._breaker = Breaker("slabkv.vllm", s.retry)
        self._client = s.client()
        # The whole view, so that rows are found by their offset: it has two dimensions and cannot be cut.
        self._whole = ctypes.c_char.from_buffer(primary_kv_view)
        self._base = ctypes.addressof(self._whole)
        try:
            self._client.register(Pointers([self._base], primary_kv_view.nbytes, primary_kv_view), shared=True)
        except (Error, OSError) as e:
            log.info("slabkv.vllm: vLLM's host cache is not registered (only slower): %s", e)
        self._loads: Queue = self._client.queue()
        self._stores: Queue = self._client.queue(threads=2)
        self._jobs: dict[tuple[Queue, int], TransferJob] = {}
        self._finished: list[JobResult] = []
        self._breaker.call("the instance", self._register, otherwise=None)
        self._lookups = _Lookups(self)

    # ---- lookups ----

    def _register(self) -> str:
        if self._instance is None:
            name = self._namespace.instance(self.block_size_bytes)
            self._client.put_instance(name, self.block_size_bytes, tokens=self._namespace.parts["tokens"], group=self._settings.group,
                                      extra=self._namespace.extra())
            self._instance = name
        return self._instance

    def exist(self, keys: list[bytes]) -> list[bool]:
        """Which are there. Waits: not in the scheduler's thread."""

        def ask() -> list[bool]:
            return self._client.exists(self._register(), [_key(k) for k in keys])

        return self._breaker.call("a lookup", ask, otherwise=[False] * len(keys))

    def lookup(self, key: Any, req_context: ReqContext) -> LookupResult:
        found = self._lookups.lookup(key, req_context)
        return LookupResult.RETRY if found is None else LookupResult.HIT if found else LookupResult.MISS

    def on_new_request(self, req_context: ReqContext) -> RequestOffloadingContext:
        return RequestOffloadingContext()

    def on_schedule_end(self, context: ScheduleEndContext) -> None:
        self._lookups.flush()

    def on_request_finished(self, req_context: ReqContext) -> None:
        self._lookups.cleanup(req_context.req_id)

    # ---- jobs ----

    def _submit(self, job: TransferJob, store: bool) -> None:
        keys = list(job.keys)
        queue = self._stores if store else self._loads
        full = store and queue.in_flight >= self._settings.max_pending_stores
        if not (full or self._breaker.open or self._instance is None):
            rows = Pointers([self._base + int(i) * self.block_size_bytes for i in job.chunk_ids], self.block_size_bytes, self._whole)
            try:
                submit = queue.put if store else queue.get
                self._jobs[queue, submit(self._instance, [_key(k) for k in keys], rows)] = job
                return
            except FullError:
                pass
            except (Error, OSError, MemoryError) as e:
                self._breaker.failed("a store" if store else "a load", e)
        self._fail(job, keys, store)

    def _fail(self, job: TransferJob, keys: Collection[Any], store: bool) -> None:
        if not store:
            self._lookups.mark_miss(keys)  # else vLLM asks, is told it is there, and loads for ever
        self._finished.append(JobResult(job.job_id, False))

    def submit_store(self, job_metadata: TransferJob) -> None:
        self._submit(job_metadata, True)

    def submit_load(self, job_metadata: TransferJob) -> None:
        self._submit(job_metadata, False)

    def _drain(self) -> None:
        for queue in (self._loads, self._stores):
            for c in queue.drain():
                job = self._jobs.pop((queue, c.tag))
                store = queue is self._stores
                if c.error:
                    self._breaker.failed("a store" if store else "a load", c.error)
                keys = list(job.keys)
                # Somebody else stores the same block: as good as stored.
                good = [k for k, r in zip(keys, c.results) if r or (store and r == Result.BUSY)]
                whole = len(good) == len(keys)
                if store and good and self._events is not None:
                    self._events.append(OffloadingEvent(keys=good, medium=self.medium, removed=False, locality=self.locality))
                if not store and not whole:
                    there = set(good)
                    self._lookups.mark_miss([k for k in keys if k not in there])
                self._finished.append(JobResult(
                    job.job_id, whole, tuple(good) if good and not whole and not store else None,
                    transfer_time=time.monotonic() - job.submit_time, transfer_bytes=len(good) * self.block_size_bytes))

    def get_finished_jobs(self) -> Iterable[JobResult]:
        self._drain()
        finished, self._finished = self._finished, []
        return finished

    def has_pending_work(self) -> bool:
        return bool(self._jobs or self._finished)

    def take_events(self) -> Iterable[OffloadingEvent]:
        events, self._events = self._events or [], [] if self._events is not None else None
        return events

    def drain_jobs(self) -> None:
        """Waits for all jobs. vLLM does so when it resets its cache, perhaps since the weights have changed: nothing stored so far is found
        any more, unless renew_on_reset is false."""
        while self._jobs:
            select.select([self._loads, self._stores], [], [], 1.0)
            self._drain()
        if self._settings.renew_on_reset:
            self._namespace.renew()
            self._instance = None

    def shutdown(self) -> None:
        self._lookups.shutdown()
        self._loads.close()
        self._stores.close()
        self._client.close()


__all__ = ["SlabkvTier"]
