"""lookups.py - the rows of one key at a time, of misses, and of searches that are no prefix.

One key is what a client's own cost and the server's cost of a call show best: over one connection, and over eight. The
searches are KVCM's query types, all of the same keys of one instance whose blocks have a part for layers with full
attention and one for a state; a prefix of both parts is their floor.
"""

import http.client
import json
import statistics
import urllib.parse

from pages import cpu_us
from scale import line

KEYS = 512
JSON = {"Content-Type": "application/json"}


def least(lab, m, *args):
    """Of some rounds the one with the least CPU time of the manager."""
    found = [m.bench("--seconds", lab.seconds, *args)[0][0] for _ in range(lab.rounds)]
    if any(op["success"] != 1 for op in found):
        raise RuntimeError("a lookup did not find what it should")
    return min(found, key=lambda op: op["manager_cpu_us_per_call"])


def beside_echo(lab, m, clients, args, kvcm, request, answer):
    """Rounds in turns with the floor: medians of both, and of their ratios."""
    pairs = []
    for _ in range(2 * lab.rounds + 1):
        op = m.bench("--seconds", lab.seconds / 2, "--clients", clients, *args, kvcm=kvcm)[0][0]
        floor = lab.floor("echo", request, answer, clients, lab.seconds / 2, 2)
        if op["success"] != 1:
            raise RuntimeError("a lookup missed")
        pairs.append((op["manager_cpu_us_per_call"], floor["cpu_us_per_call"], op["p50_us"], floor["p50_us"]))
    return [statistics.median(v) for v in zip(*pairs)] + [statistics.median(p[0] / p[1] for p in pairs)]


def one_key(lab, clients):
    """The floor's requests and answers have the same length as those over HTTP; bare gRPC was not measured."""
    m = lab.manager("one-key")
    try:
        ways = {"protobuf over HTTP": ["--ops", "lookup", "--keys", 1],
                "KVCM over gRPC": ["--ops", "get-grpc", "--keys", 1]}
        for name, args in ways.items():
            bar = clients > 1 and "HTTP" in name
            sent = m.call_bytes(*ways["protobuf over HTTP"])
            ours, bare, p50, bare_p50, ratio = beside_echo(lab, m, clients, args, "KVCM" in name, *sent)
            yield line(f"1 key, {clients} connection{'s' if clients > 1 else ''}, {name}",
                       "<= 1.5x echo, CPU a call" if bar else "-", f"{ours:.1f} us CPU = {ratio:.2f}x, p50 {p50:.0f} us",
                       f"echo {bare:.1f} us CPU, p50 {bare_p50:.0f} us", ratio <= 1.5 if bar else None)
    finally:
        m.remove()


def misses(lab):
    m = lab.manager("misses")
    try:
        op = least(lab, m, "--ops", "lookup", "--keys", KEYS, "--batch", "--hits", "0")
        hit = least(lab, m, "--ops", "lookup", "--keys", KEYS, "--batch")
        touch = lab.floor("floor", 512, KEYS, 4096, 64, lab.seconds)
    finally:
        m.remove()
    a, b = op["manager_cpu_us_per_call"], hit["manager_cpu_us_per_call"]
    yield line(f"{KEYS} misses, each key by itself, protobuf", "<= that of hits",
               f"{a:.0f} us CPU a call ({a / KEYS * 1000:.0f} ns a key)",
               f"hits {b:.0f} us, touch {touch['ns_per_key']:.0f} ns a key", a <= b)


# ---- searches ----------------------------------------------------------------------------------------

class Kvcm:
    """One connection, and an instance of two parts."""

    def __init__(self, m):
        self.m = m
        where = urllib.parse.urlsplit(m.url)
        self.http = http.client.HTTPConnection(where.hostname, where.port, timeout=120)
        self.put("storages/searches", type="null", root="", capacity=1 << 40, file_size=1 << 40, enabled=True)
        self.put("groups/searches", storages=["searches"])
        self.post("registerInstance", instance_group="searches", block_size=64,
                  model_deployment={"model_name": "bench", "dtype": "bf16", "tp_size": 1, "dp_size": 1, "pp_size": 1},
                  location_spec_infos=[{"name": "attention", "size": 65536}, {"name": "state", "size": 4096}],
                  location_spec_groups=[{"name": "full", "spec_names": ["attention"]},
                                        {"name": "linear", "spec_names": ["state"]}])

    def call(self, method, path, body):
        self.http.request(method, path, body, JSON)
        answer = self.http.getresponse()
        text = answer.read()
        if answer.status not in (200, 201):
            raise RuntimeError(f"{path}: {answer.status} {text[:200]!r}")
        return json.loads(text) if text else {}

    def put(self, path, **body):
        return self.call("PUT", "/v1/" + path, json.dumps(body))

    def body(self, **fields):
        return json.dumps({"trace_id": "bench", "instance_id": "searches", **fields})

    def post(self, op, **fields):
        answer = self.call("POST", "/api/" + op, self.body(**fields))
        if answer["header"]["status"]["code"] != "OK":
            raise RuntimeError(f"{op}: {answer['header']}")
        return answer

    def fill(self, blocks):
        for at in range(0, blocks, 4096):
            started = self.post("startWriteCache", write_timeout_seconds=30, block_keys=list(range(at, at + 4096)))
            self.post("finishWriteCache", write_session_id=started["write_session_id"],
                      success_blocks={"offset": len(started["locations"])})

    def cpu(self, calls, **fields):
        """Manager's CPU time of a call, of many with the same keys each."""
        bodies = [self.body(block_keys=list(range(i * KEYS, (i + 1) * KEYS)), block_mask={"offset": 0}, **fields)
                  for i in range(16)]
        before = cpu_us(self.m.process.pid)
        for i in range(calls):
            answer = self.call("POST", "/api/getCacheLocation", bodies[i % 16])
            if len(answer.get("locations", [])) != KEYS:
                raise RuntimeError(f"{len(answer.get('locations', []))} of {KEYS} keys were found")
        return (cpu_us(self.m.process.pid) - before) / calls


def searches(lab):
    """In turns, so that other work is over all of them."""
    ways = {"prefix": {"query_type": "QT_PREFIX_MATCH"},
            "hybrid": {"query_type": "QT_PREFIX_MATCH_WITH_MAMBA"},
            "window": {"query_type": "QT_REVERSE_ROLL_SW_MATCH", "sw_size": KEYS}}
    found = {name: [] for name in ways}
    m = lab.manager("searches")
    try:
        c = Kvcm(m)
        c.fill(16 * KEYS)
        for _ in range(5):
            for name, fields in ways.items():
                found[name].append(c.cpu(max(8, int(50 * lab.seconds)), **fields))
    finally:
        m.remove()
    base = found["prefix"]
    for name in ("hybrid", "window"):
        ratio = statistics.median(a / b for a, b in zip(found[name], base))
        yield line(f"{name} search of {KEYS} keys, KVCM, JSON, two parts", "<= 1.5x the prefix search",
                   f"{min(found[name]):.0f} us CPU = {ratio:.2f}x", f"prefix {min(base):.0f} us", ratio <= 1.5)


ROWS = {
    "lookup-1-alone": lambda lab: one_key(lab, 1),
    "lookup-1-eight": lambda lab: one_key(lab, 8),
    "lookup-misses": misses,
    "lookup-searches": searches,
}
