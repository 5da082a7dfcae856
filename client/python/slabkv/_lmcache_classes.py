"""LMCache's own base classes over slabkv (slabkv.lmcache names them): the L2 adapter of type plugin, and the connector of LMCache inside
an engine. Tried with LMCache 0.5.5, 0.5.6 and 0.5.7rc2."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Optional

from ._budget import DEADLINE_S
from ._connector import Breaker, Settings, log, relying_on, require, version_of
from ._engines import label, vllm_config
from ._lmcache_names import TAG, UNNAMED, named
from .errors import InvalidError, NotFoundError
from .lmcache import L2Client, refuse_untagged
from .namespace import Namespace

with relying_on("slabkv.lmcache", "lmcache"):
    from lmcache.utils import CacheEngineKey
    from lmcache.v1.distributed import api
    from lmcache.v1.distributed.l2_adapters.native_connector_l2_adapter import NativeConnectorL2Adapter
    from lmcache.v1.distributed.l2_adapters.native_connector_l2_adapter import _object_key_to_string as _name
    from lmcache.v1.storage_backend.connector import ConnectorAdapter, ConnectorContext
    from lmcache.v1.storage_backend.connector.base_connector import RemoteConnector

    require(CacheEngineKey, "tags", "to_string")
    require(NativeConnectorL2Adapter, "native_client", "max_capacity_gb", "type_name", "submit_unlock", "report_status")
    require(ConnectorContext, "config", "metadata", "plugin_name", "local_cpu_backend")


class _Locking(L2Client):
    """A lookup locks."""

    def submit_batch_exists(self, keys: list[str]) -> int:
        return self.submit_batch_lock(keys)


class L2Adapter(NativeConnectorL2Adapter):
    """LMCache's own adapter for native clients, whose locks are leases of the manager's: what a lookup has found is evicted neither here
    nor by anybody else before it is unlocked or this process is gone."""

    @relying_on("slabkv.lmcache", "lmcache")
    def __init__(self, params: dict[str, Any], l1_memory_desc: Any = None) -> None:
        params = dict(params)
        capacity = float(params.pop("max_capacity_gb", 0))
        self._slabkv = _Locking(**params)
        if l1_memory_desc is not None:
            self._slabkv.register(l1_memory_desc.ptr, l1_memory_desc.size)
        tags = {}
        if hasattr(api, "MemoryTags"):  # of 0.5.7 and later
            tags["memory_tags"] = api.MemoryTags(api.MemorySegment.STORAGE, api.MemoryResidency.REMOTE)
        super().__init__(self._slabkv, max_capacity_gb=capacity, type_name="slabkv", **tags)

    def submit_unlock(self, keys: list[Any]) -> None:
        super().submit_unlock(keys)
        self._slabkv.unlock([_name(k) for k in keys])

    def report_status(self) -> dict[str, Any]:
        status = super().report_status()
        return {**status, "is_healthy": status["is_healthy"] and self._slabkv.reachable, "locked": self._slabkv.locked,
                "pending_stores": self._slabkv.pending_stores}


class RemoteAdapter(ConnectorAdapter):
    """LMCache inside an engine makes this one for a plugin whose name begins with "slabkv", and asks it for the connector."""

    def __init__(self) -> None:
        super().__init__("plugin://slabkv")

    def create_connector(self, context: ConnectorContext) -> RemoteConnector:
        return Connector(context)


# Of engines that serve LoRA adapters. LMCache tries again later, from where the engine's configuration is not to be seen.
_WITH_ADAPTERS: weakref.WeakSet[Any] = weakref.WeakSet()


class Connector(RemoteConnector):
    """Whole chunks in and out, a batch in one call, on threads of its own: the event loop never waits. A chunk that is not whole, the last
    of a prompt, is not stored: it has another size each time."""

    @relying_on("slabkv.lmcache", "lmcache")
    def __init__(self, context: ConnectorContext) -> None:
        config, metadata = context.config, context.metadata
        assert config is not None and metadata is not None
        head = f"remote_storage_plugin.{context.plugin_name or 'slabkv'}."
        extra = config.extra_config or {}
        given = {k[len(head) :]: v for k, v in extra.items() if k.startswith(head)}
        for own in ("module_path", "class_name"):
            given.pop(own, None)
        s = self._settings = Settings("slabkv.lmcache", given, lmcache_version=None, max_pending_stores=512, lock_seconds=30.0,
                                      without_plugin=False)
        if config.remote_serde not in (None, "naive"):
            raise InvalidError(f"slabkv.lmcache: remote_serde '{config.remote_serde}' makes objects of any size: use naive",
                               field="remote_serde")
        if config.use_layerwise:
            raise InvalidError("slabkv.lmcache: use_layerwise is not supported here: use LMCache's server with L2Client or L2Adapter",
                               field="use_layerwise")
        if s.without_plugin and getattr(vllm_config(), "lora_config", None) is not None:
            _WITH_ADAPTERS.add(context.local_cpu_backend)
        if context.local_cpu_backend in _WITH_ADAPTERS:
            raise InvalidError("slabkv.lmcache: this engine serves LoRA adapters, which LMCache's keys do not name without slabkv's "
                               "plugin: without_plugin is for others", field="without_plugin")
        super().__init__(config, metadata)
        require(self, "meta_shapes", "meta_dtypes", "meta_fmt", "full_chunk_size_bytes")
        require(context.local_cpu_backend, "allocate")
        dtypes = [str(d) for d in self.meta_dtypes]
        if not s.kv_dtype and "torch.uint8" in dtypes:
            raise InvalidError("slabkv.lmcache: the KV cache is of type uint8, which may be any of 8 bits: give kv_dtype "
                               "(float8_e4m3fn, float8_e5m2, ...)", field="kv_dtype")
        if s.without_plugin:
            refuse_untagged(s)
        namespace = Namespace(
            label(s, metadata.model_name), weights=s.weights(s.model or metadata.model_name, s.revision), dtype=str(s.kv_dtype or dtypes[0]),
            layout=f"lmcache-{s.lmcache_version or version_of('lmcache')}-{self.meta_fmt}", tokens=metadata.chunk_size,
            groups=[[list(x) for x in self.meta_shapes], dtypes], engine="lmcache-remote")
        self._instance = namespace.instance(self.full_chunk_size_bytes)
        self._namespace = namespace
        self._registered = False
        self._local = context.local_cpu_backend
        self._breaker = Breaker("slabkv.lmcache", s.retry)
        self._client = s.client()
        self._loads = ThreadPoolExecutor(4, "slabkv-load")
        self._stores = ThreadPoolExecutor(2, "slabkv-store")
        self._pending_stores = 0
        self._told_unnamed = False

    # ---- threads ----

    async def _on(self, pool: ThreadPoolExecutor, work: Callable[[], Any], otherwise: Any = None,
                  undo: Callable[[Any], None] = lambda _: None) -> Any:
        """work() on a thread; `otherwise` after DEADLINE_S. If nobody waits for it any more when it is over, undo() has its value: until
        then the buffers stay."""
        running = pool.submit(work)
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(running)), DEADLINE_S)
        except (asyncio.CancelledError, asyncio.TimeoutError) as e:
            def over(done: Future[Any]) -> None:
                if not done.cancelled() and done.exception() is None:
                    undo(done.result())

            running.add_done_callback(over)
            if isinstance(e, asyncio.CancelledError):
                raise
            return otherwise

    def _call(self, what: str, function: Callable[..., Any], *arguments: Any, otherwise: Any, **named: Any) -> Any:
        def found() -> Any:
            try:
                return function(self._instance, *arguments, **named)
            except NotFoundError:  # nothing was stored yet
                return otherwise

        return self._breaker.call(what, found, otherwise=otherwise)

    def _named(self, key: Any) -> bool:
        """Whether a key says which adapter and salt it is of; the log is told of one that does not."""
        if self._settings.without_plugin or named(dict(key.tags or ()).get(TAG)):
            return True
        if not self._told_unnamed:
            self._told_unnamed = True
            log.warning("%s", UNNAMED)
        return False

    @staticmethod
    def _key(key: Any) -> str:
        """Returns LMCache's key without the model's name, which may be a path of this host: the instance says more of the model."""
        return key.to_string()[len(key.model_name) :]

    # ---- lookups ----

    def batched_contains(self, keys: list[Any]) -> int:
        if not all(map(self._named, keys)):
            return 0
        return self._call("a lookup", self._client.match, [self._key(k) for k in keys], otherwise=0)

    def support_batched_contains(self) -> bool:
        return True

    def _pinned(self, keys: list[Any]) -> int:
        if not all(map(self._named, keys)):
            return 0
        lease = self._call("a lookup", self._client.lease, [self._key(k) for k in keys], self._settings.lock_seconds, otherwise=None)
        return lease.matched if lease else 0

    async def batched_async_contains(self, lookup_id: str, keys: list[Any], pin: bool = False) -> int:
        """How many leading ones are there; `pin`: a lease keeps them until they are loaded."""
        return await self._on(self._loads, lambda: self._pinned(keys) if pin else self.batched_contains(keys), 0)

    def exists_sync(self, key: Any) -> bool:
        return self.batched_contains([key]) == 1

    async def exists(self, key: Any) -> bool:
        return await self._on(self._loads, lambda: self.exists_sync(key), False)

    # ---- bytes ----

    def _load(self, keys: Sequence[Any]) -> list[Any]:
        if self._breaker.open or not all(map(self._named, keys)):
            return [None] * len(keys)
        objects: list[Any] = []
        for _ in keys:
            room = self._local.allocate(self.meta_shapes, self.meta_dtypes, self.meta_fmt)
            if room is None:
                break
            objects.append(room)
        n = len(objects)
        results = []
        if n:
            results = self._call("a load", self._client.get, [self._key(k) for k in keys[:n]], [o.byte_array for o in objects],
                                 otherwise=[])
        good = [bool(r) for r in results] + [False] * (len(keys) - len(results))
        for o, there in zip(objects, good):
            if not there:
                o.ref_count_down()
        return [objects[i] if there else None for i, there in enumerate(good)]

    @staticmethod
    def _drop(objects: Sequence[Any]) -> None:
        for o in objects:
            if o is not None:
                o.ref_count_down()

    def support_batched_get(self) -> bool:
        return True

    async def batched_get(self, keys: list[Any]) -> list[Any]:
        return await self._on(self._loads, lambda: self._load(keys), [None] * len(keys), self._drop)

    async def get(self, key: Any) -> Any:
        return (await self.batched_get([key]))[0]

    async def batched_get_non_blocking(self, lookup_id: str, keys: list[Any]) -> list[Any]:
        objects = await self.batched_get(keys)
        first = next((i for i, o in enumerate(objects) if o is None), len(objects))
        self._drop(objects[first:])
        return objects[:first]

    def _store(self, keys: Sequence[Any], objects: Sequence[Any]) -> None:
        if not self._registered:
            self._client.put_instance(self._instance, self.full_chunk_size_bytes, tokens=self._namespace.parts["tokens"],
                                      group=self._settings.group, extra=self._namespace.extra())
            self._registered = True
        self._client.put(self._instance, [self._key(k) for k in keys], [o.byte_array for o in objects])

    def support_batched_put(self) -> bool:
        return True

    async def batched_put(self, keys: Sequence[Any], memory_objs: Sequence[Any]) -> None:
        for o in memory_objs:  # LMCache gives up its own reference when this returns or is cancelled
            o.ref_count_up()

        whole = [(k, o) for k, o in zip(keys, memory_objs) if o.get_size() == self.full_chunk_size_bytes and self._named(k)]

        def work() -> None:
            try:
                if whole and not full:
                    self._breaker.call("a store", self._store, [k for k, _o in whole], [o for _k, o in whole], otherwise=None)
            finally:
                self._drop(memory_objs)
                self._pending_stores -= 1

        full = self._pending_stores >= self._settings.max_pending_stores
        self._pending_stores += 1
        await self._on(self._stores, work)

    async def put(self, key: Any, memory_obj: Any) -> None:
        await self.batched_put([key], [memory_obj])

    # ---- the rest ----

    def remove_sync(self, key: Any) -> bool:
        return bool(self._call("a removal", self._client.delete, [self._key(key)], otherwise=[False])[0])

    async def list(self) -> list[str]:
        """Nothing: keys are kept as hashes."""
        return []

    def support_ping(self) -> bool:
        return True

    async def ping(self) -> int:
        return 0 if await self._on(self._loads, self._client.ready, False) else 1

    async def close(self) -> None:
        """Waits until no I/O touches LMCache's memory any more."""
        def end() -> None:
            self._loads.shutdown()
            self._stores.shutdown()
            self._client.close()

        await asyncio.get_running_loop().run_in_executor(None, end)


__all__ = ["L2Adapter", "RemoteAdapter"]
