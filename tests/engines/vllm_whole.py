"""Whole vLLM engines, each a process (vllm_engine.py): what a fresh one finds, and what they do when the manager or the storage fails.
Small models with random weights, so that tokens are diverse; fp32, so that they can be compared."""

import collections
import contextlib
import itertools
import json
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import slabkv
import slow
from cases import run_cases
from daemon import Daemon, die_with_parent, wait_for

HERE = pathlib.Path(__file__).parent
TIMEOUT = 1.0  # of a call to the manager
PROMPT, BLOCK = 2000, 128
LAYERS = int(os.environ.get("SKV_LAYERS", "8"))  # of the model: fewer where the machine is busy with other things
WHOLE = PROMPT // BLOCK * BLOCK  # tokens of a prompt that can be cached: all but the last, partial, block


def connector(url, **more):
    tier = {"type": "SummingTier", "module_path": "vllm_cpu", "url": url, "timeout": TIMEOUT, "retry": 0.5, **more}
    return offloading([tier])


def offloading(tiers, role="kv_both"):
    return {"kv_connector": "OffloadingConnector", "kv_role": role, "kv_connector_extra_config": {
        "spec_name": "CpuTieringSpec", "spec_module_path": "vllm_cpu", "cpu_bytes_to_use": 256 << 20, "secondary_tiers": tiers}}


