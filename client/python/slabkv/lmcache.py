"""LMCache over slabkv (docs/start/LMCACHE.md).

L2Client serves LMCache's multi-process server as its L2 adapter of type native_plugin:

    lmcache server ... --l2-adapter '{"type": "native_plugin", "module_path": "slabkv.lmcache", "class_name": "L2Client",
        "adapter_params": {"url": "http://127.0.0.1:7333", "kv_dtype": "bfloat16", "namespace_tag": "llama-3.1-8b@0e9e39f"}}'

L2Adapter is the same as L2 adapter of type plugin, with locks: what a lookup has found stays until it is loaded or unlocked.
RemoteAdapter is for LMCache inside the engine, by remote_storage_plugins.

LMCache's keys name model, rank, object group, chunk and salt, in which slabkv's vLLM plugin names the engine's configuration and the LoRA
adapter, too. Bytes and layout belong to its own version, so that stands in the namespace; the type of the KV cache and the weights it does not
tell, so they are options.
"""

from __future__ import annotations

import os
import queue as queues
import select
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Optional

from ._budget import DEADLINE_S, Budget, Load
from ._connector import Breaker, Settings, log, version_of
from ._engines import label
from ._job import Key, Pointers, Result
from ._lmcache_names import UNNAMED, named
from .client import MAX_KEYS, Queue
from .errors import Error, FullError, InvalidError, NotFoundError
from .namespace import Namespace

_AWAY = "slabkv: the manager cannot be reached"
_LATE = f"slabkv: not begun within {DEADLINE_S:g} s"
TICK_S = 1.0  # so often the worker looks for what is late
Done = tuple[int, bool, str, Optional[list[bool]]]


def refuse_untagged(s: Settings) -> None:
    """Requires a namespace_tag: without the plugin nothing tells overrides and quantization of the engine."""
    if not s.namespace_tag:
        raise InvalidError(f"{s.who}: without_plugin leaves unknown what the engine overrides and quantizes: give a namespace_tag that "
                           "changes with that and with the weights", field="namespace_tag")


def _own(key: str) -> str:
    """Returns a key without the model's name, which may be a path of this host: the instance says more of the model."""
    return key.split("@", 1)[1]


class _Future:
    """One submit of LMCache's: how many keys have an answer, over all operations that it was cut into."""

    def __init__(self, number: int, keys: list[str], kind: str) -> None:
        self.number = number
        self.began = time.monotonic()
        self.keys = keys
        self.kind = kind  # "store", "load", "lookup", "lock", "removal"
        self.good = [False] * len(keys)
        self.left = 0
        self.error = ""
        self.load: Optional[Load] = None


class _Space:
    """Objects of one model and object group. They have one size, or few (the last rank's may be smaller), known when the first one is
    stored, or from the manager when one is asked for. The rank stands in the keys."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self.prefix = namespace.instance(0)[:-1]
        self.sizes: set[int] = set()
        self.asked = -1.0  # when the manager was, for sizes that others have stored


class _Locks:
    """Keys that LMCache has locked, in its words; the manager's leases on them are renewed in time. For the worker's thread but for
    `count`, which is under the client's lock."""

    def __init__(self) -> None:
        self.count: dict[Key, int] = {}
        self.where: dict[Key, tuple[_Space, int]] = {}  # and the size
        self.renew = float("inf")  # when

    def due(self) -> float:
        """Seconds until then."""
        return max(0.0, self.renew - time.monotonic())


