"""Bad clients that tests/input/bad_input leaves out: sessions that are over, crowds of slow and half-open
connections, and bodies without end.

usage: bad_input.py KVBLOCKD

Every refusal has the right status and code and names its field; afterwards nothing has changed, the memory of
the manager is bounded, and good clients were served all the time.
"""

import contextlib
import json
import select
import socket
import sys
import time

from manager import Failed, Manager, check, scratch, until

BODY_MAX = 1 << 20
GROWTH_MAX = 96 << 20  # bytes: body_total_max (32 MiB) and what is parsed of it


def expect(m, status, code, field, path, body):
    got, answer = m.call("POST", path, body)
    error = answer.get("error", {}) if isinstance(answer, dict) else {}
    check((got, error.get("code")) == (status, code), path, body, "gave", got, answer)
    check(not field or error.get("detail", {}).get("field") == field, path, "names another field:", answer)
    check(m.directory not in json.dumps(answer), "a path of the server:", answer)


def numbers(m):
    """What no bad request may change."""
    s = m.stats()
    return (s["blocks"], s["sessions"], [(i["id"], i["blocks"], i["used_bytes"]) for i in s["instances"]],
            [(st["name"], st["files"], st["used_bytes"], st["assigned_bytes"]) for st in s["storages"]])


def memory(m):
    with open(f"/proc/{m.process.pid}/status") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("VmRSS"))


def sessions(m):
    """Each way that a session is over is told by its name, and its request id is remembered."""
    late = {"keys": ["late"], "deadline_ms": 100, "request_id": "late"}
    path = "/v1/sessions/" + m.must("POST", "/v1/instances/m/start", late)["session"]
    until(10, lambda: m.stats()["sessions"] == 0, "the session expires")
    expect(m, 410, "session_expired", "session", path + "/finish", {"success": True})
    check(m.must("POST", "/v1/instances/m/start", late)["state"] == "expired", "the request id of an expired session")
    expect(m, 409, "conflict", "request_id", "/v1/instances/m/start", {**late, "keys": ["other"]})

    path = "/v1/sessions/" + m.must("POST", "/v1/instances/m/start", {"keys": ["x", "y"]})["session"]
    expect(m, 400, "invalid_argument", "success.mask", path + "/finish", {"success": {"mask": [True] * 3}})
    expect(m, 400, "invalid_argument", "success.count", path + "/finish", {"success": {"count": 3}})
    expect(m, 400, "invalid_argument", None, path + "/finish", {"success": {"count": -1}})
    expect(m, 400, "invalid_argument", "checksums", path + "/finish", {"success": True, "checksums": ["0" * 16]})
    m.must("POST", path + "/abort", {"quiesced": True})
    expect(m, 409, "session_ended", "session", path + "/finish", {"success": True})


def open_to(m, first=b""):
    s = socket.create_connection(("127.0.0.1", m.port), timeout=30)
    s.sendall(first)
    return s


def read_all(s):
    out = b""
    with contextlib.suppress(ConnectionError):
        while part := s.recv(65536):
            out += part
    return out


def crowds(m):
    """Nothing, half a head, half a body, or a byte now and then: all are closed in time."""
    head = b"POST /v1/match HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
    kinds = (b"", b"POST /v1/ma", head, head + b"\r\n", head + b"\r\n{\"inst")
    crowd = {open_to(m, kinds[i % len(kinds)]) for i in range(250)}
    slow = open_to(m, head + b"\r\n")
    end = time.monotonic() + 30
    while crowd or slow:
        check(time.monotonic() < end, len(crowd), "half-open connections stay; the slow one:", bool(slow))
        check(m.call("GET", "/healthz", timeout=5)[0] == 200, "not served beside a crowd")
        for s in select.select(list(crowd), [], [], 0.2)[0]:
            read_all(s)
            s.close()
            crowd.remove(s)
        try:
            if slow:
                slow.sendall(b" ")  # never idle
        except OSError:
            slow = None


def greedy(m):
    """Lengths that are over the limit or no lengths, a body without end, and many bodies at the limit at once."""
    post = "POST /v1/instances/m/lookup HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    for length in (str(BODY_MAX + 1), str(10 ** 15), "-5", "5x", "9" * 40):
        with open_to(m, f"{post}Content-Length: {length}\r\n\r\n".encode()) as s:
            answer = read_all(s)
        check(answer == b"" or answer[9:12] in (b"400", b"413"), length, answer[:200])
        check(not length.startswith("1") or b"too_large" in answer, length, answer[:300])
    with open_to(m, f"{post}Transfer-Encoding: chunked\r\n\r\n".encode()) as s:
        sent = 0
        with contextlib.suppress(OSError):
            while sent < 64 * BODY_MAX:
                s.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
                sent += 65536
    check(sent < 64 * BODY_MAX, "a body without end is read on and on")

    small = memory(m)
    body = b'{"keys":[' + b'"k",' * ((BODY_MAX - 200) // 4)  # one byte more would be the end
    crowd = []
    for _ in range(120):
        s = open_to(m, f"{post}Content-Length: {BODY_MAX}\r\n\r\n".encode())
        s.settimeout(5)
        with contextlib.suppress(OSError):
            s.sendall(body)
        crowd.append(s)
    grown = memory(m) - small
    for s in crowd:
        s.close()
    check(grown < GROWTH_MAX, f"grew by {grown >> 20} MiB")
    print(f"120 bodies of 1 MiB, 32 MiB allowed together: grew by {grown >> 20} MiB")
    until(20, lambda: m.call("GET", "/healthz")[0] == 200, "served again")


def main():
    with scratch() as directory:
        m = Manager(directory, sys.argv[1], "--storage-capacity", "32M", "--idle-timeout-s", "2", "--body-max", "1M",
                    "--body-total-max", "32M")
        m.start()
        m.must("PUT", "/v1/instances/m", {"specs": [{"name": "kv", "size": 4096}]})
        sessions(m)
        until(10, lambda: m.storage()["quarantined_bytes"] == 0, "settled")
        before = numbers(m)
        for part in (crowds, greedy):
            part(m)
            check(numbers(m) == before, part.__name__, "changed", before, "to", numbers(m))
            print(f"{part.__name__}: passed", flush=True)
        m.stop()
        m.fsck()


if __name__ == "__main__":
    try:
        main()
    except Failed as e:
        sys.exit(f"FAILED: {e}")
