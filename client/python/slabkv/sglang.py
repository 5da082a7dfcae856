"""SGLang's HiCache over slabkv (docs/start/SGLANG_HICACHE.md):

    --enable-hierarchical-cache --hicache-storage-backend dynamic --hicache-storage-backend-extra-config '{"backend_name": "slabkv",
        "module_path": "slabkv.sglang", "class_name": "HiCacheSlabkv", "interface_v1": 1, "url": "http://127.0.0.1:7333"}'

Pages travel between SGLang's host pools and the store without a copy. SGLang's hashes cover tokens, LoRA and salt; model, weights, type,
layout and the ranks that cut a page stand in the namespace. It calls from threads of its own, so calls wait here.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from typing import Any, Optional

from ._budget import Budget, Pins
from ._connector import Breaker, Settings, log, relying_on, require
from ._engines import label, sglang_config, sglang_identity
from ._job import Pointers, Result
from ._job import key as key_of
from .errors import Error
from .namespace import Namespace

with relying_on("slabkv.sglang", "sglang"):
    from sglang.srt.mem_cache.hicache_storage import (
        HiCacheStorage, HiCacheStorageConfig, HiCacheStorageExtraInfo, PoolHitPolicy, PoolName, PoolTransfer, PoolTransferResult,
    )

    require(HiCacheStorageConfig, "tp_rank", "tp_size", "pp_rank", "pp_size", "attn_cp_rank", "attn_cp_size", "is_mla_model", "model_name",
            "tp_lcm_size", "should_split_heads", "extra_config")
    require(HiCacheStorageExtraInfo, "prefix_keys", "extra_info")
    require(PoolTransfer, "name", "keys", "host_indices", "hit_policy")
    require(PoolTransferResult, "kv_hit_pages", "extra_pool_hit_pages", "restorable_prefix_pages")
    require(HiCacheStorage, "register_mem_pool_host", "register_mem_host_pool_v2", "batch_exists_v2", "batch_get_v2", "batch_set_v2",
            "batch_get_v1", "batch_set_v1", "batch_exists")

MAX_PARTS = 32  # of a block
# What stands in the same JSON and is SGLang's.
_SGLANGS = ("backend_name", "module_path", "class_name", "interface_v1", "prefetch_threshold", "prefetch_timeout_base",
            "prefetch_timeout_per_ki_token", "hicache_storage_pass_prefix_keys", "tp_lcm_size", "allocator")


def _key(page: str) -> bytes:
    """128 of the 256 bits of a page's hash."""
    try:
        return bytes.fromhex(page[:32]) if len(page) == 64 else key_of(page)
    except ValueError:
        return key_of(page)


@relying_on("slabkv.sglang", "sglang", "storage hashes that cover LoRA adapters and salts, so requests would read each other's pages")
def _check_hashes() -> None:
    from sglang.srt.mem_cache.utils import get_storage_hash_str
    from sglang.srt.mem_cache.radix_cache import RadixKey

    kinds = ((None, None), ("a", None), ("b", None), (None, "a"), ("a", "b"))
    hashes = {str(get_storage_hash_str(RadixKey(array("q", [1, 2]), extra, cache_salt=salt), None, page_size=1)) for extra, salt in kinds}
    if len(hashes) < len(kinds):
        raise AttributeError("get_storage_hash_str gives keys that differ in these one hash")


