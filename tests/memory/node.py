"""node.py - real memory nodes, started and ended as tests/fsmaster/master.py does it, and their data protocol by hand.

`MemoryNode(program, name)` offers memory; `Data(node)` is a client's connection to it (api/include/skv/memory_node.h).
"""

import array
import hmac
import mmap
import os
import pathlib
import socket
import struct
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "fsmaster"))

from master import FsMaster, Manager, READER, TOKEN, call, content, die_with_parent, environment, patience, span, until, uuid_of  # noqa: E402

__all__ = ["BEGIN", "Data", "END", "HELLO", "LOCAL", "Manager", "MemoryNode", "OPEN", "PROVE", "RDMA", "READ", "READER", "TOKEN", "WRITE", "call", "content",
           "die_with_parent", "environment", "metric", "node_storage", "patience", "refused", "shared_memory", "span", "until", "uuid_of"]

KIB, MIB = 1 << 10, 1 << 20
HELLO, OPEN, READ, BEGIN, WRITE, END, RDMA, LOCAL, PROVE = range(1, 10)
FRAME = struct.Struct("<IBBhIIQQ")
MAGIC = 0x4D764B53


class MemoryNode(FsMaster):
    def __init__(self, program, name="m0", memory=16 * MIB, **more):
        more.setdefault("memory_port", 0)
        super().__init__(program, "/", role="memory-node", memory=memory, memory_name=name, memory_pages="normal", **more)
        del self.parameters["root"]
        self.name = name

    def start(self):
        super().start()
        self.about = self.call("GET", "/")[1]
        self.parameters["http-port"], self.parameters["memory-port"] = self.port, self.about["port"]  # when it comes back

    def node_url(self):
        return self.url(self.name)


class Data:
    """Raises OSError when the node ends the connection."""

    def __init__(self, node, local=False, epoch=0, token="", hello=True):
        about = node.call("GET", "/")[1]
        if local:
            pass_ = Data(node, epoch=epoch, token=token)
            self.ticket, self.key = pass_.pass_()
            pass_.close()
            self.s = socket.socket(socket.AF_UNIX)
            self.s.connect(f"\0slabkv-memory/{about['epoch']}/{about['name']}")
        else:
            self.s = socket.create_connection((node.address[0], about["port"]))
        self.s.settimeout(30 * patience())
        self.epoch = int(about["epoch"], 16)
        if local:
            if hello:
                self.answer = self.prove(self.ticket)
        elif hello:
            self.answer = self.ask(HELLO, file=1, offset=epoch, payload=f"{about['name']}\0{token}\0".encode())

    def pass_(self):
        """Ticket and key."""
        status, _, _, body = self.ask(LOCAL)
        assert status == 0 and len(body) == 80, (status, body)
        return body[16:48], body[48:]

    def prove(self, ticket, key=None):
        mine = os.urandom(32)
        _, _, _, body = self.ask(LOCAL, payload=ticket + mine)
        nonces = mine + body[:32]
        assert body[32:] == hmac.digest(self.key, b"n" + nonces, "sha256"), "the node knows the key"
        return self.ask(PROVE, payload=hmac.digest(key or self.key, b"c" + nonces, "sha256"))

    def send(self, op, flags=0, file=0, extra=None, offset=0, length=0, payload=b""):
        extra = len(payload) if extra is None else extra
        self.s.sendall(FRAME.pack(MAGIC, op, flags, 0, file, extra, offset, length) + payload)

    def take(self, n):
        out = b""
        while len(out) < n:
            more = self.s.recv(n - len(out))
            if not more:
                raise OSError("the node ended the connection")
            out += more
        return out

    def get(self, fds=None):
        if fds is None:
            raw = self.take(FRAME.size)
        else:
            raw, control, _, _ = self.s.recvmsg(FRAME.size, 64, socket.MSG_WAITALL)
            for _, _, data in control:
                got = array.array("i")
                got.frombytes(data)
                fds.extend(got)
        _, op, _, status, _, extra, offset, length = FRAME.unpack(raw)
        body = b"" if op in (READ, BEGIN) and status == 0 else self.take(extra)
        return status, offset, length, body

    def ask(self, *arguments, fds=None, **more):
        self.send(*arguments, **more)
        return self.get(fds)

    def read(self, file, offset, length):
        status, _, _, body = self.ask(READ, file=file, offset=offset, length=length)
        return self.take(length) if status == 0 else (status, body.decode())

    def write(self, file, offset, data):
        self.send(WRITE, file=file, offset=offset, length=len(data), extra=0)
        self.s.sendall(data)

    def map(self, file, write=True):
        fds = []
        status, mapped, length, _ = self.ask(OPEN, flags=int(write), file=file, fds=fds)
        assert status == 0 and len(fds) == 1, (status, fds)
        view = mmap.mmap(fds[0], mapped, prot=mmap.PROT_READ | (mmap.PROT_WRITE if write else 0))
        return view, fds[0], length

    def close(self):
        self.s.close()


def node_storage(node, **more):
    return {"type": "memory", "capacity": 8 * MIB, "unit": 64 * KIB, "file_size": MIB, "fs_master": [node.node_url()], **more}


def refused(answer, status, code, words, field=None):
    got, body = answer
    assert got == status and body["error"]["code"] == code, answer
    assert words in body["error"]["message"], answer
    if field:
        assert body["error"]["detail"].get("field") == field, answer


def metric(server, name, label=""):
    text = server.call("GET", "/metrics")[1].decode()
    return next(float(line.split()[-1]) for line in text.splitlines()
                if line.split("{")[0].split(" ")[0] == name and label in line)


def shared_memory():
    """What slabs would be called there: others' tests run on this host, too."""
    return {name for name in os.listdir("/dev/shm") if name.startswith(("slabkv-slab", "slabkv-memory"))}
