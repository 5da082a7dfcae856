"""What tests with a real manager share: one manager for the cases of a class, a client for each, and blocks."""

import random
import unittest

import slabkv
from daemon import Daemon


def block(seed, size=65536):
    return random.Random(seed).randbytes(size)


class WithManager(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon().start()

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def setUp(self):
        self.kv = slabkv.Client(self.daemon.url)
        self.addCleanup(self.kv.close)
