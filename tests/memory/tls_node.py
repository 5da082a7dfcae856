"""tls_node.py - memory nodes with a certificate, and connections to them over TLS (node.py has the plain ones)."""

import http.client
import json
import pathlib
import ssl
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tls"))

from node import HELLO, MIB, Data, MemoryNode  # noqa: E402
from pki import Pki  # noqa: E402


class TlsNode(MemoryNode):
    """With a certificate for 127.0.0.1; asked with `shown`, a client's certificate, if there is one."""

    def __init__(self, program, pki, shown=None, **more):
        self.pki, self.shown = pki, shown
        super().__init__(program, memory=32 * MIB, tls_cert_file=pki.at("node"), tls_key_file=pki.at("node", "key"), **more)

    def context(self, shown=None, ca="ca"):
        context = ssl.create_default_context(cafile=self.pki.at(ca))
        if shown or self.shown:
            context.load_cert_chain(self.pki.at(shown or self.shown), self.pki.at(shown or self.shown, "key"))
        return context

    def call(self, method, path, body=None, token=None, **more):
        connection = http.client.HTTPSConnection(*self.address, timeout=60, context=self.context())
        try:
            connection.request(method, path, None if body is None else json.dumps(body).encode(), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text[:1] in b"{[" else text
        finally:
            connection.close()

    def url(self, directory):
        return super().url(directory).replace("http://", "https://")


class TlsData(Data):
    def __init__(self, node, shown=None):
        super().__init__(node, hello=False)
        self.s = node.context(shown).wrap_socket(self.s, server_hostname="127.0.0.1")
        self.answer = self.ask(HELLO, file=1, payload=f"{node.name}\0\0".encode())


def make_pki(folder):
    pki = Pki(folder)
    pki.issue("node", key="rsa:2048")
    for name in ("manager", "reader", "stranger"):
        pki.issue(name, names=None, usage="clientAuth")
    Pki(folder, "other")
    return pki
