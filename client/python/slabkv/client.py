"""Client: calls that wait. Queue: operations that complete later, behind a file descriptor; AsyncClient stands on it.

Threads: both may be used by any number of them. All calls of the library run without Python's lock.
"""

from __future__ import annotations

import ctypes
import json
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Optional, Union, overload
from urllib.parse import quote

from . import _native
from ._job import Job, Key, Keys, Pointers, Result, keys_of
from .errors import ClosedError, InvalidError, check, of

Blocks = Union[Pointers, Sequence[Any]]
MAX_KEYS = 16384
_FORKED = "was opened by process {}: after a fork the child opens its own"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)  # type: ignore[arg-type]


class _Handle:
    """A C object with a count of the calls that use it: it is closed when the last one has returned."""

    def __init__(self, what: str, pointer: int) -> None:
        self.what = what
        self.pointer = pointer
        self.pid = os.getpid()
        self.calls = 0
        self.closing = False
        self.changed = threading.Condition()

    def __enter__(self) -> int:
        if os.getpid() != self.pid:
            raise ClosedError(f"this {self.what} {_FORKED.format(self.pid)}", field="handle")
        with self.changed:
            if self.closing:
                raise ClosedError(f"this {self.what} is closed", field="handle")
            self.calls += 1
        return self.pointer

    def __exit__(self, *_: object) -> None:
        with self.changed:
            self.calls -= 1
            if self.closing and not self.calls:
                self.changed.notify_all()

    def end(self) -> bool:
        """No more calls; waits for those that run. True: the caller closes it now."""
        if os.getpid() != self.pid:
            return False
        with self.changed:
            if self.closing:
                return False
            self.closing = True
            self.changed.wait_for(lambda: not self.calls)
        return True


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
    results: list[Result]
    error: Optional[Exception]  # when the whole call failed


