"""slabkv: KV-cache blocks of LLM engines on a file system that they share (docs/start/PYTHON.md).

    import slabkv

    with slabkv.Client("http://127.0.0.1:7333") as kv:
        kv.put_instance("llama", 65536)
        kv.put("llama", ["block-1"], [bytes(65536)])
        room = bytearray(65536)
        assert kv.get("llama", ["block-1"], [room])[0]
"""

from __future__ import annotations

from typing import Optional

from . import _calls, _native
from ._job import Pointers, Result, Results, key
from ._weights import fingerprint
from .aio import AsyncClient
from .client import MAX_KEYS, Client, Completion, Lease, Queue
from .errors import (
    ClosedError, ConflictError, DeniedError, DeviceMemoryError, Error, FullError, InvalidError, NotFoundError, StorageError,
    TimedOutError, UnreachableError,
)
from .namespace import Namespace

__version__ = "0.1.0"
__all__ = [
    "MAX_KEYS", "AsyncClient", "Client", "ClosedError", "Completion", "ConflictError", "DeniedError", "DeviceMemoryError", "Error",
    "FullError", "InvalidError", "Lease", "Namespace", "NotFoundError", "Pointers", "Queue", "Result", "Results", "StorageError",
    "TimedOutError", "UnreachableError", "fingerprint", "key", "library", "options", "trace",
]


def library() -> tuple[str, str]:
    """The C library in use: its version and its path."""
    lib = _native.library()
    return lib.version().decode(), lib.path


def trace(traceparent: Optional[str]) -> None:
    """The trace that this thread's calls belong to from now on, as W3C's header traceparent has it; None: none. An operation of a queue
    has that of the thread that submitted it. Managers log it and pass it on."""
    if _calls.trace(None if traceparent is None else traceparent.encode()) != 0:
        raise InvalidError("not of the form 00-<32 hex digits>-<16 hex digits>-<2 hex digits>", field="traceparent")


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
