"""Load only what pays: how much of a hit arrives before prefill would have computed it, and what gives way when storage is slow.

A connector keeps one Budget for its client. It tells it of each load (`begin`, `end`) and, where the engine does not say how fast its
prefill is, of what was missed and what was stored later (`missed`, `stored`); it asks how many leading blocks of a hit to load (`take`,
or `parts` where calls wait) and whether a store may go (`may_store`). Any thread may call.
"""

from __future__ import annotations

import queue as queues
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional

from ._job import Key
from .errors import InvalidError

# The options of every connector that _connector.COMMON takes from here.
OPTIONS: dict[str, Any] = {
    "min_tokens": 0,  # a hit of fewer is recomputed
    "load_budget_ms": 0,  # the most that loading for one request may be expected to take; 0: no limit but prefill's own time
    "prefill_tokens_per_s": 0,  # of the engine; 0: measured
}

DEADLINE_S = 15.0  # after so long a lookup without an answer is a miss, and a load or store that has not begun has failed

FADE = 0.7  # weight of the loads before the newest one
PROBE_S = 5.0  # after so long without a measurement a small part of a hit is loaded though it would not pay
PROBE_SHARE = 0.05  # of the time that its prefill takes
PART_S = 0.02  # the first part of a load is meant to take so long where prefill's rate is not known
SLOWED = 10  # a part is so short that if storage becomes so many times slower in it
LOSS = 0.08  # no more than this share of the prefill is lost
LATE_S = 0.05  # a load is late after twice what was expected, and no sooner than this
MISSES = 1 << 16  # keys that are remembered until they are stored
HIGH = 32  # samples of prefill's rate; each is a lower bound, so the highest counts


class Load:
    """A load in flight."""

    __slots__ = ("ahead", "began", "expected", "n_bytes")

    def __init__(self, n_bytes: int, ahead: int, began: float, expected: float) -> None:
        self.n_bytes = n_bytes
        self.ahead = ahead  # bytes in flight before it
        self.began = began
        self.expected = expected


