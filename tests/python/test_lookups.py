"""Lookups of an engine that asks at each step: answers, failed loads beside newer probes, and a deadline, by a clock that the test turns."""

import queue
import unittest

from daemon import wait_for

from slabkv._budget import DEADLINE_S
from slabkv._lookups import Lookups

KEY, OTHER = b"k" * 36, b"o" * 36


class Asked(unittest.TestCase):
    """`ask` gives each batch to the test, and waits for its answer."""

    def setUp(self):
        self.now = 100.0
        self.batches, self.answers = queue.Queue(), queue.Queue()
        self.lookups = Lookups(self.ask, lambda: self.now)
        self.addCleanup(self.lookups.shutdown)

    def ask(self, keys):
        self.batches.put(keys)
        answer = self.answers.get(timeout=20)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def settled(self, key, request):
        """The verdict, when there is one."""
        self.assertTrue(wait_for(lambda: self.lookups.lookup(key, request) is not None), "undecided")
        return self.lookups.lookup(key, request)

    def begin(self, request="r", *keys):
        """A step in which the request asks; returns when the question is under way."""
        for key in keys or (KEY,):
            self.assertIsNone(self.lookups.lookup(key, request))
        self.lookups.flush()
        return self.batches.get(timeout=20)

    def test_a_step_is_one_call_for_each_request(self):
        self.lookups.lookup(KEY, "a")
        self.lookups.lookup(OTHER, "a")
        self.lookups.lookup(KEY, "b")  # the same question
        self.lookups.lookup(b"third", "b")
        self.answers.put([True, False])
        self.answers.put([True])
        self.lookups.flush()
        self.assertEqual([self.batches.get(timeout=20) for _ in range(2)], [[KEY, OTHER], [b"third"]])
        self.assertEqual([self.settled(k, "b") for k in (KEY, OTHER, b"third")], [True, False, True])
        self.lookups.flush()
        self.assertTrue(self.batches.empty())

    def test_a_load_that_fails_before_and_while_a_question_is_asked(self):
        self.lookups.lookup(KEY, "r")
        self.lookups.mark_miss([KEY, b"nobody's"])  # not flushed yet
        self.assertIs(self.lookups.lookup(KEY, "r"), False)
        self.begin("s", OTHER)
        self.lookups.mark_miss([OTHER])  # under way
        self.assertIs(self.lookups.lookup(OTHER, "s"), False)
        self.answers.put([True])
        self.answers.put([True])
        self.begin("t", b"third")  # so the one before has been answered
        self.assertIs(self.settled(b"third", "t"), True)
        self.assertIs(self.lookups.lookup(OTHER, "s"), False)

    def test_a_key_is_asked_for_anew_when_its_requests_have_ended(self):
        self.begin("r")
        self.lookups.mark_miss([KEY])
        self.lookups.cleanup("r")
        self.assertIsNone(self.lookups.lookup(KEY, "s"))  # a newer probe beside the one under way
        self.answers.put([False])  # of the older one: not for this probe
        self.lookups.flush()
        self.assertEqual(self.batches.get(timeout=20), [KEY])
        self.assertIsNone(self.lookups.lookup(KEY, "s"))
        self.answers.put([True])
        self.assertIs(self.settled(KEY, "s"), True)

    def test_no_answer_is_a_miss_after_the_deadline(self):
        self.begin("r")
        self.now += DEADLINE_S - 0.01
        self.assertIsNone(self.lookups.lookup(KEY, "r"))
        self.now += 0.01
        self.assertIs(self.lookups.lookup(KEY, "r"), False)
        self.answers.put([True])
        self.lookups.cleanup("r")
        self.answers.put([True])
        self.begin("s")  # poisoned for nobody
        self.assertIs(self.settled(KEY, "s"), True)

    def test_a_backlog_that_is_late_or_unwanted_is_not_asked(self):
        self.begin("r")
        for request, key in (("late", b"1"), ("ended", b"2")):
            self.lookups.lookup(key, request)
            self.lookups.flush()
        self.lookups.cleanup("ended")
        self.now += DEADLINE_S
        self.answers.put([True])
        self.answers.put([True])
        self.assertEqual(self.begin("s", OTHER), [OTHER])
        self.assertIs(self.lookups.lookup(b"1", "late"), False)

    def test_a_question_that_fails_in_any_way_is_a_miss(self):
        self.answers.put(ZeroDivisionError("what nobody expected"))
        with self.assertLogs("slabkv", "WARNING"):
            self.begin("r")
            self.assertIs(self.settled(KEY, "r"), False)
        self.answers.put([True])
        self.begin("s", OTHER)
        self.assertIs(self.settled(OTHER, "s"), True)


if __name__ == "__main__":
    unittest.main()
