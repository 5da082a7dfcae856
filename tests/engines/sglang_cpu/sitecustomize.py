"""SGLang's hierarchical cache without a GPU: on its path every process of the engine replaces what is CUDA's alone, which is
registration of host memory, three copies, events and streams. All else is the engine's own.

SKV_TIMES: as long as this file exists, reads of slabkv.Client take that many times as long as the number in it says.
"""

import importlib.abc
import importlib.machinery
import os
import sys
import time

POOLS = "sglang.srt.mem_cache.pool_host."
PATCHED = {POOLS + name for name in ("base", "common", "mha", "mla")}


def pages_to_host(src_ptrs, dst_ptrs, src_indices, dst_indices, page_size):
    """All layers of pages, from layer_first on the device to page_first."""
    layers = len(src_ptrs) // 2
    sources, pages = src_indices.tolist(), dst_indices.tolist()
    for i in range(0, len(sources), page_size):
        rows, page = slice(sources[i], sources[i] + page_size), pages[i] // page_size
        for layer in range(layers):
            dst_ptrs[0][page, layer].copy_(src_ptrs[layer][rows])
            dst_ptrs[1][page, layer].copy_(src_ptrs[layers + layer][rows])


def layer_to_device(src_ptrs, dst_ptrs, src_indices, dst_indices, layer_id, page_size):
    """One layer of pages, back."""
    sources, targets = src_indices.tolist(), dst_indices.tolist()
    for i in range(0, len(sources), page_size):
        page, rows = sources[i] // page_size, slice(targets[i], targets[i] + page_size)
        for part in (0, 1):
            dst_ptrs[part][rows].copy_(src_ptrs[part][page, layer_id])


def rows(src_layers, dst_layers, src_indices, dst_indices, **_):
    for source, target in zip(src_layers, dst_layers):
        target[dst_indices] = source[src_indices]


class Event:
    """Everything is over when it was called."""

    def __init__(self, *_, **__):
        pass

    def record(self, *_):
        pass

    wait = record

    def query(self):
        return True

    def synchronize(self):
        pass

    def elapsed_time(self, _other):
        return 0.0


def streams():
    import torch

    torch.cpu.Event = Event
    for name, function in (("wait_event", lambda s, e: None), ("wait_stream", lambda s, o: None), ("synchronize", lambda s: None),
                           ("record_event", lambda s, e=None: e or Event()), ("query", lambda s: True)):
        if not hasattr(torch.cpu.Stream, name):
            setattr(torch.cpu.Stream, name, function)


def patch(module):
    for name in ("_cuda_host_register", "_cuda_host_unregister"):
        if hasattr(module, name):
            setattr(module, name, lambda *_, **__: None)
    if module.__name__.endswith((".mha", ".mla")):
        module.transfer_kv_all_layer_direct_lf_pf = pages_to_host
        module.transfer_kv_per_layer_direct_pf_lf = layer_to_device
        module.transfer_kv_direct = rows


def slow_reads(module):
    get = module.Client.get

    def slow(self, *arguments, **named):
        begin = time.monotonic()
        try:
            return get(self, *arguments, **named)
        finally:
            try:
                with open(os.environ["SKV_TIMES"], encoding="ascii") as f:
                    time.sleep((float(f.read()) - 1) * (time.monotonic() - begin))
            except OSError:
                pass

    module.Client.get = slow


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        slow = name == "slabkv.client" and "SKV_TIMES" in os.environ
        if name not in PATCHED and not slow:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        run = spec.loader.exec_module

        def exec_module(module):
            if slow:
                run(module)
                slow_reads(module)
            else:
                streams()
                run(module)
                patch(module)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Finder())
