"""Names within LMCache's keys for all that these lack: the engine's resolved configuration (overrides, quantization, weights), the LoRA adapter
and, inside an engine, the cache salt.

The keys of LMCache's server name a salt; those of LMCache inside an engine name tags of the request. slabkv's vLLM plugin puts the same
name into both before LMCache looks at a request. slabkv.lmcache caches nothing whose key has no such name. Tried with LMCache 0.5.5, 0.5.6 and 0.5.7rc2.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Optional

from ._connector import Settings, log
from ._engines import vllm_identity
from ._weights import fingerprint
from .errors import InvalidError
from .namespace import canonical

TAG = "slabkv"
_KEY = "lmcache.tag." + TAG  # of kv_transfer_params
_MARK = "~slabkv"
_OWN = re.compile(r"~slabkv|~private|[@/\\\0]")  # what a salt must not have to stand in a name as it is
_NAMED = re.compile(r"[^@]*~slabkv-[0-9a-f]{32}\Z")
_MAX_SALT = 80  # LMCache takes 128 in all
_PROCESS = os.urandom(16).hex()

UNNAMED = ("slabkv.lmcache: keys that do not say which engine, LoRA adapter and salt they are of are not cached: install slabkv where the "
           "engine runs, so that vLLM loads its plugin, or give without_plugin: true if all engines are configured alike and no request has "
           "an adapter (nor, with LMCache inside the engine, a salt)")


def named(name: Optional[str]) -> bool:
    """Whether the plugin has made this salt or tag, for a request whose bytes others may have."""
    return name is not None and _NAMED.match(name) is not None


def _digest(parts: Any) -> str:
    return hashlib.blake2b(json.dumps(canonical(parts), sort_keys=True).encode(), digest_size=16).hexdigest()


def _files(path: str) -> Any:
    if not os.path.isdir(path):
        return None
    with os.scandir(path) as entries:
        return sorted((e.name, s.st_size, s.st_mtime_ns) for e in entries for s in [e.stat()])


class Adapters:
    """LoRA adapters by their weights, since two may have one name. Files that change under the running engine leave open which of them
    made the bytes."""

    def __init__(self) -> None:
        self._seen: dict[Any, tuple[Any, str]] = {}

    def name(self, lora: Any) -> str:
        """Of the weights; InvalidError where they cannot be told apart."""
        path = os.path.expanduser(lora.lora_path)
        files = _files(path)
        if files is None:  # a name of the hub may be another commit when the engine loads it
            raise InvalidError(f"LoRA adapter '{lora.lora_name}' is no directory with weights", field="lora")
        which = (lora.lora_int_id, path)
        seen = self._seen.get(which)
        if seen is None:
            seen = self._seen[which] = files, fingerprint(path)
        if seen[0] != files:
            raise InvalidError(f"the files of LoRA adapter '{lora.lora_name}' have changed while the engine runs", field="lora")
        return seen[1]


def _engine(config: Any) -> Any:
    """Returns the engine's resolved configuration. Weights that cannot be told apart here are left to slabkv.lmcache, which asks for them."""
    try:
        return vllm_identity(Settings("slabkv.lmcache", {}), config)
    except InvalidError:
        return vllm_identity(Settings("slabkv.lmcache", {"namespace_tag": "told elsewhere"}), config)


class AdapterNames:
    """Names of one engine's adapters, by all that shapes their bytes."""

    def __init__(self, lora_config: Any = None) -> None:
        self._lora = {x: str(getattr(lora_config, x, None)) for x in ("lora_dtype", "target_modules")}
        self._adapters = Adapters()

    def parts(self, lora: Any) -> Any:
        """Returns the parts of a request's adapter, or None; InvalidError where its weights cannot be told apart."""
        return None if lora is None else {**self._lora, "weights": self._adapters.name(lora), "3d": getattr(lora, "is_3d_lora_weight", False)}

    def __call__(self, request: Any) -> list[tuple[str, str, str]]:
        """Returns the extra keys that vLLM hashes with the tokens of a request: the adapter's weights in the place of its path, which may lead to
        others on another host. Weights that cannot be told apart have a name of this process and of these files alone."""
        lora = request.lora_request
        if not lora:
            return []
        name = getattr(request, "slabkv_adapter", None)
        if name is None:
            try:
                name = _digest(self.parts(lora))
            except (InvalidError, OSError) as e:
                log.warning("slabkv: %s: what it computes is found by this process alone", e)
                name = _digest([_PROCESS, lora.lora_path, _files(os.path.expanduser(lora.lora_path))])
            request.slabkv_adapter = name
        return [("lora", lora.lora_name, name)]


def name_adapters(lora_config: Any) -> None:
    """Makes vLLM's block hashes in this process name an adapter by its weights. Does nothing in an engine without adapters."""
    if lora_config is None:
        return
    from vllm.v1.core import kv_cache_utils

    if not callable(getattr(kv_cache_utils, "_gen_lora_extra_hash_keys", None)):
        raise InvalidError("slabkv.vllm: this vLLM does not let its block hashes name LoRA adapters by their weights: use it without adapters",
                           field="lora")
    if not isinstance(kv_cache_utils._gen_lora_extra_hash_keys, AdapterNames):
        kv_cache_utils._gen_lora_extra_hash_keys = AdapterNames(lora_config)


class Names:
    """Names of the requests of one engine with this configuration of vLLM's."""

    def __init__(self, config: Any = None) -> None:
        self._engine = _digest(_engine(config))
        self._adapters = AdapterNames(getattr(config, "lora_config", None))
        self._told: set[str] = set()

    def of(self, request: Any) -> str:
        """Salt, mark, and a digest of all. What cannot be named has a name that nobody else has."""
        salt = request.cache_salt or ""
        readable = len(salt) <= _MAX_SALT and not _OWN.search(salt)
        lora = getattr(request, "lora_request", None)
        try:
            if getattr(request, "prompt_embeds", None) is not None:
                raise InvalidError("a prompt of embeddings has no tokens", field="prompt_embeds")
            made_by = self._adapters.parts(lora)
        except (InvalidError, OSError) as e:
            if str(e) not in self._told:
                self._told.add(str(e))
                log.warning("slabkv.lmcache: %s: such requests are not cached", e)
            return f"~private-{_digest([_PROCESS, request.request_id])}"
        return f"{salt if readable else ''}{_MARK}-{_digest([self._engine, salt, made_by])}"


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
    names, ask = Names(config), connector.get_num_new_matched_tokens

    def get_num_new_matched_tokens(request: Any, *arguments: Any, **more: Any) -> Any:
        name, salt = names.of(request), request.cache_salt
        tag(request, name)
        request.cache_salt = name
        try:
            return ask(request, *arguments, **more)
        finally:
            request.cache_salt = salt  # vLLM's own hashes have it

    connector.get_num_new_matched_tokens = get_num_new_matched_tokens
    log.info("slabkv.lmcache: LMCache's keys name the engine's configuration, LoRA adapters and salts")


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
