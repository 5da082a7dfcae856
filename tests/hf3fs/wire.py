"""wire.py - HTTP by hand, for requests that no library sends: halves, single bytes, odd heads."""

import json
import socket


class Answer:
    def __init__(self, status, head, body):
        self.status, self.head, self.body = status, head, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.head} {self.body[:300]}"


class Wire:
    """One connection."""

    def __init__(self, port, timeout=120):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    @staticmethod
    def head(method, path, body, headers=None):
        """headers: more of them, or others (None: without)."""
        fields = {"Host": "localhost", "User-Agent": "python-requests/2.32.3", "Accept-Encoding": "gzip, deflate",
                  "Accept": "*/*", "Connection": "keep-alive", "Content-Type": "application/json",
                  "Content-Length": len(body)}
        fields |= headers or {}
        lines = [f"{method} {path} HTTP/1.1"] + [f"{k}: {v}" for k, v in fields.items() if v is not None]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def send(self, data):
        self.socket.sendall(data)

    def call(self, method, path, body=b"", headers=None):
        """Head and body in two segments, as the real client sends them."""
        self.send(self.head(method, path, body, headers))
        if body:
            self.send(body)
        return self.receive(method)

    def receive(self, method="POST"):
        line = self.file.readline()
        if not line:
            raise ConnectionError("closed without an answer")
        status, head = int(line.split()[1]), {}
        while (line := self.file.readline().strip()):
            name, value = line.split(b":", 1)
            head[name.decode().lower()] = value.strip().decode()
        bodiless = method == "HEAD" or status in (204, 304)
        return Answer(status, head, b"" if bodiless else self.file.read(int(head.get("content-length", 0))))

    def at_end(self):
        """The server has closed the connection."""
        try:
            return self.file.read(1) == b""
        except ConnectionResetError:
            return True
