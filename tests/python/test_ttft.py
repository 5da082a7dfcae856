"""client/python/bench/ttft with an engine that is a few lines: as a command, and as a server."""

import http.server
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

TTFT = pathlib.Path(__file__).parents[2] / "client/python/bench/ttft"
ENGINE = """
import json, sys, time
seen = set()
print("READY", flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if request == "flush":
        print("RESULT true", flush=True)
        continue
    key = tuple(request["tokens"])
    hit = key in seen and sys.argv[1] == "caches"
    time.sleep(0.001 if hit else 0.02)
    seen.add(key)
    print("RESULT", json.dumps({"ttft": 0.001 if hit else 0.02, "storage": len(key) if hit else 0}), flush=True)
"""


class Server(http.server.BaseHTTPRequestHandler):
    flushed = 0

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.end_headers()
        if self.path == "/flush_cache":
            Server.flushed += 1
        else:
            assert json.loads(body)["stream"]
            time.sleep(0.002)
            self.wfile.write(b'data: {"choices": []}\n\ndata: [DONE]\n\n')

    def log_message(self, *_):
        pass


class Ttft(unittest.TestCase):
    def run_it(self, *arguments):
        done = subprocess.run([sys.executable, str(TTFT), "--tokens", "100", *arguments], text=True, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_commands(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "engine.py").write_text(ENGINE)
            command = f"{sys.executable} {folder}/engine.py "
            text = self.run_it("--a", command + "none", "--b", command + "caches", "--requests", "20", "--plot", folder + "/p.svg",
                               "--json", folder + "/n.json")
            self.assertIn("20.00 times as fast", text)
            self.assertIn("1600 tokens", text)
            rows = json.loads(pathlib.Path(folder, "n.json").read_text())["b"]
            self.assertEqual(sum(r[2] for r in rows), 16)  # 80 of 100
            self.assertEqual(pathlib.Path(folder, "p.svg").read_text().count("<circle"), 40)

    def test_servers(self):
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            text = self.run_it("--b", f"http://127.0.0.1:{server.server_port}", "--requests", "5", "--flush", "/flush_cache")
            self.assertIn("b, all", text)
            self.assertEqual(Server.flushed, 5)
            server.shutdown()


if __name__ == "__main__":
    unittest.main()
