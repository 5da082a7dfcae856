"""probe.py INSTANCE - a scheduler of the soak: match and lookup over HTTP and gRPC, each beside a call that does nothing.

The call that does nothing (/healthz, grpc.health's Check) is the floor: what connection, TLS, this program and the machine cost at that
moment. A line 'seconds kind microseconds' per call goes to standard output, which is a file. gRPC also starts and aborts sessions.
"""

import http.client
import os
import pathlib
import ssl
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "grpc"))
import manager  # noqa: E402

INSTANCE = sys.argv[1]
HTTP, GRPC = (int(os.environ[name]) for name in ("HTTP_PORT", "GRPC_PORT"))
KEYS = list(range(1, 513))
BEARER = f"Bearer {os.environ['TOKEN']}"
PAUSE_S = float(os.environ.get("PAUSE_S", "0.05"))
stop, writing = threading.Event(), threading.Lock()
failed = []


def note(at, kind, seconds=0.0):
    with writing:
        sys.stdout.write(f"{at:.3f} {kind} {seconds * 1e6:.0f}\n")


def timed(kind, call):
    begin = time.monotonic()
    call()
    end = time.monotonic()
    note(end, kind, end - begin)


def over_http():
    tls = ssl.create_default_context(cafile=os.environ["CA_FILE"])
    body = '{"keys_int":%s,"instances":["%s"]}' % (KEYS, INSTANCE)
    look = '{"keys_int":%s,"lease_ms":100}' % KEYS
    headers = {"Authorization": BEARER, "Content-Type": "application/json"}
    connection = None

    def ask(method, path, text=None):
        connection.request(method, path, text, headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200 and answer.status != 503:
            failed.append(f"{path}: status {answer.status}")
        if answer.status != 200:
            raise OSError(answer.status)

    while not stop.is_set():
        try:
            if connection is None:
                connection = http.client.HTTPSConnection("localhost", HTTP, timeout=30, context=tls)
            timed("http_floor", lambda: ask("GET", "/healthz"))
            timed("http_match", lambda: ask("POST", "/v1/match", body))
            timed("http_lookup", lambda: ask("POST", f"/v1/instances/{INSTANCE}/lookup", look))
        except (OSError, http.client.HTTPException):  # it restarts
            note(time.monotonic(), "interrupted")
            if connection:
                connection.close()
            connection = None
            stop.wait(0.1)
        stop.wait(PAUSE_S)


def over_grpc():
    pb, health, _ = manager.messages()
    grpc, Code = manager.grpc, manager.grpc.StatusCode
    trust = grpc.ssl_channel_credentials(pathlib.Path(os.environ["CA_FILE"]).read_bytes())
    channel = grpc.secure_channel(f"localhost:{GRPC}", trust, options=[("grpc.max_reconnect_backoff_ms", 500)])
    kv = manager.Client(f"localhost:{GRPC}", pb, "SlabKV", metadata=(("authorization", BEARER),))
    check = manager.Client(f"localhost:{GRPC}", health, "Health")
    kv.channel = check.channel = channel
    turn = 0

    def session():
        number = 1_000_000_000_000 + turn * 8
        started = kv.Start(instance=INSTANCE, keys_int=list(range(number, number + 8)), request_id=f"probe-{turn}")
        kv.Abort(session=started.session, quiesced=True)

    while not stop.is_set():
        turn += 1
        try:
            timed("grpc_floor", check.Check)
            timed("grpc_match", lambda: kv.Match(keys_int=KEYS, instances=[INSTANCE]))
            timed("grpc_lookup", lambda: kv.Lookup(keys_int=KEYS, instance=INSTANCE, lease_ms=100))
            timed("grpc_session", session)
        except grpc.RpcError as e:
            if e.code() not in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.RESOURCE_EXHAUSTED, Code.NOT_FOUND, Code.FAILED_PRECONDITION):
                failed.append(f"{e.code()} {e.details()}")
            note(time.monotonic(), f"interrupted_{e.code().name}")
            try:  # calls that fail at once leave grpcio no time to connect
                grpc.channel_ready_future(channel).result(timeout=10)
            except grpc.FutureTimeoutError:
                pass
        stop.wait(PAUSE_S)
    channel.close()


threads = [threading.Thread(target=work) for work in (over_http, over_grpc)]
for thread in threads:
    thread.start()
sys.stdin.read()
stop.set()
for thread in threads:
    thread.join()
if failed:
    sys.exit("\n".join(failed[:5]))