class L2Client:
    """LMCache's native client: submitting never waits, one file descriptor tells of completions. Loads and stores have queues of
    their own, so a backlog of stores holds up no load; what does not fit into it is not stored."""

    def __init__(self, **adapter_params: Any) -> None:
        self._settings = s = Settings("slabkv.lmcache", adapter_params, lmcache_version=None, max_pending_stores=512,
                                      lock_seconds=30.0, chunk_tokens=256, without_plugin=False)
        if not s.kv_dtype:
            raise InvalidError("slabkv.lmcache: adapter_params needs kv_dtype, the exact type of the KV cache (bfloat16, float8_e4m3fn, "
                               "...): LMCache does not tell it, and blocks of two types may have one size", field="kv_dtype")
        if s.without_plugin:
            refuse_untagged(s)
        if s.model or s.namespace_tag:
            s.weights(s.model or "")  # refused now, not at the first request
        self._breaker = Breaker("slabkv.lmcache", s.retry)
        self._budget = Budget.of(s)
        self._client = s.client()
        self._loads: Queue = self._client.queue()
        self._stores: Queue = self._client.queue(threads=2)
        self._spaces: dict[str, _Space] = {}
        self._parts: dict[tuple[Queue, int], tuple[_Future, Sequence[int]]] = {}
        self._finished: list[_Future] = []
        self._lock = threading.Lock()
        self._number = 0
        self._pending_stores = 0
        self._locks = _Locks()
        self._told_unnamed = False
        self._layout = f"lmcache-{s.lmcache_version or version_of('lmcache')}"
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
        future = self._future(keys, "store")
        self._budget.stored(keys, self._settings.chunk_tokens)
        with self._lock:
            go = self._budget.may_store(self._pending_stores, self._settings.max_pending_stores)
            self._pending_stores += 1
        if not go:
            return self._end(future, "slabkv: stores are dropped: more than max_pending_stores are waiting, or loads are late")
        return self._each(future, keys, views, self._set)

    def submit_batch_get(self, keys: list[str], views: list[memoryview]) -> int:
        """Loads objects into the views, each on its own."""
        future = self._future(keys, "load")
        future.load = self._budget.begin(sum(v.nbytes for v in views))
        return self._each(future, keys, views, self._get)

    def submit_batch_exists(self, keys: list[str]) -> int:
        """Which objects are there."""
        return self._each(self._future(keys, "lookup"), keys, None, self._exists)

    def submit_batch_lock(self, keys: list[str]) -> int:
        """Which objects are there; those stay until unlock, by a lease that is renewed as long as this process lives."""
        return self._each(self._future(keys, "lock"), keys, None, self._lock_there)

    def unlock(self, keys: list[str]) -> None:
        """Each once for each time it was found by submit_batch_lock. The last lease runs out by itself."""
        with self._lock:
            for key in map(_own, keys):
                n = self._locks.count.get(key, 0)
                if n > 1:
                    self._locks.count[key] = n - 1
                elif n:
                    del self._locks.count[key]

    @property
    def locked(self) -> int:
        """Keys that are locked now."""
        return len(self._locks.count)

    @property
    def reachable(self) -> bool:
        """Whether the manager is asked at all: not for a while after it did not answer."""
        return not self._breaker.open

    @property
    def pending_stores(self) -> int:
        """Submits of stores that are not over."""
        return self._pending_stores

    def register(self, address: int, size: int) -> None:
        """Tells the library of LMCache's memory; faster with some engines, and never needed."""
        try:
            self._client.register(Pointers([address], size))
        except (Error, OSError) as e:
            log.info("slabkv.lmcache: LMCache's memory is not registered (only slower): %s", e)

    def submit_batch_delete(self, keys: list[str]) -> int:
        """Makes objects unfindable."""
        return self._each(self._future(keys, "removal"), keys, None, self._delete)

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
                    part = self._parts.pop((queue, c.tag), None)
                if part is None:
                    continue  # a signal handler interrupted its submit: the engine was told so
                future, indexes = part
                if c.error and not isinstance(c.error, NotFoundError):  # no instance: nothing was stored yet
                    self._breaker.failed(f"a {future.kind}", c.error)
                    future.error = str(c.error)
                for i, result in zip(indexes, c.results):
                    # Somebody else stores the same object: as good as stored.
                    future.good[i] = future.good[i] or bool(result) or (future.kind == "store" and result == Result.BUSY)
                if self._leave(future):
                    finished.append(future)
        done: list[Done] = []
        for f in finished:
            if f.load is not None:
                self._budget.end(f.load, f.load.n_bytes * sum(f.good) // max(1, len(f.good)))
            if f.kind == "lookup":
                self._worth_loading(f)
            if f.kind == "store":
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

    def _future(self, keys: list[str], kind: str) -> _Future:
        with self._lock:
            self._number += 1
            return _Future(self._number, keys, kind)

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

    def _worth_loading(self, future: _Future) -> None:
        """Takes back what prefill would have computed before it is loaded. Only for objects of one group: of several the last ones of a
        prompt are looked up, too."""
        self._budget.missed(k for k, hit in zip(future.keys, future.good) if not hit)
        ranks: dict[str, list[int]] = {}
        heads: set[str] = set()
        for i, key in enumerate(future.keys):
            model, rank, group, _chunk = key.split("@", 3)
            ranks.setdefault(rank, []).append(i)
            heads.add(f"{model}@{group}")
        if len(heads) != 1 or not any(future.good):
            return
        space = self._spaces[heads.pop()]
        n = min(next((j for j, i in enumerate(r) if not future.good[i]), len(r)) for r in ranks.values())
        take = self._budget.take(n, len(ranks) * max(space.sizes, default=0), self._settings.chunk_tokens)
        if take < n:
            for r in ranks.values():
                for i in r[take:]:
                    future.good[i] = False

    def _space(self, key: str) -> _Space:
        """Of a key "model@rank@group@chunk[@salt]"."""
        model, _rank, group, _chunk = key.split("@", 3)
        head = f"{model}@{group}"
        space = self._spaces.get(head)
        if space is None:
            s = self._settings
            namespace = Namespace(label(s, model), weights=s.weights(s.model or model, s.revision), dtype=s.kv_dtype, layout=self._layout,
                                  tokens=0, groups=group)
            space = self._spaces[head] = _Space(namespace)
        return space

    def _named(self, key: str) -> bool:
        """Whether a key "model@rank@group@chunk[@salt]" says which adapter it is of; the log is told of one that does not."""
        if self._settings.without_plugin or named(next(iter(key.split("@", 4)[4:]), None)):
            return True
        if not self._told_unnamed:
            self._told_unnamed = True
            log.warning("%s", UNNAMED)
        return False

    def _each(self, future: _Future, keys: list[str], views: Optional[list[memoryview]], what: Callable[..., None]) -> int:
        """what(...) for the keys of each space."""
        if self._breaker.open:
            return self._end(future, _AWAY)
        try:
            spaces: dict[int, tuple[_Space, list[int]]] = {}
            for i, key in enumerate(keys):
                if not self._named(key):
                    future.error = UNNAMED if future.kind == "store" else ""
                    continue
                space = self._space(key)
                spaces.setdefault(id(space), (space, []))[1].append(i)
        except Exception as e:
            self._breaker.failed("a key", e)
            return self._end(future, str(e))
        future.left = 1  # this function's own, so that nothing ends it before all is submitted
        for space, indexes in spaces.values():
            for first in range(0, len(indexes), MAX_KEYS):
                some = indexes[first : first + MAX_KEYS]
                what(future, space, [_own(keys[i]) for i in some], None if views is None else [views[i] for i in some], some)
        if self._leave(future):
            self._end(future)
        return future.number

    def _submit(self, future: _Future, indexes: Sequence[int], queue: Queue, call: Callable[..., int], *arguments: Any) -> None:
        # Under the lock, so that drain finds the part of a completion that comes at once.
        with self._lock:
            try:
                self._parts[queue, call(*arguments)] = future, indexes
                future.left += 1
            except Exception as e:  # whatever it was: the engine's thread goes on, and this part has failed
                if not isinstance(e, FullError):
                    self._breaker.failed("an operation", e)
                future.error = str(e)

    def _later(self, future: _Future, step: Callable[[], None]) -> None:
        """On the worker: what may wait."""
        with self._lock:
            future.left += 1

        def run() -> None:
            try:
                if self._breaker.open:  # since it was put here
                    future.error = _AWAY
                elif time.monotonic() - future.began >= DEADLINE_S:
                    future.error = _LATE
                else:
                    step()
            except Exception as e:  # whatever it was: the worker goes on, and this submit ends
                self._breaker.failed("the manager", e)
                future.error = str(e)
            if self._leave(future):
                self._end(future)

        self._slow.put(run)

    def _work(self) -> None:
        looked = 0.0
        while True:
            try:
                step = self._slow.get(timeout=min(self._locks.due(), TICK_S))
                if step is None:
                    return
                step()
            except queues.Empty:
                pass
            if not self._locks.due():
                self._renew()
            if time.monotonic() >= looked + TICK_S:
                looked = self._cancel_late()

    def _cancel_late(self) -> float:
        """Takes back what has not begun. The deadline counts from LMCache's submit, with the time that it waited for this thread."""
        now = time.monotonic()
        with self._lock:
            late = [part for part, (future, _) in self._parts.items() if now - future.began >= DEADLINE_S]
        for queue, tag in late:
            queue.cancel(tag)
        return now

    def _renew(self) -> None:
        locks = self._locks
        with self._lock:
            locks.where = {k: w for k, w in locks.where.items() if k in locks.count}
        spaces: dict[str, list[Key]] = {}
        for key, (space, size) in locks.where.items():
            spaces.setdefault(space.namespace.instance(size), []).append(key)
        granted = self._settings.lock_seconds
        for instance, keys in spaces.items():
            for first in range(0, len(keys), MAX_KEYS):
                lease = self._breaker.call("a lock", self._client.lease, instance, keys[first : first + MAX_KEYS],
                                           self._settings.lock_seconds, prefix=False, otherwise=None)
                granted = min(granted, lease.seconds or granted) if lease else 1.0
        locks.renew = time.monotonic() + granted / 3 if locks.where else float("inf")

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
        names = [i["id"] for i in self._client.objects("instances")]
        return [int(n[len(space.prefix) :]) for n in names if n.startswith(space.prefix) and n[len(space.prefix) :].isdigit()]

    def _exists(self, future: _Future, space: _Space, keys: list[Key], _views: None, indexes: list[int]) -> None:
        def step() -> None:
            for size in list(space.sizes):
                self._submit(future, indexes, self._loads, self._loads.exists, space.namespace.instance(size), keys)

        self._known(future, space, step)

    def _lock_there(self, future: _Future, space: _Space, keys: list[Key], _views: None, indexes: list[int]) -> None:
        def step() -> None:
            if not space.sizes and time.monotonic() >= space.asked + 1:
                space.sizes.update(self._sizes(space))
                space.asked = time.monotonic()
            locks = self._locks
            for size in list(space.sizes):
                try:
                    lease = self._client.lease(space.namespace.instance(size), keys, self._settings.lock_seconds, prefix=False)
                except NotFoundError:
                    continue  # another space's
                if lease.seconds:
                    locks.renew = min(locks.renew, time.monotonic() + lease.seconds / 3)
                for i, key, hit in zip(indexes, keys, lease.hits):
                    if hit and not future.good[i]:
                        future.good[i] = True
                        locks.where[key] = space, size
            self._worth_loading(future)
            with self._lock:
                for i, key in zip(indexes, keys):
                    if future.good[i]:
                        locks.count[key] = locks.count.get(key, 0) + 1

        self._later(future, step)

    def _delete(self, future: _Future, space: _Space, keys: list[Key], _views: None, indexes: list[int]) -> None:
        def step() -> None:
            for size in list(space.sizes):
                self._submit(future, indexes, self._stores, self._stores.delete, space.namespace.instance(size), keys)

        self._known(future, space, step)


def __getattr__(name: str) -> Any:
    # These derive from classes of LMCache's; the client above does without.
    if name in ("L2Adapter", "RemoteAdapter"):
        from . import _lmcache_classes

        return getattr(_lmcache_classes, name)
    raise AttributeError(f"slabkv.lmcache has no {name}: there are L2Client, L2Adapter, RemoteAdapter")


__all__ = ["L2Client"]
