"""sglang_once.py MODEL CONFIG ARGS: one engine of SGLang on a CPU over slabkv.sglang, CONFIG being its extra config as JSON, ARGS more of the
engine's arguments. Reads requests as JSON
lines, {"tokens": [...], "n": 32}, or "flush" to forget what memory holds, and answers each with a line "RESULT {...}"."""

import json
import sys
import time


def main():
    import sglang

    model, config, more = sys.argv[1:]
    args = dict(
        model_path=model, load_format="auto", dtype="float32", skip_tokenizer_init=True, device="cpu", attention_backend="torch_native",
        sampling_backend="pytorch", disable_cuda_graph=True, disable_overlap_schedule=True, mem_fraction_static=0.1, max_total_tokens=8192,
        context_length=4096, page_size=16, random_seed=0, log_level="warning", enable_hierarchical_cache=True, hicache_ratio=2.0,
        hicache_io_backend="direct", hicache_mem_layout="page_first_direct", hicache_write_policy="write_through",
        hicache_storage_prefetch_policy="wait_complete", hicache_storage_backend="dynamic", hicache_storage_backend_extra_config=config)
    engine = sglang.Engine(**{**args, **json.loads(more)})
    print("READY", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if request == "flush":
            for _ in range(100):
                done = engine.flush_cache()
                if getattr(done, "success", done):
                    break
                time.sleep(0.1)
            print("RESULT", json.dumps(bool(getattr(done, "success", done))), flush=True)
            continue
        begin, first, tokens, last = time.monotonic(), 0.0, [], {}
        for last in engine.generate(input_ids=request["tokens"], stream=True,
                                    sampling_params={"temperature": 0, "max_new_tokens": request["n"], "ignore_eos": True}):
            first = first or time.monotonic() - begin
            tokens = last["output_ids"] if len(last["output_ids"]) >= len(tokens) else tokens + last["output_ids"]
        details = last["meta_info"].get("cached_tokens_details") or {}
        print("RESULT", json.dumps({"tokens": tokens, "ttft": first, "cached": last["meta_info"].get("cached_tokens"),
                                    "storage": details.get("storage", 0)}), flush=True)
    engine.shutdown()


if __name__ == "__main__":
    main()
