"""Storage that is as slow as a test says (slow.c), for the engine "posix"."""

import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

from daemon import wait_for

HERE = pathlib.Path(__file__).parent
PATTERN = 0xA5


def build(folder):
    """The library to preload."""
    library = pathlib.Path(folder, "slow.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, HERE / "slow.c", "-ldl", "-pthread"], check=True)
    return library


def preload():
    """Starts this program again with it, unless it has it; the file is SKV_SLOW's, removed with the folder when the program ends."""
    if "SKV_SLOW" in os.environ:
        return
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "LD_PRELOAD": str(build(folder)), "SKV_SLOW": folder + "/rate"}
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=env).returncode)


class Storage:
    """What this process' storage does: of the file SKV_SLOW."""

    def __init__(self):
        self.file = pathlib.Path(os.environ["SKV_SLOW"])
        self.n = ctypes.c_int.in_dll(ctypes.CDLL(None), "slow_held")

    def say(self, text):
        new = self.file.with_suffix(".new")  # in one step: a reader never finds it empty
        new.write_text(text)
        new.rename(self.file)

    @property
    def held(self):
        """Reads and writes of blocks that wait now."""
        return self.n.value

    def late(self, what, begin, buffers, seconds, stop=lambda: None, write=False):
        """Storage holds what `begin` has begun for `seconds`, longer than every timeout. begin() returns a function that returns when the
        job is reported as over, in whatever way; stop() is called in between. As soon as it is reported the buffers are filled with a
        pattern: which is intact when storage has answered. Whether it was reported before that."""
        self.say("hold")
        try:
            report = begin()
            over = threading.Event()
            early, failed = [], []

            def wait():
                try:
                    report()
                except BaseException as e:  # a job that failed is over, too
                    failed.append(e)
                early.append(self.held > 0)
                for b in buffers:
                    ctypes.memset(b[0], PATTERN, b[1])
                over.set()

            thread = threading.Thread(target=wait)
            thread.start()
            assert wait_for(lambda: self.held > 0), f"{what}: nothing was moved: {failed}"
            stopper = threading.Thread(target=stop)
            stopper.start()
            time.sleep(seconds)
        finally:
            self.say("0")
        assert over.wait(30), f"{what}: never reported"
        thread.join()
        stopper.join()
        assert wait_for(lambda: self.held == 0)
        time.sleep(0.05)  # for what must not come
        intact = all(ctypes.string_at(*b) == bytes([PATTERN]) * b[1] for b in buffers)
        print(f"   {what}: reported {'before' if early[0] else 'after'} storage answered{', as ' + type(failed[0]).__name__ if failed else ''}; "
              f"the pattern is {'intact' if intact else 'gone'}", flush=True)
        assert intact and (not write or not early[0]), what
        return early[0]


def span(buffer):
    """(address, bytes) of a writable buffer, which must not be resized meanwhile."""
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer)), memoryview(buffer).nbytes
