"""Resolved configurations of engines as parts of a Namespace: all settings that shape the bytes of a KV cache, after overrides.

The tables name these settings among the hundreds that shape nothing (ports, limits of memory, logging ...). A missing setting lets engines
share blocks that differ; one too many makes them compute again. vLLM's own compute_hash has the model's path in it and leaves images out.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any, Optional

from ._connector import Settings, version_of
from .errors import InvalidError
from .namespace import canonical

# Settings of vLLM, by part of its configuration. The model's own one is added whole.
_VLLM: dict[str, tuple[str, ...]] = {
    "model_config": (
        "dtype", "quantization", "quantization_config", "model_impl", "model_class_overrides", "runner_type", "convert_type",
        "disable_sliding_window", "code_revision", "word_embeddings_untied_by_checkpoint"),
    "cache_config": (
        "kv_cache_dtype_skip_layers", "mamba_cache_dtype", "mamba_ssm_cache_dtype", "mamba_cache_mode", "kv_sharing_fast_prefill",
        "use_replayssm", "use_kda_recoverssm"),
    "attention_config": ("backend", "backend_per_kind", "indexer_kv_dtype"),
    "load_config": ("ignore_patterns",),
}
_VLLM_IMAGES = ("language_model_only", "mm_processor_kwargs", "media_io_kwargs", "mm_encoder_attn_dtype", "mm_encoder_only",
                "mm_device_do_normalize", "video_pruning_rate", "video_pruning_method", "allow_missing_mm_embeddings")
_VLLM_WHOLE = ("additional_config", "engram_config", "diffusion_config")
_VLLM_SHARDS = ("prefill_context_parallel_size", "decode_context_parallel_size", "cp_kv_cache_interleave_size", "dcp_kv_cache_interleave_size")
# Server arguments of SGLang.
_SGLANG = (
    "model_impl", "model_loader_extra_config", "modelopt_quant", "quantize_and_serve", "rl_quant_profile", "rl_on_policy_target",
    "kv_cache_dtype", "enable_multimodal", "language_only", "language_model_only", "encoder_only", "mm_process_config",
    "image_processor_backend", "disable_fast_image_processor", "mamba_ssm_dtype", "enable_int8_mamba_checkpoint",
    "enable_mamba_cache_stochastic_rounding", "enable_deepseek_v4_fp4_indexer", "qsa_indexer_dtype",
    "enable_page_major_kv_layout", "enable_kv_cache_sharding", "enable_dsa_cache_layer_split", "c128_page_size",
    "dllm_algorithm", "custom_weight_loader", "forward_hooks", "kt_method", "enable_w4a4_mxfp4_megamoe", "flashinfer_mxfp4_moe_precision")
_SGLANG_DRAFT = ("speculative_algorithm", "speculative_draft_kv_cache_dtype", "speculative_draft_window_size", "speculative_draft_sink_size",
                 "speculative_draft_model_quantization", "speculative_draft_load_format", "enable_multi_layer_eagle")
# Ways of loading the files of the model's directory: some give the same weights, whichever is chosen.
_ONE_WAY = ("auto", "hf", "safetensors", "fastsafetensors", "instanttensor", "runai_streamer")
_OTHER_WAYS = ("pt", "npcache", "mistral", "gguf", "bitsandbytes", "sharded_state", "runai_streamer_sharded", "layered", "presharded")
_PROCESS = os.urandom(16).hex()


def _pick(config: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Returns the settings that are set: one that a new version adds changes nothing until it is used."""
    found = {n: canonical(getattr(config, n, None)) for n in names}
    return {n: v for n, v in found.items() if v not in (None, False, "", [], {})}


def _in_frames(wanted: Any) -> Any:
    """Returns the first value of wanted(frame) that is not None, from the caller on outwards. Storage back ends are not given the engine's
    configuration, but their makers have it."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        found = wanted(frame)
        if found is not None:
            return found
        frame = frame.f_back
    return None


def vllm_config() -> Any:
    """Returns vLLM's own configuration, or None."""
    def wanted(frame: Any) -> Any:
        own = getattr(frame.f_locals.get("self"), "__dict__", {})
        for config in (frame.f_locals.get("vllm_config"), own.get("vllm_config"), own.get("_vllm_config")):
            if hasattr(config, "parallel_config"):
                return config
        return None

    return _in_frames(wanted)


