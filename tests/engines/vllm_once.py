"""One vLLM engine process on a CPU: vllm_once.py MODEL KV_TRANSFER_CONFIG. Prints one line of JSON: cached tokens, time to the first
token, tokens and logprobs of 32 greedy tokens after a prompt of 2,000."""

import hashlib
import json
import os
import random
import sys

os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "1")


def prompt(seed):
    return {"prompt_token_ids": random.Random(seed).choices(range(3, 1000), k=2000)}


def main():
    from vllm import LLM, SamplingParams
    from vllm.config import KVTransferConfig

    config = json.loads(sys.argv[2])
    more = {"kv_transfer_config": KVTransferConfig(**config)} if config else {}
    llm = LLM(model=sys.argv[1], skip_tokenizer_init=True, enforce_eager=True, dtype="float32", max_model_len=4096, block_size=128,
              enable_prefix_caching=True, seed=0, max_num_seqs=4, max_num_batched_tokens=4096, disable_log_stats=False, **more)
    params = SamplingParams(temperature=0, max_tokens=32, ignore_eos=True, detokenize=False, logprobs=0)
    llm.generate([prompt(int(os.environ.get("WARM_SEED", "1")))], params, use_tqdm=False)
    out = llm.generate([prompt(7)], params, use_tqdm=False)[0]
    logprobs = [round(next(iter(p.values())).logprob, 6) for p in out.outputs[0].logprobs]
    print("RESULT " + json.dumps({
        "cached": out.num_cached_tokens, "ttft": getattr(out.metrics, "first_token_latency", None),
        "tokens": list(out.outputs[0].token_ids), "logprobs": hashlib.md5(repr(logprobs).encode()).hexdigest()}), flush=True)


if __name__ == "__main__":
    main()
