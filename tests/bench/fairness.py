"""fairness.py - the row of fairness: how far a tenant that asks for ten times its share moves another's lookups.

Run as a program it is a part of that tenant: bursts of calls over several connections (LOUD of ATTACKS).
"""

import http.client
import json
import multiprocessing
import os
import socket
import struct
import subprocess
import sys
import time
import urllib.request

KEYS = 512
PER_S = 200  # calls of a tenant: its share
TIMES = 10  # what the loud one asks for of its own
BAR = 2
LIMITS = {"requests_per_s": PER_S, "blocks_per_s": PER_S * KEYS}
LOUD = 4  # processes
BURST = 8  # connections of each, or streams: all ask at once
DEBIAN = "/usr/bin/python3"  # which has gRPC
# What it asks for ten times of: calls of the usual size, or blocks in calls ten times as large.
ATTACKS = {"calls": (TIMES, 1, "lookup"), "large calls": (1, TIMES, "lookup"), "starts": (TIMES, 1, "start")}


def token(who):
    return f"token-of-{who}-0123456789"


def ask(url, who, method, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), method=method,
                                     headers={"Authorization": f"Bearer {token(who)}"})
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read() or b"null")


def caller(host, who, per_s, seconds, out):
    """Lookups of all keys at a steady rate, whatever they answer: [us of those that were answered], how many were refused."""
    connection = http.client.HTTPConnection(host)
    body = json.dumps({"keys_int": list(range(1, KEYS + 1)), "lease_ms": 1000})
    head = {"Authorization": f"Bearer {token(who)}", "Content-Type": "application/json"}
    took, refused, begin = [], 0, time.monotonic()
    for i in range(int(per_s * seconds)):
        due = begin + i / per_s
        left = due - time.monotonic()
        if left > 0:
            time.sleep(left)
        elif time.monotonic() - begin > seconds * 1.2:
            break
        at = time.monotonic()
        connection.request("POST", "/v1/instances/m/lookup", body, head)
        answer = connection.getresponse()
        answer.read()
        if answer.status == 200:
            took.append((time.monotonic() - at) * 1e6)
        else:
            refused += 1
    out.put((took, refused, time.monotonic() - begin))


def run(host, loads, seconds):
    """Of each load (who, calls a second) what its callers saw."""
    outs = [multiprocessing.Queue() for _ in loads]
    callers = [multiprocessing.Process(target=caller, args=(host, who, per_s, seconds, out))
               for (who, per_s), out in zip(loads, outs)]
    for c in callers:
        c.start()
    found = [out.get() for out in outs]
    for c in callers:
        c.join()
    return found


def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


class Http:
    def __init__(self, address, op):
        self.address, self.op = address, op
        host, port = address.split(":")
        self.sockets = [socket.create_connection((host, int(port))) for _ in range(BURST)]

    def burst(self, keys):
        """How many were answered."""
        good = 0
        for s, k in zip(self.sockets, keys):
            body = json.dumps({"keys_int": k, **({"lease_ms": 1000} if self.op == "lookup" else {"deadline_ms": 1000})}).encode()
            s.sendall(f"POST /v1/instances/m/{self.op} HTTP/1.1\r\nHost: m\r\nAuthorization: Bearer {token('loud')}\r\n"
                      f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        for s in self.sockets:
            answer = http.client.HTTPResponse(s)
            answer.begin()
            answer.read()
            good += answer.status == 200
        return good


class Grpc:
    def __init__(self, address, op):
        import grpc  # pylint: disable=import-outside-toplevel,import-error
        self.grpc, self.op = grpc, op
        self.calls = [grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]).unary_unary(
            f"/slabkv.v1.SlabKV/{op.capitalize()}") for _ in range(BURST)]

    def burst(self, keys):
        good, tail = 0, bytes([6 << 3]) + varint(1000) + field(15, b"m")
        running = [call.future(field(2, struct.pack(f"<{len(k)}Q", *k)) + tail, metadata=[("authorization", f"Bearer {token('loud')}")])
                   for call, k in zip(self.calls, keys)]
        for call in running:
            try:
                call.result()
                good += 1
            except self.grpc.RpcError as e:
                assert e.code() == self.grpc.StatusCode.RESOURCE_EXHAUSTED, e
        return good


def loud(address, over, attack, number, seconds):
    """Of one process: calls that it sent and that were answered, and the seconds it took."""
    times, wide, op = ATTACKS[attack]
    wire = (Grpc if over == "gRPC" else Http)(address, op)
    sent = answered = 0
    fresh = 1 + (1 + number << 40)
    every, begin = BURST / (PER_S * times / LOUD), time.monotonic()
    while time.monotonic() - begin < seconds:
        keys = [list(range(1, KEYS * wide + 1))] * BURST
        if op == "start":
            keys = [list(range(fresh + i * KEYS, fresh + (i + 1) * KEYS)) for i in range(BURST)]
            fresh += BURST * KEYS
        answered += wire.burst(keys)
        sent += BURST
        left = begin + sent / BURST * every - time.monotonic()
        if left > 0:
            time.sleep(left)
    print(sent, answered, time.monotonic() - begin)


