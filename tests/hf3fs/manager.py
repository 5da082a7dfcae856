"""manager.py - a real slabkvd that serves page spaces, started and ended as tests/kvcm/server.py does it.

`Manager(program, strict=True)` answers as upstream does; more parameters by keyword. `kill` is kill -9, `start`
starts it again on the same directory. A SocketManager gets its listening socket from the test, as from systemd, so
that its clients find the same port open all the time.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "kvcm"))

from server import Slabkvd, die_with_parent, environment, patience, until  # noqa: E402

__all__ = ["Manager", "SocketManager", "WHOLE", "patience", "until"]


# For stores of a few pages, whose every page is told of.
WHOLE = {"leased_percent": 100, "open_percent": 100, "free_percent": 0}


class Manager(Slabkvd):
    def __init__(self, program, folder=None, strict=False, **parameters):
        parameters.setdefault("storage_capacity", "4M")
        parameters.setdefault("storage_file_size", "2M")
        if strict:
            parameters["strict_upstream"] = "true"
        super().__init__(program, folder, **parameters)

    def counter(self, name):
        """Of the hf3fs API, its labels added up."""
        all_of_them = self.metrics().items()
        found = [v for k, v in all_of_them if k.split("{")[0] == f"slabkv_pages_{name}_total"]
        assert found, (name, sorted(k for k, _ in all_of_them if "pages" in k))
        return sum(found)

    def call(self, path, **fields):
        """Of an administrator."""
        return json.loads(self.native("POST", path, json.dumps(fields)))

    def stats(self):
        return json.loads(self.native("GET", "/v1/stats"))

    def state(self):
        """What a call that is refused must leave as it was."""
        stats = self.stats()
        numbers = [stats["blocks"], stats["sessions"], len(stats["groups"])]
        numbers += [(s["name"], s["used_bytes"]) for s in stats["storages"]]
        return numbers

    def rss(self):
        """Bytes of memory that it has now."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class SocketManager(Manager):
    """Its HTTP socket is the test's: LISTEN_FDS as systemd passes it. While nobody serves it, connections wait."""

    def __init__(self, program, **parameters):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        super().__init__(program, http_port=self.socket.getsockname()[1], **parameters)
        self.http_port = self.socket.getsockname()[1]

    def spawn(self, arguments):
        fd = self.socket.fileno()
        pass_on = f'export LISTEN_PID=$$; exec 3<&{fd}; {f"exec {fd}<&-;" if fd != 3 else ""} exec "$0" "$@"'
        self.log = open(self.path("log"), "ab")
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", pass_on, self.program, *arguments], cwd=self.dir, stdout=self.log, stderr=self.log,
            stdin=subprocess.DEVNULL, pass_fds=[fd], preexec_fn=die_with_parent,
            env={**environment(), "LISTEN_FDS": "1", "LISTEN_FDNAMES": "http"})

    def start(self, wait=True):
        """Or its clients do the waiting."""
        self.spawn([f"--{k}={v}" for k, v in self.parameters.items()])
        if wait:
            self.await_that(self.ready, "/readyz")

    def clean(self):
        self.socket.close()
        super().clean()
