"""What LMCache's keys lack, as a name within them: the LoRA adapter and, inside an engine, the cache salt.

The keys of LMCache's server name a salt; those of LMCache inside an engine name tags of the request. slabkv's vLLM plugin puts the same
name into both before LMCache looks at a request. slabkv.lmcache caches nothing whose key has no such name. Tried with LMCache 0.5.6.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Optional

from ._connector import log
from .errors import InvalidError
from .namespace import fingerprint

TAG = "slabkv"
_KEY = "lmcache.tag." + TAG  # of kv_transfer_params
_MARK = "~slabkv"
_OWN = re.compile(r"~slabkv|~private|[@/\\\0]")  # what a salt must not have to stand in a name as it is
_NAMED = re.compile(r"[^@]*~slabkv(-[0-9a-f]{32})?\Z")
_MAX_SALT = 80  # LMCache takes 128 in all
_PROCESS = os.urandom(16).hex()

UNNAMED = ("slabkv.lmcache: keys that do not say which LoRA adapter and salt they are of are not cached: install slabkv where the engine "
           "runs, so that vLLM loads its plugin, or give without_plugin: true if no request has an adapter (nor, with LMCache inside the "
           "engine, a salt)")


def named(name: Optional[str]) -> bool:
    """Whether the plugin has made this salt or tag, for a request whose bytes others may have."""
    return name is not None and _NAMED.match(name) is not None


def _digest(parts: Any) -> str:
    return hashlib.blake2b(json.dumps(parts, sort_keys=True, default=str).encode(), digest_size=16).hexdigest()


class Adapters:
    """LoRA adapters by their weights, since two may have one name. Files that change under the running engine leave open which of them
    made the bytes."""

    def __init__(self) -> None:
        self._seen: dict[Any, tuple[Any, str]] = {}

    def name(self, lora: Any) -> str:
        """Of the weights; InvalidError where they cannot be told apart."""
        path = os.path.expanduser(lora.lora_path)
        files = None
        if os.path.isdir(path):
            with os.scandir(path) as entries:
                files = sorted((e.name, s.st_size, s.st_mtime_ns) for e in entries for s in [e.stat()])
        which = (lora.lora_int_id, path)
        seen = self._seen.get(which)
        if seen is None:
            seen = self._seen[which] = files, fingerprint(path)
        if seen[0] != files:
            raise InvalidError(f"the files of LoRA adapter '{lora.lora_name}' have changed while the engine runs", field="lora")
        return seen[1]


class Names:
    """Names of one engine's requests."""

    def __init__(self, lora_config: Any = None) -> None:
        self._lora = {x: str(getattr(lora_config, x, None)) for x in ("lora_dtype", "target_modules")}
        self._adapters = Adapters()
        self._told: set[str] = set()

    def of(self, request: Any) -> str:
        """Salt, mark and, if there is more to say, a digest of it. What cannot be named has a name that nobody else has."""
        salt = request.cache_salt or ""
        readable = len(salt) <= _MAX_SALT and not _OWN.search(salt)
        lora = getattr(request, "lora_request", None)
        try:
            if getattr(request, "prompt_embeds", None) is not None:
                raise InvalidError("a prompt of embeddings has no tokens", field="prompt_embeds")
            made_by = None if lora is None else {**self._lora, "weights": self._adapters.name(lora),
                                                 "3d": getattr(lora, "is_3d_lora_weight", False)}
        except (InvalidError, OSError) as e:
            if str(e) not in self._told:
                self._told.add(str(e))
                log.warning("slabkv.lmcache: %s: such requests are not cached", e)
            return f"~private-{_digest([_PROCESS, request.request_id])}"
        if made_by is None and readable:
            return salt + _MARK
        return f"{salt if readable else ''}{_MARK}-{_digest([salt, made_by])}"


def tag(request: Any, name: str) -> None:
    """The tag, before those that the request came with. The parameters may be shared, so they are copied."""
    params = getattr(request, "sampling_params", None)
    if params is None:
        return
    extra = params.extra_args if isinstance(params.extra_args, Mapping) else {}
    given = extra.get("kv_transfer_params")
    given = given if isinstance(given, Mapping) else {}
    if given.get(_KEY) == name:
        return
    params = copy.copy(params)
    params.extra_args = {**extra, "kv_transfer_params": {_KEY: name, **{k: v for k, v in given.items() if k != _KEY}}}
    request.sampling_params = params


def _of_lmcache(connector: Any) -> bool:
    return any(re.match(r"lmcache\.|vllm\..*lmcache", c.__module__) for c in type(connector).__mro__)


def guard(connector: Any, config: Any) -> None:
    """LMCache's connectors, below vLLM's MultiConnector, too, see each request by its name. They ask for a request's salt and tags when
    they look it up, before anything else; what they learn elsewhere has no name, so it is not cached."""
    for child in getattr(connector, "_connectors", ()):
        guard(child, config)
    if not _of_lmcache(connector):
        return
    names, ask = Names(getattr(config, "lora_config", None)), connector.get_num_new_matched_tokens

    def get_num_new_matched_tokens(request: Any, *arguments: Any, **more: Any) -> Any:
        name, salt = names.of(request), request.cache_salt
        tag(request, name)
        request.cache_salt = name
        try:
            return ask(request, *arguments, **more)
        finally:
            request.cache_salt = salt  # vLLM's own hashes have it

    connector.get_num_new_matched_tokens = get_num_new_matched_tokens
    log.info("slabkv.lmcache: LMCache's keys name LoRA adapters and salts")


def install() -> None:
    """Guards each connector that vLLM makes from now on in this process."""
    from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory

    make: Callable[..., Any] = KVConnectorFactory.create_connector
    if getattr(make, "slabkv", False):
        return

    def create_connector(config: Any, *arguments: Any, **more: Any) -> Any:
        connector = make(config, *arguments, **more)
        guard(connector, config)
        return connector

    create_connector.slabkv = True  # pyright: ignore[reportFunctionMemberAccess]
    KVConnectorFactory.create_connector = staticmethod(create_connector)
