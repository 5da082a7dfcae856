"""Client: calls that wait. Queue: operations that complete later, behind a file descriptor; AsyncClient stands on it.

Threads: both may be used by any number of them. All calls of the library run without Python's lock.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import operator
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Optional, Union, overload
from urllib.parse import quote

from . import _native
from ._calls import Handle, apart, reading
from ._job import Job, Key, Keys, Pointers, Result, Results, keys_of
from .errors import InvalidError, check, of

Blocks = Union[Pointers, Sequence[Any]]
MAX_KEYS = 16384
PAGE = 1000  # objects in one page of a list, the most


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)  # type: ignore[arg-type]


class Lease:
    """Blocks that stay where they are until it has run out: found, not read. `matched` of the keys are there, `hits` tells which;
    `seconds` is what was granted, counted from the call. There is nothing to give back: leaving the `with` forgets it."""

    def __init__(self, hits: list[bool], matched: int, seconds: float) -> None:
        self.hits = hits
        self.matched = matched
        self.seconds = seconds

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: object) -> None:
        self.hits, self.matched, self.seconds = [], 0, 0.0

    def __len__(self) -> int:
        return self.matched


class Completion(NamedTuple):
    """An operation of a queue that is over: no I/O touches its buffers any more."""

    tag: int
    results: Results
    error: Optional[Exception]  # when the whole call failed


class Base:
    """What Client and AsyncClient share: the handle, and calls that are short or rare."""

    def __init__(self, url: Union[None, str, Iterable[str]] = None, *, token: Optional[str] = None, timeout: float = 10.0,
                 mounts: Union[None, str, Iterable[str]] = None, engine: Optional[str] = None, ca_file: Optional[str] = None,
                 verify: bool = True, options: Optional[Mapping[str, object]] = None) -> None:
        """url: of the manager, or several; default $SLABKV_URL, http://127.0.0.1:7333. token: bearer token. timeout: seconds for one call to the
        manager, retries included. mounts: where storages are mounted here, if not where the manager says. engine: posix, uring, usrbio
        or auto. ca_file: certificates for https; else SSL_CERT_FILE, else where systems have them. verify: compare
        the checksums of bytes read. options: more, by the library's names (slabkv.options() lists them).
        Contacts nobody: a manager that is down is found at the first call."""
        given: dict[str, object] = {
            "urls": [url] if isinstance(url, str) else None if url is None else list(url),
            "mounts": [mounts] if isinstance(mounts, str) else None if mounts is None else list(mounts),
            "token": token, "call_timeout_ms": max(1, round(timeout * 1000)), "engine": engine, "ca_file": ca_file,
            "verify": verify, **(options or {}),
        }
        self._lib = lib = _native.library()
        err, out = _native.Error(), ctypes.c_void_p()
        o = lib.options_new()
        if not o:
            raise MemoryError("slabkv: no memory for options")
        try:
            for name, value in given.items():
                if value is not None:
                    check(lib.options_set(o, name.encode(), _text(value).encode(), err), err)
            check(lib.open(o, out, err), err)
        finally:
            lib.options_free(o)
        assert out.value
        self._handle = Handle(type(self).__name__, out.value, lib.close)
        self._names: dict[str, bytes] = {}

    def _name(self, instance: str) -> bytes:
        name = self._names.get(instance)
        if name is None:
            name = self._names[instance] = instance.encode()
        return name

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self._handle.drop()

    @property
    def engine(self) -> str:
        """How bytes are moved: posix, uring or usrbio."""
        return self._handle.call(self._lib.engine, None).decode()

    # The calls themselves; the classes below give them their names.

    def _batch(self, kind: int, instance: str, keys: Keys, blocks: Optional[Blocks] = None, parent: Optional[Key] = None,
               independent: bool = False) -> Results:
        if not keys:
            return Results([])
        job = Job(kind, self._name(instance), keys, blocks, parent, independent)
        err = _native.Error()
        check(self._handle.call(self._lib.batch, job.batch, err), err)
        if err.code == -1:  # one block is not what it should be: that is no miss, but a mistake
            check(err.code, err)
        first = of(err.code, err.message.decode("utf-8", "replace")) if err.code else None
        return job.outcome(first)

    def _put_instance(self, instance: str, size: Union[int, Mapping[str, int]], tokens: int, group: Optional[str],
                      extra: Optional[str]) -> None:
        parts = size if isinstance(size, Mapping) else {"kv": size}
        fields = {"specs": [{"name": name, "size": operator.index(n)} for name, n in parts.items()], "block_tokens": tokens, "group": group,
                  "extra": extra}
        data = json.dumps({name: value for name, value in fields.items() if value}).encode()
        err = _native.Error()
        check(self._handle.call(self._lib.object_set, _native.INSTANCE, instance.encode(), data, None, err), err)

    def _delete_instance(self, instance: str) -> None:
        err = _native.Error()
        check(self._handle.call(self._lib.object_delete, _native.INSTANCE, instance.encode(), err), err)

    def _match(self, instances: Sequence[str], keys: Keys) -> list[int]:
        if not keys:
            return [0] * len(instances)
        k, _held = keys_of(keys)
        names = (ctypes.c_char_p * len(instances))(*(i.encode() for i in instances))
        matched = (ctypes.c_uint32 * len(instances))()
        err = _native.Error()
        check(self._handle.call(self._lib.match, names, len(instances), k, matched, err), err)
        return list(matched)

    def _lease(self, instance: str, keys: Keys, seconds: float, prefix: bool) -> Lease:
        if not keys:
            return Lease([], 0, 0.0)
        k, _held = keys_of(keys)
        o = _native.LookupOptions(ctypes.sizeof(_native.LookupOptions), _native.PREFIX if prefix else _native.BATCH, None, 0,
                                  max(0, round(seconds * 1000)))
        out, err = ctypes.POINTER(_native.Locations)(), _native.Error()
        try:
            check(self._handle.call(self._lib.lookup, self._name(instance), k, o, out, err), err)
            found = out.contents
            return Lease(found.hit[: found.n_keys], found.matched, found.lease_ms / 1000)
        finally:
            self._lib.free(out)

    def _pin(self, instance: str, keys: Keys, seconds: Optional[float], hard: bool) -> int:
        if not keys:
            return 0
        k, _held = keys_of(keys)
        pinned, err = ctypes.c_uint32(), _native.Error()
        ttl = 0 if seconds is None else max(1, round(seconds * 1000))
        check(self._handle.call(self._lib.pin, self._name(instance), k, 2 if hard else 1, ttl, pinned, None, err), err)
        return pinned.value

    def _unpin(self, instance: str, keys: Optional[Keys]) -> int:
        k = None
        if keys is not None:
            if not keys:
                return 0
            k, _held = keys_of(keys)
        count, err = ctypes.c_uint64(), _native.Error()
        check(self._handle.call(self._lib.unpin, self._name(instance), k, count, err), err)
        return count.value

    def _call(self, method: str, path: str, body: object) -> Any:
        out, err = ctypes.c_void_p(), _native.Error()
        data = None if body is None else json.dumps(body).encode()
        try:
            check(self._handle.call(self._lib.call, method.encode(), quote(path, safe="/?&=%:").encode(), data, out, err), err)
            text = ctypes.string_at(out.value) if out.value else b""
        finally:
            self._lib.free(out)
        return json.loads(text) if text else None

    def _purge(self, instances: Optional[Iterable[str]], prefix: Optional[str], group: Optional[str],
               tenant: Optional[str]) -> dict[str, Any]:
        given = {"instances": None if instances is None else list(instances), "prefix": prefix, "group": group, "tenant": tenant}
        return self._call("POST", "/v1/purge", {name: value for name, value in given.items() if value is not None})

    def _page(self, kind: str, limit: Optional[int], after: str) -> dict[str, Any]:
        most = PAGE if limit is None else min(limit, PAGE)
        return self._call("GET", f"/v1/{kind}?limit={most}&after={quote(after, safe='')}", None)

    def _ready(self) -> bool:
        return self._handle.call(self._lib.ready, None) == 0

    def register(self, memory: Any, shared: bool = False) -> None:
        """Tells the library of memory that many blocks will lie in: faster with uring, and with usrbio where it is shared memory. It must
        stay mapped until unregister or close."""
        apart(self._register, memory, shared)

    def _register(self, memory: Any, shared: bool) -> None:
        address, size, keep = self._region(memory)
        err = _native.Error()
        check(self._handle.call(self._lib.memory_register, address, size, 1 if shared else 0, err), err)
        self._handle.keep[address] = keep

    def unregister(self, memory: Any) -> None:
        """The opposite. ConflictError while operations use it."""
        apart(self._unregister, memory)

    def _unregister(self, memory: Any) -> None:
        address, _size, _keep = self._region(memory)
        rc = self._handle.call(self._lib.memory_unregister, address)
        if rc != 0:
            raise of(rc)
        self._handle.keep.pop(address, None)

    @staticmethod
    def _region(memory: Any) -> tuple[int, int, object]:
        if isinstance(memory, Pointers):
            if len(memory.addresses) != 1:
                raise InvalidError("one region at a time", field="memory")
            return memory.addresses[0], memory.lengths[0], memory
        job = Job(_native.GET, b"", ["x"], [memory])
        addresses, sizes = job.refs[-2:]
        return addresses[0], sizes[0], job  # type: ignore[index]


class Client(Base):
    """A manager, or several that stand in for each other, and the storages of this machine. Close it, or use `with`.

    A signal handler that raises (KeyboardInterrupt) ends a wait at once. The call itself goes on to its end, and keeps its buffers
    alive; close waits for it, and may be interrupted, too."""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Waits for calls of other threads; then every call fails with ClosedError."""
        self._handle.close()

    def put_instance(self, instance: str, size: Union[int, Mapping[str, int]], *, tokens: int = 0, group: Optional[str] = None,
                     extra: Optional[str] = None) -> None:
        """Registers a layout of blocks: bytes of a block, or of each of its parts by name ({"tp0": n, "tp1": n}). The same again does
        nothing; another size for the same name is a ConflictError."""
        apart(self._put_instance, instance, size, tokens, group, extra)

    def delete_instance(self, instance: str) -> None:
        """Removes it with all its blocks; harmless if it is not there."""
        apart(self._delete_instance, instance)

    def put(self, instance: str, keys: Keys, blocks: Blocks, *, parent: Optional[Key] = None, independent: bool = False) -> Results:
        """Stores blocks: keys as one chain, head first, behind `parent`, unless they are independent. blocks[i] is a buffer of exactly the
        instance's size, or a list of one for each part. WRITTEN is durable and seen by all; `why(i)` of what this returns tells why block i FAILED."""
        return apart(self._batch, _native.PUT, instance, keys, blocks, parent, independent)

    def get(self, instance: str, keys: Keys, blocks: Blocks) -> Results:
        """Reads blocks into buffers: HIT, and the bytes that were put are there; else they hold nothing of use."""
        return apart(self._batch, _native.GET, instance, keys, blocks)

    def exists(self, instance: str, keys: Keys) -> list[bool]:
        """Which are there now. They may go before they are read: get tells."""
        return [bool(r) for r in reading(self._batch, _native.EXISTS, instance, keys)]

    def delete(self, instance: str, keys: Keys) -> list[bool]:
        """Makes them unfindable at once; True also for those that were not there."""
        return [bool(r) for r in apart(self._batch, _native.DELETE, instance, keys)]

    def purge(self, instances: Optional[Iterable[str]] = None, *, prefix: Optional[str] = None, group: Optional[str] = None,
              tenant: Optional[str] = None) -> dict[str, Any]:
        """All that is stored or being written before now is gone, for new weights or an erasure: of instances by name, or by how their
        names begin, of a group or of a tenant. The names, and how many blocks and open sessions they had. Safe to repeat."""
        return apart(self._purge, instances, prefix, group, tenant)

    @overload
    def match(self, instances: str, keys: Keys) -> int: ...  # pyright: ignore[reportOverlappingOverload]
    @overload
    def match(self, instances: Sequence[str], keys: Keys) -> list[int]: ...
    def match(self, instances: Union[str, Sequence[str]], keys: Keys) -> Union[int, list[int]]:
        """How many leading keys are there, in one instance or each of several: for schedulers, no effect on eviction."""
        if isinstance(instances, str):
            return reading(self._match, [instances], keys)[0]
        return reading(self._match, instances, keys)

    def lease(self, instance: str, keys: Keys, seconds: float = 10.0, *, prefix: bool = True) -> Lease:
        """Finds blocks and keeps them where they are for so long: `with client.lease(...) as lease:`. prefix: up to the first that is
        missing, else each on its own."""
        return reading(self._lease, instance, keys, seconds, prefix)

    def pin(self, instance: str, keys: Keys, seconds: Optional[float] = None, *, hard: bool = False) -> int:
        """Keeps blocks from eviction: soft (with a time) until nothing else may go, hard for good. How many are pinned."""
        return apart(self._pin, instance, keys, seconds, hard)

    def unpin(self, instance: str, keys: Optional[Keys] = None) -> int:
        """Ends pins; None: all of the instance. How many."""
        return apart(self._unpin, instance, keys)

    def stats(self) -> dict[str, Any]:
        """The manager's numbers."""
        return reading(self._call, "GET", "/v1/stats", None)

    def objects(self, kind: str, *, limit: Optional[int] = None, after: str = "") -> Iterator[dict[str, Any]]:
        """All "storages", "groups", "instances", "tokens" or "tenants", in order of their names, or so many of them that come after a name.
        They are read page by page."""
        while limit is None or limit > 0:
            page = apart(self._page, kind, limit, after)
            yield from page[kind]
            limit = None if limit is None else limit - len(page[kind])
            after = page.get("next", "")
            if not after:
                break

    def call(self, method: str, path: str, body: object = None) -> Any:
        """One call of the manager's HTTP API (docs/reference/PROTOCOL.md), as Python objects."""
        return apart(self._call, method, path, body)

    def ready(self) -> bool:
        """Whether a manager answers. One try."""
        return apart(self._ready)

    def queue(self, *, threads: int = 0, in_flight: int = 0) -> Queue:
        """Operations that complete later, for an event loop of your own. Close it before the client."""
        return Queue(self, threads, in_flight)