ROPE = {"rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}}


class Engine:
    def __init__(self, model, kv=None, args=None, env=None):
        self.log = tempfile.TemporaryFile("w+")
        path = os.pathsep.join([os.environ["PYTHONPATH"], str(HERE)])
        self.process = subprocess.Popen([sys.executable, str(HERE / "vllm_engine.py"), model, json.dumps({"kv": kv, "args": args or {}})],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        preexec_fn=die_with_parent, env={**os.environ, "PYTHONPATH": path, "VLLM_CPU_OMP_THREADS_BIND": "nobind", **(env or {})})
        self.answer()

    def answer(self):
        for line in self.process.stdout:
            if line.startswith("RESULT "):
                return json.loads(line[7:])
            self.log.write(line)
        self.log.seek(0)
        raise RuntimeError("the engine ended:\n" + self.log.read()[-6000:])

    def ask(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def run(self, *seeds, **more):
        return self.ask(run=[s if isinstance(s, dict) else {"seed": s} for s in seeds], **more)

    def reset(self):
        assert self.ask(reset=True), "not reset"

    def metrics(self, word="slabkv"):
        return collections.defaultdict(float, self.ask(metrics=word))  # what was never counted is not there

    def said(self, text):
        self.log.seek(0)
        return text in self.log.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="skv-vllm-") as name:
        yield pathlib.Path(name)


def llama(path, seed=0):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(hidden_size=512, intermediate_size=1024, num_hidden_layers=LAYERS, num_attention_heads=8, num_key_value_heads=4,
                         vocab_size=1024, max_position_embeddings=4096, initializer_range=0.06, torch_dtype="float32")
    LlamaForCausalLM(config).save_pretrained(path)
    return str(path)


def deepseek(path):
    """With multi-head latent attention."""
    import torch
    from transformers import DeepseekV2Config, DeepseekV2ForCausalLM

    torch.manual_seed(0)
    config = DeepseekV2Config(hidden_size=256, intermediate_size=512, moe_intermediate_size=128, num_hidden_layers=4, num_attention_heads=4,
                              num_key_value_heads=4, vocab_size=1024, max_position_embeddings=4096, initializer_range=0.06,
                              kv_lora_rank=512, q_lora_rank=None, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128,
                              first_k_dense_replace=4, torch_dtype="float32")  # no layer has experts
    DeepseekV2ForCausalLM(config).save_pretrained(path)
    return str(path)


def zero_on_disk(d):
    for path in d.slabs():
        with open(path, "r+b") as f:
            for at in range(1 << 20, path.stat().st_size, 4096):
                f.seek(at)
                f.write(bytes(64))


def same(a, b):
    return sum(x == y for x, y in zip(a["tokens"], b["tokens"]))


def cold_and_warm():
    """A stores; a fresh B finds all but the last block, gives the same tokens, the logprobs that B over vLLM's own fs tier gives, and loads
    the bytes that A stored. Then its store is zeroed on disk."""
    with folder() as f, Daemon(capacity="1G", unit="16M") as d:
        model, sums = llama(f / "model"), f / "sums"
        found = {}
        for tier in ("slabkv", "fs"):
            kv = connector(d.url, renew_on_reset=False) if tier == "slabkv" else offloading([{"type": "fs", "root_dir": str(f / "fs")}])
            with Engine(model, kv, env={"SKV_SUMS": str(sums)}) as a:
                a.run(1)
                (cold,) = a.run(7)
                time.sleep(2)  # an idle engine polls its stores to their end
                a.run({"seed": 2, "n": 64, "out": 2})
            for path in [*(f / "fs").rglob("*.bin"), *d.slabs()]:
                fd = os.open(path, os.O_RDONLY)
                os.fsync(fd)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(fd)
            with Engine(model, kv, env={"SKV_SUMS": str(sums)}) as b:
                b.run(3)
                (warm,) = b.run(7)
                found[tier] = cold, warm
                print(f"   {tier}: cold {cold['ttft']:.2f} s; a fresh engine: cached {warm['cached']}, first token after {warm['ttft']:.2f} s, "
                      f"{same(cold, warm)} of 32 tokens, logprobs {warm['logprobs'][:8]}", flush=True)
                assert cold["cached"] == 0 and warm["cached"] == WHOLE and same(cold, warm) == 32
                if tier == "fs":
                    break
                told = b.metrics()
                print("   Prometheus: " + ", ".join(f"{n[12:]} {v:g}" for n, v in sorted(told.items()) if v))
                assert told["vllm:slabkv_loaded_blocks"] == WHOLE // BLOCK and told["vllm:slabkv_reachable"] == 1
                zero_on_disk(d)
                b.reset()
                (damaged,) = b.run(7)
                told = b.metrics()
                print(f"   zeroed on disk: cached {damaged['cached']}, {same(cold, damaged)} of 32 tokens, "
                      f"{told['vllm:slabkv_failed_loads']:g} loads failed")
                assert damaged["cached"] == 0 and same(cold, damaged) == 32
        lines = [line.split() for line in sums.read_text().splitlines()]
        stored = {key: s for what, key, s, _when in lines if what == "stored"}
        loaded = [(key, s) for what, key, s, _when in lines if what == "loaded"]
        equal = sum(stored.get(key) == s for key, s in loaded)
        print(f"   {equal} of {len(loaded)} loaded rows have the checksum of what was stored")
        assert loaded and equal == len(loaded)
        ours, theirs = found["slabkv"], found["fs"]
        print(f"   logprobs equal to the warm run over fs: {ours[1]['logprobs'] == theirs[1]['logprobs']}")
        assert ours[1]["logprobs"] == theirs[1]["logprobs"] and ours[1]["tokens"] == theirs[1]["tokens"]


def slow_library(f):
    """slow.c, to preload, and its file."""
    (f / "rate").write_text("0")
    return {"LD_PRELOAD": str(slow.build(f)), "SKV_SLOW": str(f / "rate")}


class Sums:
    """What SummingTier has written: lines of (what, key, checksum, when)."""

    def __init__(self, path):
        self.path = path
        path.touch()
        self.begin = 0

    def mark(self):
        self.begin = len(self.path.read_text())

    def since(self, what):
        """When, of the lines since the mark."""
        lines = (line.split() for line in self.path.read_text()[self.begin :].splitlines())
        return [float(line[3]) for line in lines if line[0] == what and len(line) == 4]


def failures():
    """Manager killed within a load, killed and started again, stopped for 5 s; storage slow; an abort within a load: tokens right, nothing
    longer than cold plus the timeout, and the engine lives."""
    with folder() as f, Daemon(capacity="1G", unit="16M") as d:
        model = llama(f / "model")
        sums = Sums(f / "sums")
        env = {**slow_library(f), "SKV_SUMS": str(sums.path)}
        rate = f / "rate"
        kv = connector(d.url, renew_on_reset=False, engine="posix")
        with Engine(model, kv, env=env) as e:
            seeds, fresh = list(range(10, 18)), itertools.count(1000)
            e.run(1)
            cold = {s: e.run(s)[0] for s in seeds}
            e.run({"seed": 2, "n": 64, "out": 2})
            worst = max(c["seconds"] for c in cold.values())
            print(f"   cold: {worst:.2f} s at most", flush=True)

            def again(what, seed, before=None, within=None, after=None):
                """Within 1.1 of cold and the timeout; `within` happens when the first load has begun. Others use this machine, too, so a
                request that took longer is compared with a cold one of now, and tried again."""
                for _ in range(4):
                    e.reset()
                    sums.mark()
                    if before:
                        before()
                    thread = threading.Thread(target=lambda: wait_for(lambda: sums.since("loading"), 60) and within()) if within else None
                    if thread:
                        thread.start()
                    (r,) = e.run(seed)
                    if thread:
                        thread.join()
                    if after:
                        after()
                    assert same(cold[seed], r) == 32, what
                    limit = worst * 1.1 + TIMEOUT
                    if r["seconds"] > limit:
                        limit = max(worst, e.run(next(fresh))[0]["seconds"]) * 1.1 + TIMEOUT
                    print(f"   {what}: {r['seconds']:.2f} s (at most {limit:.2f}), cached {r['cached']}, {same(cold[seed], r)} of 32", flush=True)
                    if r["seconds"] <= limit:
                        return r
                raise AssertionError(f"{what}: each time longer than cold and the timeout")

            def stop():
                d.signal(signal.SIGSTOP)
                threading.Timer(5.0, lambda: d.signal(signal.SIGCONT)).start()

            assert again("nothing wrong", 10)["cached"] == WHOLE
            rate.write_text("20")  # 30 MiB in 1.6 s
            again("storage slow", 11)
            again("manager killed within a load", 12, None, d.kill, d.start)
            rate.write_text("0")
            assert wait_for(lambda: again("manager started again", 13)["cached"] == WHOLE, 60)
            again("manager stopped for 5 s", 14, stop)
            again("manager still stopped, then not", 15)
            time.sleep(5)
            assert wait_for(lambda: again("manager answers again", 15)["cached"] == WHOLE, 60)
            # Aborted when its load has begun, and that goes on after it.
            e.reset()
            rate.write_text("5")
            sums.mark()
            gone, r = e.run(16, 17, abort={"0": "loading"})
            rate.write_text("0")
            ended = sums.since("loaded") + sums.since("failed")
            print(f"   aborted within a load: {sum(t > gone['aborted'] for t in ended)} of {len(ended)} rows came later; the other: "
                  f"cached {r['cached']}, {same(cold[17], r)} of 32")
            assert gone["aborted"] < max(ended) and same(cold[17], r) == 32
            assert wait_for(lambda: again("the aborted prompt again", 16)["cached"] == WHOLE, 60)


def slowed():
    """Storage at a tenth of its rate: no first token later than 1.1 of a cold one. So slow that a load takes three times as long as
    prefill: one request finds out, the next ones compute again at once."""
    with folder() as f, Daemon(capacity="1G", unit="16M") as d:
        model, rate, fresh = llama(f / "model"), f / "rate", itertools.count(2000)
        with Engine(model, connector(d.url, renew_on_reset=False, engine="posix"), env={**slow_library(f), "SKV_SUMS": str(f / "sums")}) as e:
            seeds = range(30, 36)
            e.run(1)
            cold = {s: e.run(s)[0] for s in seeds}
            e.run({"seed": 2, "n": 64, "out": 2})

            def warm(seed):
                e.reset()
                (r,) = e.run(seed)
                assert same(cold[seed], r) == 32
                return r

            def within(what, seed):
                """Beside cold ones of now, and tried again: others use this machine, too."""
                for _ in range(4):
                    before = e.run(next(fresh))[0]["ttft"]
                    r = warm(seed)
                    limit = 1.1 * max(before, e.run(next(fresh))[0]["ttft"])
                    print(f"   {what}: first token after {r['ttft']:.2f} s (at most {limit:.2f}), cached {r['cached']}, 32 of 32", flush=True)
                    if r["ttft"] <= limit:
                        return
                raise AssertionError(f"{what}: each time later")

            for s in seeds:
                warm(s)
            told = e.metrics()
            fast = told["vllm:slabkv_load_bytes_per_s"] / 1e6
            rate.write_text(f"{fast / 10:.3f}")
            print(f"   loads at {fast:.0f} MB/s, now at a tenth", flush=True)
            for s in seeds[:3]:
                within("a tenth", s)
            n_bytes = WHOLE // BLOCK * told["vllm:slabkv_loaded_bytes"] / told["vllm:slabkv_loaded_blocks"]
            rate.write_text(f"{n_bytes / 1e6 / (3 * max(c['ttft'] for c in cold.values())):.3f}")
            r = warm(seeds[3])
            print(f"   slower still: first token after {r['ttft']:.2f} s, cached {r['cached']}", flush=True)
            for s in seeds[4:]:
                within("the next ones", s)


def preempted():
    """Two requests fill the cache of the device, and when the first one needs one block more the second is preempted, while storage holds
    the load of a third: all tokens are right. (A tier's load goes to vLLM's host cache: the one that waits for it has no blocks yet.)"""
    with folder() as f, Daemon(capacity="1G", unit="16M") as d:
        model, sums = llama(f / "model"), Sums(f / "sums")
        kv = connector(d.url, renew_on_reset=False, engine="posix", timeout=60.0)
        args = {"num_gpu_blocks_override": 33, "max_model_len": 2560}  # one is vLLM's own; 16 take a prompt and its first 48 tokens
        with Engine(model, kv, args, {**slow_library(f), "SKV_SUMS": str(sums.path)}) as e:
            wanted = [{"seed": s, "out": 80} for s in (16, 17, 18)]
            cold = [e.run(r)[0] for r in wanted]
            e.run({"seed": 2, "n": 64, "out": 2})
            wanted[2]["storage"] = "hold"
            for _ in range(5):  # on a busy machine the second one may be preempted before the third one's load begins
                if preempted_once(e, sums, wanted, cold):
                    return
            raise AssertionError("never preempted within the load")


def preempted_once(e, sums, wanted, cold):
    """True: the second one was preempted while storage held the load of the third."""
    e.reset()
    sums.mark()
    *found, told = e.run(*wanted, preemptions=True)
    began, released = sums.since("loading")[-1], told["released"]
    held = [t for t in sums.since("loaded") + sums.since("failed") if t > released]
    right = [same(c, r) for c, r in zip(cold, found)]
    print(f"   {told['preempted']:g} preempted, the second one {found[1]['pause']:.1f} s without a token, {found[1]['paused'] - began:.1f} s "
          f"after the third one's load began; {len(held)} rows of that came when storage went on; cached {[r['cached'] for r in found]}, "
          f"{right} of 80 tokens")
    assert right == [80] * 3 and len(held) == WHOLE // BLOCK
    return told["preempted"] >= 1 and began < found[1]["paused"] < found[0]["at"] < released


def tp2():
    """Two workers: the row holds both shards."""
    pairs("TP2", llama, {"tensor_parallel_size": 2, "distributed_executor_backend": "mp"})


def mla():
    """Two workers of a model with latent attention: the row is stored once."""
    told, cached = pairs("MLA, TP2", deepseek, {"tensor_parallel_size": 2, "distributed_executor_backend": "mp"})
    n_bytes = told["vllm:slabkv_loaded_bytes"] / told["vllm:slabkv_loaded_blocks"]
    tokens = cached / told["vllm:slabkv_loaded_blocks"]  # vLLM chooses them for MLA
    once = 4 * tokens * (512 + 64) * 4  # layers, tokens, latent and rope, fp32
    print(f"   a block of {tokens:g} tokens has {n_bytes:.0f} bytes; one worker's share is {once:.0f}")
    assert n_bytes < 1.5 * once


def pairs(what, make, args, kv=connector):
    with folder() as f, Daemon(capacity="1G", unit="16M") as d:
        model, env = make(f / "model"), {"SKV_SUMS": str(f / "sums")}
        both = kv(d.url)
        with Engine(model, both if isinstance(both, dict) else both[0], args, env) as a:
            (cold,) = a.run(7)
            time.sleep(1)
            a.run({"seed": 2, "n": 64, "out": 2})
        with Engine(model, both if isinstance(both, dict) else both[1], args, env) as b:
            b.run({"seed": 3, "n": 64, "out": 2})
            (warm,) = b.run(7)
            print(f"   {what}: cached {warm['cached']}, {same(cold, warm)} of 32 tokens, first token {cold['ttft']:.2f} s, {warm['ttft']:.2f} s")
            assert cold["cached"] == 0 and WHOLE <= warm["cached"] <= PROMPT and same(cold, warm) == 32
            return b.metrics(), warm["cached"]


def multi_connector():
    """As a producer that stores and a consumer that finds, each below MultiConnector."""
    def both(url):
        def role(name):
            child = {**connector(url), "kv_role": name}
            return {"kv_connector": "MultiConnector", "kv_role": name, "kv_connector_extra_config": {"connectors": [child]}}

        return role("kv_producer"), role("kv_consumer")

    pairs("MultiConnector", llama, {}, both)


def two_engines_small_store():
    """Two engines at once share a store that holds half of the prompts: eviction all the time, hits, no wrong token."""
    with folder() as f, Daemon(capacity=f"{LAYERS * 12}M", unit="16M") as d:  # a prompt takes 3.75 MiB a layer
        model, env = llama(f / "model"), {"SKV_SUMS": str(f / "sums")}
        kv = connector(d.url, renew_on_reset=False)
        with Engine(model, kv, env=env) as a, Engine(model, kv, env=env) as b:
            seeds = range(20, 26)
            cold = {s: a.run(s)[0] for s in seeds}
            wrong, hits = [], [0, 0]

            def loop(i, e):
                for turn in range(2):
                    for k in range(len(seeds)):
                        s = seeds[(k + 3 * i) % len(seeds)] if k % 2 else seeds[-1 - turn]
                        e.reset()
                        (r,) = e.run(s)
                        hits[i] += r["cached"]
                        if same(cold[s], r) != 32:
                            wrong.append((i, s, r))

            threads = [threading.Thread(target=loop, args=x) for x in enumerate((a, b))]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            told = [e.metrics() for e in (a, b)]
            print(f"   cached tokens {hits} of {2 * len(seeds) * PROMPT} each, {len(wrong)} wrong; "
                  f"lookups {[t['vllm:slabkv_lookups'] for t in told]}, hits {[t['vllm:slabkv_hits'] for t in told]}, "
                  f"failed loads {[t['vllm:slabkv_failed_loads'] for t in told]}")
            assert not wrong and all(hits)


def other_weights():
    """The same path and configuration, other weights: nothing is found."""
    with folder() as f, Daemon(capacity="1G", unit="16M") as d:
        env = {"SKV_SUMS": str(f / "sums")}
        tokens = []
        for seed in (0, 1):
            with Engine(llama(f / "model", seed), connector(d.url), env=env) as e:
                (r,) = e.run(7)
                tokens.append(r["tokens"])
                time.sleep(1)
                e.run({"seed": 2, "n": 64, "out": 2})
                assert r["cached"] == 0
                if seed:
                    (r,) = e.run({"seed": 7, "salt": "alice"})
                    (s,) = e.run({"seed": 7, "salt": "bob"})
                    print(f"   0 cached with other weights; with another salt {r['cached']}, {s['cached']}")
                    assert r["cached"] == s["cached"] == 0
        assert tokens[0] != tokens[1]


def resolved():
    """Engines with rope parameters overridden, with dummy weights, or with one tensor changed find nothing of a plain one with the same
    directory; the same files under another path find all. (Quantizing while loading needs an accelerator or AMX: see configurations.)"""
    with folder() as f, Daemon(capacity="1G", unit="16M") as d:
        model, copy, env = llama(f / "model"), f / "on/another/host", {"SKV_SUMS": str(f / "sums")}
        shutil.copytree(model, copy)
        changed = shutil.copytree(model, f / "changed")
        with open(changed / "model.safetensors", "r+b") as weights:
            header = json.loads(weights.read(int.from_bytes(weights.read(8), "little")))
            weights.seek(header["model.layers.0.input_layernorm.weight"]["data_offsets"][0], 1)
            weights.write(bytes(512))
        found = {}
        for name, path, args in (("plain", model, {}), ("overrides", model, {"hf_overrides": ROPE}),
                                 ("dummy weights", model, {"load_format": "dummy"}), ("one norm changed", changed, {}), ("another path", copy, {})):
            with Engine(str(path), connector(d.url), args, env) as e:
                (found[name],) = e.run(7)
                time.sleep(1)  # an idle engine polls its stores to their end
                e.run({"seed": 2, "n": 64, "out": 2})
            r = found[name]
            print(f"   {name}: cached {r['cached']}, {same(found['plain'], r)} of 32 tokens as plain", flush=True)
        away = found.pop("another path")
        assert away["cached"] == WHOLE and same(found["plain"], away) == 32
        assert not any(r["cached"] for r in found.values()), found
        assert all(r["tokens"] != found["plain"]["tokens"] for n, r in found.items() if n != "plain")


def ttft():
    """client/python/bench/ttft: 80 of 100 prompts were sent before; vLLM without slabkv and with it, nothing kept in the engine's memory
    between requests. SKV_OUT: a folder for the table, the plot and all numbers."""
    requests = int(os.environ.get("SKV_REQUESTS", "20"))
    with folder() as f, Daemon(capacity="2G", unit="16M") as d:
        out = pathlib.Path(os.environ.get("SKV_OUT", f))
        model = llama(f / "model")
        tier = {"type": "SlabkvTier", "module_path": "slabkv.vllm", "url": d.url, "renew_on_reset": False}
        plain, ours = (shlex.join([sys.executable, str(HERE / "vllm_engine.py"), model, json.dumps({"kv": kv})])
                       for kv in (None, offloading([tier])))
        path = os.pathsep.join([os.environ["PYTHONPATH"], str(HERE)])
        with open(f / "log", "w+") as log:
            run = subprocess.run([sys.executable, str(HERE.parents[1] / "client/python/bench/ttft"), "--a", plain, "--b", ours,
                                  "--requests", str(requests), "--tokens", str(PROMPT), "--pause", "0.5", "--plot", str(out / "ttft.svg"),
                                  "--json", str(out / "ttft.json")], text=True, stdout=subprocess.PIPE, stderr=log,
                                 env={**os.environ, "PYTHONPATH": path, "VLLM_CPU_OMP_THREADS_BIND": "nobind"})
            log.seek(0)
            assert run.returncode == 0, log.read()[-4000:]
        (out / "ttft.txt").write_text(run.stdout)
        print(run.stdout)
        a, b = json.loads((out / "ttft.json").read_text()).values()
        again = [i for i, r in enumerate(b) if r[2]]
        found = [b[i][1] for i in again]
        print(f"   {sum(n == WHOLE for n in found)} of {len(again)} repeated prompts came from storage; plot: {(out / 'ttft.svg').stat().st_size} bytes")
        assert len(again) >= 0.75 * requests and all(n == WHOLE for n in found)
        median = [sorted(rows[i][0] for i in again)[len(again) // 2] for rows in (a, b)]
        assert median[1] < median[0]


def package(site, name, entries):
    """What makes a package an installed one, with vLLM's plugins: the environment of an engine that loads them."""
    info = site / f"{name}-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[vllm.general_plugins]\n" + entries)
    return {"PYTHONPATH": os.pathsep.join([os.environ["PYTHONPATH"], str(HERE), str(site)])}


def bare(f):
    """Without slabkv's plugin."""
    return package(f / "bare", "lmcache_cpu", "lmcache_cpu = lmcache_cpu:register\n")


def installed(f):
    """slabkv with the entry points of its pyproject.toml."""
    package(f / "site", "lmcache_cpu", "lmcache_cpu = lmcache_cpu:register\n")
    project = (HERE.parents[1] / "client/python/pyproject.toml").read_text()
    entries = project.split('[project.entry-points."vllm.general_plugins"]\n', 1)[1].split("\n\n", 1)[0]
    return package(f / "site", "slabkv", entries.replace('"', "") + "\n")


def lora(path, seed):
    """A LoRA adapter of llama()'s attention, with random weights."""
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(seed)
    path.mkdir()
    tensors = {}
    for layer in range(LAYERS):
        for part, out in (("q_proj", 512), ("v_proj", 256)):
            name = f"base_model.model.model.layers.{layer}.self_attn.{part}"
            tensors[f"{name}.lora_A.weight"] = torch.randn(8, 512) * 0.1
            tensors[f"{name}.lora_B.weight"] = torch.randn(out, 8) * 0.1
    save_file(tensors, path / "adapter_model.safetensors")
    (path / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 8, "lora_alpha": 16,
                                                          "target_modules": ["q_proj", "v_proj"], "bias": "none"}))
    return str(path)


