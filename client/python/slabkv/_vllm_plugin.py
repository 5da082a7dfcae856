"""vLLM calls this in each of its processes (entry point vllm.general_plugins): so that "type": "slabkv" is enough in its configuration."""

from __future__ import annotations


def register() -> None:
    """Names the tier. A vLLM without tiers is left alone."""
    try:
        from vllm.v1.kv_offload.tiering.factory import SecondaryTierFactory
    except ImportError:
        return
    try:
        SecondaryTierFactory.register_tier("slabkv", "slabkv.vllm", "SlabkvTier")
    except ValueError:
        pass  # this process has it
