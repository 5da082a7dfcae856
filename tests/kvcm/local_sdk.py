"""local_sdk.py - a stand-in for the local-file SDK of KVCM's clients, and a host without the shared mount.

It does what the SDK does to files, in the same order. A Put whose file is missing creates its directories and the file; then
it opens, allocates, maps, writes and syncs it. A Get maps the file, and fails where there is none.

As a program it takes one JSON request a line and answers each: `local_sdk.py DIRECTORY` first mounts an empty file
system on DIRECTORY, in a mount namespace of its own (`unshare --mount`), so it is a host that lacks this mount.
"""

import json
import mmap
import os
import subprocess
import sys

import uri


def put(place, data):
    if not os.path.exists(place.path):
        os.makedirs(os.path.dirname(place.path), exist_ok=True)
        with open(place.path, "ab"):
            pass
    end = place.offset + place.size
    fd = os.open(place.path, os.O_RDWR)
    try:
        os.posix_fallocate(fd, 0, end)
        with mmap.mmap(fd, end, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE) as memory:
            memory[place.offset:end] = data
            memory.flush()
    finally:
        os.close(fd)


def get(place):
    fd = os.open(place.path, os.O_RDONLY)
    try:
        size = os.fstat(fd).st_size
        with mmap.mmap(fd, size, mmap.MAP_PRIVATE, mmap.PROT_READ) as memory:
            if place.offset + place.size > size:
                raise OSError("the buffer exceeds the file")
            return memory[place.offset:place.offset + place.size]
    finally:
        os.close(fd)


class Host:
    """A process on a host that does not mount `directory`. put and get raise OSError as they do there."""

    def __init__(self, directory, preexec_fn):
        self.process = subprocess.Popen(["unshare", "--mount", "--propagation", "private", sys.executable, "-B", __file__, directory],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=preexec_fn)
        if self.process.stdout.readline() != "ready\n":
            raise OSError("no mount namespace can be made here")

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise OSError(answer["error"])
        return answer

    def put(self, place, data):
        self.ask(do="put", uri=place.uri, data=data.hex())

    def get(self, place):
        return bytes.fromhex(self.ask(do="get", uri=place.uri)["data"])

    def run(self, *command):
        """A program on that host: its status and what it printed."""
        answer = self.ask(do="run", command=command)
        return answer["status"], answer["text"]


def answer_to(request):
    if request["do"] == "run":
        done = subprocess.run(request["command"], capture_output=True, text=True, check=False)
        return {"status": done.returncode, "text": done.stdout + done.stderr}
    place = uri.Place(request["uri"])
    if request["do"] == "put":
        put(place, bytes.fromhex(request["data"]))
        return {}
    return {"data": get(place).hex()}


def serve(directory):
    subprocess.run(["mount", "-t", "tmpfs", "none", directory], check=True)
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            answer = answer_to(json.loads(line))
        except (OSError, ValueError) as e:
            answer = {"error": str(e)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
