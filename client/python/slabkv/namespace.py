"""Namespace: the name of an instance that keeps foreign bytes out.

Hashes of blocks cover tokens, not the weights that computed them. So all that shapes the bytes stands in the name: two engines share
blocks exactly if all of it is equal. The name tells the model to people and the rest as a hash.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
from collections.abc import Mapping
from typing import Any, Optional

from .errors import InvalidError

_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9._:=@+,-]")
_FLOATS_8 = {"fp8", "float8", "auto"}


def _weights_index(path: str) -> Optional[bytes]:
    """Names, types and shapes of a safetensors file, and some of its bytes: random weights differ in nothing else."""
    h = hashlib.blake2b(digest_size=16)
    try:
        with open(path, "rb") as f:
            (length,) = struct.unpack("<Q", f.read(8))
            size = os.fstat(f.fileno()).st_size
            if not 0 < length <= min(size, 100 << 20):
                return None
            h.update(f.read(length))
            h.update(size.to_bytes(8, "little"))
            for i in range(64):
                f.seek(8 + length + i * max(0, size - 8 - length - 4096) // 63)
                h.update(f.read(4096))
    except (OSError, struct.error):
        return None
    return h.digest()


def fingerprint(model: str, revision: Optional[str] = None) -> str:
    """What tells the weights of a model apart: the revision if it is a commit, else a hash of its configuration, of the index of its
    safetensors and of samples of their bytes. `model` is a directory; one that is not there, and no revision, is refused."""
    if revision and re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", revision):
        return revision
    if os.path.isdir(model):
        h = hashlib.blake2b(digest_size=16)
        seen = False
        for name in sorted(os.listdir(model)):
            path = os.path.join(model, name)
            if name.endswith(".safetensors"):
                digest = _weights_index(path)
                seen = seen or digest is not None
                h.update(name.encode() + b"\0" + (digest or b""))
            elif name in ("config.json", "model.safetensors.index.json", "adapter_config.json", "quantize_config.json"):
                with open(path, "rb") as f:
                    h.update(name.encode() + b"\0" + f.read())
        if seen:
            return h.hexdigest()
    if revision:
        raise InvalidError(f"revision '{revision}' may move: give the commit, or a namespace_tag that changes with the weights",
                           field="revision")
    raise InvalidError(f"the weights of '{model}' cannot be told apart: it is no directory with safetensors. Give the revision (a commit) "
                       "or a namespace_tag that changes with the weights", field="namespace_tag")


class Namespace:
    """What shapes the bytes of a block; `instance(size)` is the name to use.

    model: its name, for people. weights: fingerprint(...), or the user's namespace_tag. dtype: the exact one of the KV cache
    ("float8_e4m3fn", not "fp8"). layout: of a page in memory. tokens: in a block. parallel: sizes and this worker's ranks, only of what
    cuts the bytes (for MLA no TP rank). speculative: what drafts, or "". groups: what distinguishes caches of one model. Anything else that
    shapes the bytes goes into `more`."""

    def __init__(self, model: str, *, weights: str, dtype: str, layout: str, tokens: int, parallel: Optional[Mapping[str, int]] = None,
                 speculative: str = "", groups: Any = None, **more: Any) -> None:
        if not weights:
            raise InvalidError("no fingerprint of the weights: slabkv.fingerprint(...) or a namespace_tag", field="weights")
        dtype = dtype.replace("torch.", "")
        if not dtype or dtype in _FLOATS_8:
            raise InvalidError(f"'{dtype}' is no exact type of the KV cache: say float8_e4m3fn, float8_e5m2, bfloat16 ...", field="dtype")
        self.model = model
        self.parts: dict[str, Any] = {
            "model": model, "weights": weights, "dtype": dtype, "layout": layout, "tokens": tokens, "parallel": dict(parallel or {}),
            "speculative": speculative, "groups": groups, **more,
        }
        self._generation = 0

    def renew(self) -> None:
        """The weights have changed under the running engine: nothing stored so far is found any more."""
        self._generation += 1
        self.parts["renewed"] = [self._generation, os.urandom(16).hex()]

    def digest(self) -> str:
        """All of it, as 32 hexadecimal digits."""
        text = json.dumps(self.parts, sort_keys=True, default=str, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def instance(self, size: int) -> str:
        """The instance of blocks of so many bytes."""
        name = _NOT_ALLOWED.sub("-", self.model.rstrip("/").rsplit("/", 1)[-1])[:60].lstrip(".:=@+,-") or "model"
        return f"{name}:{self.digest()}:{size}"

    def extra(self) -> str:
        """The same in full, for people who look at the instance."""
        return json.dumps(self.parts, sort_keys=True, default=str)[:16000]
