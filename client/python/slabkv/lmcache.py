"""LMCache over slabkv (docs/LMCACHE.md).

L2Client serves LMCache's multi-process server as its L2 adapter of type native_plugin:

    lmcache server ... --l2-adapter '{"type": "native_plugin", "module_path": "slabkv.lmcache", "class_name": "L2Client",
        "adapter_params": {"url": "http://127.0.0.1:7333", "kv_dtype": "bfloat16", "namespace_tag": "llama-3.1-8b@0e9e39f"}}'

LMCache's keys name model, rank, object group, chunk and salt. Bytes and layout belong to its own version, so that stands in the
namespace; the type of the KV cache and the weights it does not tell, so they are options.
"""

from __future__ import annotations

import os
import queue as queues
import select
import threading
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any, Optional

from ._connector import Breaker, Settings
from ._job import Key, Result
from .client import MAX_KEYS, Queue
from .errors import Error, FullError, InvalidError, NotFoundError
from .namespace import Namespace

Done = tuple[int, bool, str, Optional[list[bool]]]


def _lmcache_version() -> str:
    try:
        return metadata.version("lmcache")
    except metadata.PackageNotFoundError:
        return "unknown"


class _Future:
    """One submit of LMCache's: how many keys have an answer, over all operations that it was cut into."""

    def __init__(self, number: int, n: int, store: bool) -> None:
        self.number = number
        self.good = [False] * n
        self.left = 0
        self.store = store
        self.error = ""


