"""One vLLM engine process on a CPU: vllm_engine.py MODEL OPTIONS, both of JSON's words on its input, a line of JSON for each answer.
OPTIONS: kv (kv_transfer_config), args (of LLM). Commands:

    {"run": [{"seed": 7, "n": 2000, "out": 32}, ...], "abort": {"0": 0.5}}   requests at once; after so many seconds one is aborted, or
        when something is "loading"; a request with "storage" comes after the first token of the one before it, and storage is told this
        (slow.c); "salt" and "lora" (the adapter's folder); with "preemptions" one answer more tells of how many, and storage goes on when the first one has ended
    {"reset": true}                            nothing is cached any more but in secondary tiers
    {"metrics": "slabkv"}                      Prometheus metrics with this in their names
    {"tokens": [...], "n": 2}, "flush"         as client/python/bench/ttft asks
"""

import hashlib
import json
import os
import random
import sys
import threading
import time

os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")


def metrics(llm, word):
    return {m.name: m.value for m in llm.get_metrics() if word in m.name and hasattr(m, "value")}


def count(llm, word):
    return sum(metrics(llm, word).values())


adapters = {}  # their numbers, by folder


def run(llm, command, numbers):
    from vllm import SamplingParams

    engine = llm.llm_engine
    begin = time.monotonic()
    requests, order, answers = {}, [], {}
    sums = os.environ.get("SKV_SUMS", os.devnull)
    written = os.path.getsize(sums) if os.path.exists(sums) else 0

    def loading():
        """Whether a load has begun (vllm_cpu.SummingTier)."""
        with open(sums) as f:
            f.seek(written)
            return "loading" in f.read()

    def say(what):
        with open(os.environ["SKV_SLOW"], "w") as f:
            f.write(what)

    def add(r):
        if "storage" in r:
            say(r["storage"])
        name = f"r{next(numbers)}"
        params = SamplingParams(temperature=0, max_tokens=r.get("out", 32), ignore_eos=True, detokenize=False, logprobs=0)
        prompt = {"prompt_token_ids": r.get("tokens") or random.Random(r["seed"]).choices(range(3, 1000), k=r.get("n", 2000))}
        if "salt" in r:
            prompt["cache_salt"] = r["salt"]
        lora = None
        if "lora" in r:
            from vllm.lora.request import LoRARequest

            lora = LoRARequest("adapter", adapters.setdefault(r["lora"], len(adapters) + 1), r["lora"])  # all have one name
        inner = engine.add_request(name, prompt, params, lora_request=lora)
        requests[name] = inner
        order.append(name)

    waiting = list(command["run"])
    while waiting and "storage" not in waiting[0]:
        add(waiting.pop(0))
    aborts = {order[int(i)]: s for i, s in command.get("abort", {}).items()}
    before = count(llm, "preemption")
    watch, released = [], []

    def ended():
        while "at" not in answers.get(order[0], {}):
            time.sleep(0.1)
        released.append(time.monotonic())
        say("0")

    while engine.has_unfinished_requests():
        if waiting and "ttft" in answers.get(order[-1], {}):
            add(waiting.pop(0))
        if command.get("preemptions"):
            if not watch and not waiting:
                watch.append(threading.Thread(target=ended))
                watch[0].start()
        for name, after in list(aborts.items()):
            if loading() if after == "loading" else time.monotonic() - begin >= after:
                engine.abort_request([requests[name]], internal=True)
                answers[name] = {"aborted": time.monotonic()}
                del aborts[name]
        for out in engine.step():
            a = answers.setdefault(out.request_id, {})
            now = time.monotonic()
            if now - a.setdefault("last", now) > a.get("pause", 0):
                a.update(pause=now - a["last"], paused=a["last"])  # the longest time between two tokens, and when it began
            a["last"] = now
            if out.outputs and out.outputs[0].token_ids and "ttft" not in a:
                a["ttft"] = time.monotonic() - begin
            if out.finished and "aborted" not in a:
                logprobs = [round(next(iter(p.values())).logprob, 6) for p in out.outputs[0].logprobs]
                a.update(cached=out.num_cached_tokens, tokens=list(out.outputs[0].token_ids), seconds=time.monotonic() - begin,
                         at=time.monotonic(),
                         logprobs=hashlib.md5(repr(logprobs).encode()).hexdigest())
    for thread in watch:
        thread.join()
    told = {"preempted": count(llm, "preemption") - before, "released": released[0]} if watch else {}
    return [answers.get(name, {}) for name in order] + ([told] if command.get("preemptions") else [])


def main():
    import itertools

    from vllm import LLM
    from vllm.config import KVTransferConfig

    options = json.loads(sys.argv[2])
    more = {"kv_transfer_config": KVTransferConfig(**options["kv"])} if options.get("kv") else {}
    args = dict(skip_tokenizer_init=True, enforce_eager=True, dtype="float32", max_model_len=4096, block_size=128,
                enable_prefix_caching=True, seed=0, max_num_seqs=4, max_num_batched_tokens=4096, disable_log_stats=False)
    llm = LLM(model=sys.argv[1], **{**args, **more, **options.get("args", {})})
    numbers = itertools.count()
    print("RESULT true\nREADY", flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        if "run" in command:
            answer = run(llm, command, numbers)
        elif "tokens" in command:
            (found,) = run(llm, {"run": [{"tokens": command["tokens"], "out": command["n"]}]}, numbers)
            answer = {"ttft": found["ttft"], "storage": found["cached"]}
        elif command == "flush" or "reset" in command:
            answer = llm.reset_prefix_cache(reset_connector=True)
        else:
            answer = metrics(llm, command["metrics"])
        print("RESULT " + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