@contextlib.contextmanager
def lmcache_server(url):
    """LMCache's own server over L2Adapter; its port and log."""
    with socket.socket() as s, tempfile.TemporaryFile("w+") as log:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
        s.close()
        adapter = {"type": "plugin", "module_path": "slabkv.lmcache", "class_name": "L2Adapter",
                   "adapter_params": {"url": url, "kv_dtype": "float32", "namespace_tag": "tiny"}}
        command = [os.path.join(os.environ["VENV"], "bin", "lmcache"), "server", "--l1-size-gb", "1", "--eviction-policy", "LRU",
                   "--chunk-size", "256", "--port", str(port), "--supported-transfer-mode", "auto", "--l2-adapter", json.dumps(adapter)]
        process = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=die_with_parent,
                                   env={**os.environ, "LMCACHE_LOG_LEVEL": "INFO"})

        def text():
            log.seek(0)
            return log.read()

        def up():
            assert process.poll() is None, text()[-4000:]
            with socket.socket() as c:
                return c.connect_ex(("127.0.0.1", port)) == 0

        try:
            assert wait_for(up, 300), text()[-4000:]
            yield port, text
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def lmcache_mp_kv(port):
    return {"kv_connector": "LMCacheMPConnector", "kv_role": "kv_both",
            "kv_connector_module_path": "lmcache.integration.vllm.lmcache_mp_connector",
            "kv_connector_extra_config": {"lmcache.mp.host": "tcp://localhost", "lmcache.mp.port": port}}


