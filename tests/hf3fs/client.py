"""client.py - what runs in an SGLang rank and in a vLLM worker against a metadata server of hf3fs.

Written from what they send and do, with no code of theirs or ours: one requests.Session for each process, four
attempts for a call (no timeout), no body for 204, -1 for "no page". And the data side: one sparse file for each rank
and pool, made by whoever comes first, page p at p * bytes_per_page; of a batch whose pages are not all there the
reader closes itself for good.
"""

import hashlib
import json
import os
import sys

try:
    import requests
    import urllib3
except ImportError as e:
    print(f"skipped: {e} (package python3-requests)")
    sys.exit(77)

ATTEMPTS = 4


class GaveUp(RuntimeError):
    """What ends a thread of SGLang for good: an error that outlasted the retries."""


def packed(fields):
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


class Calls:
    """POST of compact JSON below one URL; any 2xx without a body is {}."""

    def __init__(self, url):
        self.url = url.rstrip("/")
        again = urllib3.util.retry.Retry(total=ATTEMPTS - 1, backoff_factor=0.3, status_forcelist=[500, 502, 503, 504],
                                         allowed_methods=["GET", "POST"])
        adapter = requests.adapters.HTTPAdapter(max_retries=again, pool_connections=256, pool_maxsize=256)
        self.session = requests.Session()
        self.session.mount("http://", adapter)

    def post(self, path, fields):
        try:
            answer = self.session.post(f"{self.url}/{path}", data=packed(fields),
                                       headers={"Content-Type": "application/json"})
            answer.raise_for_status()
        except requests.exceptions.RequestException as e:
            raise GaveUp(f"{path}: {e}") from e
        return json.loads(answer.content) if answer.status_code != 204 and answer.content else {}

    def close(self):
        self.session.close()


class Metadata(Calls):
    """The seven calls of SGLang for one rank and namespace."""

    def __init__(self, url, rank=0, namespace="kv"):
        super().__init__(url)
        self.rank, self.namespace = rank, namespace

    def call(self, endpoint, **fields):
        return self.post(f"{self.rank}/{endpoint}", {**fields, "namespace": self.namespace})

    def initialize(self, num_pages):
        assert self.call("initialize", num_pages=num_pages) == {}

    def exists(self, keys):
        return self.call("exists", keys=keys)["exists"]

    def reserve(self, keys):
        """[(is there already, page or -1)]; (True, -1): somebody is writing it"""
        indices = self.call("reserve_and_allocate_page_indices", keys=[[k, ""] for k in keys])["indices"]
        assert len(indices) == len(keys), indices
        return [(there, page) for there, page in indices]

    def confirm(self, written, released=()):
        assert self.call("confirm_write", written_keys_to_confirm=[list(w) for w in written],
                         pages_to_release=list(released)) == {}

    def delete(self, keys):
        assert self.call("delete_keys", keys=keys) == {}

    def clear(self):
        assert self.call("clear") == {}

    def get(self, keys):
        """[page or None]"""
        return self.call("get_page_indices", keys=keys)["indices"]


class Vllm(Calls):
    """The calls of a vLLM worker of one rank, or of its scheduler."""

    def __init__(self, url, rank=0):
        super().__init__(url)
        self.rank = rank

    def initialize(self, num_pages, role="worker"):
        return self.post(f"rank/{self.rank}/initialize", {"num_pages": num_pages, "role": role})["message"]

    def allocate(self, keys):
        """{key: page or -1}"""
        answer = self.post("keys/batch_allocate", {"rank": self.rank, "keys": [[k, ""] for k in keys]})
        assert answer["rank"] == self.rank, answer
        return dict(answer["results"])

    def confirm(self, written, released=()):
        fields = {"rank": self.rank, "confirmations": [list(w) for w in written], "pages_to_release": list(released)}
        assert self.post("keys/confirm_write", fields) == {}

    def exists(self, keys):
        return self.post("keys/batch_exists", {"keys": keys})["exists"]

    def locations(self, keys):
        return self.post("keys/get_locations", {"rank": self.rank, "keys": keys})["locations"]

    def clear(self):
        assert self.post("clear", {}) == {}


# ---- the data side -------------------------------------------------------------------------------


def page_of(key, n):
    """The n bytes that belong to this key: its name, then what only it gives."""
    name = key.encode()
    head = len(name).to_bytes(2, "big") + name
    return (head + hashlib.shake_128(name).digest(n))[:n]


def whose(page):
    """Which key's bytes these are, for a message."""
    n = int.from_bytes(page[:2], "big")
    return page[2:2 + n].decode(errors="replace") if page.strip(b"\0") else "(nothing)"


class PageFile:
    """The file of one rank and pool, as one client has it open."""

    def __init__(self, prefix, rank, num_pages, bytes_per_page, namespace="kv"):
        self.path = f"{prefix}.{rank}.bin" + ("" if namespace == "kv" else f".{namespace}")
        self.num_pages, self.bytes_per_page = num_pages, bytes_per_page
        self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        os.ftruncate(self.fd, num_pages * bytes_per_page)

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def check(self, pages, buffers):
        """Each place has a buffer of its own and lies in the file; or this client has done its last I/O."""
        if len(pages) == buffers and all(0 <= p < self.num_pages for p in pages):
            return
        self.close()
        raise ValueError(f"check: {len(pages)} offsets, {buffers} tensors, pages {pages[:8]}")

    def read(self, pages, buffers):
        self.check(pages, buffers)
        return [os.pread(self.fd, self.bytes_per_page, p * self.bytes_per_page) for p in pages]

    def write(self, pages, values, whole=True):
        self.check(pages, len(values))
        assert not whole or all(len(v) == self.bytes_per_page for v in values)
        return [os.pwrite(self.fd, v, p * self.bytes_per_page) == self.bytes_per_page for p, v in zip(pages, values)]


class Cache:
    """L3 as a rank uses it: metadata and file together."""

    def __init__(self, url, prefix, num_pages, bytes_per_page=512, rank=0, namespace="kv"):
        self.metadata = Metadata(url, rank, namespace)
        self.metadata.initialize(num_pages)
        self.file = PageFile(prefix, rank, num_pages, bytes_per_page, namespace)

    def close(self):
        self.metadata.close()
        self.file.close()

    def leading(self, keys):
        """How many from the begin on are there."""
        there = self.metadata.exists(keys)
        return there.index(False) if False in there else len(there)

    def get(self, keys):
        """The pages' bytes; [] if none is there. A batch with holes ends this client."""
        pages = [p for p in self.metadata.get(keys) if p is not None]
        return self.file.read(pages, len(keys)) if pages else []

    def verify(self, keys):
        """What is read is each key's own; gives how many were read."""
        pages = self.get(keys)
        for key, page in zip(keys, pages):
            assert page == page_of(key, len(page)), f"{key} has the bytes of {whose(page)}"
        return len(pages)

    def put(self, keys, fails=()):
        """Writes what is not there; gives the keys that are confirmed now. Keys in `fails` cannot be written."""
        todo, there = [], []
        for key, (old, page) in zip(keys, self.metadata.reserve(keys)):
            if page == -1:
                continue  # no room, or somebody is writing it
            if old:
                there.append(key)
            else:
                todo.append((key, page))
        self.file.write([p for _, p in todo], [page_of(k, self.file.bytes_per_page) for k, _ in todo])
        good = [(k, p) for k, p in todo if k not in fails]
        bad = [p for k, p in todo if k in fails]
        if good or bad:
            self.metadata.confirm(good, bad)
        return there + [k for k, _ in good]
