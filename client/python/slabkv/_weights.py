"""The fingerprint of a model's weights: equal on all hosts that have the same files, wherever these lie.

A safetensors header names every tensor, so every tensor is part of the fingerprint: name, type, shape, and its bytes, of which a large one
gives samples. Files without such a header are read whole. The result for each file is kept in a cache (cache_folder()).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Optional

from .errors import InvalidError

_SAMPLE = 4096  # bytes of one sample
_STEP = 1 << 20  # bytes between two samples, at most
_SAMPLES = 16  # least number for a tensor, without the one at its end
_CHUNK = 8 << 20
_VERSION = 1  # of this way of hashing
_TICK = 2.0  # seconds in which a second change of a file may leave its times as they are
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NO_WEIGHTS = re.compile(r"(training_args|optimizer|scheduler|scaler|rng_state|trainer_state)[^/]*")
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf", ".tensors", ".npz")
# Files beside the weights that change what the weights mean: configurations, scales, and code of the model.
_MEANING = re.compile(r"(config|params|adapter_config|quant(ize)?_config|hf_quant_config)\.json|.*\.index\.json|.*scales.*\.json|.*\.py")


def cache_folder() -> str:
    """Returns the folder that keeps digests of files: $XDG_CACHE_HOME/slabkv/fingerprints."""
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "slabkv", "fingerprints")


def _read(fd: int, at: int, n: int) -> bytes:
    data = os.pread(fd, n, at)
    while len(data) < n:
        more = os.pread(fd, n - len(data), at + len(data))
        if not more:
            raise InvalidError("a file of weights ends too early", field="model")
        data += more
    return data


def _tensors(fd: int, size: int) -> Optional[list[tuple[str, int, int]]]:
    """Returns name, type and shape of each tensor of a safetensors file, and the begin and end of its bytes, in the order of names. None: the
    file is no safetensors file."""
    try:
        length = int.from_bytes(_read(fd, 0, 8), "little")
        if not 0 < length <= size - 8:
            return None
        header = json.loads(_read(fd, 8, length))
        found = [(json.dumps([name, header[name]], sort_keys=True), 0, 0) for name in ("__metadata__",) if name in header]
        for name, tensor in sorted(header.items()):
            if name != "__metadata__":
                begin, end = tensor["data_offsets"]
                if not 0 <= begin <= end <= size - 8 - length:
                    return None
                found.append((json.dumps([name, tensor["dtype"], tensor["shape"]]), 8 + length + begin, 8 + length + end))
        return found
    except (InvalidError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _pieces(begin: int, end: int, full: bool) -> Iterator[tuple[int, int]]:
    """Yields offsets and lengths of the bytes to be hashed."""
    n = max(_SAMPLES, (end - begin) // _STEP)
    if full or end - begin <= (n + 1) * _SAMPLE:
        for at in range(begin, end, _CHUNK):
            yield at, min(_CHUNK, end - at)
    else:
        for i in range(n + 1):
            yield begin + i * (end - begin - _SAMPLE) // n, _SAMPLE


def _digest(path: str, full: bool) -> str:
    """Hashes one file, which must not change meanwhile."""
    h = hashlib.blake2b(digest_size=16)
    with open(path, "rb", buffering=0) as f:
        before = os.fstat(f.fileno())
        tensors = _tensors(f.fileno(), before.st_size) if path.endswith(".safetensors") else None
        if tensors is not None:
            h.update(b"full" if full else b"sampled")
        for said, begin, end in [("", 0, before.st_size)] if tensors is None else tensors:
            h.update(f"{said}:{end - begin}\0".encode())
            for at, n in _pieces(begin, end, full or tensors is None):
                h.update(_read(f.fileno(), at, n))
        after = os.fstat(f.fileno())
    if (before.st_size, before.st_mtime_ns, before.st_ctime_ns) != (after.st_size, after.st_mtime_ns, after.st_ctime_ns):
        raise InvalidError(f"'{path}' changes while it is read", field="model")
    return h.hexdigest()


def _cached(path: str, full: bool) -> str:
    """Returns _digest(path), from the cache if the file has the same size, times and inode as when it was read."""
    path = os.path.realpath(path)
    s = os.stat(path)
    key = json.dumps([_VERSION, full, path, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns])
    entry = os.path.join(cache_folder(), hashlib.blake2b(key.encode(), digest_size=16).hexdigest())
    try:
        with open(entry, encoding="ascii") as f:
            known = f.read(64)
        if re.fullmatch(r"[0-9a-f]{32}", known):
            return known
    except (OSError, ValueError):
        pass
    digest = _digest(path, full)
    if time.time() - s.st_ctime > _TICK:
        try:
            os.makedirs(cache_folder(), mode=0o700, exist_ok=True)
            temporary = f"{entry}.{os.getpid()}.{os.urandom(4).hex()}"
            with open(temporary, "w", encoding="ascii") as f:
                f.write(digest)
            os.replace(temporary, entry)
        except OSError:
            pass  # read again next time
    return digest


def hub_commit(name: str, revision: Optional[str] = None, folder: Optional[str] = None) -> Optional[str]:
    """Returns the commit that the local hub cache (`folder`, else the one of the environment) has for a name of the Hugging Face hub, or None. Asks
    nobody, and answers None where models come from another hub."""
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name) or ".." in f"{name}{revision or ''}":
        return None
    if any(os.environ.get(x, "").lower() in ("1", "true") for x in ("VLLM_USE_MODELSCOPE", "SGLANG_USE_MODELSCOPE")):
        return None
    e = os.environ
    home = e.get("HF_HOME") or os.path.join(e.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "huggingface")
    cache = folder or e.get("HF_HUB_CACHE") or e.get("HUGGINGFACE_HUB_CACHE") or os.path.join(home, "hub")
    model = os.path.join(os.path.expanduser(cache), "models--" + name.replace("/", "--"))
    try:
        with open(os.path.join(model, "refs", revision or "main"), encoding="ascii") as f:
            commit = f.read(128).strip()
    except (OSError, ValueError):
        return None
    return commit if _COMMIT.fullmatch(commit) and os.path.isdir(os.path.join(model, "snapshots", commit)) else None


def fingerprint(model: str, revision: Optional[str] = None, *, full: bool = False, hub_cache: Optional[str] = None) -> str:
    """Returns a name for the weights of a model.

    model: a directory, or a file, of weights: 32 hexadecimal digits made of its contents, whatever its path. Else a name of the Hugging
    Face hub: its commit, which is `revision` or what the local hub cache (`hub_cache`, else of the environment) has for it. InvalidError if
    there is neither.

    Equal fingerprints of two directories promise: the same files of weights, each with tensors of the same names, types and shapes; equal
    bytes of each tensor up to 68 KiB, and of files other than safetensors; of larger tensors, equal bytes in samples of 4 KiB at begin,
    middle, end and at most 1 MiB apart; equal configurations and code of the model. They do not promise that bytes between two samples are
    equal, as after an edit of a few rows of an embedding: `full` reads every byte. A file that was read stays known by its path, size,
    inode and times."""
    path = os.path.expanduser(model)
    if os.path.isfile(path):
        return _cached(path, full)
    if os.path.isdir(path):
        names = [n for n in sorted(os.listdir(path)) if os.path.isfile(os.path.join(path, n)) and not _NO_WEIGHTS.fullmatch(n)]
        chosen = [n for n in names if n.endswith(_WEIGHTS) or _MEANING.fullmatch(n)]
        if any(n.endswith(_WEIGHTS) for n in chosen):
            with ThreadPoolExecutor(8) as threads:
                digests = list(threads.map(lambda n: _cached(os.path.join(path, n), full), chosen))
            return hashlib.blake2b(json.dumps(list(zip(chosen, digests))).encode(), digest_size=16).hexdigest()
    if revision and _COMMIT.fullmatch(revision):
        return revision
    commit = None if os.path.isdir(path) else hub_commit(model, revision, hub_cache)
    if commit:
        return commit
    raise InvalidError(f"the weights of '{model}' cannot be told apart: it is no directory with weights, and the local hub cache has no commit for "
                       f"revision '{revision or 'main'}' of that name. Give the revision (a commit) or a namespace_tag that changes with the weights",
                       field="namespace_tag")

