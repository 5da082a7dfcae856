"""client.py - a KVCM client of its own: over HTTP with requests, over gRPC with grpcio, one interface.

    kvcm("StartWriteCache", instance_id="a", block_keys=[1, 2])["locations"]

takes the fields of the request message and gives the answer as a dict in proto3-JSON's shape, whatever
brought it, so that a test case runs over both. The stock protobuf library is the judge of HTTP answers: each
one is read into its message and printed again, and must come out the same, which holds every rule of the
JSON form (64-bit integers as strings, defaults printed, enums by name, unset messages left out).
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Tests start programs by fork while channels come and go. What grpc does at a fork hangs then, now and then; and it aborts
# (thread_pool.cc) where the last channel was just closed, so that one stays, which never connects.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
KEPT = []

SKIPPED = 77
SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROTOS = SOURCE / "api" / "kvcm"
TIMEOUT_S = 60

META = """RegisterInstance GetInstanceInfo GetCacheMeta GetCacheLocation GetCacheLocationLen
GetCacheLocationsByBackend StartWriteCache FinishWriteCache RemoveCache TrimCache GetClusterInfo ReplicateCache
GetCacheMetaDetail StartEvictWriteCache ReportEvent GetHostCacheState""".split()
DEBUG = "InjectFault RemoveFault ClearFaults".split()
SERVICES = ("meta", "admin", "debug")

# Calls of one instance: if it is not known, that is said before anything else.
PER_INSTANCE = """GetCacheMeta GetCacheLocation GetCacheLocationLen GetCacheLocationsByBackend StartWriteCache
GetCacheMetaDetail StartEvictWriteCache FinishWriteCache RemoveCache TrimCache GetHostCacheState""".split()


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def service_of(api):
    if api in META:
        return "meta"
    return "debug" if api in DEBUG else "admin"


def path_of(api):
    return f"/api/{api[0].lower()}{api[1:]}"


class Answer(dict):
    """What a call gave; `code` and `message` are those of its header."""

    @property
    def code(self):
        return self["header"]["status"]["code"]

    @property
    def message(self):
        return self["header"]["status"]["message"]

    def ok(self):
        assert self.code == "OK", self
        return self

    def refused(self, *codes):
        """Not OK; with codes: one of them."""
        assert self.code in codes if codes else self.code != "OK", (codes, self)
        return self


class Messages:
    """Python classes of the .proto files, made by protoc once for each run, as a peer's client has them."""

    made = None

    def __init__(self):
        if not shutil.which("protoc"):
            raise ImportError("protoc is not installed (package protobuf-compiler)")
        if not (PROTOS / "meta.proto").exists():
            raise ImportError(f"{PROTOS}/meta.proto does not exist")
        from google.protobuf import json_format
        self.json = json_format
        with tempfile.TemporaryDirectory(prefix="skv-kvcm-proto-") as folder:
            names = [f"{s}.proto" for s in SERVICES]
            subprocess.run(["protoc", f"--python_out={folder}", f"--proto_path={PROTOS}", *names], check=True)
            sys.path.insert(0, folder)
            self.modules = {s: __import__(f"{s}_pb2") for s in SERVICES}
            sys.path.remove(folder)

    @classmethod
    def get(cls):
        if cls.made is None:
            cls.made = cls()
        return cls.made

    def rpc(self, service, api):
        """Full name of the call, class of its request, class of its answer."""
        module = self.modules[service]
        about = module.DESCRIPTOR.services_by_name[f"{service.capitalize()}Service"].methods_by_name[api]
        classes = [getattr(module, t.name) for t in (about.input_type, about.output_type)]
        return f"/{about.containing_service.full_name}/{api}", *classes

    def request(self, service, api, fields):
        return self.json.ParseDict(fields, self.rpc(service, api)[1]())

    def shown(self, message):
        return self.json.MessageToDict(message, including_default_value_fields=True, preserving_proto_field_name=True)

    def judge(self, service, api, text):
        """The text of an answer must be what protobuf prints for the message that it says."""
        message = self.json.Parse(text, self.rpc(service, api)[2]())
        expected, got = self.shown(message), json.loads(text)
        assert got == expected, f"{api} printed {got}, protobuf prints {expected}"


