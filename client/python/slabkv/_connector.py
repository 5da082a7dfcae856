"""What all connectors share: their options, where the weights' fingerprint comes from, and a manager that is not there.

A connector never raises into a running engine: what goes wrong is a miss, or a store that did not happen, and one line in the log.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Optional

from . import _budget
from .client import Client
from .errors import Error, InvalidError, TimedOutError, UnreachableError
from .namespace import fingerprint

log = logging.getLogger("slabkv")

# The options of every connector; each adds its own.
COMMON: dict[str, Any] = {
    "url": None,  # of the manager; several as a list, or with commas
    "token": None,
    "timeout": 2.0,  # seconds that one call to the manager may take: the most that a request waits for a cache that is gone
    "retry": 5.0,  # seconds without a call after the manager could not be reached
    "mounts": None,
    "engine": None,
    "ca_file": None,
    "group": None,
    "namespace_tag": None,  # stands for the weights; needed where they cannot be told from files
    "kv_dtype": None,  # exact type of the KV cache, where the engine does not tell
    "options": None,  # more of slabkv.Client's, by name
    **_budget.OPTIONS,
}


def engine_config() -> Any:
    """vLLM's own configuration, or None. A tier or a storage plugin is not given it, but what makes them has it."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        own = getattr(frame.f_locals.get("self"), "__dict__", {})
        for config in (frame.f_locals.get("vllm_config"), own.get("vllm_config"), own.get("_vllm_config")):
            if hasattr(config, "parallel_config"):
                return config
        frame = frame.f_back
    return None


class Settings:
    """Options by name, checked: an unknown one is refused with what there is."""

    def __init__(self, who: str, given: Mapping[str, Any], **own: Any) -> None:
        known = {**COMMON, **own}
        for name in given:
            if name not in known:
                raise InvalidError(f"{who}: there is no option '{name}'; there are {', '.join(sorted(known))}", field=name)
        self.who = who
        self.values: dict[str, Any] = {**known, **given}
        for name in ("timeout", "retry"):
            try:
                self.values[name] = float(self.values[name])
            except (TypeError, ValueError):
                raise InvalidError(f"{who}: {name} is a number of seconds, not {self.values[name]!r}", field=name) from None

    def __getattr__(self, name: str) -> Any:
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(name) from None

    def client(self) -> Client:
        """A client with these options. Contacts nobody."""
        url = self.values["url"]
        if isinstance(url, str):
            url = [u.strip() for u in url.split(",") if u.strip()]
        return Client(url, token=self.token, timeout=self.timeout, mounts=self.mounts, engine=self.engine, ca_file=self.ca_file,
                      options=self.values["options"])

    def weights(self, model: str, revision: Optional[str] = None) -> str:
        """The namespace_tag, else the fingerprint of the model's files or its revision."""
        tag = self.namespace_tag
        if tag:
            return f"tag:{tag}"
        try:
            return fingerprint(model, revision)
        except InvalidError as e:
            raise InvalidError(f"{self.who}: {e.message}", field="namespace_tag") from None


class Breaker:
    """After the manager could not be reached nobody asks it for `retry` seconds: misses then cost nothing."""

    def __init__(self, who: str, retry: float) -> None:
        self.who = who
        self.retry = retry
        self.until = 0.0
        self.told = 0.0

    @property
    def open(self) -> bool:
        return time.monotonic() < self.until

    def failed(self, what: str, e: BaseException) -> None:
        """Notes a failure; the log has one line for each pause, or each 10 s."""
        now = time.monotonic()
        if isinstance(e, (UnreachableError, TimedOutError)):
            self.until = now + self.retry
            rest = f"; no call for {self.retry:g} s"
        else:
            rest = ""
        if now >= self.told:
            self.told = now + max(10.0, self.retry)
            log.warning("%s: %s: %s%s; going on without the cache", self.who, what, e, rest)

    def call(self, what: str, function: Callable[..., Any], *arguments: Any, otherwise: Any, **named: Any) -> Any:
        """function(...), or `otherwise` when it cannot be done now."""
        if self.open:
            return otherwise
        try:
            return function(*arguments, **named)
        except (Error, OSError, MemoryError) as e:
            self.failed(what, e)
            return otherwise