def sglang_config() -> Optional[tuple[Any, Any]]:
    """Returns the model configuration and server arguments of SGLang's scheduler, or None."""
    def wanted(frame: Any) -> Any:
        own = getattr(frame.f_locals.get("self"), "__dict__", {})
        model, args = own.get("model_config"), own.get("server_args")
        return (model, args) if hasattr(model, "hf_config") and hasattr(args, "load_format") else None

    return _in_frames(wanted)


def _load_format(value: Any) -> str:
    name = str(getattr(value, "value", value) or "auto")
    return "auto" if name in _ONE_WAY else name


def _weights(s: Settings, model: Any, revision: Any, load_format: str, hub_cache: Any, commit: Any = None) -> str:
    """Returns the namespace_tag, else the fingerprint of the files that the engine has loaded. Dummy weights are this process's own."""
    if s.namespace_tag:
        return s.weights("")
    if load_format == "dummy":
        return f"dummy:{_PROCESS}"
    if load_format != "auto" and load_format not in _OTHER_WAYS:
        raise InvalidError(f"{s.who}: with load_format '{load_format}' the weights may come from elsewhere than the model's files: give a "
                           "namespace_tag that changes with the weights", field="namespace_tag")
    found = s.weights(str(model), revision, hub_cache)
    if isinstance(commit, str) and len(found) == len(commit) and found != commit:
        raise InvalidError(f"{s.who}: '{model}' moved to another commit while the engine started: start it again, or give the revision (a commit)",
                           field="revision")
    return found


def _unseen(s: Settings) -> dict[str, Any]:
    if not s.namespace_tag:
        raise InvalidError(f"{s.who}: the engine's configuration cannot be seen from here, so overrides and quantization are unknown: give a "
                           "namespace_tag that changes with them and with the weights", field="namespace_tag")
    return {}


def _model_parts(config: Any) -> dict[str, Any]:
    """Returns the model's configuration as overrides have left it."""
    hf, text = canonical(getattr(config, "hf_config", None)), canonical(getattr(config, "hf_text_config", None))
    for found in (hf, text):
        if isinstance(found, dict):
            found.pop("context_len", None)  # SGLang's own, the longest prompt allowed
    parts = {"hf": hf, **({} if text == hf else {"hf_text": text})}
    if any(word in json.dumps(parts) for word in ("longrope", "llama4")):  # positions depend on the longest prompt allowed
        parts["longest"] = getattr(config, "max_model_len", getattr(config, "context_len", None))
    return parts


def label(s: Settings, model: str, config: Any = None) -> str:
    """Returns a name for people that is the same on all hosts, so no path, unless a namespace_tag says which model it is."""
    if s.namespace_tag or not os.path.exists(os.path.expanduser(model)):
        return model.rstrip("/").rsplit("/", 1)[-1]
    return str((getattr(getattr(config, "hf_config", None), "architectures", None) or ["model"])[0])


def vllm_parts(config: Any) -> dict[str, Any]:
    """Returns the settings that vLLM has resolved, without the weights."""
    model, cache = config.model_config, getattr(config, "cache_config", None)
    if getattr(cache, "calculate_kv_scales", False):
        raise InvalidError("calculate_kv_scales makes scales of each process's own: what it stores nobody else can use", field="calculate_kv_scales")
    parts: dict[str, Any] = {"vllm": version_of("vllm"), **_model_parts(model), **_pick(config, _VLLM_WHOLE)}
    for name, settings in _VLLM.items():
        parts[name] = _pick(getattr(config, name, None), settings)
    dtype = getattr(cache, "cache_dtype", "auto")
    parts["cache"] = canonical(getattr(model, "dtype", None) if dtype == "auto" else dtype)
    load = getattr(config, "load_config", None)
    parts["load"] = _load_format(getattr(load, "load_format", None))
    if parts["load"] != "auto":
        parts["load_more"] = canonical(getattr(load, "model_loader_extra_config", None))
    parts["images"] = _pick(getattr(model, "multimodal_config", None), _VLLM_IMAGES)
    p = config.parallel_config
    if any((getattr(p, n, 1) or 1) > 1 for n in _VLLM_SHARDS[:2]):
        parts["shards"] = _pick(p, _VLLM_SHARDS)
    return parts


