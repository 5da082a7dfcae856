"""LMCache inside an engine without a GPU: a connector that copies with torch instead of CUDA kernels. All else is stock. vLLM loads it as a
plugin (vllm_whole.installed)."""

import torch


class CopyingConnector:
    """VLLMPagedMemGPUConnectorV2's place. A row holds all layers of a token; vLLM's caches on a CPU are (block, head, token, K and V)."""

    def __init__(self, metadata):
        self.layers, self.kv, _chunk, self.heads, self.size = metadata.kv_shape

    def get_shape(self, n_tokens):
        return torch.Size([self.kv, self.layers, n_tokens, self.heads * self.size])

    def initialize_kvcaches_ptr(self, **kwargs):
        pass

    def copy(self, memory, start, end, store, *, kvcaches, slot_mapping, **_):
        slots = slot_mapping[start:end]
        for layer, cache in enumerate(kvcaches):
            blocks, _heads, n, _both = cache.shape
            where = slots // n, slice(None), slots % n
            if store:
                rows = cache[where].unflatten(2, (2, self.size))  # token, head, K or V
                memory.tensor[:, layer].copy_(rows.permute(2, 0, 1, 3).flatten(2))
            else:
                rows = memory.tensor[:, layer].unflatten(2, (self.heads, self.size))
                cache[where] = rows.permute(1, 2, 0, 3).flatten(2)

    def batched_from_gpu(self, memory_objs, starts, ends, **kwargs):
        for m, start, end in zip(memory_objs, starts, ends):
            self.copy(m, start, end, True, **kwargs)

    def batched_to_gpu(self, memory_objs, starts, ends, **kwargs):
        for m, start, end in zip(memory_objs, starts, ends):
            self.copy(m, start, end, False, **kwargs)


def register():
    """Before LMCache is imported: vLLM looks through all modules when a worker starts, and fails at one of LMCache's."""
    from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory

    make = KVConnectorFactory.create_connector

    def create_connector(*arguments, **more):
        from lmcache.v1 import gpu_connector

        gpu_connector.CreateGPUConnector = lambda config, metadata, engine, **_: CopyingConnector(metadata)
        return make(*arguments, **more)

    KVConnectorFactory.create_connector = staticmethod(create_connector)