def _is_shared(address: int) -> bool:
    """Whether other processes may map the same memory: what 3FS's client library needs."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as f:
        for line in f:
            span, mode = line.split(" ", 2)[:2]
            first, last = (int(x, 16) for x in span.split("-"))
            if first <= address < last:
                return mode[3] == "s"
    return False


def _regions(pool: Any) -> list[Any]:
    found: list[Any] = []
    for name in ("kv_buffer", "k_buffer", "v_buffer", "index_k_buffer", "temporal_buffer", "conv_buffer"):
        buffer = getattr(pool, name, None)
        found += buffer if isinstance(buffer, (list, tuple)) else [] if buffer is None else [buffer]
    spans = [(t.data_ptr(), t.data_ptr() + t.numel() * t.element_size(), t) for t in found if hasattr(t, "data_ptr") and t.numel()]
    whole: list[tuple[int, int, Any]] = []
    for first, last, tensor in sorted(spans, key=lambda s: (s[0], -s[1])):
        if not whole or last > whole[-1][1]:  # else it is a view of the one before
            whole.append((first, last, tensor))
    return [tensor for _first, _last, tensor in whole]


class _Pool:
    """A host pool of SGLang's and the instance of its pages, which is registered when the first one is stored or asked for."""

    def __init__(self, owner: HiCacheSlabkv, name: str, pool: Any) -> None:
        self.owner = owner
        self.name = name
        self.pool = pool
        require(pool, "get_page_buffer_meta")
        self.page_size: int = getattr(pool, "page_size", 1) or 1
        self.logical = getattr(pool, "kv_buffer", pool) is None  # an anchor without bytes
        self.instance: Optional[str] = None
        self.sizes: list[int] = []
        self.namespace = owner._namespace(name, pool)  # pyright: ignore[reportPrivateUsage]

    @property
    def size(self) -> int:
        """Bytes of a page; 0 before the first was stored or asked for."""
        return sum(self.sizes)

    def meta(self, host_indices: Any, n: int) -> tuple[list[int], list[int]]:
        """Addresses and sizes of n pages: the same number for each."""
        addresses, sizes = self.pool.get_page_buffer_meta(host_indices)
        if n == 0 or len(addresses) % n or len(addresses) != len(sizes):
            raise ValueError(f"slabkv.sglang: pool {self.name}: {len(addresses)} pieces for {n} pages")
        return list(addresses), list(sizes)

    def ready(self, host_indices: Any = None) -> str:
        """The instance, registered. Which pieces a page has is asked of any page."""
        if self.instance is None:
            if host_indices is None:
                import torch

                host_indices = torch.arange(self.page_size)
            _addresses, self.sizes = self.meta(host_indices[: self.page_size], 1)
            size = self.size
            parts = {f"p{i}": s for i, s in enumerate(self.sizes)} if len(self.sizes) <= MAX_PARTS else {"kv": size}
            name = self.namespace.instance(size)
            kv, s = self.owner.client, self.owner.settings
            kv.put_instance(name, parts, tokens=self.page_size, group=s.group, extra=self.namespace.extra())
            self.instance = name
        return self.instance

    def put(self, keys: list[bytes], host_indices: Any, parent: Optional[bytes], independent: bool) -> list[Result]:
        instance = self.ready(host_indices)
        addresses, sizes = self.meta(host_indices, len(keys))
        memory = self._gather(addresses, sizes, len(keys)) if len(self.sizes) > MAX_PARTS else Pointers(addresses, sizes, self.pool)
        return self.owner.client.put(instance, keys, memory, parent=None if independent else parent, independent=independent)

    def get(self, keys: list[bytes], host_indices: Any) -> list[Result]:
        """In parts, for as long as it pays: of what was not begun the results are CANCELLED."""
        self.ready(host_indices)
        budget, results = self.owner.budget, []
        tokens = len(host_indices) // len(keys)  # of a page; with DCP not only those that lie here
        for part in budget.parts(len(keys), self.size, self.page_size):
            at = len(results)
            load = budget.begin(part * self.size)
            try:
                results += self._get(keys[at : at + part], host_indices[at * tokens : (at + part) * tokens])
            finally:
                budget.end(load, sum(r == Result.HIT for r in results[at:]) * self.size)
            if not results[-1]:
                break  # SGLang takes what is before the first that failed
        return results + [Result.CANCELLED] * (len(keys) - len(results))

    def _get(self, keys: list[bytes], host_indices: Any) -> list[Result]:
        instance = self.ready()
        addresses, sizes = self.meta(host_indices, len(keys))
        if len(self.sizes) <= MAX_PARTS:
            return self.owner.client.get(instance, keys, Pointers(addresses, sizes, self.pool))
        staging = [bytearray(self.size) for _ in keys]
        results = self.owner.client.get(instance, keys, staging)
        at = 0
        for page, result in zip(staging, results):
            source = ctypes.addressof(ctypes.c_char.from_buffer(page))
            for size in self.sizes:
                if result:
                    ctypes.memmove(addresses[at], source, size)
                source += size
                at += 1
        return results

    def _gather(self, addresses: list[int], sizes: list[int], n: int) -> list[bytes]:
        """Pages of more pieces than a block has parts (layer_first with many layers), in one piece each."""
        per = len(addresses) // n
        return [b"".join(ctypes.string_at(a, s) for a, s in zip(addresses[i : i + per], sizes[i : i + per]))
                for i in range(0, len(addresses), per)]


