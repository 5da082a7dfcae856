"""vLLM's stock tiering on a machine without a GPU: a worker that copies rows with torch instead of CUDA kernels. Everything else, the
scheduler, its manager, the host cache and the tier, is stock: spec_name CpuTieringSpec, spec_module_path vllm_cpu."""

import ctypes
import hashlib
import os
import time

from vllm.v1.kv_offload.base import OffloadingWorker, TransferResult
from vllm.v1.kv_offload.cpu.shared_offload_region import SharedOffloadRegion
from vllm.v1.kv_offload.tiering.spec import TieringOffloadingSpec

from slabkv.vllm import SlabkvTier


class CopyingWorker(OffloadingWorker):
    """CPUOffloadingWorker's place: the same rows, one block in each."""

    def __init__(self, caches, region):
        self.region = region
        self.refs = caches.group_data_refs
        self.device = [t.tensor for t in caches.tensors]
        self.host = [region.create_next_worker_view(t.page_size_bytes) for t in caches.tensors]
        self.done = []

    def copy(self, job_id, device, host, store):
        begin, count, at = time.monotonic(), 0, 0
        for group, size in enumerate(device.group_sizes):
            rows = list(zip(device.block_ids[at : at + size].tolist(), host.block_ids[at : at + size].tolist()))
            at += size
            for ref in self.refs[group]:
                d, h, n = self.device[ref.tensor_idx], self.host[ref.tensor_idx], ref.page_size_bytes
                for there, here in rows:
                    if store:
                        h[here, :n].copy_(d[there, :n])
                    else:
                        d[there, :n].copy_(h[here, :n])
                    count += n
        self.done.append(TransferResult(job_id, True, count, max(time.monotonic() - begin, 1e-9)))
        return True

    def submit_store(self, job_id, src_spec, dst_spec):
        return self.copy(job_id, src_spec, dst_spec, True)

    def submit_load(self, job_id, src_spec, dst_spec):
        return self.copy(job_id, dst_spec, src_spec, False)

    def get_finished(self):
        done, self.done = self.done, []
        return done

    def wait(self, job_ids):
        pass

    def shutdown(self):
        self.region.cleanup()


class CpuTieringSpec(TieringOffloadingSpec):
    def get_worker(self, kv_caches):
        if not self._worker:
            assert self.blocks_per_chunk == 1
            rank = 0 if self.replicated_layout else self.config.parallel.rank  # as in the stock one
            region = SharedOffloadRegion(engine_id=self._engine_id, num_chunks=self.num_chunks, rank=rank,
                                         kv_bytes_per_chunk=self.kv_bytes_per_chunk, cpu_page_size=self.cpu_page_size_per_worker)
            self._worker = CopyingWorker(kv_caches, region)
        return self._worker


class SummingTier(SlabkvTier):
    """Writes a checksum of each row that is stored and of each that was loaded to the file named by SKV_SUMS, and when; also when loads
    begin and fail."""

    def _sum(self, what, job):
        with open(os.environ["SKV_SUMS"], "a") as f:
            for key, chunk in zip(job.keys, job.chunk_ids):
                row = ctypes.string_at(self._base + int(chunk) * self.block_size_bytes, self.block_size_bytes)
                f.write(f"{what} {key.hex()} {hashlib.blake2b(row, digest_size=16).hexdigest()} {time.monotonic()}\n")

    def submit_store(self, job_metadata):
        self._sum("stored", job_metadata)
        super().submit_store(job_metadata)

    def submit_load(self, job_metadata):
        self._mine = getattr(self, "_mine", {})
        self._mine[job_metadata.job_id] = job_metadata
        self._sum("loading", job_metadata)
        super().submit_load(job_metadata)

    def get_finished_jobs(self):
        done = list(super().get_finished_jobs())
        for result in done:
            job = getattr(self, "_mine", {}).pop(result.job_id, None)
            if job is not None:
                self._sum("loaded" if result.success else "failed", job)
        return done
