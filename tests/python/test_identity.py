"""Identity of blocks: fingerprints of weights, each tensor of a model changed alone; and namespaces from what engines have resolved."""

import json
import os
import pathlib
import random
import shutil
import struct
import tempfile
import types
import unittest
import unittest.mock
import zipfile

import slabkv
from slabkv import _engines, _weights
from slabkv._connector import Settings
from slabkv._lmcache_names import AdapterNames, Names
from slabkv._weights import fingerprint, hub_commit
from slabkv.namespace import Namespace

COMMIT, LATER = "0e9e39f249a16976918f6564b8830bc894c89659", 40 * "a"


def safetensors(path, tensors, order=sorted, more=None):
    """Tensors by name, as (type, shape, bytes); their places in the file by name, too."""
    header, at = dict(more or {}), 0
    for name in order(tensors):
        dtype, shape, data = tensors[name]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(tensors[n][2] for n in order(tensors)))
    return {n: (8 + len(text) + h["data_offsets"][0], 8 + len(text) + h["data_offsets"][1]) for n, h in header.items() if n in tensors}


def tensors(seed=0, layers=3):
    """Makes the tensors of a small model: from a scale of 4 bytes to an embedding of 1 MiB."""
    source, found = random.Random(seed), {"model.embed_tokens.weight": ("F32", [512, 512], 1 << 20), "model.norm.weight": ("BF16", [512], 1024)}
    for i in range(layers):
        layer = f"model.layers.{i}."
        for name, shape in (("q_proj", [512, 512]), ("k_proj", [256, 512]), ("v_proj", [256, 512]), ("o_proj", [512, 512])):
            found[f"{layer}self_attn.{name}.weight"] = "BF16", shape, 2 * shape[0] * shape[1]
        for name, n in (("self_attn.q_proj.bias", 512), ("self_attn.k_scale", 1), ("self_attn.v_scale", 1), ("input_layernorm.weight", 512)):
            found[layer + name] = "F32", [n], 4 * n
    return {name: (dtype, shape, source.randbytes(size)) for name, (dtype, shape, size) in found.items()}


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, value in (("XDG_CACHE_HOME", "cache"), ("HF_HOME", "hf")):
            patch = unittest.mock.patch.dict(os.environ, {name: str(self.root / value)})
            patch.start()
            self.addCleanup(patch.stop)
        for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "VLLM_USE_MODELSCOPE", "SGLANG_USE_MODELSCOPE"):
            os.environ.pop(name, None)

    def model(self, name="model", found=None, config='{"model_type": "llama"}'):
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(config)
        return folder, safetensors(folder / "model.safetensors", found or tensors())

    def unnoticed(self, model, path, places, before=None):
        """Changes each tensor of a file alone (its first byte, one in the middle, its last); returns the changes that kept the fingerprint."""
        before = before or fingerprint(str(model))
        found = []
        with open(path, "r+b") as f:
            for name, (begin, end) in places.items():
                for at in {begin, (begin + end) // 2, end - 1}:
                    f.seek(at)
                    old = f.read(1)
                    f.seek(at)
                    f.write(bytes([old[0] ^ 1]))
                    f.flush()
                    if fingerprint(str(model)) == before:
                        found.append((name, at))
                    f.seek(at)
                    f.write(old)
                f.flush()
        self.assertEqual(fingerprint(str(model)), before)
        return found


class Weights(Folder):
    def test_each_tensor_changed_alone_is_noticed(self):
        folder, places = self.model()
        self.assertGreater(len(places), 25)
        self.assertEqual(self.unnoticed(folder, folder / "model.safetensors", places), [])

    def test_each_byte_of_small_tensors_and_each_stretch_of_large_ones(self):
        folder, places = self.model(found={"norm": ("F32", [8], bytes(32)), "big": ("U8", [20 << 20], bytes(20 << 20))})
        before = fingerprint(str(folder))
        begin, end = places["big"]
        with open(folder / "model.safetensors", "r+b") as f:
            for at in random.Random(1).sample(range(begin, end - (1 << 20) - 4096), 8):  # more than from one sample to the next
                f.seek(at)
                f.write(b"\1" * ((1 << 20) + 4096))
                f.flush()
                self.assertNotEqual(fingerprint(str(folder)), before, at)
                f.seek(at)
                f.write(bytes((1 << 20) + 4096))
                f.flush()
        self.assertEqual(self.unnoticed(folder, folder / "model.safetensors", {i: (i, i + 1) for i in range(*places["norm"])}), [])

    def test_full_reads_what_lies_between_samples(self):
        folder, places = self.model()
        sampled, full = fingerprint(str(folder)), fingerprint(str(folder), full=True)
        self.assertNotEqual(sampled, full)
        with open(folder / "model.safetensors", "r+b") as f:
            f.seek(places["model.embed_tokens.weight"][0] + 3 * 4096)
            f.write(b"edit")
        self.assertEqual(fingerprint(str(folder)), sampled)  # as the documents say
        self.assertNotEqual(fingerprint(str(folder), full=True), full)
        self.assertIn("sampled or full", str(self.refused(lambda: Settings("it", {"fingerprint": "some"}))))

    def refused(self, what):
        with self.assertRaises(slabkv.InvalidError) as e:
            what()
        return e.exception

    def test_names_types_and_shapes(self):
        found = tensors()
        before = fingerprint(str(self.model(found=found)[0]))
        dtype, shape, data = found["model.norm.weight"]
        for i, change in enumerate(({"other.norm.weight": (dtype, shape, data)}, {"model.norm.weight": ("F16", shape, data)},
                                    {"model.norm.weight": (dtype, [2, 256], data)})):
            other = {**{n: t for n, t in found.items() if n != "model.norm.weight"}, **change}
            self.assertNotEqual(fingerprint(str(self.model(str(i), other)[0])), before)

    def test_a_model_in_several_files(self):
        folder, found = self.root / "shards", tensors()
        folder.mkdir()
        names = sorted(found)
        for i in (1, 2):
            some = names[i - 1 :: 2]
            self.assertTrue(safetensors(folder / f"model-{i}-of-2.safetensors", {n: found[n] for n in some}))
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {n: "model-1-of-2.safetensors" for n in names[::2]}}))
        before = fingerprint(str(folder))
        for i in (1, 2):
            path = folder / f"model-{i}-of-2.safetensors"
            places = safetensors(path, {n: found[n] for n in names[i - 1 :: 2]})
            self.assertEqual(self.unnoticed(folder, path, places, before), [])
        (folder / "model.safetensors.index.json").write_text("{}")
        self.assertNotEqual(fingerprint(str(folder)), before)

    def test_an_adapter_and_files_without_a_header_of_tensors(self):
        adapter = self.root / "adapter"
        adapter.mkdir()
        (adapter / "adapter_config.json").write_text("{}")
        places = safetensors(adapter / "adapter_model.safetensors", {"a.lora_A": ("F32", [2, 2], bytes(16)), "a.lora_B": ("F32", [1], bytes(4))})
        self.assertEqual(self.unnoticed(adapter, adapter / "adapter_model.safetensors", places), [])
        old = self.root / "bin"
        old.mkdir()
        with zipfile.ZipFile(old / "pytorch_model.bin", "w") as z:  # as torch.save makes it
            for i in range(8):
                z.writestr(f"archive/data/{i}", random.Random(i).randbytes(100000 if i else 4))
        spans = {str(i): (i * 90000, i * 90000 + 7) for i in range(1, 7)}
        self.assertEqual(self.unnoticed(old, old / "pytorch_model.bin", spans), [])
        gguf = self.root / "model.gguf"
        gguf.write_bytes(b"GGUF" + random.Random(1).randbytes(3 << 20))
        self.assertEqual(self.unnoticed(gguf, gguf, {str(i): (i * 500000, i * 500000 + 3) for i in range(1, 6)}), [])
        broken = self.root / "broken"
        broken.mkdir()
        (broken / "model.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:" + bytes(64))
        self.assertEqual(self.unnoticed(broken, broken / "model.safetensors", {"oid": (60, 64)}), [])

    def test_what_shapes_the_model_beside_its_weights(self):
        folder, _ = self.model()
        seen = {fingerprint(str(folder))}
        for name in ("config.json", "quantize_config.json", "hf_quant_config.json", "modeling_own.py", "kv_cache_scales.json"):
            (folder / name).write_text("{} # " + name)
            seen.add(fingerprint(str(folder)))
        self.assertEqual(len(seen), 6)
        for name in ("tokenizer_config.json", "README.md", "generation_config.json", "optimizer.pt", "training_args.bin"):
            (folder / name).write_text("of no effect")
            self.assertIn(fingerprint(str(folder)), seen)

    def test_the_same_model_elsewhere_is_the_same(self):
        found = tensors()
        a, _ = self.model("a", found)
        b, _ = self.model("far/away/b", found)
        safetensors(b / "model.safetensors", found, lambda names: sorted(names, reverse=True))  # tensors in another order
        link = self.root / "link"
        link.symlink_to(a)
        self.assertEqual({fingerprint(str(p)) for p in (a, b, link)}, {fingerprint(str(a))})

    def test_files_are_read_once(self):
        folder, places = self.model()
        path, later = folder / "model.safetensors", os.stat(folder / "model.safetensors").st_ctime + 60
        with unittest.mock.patch("slabkv._weights.time.time", return_value=later):
            first, full = fingerprint(str(folder)), fingerprint(str(folder), full=True)
            with unittest.mock.patch("slabkv._weights._digest", side_effect=AssertionError("read again")):
                self.assertEqual((fingerprint(str(folder)), fingerprint(str(folder), full=True)), (first, full))
            times = os.stat(path)
            with open(path, "r+b") as f:
                f.seek(places["model.norm.weight"][0])
                f.write(b"edit")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # an editor that hides it
            self.assertNotEqual(fingerprint(str(folder)), first)
            for entry in pathlib.Path(_weights.cache_folder()).iterdir():
                entry.write_text("torn")
            self.assertNotIn("torn", fingerprint(str(folder)))
        with unittest.mock.patch("slabkv._weights.cache_folder", return_value="/proc/nowhere"):
            fingerprint(str(folder))  # a cache that cannot be written is none

    def test_a_file_that_has_just_changed_is_not_remembered(self):
        folder, _ = self.model()
        with unittest.mock.patch("slabkv._weights.time.time", return_value=os.stat(folder / "model.safetensors").st_ctime + 1):
            fingerprint(str(folder))
        self.assertFalse(pathlib.Path(_weights.cache_folder()).exists())

    def hub(self, commit=COMMIT, name="org/model", ref="main"):
        """Makes a model as huggingface_hub keeps it: links to blobs."""
        model = self.root / "hf/hub" / ("models--" + name.replace("/", "--"))
        snapshot = model / "snapshots" / commit
        for folder in (snapshot, model / "blobs", model / "refs"):
            folder.mkdir(parents=True, exist_ok=True)
        (model / "refs" / ref).write_text(commit)
        places = safetensors(model / "blobs" / commit, tensors())
        (snapshot / "model.safetensors").symlink_to(f"../../blobs/{commit}")
        return snapshot, model / "blobs" / commit, places

    def test_a_name_of_the_hub_is_its_commit(self):
        with self.assertRaises(slabkv.InvalidError):
            fingerprint("org/model")
        self.hub()
        self.assertEqual(fingerprint("org/model"), COMMIT)
        self.hub(LATER)  # the branch moves
        self.assertEqual(fingerprint("org/model"), LATER)
        self.assertEqual(fingerprint("org/model", COMMIT), COMMIT)
        shutil.move(self.root / "hf/hub", self.root / "elsewhere")
        self.assertEqual(fingerprint("org/model", hub_cache=str(self.root / "elsewhere")), LATER)
        for model, revision in (("org/model", None), ("org/other", None), ("org/model", "v2"), ("/nowhere", None), ("../org/model", None)):
            with self.assertRaises(slabkv.InvalidError) as e:
                fingerprint(model, revision)
            self.assertIn("namespace_tag", str(e.exception))
        self.hub()
        self.assertIsNone(hub_commit("org/model", "../refs/main"))
        with unittest.mock.patch.dict(os.environ, {"VLLM_USE_MODELSCOPE": "1"}):
            self.assertIsNone(hub_commit("org/model"))

    def test_each_tensor_of_a_snapshot_of_the_hub(self):
        snapshot, blob, places = self.hub()
        self.assertEqual(self.unnoticed(snapshot, blob, places), [])


