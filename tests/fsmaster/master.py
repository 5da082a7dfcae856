"""master.py - real fs-masters and managers without a mount, started and ended as tests/kvcm/server.py does it.

`FsMaster(program, root)` serves directories below `root`; with `prefix` it runs in a network namespace, say. `Manager`
is a slabkvd; `writer` and `check` do what clients do, on the directory itself.
"""

import hashlib
import http.client
import json
import os
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "kvcm"))

from server import Slabkvd, Process, die_with_parent, environment, patience, until  # noqa: E402

__all__ = ["FsMaster", "Manager", "READER", "TOKEN", "call", "content", "die_with_parent", "environment", "patience", "span", "until",
           "uuid_of"]

TOKEN = "0123456789abcdef-admin"
READER = "0123456789abcdef-read"


def call(address, method, path, body=None, token=None, headers=()):
    """(status, what the body is as JSON, or its bytes)."""
    connection = http.client.HTTPConnection(*address, timeout=60)
    head = dict(headers)
    if token:
        head["Authorization"] = f"Bearer {token}"
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    try:
        connection.request(method, path, body, head)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    try:
        return answer.status, json.loads(text)
    except ValueError:
        return answer.status, text


class FsMaster(Process):
    """slabkvd --role fs-master; on `address`, if it is told one, else on loopback and any port."""

    def __init__(self, program, root, address=None, tokens=False, prefix=(), **parameters):
        super().__init__(program)
        self.root, self.fixed, self.prefix = root, address, list(prefix)
        self.parameters = {"role": "fs-master", "root": root, "port-file": "port",
                           **{k.replace("_", "-"): str(v) for k, v in parameters.items()}}
        self.parameters["http-listen"], self.parameters["http-port"] = address or ("127.0.0.1", 0)
        if tokens:
            with open(self.path("tokens"), "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o600)) as f:
                f.write(f"admin default {TOKEN}\nread default {READER}\n")
            self.parameters["tokens-file"] = self.path("tokens")
        self.token = TOKEN if tokens else None

    def spawn(self, arguments):
        self.log = open(self.path("log"), "ab")
        self.process = subprocess.Popen([*self.prefix, self.program, *arguments], cwd=self.dir, stdout=self.log,
                                        stderr=self.log, stdin=subprocess.DEVNULL, env=environment(),
                                        preexec_fn=die_with_parent)

    def start(self):
        if os.path.exists(self.path("port")):
            os.unlink(self.path("port"))
        self.spawn([f"--{k}={v}" for k, v in self.parameters.items()])
        self.port = int(self.await_that(lambda: self.text("port").strip(), "its port file"))

    @property
    def address(self):
        return (self.fixed[0] if self.fixed else "127.0.0.1", self.port)

    def url(self, directory):
        return f"http://{self.address[0]}:{self.port}/{directory}"

    def call(self, method, path, body=None, token=None, **more):
        return call(self.address, method, path, body, token or self.token, **more)


class Manager(Slabkvd):
    """Its storage `default` is not what is tested; the tests register theirs."""

    def __init__(self, program, folder=None, token=None, **parameters):
        super().__init__(program, folder, **parameters)
        if token:
            with open(self.path("fs-token"), "w", encoding="ascii") as f:
                f.write(token + "\n")
            self.parameters["fs-master-token-file"] = self.path("fs-token")

    def call(self, method, path, body=None):
        return call(("127.0.0.1", self.http_port), method, path, body)

    def good(self, method, path, body=None):
        status, answer = self.call(method, path, body)
        assert status < 300, (method, path, status, answer)
        return answer

    def storage(self, name):
        return self.good("GET", f"/v1/storages/{name}")

    def healthy(self, name, seconds=30):
        until(lambda: self.storage(name)["healthy"], seconds, f"{name} is healthy")


def span(begin, end):
    """A range of bytes to punch."""
    return {"begin": begin, "end": end}


def uuid_of(number):
    return f"00000000-0000-0000-0000-{number:012d}"


def content(key, size):
    """The bytes of a block, of whatever size."""
    seed = hashlib.sha256(str(key).encode()).digest()
    return (seed * (size // len(seed) + 1))[:size]
