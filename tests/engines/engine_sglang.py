"""SGLang's own HiCacheController over slabkv.sglang, on a CPU, in four layouts: pages are stored, the host pool is wiped, a second
controller finds and loads them, and every page is equal; bytes that were damaged on disk are a shorter prefix, never a wrong page."""

import os
import sys
import tempfile
import threading

import torch

os.environ.update(MASTER_ADDR="127.0.0.1", RANK="0", WORLD_SIZE="1")
with tempfile.NamedTemporaryFile() as rendezvous:
    torch.distributed.init_process_group("gloo", init_method=f"file://{rendezvous.name}", rank=0, world_size=1)

import sglang.srt.runtime_context as context  # noqa: E402
from sglang.srt.managers.cache_controller import HiCacheController  # noqa: E402
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool  # noqa: E402
from sglang.srt.mem_cache.pool_host.mha import MHATokenToKVPoolHost  # noqa: E402
from sglang.srt.mem_cache.utils import get_storage_hash_str  # noqa: E402

from daemon import Daemon  # noqa: E402

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


class Side:
    """One process's cache: a host pool and a controller over the store."""

    def __init__(self, url, layout, **more):
        self.device = MHATokenToKVPool(TOKENS, PAGE, torch.bfloat16, 4, 64, LAYERS, "cpu", False)
        self.host = MHATokenToKVPoolHost(self.device._mha_buffer_info(), 2.0, 0, PAGE, layout, pin_memory=False, device="cpu",
                                         device_capacity_tokens=TOKENS, start_layer=0, end_layer=LAYERS, host_token_capacity=1024)
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


def main():
    view = set_parallel()
    with Daemon() as daemon:
        for layout in sys.argv[1:] or ["page_first", "layer_first", "page_first_direct", "page_head"]:
            layout_case(daemon, layout)
    del view


if __name__ == "__main__":
    main()
