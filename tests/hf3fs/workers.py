"""workers.py - client processes of a test: each is one SGLang rank, started, stopped and listened to by the test.

A worker is a function `work(told, stop, *arguments)`: it runs until stop.is_set(), and `told(...)` sends what it has
to say. What it raises is told as a failure. None of them outlives the test.
"""

import multiprocessing
import os
import signal
import traceback

from server import die_with_parent


class Workers:
    def __init__(self):
        self.context = multiprocessing.get_context("fork")
        self.stop = self.context.Event()
        self.all = []

    def start(self, work, *arguments):
        ours, theirs = self.context.Pipe(duplex=False)
        process = self.context.Process(target=self.main, args=(work, theirs, arguments), daemon=True)
        process.start()
        theirs.close()
        self.all.append((process, ours))

    def main(self, work, pipe, arguments):
        die_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            work(lambda *said: pipe.send(("said", said)), self.stop, *arguments)
            pipe.send(("end", None))
        except BaseException:  # whatever it is, the test is told
            pipe.send(("failed", f"{work.__name__}{arguments[1:]}:\n{traceback.format_exc()}"))
        pipe.close()
        os._exit(0)

    def failed(self):
        """One that has ended already has failed; what its peers said stays unread."""
        return any(not p.is_alive() for p, _ in self.all)

    def end(self):
        """Stops all and gives what each has said, in their order; fails with what made them fail."""
        self.stop.set()
        said, failures = [], []
        for process, pipe in self.all:
            said.append([])
            kind = None
            while kind not in ("end", "failed"):
                try:
                    kind, what = pipe.recv()
                except EOFError:
                    kind, what = "failed", f"a worker died: {process.exitcode}"
                if kind == "said":
                    said[-1].append(what)
                elif kind == "failed":
                    failures.append(what)
            process.join()
        self.all = []
        assert not failures, "\n".join(failures)
        return said

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process, _ in self.all:
            process.kill()
            process.join()