class _Space:
    """Objects of one model and object group. They have one size, or few (the last rank's may be smaller), known when the first one is
    stored, or from the manager when one is asked for. The rank stands in the keys."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self.prefix = namespace.instance(0)[:-1]
        self.sizes: set[int] = set()
        self.asked = -1.0  # when the manager was, for sizes that others have stored


class L2Client:
    """LMCache's native client: submitting never waits, one file descriptor tells of completions. Loads and stores have queues of
    their own, so a backlog of stores holds up no load; what does not fit into it is not stored."""

    def __init__(self, **adapter_params: Any) -> None:
        self._settings = s = Settings("slabkv.lmcache", adapter_params, model=None, revision=None, lmcache_version=None,
                                      max_pending_stores=512)
        if not s.kv_dtype:
            raise InvalidError("slabkv.lmcache: adapter_params needs kv_dtype, the exact type of the KV cache (bfloat16, float8_e4m3fn, "
                               "...): LMCache does not tell it, and blocks of two types may have one size", field="kv_dtype")
        if s.model or s.namespace_tag:
            s.weights(s.model or "")  # refused now, not at the first request
        self._breaker = Breaker("slabkv.lmcache", s.retry)
        self._client = s.client()
        self._loads: Queue = self._client.queue()
        self._stores: Queue = self._client.queue(threads=2)
        self._spaces: dict[str, _Space] = {}
        self._parts: dict[tuple[Queue, int], tuple[_Future, Sequence[int]]] = {}
        self._finished: list[_Future] = []
        self._lock = threading.Lock()
        self._number = 0
        self._pending_stores = 0
        self._layout = f"lmcache-{s.lmcache_version or _lmcache_version()}"
        # One descriptor for both queues and for what ends without either.
        self._poll = select.epoll()
        self._event, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for fd in (self._loads.fileno(), self._stores.fileno(), self._event):
            self._poll.register(fd, select.EPOLLIN)
        # What waits for the manager (an instance to be registered, sizes to be asked for) runs here, not in a submit.
        self._slow: queues.SimpleQueue[Optional[Callable[[], None]]] = queues.SimpleQueue()
        self._worker = threading.Thread(target=self._work, name="slabkv-lmcache", daemon=True)
        self._worker.start()
        self._closed = False

    # ---- what LMCache calls ----

    def event_fd(self) -> int:
        """Readable when drain_completions has something."""
        return self._poll.fileno()

    def submit_batch_set(self, keys: list[str], views: list[memoryview]) -> int:
        """Stores objects; all or nothing is told."""
        future = self._future(len(keys), True)
        with self._lock:
            full = self._pending_stores >= self._settings.max_pending_stores
            self._pending_stores += 1
        if full:
            return self._end(future, "slabkv: stores are dropped: more than max_pending_stores are waiting")
        return self._each(future, keys, views, self._set)

    def submit_batch_get(self, keys: list[str], views: list[memoryview]) -> int:
        """Loads objects into the views, each on its own."""
        return self._each(self._future(len(keys), False), keys, views, self._get)

    def submit_batch_exists(self, keys: list[str]) -> int:
        """Which objects are there."""
        return self._each(self._future(len(keys), False), keys, None, self._exists)

    def submit_batch_delete(self, keys: list[str]) -> int:
        """Makes objects unfindable."""
        return self._each(self._future(len(keys), False), keys, None, self._delete)

    def drain_completions(self) -> list[Done]:
        """[(number, ok, error, which keys)] of what is over."""
        with self._lock:
            finished, self._finished = self._finished, []
            try:
                os.read(self._event, 65536)
            except BlockingIOError:
                pass
        for queue in (self._loads, self._stores):
            for c in queue.drain():
                with self._lock:
                    future, indexes = self._parts.pop((queue, c.tag))
                if c.error and not isinstance(c.error, NotFoundError):  # no instance: nothing was stored yet
                    self._breaker.failed("a store" if future.store else "a load", c.error)
                    future.error = str(c.error)
                for i, result in zip(indexes, c.results):
                    # Somebody else stores the same object: as good as stored.
                    future.good[i] = future.good[i] or bool(result) or (future.store and result == Result.BUSY)
                if self._leave(future):
                    finished.append(future)
        done: list[Done] = []
        for f in finished:
            if f.store:
                with self._lock:
                    self._pending_stores -= 1
                done.append((f.number, all(f.good), f.error or ("" if all(f.good) else "slabkv: not stored"), None))
            else:
                done.append((f.number, not f.error, f.error, f.good))
        return done

    def close(self) -> None:
        """Waits until no I/O touches LMCache's memory any more."""
        if self._closed:
            return
        self._closed = True
        self._slow.put(None)
        self._worker.join()
        self._loads.close()
        self._stores.close()
        self._client.close()
        self._poll.close()
        os.close(self._event)
        os.close(self._wake)

    # ---- how ----

    def _future(self, n: int, store: bool) -> _Future:
        with self._lock:
            self._number += 1
            return _Future(self._number, n, store)

    def _end(self, future: _Future, error: str = "") -> int:
        """It is over without an operation."""
        with self._lock:
            future.error = future.error or error
            self._finished.append(future)
            try:
                os.write(self._wake, b"!")
            except BlockingIOError:
                pass  # full: it is readable
        return future.number

    def _leave(self, future: _Future) -> bool:
        with self._lock:
            future.left -= 1
            return future.left == 0

    def _space(self, key: str) -> _Space:
        """Of a key "model@rank@group@chunk[@salt]"."""
        model, _rank, group, _chunk = key.split("@", 3)
        head = f"{model}@{group}"
        space = self._spaces.get(head)
        if space is None:
            s = self._settings
            namespace = Namespace(model, weights=s.weights(s.model or model, s.revision), dtype=s.kv_dtype, layout=self._layout, tokens=0,
                                  groups=group)
            space = self._spaces[head] = _Space(namespace)
        return space

    def _each(self, future: _Future, keys: list[str], views: Optional[list[memoryview]], what: Callable[..., None]) -> int:
        """what(...) for the keys of each space."""
        if self._breaker.open:
            return self._end(future, "slabkv: the manager cannot be reached")
        try:
            spaces: dict[int, tuple[_Space, list[int]]] = {}
            for i, key in enumerate(keys):
                space = self._space(key)
                spaces.setdefault(id(space), (space, []))[1].append(i)
        except (Error, ValueError) as e:
            self._breaker.failed("a key", e)
            return self._end(future, str(e))
        future.left = 1  # this function's own, so that nothing ends it before all is submitted
        for space, indexes in spaces.values():
            for first in range(0, len(indexes), MAX_KEYS):
                some = indexes[first : first + MAX_KEYS]
                what(future, space, [keys[i] for i in some], None if views is None else [views[i] for i in some], some)
        if self._leave(future):
            self._end(future)
        return future.number

    def _submit(self, future: _Future, indexes: Sequence[int], queue: Queue, call: Callable[..., int], *arguments: Any) -> None:
        # Under the lock, so that drain finds the part of a completion that comes at once.
        with self._lock:
            try:
                self._parts[queue, call(*arguments)] = future, indexes
                future.left += 1
            except (Error, OSError, MemoryError) as e:
                if not isinstance(e, FullError):
                    self._breaker.failed("an operation", e)
                future.error = str(e)

    def _later(self, future: _Future, step: Callable[[], None]) -> None:
        """On the worker: what may wait."""
        with self._lock:
            future.left += 1

        def run() -> None:
            try:
                step()
            except (Error, OSError, MemoryError) as e:
                self._breaker.failed("the manager", e)
                future.error = str(e)
            if self._leave(future):
                self._end(future)

        self._slow.put(run)

    def _work(self) -> None:
        while True:
            step = self._slow.get()
            if step is None:
                return
            step()

    def _set(self, future: _Future, space: _Space, keys: list[Key], views: list[memoryview], indexes: list[int]) -> None:
        sizes: dict[int, list[int]] = {}
        for i, view in enumerate(views):
            sizes.setdefault(view.nbytes, []).append(i)
        for size, some in sizes.items():
            arguments = (space.namespace.instance(size), [keys[i] for i in some], [views[i] for i in some])
            where = [indexes[i] for i in some]
            if size in space.sizes:
                self._submit(future, where, self._stores, self._stores.put, *arguments)
                continue

            def first(size: int = size, where: list[int] = where, arguments: Any = arguments) -> None:
                self._client.put_instance(arguments[0], size, group=self._settings.group, extra=space.namespace.extra())
                space.sizes.add(size)
                self._submit(future, where, self._stores, self._stores.put, *arguments)

            self._later(future, first)

    def _get(self, future: _Future, space: _Space, keys: list[Key], views: list[memoryview], indexes: list[int]) -> None:
        sizes: dict[int, list[int]] = {}
        for i, view in enumerate(views):
            sizes.setdefault(view.nbytes, []).append(i)
        for size, some in sizes.items():
            self._submit(future, [indexes[i] for i in some], self._loads, self._loads.get, space.namespace.instance(size),
                         [keys[i] for i in some], [views[i] for i in some])

    def _known(self, future: _Future, space: _Space, step: Callable[[], None]) -> None:
        """step() when it is known which sizes this space has: after a restart others have stored what is asked for."""
        if space.sizes or time.monotonic() < space.asked + 1:
            step()
            return

        def ask() -> None:
            if not space.sizes:
                space.sizes.update(self._sizes(space))
                space.asked = time.monotonic()
            step()

        self._later(future, ask)

    def _sizes(self, space: _Space) -> list[int]:
        found = self._client.call("GET", "/v1/instances")
        names = [i["id"] for i in found["instances"]]
        return [int(n[len(space.prefix) :]) for n in names if n.startswith(space.prefix) and n[len(space.prefix) :].isdigit()]

    def _exists(self, future: _Future, space: _Space, keys: list[Key], _views: None, indexes: list[int]) -> None:
        def step() -> None:
            for size in list(space.sizes):
                self._submit(future, indexes, self._loads, self._loads.exists, space.namespace.instance(size), keys)

        self._known(future, space, step)

    def _delete(self, future: _Future, space: _Space, keys: list[Key], _views: None, indexes: list[int]) -> None:
        def step() -> None:
            for size in list(space.sizes):
                self._submit(future, indexes, self._stores, self._stores.delete, space.namespace.instance(size), keys)

        self._known(future, space, step)


__all__ = ["L2Client"]