class Http:
    """The peer's HTTP interface. The header in every 200 answer is looked at here, once for all cases."""

    name = "http"

    def __init__(self, server, token=None):
        try:
            import requests
        except ImportError as e:
            raise ImportError(f"{e} (package python3-requests)") from e
        self.server, self.token = server, token
        self.session = requests.Session()
        self.session.headers.update({"Accept": "application/json", "Content-Type": "application/json"})
        if token:
            self.session.headers["Authorization"] = f"Bearer {token}"
        try:
            self.messages = Messages.get()
        except ImportError as e:
            print(f"answers are not compared with protobuf's: {e}")
            self.messages = None

    def again(self):
        """Another client of the same server, with a connection of its own."""
        return Http(self.server, self.token)

    def base(self, service):
        return self.server.meta_url if service == "meta" else self.server.admin_url

    def shape(self, api, service):
        """Where meta and admin share one port, a path that both have is meta's."""
        return "meta" if api in META and self.server.meta_url == self.server.admin_url else service

    def raw(self, api, body, service=None, **more):
        """The body as it is; gives requests' response."""
        service = service or service_of(api)
        data = body if isinstance(body, bytes) else body.encode()
        return self.session.post(self.base(service) + path_of(api), data=data, timeout=TIMEOUT_S, **more)

    def __call__(self, api, *, service=None, **fields):
        service = self.shape(api, service or service_of(api))
        if self.messages:
            self.messages.request(service, api, fields)  # a test with a misspelt field would test nothing
        return self.answer(api, self.raw(api, json.dumps(fields), service), service)

    def answer(self, api, response, service=None):
        """What a call answered that must have been understood; header and JSON form are looked at."""
        service = service or service_of(api)
        assert response.status_code == 200, (api, response.status_code, response.text[:500])
        assert response.headers["Content-Type"].split(";")[0] == "application/json", response.headers
        got = Answer(response.json())
        assert {"code", "message"} <= got["header"]["status"].keys(), got
        if self.messages:
            self.messages.judge(service, api, response.text)
        check_header(service, got)
        return got

    def close(self):
        self.session.close()


class Grpc:
    """The same over gRPC: application errors stand in the header, the status of the call is OK."""

    name = "grpc"

    def __init__(self, server, token=None):
        try:
            import grpc
        except ImportError as e:
            raise ImportError(f"{e} (package python3-grpcio)") from e
        KEPT[:] = KEPT or [grpc.insecure_channel("127.0.0.1:1")]
        self.server, self.token, self.grpc = server, token, grpc
        self.messages = Messages.get()
        self.channels = {}
        self.calls = {}

    def again(self):
        return Grpc(self.server, self.token)

    def channel(self, service):
        address = self.server.meta_address if service == "meta" else self.server.admin_address
        if address not in self.channels:
            # A pool of its own for each client: grpcio would share one connection between equal channels.
            options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
            self.channels[address] = self.grpc.insecure_channel(address, options=options)
        return self.channels[address]

    def __call__(self, api, *, service=None, **fields):
        return self.send(api, self.message(api, service=service, **fields), service=service)

    def message(self, api, *, service=None, **fields):
        return self.messages.request(service or service_of(api), api, fields)

    def send(self, api, message, *, service=None):
        service = service or service_of(api)
        path, _, answer = self.messages.rpc(service, api)
        channel = self.channel(service)  # another one after a restart: the ports are others
        if (channel, path) not in self.calls:
            self.calls[channel, path] = channel.unary_unary(
                path, request_serializer=lambda m: m.SerializeToString(), response_deserializer=answer.FromString)
        metadata = (("authorization", f"Bearer {self.token}"),) if self.token else ()
        got = Answer(self.messages.shown(self.calls[channel, path](message, timeout=TIMEOUT_S, metadata=metadata)))
        check_header(service, got)
        return got

    def close(self):
        for channel in self.channels.values():
            channel.close()


TRANSPORTS = {t.name: t for t in (Http, Grpc)}


def check_header(service, answer):
    header = answer["header"]
    assert re.fullmatch(r"(.*_[0-9]+)?", header["request_id"], re.S), header
    assert ("tracer_result" in header) == (service == "meta"), header
    assert answer.code != "UNSPECIFIED", answer
