"""load.py - four clients that write and read through one or more managers, and are never told of an error.

A client makes four attempts at a call, as SGLang's does. At the end every key whose confirm was answered is there, on its page.
"""

import threading

import client
from manager import patience, until

BATCH, PAGES = 4, 100_000


class Client(threading.Thread):
    """Puts keys of its own and looks for them, again and again."""

    def __init__(self, number, url):
        super().__init__(daemon=True)
        self.number, self.metadata = number, client.Metadata(url)
        self.stop, self.rounds, self.failure, self.pages = threading.Event(), 0, None, {}

    def run(self):
        try:
            while not self.stop.is_set():
                self.once()
        except BaseException as e:  # whatever it is, the test is told
            self.failure = f"client {self.number}, round {self.rounds}: {type(e).__name__}: {e}"

    def once(self):
        keys = [f"{self.number}-{self.rounds}-{i}" for i in range(BATCH)]
        assert self.metadata.exists(keys) == [False] * BATCH
        # Of a call that was made twice the first one may count: its pages are taken until they expire.
        pages = {k: p for k, (_, p) in zip(keys, self.metadata.reserve(keys)) if p != -1}
        self.metadata.confirm(list(pages.items()))
        assert self.metadata.exists(list(pages)) == [True] * len(pages)
        self.pages |= pages
        self.rounds += 1

    def check(self):
        keys = list(self.pages)
        for at in range(0, len(keys), 1000):
            found = self.metadata.get(keys[at:at + 1000])
            assert found == [self.pages[k] for k in keys[at:at + 1000]], (self.number, at)


class Load:
    def __init__(self, urls):
        self.clients = [Client(n, urls[n % len(urls)]) for n in range(4)]
        self.clients[0].metadata.initialize(PAGES)

    def fail(self):
        failures = [c.failure for c in self.clients if c.failure]
        assert not failures, "\n".join(failures)

    def progress(self):
        """All clients have gone on, twice: their attempts are all left again."""
        before = [c.rounds for c in self.clients]

        def all_did():
            self.fail()
            return all(c.rounds >= n + 2 for c, n in zip(self.clients, before))
        until(all_did, 30, "progress of all clients")

    def __enter__(self):
        for c in self.clients:
            c.start()
        self.progress()
        return self

    def __exit__(self, kind, *_):
        for c in self.clients:
            c.stop.set()
        for c in self.clients:
            c.join(30 * patience())
        if not kind:
            self.fail()
            for c in self.clients:
                c.check()
            pages = [p for c in self.clients for p in c.pages.values()]
            assert len(pages) == len(set(pages)), "a page of two keys"
            print(f"{sum(c.rounds for c in self.clients)} rounds, {len(pages)} keys", flush=True)
