"""vLLM's tiered KV offloading over slabkv (docs/start/VLLM.md):

    --kv-transfer-config '{"kv_connector": "OffloadingConnector", "kv_role": "kv_both", "kv_connector_extra_config": {
        "spec_name": "TieringOffloadingSpec", "cpu_bytes_to_use": 20000000000,
        "secondary_tiers": [{"type": "slabkv", "url": "http://127.0.0.1:7333"}]}}'

The tier lives in vLLM's scheduler process and never makes it wait: lookups of a step go to a thread in one call, loads and stores to
queues. A block is one row of vLLM's host cache with the shards of all workers of this host side by side. Nothing that goes wrong here
ends the engine: it is a miss, or a store that did not happen.
"""

from __future__ import annotations

import ctypes
import hashlib
import select
import time
from collections.abc import Collection, Iterable
from typing import Any, ClassVar, Optional

from ._budget import DEADLINE_S, Budget, Load, Pins
from ._connector import Breaker, Settings, log, relying_on, require
from ._engines import label, vllm_config, vllm_identity
from ._job import Pointers, Result
from ._lmcache_names import name_adapters
from ._lookups import Lookups
from .client import Queue
from .errors import Error, FullError, InvalidError
from .namespace import Namespace

with relying_on("slabkv.vllm", "vllm"):
    from vllm.distributed.kv_transfer.kv_connector.v1.offloading.metrics import OffloadingConnectorStats
    from vllm.v1.kv_offload.base import (
        Locality, LookupResult, Medium, OffloadingCounterMetadata, OffloadingEvent, OffloadingGaugeMetadata, OffloadingMetricMetadata,
        ReqContext, RequestOffloadingContext, ScheduleEndContext,
    )
    from vllm.v1.kv_offload.tiering.base import JobResult, SecondaryTierManager, TransferJob

    require(LookupResult, "HIT", "MISS", "RETRY")
    require(TransferJob, "job_id", "keys", "chunk_ids", "req_context", "submit_time")
    require(JobResult, "job_id", "success", "successful_keys", "transfer_time", "transfer_bytes")
    require(OffloadingEvent, "keys", "medium", "removed", "locality")
    require(ReqContext, "req_id")
    require(OffloadingConnectorStats, "increase_counter", "set_gauge")
    require(SecondaryTierManager, "on_schedule_end", "on_request_finished", "has_pending_work", "take_events", "drain_jobs",
            "block_size_bytes")


def _key(key: bytes) -> bytes:
    """128 bits of vLLM's block hash (tokens, LoRA, salt, images) with its group."""
    return hashlib.blake2b(key, digest_size=16).digest()


_SPANS = ("slabkv.vllm: this engine's workers may be on several hosts ({}), and a tier sees the memory of one: use LMCache's connector "
          "(docs/start/LMCACHE.md){}")

# What get_stats tells, by name: counter or gauge, and what of. In Prometheus vllm:slabkv_NAME.
METRICS: dict[str, tuple[str, str]] = {
    "lookups": ("counter", "Blocks looked up."),
    "hits": ("counter", "Blocks that were there."),
    "declined_blocks": ("counter", "Blocks that were there and are recomputed, because that is faster than loading them."),
    "loaded_blocks": ("counter", "Blocks loaded."),
    "loaded_bytes": ("counter", "Bytes loaded."),
    "failed_loads": ("counter", "Blocks that could not be loaded: gone, damaged, or the manager or storage did not answer."),
    "stored_blocks": ("counter", "Blocks stored, or found stored by others."),
    "stored_bytes": ("counter", "Bytes of those."),
    "failed_stores": ("counter", "Blocks that could not be stored."),
    "dropped_stores": ("counter", "Blocks that were not stored, because others were waiting or loads were late."),
    "load_bytes_per_s": ("gauge", "Measured rate of loads."),
    "prefill_tokens_per_s": ("gauge", "Measured rate of prefill."),
    "jobs": ("gauge", "Loads and stores in flight."),
    "reachable": ("gauge", "1, or 0 while the manager is not asked because it did not answer."),
}


def _metric(name: str) -> str:
    return "vllm:slabkv_" + name


def _refuse_several_hosts(engine: Any, one_host: bool) -> None:
    p = getattr(engine, "parallel_config", None)
    nodes = getattr(p, "nnodes_within_dp", getattr(p, "nnodes", 1))
    if isinstance(nodes, int) and nodes > 1:
        raise InvalidError(_SPANS.format(f"nnodes {nodes}", ""), field="parallel")
    if getattr(p, "distributed_executor_backend", None) == "ray" and getattr(p, "world_size", 1) > 1 and not one_host:
        raise InvalidError(_SPANS.format("Ray places them", ", or say one_host if Ray places them on this host"), field="parallel")


