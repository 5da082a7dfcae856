"""Keys and buffers as the C library takes them: parallel arrays, and all that must stay alive while it works on them."""

from __future__ import annotations

import ctypes
import hashlib
import time
from array import array
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Optional, Union

from . import _native
from .errors import DeviceMemoryError, Error, InvalidError, of

Key = Union[str, int, bytes]
Keys = Sequence[Key]
Buffer = Any  # anything with the buffer protocol, or a CPU tensor


class Result(IntEnum):
    """How it went with one block. True when it is there, or gone as was asked."""

    HIT = 0
    MISS = 1
    MISMATCH = 2
    ERROR = 3
    WRITTEN = 4
    EXISTS = 5
    BUSY = 6
    FAILED = 7
    GONE = 8
    CANCELLED = 9
    NOT_ADMITTED = 10
    DELETED = 11  # of a put: not stored, it was deleted while it was written

    def __bool__(self) -> bool:
        return self in _GOOD


class Results(list[Result]):
    """How it went with each block of a call."""

    __slots__ = ("_first", "_statuses")

    def __init__(self, results: Sequence[Result], statuses: Sequence[int] = (), first: Optional[Error] = None) -> None:
        """first: what the library said of the first block that failed; it says one sentence in a call."""
        super().__init__(results)
        self._statuses, self._first = statuses, first

    def why(self, i: int) -> Optional[Error]:
        """The reason behind ERROR and FAILED of block i, with the library's sentence or that of its status; else None."""
        status = self._statuses[i] if self._statuses else 0
        if status == 0 or self[i] not in (Result.ERROR, Result.FAILED):
            return None
        return self._first if self._first is not None and self._first.status == status else of(status)


_GOOD = frozenset((Result.HIT, Result.WRITTEN, Result.EXISTS, Result.GONE))
RESULTS = tuple(Result)


def key(*parts: Union[bytes, str, int]) -> bytes:
    """A 128-bit key of any parts: hashes of an engine longer than 16 bytes, a rank, a salt. The same parts, the same key."""
    h = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        h.update(len(data).to_bytes(8, "little") + b"bsi"[[bytes, str, int].index(type(part))].to_bytes(1, "little") + data)
    return h.digest()


class Pointers:
    """Memory by address, for callers that have nothing but addresses (page buffers of engines). `keep` is kept alive as long as
    the memory is used. One address for each part of each block, block by block."""

    __slots__ = ("addresses", "lengths", "keep")

    def __init__(self, addresses: Sequence[int], lengths: Union[int, Sequence[int]], keep: object = None) -> None:
        self.addresses = addresses
        self.lengths = [lengths] * len(addresses) if isinstance(lengths, int) else lengths
        self.keep = keep
        if len(self.addresses) != len(self.lengths):
            raise InvalidError(f"{len(self.addresses)} addresses and {len(self.lengths)} lengths", field="blocks")


def _address(data: bytes) -> Optional[int]:
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value


def keys_of(keys: Keys, parent: Optional[Key] = None) -> tuple[_native.Keys, object]:
    """The struct, and what it borrows from."""
    n = len(keys)
    if n == 0:
        raise InvalidError("no keys", field="keys")
    first = keys[0]
    refs: list[object] = []
    k = _native.Keys(ctypes.sizeof(_native.Keys), 0, n)
    try:
        if isinstance(first, str):
            parts = [x.encode() for x in keys]  # type: ignore[union-attr]
            offsets = array("Q", bytes(8 * (n + 1)))
            end = 0
            for i, part in enumerate(parts, 1):
                end += len(part)
                offsets[i] = end
            text = b"".join(parts)
            k.form, k.v, k.offsets = _native.TEXT, _address(text), offsets.buffer_info()[0]
            refs += [text, offsets]
        elif isinstance(first, int):
            numbers = array("Q", keys)  # type: ignore[arg-type]
            k.form, k.v = _native.INT, numbers.buffer_info()[0]
            refs.append(numbers)
        else:
            joined = b"".join(keys)  # type: ignore[arg-type]
            if set(map(len, keys)) != {16}:  # type: ignore[arg-type]
                raise InvalidError("keys of type bytes have 16 bytes; slabkv.key(...) makes such of others", field="keys")
            k.form, k.v = _native.BYTES, _address(joined)
            refs.append(joined)
    except (AttributeError, TypeError, OverflowError) as e:
        raise InvalidError(f"keys are all str, all int (64 bits, not negative), or all bytes of 16: {e}", field="keys") from None
    if parent is not None:
        before, held = keys_of([parent])
        k.parent = ctypes.pointer(before)
        refs += [before, held]
    return k, refs


class _View(ctypes.Structure):
    """Py_buffer: the address of memory that is read-only, which ctypes itself does not tell."""

    _fields_ = [
        ("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_void_p), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p),
    ]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(_View), ctypes.c_int]
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = [ctypes.POINTER(_View)]


