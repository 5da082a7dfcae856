"""Two hosts that each cache pages on their own: one directory, and two FUSE mounts of it."""

import os
import random
import shutil
import subprocess
import sys
import unittest

import slabkv
from daemon import Daemon, die_with_parent, wait_for
from slabkv import Result

ODD = 70001  # neighbouring slots share pages
ROUNDS = 2
BLOCKS = 12  # of 14 that there is room for
MOUNTS = (), ("--writeback",), ("--aligned",), ("--aligned", "--writeback")


class Buffers:
    """Blocks of random bytes, and room for them, as far from a page's start as `shift` says."""

    def __init__(self, size, shift):
        self.size, self.shift = size, shift

    def room(self):
        return memoryview(bytearray(self.size + self.shift))[self.shift:]

    def block(self, seed):
        room = self.room()
        room[:] = random.Random(seed).randbytes(self.size)
        return room


class TwoCaches(unittest.TestCase):
    def mount(self, name, *options):
        at = self.daemon.folder / name
        at.mkdir()
        process = subprocess.Popen([os.environ["MIRROR"], self.daemon.root, *options, "-f", at], preexec_fn=die_with_parent, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(subprocess.run, ["fusermount3", "-u", "-z", at], check=True)
        self.assertTrue(wait_for(lambda: os.path.ismount(at)))
        return str(at)

    def hosts(self, engine, verify, *options):
        self.daemon = Daemon("--lease-default-ms", "200", capacity="1M").start()
        self.addCleanup(self.daemon.__exit__)
        hosts = [slabkv.Client(self.daemon.url, mounts=self.mount(n, *options), engine=engine, verify=verify) for n in "ab"]
        for kv in hosts:
            self.addCleanup(kv.close)
        return hosts

    def read(self, kv, buffers, seeds, keys):
        rooms = [buffers.room() for _ in keys]
        found = kv.get("i", keys, rooms)
        for _ in range(20):  # a busy machine: the lease had ended
            found = kv.get("i", keys, rooms) if Result.MISS in found else found
        self.assertEqual(found, [Result.HIT] * len(keys))
        self.assertEqual([bytes(r) for r in rooms], [bytes(buffers.block(s)) for s in seeds])

    @staticmethod
    def is_empty(kv):
        storage = kv.call("GET", "/v1/storages")["storages"][0]
        return storage["used_bytes"] + storage["quarantined_bytes"] == 0

    def use_slots_again(self, engine, size, shift, *options, verify=True):
        """Both hosts write by turns, and read everything; then all blocks go, and others come into slots that each host has cached."""
        hosts = self.hosts(engine, verify, *options)
        buffers, keys = Buffers(size, shift), list(range(BLOCKS))
        hosts[0].put_instance("i", size)
        for turn in range(ROUNDS):
            seeds = [1000 * turn + k for k in keys]
            for n, (k, seed) in enumerate(zip(keys, seeds)):  # neighbours from different hosts
                self.assertEqual(hosts[(n + turn) % 2].put("i", [k], [buffers.block(seed)], independent=True), [Result.WRITTEN])
            for kv in hosts:
                self.read(kv, buffers, seeds, keys)
            self.assertTrue(all(hosts[0].delete("i", keys)))
            self.assertTrue(wait_for(lambda: self.is_empty(hosts[0])))  # leases have ended

    def test_slots_that_share_pages(self):
        for engine in ("posix", "uring"):
            for options in MOUNTS:
                with self.subTest(engine=engine, options=options):
                    self.use_slots_again(engine, ODD, 0, *options)

    def test_buffers_that_are_not_aligned(self):
        for engine in ("posix", "uring"):
            for options in MOUNTS:
                with self.subTest(engine=engine, options=options):
                    self.use_slots_again(engine, 65536, 1, *options)

    def test_blocks_that_no_checksum_proves(self):
        for options in MOUNTS:
            with self.subTest(options):
                self.use_slots_again("posix", ODD, 0, *options, verify=False)

    def test_damage_is_still_a_mismatch(self):
        a, b = self.hosts("posix", True)
        buffers = Buffers(ODD, 0)
        a.put_instance("i", ODD)
        self.assertEqual(a.put("i", [1], [buffers.block(1)]), [Result.WRITTEN])
        self.read(b, buffers, [1], [1])
        for slab in self.daemon.slabs():
            data = bytearray(slab.read_bytes())
            at = data.find(bytes(buffers.block(1)))
            if at >= 0:
                with open(slab, "r+b") as f:
                    f.seek(at + 5)
                    f.write(b"damage")
        self.assertEqual(a.get("i", [1], [buffers.room()]), [Result.MISMATCH])


if __name__ == "__main__":
    if not os.environ["MIRROR"] or not os.access("/dev/fuse", os.W_OK) or not shutil.which("fusermount3"):
        print("skipped: nothing can be mounted without libfuse3-dev (when building), /dev/fuse and fusermount3")
        sys.exit(77)
    unittest.main()
