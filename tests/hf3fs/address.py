"""address.py - one address before several managers, which clients know: what a virtual address or a load balancer does."""

import socket
import threading
import time


class Address:
    """Takes connections at one port and passes each on to the port that `choose` names; waits for one while that is None."""

    def __init__(self):
        self.choose, self.closed = lambda: None, False
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.name = f"127.0.0.1:{self.socket.getsockname()[1]}"
        self.url = f"http://{self.name}"
        threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        while not self.closed:
            try:
                threading.Thread(target=self.serve, args=(self.socket.accept()[0],), daemon=True).start()
            except OSError:
                return

    def serve(self, near):
        far = None
        while not far and not self.closed:
            port = self.choose()
            try:
                far = socket.create_connection(("127.0.0.1", port)) if port else time.sleep(0.02)
            except OSError:
                time.sleep(0.02)
        if far:
            threading.Thread(target=self.copy, args=(far, near), daemon=True).start()
            self.copy(near, far)

    @staticmethod
    def copy(source, sink):
        try:
            while piece := source.recv(65536):
                sink.sendall(piece)
        except OSError:
            pass
        for s in (source, sink):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.closed = True
        self.socket.close()