class Base:
    """What Client and AsyncClient share: the handle, and calls that are short or rare."""

    def __init__(self, url: Union[None, str, Iterable[str]] = None, *, token: Optional[str] = None, timeout: float = 10.0,
                 mounts: Union[None, str, Iterable[str]] = None, engine: Optional[str] = None, ca_file: Optional[str] = None,
                 verify: bool = True, checksum: bool = True, options: Optional[Mapping[str, object]] = None) -> None:
        """url: of the manager, or several; default $SLABKV_URL, http://127.0.0.1:7333. token: bearer token. timeout: seconds for one call to the
        manager, retries included. mounts: where storages are mounted here, if not where the manager says. engine: posix, uring, usrbio
        or auto. ca_file: certificates for https; else SSL_CERT_FILE, else where systems have them. verify, checksum: of bytes read,
        written. options: more, by the library's names (slabkv.options() lists them).
        Contacts nobody: a manager that is down is found at the first call."""
        given: dict[str, object] = {
            "urls": [url] if isinstance(url, str) else None if url is None else list(url),
            "mounts": [mounts] if isinstance(mounts, str) else None if mounts is None else list(mounts),
            "token": token, "call_timeout_ms": max(1, round(timeout * 1000)), "engine": engine, "ca_file": ca_file,
            "verify": verify, "checksum": checksum, **(options or {}),
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
        self._handle = _Handle(type(self).__name__, out.value)
        self._names: dict[str, bytes] = {}

    def _name(self, instance: str) -> bytes:
        name = self._names.get(instance)
        if name is None:
            name = self._names[instance] = instance.encode()
        return name

    def _close(self) -> None:
        if self._handle.end():
            self._lib.close(self._handle.pointer)

    def __del__(self) -> None:
        if hasattr(self, "_handle") and not self._handle.calls:
            self._close()

    @property
    def engine(self) -> str:
        """How bytes are moved: posix, uring or usrbio."""
        with self._handle as kv:
            return self._lib.engine(kv, None).decode()

    # The calls themselves; the classes below give them their names.

    def _batch(self, kind: int, instance: str, keys: Keys, blocks: Optional[Blocks] = None, parent: Optional[Key] = None,
               independent: bool = False) -> list[Result]:
        if not keys:
            return []
        job = Job(kind, self._name(instance), keys, blocks, parent, independent)
        err = _native.Error()
        with self._handle as kv:
            check(self._lib.batch(kv, job.batch, err), err)
        if err.code == -1:  # one block is not what it should be: that is no miss, but a mistake
            check(err.code, err)
        return job.outcome()

    def _put_instance(self, instance: str, size: Union[int, Mapping[str, int]], tokens: int, group: Optional[str],
                      extra: Optional[str]) -> None:
        parts = size if isinstance(size, Mapping) else {"kv": size}
        specs = (_native.Spec * len(parts))(*((name.encode(), n) for name, n in parts.items()))
        i = _native.Instance(ctypes.sizeof(_native.Instance), instance.encode(), group.encode() if group else None, tokens, specs,
                             ctypes.sizeof(_native.Spec), len(parts), extra.encode() if extra else None)
        err = _native.Error()
        with self._handle as kv:
            check(self._lib.instance_put(kv, i, err), err)

    def _delete_instance(self, instance: str) -> None:
        err = _native.Error()
        with self._handle as kv:
            check(self._lib.instance_delete(kv, instance.encode(), err), err)

    def _match(self, instances: Sequence[str], keys: Keys) -> list[int]:
        if not keys:
            return [0] * len(instances)
        k, _held = keys_of(keys)
        names = (ctypes.c_char_p * len(instances))(*(i.encode() for i in instances))
        matched = (ctypes.c_uint32 * len(instances))()
        err = _native.Error()
        with self._handle as kv:
            check(self._lib.match(kv, names, len(instances), k, matched, err), err)
        return list(matched)

    def _lease(self, instance: str, keys: Keys, seconds: float, prefix: bool) -> Lease:
        if not keys:
            return Lease([], 0, 0.0)
        k, _held = keys_of(keys)
        o = _native.LookupOptions(ctypes.sizeof(_native.LookupOptions), _native.PREFIX if prefix else _native.BATCH, None, 0,
                                  max(0, round(seconds * 1000)))
        out, err = ctypes.POINTER(_native.Locations)(), _native.Error()
        with self._handle as kv:
            check(self._lib.lookup(kv, self._name(instance), k, o, out, err), err)
        found = out.contents
        lease = Lease(found.hit[: found.n_keys], found.matched, found.lease_ms / 1000)
        self._lib.free(out)
        return lease

    def _pin(self, instance: str, keys: Keys, seconds: Optional[float], hard: bool) -> int:
        if not keys:
            return 0
        k, _held = keys_of(keys)
        pinned, err = ctypes.c_uint32(), _native.Error()
        ttl = 0 if seconds is None else max(1, round(seconds * 1000))
        with self._handle as kv:
            check(self._lib.pin(kv, self._name(instance), k, 2 if hard else 1, ttl, pinned, None, err), err)
        return pinned.value

    def _unpin(self, instance: str, keys: Optional[Keys]) -> int:
        k = None
        if keys is not None:
            if not keys:
                return 0
            k, _held = keys_of(keys)
        count, err = ctypes.c_uint64(), _native.Error()
        with self._handle as kv:
            check(self._lib.unpin(kv, self._name(instance), k, count, err), err)
        return count.value

    def _call(self, method: str, path: str, body: object) -> Any:
        out, err = ctypes.c_void_p(), _native.Error()
        data = None if body is None else json.dumps(body).encode()
        with self._handle as kv:
            check(self._lib.call(kv, method.encode(), quote(path, safe="/?&=%:").encode(), data, out, err), err)
        try:
            text = ctypes.string_at(out.value) if out.value else b""
        finally:
            self._lib.free(out)
        return json.loads(text) if text else None

    def _ready(self) -> bool:
        with self._handle as kv:
            return self._lib.ready(kv, None) == 0

    def register(self, memory: Any, shared: bool = False) -> None:
        """Tells the library of memory that many blocks will lie in: faster with uring, and with usrbio where it is shared memory. It must
        stay mapped until unregister or close."""
        address, size, keep = self._region(memory)
        err = _native.Error()
        with self._handle as kv:
            check(self._lib.memory_register(kv, address, size, 1 if shared else 0, err), err)
        self._regions = getattr(self, "_regions", {})
        self._regions[address] = keep

    def unregister(self, memory: Any) -> None:
        """The opposite. ConflictError while operations use it."""
        address, _size, _keep = self._region(memory)
        with self._handle as kv:
            rc = self._lib.memory_unregister(kv, address)
        if rc != 0:
            raise of(rc)
        self._regions.pop(address, None)

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
    """A manager, or several that stand in for each other, and the storages of this machine. Close it, or use `with`."""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Waits for calls of other threads; then every call fails with ClosedError."""
        self._close()

    def put_instance(self, instance: str, size: Union[int, Mapping[str, int]], *, tokens: int = 0, group: Optional[str] = None,
                     extra: Optional[str] = None) -> None:
        """Registers a layout of blocks: bytes of a block, or of each of its parts by name ({"tp0": n, "tp1": n}). The same again does
        nothing; another size for the same name is a ConflictError."""
        self._put_instance(instance, size, tokens, group, extra)

    def delete_instance(self, instance: str) -> None:
        """Removes it with all its blocks; harmless if it is not there."""
        self._delete_instance(instance)

    def put(self, instance: str, keys: Keys, blocks: Blocks, *, parent: Optional[Key] = None, independent: bool = False) -> list[Result]:
        """Stores blocks: keys as one chain, head first, behind `parent`, unless they are independent. blocks[i] is a buffer of exactly the
        instance's size, or a list of one for each part. WRITTEN is durable and seen by all."""
        return self._batch(_native.PUT, instance, keys, blocks, parent, independent)

    def get(self, instance: str, keys: Keys, blocks: Blocks) -> list[Result]:
        """Reads blocks into buffers: HIT, and the bytes that were put are there; else they hold nothing of use."""
        return self._batch(_native.GET, instance, keys, blocks)

    def exists(self, instance: str, keys: Keys) -> list[bool]:
        """Which are there now. They may go before they are read: get tells."""
        return [bool(r) for r in self._batch(_native.EXISTS, instance, keys)]

    def delete(self, instance: str, keys: Keys) -> list[bool]:
        """Makes them unfindable at once; True also for those that were not there."""
        return [bool(r) for r in self._batch(_native.DELETE, instance, keys)]

    @overload
    def match(self, instances: str, keys: Keys) -> int: ...  # pyright: ignore[reportOverlappingOverload]
    @overload
    def match(self, instances: Sequence[str], keys: Keys) -> list[int]: ...
    def match(self, instances: Union[str, Sequence[str]], keys: Keys) -> Union[int, list[int]]:
        """How many leading keys are there, in one instance or each of several: for schedulers, no effect on eviction."""
        if isinstance(instances, str):
            return self._match([instances], keys)[0]
        return self._match(instances, keys)

    def lease(self, instance: str, keys: Keys, seconds: float = 10.0, *, prefix: bool = True) -> Lease:
        """Finds blocks and keeps them where they are for so long: `with client.lease(...) as lease:`. prefix: up to the first that is
        missing, else each on its own."""
        return self._lease(instance, keys, seconds, prefix)

    def pin(self, instance: str, keys: Keys, seconds: Optional[float] = None, *, hard: bool = False) -> int:
        """Keeps blocks from eviction: soft (with a time) until nothing else may go, hard for good. How many are pinned."""
        return self._pin(instance, keys, seconds, hard)

    def unpin(self, instance: str, keys: Optional[Keys] = None) -> int:
        """Ends pins; None: all of the instance. How many."""
        return self._unpin(instance, keys)

    def stats(self) -> dict[str, Any]:
        """The manager's numbers."""
        return self._call("GET", "/v1/stats", None)

    def call(self, method: str, path: str, body: object = None) -> Any:
        """One call of the manager's HTTP API (docs/PROTOCOL.md), as Python objects."""
        return self._call(method, path, body)

    def ready(self) -> bool:
        """Whether a manager answers. One try."""
        return self._ready()

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
        with client._handle as kv:  # pyright: ignore[reportPrivateUsage]
            check(lib.async_open(kv, o, out, err), err)
        assert out.value
        self._handle = _Handle("Queue", out.value)
        self._jobs: dict[int, Job] = {}
        self._next = 0
        self._lock = threading.Lock()
        self._fd: int = lib.async_fd(out.value)
        self._room = (_native.Completion * 256)()

    def fileno(self) -> int:
        """For poll, epoll and event loops. Never read it."""
        return self._fd

    def _submit(self, kind: int, instance: str, keys: Keys, blocks: Optional[Blocks] = None, parent: Optional[Key] = None,
                independent: bool = False, waiter: Any = None) -> int:
        with self._lock:
            tag = self._next = self._next + 1
        job = Job(kind, instance.encode(), keys, blocks, parent, independent, tag)
        job.waiter = waiter
        err = _native.Error()
        batch = ctypes.c_uint64()
        self._jobs[tag] = job
        try:
            with self._handle as a:
                check(self._lib.batch_submit(a, job.batch, batch, err), err)
        except BaseException:
            del self._jobs[tag]
            raise
        job.refs.append(batch)
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
        if job is None:
            return False
        with self._handle as a:
            return self._lib.cancel(a, job.refs[-1].value) > 0  # type: ignore[attr-defined]

    def _drain(self) -> list[tuple[Job, Completion]]:
        done: list[tuple[Job, Completion]] = []
        with self._lock, self._handle as a:
            n = self._lib.drain(a, self._room, ctypes.sizeof(_native.Completion), len(self._room))
            for c in self._room[:n]:
                job = self._jobs.pop(c.tag)
                if c.result == Result.CANCELLED:
                    done.append((job, Completion(c.tag, [Result.CANCELLED] * job.n, None)))
                else:
                    error = of(c.why) if c.result == Result.ERROR and c.why else None
                    done.append((job, Completion(c.tag, job.outcome(), error)))
        return done

    def drain(self) -> list[Completion]:
        """What is over, without waiting; at most 256 at a time."""
        return [c for _job, c in self._drain()]

    @property
    def in_flight(self) -> int:
        """Operations that were submitted and not drained."""
        return len(self._jobs)

    def close(self) -> None:
        """Begins nothing any more, waits for what has begun, and drops the completions: when it returns, no I/O touches any buffer."""
        if self._handle.end():
            self._lib.async_close(self._handle.pointer)
            self._jobs.clear()

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self.close()