def _vllm_weights(s: Settings, config: Any, model: Any, revision: Any) -> str:
    load = getattr(config, "load_config", None)
    return _weights(s, model, revision, _load_format(getattr(load, "load_format", None)), getattr(load, "download_dir", None),
                    None if s.model or s.revision else getattr(getattr(config.model_config, "hf_config", None), "_commit_hash", None))


def vllm_identity(s: Settings, config: Any) -> dict[str, Any]:
    """Returns `weights` and more parts of a Namespace for a vLLM with this configuration; None: the configuration cannot be seen."""
    if getattr(config, "model_config", None) is None:
        return {**_unseen(s), "weights": s.weights("")}
    m = config.model_config
    more = {"config": vllm_parts(config)}
    draft = getattr(config, "speculative_config", None)
    model = getattr(draft, "draft_model_config", None)
    if model is not None and model is not m and model is not getattr(draft, "target_model_config", None):
        more["speculative"] = {
            "method": canonical(getattr(draft, "method", None)), **_model_parts(model), **_pick(model, _VLLM["model_config"]),
            **_pick(draft, ("quantization", "kv_cache_dtype")),
            "weights": _vllm_weights(s, config, getattr(model, "model", ""), getattr(model, "revision", None))}
    where = getattr(m, "model_weights", "") or getattr(m, "model", "")
    weights = _vllm_weights(s, config, s.model or where, s.revision or getattr(m, "revision", None))
    return {"weights": weights, **more}


def _sglang_adapters(s: Settings, args: Any) -> dict[str, str]:
    """Returns the weights of adapters that SGLang has from the start, which its keys name by name and path. Later ones have an id that no other
    process has."""
    given = getattr(args, "lora_paths", None) or []
    pairs = given.items() if isinstance(given, Mapping) else [
        (getattr(a, "lora_name", None), getattr(a, "lora_path", None)) if hasattr(a, "lora_path") else
        (a.get("lora_name"), a.get("lora_path")) if isinstance(a, Mapping) else str(a).rpartition("=")[::2] for a in given]
    return {str(name): s.weights(str(path)) for name, path in pairs}


def sglang_identity(s: Settings, found: Optional[tuple[Any, Any]]) -> dict[str, Any]:
    """Returns `weights` and more parts of a Namespace for an SGLang with this configuration; None: the configuration cannot be seen."""
    if found is None:
        return {**_unseen(s), "weights": s.weights("")}
    model, args = found
    way, cache = _load_format(args.load_format), getattr(args, "download_dir", None)
    parts = {"sglang": version_of("sglang"), **_model_parts(model), **_pick(args, _SGLANG), "load": way,
             **_pick(model, ("dtype", "quantization", "is_multimodal")), "adapters": _sglang_adapters(s, args)}
    for name in ("quantization_param_path", "kt_weight_path", "uno_lora_path"):
        if getattr(args, name, None):
            parts[name] = s.weights(getattr(args, name))
    where = s.model or getattr(model, "model_path", "") or getattr(args, "model_path", "")
    own = None if s.model or s.revision else getattr(model.hf_config, "_commit_hash", None)
    more: dict[str, Any] = {"config": parts}
    if getattr(args, "speculative_algorithm", None) not in (None, "NGRAM"):
        path = getattr(args, "speculative_draft_model_path", None) or where
        draft = _load_format(getattr(args, "speculative_draft_load_format", None) or args.load_format)
        more["speculative"] = {**_pick(args, _SGLANG_DRAFT),
                               "weights": _weights(s, path, getattr(args, "speculative_draft_model_revision", None), draft, cache)}
    return {"weights": _weights(s, where, s.revision or getattr(model, "revision", None), way, cache, own), **more}


__all__ = ["label", "sglang_config", "sglang_identity", "vllm_config", "vllm_identity", "vllm_parts"]
