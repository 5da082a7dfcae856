"""many.py - the rows of large numbers: 100,000 instances of an operator, and one tenant's thousands of page spaces beside others."""

import json
import multiprocessing
import signal
import socket
import time

import fairness

MIB = 1 << 20
INSTANCES = 100000
WRITERS = 4
SPACES = 3000
EXTRA = "x" * 1000


class Connection:
    """HTTP with as little work of this program as possible."""

    def __init__(self, host, who=None):
        name, port = host.split(":")
        self.socket = socket.create_connection((name, int(port)))
        self.head = f"Host: {host}\r\n{f'Authorization: Bearer {fairness.token(who)}' + chr(13) + chr(10) if who else ''}"
        self.rest = b""

    def ask(self, method, path, body=b""):
        self.socket.sendall(f"{method} {path} HTTP/1.1\r\n{self.head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        while b"\r\n\r\n" not in self.rest:
            self.rest += self.socket.recv(65536)
        head, rest = self.rest.split(b"\r\n\r\n", 1)
        status = int(head[9:12])
        length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
        chunks, have = [rest], len(rest)
        while have < length:
            chunks.append(self.socket.recv(1 << 20))
            have += len(chunks[-1])
        text = b"".join(chunks)
        self.rest = text[length:]
        return status, text[:length]

    def good(self, method, path, body=b""):
        status, text = self.ask(method, path, body)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {text[:300]!r}")
        return text


def register(host, first, n):
    connection = Connection(host)
    body = json.dumps({"specs": [{"name": "kv", "size": 4096}], "extra": EXTRA}).encode()
    for i in range(first, n, WRITERS):
        connection.good("PUT", f"/v1/instances/m{i * 7919 % n:06}", body)


def listed(host):
    """How many, seconds, and the largest page."""
    connection, after, n, largest = Connection(host), "", 0, 0
    begin = time.monotonic()
    while True:
        text = connection.good("GET", f"/v1/instances?limit=1000&after={after}")
        page = json.loads(text)
        n += len(page["instances"])
        largest = max(largest, len(text))
        after = page.get("next", "")
        if not after:
            return n, time.monotonic() - begin, largest


def restart(m, how):
    """Seconds until it is ready again."""
    m.end(how)
    return m.start()


def instances(lab):
    n = INSTANCES // 20 if lab.quick else INSTANCES
    m = lab.manager("instances")
    host = m.url.removeprefix("http://")
    try:
        begin = time.monotonic()
        writers = [multiprocessing.Process(target=register, args=(host, i, n)) for i in range(WRITERS)]
        for w in writers:
            w.start()
        for w in writers:
            w.join()
        if any(w.exitcode for w in writers):
            raise RuntimeError("a registration failed")
        took = time.monotonic() - begin
        found, listing, largest = listed(host)
        begin = time.monotonic()
        stats = Connection(host).good("GET", "/v1/stats")
        totals = time.monotonic() - begin
        Connection(host).good("GET", "/metrics")
        if found != n or json.loads(stats)["instance_count"] != n:
            raise RuntimeError(f"{found} of {n} instances are listed")
        killed, stopped = (restart(m, how) for how in (signal.SIGKILL, signal.SIGTERM))
    finally:
        m.remove()
    part = n / INSTANCES
    yield {"what": f"register {n:,} instances, {WRITERS} connections", "bar": "60 s for 100,000", "measured": f"{took:.1f} s",
           "floor": "", "met": took <= 60 * part}
    yield {"what": "list them, in pages of 1,000", "bar": "no page over answer_max",
           "measured": f"{listing:.1f} s; largest page {largest / MIB:.1f} MiB; /v1/stats {len(stats) / MIB:.1f} MiB in {totals * 1000:.0f} ms",
           "floor": "", "met": largest < 128 * MIB}
    yield {"what": "restart with them", "bar": "< 5 s", "measured": f"{killed:.1f} s after kill -9, {stopped:.1f} s after a clean stop",
           "floor": "", "met": max(killed, stopped) < 5}


def waits(host, seconds, out):
    """Lookups of another tenant, one after the other: us of each, and how many were refused."""
    connection, took, refused = Connection(host, "quiet"), [], 0
    body = json.dumps({"keys_int": list(range(1, fairness.KEYS + 1)), "lease_ms": 1000}).encode()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.monotonic()
        status, _ = connection.ask("POST", "/v1/instances/m/lookup", body)
        took.append((time.monotonic() - begin) * 1e6)
        refused += status != 200
        time.sleep(0.002)
    out.put((took, refused))


def lists(host, seconds):
    connection, end = Connection(host, "loud"), time.monotonic() + seconds
    while time.monotonic() < end:
        for path in ("/v1/groups", "/metrics", "/v1/storages", "/v1/stats", "/v1/instances"):
            connection.ask("GET", path)


def beside(host, seconds, loud):
    out = multiprocessing.Queue()
    all_of_them = [multiprocessing.Process(target=waits, args=(host, seconds, out))]
    all_of_them += [multiprocessing.Process(target=lists, args=(host, seconds)) for _ in range(loud)]
    for p in all_of_them:
        p.start()
    found = out.get()
    for p in all_of_them:
        p.join()
    return found


def spaces(lab):
    n = SPACES // 20 if lab.quick else SPACES
    m = fairness.manager(lab, "spaces")
    host = m.url.removeprefix("http://")
    try:
        fairness.prepare(m)
        fairness.ask(m.url, "root", "PUT", "/v1/tenants/loud", {"max_spaces": n, "max_instances": n})
        loud = Connection(host, "loud")
        begin = time.monotonic()
        for rank in range(n):
            loud.good("POST", f"/{rank}/initialize", b'{"num_pages":64}')
        made = time.monotonic() - begin
        for i in range(n // 3):
            loud.good("PUT", f"/v1/instances/i{i}", json.dumps({"group": "g", "specs": [{"name": "kv", "size": 4096}]}).encode())
        alone = [beside(host, lab.seconds * 2, 0) for _ in range(lab.rounds)]
        both = [beside(host, lab.seconds * 2, 1) for _ in range(lab.rounds)]
    finally:
        m.remove()
    quiet, worst = (sorted(max(took) for took, _ in r)[len(r) // 2] for r in (alone, both))
    refused = sum(r for _, r in both)
    calls = sum(len(took) for took, _ in both)
    yield {"what": f"worst wait of a tenant's lookups beside another with {n:,} page spaces and {n // 3:,} instances that asks for all lists",
           "bar": "< 2x of quiet, none refused", "floor": "",
           "measured": f"{quiet / 1000:.1f} ms quiet, {worst / 1000:.1f} ms; {refused} of {calls} refused; spaces made in {made:.1f} s",
           "met": worst < 2 * quiet and refused == 0}


ROWS = {"many-instances": instances, "many-spaces": spaces}