def _number(who: str, name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number < float("inf"):
        raise InvalidError(f"{who}: {name} is a number, not negative, not {value!r}", field=name)
    return number


class Budget:
    """Measured rate and queue of the loads of one client, and what they allow."""

    def __init__(self, who: str = "slabkv", min_tokens: Any = 0, load_budget_ms: Any = 0, prefill_tokens_per_s: Any = 0,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.min_tokens = _number(who, "min_tokens", min_tokens)
        self.limit = _number(who, "load_budget_ms", load_budget_ms) / 1000
        self._given = _number(who, "prefill_tokens_per_s", prefill_tokens_per_s)
        self._clock = clock
        self._lock = threading.Lock()
        self._flying: OrderedDict[int, Load] = OrderedDict()  # by identity, oldest first
        self._queued = 0  # bytes in flight
        self._bytes = self._seconds = 0.0  # of finished loads, faded
        self._measured = clock()  # when the last load ended, or a probe was allowed
        self._stale = False  # a probe runs: what it finds replaces what was known
        self._missed: OrderedDict[Key, float] = OrderedDict()
        self._prefill: deque[float] = deque(maxlen=HIGH)
        self._counts = dict(loads=0, loaded_bytes=0, declined_blocks=0, probes=0, stores_dropped=0, pins_asked=0, pins_dropped=0)

    @staticmethod
    def of(settings: Any) -> Budget:
        """From a connector's Settings."""
        return Budget(settings.who, settings.min_tokens, settings.load_budget_ms, settings.prefill_tokens_per_s)

    # ---- what is measured ----

    def begin(self, n_bytes: int) -> Load:
        """A load goes to storage now."""
        with self._lock:
            load = Load(n_bytes, self._queued, self._clock(), self._time(n_bytes))
            self._flying[id(load)] = load
            self._queued += n_bytes
            return load

    def end(self, load: Load, n_bytes: Optional[int] = None) -> None:
        """It is over; n_bytes: how many of it arrived (default all). Misses cost no time worth measuring."""
        arrived = load.n_bytes if n_bytes is None else n_bytes
        with self._lock:
            if self._flying.pop(id(load), None) is None:
                return
            self._queued -= load.n_bytes
            now = self._clock()
            if arrived:
                fade = 0.0 if self._stale else FADE
                self._bytes = self._bytes * fade + arrived + load.ahead
                self._seconds = self._seconds * fade + max(now - load.began, 1e-6)
                self._stale = False
                self._measured = now
            self._counts["loads"] += 1
            self._counts["loaded_bytes"] += arrived

    def missed(self, keys: Iterable[Key]) -> None:
        """These were looked up and are not there: the engine computes them now."""
        with self._lock:
            now = self._clock()
            for key in keys:
                self._missed.setdefault(key, now)
            while len(self._missed) > MISSES:
                self._missed.popitem(last=False)

    def stored(self, keys: Iterable[Key], tokens: int) -> None:
        """Blocks of so many tokens each are given to be stored. What was missed before has been computed in between: prefill is at least
        that fast."""
        with self._lock:
            began = [t for t in (self._missed.pop(key, None) for key in keys) if t is not None]
            if began:
                self._prefill.append(len(began) * tokens / max(self._clock() - min(began), 1e-3))

    # ---- what follows ----

    def _rate(self) -> float:
        """Bytes a second; 0: not known. A load that is still in flight says that it is no faster than that."""
        rate = self._bytes / self._seconds if self._seconds else 0.0
        if self._flying:
            oldest = next(iter(self._flying.values()))
            age = self._clock() - oldest.began
            bound = (oldest.ahead + oldest.n_bytes) / age if age > max(LATE_S, 2 * oldest.expected) else 0.0
            if bound and (not rate or bound < rate):
                return bound
        return rate

    def _time(self, n_bytes: float) -> float:
        rate = self._rate()
        return (self._queued + n_bytes) / rate if rate else 0.0

    @property
    def rate(self) -> float:
        """Of loads, in bytes a second, with what is in flight; 0: not known."""
        with self._lock:
            return self._rate()

    @property
    def prefill(self) -> float:
        """Tokens a second: given, or the highest measured lately; 0: not known."""
        return self._given or max(self._prefill, default=0.0)

    def _pays(self, n: int, block_bytes: int, block_tokens: int) -> int:
        rate, prefill = self._rate(), self.prefill
        if not rate:
            return n
        if self.limit:  # the queue counts: it goes first
            n = max(0, min(n, int((self.limit * rate - self._queued) / block_bytes + 1e-6)))
        # Both grow with the number of blocks, the queue does not: if all do not pay, fewer do not either.
        if n and prefill and self._time(n * block_bytes) > n * block_tokens / prefill:
            return 0
        return n

    def take(self, n: int, block_bytes: int, block_tokens: int) -> int:
        """How many leading blocks of a hit of n to load: those that are expected before prefill would have computed them, and within
        load_budget_ms. Now and then a few more, to learn that storage is fast again."""
        with self._lock:
            if n <= 0 or n * block_tokens < self.min_tokens:
                self._counts["declined_blocks"] += max(n, 0)
                return 0
            k = self._pays(n, block_bytes, block_tokens)
            if k * block_tokens < max(self.min_tokens, 1):
                k = self._probe(n, block_bytes, block_tokens)
            self._counts["declined_blocks"] += n - k
            return k

    def _probe(self, n: int, block_bytes: int, block_tokens: int) -> int:
        now = self._clock()
        if self._flying or now - self._measured < PROBE_S:
            return 0
        self._measured, self._stale = now, True
        self._counts["probes"] += 1
        seconds = PROBE_SHARE * n * block_tokens / self.prefill if self.prefill else PART_S
        return max(1, min(n, int(seconds * self._rate() // block_bytes)))

    def parts(self, n: int, block_bytes: int, block_tokens: int) -> Iterator[int]:
        """For calls that wait: n blocks in parts, short ones first, for as long as it goes on to pay. A part is staked against what was saved
        so far. The caller loads each between begin and end before it asks for the next."""
        began, done, part = self._clock(), 0, 0
        while done < n and self._clock() - began < DEADLINE_S:
            with self._lock:
                part = self._part(n, done, self._clock() - began, block_bytes, block_tokens, part)
            if not part:
                break
            yield part
            done += part
        self.count("declined_blocks", n - done)

    def _part(self, n: int, done: int, elapsed: float, block_bytes: int, block_tokens: int, last: int) -> int:
        rate, prefill, left = self._rate(), self.prefill, n - done
        if not rate:
            return min(left, max(2 * last, (1 << 20) // block_bytes, 1))
        if self.limit and elapsed + self._time(block_bytes) > self.limit or done and not self._pays(left, block_bytes, block_tokens):
            return 0
        if not prefill:
            return min(left, 2 * last or max(1, int(PART_S * rate // block_bytes)))
        stake = (done * block_tokens / prefill - elapsed + LOSS * n * block_tokens / prefill) / SLOWED
        return min(left, max(1, int(stake * rate // block_bytes))) if stake > 0 else 0

    def late(self) -> bool:
        """Whether a load has been in flight for much longer than was expected."""
        with self._lock:
            return self._late()

    def _late(self) -> bool:
        if not self._flying:
            return False
        oldest = next(iter(self._flying.values()))
        return self._clock() - oldest.began > max(LATE_S, 2 * oldest.expected)

    def may_store(self, pending: int = 0, most: int = 1) -> bool:
        """Whether a store may go: not while loads are late, and not beside `most` others. False: it is dropped, and counted."""
        with self._lock:
            ok = pending < most and not self._late()
            self._counts["stores_dropped"] += not ok
            return ok

    def count(self, name: str, n: int = 1) -> None:
        with self._lock:
            self._counts[name] += n

    def stats(self) -> dict[str, float]:
        """Counts, the rates and what is in flight."""
        with self._lock:
            return {**self._counts, "load_bytes_per_s": self._rate(), "prefill_tokens_per_s": self.prefill, "queued_bytes": self._queued,
                    "loads_in_flight": len(self._flying)}


_HINTS = (("slabkv_retain_s", 1.0), ("retention_seconds", 1.0), ("ttl_seconds", 1.0), ("retention_ms", 1e-3), ("duration_ms", 1e-3),
          ("ttl_ms", 1e-3))


def retention(hints: Any) -> float:
    """Seconds that an engine's hint asks blocks to be kept; 0: it asks for nothing. A hint is a mapping with one of the names above (also
    below "retention" or "slabkv"), or an envelope of actions, as vLLM and SGLang carry it: of those the ones that retain."""
    if isinstance(hints, Mapping):
        for name, unit in _HINTS:
            value = hints.get(name)
            if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e12:
                return min(value * unit, 86400.0)
        return max(retention(hints.get("retention")), retention(hints.get("slabkv")))
    actions = getattr(hints, "actions", None)
    if not isinstance(actions, (list, tuple)):
        return 0.0
    return max((retention(a.payload) for a in actions if "ret" in a.action_type.lower()), default=0.0)


class Pins:
    """Soft pins with a time to live, set in the background; what does not fit into its queue is dropped and counted."""

    def __init__(self, pin: Callable[[str, Sequence[Key], float], Any], budget: Budget, most: int = 256) -> None:
        """pin: as Client.pin."""
        self._pin = pin
        self._budget = budget
        self._queue: queues.Queue[Optional[tuple[str, Sequence[Key], float]]] = queues.Queue(most)
        self._thread: Optional[threading.Thread] = None

    def keep(self, instance: Optional[str], keys: Sequence[Key], hints: Any) -> None:
        """Pins what the hint asks for. Never waits."""
        seconds = retention(hints)
        if not seconds or not instance or not keys:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="slabkv-pins", daemon=True)
            self._thread.start()
        try:
            self._queue.put_nowait((instance, list(keys), seconds))
            self._budget.count("pins_asked", len(keys))
        except queues.Full:
            self._budget.count("pins_dropped", len(keys))

    def _work(self) -> None:
        while True:
            task = self._queue.get()
            if task is None:
                return
            try:
                self._pin(*task)
            except Exception:  # whatever it was: later pins need this thread
                self._budget.count("pins_dropped", len(task[1]))

    def close(self) -> None:
        """Before the client is closed."""
        if self._thread:
            while True:
                try:
                    self._queue.put_nowait(None)
                    break
                except queues.Full:
                    self._queue.get_nowait()
            self._thread.join()
            self._thread = None
