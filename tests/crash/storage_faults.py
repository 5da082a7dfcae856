"""Storages of a running manager that go away, are replaced, cut short or full: what is chosen, told and repaired.

usage: storage_faults.py KVBLOCKD KVBLOCK

Every read goes through `kvblock get` and is compared: right bytes or a miss, within a time limit.
(Flipped bytes and swapped slots: tests/kill/storage_faults.)
"""

import os
import shutil
import subprocess
import sys

from manager import Failed, Manager, check, scratch, settled, until

SIZE = 4096
UNIT = 1 << 20


class World:
    """A manager, the storages `one` and `two`, a group that prefers `one`, and an instance `m` in it."""

    def __init__(self, directory, kvblockd, kvblock):
        self.directory = directory
        self.kvblock = kvblock
        self.m = Manager(directory, kvblockd, "--storage-capacity", "16M")
        self.m.start()
        for name in ("one", "two"):
            self.m.must("PUT", f"/v1/storages/{name}", {"root": self.root(name), "capacity": "8M", "unit": "1M",
                                                        "file_size": "4M"})
        self.m.must("PUT", "/v1/groups/pair", {"storages": ["one", "two"]})
        self.m.must("PUT", "/v1/instances/m", {"group": "pair", "specs": [{"name": "kv", "size": SIZE}]})
        until(10, lambda: self.m.storage("one")["healthy"] and self.m.storage("two")["healthy"], "healthy")

    def root(self, name):
        return os.path.join(self.directory, name)

    def slab(self, storage, number=0):
        return os.path.join(self.root(storage), f"slab-{number:08x}.kvs")

    def run(self, *arguments, data=None):
        return subprocess.run([self.kvblock, *arguments], input=data, capture_output=True, timeout=30,
                              env={**os.environ, "KVBLOCK_URL": f"http://127.0.0.1:{self.m.port}"})

    @staticmethod
    def bytes_of(key):
        return (key + "|").encode() * (SIZE // (len(key) + 1) + 1)

    def put(self, key):
        r = self.run("put", "--instance", "m", "--key", key, "-", data=self.bytes_of(key)[:SIZE])
        check(r.returncode == 0, "put", key, r.stderr)

    def has(self, key):
        """Right bytes, or not there. Anything else fails the test."""
        r = self.run("get", "--instance", "m", "--key", key)
        check(r.returncode != 0 or r.stdout == self.bytes_of(key)[:SIZE], "wrong bytes of", key)
        return r.returncode == 0

    def home(self, key):
        """(storage, offset) of a block, as the manager tells it."""
        answer = self.m.must("GET", f"/v1/instances/m/blocks?key={key}")
        location = answer["specs"][0]["location"]
        return answer["files"][location["file"]]["storage"], location["offset"]

    def health(self, name, healthy):
        until(15, lambda: self.m.storage(name)["healthy"] == healthy, name, "healthy:", healthy)
        told = [s for s in self.m.stats()["storages"] if s["name"] == name][0]
        check(told["healthy"] == healthy and bool(told["problem"]) != healthy, "/v1/stats:", told)
        check(self.directory not in told["problem"], "a path of the server:", told["problem"])


def choice(w):
    """The preferred storage goes away, is replaced by a foreign directory, and comes back."""
    w.put("before")
    check(w.home("before")[0] == "one", "the preferred storage was not chosen")
    os.rename(w.root("one"), w.root("away"))
    check(not w.has("before"), "found in a directory that is gone")
    w.health("one", False)
    w.put("meanwhile")
    check(w.home("meanwhile")[0] == "two" and w.has("meanwhile"), "the other storage does not serve")
    check(not w.has("before"), "found in a directory that is gone")

    os.mkdir(w.root("one"))
    with open(os.path.join(w.root("one"), "mine"), "w") as f:
        f.write("do not touch")
    w.health("one", False)
    check(not w.has("before"), "found in a foreign directory")
    w.put("foreign")
    check(w.home("foreign")[0] == "two", "a foreign directory was chosen")
    check(os.listdir(w.root("one")) == ["mine"], "written into a foreign directory:", os.listdir(w.root("one")))
    shutil.rmtree(w.root("one"))

    shutil.copytree(w.root("two"), w.root("one"))  # another storage of ours is as wrong as a stranger
    w.health("one", False)
    check(not w.has("before"), "found in a copy of another storage")
    shutil.rmtree(w.root("one"))

    os.rename(w.root("away"), w.root("one"))
    w.health("one", True)
    check(w.has("before") and w.has("meanwhile") and w.has("foreign"), "not all is there again")
    w.put("after")
    check(w.home("after")[0] == "one", "the storage that came back is not chosen again")


def nowhere(w):
    """No storage of the group is left: starts are refused clearly, everything else goes on."""
    for name in ("one", "two"):
        os.rename(w.root(name), w.root(name) + ".away")
        w.health(name, False)
    status, answer = w.m.call("POST", "/v1/instances/m/start", {"keys": ["nowhere"]})
    check(status == 503 and answer["error"]["code"] == "unavailable", "a start without storage:", status, answer)
    check(not w.has("before"), "found without storage")
    check(w.m.must("POST", "/v1/instances/m/delete", {"keys": ["after"]})["deleted"] == 1, "a delete is refused")
    check(w.m.call("GET", "/readyz")[0] == 200, "not ready, though the storage default is healthy")
    for name in ("one", "two"):
        os.rename(w.root(name) + ".away", w.root(name))
        w.health(name, True)
    check(w.has("before") and not w.has("after"), "after both came back")


def cut(w):
    """A slab file is cut short while the manager runs: misses, noticed, and no new blocks go there."""
    with open(w.slab("one"), "rb") as f:
        whole = f.read()
    storage, offset = w.home("before")
    check(storage == "one", "before lies in", storage)
    os.truncate(w.slab("one"), offset)
    check(not w.has("before"), "found behind the end of its file")
    w.health("one", False)
    w.put("cut")
    check(w.home("cut")[0] == "two" and w.has("cut"), "the other storage does not serve")
    with open(w.slab("one"), "wb") as f:
        f.write(whole)
    w.health("one", True)
    check(w.has("before") and w.has("cut"), "not all is there again")


def restart_with_cut_file(w):
    """A short or missing file is told at start, by fsck too; nothing is formatted over it."""
    w.m.stop()
    with open(w.slab("one"), "rb") as f:
        whole = f.read()
    for damage in ("short", "gone"):
        if damage == "short":
            os.truncate(w.slab("one"), len(whole) // 2)
        else:
            os.unlink(w.slab("one"))
        r = subprocess.run([w.m.kvblockd, "fsck", "--files"], cwd=w.directory, capture_output=True, text=True)
        check(r.returncode == 1 and "slab-00000000.kvs" in r.stdout, damage, "fsck:", r.returncode, r.stdout, r.stderr)
        w.m.start()
        w.health("one", False)
        check(not w.has("before") and w.has("meanwhile"), damage)
        w.put(f"while-{damage}")
        check(w.home(f"while-{damage}")[0] == "two", "chosen though a file is", damage)
        w.m.stop()
        with open(w.slab("one"), "wb") as f:
            f.write(whole)
    w.m.fsck()
    w.m.start()
    w.health("one", True)
    check(w.has("before"), "not found after its file came back")


def claimed_file(w):
    """A manager that died between claiming a slab file and making it left no damage: fsck is clean, the next makes it."""
    w.m.must("DELETE", "/v1/instances/m")
    until(15, lambda: settled(w.m, {}), "everything is free")
    w.m.stop()
    os.unlink(w.slab("one"))
    w.m.fsck()
    w.m.start()
    w.health("one", True)
    check(os.path.getsize(w.slab("one")) > 0, "the file was not made")
    w.m.stop()
    w.m.fsck()


def main():
    with scratch() as directory:
        w = World(directory, *sys.argv[1:3])
        for part in (choice, nowhere, cut, restart_with_cut_file, claimed_file):
            part(w)
            print(f"{part.__name__}: passed", flush=True)


if __name__ == "__main__":
    try:
        main()
    except Failed as e:
        sys.exit(f"FAILED: {e}")
