"""vLLM calls this in each of its processes (entry point vllm.general_plugins): "type": "slabkv" is enough in its configuration, and
LMCache's keys name LoRA adapters and salts."""

from __future__ import annotations

from . import _lmcache_names


def register() -> None:
    """Names the tier and guards LMCache's connectors. A vLLM without tiers or connectors is left alone."""
    try:
        from vllm.v1.kv_offload.tiering.factory import SecondaryTierFactory

        SecondaryTierFactory.register_tier("slabkv", "slabkv.vllm", "SlabkvTier")
    except (ImportError, ValueError):
        pass  # there are none, or this process has it
    try:
        _lmcache_names.install()
    except ImportError:
        pass
