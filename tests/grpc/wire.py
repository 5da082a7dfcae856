"""wire.py - HTTP/2 frames by hand, for tests that do what no client library would do."""

import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def length(n):
    """An HPACK integer of a 7-bit prefix."""
    if n < 127:
        return bytes([n])
    out, n = bytes([127]), n - 127
    while n >= 128:
        out, n = out + bytes([n % 128 | 128]), n // 128
    return out + bytes([n])


def header(name, value):
    """A literal field that enters no table."""
    name, value = name.encode(), value if isinstance(value, bytes) else value.encode()
    return b"\0" + length(len(name)) + name + length(len(value)) + value


def head(path="/slabkv.v1.SlabKV/GetStats", method="POST", kind="application/grpc", **more):
    fields = {":method": method, ":scheme": "http", ":path": path, ":authority": "x", "content-type": kind, "te": "trailers"}
    fields.update({k.replace("_", "-"): v for k, v in more.items()})
    return b"".join(header(k, v) for k, v in fields.items() if v is not None)


def message(body=b"", flag=0):
    return struct.pack(">BI", flag, len(body)) + body


class Wire:
    """One connection; reads frames. It allows no HPACK table, so that header fields come as they are."""

    def __init__(self, port, preface=PREFACE + frame(SETTINGS, 0, 0, b"\0\1\0\0\0\0"), source="127.0.0.1"):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60, source_address=(source, 0))
        self.buffer = b""
        self.send(preface)

    def send(self, data):
        """False when the other side has closed."""
        try:
            self.socket.sendall(data)
            return True
        except OSError:
            return False

    def take(self, n):
        while len(self.buffer) < n:
            try:
                more = self.socket.recv(65536)
            except ConnectionError:
                more = b""
            if not more:
                return None
            self.buffer += more
        out, self.buffer = self.buffer[:n], self.buffer[n:]
        return out

    def frames(self):
        """(kind, flags, stream, payload) until the connection ends."""
        while True:
            start = self.take(9)
            if start is None:
                return
            payload = self.take(int.from_bytes(start[:3], "big"))
            if payload is None:
                return
            yield start[3], start[4], int.from_bytes(start[5:9], "big"), payload

    def until_closed(self, seconds=60):
        """All frames until the other side closes, which it must do."""
        self.socket.settimeout(seconds)
        return list(self.frames())

    def answer(self, stream):
        """The bytes of all header blocks of a stream, until it ends."""
        blocks = b""
        for kind, flags, number, payload in self.frames():
            if number != stream:
                continue
            if kind == HEADERS:
                blocks += payload
            if kind == RST:
                return blocks + b" RST " + payload
            if kind in (HEADERS, DATA) and flags & END_STREAM:
                return blocks
        return blocks + b" CLOSED"

    def close(self):
        self.socket.close()