class HiCacheSlabkv(HiCacheStorage):
    """SGLang's L3."""

    @relying_on("slabkv.sglang", "sglang")
    def __init__(self, storage_config: HiCacheStorageConfig, kwargs: Optional[dict[str, Any]] = None) -> None:
        _check_hashes()
        given = {k: v for k, v in (storage_config.extra_config or {}).items() if k not in _SGLANGS}
        self.config = storage_config
        # One rank writes what all ranks have. Releases whose configuration does not tell which one refuse storage with DCP.
        self._writes: bool = getattr(storage_config, "is_storage_writer", not storage_config.is_mla_model or storage_config.tp_rank == 0)
        self.settings = s = Settings("slabkv.sglang", given, register=True)
        engine = sglang_config()
        model = engine[0] if engine else None
        self._label = label(s, str(getattr(model, "model_path", "") or s.model or storage_config.model_name or "model"), model)
        self._identity = sglang_identity(s, engine)
        self._breaker = Breaker("slabkv.sglang", s.retry)
        self.client = s.client()
        self.budget = Budget.of(s)
        self._pins = Pins(self.client.pin, self.budget)
        self._pools: dict[str, _Pool] = {}
        self.registered_pools: dict[str, Any] = {}

    # ---- what SGLang calls at the start and at the end ----

    @relying_on("slabkv.sglang", "sglang")
    def register_mem_pool_host(self, mem_pool_host: Any) -> None:
        super().register_mem_pool_host(mem_pool_host)
        self._add(PoolName.KV.value, mem_pool_host)

    @relying_on("slabkv.sglang", "sglang")
    def register_mem_host_pool_v2(self, host_pool: Any, host_pool_name: Any) -> None:
        super().register_mem_host_pool_v2(host_pool, host_pool_name)
        self._add(str(host_pool_name), host_pool)

    def close(self) -> None:
        """Waits for calls that run."""
        self._pins.close()
        self.client.close()
        log.info("slabkv.sglang: %s", self.stats())

    def stats(self) -> dict[str, float]:
        """Loads, their rate, what was declined, stores that were dropped, pins."""
        return self.budget.stats()

    def clear(self) -> bool:
        """Removes what this model's engines have stored or are writing, of all ranks with this namespace. False: perhaps not all of it."""
        names = [pool.instance for pool in self._pools.values() if pool.instance]
        return not names or self._breaker.call("clear", self.client.purge, names, otherwise=None) is not None

    def _add(self, name: str, pool: Any) -> None:
        known = self._pools.get(name)
        if known and known.pool is pool:
            return  # SGLang names the first one twice
        self._pools[name] = _Pool(self, name, pool)
        if not self.settings.register:
            return
        for tensor in _regions(pool):
            address, size = tensor.data_ptr(), tensor.numel() * tensor.element_size()
            try:
                self.client.register(Pointers([address], size, tensor), shared=_is_shared(address))
            except (Error, OSError) as e:
                log.info("slabkv.sglang: pool %s is not registered (only slower): %s", name, e)

    def _namespace(self, name: str, pool: Any) -> Namespace:
        c = self.config
        dtype = getattr(pool, "dtype", None)
        parallel = {"pp": c.pp_size, "pp_rank": c.pp_rank, "cp": c.attn_cp_size, "cp_rank": c.attn_cp_rank,
                    "dcp": getattr(c, "dcp_size", 1), "dcp_rank": getattr(c, "dcp_rank", 0)}
        if not c.is_mla_model or name == PoolName.MAMBA.value:  # a page of every rank's own
            parallel.update(tp=c.tp_size, tp_rank=c.tp_rank)
        return Namespace(self._label, **self._identity, dtype=str(self.settings.kv_dtype or dtype), layout=str(getattr(pool, "layout", "")),
                         tokens=getattr(pool, "page_size", 1), parallel=parallel, groups=name, engine="sglang", pool=type(pool).__name__,
                         format=getattr(pool, "storage_format_tag", None), mla=c.is_mla_model,
                         split_heads=c.should_split_heads, tp_lcm=c.tp_lcm_size, logical_page=getattr(c, "logical_page_size", None),
                         layers=[getattr(pool, "start_layer", None), getattr(pool, "end_layer", None)])

    # ---- pages ----

    def _exist(self, name: str, keys: Sequence[str]) -> list[bool]:
        pool = self._pools[name]
        if pool.logical:
            return [True] * len(keys)

        def ask() -> list[bool]:
            return self.client.exists(pool.ready(), [_key(k) for k in keys])

        return self._breaker.call("a lookup", ask, otherwise=[False] * len(keys))

    def batch_exists(self, keys: list[str], extra_info: Optional[HiCacheStorageExtraInfo] = None) -> int:
        """How many of the leading pages are there, and pay to be loaded."""
        return self._worth(keys, self._match(keys, extra_info))

    def _match(self, keys: list[str], info: Optional[HiCacheStorageExtraInfo]) -> int:
        pool = self._pools[PoolName.KV.value]
        if pool.logical:
            return len(keys)

        def ask() -> int:
            ids = [_key(k) for k in keys]
            n = self.client.match(pool.ready(), ids)
            if info is not None and info.extra_info:
                self._pins.keep(pool.instance, ids[:n], info.extra_info)
            return n

        return self._breaker.call("a lookup", ask, otherwise=0)

    def _worth(self, keys: list[str], n: int) -> int:
        """Of n pages found those to load; the rest will be computed, which tells how fast that is."""
        pool = self._pools[PoolName.KV.value]
        if pool.logical:
            return n
        n = self.budget.take(n, max(pool.size, 1), pool.page_size)
        self.budget.missed(keys[n:])
        return n

    def _get(self, name: str, keys: Sequence[str], host_indices: Any) -> list[bool]:
        pool = self._pools[name]
        if pool.logical or not keys:
            return [True] * len(keys)

        def read() -> list[bool]:
            return [bool(r) for r in pool.get([_key(k) for k in keys], host_indices)]

        return self._breaker.call("a load", read, otherwise=[False] * len(keys))

    def _set(self, name: str, keys: Sequence[str], host_indices: Any, info: Optional[HiCacheStorageExtraInfo],
             independent: bool) -> list[bool]:
        pool = self._pools[name]
        if pool.logical or not keys:
            return [True] * len(keys)
        before = info.prefix_keys if info else None
        parent = _key(before[-1]) if before else None
        if name == PoolName.KV.value:
            self.budget.stored(keys, pool.page_size)
        if self._breaker.open or not self.budget.may_store():
            return [False] * len(keys)

        def write() -> list[bool]:
            ids = [_key(k) for k in keys]
            # BUSY: another engine stores the same page.
            good = [bool(r) or r == Result.BUSY for r in pool.put(ids, host_indices, parent, independent)]
            if info is not None and info.extra_info:
                self._pins.keep(pool.instance, ids, info.extra_info)
            return good

        return self._breaker.call("a store", write, otherwise=[False] * len(keys))

    def batch_get_v1(self, keys: list[str], host_indices: Any, extra_info: Optional[HiCacheStorageExtraInfo] = None) -> list[bool]:
        """Reads pages into the host pool, each on its own."""
        return self._get(PoolName.KV.value, keys, host_indices)

    def batch_set_v1(self, keys: list[str], host_indices: Any, extra_info: Optional[HiCacheStorageExtraInfo] = None) -> list[bool]:
        """Stores pages behind extra_info.prefix_keys; for MLA only the writer does."""
        if not self._writes:
            return [True] * len(keys)
        return self._set(PoolName.KV.value, keys, host_indices, extra_info, False)

    # ---- pools of hybrid models ----

    def batch_exists_v2(self, keys: list[str], pool_transfers: Optional[list[PoolTransfer]] = None,
                        extra_info: Optional[HiCacheStorageExtraInfo] = None) -> PoolTransferResult:
        """The longest prefix that every pool can restore, and all lengths that they can."""
        n = self._match(keys, extra_info)
        hits: dict[str, int] = {PoolName.KV: n} if n else {}
        restorable = list(range(1, n + 1))
        for transfer in pool_transfers or []:
            if not restorable:
                break
            if transfer.hit_policy == getattr(PoolHitPolicy, "BLOCK_GROUPS", None):  # another form of the same pages: its own verdict, which limits nothing
                hits[transfer.name] = self._blocks(transfer)
                continue
            there = self._exist(str(transfer.name), keys[:n])
            if transfer.hit_policy == PoolHitPolicy.TRAILING_PAGES:
                window = max(1, len(transfer.keys or ()))
                possible = [p for p in range(1, n + 1) if all(there[max(0, p - window) : p])]
            else:
                possible = list(range(1, (there + [False]).index(False) + 1))
            if possible:
                hits[transfer.name] = possible[-1]
            allowed = set(possible)
            restorable = [p for p in restorable if p in allowed]
        worth = self._worth(keys, restorable[-1] if restorable else 0)
        restorable = [p for p in restorable if p <= worth]
        return PoolTransferResult(restorable[-1] if restorable else 0, hits, restorable)

    def _blocks(self, transfer: PoolTransfer) -> int:
        """How many leading pages the whole groups of this pool cover."""
        keys, size = transfer.keys or [], max(1, transfer.group_pages)
        there = self._exist(str(transfer.name), keys) if keys else []
        whole = 0
        while (whole + 1) * size <= len(keys) and all(there[whole * size : (whole + 1) * size]):
            whole += 1
        return whole * transfer.block_pages

    def batch_get_v2(self, transfers: list[PoolTransfer], extra_info: Optional[HiCacheStorageExtraInfo] = None) -> dict[str, list[bool]]:
        """Reads pages of each pool."""
        return {t.name: self._get(str(t.name), t.keys or [], t.host_indices) for t in transfers}

    def batch_set_v2(self, transfers: list[PoolTransfer], extra_info: Optional[HiCacheStorageExtraInfo] = None) -> dict[str, list[bool]]:
        """Stores pages of each pool: states and windows without a chain, since their neighbours may be missing."""
        return {t.name: self._set(str(t.name), t.keys or [], t.host_indices, extra_info, str(t.name) != PoolName.KV.value)
                for t in transfers}

    # ---- the older interface, which interface_v1 replaces ----

    def get(self, key: str, target_location: Any = None, target_sizes: Any = None) -> Any:
        """A page into a tensor; None: it is not there."""
        return self.batch_get([key], [target_location])[0]

    def batch_get(self, keys: list[str], target_locations: Any = None, target_sizes: Any = None) -> list[Any]:
        """Pages into flat tensors."""
        if not keys or not target_locations:
            return [None] * len(keys)
        instance = self._flat(target_locations[0])
        results = self._breaker.call("a load", self.client.get, instance, [_key(k) for k in keys], list(target_locations),
                                     otherwise=[Result.MISS] * len(keys))
        return [t if r else None for t, r in zip(target_locations, results)]

    def set(self, key: str, value: Any = None, target_location: Any = None, target_sizes: Any = None) -> bool:
        """A page from a tensor."""
        return self.batch_set([key], [value])

    def batch_set(self, keys: list[str], values: Any = None, target_locations: Any = None, target_sizes: Any = None) -> bool:
        """Pages from tensors; all or nothing is told."""
        if not keys or not self._writes:
            return True
        flat = [v.contiguous() for v in values]
        size = flat[0].numel() * flat[0].element_size()
        instance = self._flat(flat[0])

        def write() -> bool:
            self.client.put_instance(instance, size)
            return all(bool(r) or r == Result.BUSY for r in self.client.put(instance, [_key(k) for k in keys], flat))

        return self._breaker.call("a store", write, otherwise=False)

    def _flat(self, tensor: Any) -> str:
        return self._pools[PoolName.KV.value].namespace.instance(tensor.numel() * tensor.element_size()) + ":flat"

    def exists(self, key: str) -> bool:
        """Whether a page is there."""
        return self.batch_exists([key]) == 1
