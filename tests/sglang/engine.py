"""engine.py URL FOLDER - SGLang's own client of the metadata service, in a Python that has SGLang: see hybrid.

Its storage backend (HiCacheHF3FS, with the client of a metadata server and its mock of a file) and what its controller of
hybrid models does with it: backup, the query for hits, the transfer of what was found. Only the pools of host memory are
ours: plain arrays.
"""

import contextlib
import logging
import os
import queue
import sys
import threading
import types

import torch
from sglang.srt.mem_cache.hicache_storage import HiCacheStorageConfig, PoolHitPolicy, PoolName, PoolTransfer
from sglang.srt.mem_cache.hybrid_cache.hybrid_cache_controller import (
    HybridCacheController, PrefetchOperation, StorageOperation)
from sglang.srt.mem_cache.storage.hf3fs.storage_hf3fs import HiCacheHF3FS
from sglang.srt.mem_cache.utils import get_storage_hash_str

PAGE, PAGES = 16, 512  # tokens of a page, pages of a pool in memory
NUMBERS = 32           # float32 in the memory of one token, K and V
FILE_SIZE = 4 << 20


class Pool:
    """Host memory of one kind of layers: as much as the backend asks of it."""

    def __init__(self, page_size, layout="layer_first"):
        self.page_size, self.layout, self.dtype = page_size, layout, torch.float32
        self.memory = torch.zeros(PAGES * page_size, NUMBERS)

    def get_ksize_per_token(self):
        return NUMBERS * 4

    get_size_per_token = get_ksize_per_token

    def get_data_page(self, index, flat=True):
        page = self.memory[index:index + self.page_size]
        return page.flatten() if flat else page

    def get_dummy_flat_data_page(self):
        return torch.zeros(self.page_size * NUMBERS)

    def set_from_flat_data_page(self, index, page):
        self.memory[index:index + self.page_size] = page.view(self.page_size, NUMBERS)


class Replica(HybridCacheController):
    """One of the replicas of rank `rank`: a controller without threads and GPU."""

    def __init__(self, folder, rank, *pools):
        storage = HiCacheStorageConfig(
            tp_rank=rank, tp_size=1, pp_rank=0, pp_size=1, attn_cp_rank=0, attn_cp_size=1, is_mla_model=False,
            enable_storage_metrics=False, is_page_first_layout=False, model_name="m",
            extra_config={"use_mock_hf3fs_client": True})
        self.kv = Pool(PAGE)
        self.pools = {name: Pool(1 if name == PoolName.MAMBA else PAGE) for name in pools}
        self.storage_backend = HiCacheHF3FS.from_env_config(PAGE * NUMBERS * 4, torch.float32, storage)
        self.storage_backend.register_mem_pool_host(self.kv)
        for name, pool in self.pools.items():
            self.storage_backend.register_mem_host_pool_v2(pool, name)
        self.mem_pool_host = types.SimpleNamespace(
            layout_lease=contextlib.nullcontext, entry_map={
                name: types.SimpleNamespace(host_pool=pool) for name, pool in self.pools.items()})
        self.page_size, self.storage_backend_type = PAGE, "hf3fs"
        self.page_set_func, self.page_get_func = self._page_set_zero_copy, self._page_get_zero_copy
        self.prefetch_sync_queue = queue.Queue()

    backup_skip = False  # of a model whose ranks all write

    def append_host_mem_release(self, *_, **__):
        pass

    # ---- what is in memory -----------------------------------------------------------------------

    @staticmethod
    def content(name, key, pool):
        generator = torch.Generator().manual_seed(int(key[:12], 16) + len(name))
        return torch.rand(pool.page_size, NUMBERS, generator=generator)

    def fill(self, name, pool, keys):
        """The layers' memory of these pages; gives where each token of them is."""
        for i, key in enumerate(keys):
            pool.memory[i * pool.page_size:(i + 1) * pool.page_size] = self.content(name, key, pool)
        return torch.arange(len(keys) * pool.page_size)

    def check(self, name, pool, keys):
        for i, key in enumerate(keys):
            got = pool.memory[i * pool.page_size:(i + 1) * pool.page_size]
            assert torch.equal(got, self.content(name, key, pool)), f"{name} page {i} has other bytes"

    # ---- what a request does ---------------------------------------------------------------------

    def backup(self, tokens, **trailing):
        """Of the other pools the last so many pages. Gives how many tokens it takes for stored."""
        keys = get_storage_hash_str(tokens, None, page_size=PAGE)
        transfers = []
        for name, n in trailing.items():
            name = PoolName(name)
            transfers.append(PoolTransfer(
                name=name, keys=keys[-n:], host_indices=self.fill(name, self.pools[name], keys[-n:]),
                hit_policy=PoolHitPolicy.TRAILING_PAGES))
        operation = StorageOperation(self.fill("kv", self.kv, keys), tokens, hash_value=keys, pool_transfers=transfers)
        self._page_backup(operation)
        hits = operation.pool_storage_result.extra_pool_hit_pages
        assert all(hits[PoolName(name)] == n for name, n in trailing.items()), hits
        return operation.completed_tokens

    def prefetch(self, tokens, **trailing):
        """How many tokens were found, all of which are in memory then and are right."""
        transfers = [PoolTransfer(name=PoolName(name), keys=["?"] * n, hit_policy=PoolHitPolicy.TRAILING_PAGES)
                     for name, n in trailing.items()]
        operation = PrefetchOperation(types.SimpleNamespace(rid="r"), tokens, pool_transfers=transfers)
        keys, found = self._storage_hit_query(operation)
        operation.hash_value, operation.host_indices = keys, torch.arange(found)
        for pool in (self.kv, *self.pools.values()):
            pool.memory.zero_()
        for transfer in transfers:
            pool = self.pools[transfer.name]
            transfer.host_indices = torch.arange(min(len(transfer.keys), len(keys)) * pool.page_size)
        if found:
            self._page_transfer(operation)
            self.check("kv", self.kv, keys)
        for name, n in trailing.items() if found else ():
            self.check(PoolName(name), self.pools[PoolName(name)], keys[-n:])
        return found


