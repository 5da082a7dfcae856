"""A connector with whatever release of its engine there is: it stores blocks, finds them and reads them back equal, or it refuses to start
in one sentence that names what the release lacks. The engine's own controllers are left to engine_NAME.py: they differ by release."""

import sys
import types

from daemon import Daemon
from slabkv import InvalidError


def vllm(_url):
    import slabkv.vllm  # noqa: F401
    import engine_vllm

    engine_vllm.tier_alone()
    engine_vllm.late_verdicts()


def lmcache(url):
    import slabkv.lmcache

    slabkv.lmcache.L2Adapter
    import lmcache_classes as classes

    side = classes.Adapter(classes.plugin(url))
    keys = classes.make_object_keys(8)
    assert side.lookup(keys) == [False] * 8 and side.store(keys, side.objects(8, 1))
    objects = side.objects(8, 77)
    assert side.lookup(keys) == [True] * 8 and side.load(keys, objects) == [True] * 8
    assert all(bool((o.raw_data == i + 1).all()) for i, o in enumerate(objects))
    side.adapter.close()
    classes.remote_connector()


class Pool:
    """As much of a host pool of SGLang's as a storage backend sees: pages of two pieces."""

    page_size, layout, dtype, start_layer, end_layer, size = 16, "page_first", "bfloat16", 0, 1, 4096

    def __init__(self):
        import torch

        self.kv_buffer = torch.zeros((2, 8, self.size), dtype=torch.uint8)

    def get_page_buffer_meta(self, indices):
        pages = [int(i) // self.page_size for i in indices[:: self.page_size]]
        addresses = [self.kv_buffer[k, p].data_ptr() for p in pages for k in range(2)]
        return addresses, [self.size] * len(addresses)


def sglang(url):
    import slabkv.sglang
    import torch
    from sglang.srt.mem_cache.hicache_storage import HiCacheStorageConfig

    def side(**more):
        pool = Pool()
        config = HiCacheStorageConfig(
            tp_rank=0, tp_size=1, pp_rank=0, pp_size=1, attn_cp_rank=0, attn_cp_size=1, is_mla_model=False, enable_storage_metrics=False,
            is_page_first_layout=True, model_name="m", extra_config={"url": url, "namespace_tag": "w", "interface_v1": 1, **more})
        backend = slabkv.sglang.HiCacheSlabkv(config, {})
        backend.register_mem_pool_host(pool)
        return backend, pool

    keys, indices = [f"{i:02x}" * 32 for i in range(8)], torch.arange(8 * Pool.page_size)
    (a, filled), (b, pool), (c, _) = side(), side(), side(namespace_tag="other weights")
    filled.kv_buffer.random_(1, 255)
    assert a.batch_exists(keys) == 0 and all(a.batch_set_v1(keys, indices))
    assert b.batch_exists(keys) == 8 and all(b.batch_get_v1(keys, indices))
    assert torch.equal(filled.kv_buffer, pool.kv_buffer) and c.batch_exists(keys) == 0
    for backend in (a, b, c):
        backend.close()


def ucm(url):
    import slabkv.ucm
    import torch

    store = slabkv.ucm.SlabkvStore({"url": url, "block_size": 8192, "shard_size": 8192, "tensor_size": 4096, "kv_dtype": "bfloat16",
                                    "namespace_tag": "w"})
    blocks = [bytes([i]) * 16 for i in range(1, 9)]
    want, got = ([[torch.full((4096,), fill * i, dtype=torch.uint8) for _ in range(2)] for i in range(1, 9)] for fill in (3, 0))
    assert store.lookup(blocks) == [False] * 8
    store.wait(store.dump(blocks, [0] * 8, want))
    assert store.lookup(blocks) == [True] * 8
    store.wait(store.load(blocks, [0] * 8, got))
    assert all(torch.equal(x, y) for w, g in zip(want, got) for x, y in zip(w, g))
    store.close()


def main():
    case: types.FunctionType = {"lmcache": lmcache, "sglang": sglang, "ucm": ucm, "vllm": vllm}[sys.argv[1]]
    with Daemon() as d:
        try:
            case(d.url)
            print("   stored, found and equal")
        except InvalidError as e:
            assert e.field == "engine", e
            print(f"   refused: {e.message}")


if __name__ == "__main__":
    main()
