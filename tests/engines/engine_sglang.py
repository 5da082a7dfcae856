"""SGLang's own controllers over slabkv.sglang, on a CPU. In four layouts: pages are stored, the host pool is wiped, a second controller
finds and loads them, and every page is equal; bytes that were damaged on disk are a shorter prefix, never a wrong page. Pools of hybrid
models; MLA with one writer; a host pool in shared memory."""

import contextlib
import os
import queue
import sys
import tempfile
import threading
import types
from array import array

import torch

os.environ.update(MASTER_ADDR="127.0.0.1", RANK="0", WORLD_SIZE="1")
with tempfile.NamedTemporaryFile() as rendezvous:
    torch.distributed.init_process_group("gloo", init_method=f"file://{rendezvous.name}", rank=0, world_size=1)

import sglang.srt.runtime_context as context  # noqa: E402
from sglang.srt.managers.cache_controller import HiCacheController  # noqa: E402
from sglang.srt.mem_cache.device_pool_info import MambaStateBufferInfo  # noqa: E402
from sglang.srt.mem_cache.hicache_storage import HiCacheStorageConfig, PoolHitPolicy, PoolName, PoolTransfer  # noqa: E402
from sglang.srt.mem_cache.hybrid_cache.hybrid_cache_controller import (  # noqa: E402
    HybridCacheController, PrefetchOperation, StorageOperation,
)
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool, MLATokenToKVPool  # noqa: E402
from sglang.srt.mem_cache.pool_host.mamba import MambaPoolHost  # noqa: E402
from sglang.srt.mem_cache.pool_host.mha import MHATokenToKVPoolHost  # noqa: E402
from sglang.srt.mem_cache.pool_host.mla import MLATokenToKVPoolHost  # noqa: E402
from sglang.srt.mem_cache.utils import get_storage_hash_str  # noqa: E402

import slow  # noqa: E402
from daemon import Daemon, wait_for  # noqa: E402
from slabkv.sglang import HiCacheSlabkv, _is_shared  # noqa: E402

PAGE, TOKENS, PAGES, LAYERS = 16, 512, 8, 3
PARALLEL = dict(attn_dcp_size=1, attn_dcp_rank=0, attn_tp_size=1, attn_tp_rank=0, tp_size=1, tp_rank=0, pp_size=1, pp_rank=0,
                attn_cp_size=1, attn_cp_rank=0, attn_dp_rank=0, attn_dp_size=1, dp_rank=0, launch_world_size=1, nnodes=1)


def set_parallel():
    """SGLang's view of itself; of these names those that this version has."""
    names = dict(PARALLEL)
    while True:
        try:
            view = context.get_parallel().override(**names)
            view.__enter__()
            return view  # to be kept: it ends with its last reference
        except Exception as e:
            unknown = [n for n in names if f"'{n}'" in str(e)]
            if not unknown:
                raise
            for n in unknown:
                del names[n]


class Allocator:
    def __init__(self, pool):
        self.pool = pool

    def get_kvcache(self):
        return self.pool


def mha(layout, allocator="default"):
    """SGLang's host pool, over one on a device that is a CPU."""
    device = MHATokenToKVPool(TOKENS, PAGE, torch.bfloat16, 4, 64, LAYERS, "cpu", False)
    host = MHATokenToKVPoolHost(device._mha_buffer_info(), 2.0, 0, PAGE, layout, pin_memory=False, device="cpu", allocator_type=allocator,
                                device_capacity_tokens=TOKENS, start_layer=0, end_layer=LAYERS, host_token_capacity=1024)
    host.keep = device
    return host


def mla(layout, rank=64):
    device = MLATokenToKVPool(TOKENS, PAGE, torch.bfloat16, rank, 16, LAYERS, "cpu", False)
    host = MLATokenToKVPoolHost(device._mla_buffer_info(), 2.0, 0, PAGE, layout, pin_memory=False, device="cpu", device_capacity_tokens=TOKENS,
                                start_layer=0, end_layer=LAYERS, target_layer_num=LAYERS, host_token_capacity=1024)
    host.keep = device
    return host


def mla_large(layout):
    """Pages long enough to be held by slow.c."""
    return mla(layout, 1024)


def mamba(layout):
    """States: one slot each, of parts with different types."""
    info = MambaStateBufferInfo(temporal=torch.zeros(LAYERS, 16, 4, 8, 8), conv=(torch.zeros(LAYERS, 16, 24, 4, dtype=torch.bfloat16),))
    return MambaPoolHost(info, 2.0, 0, device_capacity=16, pin_memory=False, device="cpu", layout=layout)


