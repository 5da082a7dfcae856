"""Calls of the C library that a signal handler may interrupt: handlers raise at any line of the main thread's Python.

apart: on the main thread a call that may wait runs on a thread of its own, so that the wait ends when a handler raises, and the
call never does. reading: a call that may be
repeated is tried on the main thread first, for a short time. Handle: a C object, and the memory that it works on.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from queue import SimpleQueue
from typing import Any, Callable, Optional

from . import _native
from .errors import ClosedError, TimedOutError

_FORKED = "was opened by process {}: after a fork the child opens its own"


class _Work:
    __slots__ = ("arguments", "done", "error", "function", "result", "trace")

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.function = function
        self.arguments = arguments
        self.trace = getattr(_traces, "value", None)
        self.result: Any = None
        self.error: Optional[BaseException] = None
        self.done = threading.Lock()
        self.done.acquire()


TRY_MS = 50
_main = threading.main_thread().ident
_traces = threading.local()
_idle: list[SimpleQueue[_Work]] = []  # of threads that wait for work
_open: set[Handle] = set()  # that the library may still work on, but for those within another one


def _after_fork() -> None:
    global _main
    _main = threading.get_ident()
    _idle.clear()


os.register_at_fork(after_in_child=_after_fork)


def trace(traceparent: Optional[bytes]) -> int:
    """slabkv_trace for this thread, and for calls that it makes apart."""
    rc: int = _native.library().trace(traceparent)
    if rc == 0:
        _traces.value = traceparent
    return rc


def _serve(inbox: SimpleQueue[_Work]) -> None:
    while True:
        work = inbox.get()
        try:
            if work.trace != getattr(_traces, "value", None):
                trace(work.trace)
            work.result = work.function(*work.arguments)
        except BaseException as e:
            work.error = e
        del work.function, work.arguments
        _idle.append(inbox)
        work.done.release()
        del work


def begin_apart(function: Callable[..., Any], *arguments: Any) -> _Work:
    """Begins the call on another thread, which keeps the arguments alive. RuntimeError: there can be no thread (any more)."""
    work = _Work(function, arguments)
    try:
        inbox = _idle.pop()
    except IndexError:
        inbox = SimpleQueue()
        threading.Thread(target=_serve, args=(inbox,), name="slabkv", daemon=True).start()
    inbox.put(work)
    return work


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls the function. On the main thread it runs apart: where a signal handler raises, it goes on alone, to its end."""
    if threading.get_ident() != _main or sys.is_finalizing():
        return function(*arguments)
    try:
        work = begin_apart(function, *arguments)
    except RuntimeError:
        return function(*arguments)
    work.done.acquire()
    if work.error is None:
        return work.result
    try:
        raise work.error
    finally:
        work.error = None  # no cycle with its traceback


def reading(function: Callable[..., Any], *arguments: Any) -> Any:
    """As apart, for a function that makes one request, which may be made twice (it reads, or leases). The main thread first tries it by itself
    for TRY_MS, which is less than a signal may wait: another thread costs 20 us of CPU. A call that takes longer begins anew apart."""
    if threading.get_ident() == _main and not sys.is_finalizing():
        try:
            _native.library().try_for(TRY_MS)
            return function(*arguments)
        except TimedOutError:
            pass
        except BaseException:
            _native.library().try_for(0)  # it may have come to no request
            raise
    return apart(function, *arguments)


class Handle:
    """A C object that is closed once, when no call uses it. No count says which calls run, as a signal handler could raise beside any
    line that counts: the frames of `call` on the threads' stacks do. `keep` is what the library may still read and write. Handles
    `within` another one are closed before it, in whatever order the collector finds their owners."""

    def __init__(self, what: str, pointer: int, close: Callable[[int], Any], within: Optional[Handle] = None) -> None:
        self.what = what
        self.pointer: Optional[int] = pointer
        self.pid = os.getpid()
        self.closing = False
        self.keep: dict[int, Any] = {}
        self._inner: set[Handle] = set()
        self._outer = within._inner if within is not None else _open
        self._close = close
        self._lock = threading.Lock()
        self._outer.add(self)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """function(pointer, ...). ClosedError."""
        if os.getpid() != self.pid:
            raise ClosedError(f"this {self.what} {_FORKED.format(self.pid)}", field="handle")
        if self.closing:
            raise ClosedError(f"this {self.what} is closed", field="handle")
        return function(self.pointer, *arguments)

    def in_use(self, but: Optional[int] = None) -> bool:
        """Whether a thread is in `call`, other than `but`, which is interrupted there."""
        for thread, frame in sys._current_frames().items():
            at = frame if thread != but else None
            while at is not None:
                if at.f_code is Handle.call.__code__ and at.f_locals.get("self") is self:
                    return True
                at = at.f_back
        return False

    def _end(self, asked_by: int) -> None:
        self.closing = True
        for inner in self._inner.copy():
            inner._end(asked_by)
        with self._lock:
            while self.in_use(asked_by):
                time.sleep(0.002)
            pointer, self.pointer = self.pointer, None
            if pointer is not None:
                self._close(pointer)
                self.keep.clear()
                self._outer.discard(self)

    def close(self) -> None:
        """No more calls; waits for those that run. Where the wait is interrupted it closes all the same, later."""
        if os.getpid() == self.pid:
            self.closing = True
            apart(self._end, threading.get_ident())

    def drop(self) -> None:
        """As close, for what nobody refers to any more: waits for no call that was left behind. The last reference may be a frame that
        in_use lets go, within _end of this handle or of one within it, on this thread: so never waits for a lock either."""
        if os.getpid() != self.pid or self.pointer is None:
            return
        self.closing = True
        if not any(h._lock.locked() or h.in_use() for h in (self, *self._inner.copy())):
            self._end(0)
        else:
            with contextlib.suppress(RuntimeError):  # the interpreter ends
                begin_apart(self._end, 0)
