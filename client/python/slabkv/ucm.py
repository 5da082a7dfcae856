"""UCM (unified cache management) over slabkv, where its "Cache-Ds3fs" pipeline would stand (docs/start/UCM.md):

    UcmConnectorFactoryV1.create_connector("SlabkvStore", {"block_size": 1048576, "shard_size": 65536, "tensor_size": 32768,
        "namespace_tag": "llama@0e9e39f", "kv_dtype": "bfloat16"}, "slabkv.ucm")

A block of UCM's has shards (layers, or all in one), a shard has tensors: a shard is a block here, a tensor one of its parts. Tasks run on
queues; a transfer that failed is an error of wait, as UCM expects, and of nothing else.
"""

from __future__ import annotations

import ctypes
import select
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from ._budget import DEADLINE_S, Budget
from ._connector import Breaker, Settings, log, relying_on
from ._engines import label, vllm_config, vllm_identity
from ._job import Pointers, Result
from ._job import key as key_of
from .errors import DeviceMemoryError, Error, InvalidError
from .namespace import Namespace

with relying_on("slabkv.ucm", "ucm"):
    from ucm.store.ucmstore_v1 import Task, UcmKVStoreBaseV1

MAX_PARTS = 32  # of a block
# Ours among UCM's own knobs. All others of its configuration (storage_backends, io_direct, stream_number, data_trans_concurrency, posix_...)
# belong to its stores: accepted, since a configuration is one for all of them, and without effect.
_OURS = ("url", "token", "timeout", "retry", "mounts", "engine", "ca_file", "group", "namespace_tag", "kv_dtype", "options", "min_tokens",
         "load_budget_ms", "prefill_tokens_per_s", "model", "revision", "host_memory",
         "fingerprint")
_THEIRS = {"block_size", "cpu_affinity_cores", "data_dir_shard_bytes", "data_trans_concurrency", "device_id", "io_direct", "local_rank_size",
           "lookup_concurrency", "open_concurrency", "commit_concurrency", "role", "share_buffer_enable", "shard_size", "storage_backends",
           "store_pipeline", "stream_number", "tensor_size", "tensor_size_list", "timeout_ms", "unique_id", "waiting_queue_depth",
           "running_queue_depth", "buffer_number", "buffer_capacity_gb", "buffer_size", "io_engine", "is_mla", "gpu_kv_buffers"}


class TransferError(RuntimeError):
    """Not all blocks of a task arrived, or were stored."""


class SlabkvTask(Task):
    """A transfer."""

    def __init__(self, number: int, store: bool, n: int, n_bytes: int) -> None:
        self.number = number
        self.store = store
        self.n = n
        self.n_bytes = n_bytes
        self.began = time.monotonic()
        self.staging: Optional[list[bytearray]] = None
        self.addresses: Sequence[Sequence[int]] = ()
        self.load: Any = None
        self.over = threading.Event()
        self.good: list[bool] = []
        self.error = ""

    def __str__(self) -> str:
        return f"task({self.number},{'Dump' if self.store else 'Load'},{self.n},{self.n_bytes})"