class Queue:
    """Submitting does not wait. `fileno()` is readable as long as there are completions; `drain` takes them. Buffers stay alive, and
    must stay as they are, until the completion has been drained."""

    def __init__(self, client: Base, threads: int = 0, in_flight: int = 0) -> None:
        self._client = client
        self._lib = lib = client._lib  # pyright: ignore[reportPrivateUsage]
        o = _native.QueueOptions()
        lib.async_options_init(o, ctypes.sizeof(o))
        o.threads, o.max_in_flight = threads or o.threads, in_flight or o.max_in_flight
        out, err = ctypes.c_void_p(), _native.Error()
        check(client._handle.call(lib.async_open, o, out, err), err)  # pyright: ignore[reportPrivateUsage]
        assert out.value
        self._handle = Handle("Queue", out.value, lib.async_close, client._handle)  # pyright: ignore[reportPrivateUsage]
        self._jobs: dict[int, Job] = self._handle.keep
        self._tags = itertools.count(1)
        self._lock = threading.RLock()  # a signal handler may call, too
        self._fd: int = lib.async_fd(out.value)
        self._room = (_native.Completion * 256)()  # the library's, until its tag is 0
        self._room_used = 0
        self._done: list[Completion] = []  # to be handed out

    def fileno(self) -> int:
        """For poll, epoll and event loops. Never read it."""
        return self._fd

    def _submit(self, kind: int, instance: str, keys: Keys, blocks: Optional[Blocks] = None, parent: Optional[Key] = None,
                independent: bool = False) -> int:
        tag = next(self._tags)
        job = Job(kind, instance.encode(), keys, blocks, parent, independent, tag)
        err = _native.Error()
        try:
            self._jobs[tag] = job
            check(self._handle.call(self._lib.batch_submit, job.batch, job.number, err), err)
        except BaseException:
            if not job.number.value:  # else the library has it, whatever was raised since
                self._jobs.pop(tag, None)
            raise
        return tag

    def put(self, instance: str, keys: Keys, blocks: Blocks, *, parent: Optional[Key] = None, independent: bool = False) -> int:
        """As Client.put; the completion has this tag."""
        return self._submit(_native.PUT, instance, keys, blocks, parent, independent)

    def get(self, instance: str, keys: Keys, blocks: Blocks) -> int:
        """As Client.get."""
        return self._submit(_native.GET, instance, keys, blocks)

    def exists(self, instance: str, keys: Keys) -> int:
        """As Client.exists: HIT or MISS."""
        return self._submit(_native.EXISTS, instance, keys)

    def delete(self, instance: str, keys: Keys) -> int:
        """As Client.delete: GONE."""
        return self._submit(_native.DELETE, instance, keys)

    def cancel(self, tag: int) -> bool:
        """Takes back what has not begun: it completes as CANCELLED. False: it has begun, or is over."""
        job = self._jobs.get(tag)
        if job is None or not job.number.value:
            return False
        return self._handle.call(self._lib.cancel, job.number) > 0

    def cancel_late(self, seconds: float) -> None:
        """Takes back what was submitted so long ago and has not begun."""
        before = time.monotonic() - seconds
        for tag, job in self._jobs.copy().items():  # oldest first; others may submit at any moment, and a copy is one step
            if job.submitted > before:
                break
            self.cancel(tag)

    def _completion(self, job: Job, c: _native.Completion) -> Completion:
        if c.result == Result.CANCELLED:
            return Completion(c.tag, Results([Result.CANCELLED] * job.n), None)
        return Completion(c.tag, job.outcome(), of(c.why) if c.result == Result.ERROR and c.why else None)

    def _empty_room(self) -> None:
        for i in range(self._room_used):
            c = self._room[i]
            job = self._jobs.get(c.tag) if c.tag else None
            if job is not None:
                if not self._done or self._done[-1].tag != c.tag:
                    self._done.append(self._completion(job, c))
                self._jobs.pop(c.tag, None)
            c.tag = 0
        self._room_used = 0

    def _collect(self) -> list[Completion]:
        """What is over and was not handed out. A signal handler may raise at any line: the next call goes on where this one was."""
        with self._lock:
            self._empty_room()
            self._room_used = len(self._room)  # until it is known
            self._room_used = self._handle.call(self._lib.drain, self._room, ctypes.sizeof(_native.Completion), len(self._room))
            self._empty_room()
        return self._done

    def drain(self) -> list[Completion]:
        """What is over, without waiting; at most 256 at a time."""
        self._collect()
        done, self._done = self._done, []
        return done

    @property
    def in_flight(self) -> int:
        """Operations that were submitted and not drained."""
        return len(self._jobs) + len(self._done)

    def _stop(self) -> None:
        """Begins nothing any more; all completions are there to be drained."""
        self._handle.call(self._lib.async_stop, True)

    def close(self) -> None:
        """Begins nothing any more, waits for what has begun, and drops the completions: when it returns, no I/O touches any buffer. Where
        a signal handler interrupts it, that is so later; until then the queue keeps the buffers alive."""
        self._handle.close()

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self._handle.drop()
