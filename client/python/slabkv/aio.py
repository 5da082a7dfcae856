"""AsyncClient: the same calls for asyncio. One file descriptor in the loop, no thread of Python's."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union, overload

from . import _native
from ._job import Key, Keys, Result
from .client import Base, Blocks, Lease, Queue


class AsyncClient(Base):
    """As Client, to be awaited, in one event loop. Close it, or use `async with`.

    A put or get that is cancelled (asyncio.timeout, wait_for) ends only when no I/O touches its buffers any more: at once when it
    had not begun, else when storage answers. So buffers may be used again as soon as the await is over, however it ended."""

    _queue: Optional[Queue] = None
    _loop: Optional[asyncio.AbstractEventLoop] = None

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _ready_queue(self) -> Queue:
        loop = asyncio.get_running_loop()
        if self._queue is None:
            self._queue, self._loop = Queue(self), loop
            loop.add_reader(self._queue.fileno(), self._on_readable)
        elif loop is not self._loop:
            raise RuntimeError("slabkv: this AsyncClient is used in another event loop: open one in each")
        return self._queue

    def _on_readable(self) -> None:
        assert self._queue
        for job, completion in self._queue._drain():  # pyright: ignore[reportPrivateUsage]
            if not job.waiter.done():
                job.waiter.set_result(completion)

    async def _operation(self, kind: int, instance: str, keys: Keys, blocks: Optional[Blocks] = None, parent: Optional[Key] = None,
                         independent: bool = False) -> list[Result]:
        if not keys:
            return []
        queue = self._ready_queue()
        waiter: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        tag = queue._submit(kind, instance, keys, blocks, parent, independent, waiter)  # pyright: ignore[reportPrivateUsage]
        cancelled: Optional[asyncio.CancelledError] = None
        while not waiter.done():
            try:
                await asyncio.shield(waiter)
            except asyncio.CancelledError as e:
                cancelled = e
                queue.cancel(tag)
        if cancelled:
            raise cancelled
        done = waiter.result()
        if done.error:
            raise done.error
        return done.results

    async def _thread(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)

    async def close(self) -> None:
        """Waits for what has begun."""
        queue, self._queue = self._queue, None
        if queue and self._loop:
            self._loop.remove_reader(queue.fileno())
            await self._thread(queue.close)
        await self._thread(self._close)

    async def put_instance(self, instance: str, size: Union[int, Mapping[str, int]], *, tokens: int = 0, group: Optional[str] = None,
                           extra: Optional[str] = None) -> None:
        """As Client.put_instance."""
        await self._thread(self._put_instance, instance, size, tokens, group, extra)

    async def delete_instance(self, instance: str) -> None:
        """As Client.delete_instance."""
        await self._thread(self._delete_instance, instance)

    async def put(self, instance: str, keys: Keys, blocks: Blocks, *, parent: Optional[Key] = None,
                  independent: bool = False) -> list[Result]:
        """As Client.put."""
        return await self._operation(_native.PUT, instance, keys, blocks, parent, independent)

    async def get(self, instance: str, keys: Keys, blocks: Blocks) -> list[Result]:
        """As Client.get."""
        return await self._operation(_native.GET, instance, keys, blocks)

    async def exists(self, instance: str, keys: Keys) -> list[bool]:
        """As Client.exists."""
        return [bool(r) for r in await self._operation(_native.EXISTS, instance, keys)]

    async def delete(self, instance: str, keys: Keys) -> list[bool]:
        """As Client.delete."""
        return [bool(r) for r in await self._operation(_native.DELETE, instance, keys)]

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

    async def call(self, method: str, path: str, body: object = None) -> Any:
        """As Client.call."""
        return await self._thread(self._call, method, path, body)

    async def ready(self) -> bool:
        """As Client.ready."""
        return await self._thread(self._ready)
