"""AsyncClient: the same calls for asyncio. One file descriptor in the loop, no thread of Python's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Optional, Union, overload

from . import _native
from ._job import Key, Keys, Result, Results
from .client import Base, Blocks, Completion, Lease, Queue
from .errors import ClosedError


class AsyncClient(Base):
    """As Client, to be awaited, in one event loop. Close it, or use `async with`.

    A put or get that is cancelled (asyncio.timeout, wait_for) ends only when no I/O touches its buffers any more: at once when it
    had not begun, else when storage answers. So buffers may be used again as soon as the await is over, however it ended."""

    _queue: Optional[Queue] = None
    _loop: Optional[asyncio.AbstractEventLoop] = None
    _ending = False
    _waiters: dict[int, asyncio.Future[Completion]]

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _ready_queue(self) -> Queue:
        loop = asyncio.get_running_loop()
        if self._ending:
            raise ClosedError("this AsyncClient is closed", field="handle")
        if self._queue is None:
            self._queue, self._loop, self._waiters = Queue(self), loop, {}
            loop.add_reader(self._queue.fileno(), self._on_readable)
        elif loop is not self._loop:
            raise RuntimeError("slabkv: this AsyncClient is used in another event loop: open one in each")
        return self._queue

    def _on_readable(self) -> bool:
        """False: nothing was over."""
        assert self._queue
        done = self._queue._collect()  # pyright: ignore[reportPrivateUsage]
        found = bool(done)
        while done:
            waiter = self._waiters.get(done[0].tag)
            if waiter and not waiter.done():
                waiter.set_result(done[0])
            del done[0]
        return found

    async def _operation(self, kind: int, instance: str, keys: Keys, blocks: Optional[Blocks] = None, parent: Optional[Key] = None,
                         independent: bool = False) -> Results:
        if not keys:
            return Results([])
        queue = self._ready_queue()
        waiter: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        tag = queue._submit(kind, instance, keys, blocks, parent, independent)  # pyright: ignore[reportPrivateUsage]
        self._waiters[tag] = waiter
        cancelled: Optional[asyncio.CancelledError] = None
        try:
            while not waiter.done():
                try:
                    await asyncio.shield(waiter)
                except asyncio.CancelledError as e:
                    cancelled = e
                    if not self._ending:
                        queue.cancel(tag)
                        self._on_readable()  # what it took before a signal handler raised
        finally:
            self._waiters.pop(tag, None)
        if cancelled:
            raise cancelled
        done = waiter.result()
        if done.error:
            raise done.error
        if Result.CANCELLED in done.results:
            raise ClosedError("this AsyncClient was closed before the operation began", field="handle")
        return done.results

    async def _thread(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)

    async def close(self) -> None:
        """Waits for what has begun; what has not ends with ClosedError. No operation is awaited in vain."""
        self._ending = True
        if self._queue and self._loop:
            await self._thread(self._queue._stop)  # pyright: ignore[reportPrivateUsage]
            if self._queue:
                while self._on_readable():
                    pass
                self._loop.remove_reader(self._queue.fileno())
                queue, self._queue = self._queue, None
                queue.close()
        await self._thread(self._handle.close)

    async def put_instance(self, instance: str, size: Union[int, Mapping[str, int]], *, tokens: int = 0, group: Optional[str] = None,
                           extra: Optional[str] = None) -> None:
        """As Client.put_instance."""
        await self._thread(self._put_instance, instance, size, tokens, group, extra)

    async def delete_instance(self, instance: str) -> None:
        """As Client.delete_instance."""
        await self._thread(self._delete_instance, instance)

    async def put(self, instance: str, keys: Keys, blocks: Blocks, *, parent: Optional[Key] = None,
                  independent: bool = False) -> Results:
        """As Client.put."""
        return await self._operation(_native.PUT, instance, keys, blocks, parent, independent)

    async def get(self, instance: str, keys: Keys, blocks: Blocks) -> Results:
        """As Client.get."""
        return await self._operation(_native.GET, instance, keys, blocks)

    async def exists(self, instance: str, keys: Keys) -> list[bool]:
        """As Client.exists."""
        return [bool(r) for r in await self._operation(_native.EXISTS, instance, keys)]

    async def delete(self, instance: str, keys: Keys) -> list[bool]:
        """As Client.delete."""
        return [bool(r) for r in await self._operation(_native.DELETE, instance, keys)]

    async def purge(self, instances: Optional[Iterable[str]] = None, *, prefix: Optional[str] = None, group: Optional[str] = None,
                    tenant: Optional[str] = None) -> dict[str, Any]:
        """As Client.purge."""
        return await self._thread(self._purge, instances, prefix, group, tenant)

    @overload
    async def match(self, instances: str, keys: Keys) -> int: ...  # pyright: ignore[reportOverlappingOverload]
    @overload
    async def match(self, instances: Sequence[str], keys: Keys) -> list[int]: ...
    async def match(self, instances: Union[str, Sequence[str]], keys: Keys) -> Union[int, list[int]]:
        """As Client.match."""
        found = await self._thread(self._match, [instances] if isinstance(instances, str) else instances, keys)
        return found[0] if isinstance(instances, str) else found

    async def lease(self, instance: str, keys: Keys, seconds: float = 10.0, *, prefix: bool = True) -> Lease:
        """As Client.lease: `with await client.lease(...) as lease:`."""
        return await self._thread(self._lease, instance, keys, seconds, prefix)

    async def pin(self, instance: str, keys: Keys, seconds: Optional[float] = None, *, hard: bool = False) -> int:
        """As Client.pin."""
        return await self._thread(self._pin, instance, keys, seconds, hard)

    async def unpin(self, instance: str, keys: Optional[Keys] = None) -> int:
        """As Client.unpin."""
        return await self._thread(self._unpin, instance, keys)

    async def stats(self) -> dict[str, Any]:
        """As Client.stats."""
        return await self._thread(self._call, "GET", "/v1/stats", None)

    async def objects(self, kind: str, *, limit: Optional[int] = None, after: str = "") -> AsyncIterator[dict[str, Any]]:
        """As Client.objects: `async for one in client.objects("groups")`."""
        while limit is None or limit > 0:
            page = await self._thread(self._page, kind, limit, after)
            for one in page[kind]:
                yield one
            limit = None if limit is None else limit - len(page[kind])
            after = page.get("next", "")
            if not after:
                break

    async def call(self, method: str, path: str, body: object = None) -> Any:
        """As Client.call."""
        return await self._thread(self._call, method, path, body)

    async def ready(self) -> bool:
        """As Client.ready."""
        return await self._thread(self._ready)