def beside(m, at, over, attack, seconds):
    """What the quiet one saw at m, and calls a second of the other, at `at`, sent and answered."""
    address = at.grpc if over == "gRPC" else at.url.removeprefix("http://")
    others = [subprocess.Popen([DEBIAN, __file__, address, over, attack, str(i), str(seconds + 1)], stdout=subprocess.PIPE, text=True)
              for i in range(LOUD)]
    time.sleep(0.5)
    took, refused, _ = run(m.url.removeprefix("http://"), [("quiet", PER_S / 2)], seconds)[0]
    said = [[float(n) for n in p.communicate()[0].split()] for p in others]
    if any(p.returncode or len(one) != 3 for p, one in zip(others, said)):
        raise RuntimeError(f"the other tenant failed over {over}")
    return took, refused, sum(sent / lasted for sent, _, lasted in said), sum(n / lasted for _, n, lasted in said)


def attacks(lab, m, elsewhere):
    """Each a line: p99 beside bursts of each kind, against the same bursts at another manager of this machine just before, so that
    what their senders cost is in both."""
    seconds = lab.seconds * 2
    for over in ("HTTP", "gRPC"):
        if over == "gRPC" and subprocess.run([DEBIAN, "-c", "import grpc"], stderr=subprocess.DEVNULL, check=False).returncode:
            continue
        for attack, (_, wide, op) in ATTACKS.items():
            found = []
            for _ in range(lab.rounds):
                apart = p99(beside(m, elsewhere, over, attack, seconds)[0])
                took, refused, sent, answered = beside(m, m, over, attack, seconds)
                found.append((p99(took) / apart, apart, p99(took), sent, answered, refused))
            ratio, one, both, sent, answered, refused = sorted(found)[len(found) // 2]
            ratios = ", ".join(f"{f[0]:.1f}" for f in found)
            yield {"what": f"the same beside bursts over {over}, {LOUD * BURST} connections: {attack} ({op}s of {KEYS * wide} keys)",
                   "bar": f"< {BAR}x of the same at another manager", "measured": f"{ratio:.1f}x ({ratios}): "
                   f"{one / 1000:.1f} ms, {both / 1000:.1f} ms; the other sent {sent:.0f}/s, {answered:.0f}/s answered; "
                   f"{refused} of this one's refused", "floor": "-", "met": ratio < BAR}


def p99(took):
    return sorted(took)[int(len(took) * 0.99)]


def prepare(m):
    ask(m.url, "root", "PUT", "/v1/storages/s", {"type": "null", "capacity": 1 << 30})
    ask(m.url, "root", "PUT", "/v1/groups/g", {"storages": ["s"]})
    for who in ("quiet", "loud"):
        ask(m.url, who, "PUT", "/v1/instances/m", {"group": "g", "specs": [{"name": "kv", "size": 4096}]})
        started = ask(m.url, who, "POST", "/v1/instances/m/start", {"keys_int": list(range(1, KEYS + 1))})
        ask(m.url, who, "POST", f"/v1/sessions/{started['session']}/finish", {"success": True})


def manager(lab, name):
    folder = os.path.join(lab.dir, name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "tokens"), "w", encoding="ascii") as f:
        f.write(f"admin default {token('root')}\nwrite quiet {token('quiet')}\nwrite loud {token('loud')}\n")
    os.chmod(os.path.join(folder, "tokens"), 0o600)
    return lab.manager(name, "--tokens-file", "tokens")


def fairness(lab):
    m, elsewhere = (manager(lab, name) for name in ("fairness", "elsewhere"))
    host, seconds = m.url.removeprefix("http://"), lab.seconds * 2
    quiet, other = ("quiet", PER_S / 2), ("loud", PER_S * TIMES / LOUD)
    best = None
    try:
        for one in (m, elsewhere):
            prepare(one)
            for who in ("quiet", "loud"):
                ask(one.url, "root", "PUT", f"/v1/tenants/{who}", LIMITS)
        for _ in range(lab.rounds):
            alone = run(host, [quiet, *[("quiet", 0.001)] * LOUD], seconds)[0]
            both = run(host, [quiet, *[other] * LOUD], seconds)
            sent = sum(len(took) + refused for took, refused, _ in both[1:])
            answered = sum(len(took) for took, _, _ in both[1:])
            asked = sent / max(lasted for _, _, lasted in both[1:])
            now = p99(both[0][0]) / p99(alone[0]), p99(alone[0]), p99(both[0][0]), asked, answered / sent, both[0][1]
            best = now if best is None or now[0] < best[0] else best
        ask(m.url, "root", "PUT", "/v1/tenants/loud", {})
        free = run(host, [quiet, *[other] * LOUD], seconds)
        ask(m.url, "root", "PUT", "/v1/tenants/loud", LIMITS)
        lines = list(attacks(lab, m, elsewhere))
    finally:
        m.remove()
        elsewhere.remove()
    ratio, one, both, asked, passed, refused = best
    yield {"what": f"lookup of {KEYS} keys, p99, beside a tenant at {TIMES}x its {PER_S} calls/s (limits of both)",
           "bar": f"< {BAR}x of alone", "measured": f"{ratio:.1f}x: {one / 1000:.1f} ms alone, {both / 1000:.1f} ms; the other sent "
           f"{asked:.0f}/s, {passed:.0%} answered; {refused} of this one's refused",
           "floor": f"without limits: {p99(free[0][0]) / 1000:.1f} ms", "met": ratio < BAR}
    yield from lines


ROWS = {"fairness": fairness}

if __name__ == "__main__":
    os.nice(5)  # what it costs its own host is not asked here
    loud(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