class _Held:
    """A read-only buffer, held until this goes."""

    __slots__ = ("view",)

    def __init__(self, obj: object) -> None:
        self.view = _View()
        _get_buffer(obj, self.view, 0)

    def __del__(self) -> None:
        _release_buffer(self.view)


_DEVICE = "memory of {} cannot be read from here: copy it to host memory first (a pinned CPU tensor), or let the engine's connector do it"


def _tensor(obj: Any) -> tuple[int, int]:
    device = getattr(getattr(obj, "device", None), "type", "cpu")
    if device != "cpu":
        raise DeviceMemoryError(_DEVICE.format(device), field="blocks")
    if not obj.is_contiguous():
        raise InvalidError("a tensor is not contiguous", field="blocks")
    return obj.data_ptr(), obj.numel() * obj.element_size()


_from_buffer = ctypes.c_char.from_buffer
_addressof = ctypes.addressof


def _other(obj: Any, write: bool, refs: list[object]) -> tuple[int, int]:
    """Address and bytes of what is neither writable nor plain."""
    if hasattr(obj, "data_ptr"):
        refs.append(obj)
        return _tensor(obj)
    if hasattr(obj, "__cuda_array_interface__"):
        raise DeviceMemoryError(_DEVICE.format("cuda"), field="blocks")
    try:
        view = memoryview(obj)
    except TypeError:
        raise InvalidError(f"{type(obj).__name__} has no buffer: bytes, bytearray, memoryview, numpy, CPU tensors do", field="blocks") from None
    if not view.c_contiguous:
        raise InvalidError("a buffer is not contiguous", field="blocks")
    if view.nbytes == 0:
        raise InvalidError("a buffer is empty", field="blocks")
    if not view.readonly:
        c = _from_buffer(obj)
        refs.append(c)
        return _addressof(c), view.nbytes
    if write:
        raise InvalidError("a buffer to read into is read-only", field="blocks")
    held = _Held(obj)
    refs.append(held)
    return held.view.buf, view.nbytes


class Job:
    """One batch: the C struct and all that it borrows. `results` and `whys` are written before it is told to be finished."""

    __slots__ = ("batch", "n", "number", "refs", "results", "submitted", "tag", "whys")

    def __init__(self, kind: int, instance: bytes, keys: Keys, blocks: Union[None, Pointers, Sequence[Any]] = None,
                 parent: Optional[Key] = None, independent: bool = False, tag: int = 0) -> None:
        n = self.n = len(keys)
        k, held = keys_of(keys, parent)
        refs: list[object] = [k, held, instance]
        self.results = array("B", bytes(n))
        self.whys = array("i", bytes(4 * n))
        n_bufs = data = lengths = 0
        if blocks is not None:
            addresses, sizes = self._memory(blocks, kind == _native.GET, refs)
            if len(addresses) % n:
                raise InvalidError(f"{len(addresses)} buffers for {n} keys", field="blocks")
            n_bufs = len(addresses) // n
            data, lengths = addresses.buffer_info()[0], sizes.buffer_info()[0]
            refs += [addresses, sizes]
        self.batch = _native.Batch(ctypes.sizeof(_native.Batch), kind, n_bufs, instance, ctypes.pointer(k), data, lengths,
                                   self.results.buffer_info()[0], self.whys.buffer_info()[0], independent, tag)
        self.refs = refs
        self.tag = tag
        self.number = ctypes.c_uint64()  # of a submit: the library sets it when it has taken the job
        self.submitted = time.monotonic()

    @staticmethod
    def _memory(blocks: Union[Pointers, Sequence[Any]], write: bool, refs: list[object]) -> tuple[array[int], array[int]]:
        if isinstance(blocks, Pointers):
            refs.append(blocks)
            return array("Q", blocks.addresses), array("Q", blocks.lengths)
        if blocks and isinstance(blocks[0], (list, tuple)):
            parts = len(blocks[0])
            if any(len(b) != parts for b in blocks):
                raise InvalidError("blocks have different numbers of buffers", field="blocks")
            blocks = [part for block in blocks for part in block]
        addresses: list[int] = []
        sizes: list[int] = []
        for obj in blocks:
            if type(obj) is memoryview and not obj.readonly and obj.c_contiguous and obj.nbytes or type(obj) is bytearray and obj:
                c = _from_buffer(obj)
                refs.append(c)
                addresses.append(_addressof(c))
                sizes.append(obj.nbytes if type(obj) is memoryview else len(obj))
            else:
                address, size = _other(obj, write, refs)
                addresses.append(address)
                sizes.append(size)
        return array("Q", addresses), array("Q", sizes)

    def outcome(self, first: Optional[Error] = None) -> Results:
        return Results([RESULTS[r] for r in self.results], self.whys, first)
