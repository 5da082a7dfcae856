"""The C library: where it lies, its structs and prototypes (slabkv.h). Nothing else of the package knows addresses of functions.

Structs that the caller provides begin with their size, so that a library with more members takes them as they are here.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import POINTER, c_bool, c_char, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Optional

VERSION = (0, 1)  # of slabkv.h: a library of another one is refused

PUT, GET, EXISTS, DELETE = range(4)  # enum slabkv_op_kind
STRING, INT, WIDE, BYTES, TEXT = range(5)  # enum slabkv_key_form
PREFIX, BATCH = range(2)  # enum slabkv_mode
INSTANCE = 2  # of enum slabkv_object


class Error(ctypes.Structure):
    _fields_ = [("code", c_int), ("field", c_char * 96), ("message", c_char * 320)]


class Keys(ctypes.Structure):
    pass


Keys._fields_ = [
    ("size", c_size_t), ("form", c_int), ("n", c_uint32), ("v", c_void_p), ("offsets", c_void_p), ("parent", POINTER(Keys)),
]


class Batch(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t), ("kind", c_int), ("n_bufs", c_uint32), ("instance", c_char_p), ("keys", POINTER(Keys)),
        ("data", c_void_p), ("lengths", c_void_p), ("results", c_void_p), ("whys", c_void_p), ("independent", c_bool),
        ("tag", c_uint64),
    ]


class Completion(ctypes.Structure):
    _fields_ = [
        ("tag", c_uint64), ("batch", c_uint64), ("index", c_uint32), ("left", c_uint32), ("kind", c_int), ("result", c_int),
        ("why", c_int),
    ]


class QueueOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("max_in_flight", c_uint32), ("threads", c_uint32), ("batch", c_uint32)]


class LookupOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t), ("mode", c_int), ("specs", c_void_p), ("n_specs", c_uint32), ("lease_ms", c_uint32),
        ("window", c_uint32),
    ]


class Locations(ctypes.Structure):
    """As far as this package reads it."""

    _fields_ = [
        ("n_keys", c_uint32), ("matched", c_uint32), ("n_specs", c_uint32), ("specs", c_void_p), ("hit", POINTER(c_bool)),
        ("loc", c_void_p), ("loc_size", c_size_t), ("n_files", c_uint32), ("files", c_void_p), ("file_size", c_size_t),
        ("lease_ms", c_uint32), ("valid_until_ms", c_uint64),
    ]


class Option(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("range", c_char_p), ("value", c_char_p), ("meaning", c_char_p)]


_ERR = POINTER(Error)
_PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "version": (c_char_p, []),
    "version_number": (c_uint32, []),
    "trace": (c_int, [c_char_p]),
    "try_for": (None, [c_uint32]),
    "code": (c_char_p, [c_int]),
    "text": (c_char_p, [c_int]),
    "options_new": (c_void_p, []),
    "options_free": (None, [c_void_p]),
    "options_set": (c_int, [c_void_p, c_char_p, c_char_p, _ERR]),
    "option": (POINTER(Option), [c_uint32]),
    "open": (c_int, [c_void_p, POINTER(c_void_p), _ERR]),
    "close": (None, [c_void_p]),
    "engine": (c_char_p, [c_void_p, POINTER(c_char_p)]),
    "free": (None, [c_void_p]),
    "object_set": (c_int, [c_void_p, c_int, c_char_p, c_char_p, POINTER(c_void_p), _ERR]),
    "object_delete": (c_int, [c_void_p, c_int, c_char_p, _ERR]),
    "batch": (c_int, [c_void_p, POINTER(Batch), _ERR]),
    "match": (c_int, [c_void_p, POINTER(c_char_p), c_uint32, POINTER(Keys), POINTER(c_uint32), _ERR]),
    "lookup": (c_int, [c_void_p, c_char_p, POINTER(Keys), POINTER(LookupOptions), POINTER(POINTER(Locations)), _ERR]),
    "pin": (c_int, [c_void_p, c_char_p, POINTER(Keys), c_int, c_uint64, POINTER(c_uint32), POINTER(c_bool), _ERR]),
    "unpin": (c_int, [c_void_p, c_char_p, POINTER(Keys), POINTER(c_uint64), _ERR]),
    "call": (c_int, [c_void_p, c_char_p, c_char_p, c_char_p, POINTER(c_void_p), _ERR]),
    "ready": (c_int, [c_void_p, _ERR]),
    "async_options_init": (None, [POINTER(QueueOptions), c_size_t]),
    "async_open": (c_int, [c_void_p, POINTER(QueueOptions), POINTER(c_void_p), _ERR]),
    "async_fd": (c_int, [c_void_p]),
    "batch_submit": (c_int, [c_void_p, POINTER(Batch), POINTER(c_uint64), _ERR]),
    "drain": (c_uint32, [c_void_p, POINTER(Completion), c_size_t, c_uint32]),
    "cancel": (c_uint32, [c_void_p, c_uint64]),
    "async_stop": (None, [c_void_p, c_bool]),
    "async_close": (None, [c_void_p]),
    "memory_register": (c_int, [c_void_p, c_void_p, c_uint64, c_int, _ERR]),
    "memory_unregister": (c_int, [c_void_p, c_void_p]),
}


class Library:
    """The functions of libslabkv by their names without slabkv_."""

    def __init__(self, path: str, functions: dict[str, Any]) -> None:
        self.path = path
        self.__dict__.update(functions)

    def __getattr__(self, name: str) -> Any:  # for type checkers: every function is an attribute
        raise AttributeError(name)


def _path() -> str:
    named = os.environ.get("SLABKV_LIBRARY")
    if named:
        return named
    inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libslabkv.so")
    if os.path.exists(inside):
        return inside
    raise ImportError(
        "slabkv: there is no libslabkv.so in this package (a source tree?): install the wheel, or name the system's library "
        "in SLABKV_LIBRARY"
    )


def _load() -> Library:
    if not sys.platform.startswith("linux"):
        raise ImportError(f"slabkv: libslabkv is for Linux, not {sys.platform}")
    path = _path()
    try:
        dll = ctypes.CDLL(path)
        number = ctypes.CFUNCTYPE(c_uint32)(("slabkv_version_number", dll))()
    except OSError as e:
        raise ImportError(f"slabkv: {path} cannot be loaded: {e}; SLABKV_LIBRARY may name another one") from e
    except AttributeError as e:
        raise ImportError(f"slabkv: {path} is no libslabkv, or an older one than this package needs: install both of one version") from e
    if (number >> 16, number >> 8 & 255) != VERSION:
        raise ImportError(
            f"slabkv: {path} is version {number >> 16}.{number >> 8 & 255}, this package needs {VERSION[0]}.{VERSION[1]}: "
            "install both of one version"
        )
    functions: dict[str, Any] = {}
    for name, (result, arguments) in _PROTOTYPES.items():
        try:
            function = getattr(dll, "slabkv_" + name)
        except AttributeError:
            raise ImportError(f"slabkv: {path} lacks slabkv_{name}: install library and package of one version") from None
        function.restype, function.argtypes = result, arguments
        functions[name] = function
    return Library(path, functions)


_library: Optional[Library] = None


def library() -> Library:
    """The library, loaded at the first call."""
    global _library
    if _library is None:
        _library = _load()
    return _library
