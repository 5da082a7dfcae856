"""bulk.py - a journal that grows fast."""

import http.client
import json
import threading
from urllib.parse import urlsplit

MANY = json.dumps({"keys_int": list(range(1 << 50, (1 << 50) + 500)), "independent": True})


class Bulk:
    """Starts of many keys which are aborted, at any manager, until it ends: a journal that grows fast."""

    def __init__(self, members):
        self.stop, self.members = threading.Event(), members
        self.threads = [threading.Thread(target=self.go, args=(m,), daemon=True) for m in members]
        for t in self.threads:
            t.start()

    def go(self, member):
        wire = None
        while not self.stop.wait(0.02):
            try:
                wire = wire or http.client.HTTPConnection(urlsplit(member.url).netloc, timeout=20)
                session = self.post(wire, "/v1/instances/owned/start", MANY).get("session")
                if session:
                    self.post(wire, f"/v1/sessions/{session}/abort", '{"quiesced":true}')
            except (OSError, http.client.HTTPException, ValueError):
                wire = wire.close() if wire else None

    @staticmethod
    def post(wire, path, body):
        wire.request("POST", path, body, {"Content-Type": "application/json"})
        return json.loads(wire.getresponse().read())

    def end(self):
        self.stop.set()
        for t in self.threads:
            t.join()