class Side:
    """One process's cache: a host pool and a controller over the store."""

    def __init__(self, url, layout, **more):
        self.host = mha(layout, more.get("allocator", "default"))
        self.device = self.host.keep
        config = {"backend_name": "slabkv", "module_path": "slabkv.sglang", "class_name": "HiCacheSlabkv", "interface_v1": 1, "url": url,
                  "namespace_tag": "controller", **more}
        self.controller = HiCacheController(Allocator(self.device), self.host, PAGE, torch.distributed.group.WORLD, threading.Event(),
                                            io_backend="kernel", storage_backend="dynamic", prefetch_threshold=PAGE, model_name="m",
                                            storage_backend_extra_config=config)
        self.indices = self.host.alloc(PAGES * PAGE)

    def pages(self):
        return [self.host.get_data_page(i).clone() for i in self.indices[::PAGE].tolist()]

    def write(self, tokens):
        """How many tokens were stored."""
        self.controller.write_storage(self.indices, tokens, hash_value=get_storage_hash_str(tokens, None, page_size=PAGE))
        return self.controller.ack_backup_queue.get(timeout=20).completed_tokens

    def load(self, tokens):
        """How many tokens were found."""
        self.host.kv_buffer.zero_()
        self.controller.prefetch("r", tokens, None)
        operation = self.controller.prefetch_hit_queue.get(timeout=20)
        hit = operation.storage_hit_count
        if hit:
            operation.host_indices = self.indices[:hit]
            self.controller.prefetch_buffer.put(operation)
            while not getattr(self.controller.ack_prefetch_queue.get(timeout=20), "completed_req", False):
                pass
        return hit

    def close(self):
        self.controller.detach_storage_backend()


def damage(folder, page):
    """Zeroes the first bytes of a page on disk, behind the manager."""
    head = bytes(page.contiguous().view(torch.uint8).flatten().numpy()[:64])
    for path in folder.rglob("*"):
        if path.is_file() and (at := path.read_bytes().find(head)) >= 0:
            with open(path, "r+b") as f:
                f.seek(at)
                f.write(bytes(64))
            return True
    return False


def layout_case(daemon, layout):
    tokens = list(range(1000, 1000 + PAGES * PAGE))
    a = Side(daemon.url, layout)
    a.host.kv_buffer.copy_(torch.randn(a.host.kv_buffer.shape))
    want = a.pages()
    assert a.write(tokens) == PAGES * PAGE
    a.close()

    b = Side(daemon.url, layout)
    assert b.load(tokens) == PAGES * PAGE, "the second one found less"
    got = b.pages()
    assert all(torch.equal(x, y) for x, y in zip(want, got)), [torch.equal(x, y) for x, y in zip(want, got)]
    assert b.load([7] + tokens[1:]) == 0, "other tokens were found"
    b.close()
    # Whatever shapes the bytes: nothing of it may be found.
    for change in (dict(namespace_tag="other weights"), dict(kv_dtype="float8_e5m2")):
        c = Side(daemon.url, layout, **change)
        assert c.load(tokens) == 0, change
        c.close()
    # Damage is a shorter prefix.
    assert damage(daemon.root, want[5])
    d = Side(daemon.url, layout, engine="posix")
    d.load(tokens)
    got = d.pages()
    assert all(torch.equal(x, y) for x, y in zip(want[:5], got[:5])) and not torch.equal(want[5], got[5])
    d.close()
    print(f"{layout}: {PAGES} of {PAGES} pages equal, 0 foreign hits, a damaged page is missed")


