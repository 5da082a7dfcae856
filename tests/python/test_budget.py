"""Load only what pays: what a Budget decides, on a clock of the test's own."""

import threading
import time
import types
import unittest

import slabkv
from slabkv._budget import PROBE_S, Budget, Pins, retention
from slabkv._connector import Settings

BLOCK, TOKENS = 1 << 20, 128
FAST = 1000 * BLOCK  # a second


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


class Decisions(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()

    def budget(self, **options):
        return Budget("test", clock=self.clock, **options)

    def load(self, budget, blocks, rate):
        one = budget.begin(blocks * BLOCK)
        self.clock.now += blocks * BLOCK / rate
        budget.end(one)

    def test_nothing_is_known_so_all_is_loaded(self):
        self.assertEqual(self.budget().take(32, BLOCK, TOKENS), 32)

    def test_min_tokens(self):
        budget = self.budget(min_tokens=1024)
        self.assertEqual([budget.take(n, BLOCK, TOKENS) for n in (0, 7, 8)], [0, 0, 8])
        self.assertEqual(budget.stats()["declined_blocks"], 7)

    def test_what_arrives_before_prefill_would_have_computed_it(self):
        budget = self.budget(prefill_tokens_per_s=12800)  # 100 blocks a second
        self.load(budget, 16, FAST)
        self.assertEqual(budget.take(32, BLOCK, TOKENS), 32)
        for _ in range(20):
            self.load(budget, 16, 90 * BLOCK)
        self.assertEqual(budget.take(32, BLOCK, TOKENS), 0)

    def test_a_queue_pays_for_long_hits_only(self):
        budget = self.budget(prefill_tokens_per_s=12800)
        self.load(budget, 16, 200 * BLOCK)
        waiting = budget.begin(20 * BLOCK)  # 0.1 s: what prefill computes 10 blocks in
        self.assertEqual([budget.take(n, BLOCK, TOKENS) for n in (10, 19, 21, 64)], [0, 0, 21, 64])
        budget.end(waiting, 0)
        self.assertEqual(budget.take(10, BLOCK, TOKENS), 10)

    def test_load_budget_ms(self):
        budget = self.budget(load_budget_ms=50)
        self.load(budget, 16, FAST)
        self.assertEqual(budget.take(500, BLOCK, TOKENS), 50)
        waiting = budget.begin(30 * BLOCK)
        self.assertEqual(budget.take(500, BLOCK, TOKENS), 20)
        budget.end(waiting)

    def test_a_load_in_flight_tells_that_storage_is_slow(self):
        budget = self.budget(prefill_tokens_per_s=12800)
        self.load(budget, 64, FAST)
        stuck = budget.begin(16 * BLOCK)
        self.clock.now += 1.0
        self.assertEqual(budget.rate, 16 * BLOCK)
        self.assertEqual(budget.take(32, BLOCK, TOKENS), 0)
        self.assertTrue(budget.late())
        self.assertFalse(budget.may_store())
        budget.end(stuck)
        self.assertFalse(budget.late())
        self.assertTrue(budget.may_store())
        self.assertEqual(budget.stats()["stores_dropped"], 1)

    def test_stores_beside_others(self):
        budget = self.budget()
        self.assertEqual([budget.may_store(n, 2) for n in range(4)], [True, True, False, False])
        self.assertEqual(budget.stats()["stores_dropped"], 2)

    def test_it_learns_that_storage_is_fast_again(self):
        budget = self.budget(prefill_tokens_per_s=12800)
        for _ in range(10):
            self.load(budget, 16, 10 * BLOCK)
        self.assertEqual(budget.take(64, BLOCK, TOKENS), 0)
        probes = 0
        while budget.take(64, BLOCK, TOKENS) < 64:
            self.clock.now += PROBE_S + 0.1
            k = budget.take(64, BLOCK, TOKENS)
            self.load(budget, k, FAST)
            probes += 1
            self.assertLess(probes, 10)
        print(f"fast again after {probes} probes")

    def test_prefill_is_measured_between_a_miss_and_its_store(self):
        budget = self.budget()
        self.load(budget, 16, 20 * BLOCK)
        self.assertEqual((budget.prefill, budget.take(64, BLOCK, TOKENS)), (0, 64))
        budget.missed(range(40))
        self.clock.now += 0.4
        budget.stored(range(40), TOKENS)
        self.assertAlmostEqual(budget.prefill, 12800)
        budget.missed(range(100, 140))
        self.clock.now += 30  # it waited: a lower bound
        budget.stored(range(100, 140), TOKENS)
        budget.stored(range(500, 540), TOKENS)  # never missed: tells nothing
        self.assertAlmostEqual(budget.prefill, 12800)
        self.load(budget, 16, 20 * BLOCK)
        self.assertEqual(budget.take(64, BLOCK, TOKENS), 0)

    def test_misses_are_forgotten(self):
        budget = self.budget()
        budget.missed(range(200000))
        self.assertLessEqual(len(budget._missed), 1 << 16)

    def test_wrong_options(self):
        for name, value in (("min_tokens", -1), ("load_budget_ms", "soon"), ("prefill_tokens_per_s", float("nan"))):
            with self.assertRaises(slabkv.InvalidError) as e:
                Budget.of(Settings("slabkv.test", {name: value}))
            self.assertEqual(e.exception.field, name)


class Slowed(unittest.TestCase):
    """Requests whose whole prompt is stored, one after another: the first token comes after the load and after the prefill of what was not
    loaded. Storage becomes ten times slower, at any time, also within a load."""

    def requests(self, fast, prefill, n_blocks=128, n=100, slow_from=50, slow=10, waits=True):
        clock = Clock()
        budget = Budget("test", clock=clock, prefill_tokens_per_s=prefill)
        cold = n_blocks * TOKENS / prefill
        times = []
        for i in range(n):  # slow_from 50.4: when four tenths of the 50th are loaded
            began, loaded = clock.now, 0
            k = budget.take(n_blocks, BLOCK, TOKENS)
            for part in budget.parts(k, BLOCK, TOKENS) if waits else [k] if k else []:
                one = budget.begin(part * BLOCK)
                clock.now += part * BLOCK / (fast / (slow if i + loaded / n_blocks >= slow_from else 1))
                budget.end(one)
                loaded += part
            clock.now += (n_blocks - loaded) * TOKENS / prefill
            times.append((clock.now - began) / cold)
            clock.now += 0.5
        return times

    def test_storage_slowed_to_a_tenth(self):
        for gain in (1.2, 2, 5, 9, 30):  # how much faster than prefill storage was
            prefill = 12800
            times = self.requests(gain * 100 * BLOCK, prefill)
            times_mid = self.requests(gain * 100 * BLOCK, prefill, slow_from=50.4)
            self.assertLessEqual(max(times_mid), 1.1, gain)
            print(f"storage {gain} times as fast as prefill: {times[49]:.3f} of cold; then a tenth of that: worst {max(times[50:]):.3f}, "
                  f"mean {sum(times[50:]) / 50:.3f} of cold")
            self.assertLessEqual(max(times), 1.1)
            if gain >= 2:
                self.assertLess(times[49], 1.05 / gain + 0.05)


class Hints(unittest.TestCase):
    def test_what_asks_to_be_kept(self):
        action = types.SimpleNamespace
        for hints, seconds in (
            (None, 0), ({}, 0), ({"other": 5}, 0), ({"retention_seconds": 30}, 30), ({"retention": {"duration_ms": 1500}}, 1.5),
            ({"slabkv": {"slabkv_retain_s": 7}}, 7), ({"ttl_seconds": True}, 0), ({"ttl_seconds": -1}, 0), ({"ttl_seconds": 1e9}, 86400),
            (action(actions=[action(action_type="retain_prompt", payload={"ttl_seconds": 9}),
                             action(action_type="prefetch", payload={"ttl_seconds": 99})]), 9),
            (action(actions=None), 0),
        ):
            self.assertEqual(retention(hints), seconds, hints)

    def test_pins_are_set_in_the_background(self):
        seen, go = [], threading.Event()

        def pin(*arguments):
            go.wait(10)
            if arguments[0] == "bad":
                raise slabkv.Error("no")
            seen.append(arguments)

        budget = Budget()
        pins = Pins(pin, budget, most=2)
        begin = time.monotonic()
        pins.keep("i", ["a", "b"], {"retention_seconds": 60})
        while not pins._queue.empty():  # taken by the thread
            time.sleep(0.001)
        pins.keep("bad", ["c"], {"retention_seconds": 60})
        pins.keep("i", ["d"], {"retention_seconds": 60})
        pins.keep("i", ["e"], {"retention_seconds": 60})  # full
        pins.keep("i", ["f"], None)
        self.assertLess(time.monotonic() - begin, 2)
        go.set()
        while not pins._queue.empty():
            time.sleep(0.001)
        pins.close()
        self.assertEqual([s[1] for s in seen], [["a", "b"], ["d"]])
        self.assertEqual((budget.stats()["pins_asked"], budget.stats()["pins_dropped"]), (4, 2))


if __name__ == "__main__":
    unittest.main()
