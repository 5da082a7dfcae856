"""What all connectors share: their options, where the weights' fingerprint comes from, what an engine must have, and a manager that is
not there.

A connector never raises into a running engine: what goes wrong is a miss, or a store that did not happen, and one line in the log.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from typing import Any, Optional

from . import _budget
from ._weights import fingerprint
from .client import Client
from .errors import InvalidError, TimedOutError, UnreachableError

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
    "model": None,  # the weights, if not the model that the engine names
    "revision": None,  # commit of the weights
    "namespace_tag": None,  # stands for the weights; needed where they cannot be told from files
    "fingerprint": "sampled",  # "full" reads every byte of weights in files
    "kv_dtype": None,  # exact type of the KV cache, where the engine does not tell
    "options": None,  # more of slabkv.Client's, by name
    **_budget.OPTIONS,
}


def version_of(package: str) -> str:
    """The release of an engine's package, for sentences and namespaces, since model code and kernels shape bytes, too; "unknown" where it
    does not tell."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return str(getattr(sys.modules.get(package), "__version__", "unknown"))


def require(thing: Any, *names: str) -> None:
    """Raises an AttributeError that names what a class or an object of an engine's lacks: attributes, fields or parameters."""
    has = {*dir(thing), *getattr(thing, "__dataclass_fields__", ()), *(inspect.signature(thing).parameters if callable(thing) else ())}
    missing = [n for n in names if n not in has]
    if missing:
        kind = thing if callable(thing) else type(thing)
        raise AttributeError(f"{kind.__module__}.{kind.__qualname__} has no {', '.join(missing)}")


@contextlib.contextmanager
def relying_on(who: str, package: str, what: str = "what this connector relies on") -> Iterator[None]:
    """Around what a connector takes from an engine, and on its constructor: where a release of the engine lacks a name, a field or a
    parameter, the connector refuses to start, in one sentence."""
    try:
        yield
    except (ImportError, AttributeError, TypeError) as e:
        if isinstance(e, InvalidError):
            raise
        lacks = re.sub(r" \(/.*\)$", "", str(e))  # an ImportError ends with a path
        raise InvalidError(f"{who}: {package} {version_of(package)} lacks {what}: {lacks}; the connector's page names the releases that it "
                           "was tried with", field="engine") from e


def _typed(who: str, name: str, value: Any, default: Any) -> Any:
    """The value of an option, as the type of its default, which is text where there is none. InvalidError names the option."""
    if isinstance(default, bool):
        wanted, value = "true or false", {"true": True, "false": False}.get(str(value).lower(), value)
        fits = isinstance(value, bool)
    elif isinstance(default, (int, float)):
        wanted, fits = "a number", False
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            number, fits = float(value), not isinstance(value, bool)
            value = int(number) if isinstance(default, int) and number.is_integer() else number
    elif name == "options":
        wanted, fits = "a mapping", value is None or isinstance(value, Mapping)
    elif name in ("url", "mounts"):
        wanted = "text, or a list of texts"
        fits = value is None or isinstance(value, str) or isinstance(value, (list, tuple)) and all(isinstance(u, str) for u in value)
    else:
        wanted, fits = "text", value is None or isinstance(value, (str, os.PathLike))
    if not fits:
        raise InvalidError(f"{who}: {name} is {wanted}, not {value!r}", field=name)
    return value


class Settings:
    """Options by name, checked: an unknown one is refused with what there is."""

    def __init__(self, who: str, given: Mapping[str, Any], **own: Any) -> None:
        known = {**COMMON, **own}
        for name in given:
            if name not in known:
                raise InvalidError(f"{who}: there is no option '{name}'; there are {', '.join(sorted(known))}", field=name)
        self.who = who
        self.values: dict[str, Any] = {**known, **{name: _typed(who, name, value, known[name]) for name, value in given.items()}}
        if self.values["fingerprint"] not in ("sampled", "full"):
            raise InvalidError(f"{who}: fingerprint is sampled or full, not {self.values['fingerprint']!r}", field="fingerprint")

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

    def weights(self, model: str, revision: Optional[str] = None, hub_cache: Optional[str] = None) -> str:
        """The namespace_tag, else the fingerprint of the model's files or its commit."""
        tag = self.namespace_tag
        if tag:
            return f"tag:{tag}"
        try:
            return fingerprint(model, revision, full=self.fingerprint == "full", hub_cache=hub_cache)
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
        except Exception as e:  # whatever it was: an engine's thread that ends leaves its requests waiting
            self.failed(what, e)
            return otherwise