def prompt(number, pages):
    return list(range(100000 * number, 100000 * number + pages * PAGE))


def hybrid(folder, rank, **trailing):
    """A prompt of 20 pages, its next turn, and one that leaves it where a state is, and where none is."""
    names = [PoolName(name) for name in trailing]
    one, other = Replica(folder, rank, *names), Replica(folder, rank, *names)
    tokens = prompt(rank, 20)
    assert other.prefetch(tokens, **trailing) == 0
    assert one.backup(tokens, **trailing) == len(tokens)
    assert other.prefetch(tokens, **trailing) == len(tokens), "20 of 20"
    longer = tokens + prompt(1000 + rank, 7)
    assert other.prefetch(longer, **trailing) == len(tokens)
    assert other.backup(longer, **trailing) == len(longer)
    assert one.prefetch(longer, **trailing) == len(longer)
    assert one.prefetch(longer[:23 * PAGE], **trailing) == len(tokens)
    assert one.prefetch(tokens[:10 * PAGE] + prompt(2000 + rank, 5), **trailing) == 0


def replicas(folder, rank):
    """The second one stores its 320 pages while the first is in the middle of each of its batches."""
    one, other, tokens = Replica(folder, rank), Replica(folder, rank), prompt(rank, 320)
    stored = []
    confirm = one.storage_backend.metadata_client.confirm_write

    def and_the_other(*arguments, **fields):
        stored.append(other.backup(tokens))
        confirm(*arguments, **fields)

    one.storage_backend.metadata_client.confirm_write = and_the_other
    assert one.backup(tokens) == len(tokens)
    assert stored == [len(tokens)] * len(stored) and stored, [n // PAGE for n in stored]
    assert other.prefetch(tokens) == len(tokens)


def main():
    url, folder = sys.argv[1:]
    logging.disable(logging.INFO)
    config = f"{folder}/hf3fs.json"
    with open(config, "w", encoding="utf-8") as f:
        f.write(f'{{"file_path_prefix": "{folder}/hicache", "file_size": {FILE_SIZE}, "numjobs": 4, "entries": 8, '
                f'"metadata_server_url": "{url}"}}')
    os.environ[HiCacheHF3FS.default_env_var] = config
    cases = [("13.1 mamba", lambda: hybrid(folder, 1, mamba=1)),
             ("13.1 sliding window", lambda: hybrid(folder, 2, swa=4)),
             ("13.1 both", lambda: hybrid(folder, 3, mamba=1, swa=4)),
             ("13.3 replicas", lambda: replicas(folder, 4))]
    for name, case in cases:
        print(name, flush=True)
        case()
    print(f"{len(cases)} passed", flush=True)
    os._exit(0)  # its executors' threads and handlers of signals are not ours


if __name__ == "__main__":
    threading.excepthook = lambda args: (sys.__excepthook__(*args[:3]), os._exit(1))
    main()
