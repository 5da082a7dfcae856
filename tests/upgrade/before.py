"""before.py - a small store that an older slabkvd left, and what must be found in it.

Written and checked through the HTTP API alone, so that programs of any version serve. The storage's directory is part of the store, so
it lies at a fixed path, a symbolic link to where the store is now; one user at a time.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

LINK = pathlib.Path("/tmp/slabkv-before")
BLOCK, KEYS, GONE = 16384, [f"key-{n}" for n in range(1, 13)], "key-0"
PAGES = [f"page-{n}" for n in range(1, 9)]
PINNED = KEYS[:3]
PARTS = {"specs": [{"name": "k", "size": 4096}, {"name": "v", "size": 8192}], "group": "second"}


def content(key):
    return (key.encode() * BLOCK)[:BLOCK]


@contextlib.contextmanager
def folder():
    """An empty one, at LINK."""
    with tempfile.TemporaryDirectory(prefix="skv-upgrade-") as made:
        end = time.monotonic() + 120
        while True:
            try:
                LINK.symlink_to(made)
                break
            except FileExistsError:
                if not LINK.exists():
                    LINK.unlink(missing_ok=True)  # of a run that was killed
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        try:
            yield pathlib.Path(made)
        finally:
            LINK.unlink()


class Manager:
    def __init__(self, program):
        self.port_file = LINK / "port"
        self.port_file.unlink(missing_ok=True)
        self.log = open(LINK / "log", "ab")
        self.process = subprocess.Popen(
            [program, "--http-port", "0", "--grpc-port", "off", "--port-file", "port", "--storage-root", str(LINK / "data"),
             "--storage-capacity", "1M", "--storage-unit", "64K", "--storage-file-size", "512K", "--owner-lease-ms", "1000"],
            cwd=LINK, stdout=self.log, stderr=self.log)
        self.said_from = (LINK / "log").stat().st_size

    def said(self):
        return (LINK / "log").read_text(encoding="utf-8")[self.said_from:]

    def ready(self):
        end = time.monotonic() + 60
        while True:
            assert self.process.poll() is None and time.monotonic() < end, self.said()
            if self.port_file.exists() and self.port_file.read_text(encoding="ascii").endswith("\n"):
                try:
                    self.call("GET", "/readyz")
                    return self
                except urllib.error.URLError:
                    pass
            time.sleep(0.02)

    def call(self, method, path, body=None):
        url = f"http://127.0.0.1:{self.port_file.read_text(encoding='ascii').strip()}{path}"
        ask = urllib.request.Request(url, body is not None and json.dumps(body).encode() or None, method=method)
        with urllib.request.urlopen(ask, timeout=30) as answer:
            text = answer.read()
            return json.loads(text) if text.startswith(b"{") else text

    def end(self, hard=False):
        self.process.send_signal(signal.SIGKILL if hard else signal.SIGTERM)
        status = self.process.wait(timeout=60)
        assert status == (-signal.SIGKILL if hard else 0), (status, self.said())
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end(hard=True)


def matched(m, instance, keys):
    return m.call("POST", "/v1/match", {"instances": [instance], "keys": keys})["results"][0]["matched"]


def store_blocks(m, slabkv, instance, keys):
    for key in keys:
        subprocess.run([slabkv, "--url", f"http://127.0.0.1:{m.port_file.read_text().strip()}", "--engine", "posix", "put", "--instance", instance,
                        "--key", key, "-"], input=content(key), check=True, stdout=subprocess.DEVNULL)


def write(m, slabkv):
    """Blocks with bytes, one that was deleted, pins, a second group with an instance of two parts, a page space."""
    store_blocks(m, slabkv, "model", [GONE, *KEYS])
    m.call("POST", "/v1/instances/model/delete", {"keys": [GONE]})
    m.call("POST", "/v1/instances/model/pin", {"keys": PINNED, "kind": "hard"})
    m.call("PUT", "/v1/groups/second", {"storages": ["default"]})
    m.call("PUT", "/v1/instances/parts", PARTS)
    session = m.call("POST", "/v1/instances/parts/start", {"keys": KEYS[:4]})["session"]
    m.call("POST", f"/v1/sessions/{session}/finish", {"success": True, "quiesced": True})
    m.call("POST", "/0/initialize", {"num_pages": 32})
    given = m.call("POST", "/0/reserve_and_allocate_page_indices", {"keys": [[p, ""] for p in PAGES]})["indices"]
    m.call("POST", "/0/confirm_write", {"written_keys_to_confirm": [[p, at] for p, (_, at) in zip(PAGES, given)], "pages_to_release": []})


def check(m, slabkv, parts=True):
    """All of it is there. parts: also the blocks without a checksum, which a kill takes away."""
    url = f"http://127.0.0.1:{m.port_file.read_text().strip()}"
    for key in KEYS:
        done = subprocess.run([slabkv, "--url", url, "--engine", "posix", "get", "--instance", "model", "--key", key, "-"], capture_output=True,
                              check=False)
        assert done.returncode == 0 and done.stdout == content(key), (key, done.returncode, done.stderr, m.said())
    assert matched(m, "model", [GONE]) == 0, "a deleted block is back"
    pins = m.call("GET", "/v1/instances/model/pins")["pins"]
    assert len(pins) == len(PINNED) and all(p["kind"] == "hard" for p in pins), pins
    assert m.call("GET", "/v1/instances/parts")["group"] == "second"
    assert not parts or matched(m, "parts", KEYS[:4]) == 4
    assert m.call("POST", "/0/exists", {"keys": PAGES})["exists"] == [True] * len(PAGES)


def pack(out):
    """The store without what every start makes anew."""
    for name in ("log", "port"):
        (LINK / name).unlink(missing_ok=True)
    (LINK / "slabkv.db-reserve").unlink(missing_ok=True)
    subprocess.run(["tar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-C", str(LINK), "-cJf", str(out), "."], check=True)


def unpack(archive):
    subprocess.run(["tar", "-C", str(LINK), "-xJf", str(archive)], check=True)
