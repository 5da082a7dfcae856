"""The load of slots.c as a process: it goes on while managers die, and ends with status 1 at the first breach."""

import json
import subprocess

from manager import check, die_with_parent

SLOT_BYTES = {"small": 4096, "large": 12288}
SPECS = {"small": [{"name": "kv", "size": 4096}], "large": [{"name": "k", "size": 8192}, {"name": "v", "size": 4096}]}


class Load:
    """Registers its instances at the first of `managers`, which all work on one store, and begins."""

    def __init__(self, slots, managers, evict):
        for name, specs in SPECS.items():
            managers[0].must("PUT", f"/v1/instances/{name}", {"specs": specs})
        urls = ",".join(f"http://127.0.0.1:{m.port}" for m in managers)
        self.process = subprocess.Popen([slots, urls, managers[0].root, "evict" if evict else "room"], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=die_with_parent)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def tell(self, word):
        check(self.process.poll() is None, "the load ended with status", self.process.poll())
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def killed(self):
        """A manager died (or another took over): the session that waits for it goes on."""
        self.tell("killed")

    def puts(self):
        """Blocks put so far."""
        self.tell("puts")
        return int(self.process.stdout.readline() or 0)

    def check(self):
        """Ends the threads, looks everything up, and returns the counts."""
        self.tell("check")
        answer = self.process.stdout.read()
        check(self.process.wait() == 0, "the load ended with status", self.process.returncode)
        return json.loads(answer)
