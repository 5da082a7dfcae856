"""Lookups for an engine that asks again at each step until it has an answer: verdicts by key, found in a thread of their own.

A probe is one question about one key. Its answer belongs to this probe alone, so an answer that comes after a newer verdict, or after
the last request that asked has ended, changes nothing. A probe without an answer is a miss after DEADLINE_S.

Threads: all methods are for one thread at a time; `ask` is called in the thread of this object.
"""

from __future__ import annotations

import queue as queues
import threading
import time
from collections.abc import Callable, Iterable
from typing import Optional

from ._budget import DEADLINE_S
from ._connector import log


class _Probe:
    __slots__ = ("answer", "began", "requests", "verdict")

    def __init__(self, began: float) -> None:
        self.began = began
        self.answer: Optional[bool] = None  # written by the thread that asks
        self.verdict: Optional[bool] = None
        self.requests: set[str] = set()


class Lookups:
    """Verdicts of keys, each for as long as a request that asked for it lives."""

    def __init__(self, ask: Callable[[list[bytes]], Iterable[bool]], clock: Callable[[], float] = time.monotonic) -> None:
        """ask(keys): which are there; the keys of one request and one step, in their order. May wait."""
        self._ask = ask
        self._clock = clock
        self._probes: dict[bytes, _Probe] = {}
        self._asked: dict[str, list[bytes]] = {}  # by request
        self._step: dict[str, list[tuple[bytes, _Probe]]] = {}  # by request, until flush
        self._queue: queues.SimpleQueue[Optional[dict[str, list[tuple[bytes, _Probe]]]]] = queues.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="slabkv-lookups", daemon=True)
        self._thread.start()

    def lookup(self, key: bytes, request: str) -> Optional[bool]:
        """Whether the key is there; None: not known yet, ask again after flush."""
        probe = self._probes.get(key)
        if probe is None:
            probe = self._probes[key] = _Probe(self._clock())
            self._step.setdefault(request, []).append((key, probe))
        if request not in probe.requests:
            probe.requests.add(request)
            self._asked.setdefault(request, []).append(key)
        if probe.verdict is None:
            probe.verdict = False if probe.answer is None and self._late(probe) else probe.answer
        return probe.verdict

    def _late(self, probe: _Probe) -> bool:
        return self._clock() - probe.began >= DEADLINE_S

    def flush(self) -> None:
        """The end of a step: what was new in it is asked for, each request's keys in one call."""
        if self._step:
            self._queue.put(self._step)
            self._step = {}

    def mark_miss(self, keys: Iterable[bytes]) -> None:
        """A load of these failed: they are misses for all requests that know of them, whatever a probe under way answers."""
        for key in keys:
            probe = self._probes.get(key)
            if probe is not None:
                probe.verdict = False

    def cleanup(self, request: str) -> None:
        """The request has ended: verdicts that no other one has asked for are forgotten."""
        for key in self._asked.pop(request, ()):
            probe = self._probes[key]
            probe.requests.discard(request)
            if not probe.requests:
                del self._probes[key]

    def shutdown(self) -> None:
        """Waits for the call that runs, if one does."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while True:
            step = self._queue.get()
            if step is None:
                return
            for entries in step.values():
                # Nobody waits for the rest any more: a backlog goes by at once.
                wanted = [(k, p) for k, p in entries if p.requests and p.verdict is None and not self._late(p)]
                try:
                    hits = list(self._ask([k for k, _ in wanted])) if wanted else []
                except Exception as e:  # else the thread ends, and every later lookup waits for its deadline
                    log.warning("slabkv: a lookup failed: %s", e)
                    hits = [False] * len(wanted)
                for (_, probe), hit in zip(wanted, hits):
                    probe.answer = bool(hit)


__all__ = ["Lookups"]