class Hf:
    """A configuration as transformers has it."""

    def __init__(self, **more):
        self.own = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
                    "hidden_size": 512, "sliding_window": None, "_name_or_path": "", "transformers_version": "5.19.0", **more}
        self.architectures = self.own["architectures"]

    def to_dict(self):
        return dict(self.own)


def config(path, **changes):
    """Makes as much of vLLM's configuration as shapes bytes, and some that does not; changes as {"part.setting": value}."""
    hf = changes.pop("hf", {})
    parts = {
        "model_config": dict(model=str(path), model_weights="", revision=None, hf_config=Hf(_name_or_path=str(path), **hf), dtype="torch.bfloat16",
                             quantization=None, model_impl="auto", max_model_len=4096, seed=0, served_model_name="m"),
        "cache_config": dict(cache_dtype="auto", gpu_memory_utilization=0.9),
        "load_config": dict(load_format="auto", download_dir=None, model_loader_extra_config={}, ignore_patterns=[]),
        "attention_config": dict(backend=None),
        "parallel_config": dict(decode_context_parallel_size=1, data_parallel_master_port=1234, master_addr="127.0.0.1"),
    }
    whole = {"lora_config": None, "speculative_config": None, "additional_config": {}, "instance_id": "x"}
    for name, value in changes.items():
        part, _, setting = name.partition(".")
        if setting:
            parts[part][setting] = value
        else:
            whole[part] = value
    parts["model_config"].setdefault("hf_text_config", parts["model_config"]["hf_config"])
    return types.SimpleNamespace(**{p: types.SimpleNamespace(**v) for p, v in parts.items()}, **whole)