class Rank(HybridCacheController):
    """The controller of a hybrid model, of one rank, without threads and GPU: what it does with the storage backend is its own code."""

    def __init__(self, url, pools, tp_rank=0, tp_size=1, is_mla=False, **more):
        self.config = HiCacheStorageConfig(
            tp_rank=tp_rank, tp_size=tp_size, pp_rank=0, pp_size=1, attn_cp_rank=0, attn_cp_size=1, is_mla_model=is_mla,
            enable_storage_metrics=False, is_page_first_layout=True, model_name="m",
            extra_config={"backend_name": "slabkv", "interface_v1": 1, "url": url, "namespace_tag": "hybrid", **more})
        self.pools = pools
        self.storage_backend = HiCacheSlabkv(self.config, {})
        self.storage_backend.register_mem_pool_host(pools[PoolName.KV])
        for name, pool in pools.items():
            self.storage_backend.register_mem_host_pool_v2(pool, name)
        self.storage_backend.on_host_pools_registered()
        entries = {name: types.SimpleNamespace(host_pool=pool) for name, pool in pools.items()}
        self.mem_pool_host = types.SimpleNamespace(layout_lease=contextlib.nullcontext, entry_map=entries)
        self.page_size, self.storage_backend_type = PAGE, "dynamic"
        self.page_set_func, self.page_get_func = self._page_set_zero_copy, self._page_get_zero_copy
        self.prefetch_sync_queue = queue.Queue()

    @property
    def backup_skip(self):
        return not self.config.is_storage_writer

    def append_host_mem_release(self, *_, **__):
        pass

    def memory(self, name, indices):
        """The bytes of pages, by their addresses."""
        import ctypes

        addresses, sizes = self.pools[name].get_page_buffer_meta(indices)
        return [(ctypes.c_char * s).from_address(a) for a, s in zip(addresses, sizes)]

    def fill(self, name, keys):
        indices = torch.arange(len(keys) * self.pools[name].page_size)
        pieces = self.memory(name, indices)
        each = len(pieces) // len(keys)
        for i, piece in enumerate(pieces):
            piece[:] = self.content(name, keys[i // each], i % each, len(piece))
        return indices

    @staticmethod
    def content(name, key, piece, size):
        generator = torch.Generator().manual_seed(int(key[:12], 16) + len(str(name)) + 1000 * piece)
        return torch.randint(1, 256, (size,), dtype=torch.uint8, generator=generator).numpy().tobytes()

    def check(self, name, keys):
        pieces = self.memory(name, torch.arange(len(keys) * self.pools[name].page_size))
        each = len(pieces) // max(len(keys), 1)
        for i, piece in enumerate(pieces):
            assert piece.raw == self.content(name, keys[i // each], i % each, len(piece)), f"{name} page {i // each} has other bytes"

    def backup(self, tokens, **trailing):
        """Of the other pools the last so many pages. How many tokens count as stored."""
        keys = get_storage_hash_str(tokens, None, page_size=PAGE)
        transfers = [PoolTransfer(name=PoolName(n), keys=keys[-k:], host_indices=self.fill(PoolName(n), keys[-k:]),
                                  hit_policy=PoolHitPolicy.TRAILING_PAGES) for n, k in trailing.items()]
        operation = StorageOperation(self.fill(PoolName.KV, keys), tokens, hash_value=keys, pool_transfers=transfers)
        self._page_backup(operation)
        return operation.completed_tokens

    def prefetch(self, tokens, **trailing):
        """How many tokens were found, all of which are in memory then, and right."""
        transfers = [PoolTransfer(name=PoolName(n), keys=["?"] * k, hit_policy=PoolHitPolicy.TRAILING_PAGES) for n, k in trailing.items()]
        operation = PrefetchOperation(types.SimpleNamespace(rid="r"), tokens, pool_transfers=transfers)
        keys, found = self._storage_hit_query(operation)
        operation.hash_value, operation.host_indices = keys, torch.arange(found)
        for name, pool in self.pools.items():
            for piece in self.memory(name, torch.arange(8 * pool.page_size)):
                piece[:] = bytes(len(piece))
        for t in transfers:
            t.host_indices = torch.arange(min(len(t.keys), len(keys)) * self.pools[t.name].page_size)
        if found:
            self._page_transfer(operation)
            self.check(PoolName.KV, keys)
            for n, k in trailing.items():
                self.check(PoolName(n), keys[-k:])
        return found

    def close(self):
        self.storage_backend.close()


def prompt(number, pages):
    return list(range(100000 * number, 100000 * number + pages * PAGE))


def hybrid_case(daemon, number, make, **trailing):
    """A prompt of 20 pages, its next turn, and one that leaves it where a state is, and where none is."""
    def side():
        return Rank(daemon.url, {PoolName(n): m() for n, m in make.items()})

    one, other = side(), side()
    tokens = prompt(number, 20)
    assert other.prefetch(tokens, **trailing) == 0
    assert one.backup(tokens, **trailing) == len(tokens)
    assert other.prefetch(tokens, **trailing) == len(tokens)
    longer = tokens + prompt(1000 + number, 7)
    assert other.prefetch(longer, **trailing) == len(tokens)
    assert other.backup(longer, **trailing) == len(longer)
    assert one.prefetch(longer, **trailing) == len(longer)
    assert one.prefetch(longer[: 23 * PAGE], **trailing) == len(tokens)
    assert one.prefetch(tokens[: 10 * PAGE] + prompt(2000 + number, 5), **trailing) == 0
    one.close()
    other.close()
    print(f"pools {', '.join(make)}: 20, 27, 20 of 23 and 0 of 15 pages restorable, all bytes equal")


def mla_case(daemon):
    """Two ranks hold the same pages: one writes, both read; with the ranks of MHA neither finds the other's."""
    tokens = prompt(50, 8)
    writer, reader = (Rank(daemon.url, {PoolName.KV: mla("page_first")}, tp_rank=r, tp_size=2, is_mla=True) for r in (0, 1))
    assert reader.backup(tokens) == 0 and reader.prefetch(tokens) == 0, "the second rank wrote"
    assert writer.backup(tokens) == len(tokens) and reader.prefetch(tokens) == len(tokens)
    stored = daemon_blocks(writer)
    assert stored == 8, stored
    writer.close()
    reader.close()
    ranks = [Rank(daemon.url, {PoolName.KV: mha("page_first")}, tp_rank=r, tp_size=2) for r in (0, 1)]
    assert ranks[0].backup(tokens) == len(tokens) and ranks[1].prefetch(tokens) == 0
    for rank in ranks:
        rank.close()
    print(f"MLA with two ranks: {stored} pages stored once, both ranks read all; MHA: 0 of the other rank's")


def daemon_blocks(rank):
    pool = rank.storage_backend._pools["kv"]
    return sum(rank.storage_backend.client.exists(pool.instance, [bytes.fromhex(k[:32]) for k in
                                                                  get_storage_hash_str(prompt(50, 8), None, page_size=PAGE)]))


def blocks_case(daemon):
    """Groups of a second form of the pages have a verdict of their own and limit nothing."""
    rank = Rank(daemon.url, {PoolName.KV: mha("page_first"), PoolName.SWA: mha("page_first")})
    keys = get_storage_hash_str(prompt(60, 8), None, page_size=PAGE)
    rank.storage_backend.batch_set_v1(keys, rank.fill(PoolName.KV, keys))
    groups = [f"{k}:{i}" for k in keys[::4] for i in range(2)]
    rank.storage_backend.batch_set_v2([PoolTransfer(name=PoolName.SWA, keys=groups[:3], host_indices=rank.fill(PoolName.SWA, keys[:3]))])
    found = rank.storage_backend.batch_exists_v2(keys, [PoolTransfer(
        name=PoolName.SWA, keys=groups, hit_policy=PoolHitPolicy.BLOCK_GROUPS, block_pages=4, group_pages=2)])
    assert (found.kv_hit_pages, found.extra_pool_hit_pages[PoolName.SWA]) == (8, 4), found
    rank.close()
    print("block groups: one of two whole, 8 of 8 pages restorable")


def shm_case(daemon):
    """A host pool in shared memory is registered as such: what 3FS's client library needs to move bytes without a copy."""
    seen = []
    register = HiCacheSlabkv._add

    def spy(self, name, pool):
        client_register = self.client.register

        def see(memory, shared=False):
            client_register(memory, shared)
            seen.append((memory.lengths[0], shared))

        self.client.register = see
        register(self, name, pool)
        self.client.register = client_register

    HiCacheSlabkv._add = spy
    tokens = list(range(7000, 7000 + PAGES * PAGE))
    a = Side(daemon.url, "page_first", allocator="shm")
    assert _is_shared(a.host.kv_buffer.data_ptr())
    a.host.kv_buffer.copy_(torch.randn(a.host.kv_buffer.shape))
    want = a.pages()
    assert a.write(tokens) == len(tokens) and a.load(tokens) == len(tokens)
    assert all(torch.equal(x, y) for x, y in zip(want, a.pages()))
    size = a.host.kv_buffer.numel() * 2
    a.close()
    HiCacheSlabkv._add = register
    assert seen == [(size, True)], seen
    print(f"shared host pool: {size >> 10} KiB registered as shared, {PAGES} of {PAGES} pages equal")


def request_keys(tokens, image=None, cache_salt=None, **more):
    """Of a request's pages, as SGLang's own code makes them of what it knows about the request."""
    from sglang.srt.managers.schedule_batch import Modality, MultimodalDataItem, Req
    from sglang.srt.mem_cache.radix_cache import RadixKey
    from sglang.srt.sampling.sampling_params import SamplingParams

    if image is not None:  # the placeholder's tokens are replaced by what the image's hash says
        item = MultimodalDataItem(modality=Modality.IMAGE, feature=torch.full((4, 8), float(image)))
        item.set_pad_value()
        tokens = [item.pad_value] * PAGE + tokens[PAGE:]
    request = Req("r", "", array("q", tokens), SamplingParams(max_new_tokens=1), **more)
    return get_storage_hash_str(RadixKey(array("q", tokens), request.extra_key, cache_salt=cache_salt), None, page_size=PAGE)


def foreign_case(daemon):
    """LoRA A and B, two salts, two images with equal tokens: none finds a page of another's."""
    kinds = {"none": {}, "LoRA A": dict(lora_id="a"), "LoRA B": dict(lora_id="b"), "salt A": dict(cache_salt="alice"),
             "salt B": dict(cache_salt="bob"), "image A": dict(image=1), "image B": dict(image=2)}
    keys = {name: request_keys(prompt(80, 4), **more) for name, more in kinds.items()}
    rank = Rank(daemon.url, {PoolName.KV: mha("page_first")})
    asked = foreign = 0
    for name in kinds:
        assert all(rank.storage_backend.batch_set_v1(keys[name], rank.fill(PoolName.KV, keys[name])))
        for other in kinds:
            found = rank.storage_backend.batch_exists(keys[other])
            if other == name:
                assert found == 4
            else:
                asked, foreign = asked + 4, foreign + found
        rank.storage_backend.clear()
    rank.close()
    print(f"LoRA, salts, images: {foreign} foreign hits of {asked}")
    assert foreign == 0


def late_case(daemon):
    """Storage later than every timeout: a call, and close, return only when no I/O touches the pool."""
    storage = slow.Storage()
    keys = get_storage_hash_str(prompt(70, 8), None, page_size=PAGE)
    for how in ("returned", "closed"):
        for store in (True, False):
            rank = Rank(daemon.url, {PoolName.KV: mla_large("page_first")}, engine="posix", timeout=0.5, namespace_tag=how)
            indices = rank.fill(PoolName.KV, keys)
            backend = rank.storage_backend
            if not store:
                assert all(backend.batch_set_v1(keys, indices))

            def begin(backend=backend, store=store, how=how, indices=indices):
                call = backend.batch_set_v1 if store else backend.batch_get_v1
                if how == "returned":
                    return lambda: call(keys, indices)
                thread = threading.Thread(target=call, args=(keys, indices))
                thread.start()

                def report():
                    assert wait_for(lambda: storage.held)
                    backend.close()
                    thread.join()

                return report

            addresses, sizes = rank.pools[PoolName.KV].get_page_buffer_meta(indices)
            storage.late(f"{how}, {'set' if store else 'get'}", begin, list(zip(addresses, sizes)), 2.0)
            if how == "returned":
                rank.close()


def purged_case(daemon):
    """A set that storage holds while another engine of the same model clears is not found after it; what is stored after it is."""
    storage = slow.Storage()
    keys = get_storage_hash_str(prompt(90, 8), None, page_size=PAGE)
    rank, other = (Rank(daemon.url, {PoolName.KV: mla_large("page_first")}, engine="posix") for _ in range(2))
    indices, backend, clearing = rank.fill(PoolName.KV, keys), rank.storage_backend, other.storage_backend
    assert clearing.batch_exists(keys) == 0  # registers the instance
    done = []
    storage.say("hold")
    try:
        thread = threading.Thread(target=lambda: done.append(backend.batch_set_v1(keys, indices)))
        thread.start()
        assert wait_for(lambda: storage.held)
        assert clearing.clear()
    finally:
        storage.say("0")
    thread.join()
    assert not any(done[0]) and backend.batch_exists(keys) == clearing.batch_exists(keys) == 0, done
    assert all(backend.batch_set_v1(keys, indices)) and clearing.batch_exists(keys) == 8
    rank.close()
    other.close()
    print("a set beside a clear: 0 of 8 found")


def main():
    view = set_parallel()
    cases = [lambda d, layout=layout: layout_case(d, layout) for layout in ("page_first", "layer_first", "page_first_direct", "page_head")]
    for layout in ("page_first", "page_first_direct"):
        kv, swa, state = (lambda layout=layout: mha(layout)), (lambda layout=layout: mha(layout)), (lambda layout=layout: mamba(layout))
        cases += [lambda d, kv=kv, state=state: hybrid_case(d, 1, {"kv": kv, "mamba": state}, mamba=1),
                  lambda d, kv=kv, swa=swa: hybrid_case(d, 2, {"kv": kv, "swa": swa}, swa=4),
                  lambda d, kv=kv, swa=swa, state=state: hybrid_case(d, 3, {"kv": kv, "swa": swa, "mamba": state}, mamba=1, swa=4)]
    cases += [mla_case, blocks_case, shm_case, foreign_case, late_case, purged_case]
    for case in [c for c in cases if not sys.argv[1:] or getattr(c, "__name__", "") in sys.argv[1:]]:
        with Daemon() as daemon:
            case(daemon)
    del view


if __name__ == "__main__":
    main()