@contextlib.contextmanager
def lmcache_with_server(f, url):
    """KV configuration and environment of engines with a server of LMCache's, and its log."""
    with lmcache_server(url) as (port, text):
        yield lmcache_mp_kv(port), {}, text


@contextlib.contextmanager
def lmcache_within(f, url):
    """The same with LMCache inside the engine."""
    options = {"module_path": "slabkv.lmcache", "class_name": "RemoteAdapter", "url": url, "namespace_tag": "tiny"}
    config = {"chunk_size": 256, "local_cpu": False, "max_local_cpu_size": 0.5, "remote_storage_plugins": ["slabkv"],
              "remote_serde": "naive", "pre_caching_hash_algorithm": "sha256_cbor",
              "extra_config": {f"remote_storage_plugin.slabkv.{k}": v for k, v in options.items()}}
    (f / "lmcache.yaml").write_text(json.dumps(config))  # which is YAML, too
    yield {"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}, {"LMCACHE_CONFIG_FILE": str(f / "lmcache.yaml")}, str


def lmcache_foreign(way):
    """Engines with LMCache, each fresh, over one manager: a prompt without an adapter, under two adapters of one name, two salts, and both,
    finds nothing of another and all of its own. Without slabkv's plugin nothing is cached, and a log says so."""
    with folder() as f, Daemon(capacity="2G", unit="16M") as d:
        model, plugin = llama(f / "model"), installed(f)
        a, b = lora(f / "a", 1), lora(f / "b", 2)
        kinds = [{}, {"lora": a}, {"lora": b}, {"salt": "alice"}, {"salt": "bob"}, {"lora": a, "salt": "alice"}]

        def ask(kinds, env):
            found = []
            with way(f, d.url) as (kv, more, text):
                with Engine(model, kv, {"enable_lora": True, "max_loras": 2, "max_lora_rank": 8}, {**env, **more}) as e:
                    e.run({"seed": 3, "n": 64, "out": 2})
                    for kind in kinds:
                        found += e.run({"seed": 7, "out": 8, **kind})
                        e.reset()
                    time.sleep(3)  # the store goes on
                    e.run({"seed": 4, "n": 64, "out": 2})
                    return found, e.said("without_plugin") or "without_plugin" in text()

        _found, told = ask(kinds[:2], bare(f))
        with slabkv.Client(d.url) as client:
            assert told and client.call("GET", "/v1/instances")["instances"] == []
        cold, told = ask(kinds, plugin)
        assert not told
        warm, _told = ask(kinds, plugin)
        right = [same(c, w) for c, w in zip(cold, warm)]
        print(f"   no plugin: nothing stored; with it: cached {[r['cached'] for r in cold]}, in a fresh engine {[r['cached'] for r in warm]}; "
              f"{right} of 8 tokens")
        assert len({tuple(r["tokens"]) for r in cold[:3]}) == 3, "the adapters change nothing: this shows nothing"
        assert not any(r["cached"] for r in cold) and all(r["cached"] == PROMPT // 256 * 256 for r in warm) and right == [8] * len(kinds)


def lmcache_foreign_within():
    lmcache_foreign(lmcache_within)


def lmcache_foreign_server():
    lmcache_foreign(lmcache_with_server)


def lmcache_mp():
    """vLLM with LMCache's server, both restarted, with the model under another path: hits from L2, tokens equal. With rope parameters overridden
    nothing is found."""
    with folder() as f, Daemon(capacity="1G", unit="16M") as d:
        model, env = llama(f / "model"), installed(f)
        copy = str(shutil.copytree(model, f / "on/another/host/model"))
        found = []
        for model, args in ((model, {}), (copy, {}), (copy, {"hf_overrides": ROPE})):
            with lmcache_server(d.url) as (port, text):
                kv = lmcache_mp_kv(port)
                with Engine(model, kv, args, env) as e:
                    e.run({"seed": 3, "n": 64, "out": 2})
                    found.append(e.run(7)[0])
                    time.sleep(3)  # the server stores
                said = [line for line in text().splitlines() if "L2" in line and "keys" in line]
        cold, warm, other = found
        for line in said[-2:]:
            print("   " + line.split("INFO")[-1].strip()[:160])
        print(f"   server and engine restarted: cached {warm['cached']}, {same(cold, warm)} of 32 tokens, first token {cold['ttft']:.2f} s, "
              f"{warm['ttft']:.2f} s; overridden: cached {other['cached']}")
        assert cold["cached"] == 0 and warm["cached"] == PROMPT // 256 * 256 and same(cold, warm) == 32
        assert other["cached"] == 0 and other["tokens"] != cold["tokens"]


CASES = (cold_and_warm, failures, slowed, preempted, tp2, mla, multi_connector, two_engines_small_store, other_weights, resolved, lmcache_mp,
         lmcache_foreign_within, lmcache_foreign_server, ttft)

if __name__ == "__main__":  # without the cases of the tier alone, which import vLLM here, too
    sys.exit(run_cases(*CASES))