class Engines(Folder):
    def name(self, found, **options):
        identity = _engines.vllm_identity(Settings("it", options), found)
        label = _engines.label(Settings("it", options), found.model_config.model, found.model_config)
        return Namespace(label, dtype="bfloat16", layout="l", tokens=16, **identity).instance(1)

    def twice(self, changes, names):
        return [c for c, n in zip([{}, *changes], names) if names.count(n) > 1]

    def test_whatever_vllm_resolves_is_another_name(self):
        folder, _ = self.model()
        base = self.name(config(folder))
        draft, _ = self.model("draft", tensors(1))

        def drafts(path):
            return types.SimpleNamespace(method="eagle", target_model_config=None, draft_model_config=config(path).model_config)

        changes = [
            {"hf": {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}}, {"hf": {"sliding_window": 128}},
            {"model_config.hf_text_config": Hf(hidden_size=1)}, {"model_config.quantization": "fp8"},
            {"model_config.quantization": "fp8", "model_config.quantization_config": {"ignore": ["lm_head"]}},
            {"model_config.dtype": "torch.float16"}, {"model_config.disable_sliding_window": True}, {"model_config.model_impl": "transformers"},
            {"load_config.load_format": "pt"}, {"load_config.load_format": "dummy"}, {"cache_config.cache_dtype": "fp8_e5m2"},
            {"cache_config.mamba_ssm_cache_dtype": "float32"}, {"parallel_config.decode_context_parallel_size": 2},
            {"model_config.multimodal_config": types.SimpleNamespace(mm_processor_kwargs={"size": 2})}, {"additional_config": {"x": 1}},
            {"speculative_config": drafts(draft)}, {"speculative_config": drafts(folder)}, {"attention_config.backend": "FLASHINFER"},
        ]
        names = [base, *(self.name(config(folder, **c)) for c in changes)]
        self.assertEqual(len(set(names)), 1 + len(changes), self.twice(changes, names))
        self.assertNotEqual(self.name(config(folder, **{"load_config.load_format": "dummy"})), base)

    def test_what_does_not_shape_bytes_is_not_part_of_the_name(self):
        folder, _ = self.model()
        base = self.name(config(folder))
        other, _ = self.model("on/another/host", config='{"model_type": "llama"}')
        same = [
            {"load_config.load_format": "safetensors"},
            {"load_config.load_format": "runai_streamer", "load_config.model_loader_extra_config": {"n": 8}},
            {"model_config.seed": 7}, {"model_config.max_model_len": 8192}, {"model_config.served_model_name": "other"}, {"instance_id": "y"},
            {"parallel_config.data_parallel_master_port": 9}, {"parallel_config.master_addr": "10.0.0.1"},
            {"cache_config.gpu_memory_utilization": 0.5},
            {"cache_config.cache_dtype": "bfloat16"}, {"lora_config": object()}, {"hf": {"transformers_version": "5.20.0"}},
            {"hf": {"rope_parameters": {"rope_theta": 1e4, "rope_type": "default"}}},
            {"speculative_config": types.SimpleNamespace(method="ngram", draft_model_config=None)},
        ]
        for change in same:
            self.assertEqual(self.name(config(folder, **change)), base, change)
        self.assertEqual(self.name(config(other)), base)
        link = self.root / "link"
        link.symlink_to(folder)
        self.assertEqual(self.name(config(link)), base)

    def test_the_longest_prompt_where_positions_depend_on_it(self):
        folder, _ = self.model()
        rope = {"rope_parameters": {"rope_type": "longrope"}}
        found = {self.name(config(folder, hf=rope, **{"model_config.max_model_len": n})) for n in (4096, 8192)}
        self.assertEqual(len(found), 2)

    def test_a_tag_stands_for_the_weights_and_not_for_overrides(self):
        tags = {self.name(config(path, hf={"hidden_size": size}), namespace_tag=tag)
                for path in ("/a/llama", "/b/llama") for size in (512, 1024) for tag in "xy"}
        self.assertEqual(len(tags), 4)

    def test_what_is_not_told_is_refused_in_a_sentence(self):
        folder, _ = self.model()
        for found, said in ((config(folder, **{"load_config.load_format": "tensorizer"}), "namespace_tag"),
                            (config(folder, **{"cache_config.calculate_kv_scales": True}), "calculate_kv_scales"),
                            (config("s3://bucket/model"), "namespace_tag"),
                            (config("org/model"), "namespace_tag")):
            with self.assertRaises(slabkv.InvalidError) as e:
                self.name(found)
            self.assertIn(said, str(e.exception))
        for identity, nothing in ((_engines.vllm_identity, None), (_engines.sglang_identity, None)):
            with self.assertRaises(slabkv.InvalidError) as e:
                identity(Settings("it", {"model": str(folder)}), nothing)
            self.assertIn("cannot be seen", str(e.exception))
            self.assertEqual(identity(Settings("it", {"namespace_tag": "t"}), nothing), {"weights": "tag:t"})

    def test_a_branch_that_moves_while_the_engine_starts(self):
        model = self.root / "hf/hub/models--org--model"
        for commit in (COMMIT, LATER):
            (model / "snapshots" / commit).mkdir(parents=True)
        (model / "refs").mkdir()
        (model / "refs/main").write_text(COMMIT)
        found = config("org/model")
        found.model_config.hf_config._commit_hash = COMMIT  # the engine has read this one
        self.name(found)
        (model / "refs/main").write_text(LATER)
        with self.assertRaises(slabkv.InvalidError) as e:
            self.name(found)
        self.assertIn("moved", str(e.exception))

    def sglang(self, path, hf=None, model=None, **args):
        given = dict(model_path=str(path), load_format="auto", kv_cache_dtype="auto", port=1, host="a", lora_paths=None,
                     quantization_param_path=None, speculative_algorithm=None)
        own = dict(hf_config=Hf(**(hf or {})), model_path=str(path), revision=None, dtype="torch.bfloat16", context_len=4096, quantization=None)
        return types.SimpleNamespace(**{**own, **(model or {})}), types.SimpleNamespace(**{**given, **args})

    def test_whatever_sglang_resolves_is_another_name(self):
        folder, _ = self.model()
        elsewhere, _ = self.model("elsewhere")
        draft, _ = self.model("draft", tensors(1))
        adapter, _ = self.model("adapter", tensors(2))
        scales = self.root / "scales.json"
        scales.write_text("{}")

        def name(path, **more):
            found = self.sglang(path, **more)
            s = Settings("it", {})
            identity = _engines.sglang_identity(s, found)
            return Namespace(_engines.label(s, str(path), found[0]), dtype="bfloat16", layout="l", tokens=16, **identity).instance(1)

        base = name(folder)
        changes = [dict(hf={"rope_parameters": {"rope_theta": 1}}), dict(model={"quantization": "fp8"}), dict(load_format="dummy"),
                   dict(load_format="pt"), dict(kv_cache_dtype="fp8_e5m2"), dict(quantization_param_path=str(scales)), dict(lora_paths={"a": str(adapter)}),
                   dict(speculative_algorithm="EAGLE", speculative_draft_model_path=str(draft)), dict(mm_process_config={"image": {}})]
        names = [base, *(name(folder, **c) for c in changes)]
        self.assertEqual(len(set(names)), 1 + len(changes), self.twice(changes, names))
        for same in (dict(port=2), dict(host="b"), dict(hf={"context_len": 8192}, model={"context_len": 8192}), dict(load_format="safetensors"), dict(speculative_algorithm="NGRAM")):
            self.assertEqual(name(folder, **same), base, same)
        self.assertEqual(name(elsewhere), base)

    def test_lmcaches_keys_name_what_the_engine_has_resolved(self):
        folder, places = self.model()
        other, _ = self.model("on/another/host")
        request = types.SimpleNamespace(request_id="r", cache_salt=None, lora_request=None, prompt_embeds=None)

        def name(path, **changes):
            return Names(config(path, **changes)).of(request)

        base = name(folder)
        self.assertEqual(base, name(other))
        found = [name(folder, hf={"hidden_size": 1}), name(folder, **{"model_config.quantization": "fp8"}),
                 name(folder, **{"load_config.load_format": "dummy"}), name("org/model"), base]
        self.assertEqual(len(set(found)), 5)
        with open(folder / "model.safetensors", "r+b") as f:
            f.seek(places["model.layers.0.self_attn.k_scale"][0])
            f.write(b"edit")
        self.assertNotEqual(name(folder), base)

    def test_vllms_hashes_name_adapters_by_their_weights(self):
        def request(path):
            return types.SimpleNamespace(lora_request=types.SimpleNamespace(lora_name="sql", lora_int_id=1, lora_path=str(path)))

        a, _ = self.model("a", tensors(1))
        same, _ = self.model("on/another/host", tensors(1))
        b, _ = self.model("b", tensors(2))
        hashes = [AdapterNames()(request(p)) for p in (a, same, b)]
        self.assertEqual(hashes[0], hashes[1])
        self.assertNotEqual(hashes[0], hashes[2])
        self.assertEqual(AdapterNames()(types.SimpleNamespace(lora_request=None)), [])
        engine, asked = AdapterNames(), request(a)
        self.assertEqual(engine(asked), hashes[0])
        safetensors(a / "model.safetensors", {"w": ("U8", [1], b"1")})  # while the engine runs
        with self.assertLogs("slabkv", "WARNING"):
            self.assertNotIn(engine(request(a)), hashes)
        self.assertEqual(engine(asked), hashes[0])


if __name__ == "__main__":
    unittest.main()