class SlabkvStore(UcmKVStoreBaseV1):
    """A store of UCM's."""

    @relying_on("slabkv.ucm", "ucm")
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(dict(config))
        unknown = [k for k in config if k not in _OURS and k not in _THEIRS and not k.startswith(("posix_", "cache_", "ds3fs_"))]
        given = {k: v for k, v in config.items() if k in _OURS} | {k: config[k] for k in unknown}
        if "timeout" not in given and config.get("timeout_ms"):
            given["timeout"] = min(float(config["timeout_ms"]) / 1000, 10.0)
        self.settings = s = Settings("slabkv.ucm", given, host_memory=False)
        if int(config.get("device_id", -1)) >= 0 and not s.host_memory:
            raise DeviceMemoryError(f"slabkv.ucm: device_id {config['device_id']} may mean addresses of an accelerator, whose memory cannot be "
                                    "read from here (UCM's Cache store, which copies, takes only stores in C++). host_memory: true says "
                                    "that all of them are of this host; else use LMCache's or vLLM's connector", field="device_id")
        if not s.kv_dtype:
            raise InvalidError("slabkv.ucm: kv_dtype is needed, the exact type of the KV cache (bfloat16, float8_e4m3fn, ...)", field="kv_dtype")
        engine = vllm_config()
        identity = vllm_identity(s, engine)
        tensors = config.get("tensor_size_list") or []
        self.shard_size = self._number(config, "shard_size", sum(tensors) if tensors else int(config.get("tensor_size") or 0))
        tensor = int(config.get("tensor_size") or 0) or self.shard_size
        if not tensors and self.shard_size % tensor:
            raise InvalidError(f"slabkv.ucm: shard_size {self.shard_size} is no multiple of tensor_size {tensor}", field="tensor_size")
        self.sizes = [int(t) for t in tensors] or [tensor] * (self.shard_size // tensor)
        block = self._number(config, "block_size", self.shard_size)
        if sum(self.sizes) != self.shard_size or block % self.shard_size:
            raise InvalidError(f"slabkv.ucm: block_size {block} is no multiple of shard_size {self.shard_size}, or tensors of {sum(self.sizes)} "
                               "bytes do not make a shard", field="shard_size")
        self.shards = block // self.shard_size
        self._namespace = Namespace(label(s, s.model or "ucm", getattr(engine, "model_config", None)), **identity, dtype=s.kv_dtype, layout="ucm",
                                    tokens=0, engine="ucm", groups=[self.shards, self.sizes])
        self._breaker = Breaker("slabkv.ucm", s.retry)
        self._budget = Budget.of(s)
        self._client = s.client()
        self._loads, self._stores = self._client.queue(), self._client.queue(threads=2)
        self._tasks: dict[tuple[Any, int], SlabkvTask] = {}
        self._lock = threading.RLock()
        self._instance: Optional[str] = None
        self._count = 0

    @staticmethod
    def _number(config: Mapping[str, Any], name: str, default: int) -> int:
        value = int(config.get(name) or default)
        if value <= 0:
            raise InvalidError(f"slabkv.ucm: {name} is needed: bytes, as for UCM's own stores", field=name)
        return value

    def cc_store(self) -> int:
        """There is no C++ store behind this one, so none of UCM's can be stacked on it."""
        return 0

    def close(self) -> None:
        """When it returns no I/O touches any tensor."""
        self._loads.close()
        self._stores.close()
        self._client.close()

    # ---- lookups ----

    def _register(self) -> str:
        if self._instance is None:
            name = self._namespace.instance(self.shard_size)
            parts = {f"t{i}": n for i, n in enumerate(self.sizes)} if len(self.sizes) <= MAX_PARTS else {"kv": self.shard_size}
            self._client.put_instance(name, parts, group=self.settings.group, extra=self._namespace.extra())
            self._instance = name
        return self._instance

    def _key(self, block: bytes, shard: int) -> bytes:
        return block if self.shards == 1 and len(block) == 16 else key_of(block, shard)

    def lookup(self, block_ids: Sequence[bytes]) -> list[bool]:
        """Which blocks are there, with all of their shards."""
        if not block_ids:
            return []

        def ask() -> list[bool]:
            there = self._client.exists(self._register(), [self._key(b, i) for b in block_ids for i in range(self.shards)])
            return [all(there[i : i + self.shards]) for i in range(0, len(there), self.shards)]

        return self._breaker.call("a lookup", ask, otherwise=[False] * len(block_ids))

    def lookup_on_prefix(self, block_ids: Sequence[bytes]) -> int:
        """The last of the leading blocks that are there; -1: none."""
        return (self.lookup(block_ids) + [False]).index(False) - 1

    def lookup_on_reverse(self, block_ids: Sequence[bytes]) -> int:
        """The last block that is there; -1: none."""
        there = self.lookup(block_ids)
        return max((i for i, t in enumerate(there) if t), default=-1)

    def prefetch(self, block_ids: Sequence[bytes]) -> None:
        """Nothing: there is no faster store in between."""

    # ---- transfers ----

    def _addresses(self, tensors: Sequence[Sequence[Any]]) -> list[list[int]]:
        rows: list[list[int]] = []
        for row in tensors:
            for t in row:
                if t.device.type != "cpu":
                    raise DeviceMemoryError(f"slabkv.ucm: a tensor lies on {t.device}: only host memory can be read from here", field="tensors")
            rows.append([t.data_ptr() for t in row])
        return rows

    def load(self, block_ids: Sequence[bytes], shard_index: Sequence[int], dst_tensor: Sequence[Sequence[Any]]) -> SlabkvTask:
        """Into tensors, which stay alive until the task is over."""
        return self._submit(False, block_ids, shard_index, self._addresses(dst_tensor), dst_tensor)

    def dump(self, block_ids: Sequence[bytes], shard_index: Sequence[int], src_tensor: Sequence[Sequence[Any]]) -> SlabkvTask:
        """From tensors."""
        return self._submit(True, block_ids, shard_index, self._addresses(src_tensor), src_tensor)

    def load_data(self, block_ids: Sequence[bytes], shard_index: Sequence[int], dst_addr: Any) -> SlabkvTask:
        """Into host memory by its addresses."""
        return self._submit(False, block_ids, shard_index, [[int(a) for a in row] for row in dst_addr], None)

    def dump_data(self, block_ids: Sequence[bytes], shard_index: Sequence[int], src_addr: Any, prerequisite_handle: int = 0) -> SlabkvTask:
        """From host memory by its addresses."""
        return self._submit(True, block_ids, shard_index, [[int(a) for a in row] for row in src_addr], None)

    def _submit(self, store: bool, blocks: Sequence[bytes], shards: Sequence[int], addresses: list[list[int]], keep: Any) -> SlabkvTask:
        with self._lock:
            self._count += 1
            task = SlabkvTask(self._count, store, len(blocks), len(blocks) * self.shard_size)
        log.debug("Ds3fs %s dispatching.", task)
        if any(len(row) != len(self.sizes) for row in addresses) or not len(blocks) == len(shards) == len(addresses):
            return self._end(task, [], f"{len(addresses)} rows of addresses for {len(blocks)} blocks of {len(self.sizes)} tensors")
        if not blocks:
            return self._end(task, [], "")
        if self._breaker.open or store and not self._budget.may_store(self._stores.in_flight, 512):
            return self._end(task, [], "the manager cannot be reached, or stores are waiting")
        keys = [self._key(b, i) for b, i in zip(blocks, shards)]
        queue = self._stores if store else self._loads
        try:
            instance = self._register()
            memory: Any = Pointers([a for row in addresses for a in row], self.sizes * len(blocks), keep)
            if len(self.sizes) > MAX_PARTS:
                task.addresses = addresses
                task.staging = memory = [bytearray(b"".join(ctypes.string_at(a, n) for a, n in zip(row, self.sizes)) if store else self.shard_size)
                                         for row in addresses]
            with self._lock:
                if store:
                    tag = queue.put(instance, keys, memory, independent=True)
                else:
                    task.load = self._budget.begin(task.n_bytes)
                    tag = queue.get(instance, keys, memory)
                self._tasks[queue, tag] = task
        except Exception as e:  # whatever it was: UCM's thread goes on, and the task has failed
            if task.load:
                self._budget.end(task.load, 0)
            self._breaker.failed("a store" if store else "a load", e)
            return self._end(task, [], str(e))
        return task

    def _end(self, task: SlabkvTask, good: list[bool], error: str) -> SlabkvTask:
        task.good = good
        if not all(good) and not error:
            error = f"{good.count(False)} of {task.n} blocks {'were not stored' if task.store else 'did not arrive'}"
        task.error = error
        cost = (time.monotonic() - task.began) * 1000
        if error:
            log.warning("Ds3fs %s failed, cost %.3fms: %s", task, cost, error)
        else:
            log.debug("Ds3fs %s finished, cost %.3fms.", task, cost)
        task.over.set()
        return task

    def _drain(self) -> None:
        with self._lock:
            for queue in (self._loads, self._stores):
                queue.cancel_late(DEADLINE_S)
                for c in queue.drain():
                    task = self._tasks.pop((queue, c.tag), None)
                    if task is None:
                        continue  # a signal handler interrupted its submit: the engine was told so
                    good = [bool(r) or (task.store and r == Result.BUSY) for r in c.results]
                    if task.load:
                        self._budget.end(task.load, sum(good) * self.shard_size)
                    for row, page, ok in zip(task.addresses, task.staging or (), good):
                        if ok and not task.store:
                            at = ctypes.addressof(ctypes.c_char.from_buffer(page))
                            for address, size in zip(row, self.sizes):
                                ctypes.memmove(address, at, size)
                                at += size
                    if c.error:
                        self._breaker.failed("a store" if task.store else "a load", c.error)
                    self._end(task, good, str(c.error) if c.error else "")

    def wait(self, task: SlabkvTask) -> None:
        """Until no I/O touches the task's memory; TransferError if not all of it went well."""
        while not task.over.is_set():
            self._drain()
            if not task.over.is_set():
                select.select([self._loads, self._stores], [], [], 0.05)
        if task.error:
            raise TransferError(f"slabkv.ucm: {task}: {task.error}")

    def check(self, task: SlabkvTask) -> bool:
        """Whether it is over. Never waits."""
        if not task.over.is_set():
            self._drain()
        return task.over.is_set()

    def stats(self) -> dict[str, float]:
        """Loads, their rate, stores that were dropped."""
        return self._budget.stats()


__all__ = ["SlabkvStore", "SlabkvTask", "TransferError"]
