"""Namespace: the name of an instance that keeps foreign bytes out.

Hashes of blocks cover tokens, not the weights that computed them. So all that shapes the bytes stands in the name: two engines share
blocks exactly if all of it is equal. The name tells the model to people and the rest as a hash.
"""

from __future__ import annotations

import enum
import hashlib
import json
import os
import re
from collections.abc import Mapping
from typing import Any, Optional

from .errors import InvalidError

_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9._:=@+,-]")
_FLOATS_8 = {"fp8", "float8", "auto"}


# Entries of a model's configuration that say where it came from, not what it computes.
_ORIGIN = ("_name_or_path", "name_or_path", "_commit_hash", "transformers_version", "_attn_implementation_autoset")


def canonical(value: Any) -> Any:
    """Returns `value` in types of JSON, equal in all processes and on all hosts if it means the same: without entries that say where a model came
    from, objects by their contents."""
    if isinstance(value, enum.Enum):
        return value.name
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return {str(k): canonical(v) for k, v in value.items() if k not in _ORIGIN}
    if isinstance(value, (list, tuple)):
        return [canonical(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted((canonical(v) for v in value), key=repr)
    if hasattr(value, "to_dict") and not isinstance(value, type):
        return canonical(value.to_dict())
    text = str(value)
    if " at 0x" not in text:
        return text[6:] if text.startswith("torch.") else text
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    return [name, getattr(value, "__qualname__", None), canonical(getattr(value, "__dict__", None))]


class Namespace:
    """What shapes the bytes of a block; `instance(size)` is the name to use.

    model: its name, for people. weights: fingerprint(...), or the user's namespace_tag. dtype: the exact one of the KV cache
    ("float8_e4m3fn", not "fp8"). layout: of a page in memory. tokens: in a block. parallel: sizes and this worker's ranks, only of what
    cuts the bytes (for MLA no TP rank). groups: what distinguishes caches of one model. Anything else that shapes the bytes goes into `more`:
    the engine's configuration after all overrides, what drafts, ... Nothing may, that differs between hosts which could share."""

    def __init__(self, model: str, *, weights: str, dtype: str, layout: str, tokens: int, parallel: Optional[Mapping[str, int]] = None,
                 groups: Any = None, **more: Any) -> None:
        if not weights:
            raise InvalidError("no fingerprint of the weights: slabkv.fingerprint(...) or a namespace_tag", field="weights")
        dtype = dtype.replace("torch.", "")
        if not dtype or dtype in _FLOATS_8:
            raise InvalidError(f"'{dtype}' is no exact type of the KV cache: say float8_e4m3fn, float8_e5m2, bfloat16 ...", field="dtype")
        self.model = model
        self.parts: dict[str, Any] = {
            "model": model, "weights": weights, "dtype": dtype, "layout": layout, "tokens": tokens, "parallel": dict(parallel or {}),
            "groups": canonical(groups), **{k: canonical(v) for k, v in more.items()},
        }
        self._generation = 0

    def renew(self) -> None:
        """The weights have changed under the running engine: nothing stored so far is found any more."""
        self._generation += 1
        self.parts["renewed"] = [self._generation, os.urandom(16).hex()]

    @property
    def renewed(self) -> bool:
        """Whether nobody else can have this name."""
        return self._generation > 0

    def digest(self) -> str:
        """All of it, as 32 hexadecimal digits."""
        text = json.dumps(self.parts, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def instance(self, size: int) -> str:
        """The instance of blocks of so many bytes."""
        name = _NOT_ALLOWED.sub("-", self.model.rstrip("/").rsplit("/", 1)[-1])[:60].lstrip(".:=@+,-") or "model"
        return f"{name}:{self.digest()}:{size}"

    def extra(self) -> str:
        """The same in full, for people who look at the instance."""
        return json.dumps(self.parts, sort_keys=True)[:16000]
