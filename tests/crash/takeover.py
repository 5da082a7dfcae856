"""Two managers on one store under load: the owner is stopped, killed or ended; the standby takes over.

usage: takeover.py KVBLOCKD SLOTS ROUNDS

After SIGCONT the old owner neither answers a block call nor appends: calls that were sent while it stood still
and calls after that all get an error 503, and the load's ledger (slots.c) would find a slot or a block that
two owners have handed out. Each way of losing the owner comes in every round.

An owner that stands still inside a commit holds SQLite's write lock: nobody can write then, nobody takes over,
and it is tried again. A manager whose start meets such a lock for too long ends with status 1, as it may under
heavy load as well; it is started again, as systemd would do. Both are counted and printed.
"""

import concurrent.futures
import http.client
import json
import random
import sys
import time

from load import SLOT_BYTES, Load
from manager import Failed, Manager, check, scratch, settled, until

REFUSALS = ("not_owner", "not_ready", "fenced", "unknown_outcome")
CALLS = (
    ("/v1/match", {"instances": ["small"], "keys": ["a"]}),
    ("/v1/instances/small/lookup", {"keys": ["a"]}),
    ("/v1/instances/small/start", {"keys": ["ghost"], "deadline_ms": 1000}),
    ("/v1/instances/small/delete", {"keys": ["ghost"]}),
    ("/v1/sessions/" + "0" * 32 + "/finish", {"success": True}),
    ("/v1/sessions/" + "0" * 32 + "/abort", {}),
)


def refused(who, path, status, answer):
    code = answer["error"]["code"] if isinstance(answer, dict) and "error" in answer else answer
    check(status == 503 and code in REFUSALS, f"{who} answered {path}: {status} {code}")
    return 1


def send_to_stopped(m):
    """Requests that wait in the sockets of a manager that stands still."""
    waiting = []
    for path, body in CALLS:
        c = http.client.HTTPConnection("127.0.0.1", m.port, timeout=30)
        c.request("POST", path, json.dumps(body))
        waiting.append((path, c))
    return waiting


def all_refused(m, waiting):
    """Number of calls that the old owner refused: those that waited, and many more at once."""
    n = 0
    for path, c in waiting:
        r = c.getresponse()
        n += refused(m.name, path, r.status, json.loads(r.read()))
        c.close()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        calls = CALLS * 16
        for (path, _), (status, answer) in zip(calls, pool.map(lambda x: m.call("POST", *x), calls)):
            n += refused(m.name, path, status, answer)
    return n


class Pair:
    """The owner, the standby, and what was counted."""

    def __init__(self, owner, standby, load):
        self.owner, self.standby, self.load = owner, standby, load
        self.counts = {"stopped": 0, "killed": 0, "ended": 0, "calls refused by old owners": 0,
                       "stopped inside a commit": 0, "starts that met a lock": 0}
        self.slowest = {"stopped": 0.0, "killed": 0.0, "ended": 0.0}

    def more(self, n):
        enough = self.load.puts() + n
        until(60, lambda: self.load.puts() >= enough, "the load goes on")

    def taken_over(self, how, since):
        self.slowest[how] = max(self.slowest[how], time.monotonic() - since)
        self.counts[how] += 1
        self.load.killed()
        self.owner, self.standby = self.standby, self.owner

    def stop_owner(self):
        for _ in range(20):
            if self.stop_once():
                return
            self.more(20)
        raise Failed("every stop was inside a commit")

    def stop_once(self):
        since = time.monotonic()
        self.owner.freeze()
        waiting = send_to_stopped(self.owner)
        try:
            self.standby.wait_ready(4)
        except Failed:
            self.owner.thaw()
            self.counts["stopped inside a commit"] += 1
            for _, c in waiting:
                c.close()
            until(20, lambda: self.owner.is_ready() or self.standby.is_ready(), "one of them is ready")
            if self.standby.is_ready():
                self.owner, self.standby = self.standby, self.owner
            return False
        self.taken_over("stopped", since)
        self.more(50)
        self.standby.thaw()
        self.counts["calls refused by old owners"] += all_refused(self.standby, waiting)
        self.more(50)
        return True

    def start_standby(self):
        self.standby.launch()
        until(20, lambda: self.standby.ended() or self.standby.read_port(), "the new standby listens")
        if self.standby.ended():
            check(self.standby.reap() == 1 and "database is locked" in self.standby.last_words(),
                  "the new standby ended:", self.standby.last_words())
            self.counts["starts that met a lock"] += 1
            self.start_standby()

    def lose_owner(self, how):
        since = time.monotonic()
        (self.owner.kill if how == "killed" else self.owner.stop)()
        self.standby.wait_ready(10)
        self.taken_over(how, since)
        self.start_standby()
        self.counts["calls refused by old owners"] += sum(
            refused("a standby", path, *self.standby.call("POST", path, body)) for path, body in CALLS)
        check(self.standby.call("GET", "/readyz")[0] == 503, "a standby says that it is ready")
        self.more(50)


def run(directory, kvblockd, slots, rounds):
    rng = random.Random(rounds)
    arguments = ("--storage-capacity", "128M", "--journal-limit", "1M", "--store-reserve", "4M")
    a, b = (Manager(directory, kvblockd, *arguments, name=name) for name in "ab")
    a.start()
    b.launch()
    until(20, b.read_port, "b listens")
    with Load(slots, [a, b], False) as load:
        pair = Pair(a, b, load)
        for _ in range(rounds):
            steps = [pair.stop_owner, lambda: pair.lose_owner("killed"), lambda: pair.lose_owner("ended")]
            rng.shuffle(steps)
            for step in steps:
                pair.more(rng.randrange(50, 300))
                step()
        until(20, pair.owner.is_ready, "the owner is ready")
        counts = load.check()
    until(20, lambda: settled(pair.owner, SLOT_BYTES), "everything settled")
    ghost = pair.owner.must("POST", "/v1/match", {"instances": ["small"], "keys": ["ghost"]})
    check(ghost["results"][0]["matched"] == 0, "an old owner has appended", ghost)
    check(pair.owner.stats()["evicted_blocks"] == 0, "blocks were evicted, though there is room")
    pair.standby.stop()
    pair.owner.stop()
    pair.owner.fsck()
    print(", ".join(f"{v} {k}" for k, v in {**pair.counts, **counts}.items()))
    print("slowest takeover:", ", ".join(f"{k} {v:.2f} s" for k, v in pair.slowest.items()))


def main():
    with scratch() as directory:
        run(directory, sys.argv[1], sys.argv[2], int(sys.argv[3]))


if __name__ == "__main__":
    try:
        main()
    except Failed as e:
        sys.exit(f"FAILED: {e}")