class SlabkvTier(SecondaryTierManager):
    """A secondary tier."""

    medium: ClassVar[Medium] = Medium.STORAGE

    @relying_on("slabkv.vllm", "vllm")
    def __init__(self, offloading_spec: Any, primary_kv_view: memoryview, tier_type: str, backpressure_detector: Any = None,
                 **config: Any) -> None:
        super().__init__(offloading_spec, primary_kv_view, tier_type, backpressure_detector)
        self._settings = s = Settings("slabkv.vllm", config, max_pending_stores=256, renew_on_reset=True,
                                      enable_kv_events=False, locality=None, one_host=False)
        engine = vllm_config()
        _refuse_several_hosts(engine, bool(s.one_host))
        name_adapters(getattr(engine, "lora_config", None))
        self.locality = Locality(s.locality) if s.locality is not None else None
        c = offloading_spec.config
        p = c.parallel
        self._namespace = Namespace(
            label(s, c.model.name, getattr(engine, "model_config", None)), **vllm_identity(s, engine), dtype=str(s.kv_dtype or c.model.dtype),
            layout=str(c.kv_cache_layout), tokens=c.cache.tokens_per_hash,
            parallel=dict(tp=p.tp_size, pp=p.pp_size, pcp=p.pcp_size, dcp=p.dcp_size, world=p.world_size),
            groups=[[g.tokens_per_block, list(g.layer_names)] for g in c.groups], engine="vllm", blocks=c.cache.blocks_per_chunk,
            replicated=c.replicated_layout, canonical=c.canonical_layout, worker_bytes=c.worker_kv_bytes_per_block)
        self._events: Optional[list[OffloadingEvent]] = [] if s.enable_kv_events and c.enable_kv_cache_events else None
        self._instance: Optional[str] = None
        self._breaker = Breaker("slabkv.vllm", s.retry)
        self._budget = Budget.of(s)
        self._one_group = len(c.groups) == 1  # else what is loaded is no prefix
        self._tokens = int(c.groups[0].tokens_per_block) * int(c.cache.blocks_per_chunk)  # in a row
        self._counts = dict.fromkeys((n for n, (kind, _) in METRICS.items() if kind == "counter"), 0)
        self._told = dict(self._counts)
        self._loading: dict[int, Load] = {}  # by job
        self._jobs: dict[tuple[Queue, int], TransferJob] = {}
        self._finished: list[JobResult] = []
        # The whole view, so that rows are found by their offset: it has two dimensions and cannot be cut.
        self._whole = ctypes.c_char.from_buffer(primary_kv_view)
        self._base = ctypes.addressof(self._whole)
        self._open(s, primary_kv_view)
        self._lookups = Lookups(self.worth_loading)

    def _open(self, s: Settings, view: memoryview) -> None:
        self._queues: tuple[Queue, ...] = ()
        try:
            self._client = s.client()
            self._loads: Queue = self._client.queue()
            self._stores: Queue = self._client.queue(threads=2)
            self._queues = self._loads, self._stores
        except (ImportError, OSError, MemoryError) as e:
            log.error("slabkv.vllm: %s; going on without the cache", e)
            self._breaker.until = float("inf")
            return
        try:
            self._client.register(Pointers([self._base], view.nbytes, view), shared=True)
        except (Error, OSError) as e:
            log.info("slabkv.vllm: vLLM's host cache is not registered (only slower): %s", e)
        self._pins = Pins(self._client.pin, self._budget)
        self._breaker.call("the instance", self._register, otherwise=None)

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

    def worth_loading(self, keys: list[bytes]) -> list[bool]:
        """Which are there and arrive before prefill would have computed them. Waits, too."""
        there = self.exist(keys)
        self._counts["lookups"] += len(keys)
        self._counts["hits"] += sum(there)
        if self._one_group:
            n = there.index(False) if False in there else len(there)
            take = self._budget.take(n, self.block_size_bytes, self._tokens)
            self._counts["declined_blocks"] += n - take
            there[take:n] = [False] * (n - take)
            if take < n:
                there[n:] = [False] * (len(there) - n)
        self._budget.missed(k for k, hit in zip(keys, there) if not hit)
        return there

    def lookup(self, key: Any, req_context: ReqContext) -> LookupResult:
        found = self._lookups.lookup(key, req_context.req_id)
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
        instance = self._instance
        ready = bool(self._queues) and not self._breaker.open
        if store:
            self._budget.stored(keys, self._tokens)
            if ready and not self._budget.may_store(self._stores.in_flight, self._settings.max_pending_stores):
                ready = False
                self._counts["dropped_stores"] += len(keys)
        if ready and instance is not None:
            try:
                rows = Pointers([self._base + int(i) * self.block_size_bytes for i in job.chunk_ids], self.block_size_bytes, self._whole)
                queue = self._stores if store else self._loads
                submit = queue.put if store else queue.get
                if not store:
                    self._loading[job.job_id] = self._budget.begin(len(keys) * self.block_size_bytes)
                self._jobs[queue, submit(instance, [_key(k) for k in keys], rows)] = job
                return
            except FullError:
                pass
            except Exception as e:  # vLLM ends its engine if anything leaves here
                self._breaker.failed("a store" if store else "a load", e)
        self._fail(job, keys, store)

    def _fail(self, job: TransferJob, keys: Collection[Any], store: bool) -> None:
        if not store:
            self._loaded(job, 0)
            self._lookups.mark_miss(keys)  # else vLLM asks, is told it is there, and loads for ever
        self._counts["failed_stores" if store else "failed_loads"] += len(keys)
        self._finished.append(JobResult(job.job_id, False))

    def _loaded(self, job: TransferJob, n: int) -> None:
        load = self._loading.pop(job.job_id, None)
        if load is not None:
            self._budget.end(load, n * self.block_size_bytes)

    def submit_store(self, job_metadata: TransferJob) -> None:
        self._submit(job_metadata, True)

    def submit_load(self, job_metadata: TransferJob) -> None:
        self._submit(job_metadata, False)

    def _drain(self) -> None:
        for queue in self._queues:
            queue.cancel_late(DEADLINE_S)
            for c in queue.drain():
                job = self._jobs.pop((queue, c.tag), None)
                if job is None:
                    continue  # a signal handler interrupted its submit: the engine was told so
                store = queue is self._stores
                if c.error:
                    self._breaker.failed("a store" if store else "a load", c.error)
                keys = list(job.keys)
                # Somebody else stores the same block: as good as stored.
                good = [k for k, r in zip(keys, c.results) if r or (store and r == Result.BUSY)]
                whole = len(good) == len(keys)
                if store and good and self._events is not None:
                    self._events.append(OffloadingEvent(keys=good, medium=self.medium, removed=False, locality=self.locality))
                if store:
                    self._pins.keep(self._instance, [_key(k) for k in good],
                                    getattr(job.req_context, "kv_hints", None) or getattr(job.req_context, "kv_transfer_params", None))
                else:
                    self._loaded(job, len(good))
                if not store and not whole:
                    there = set(good)
                    self._lookups.mark_miss([k for k in keys if k not in there])
                n_bytes = len(good) * self.block_size_bytes
                for name, n in (("{}_blocks", len(good)), ("{}_bytes", n_bytes)):
                    self._counts[name.format("stored" if store else "loaded")] += n
                self._counts["failed_stores" if store else "failed_loads"] += len(keys) - len(good)
                self._finished.append(JobResult(job.job_id, whole, tuple(good) if good and not whole and not store else None,
                                                transfer_time=time.monotonic() - job.submit_time, transfer_bytes=n_bytes))

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
        any more, unless renew_on_reset is false. What only this engine can have stored is purged."""
        while self._jobs:
            select.select(self._queues, [], [], 1.0)
            self._drain()
        if self._settings.renew_on_reset:
            if self._instance and self._namespace.renewed:
                self._breaker.call("a purge", self._client.purge, [self._instance], otherwise=None)
            self._namespace.renew()
            self._instance = None

    def shutdown(self) -> None:
        self._lookups.shutdown()
        if self._queues:
            self._pins.close()
        for queue in self._queues:
            queue.close()
        if self._queues:
            self._client.close()

    # ---- metrics ----

    @classmethod
    def build_metric_definitions(cls, extra_config: dict[str, Any]) -> dict[str, OffloadingMetricMetadata]:
        kinds = {"counter": OffloadingCounterMetadata, "gauge": OffloadingGaugeMetadata}
        return {_metric(name): kinds[kind](documentation=text) for name, (kind, text) in METRICS.items()}

    def get_stats(self) -> Optional[OffloadingConnectorStats]:
        stats = OffloadingConnectorStats()
        for name, count in self._counts.items():
            if count != self._told[name]:
                stats.increase_counter(_metric(name), count - self._told[name])
                self._told[name] = count
        measured = self._budget.stats()
        stats.set_gauge(_metric("load_bytes_per_s"), measured["load_bytes_per_s"])
        stats.set_gauge(_metric("prefill_tokens_per_s"), measured["prefill_tokens_per_s"])
        stats.set_gauge(_metric("jobs"), len(self._jobs))
        stats.set_gauge(_metric("reachable"), int(not self._breaker.open))
        return stats


__all__ = ["SlabkvTier"]
