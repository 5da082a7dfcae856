"""slabkv: KV-cache blocks of LLM engines on a file system that they share (docs/PYTHON.md).

    import slabkv

    with slabkv.Client("http://127.0.0.1:7333") as kv:
        kv.put_instance("llama", 65536)
        kv.put("llama", ["block-1"], [bytes(65536)])
        room = bytearray(65536)
        assert kv.get("llama", ["block-1"], [room])[0]
"""

from __future__ import annotations

from . import _native
from ._job import Pointers, Result, key
from .aio import AsyncClient
from .client import MAX_KEYS, Client, Completion, Lease, Queue
from .errors import (
    ClosedError, ConflictError, DeniedError, DeviceMemoryError, Error, FullError, InvalidError, NotFoundError, StorageError,
    TimedOutError, UnreachableError,
)
from .namespace import Namespace, fingerprint

__version__ = "0.1.0"
__all__ = [
    "MAX_KEYS", "AsyncClient", "Client", "ClosedError", "Completion", "ConflictError", "DeniedError", "DeviceMemoryError", "Error",
    "FullError", "InvalidError", "Lease", "Namespace", "NotFoundError", "Pointers", "Queue", "Result", "StorageError",
    "TimedOutError", "UnreachableError", "fingerprint", "key", "library", "options",
]


def library() -> tuple[str, str]:
    """The C library in use: its version and its path."""
    lib = _native.library()
    return lib.version().decode(), lib.path


def options() -> dict[str, tuple[str, str, str]]:
    """What the option `options` of a client takes: name to range, default and meaning."""
    lib = _native.library()
    found: dict[str, tuple[str, str, str]] = {}
    while True:
        o = lib.option(len(found))
        if not o:
            return found
        c = o.contents
        found[c.name.decode()] = (c.range.decode(), c.value.decode(), c.meaning.decode())
