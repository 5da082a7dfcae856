"""UCM's own factory with slabkv.ucm, beside its own Posix pipeline: the same blocks through both, byte by byte; lookups by prefix and from the
end; several shards; more tensors than a block has parts; damage, a manager that is away, and what is refused."""

import logging
import os
import shutil
import signal
import tempfile
import time

WORK = tempfile.mkdtemp(prefix="skv-ucm-")
os.chdir(WORK)  # UCM's log begins where it is imported

import torch  # noqa: E402
from ucm.store.factory_v1 import UcmConnectorFactoryV1  # noqa: E402

import slabkv  # noqa: E402
import slow  # noqa: E402
from daemon import Daemon, wait_for  # noqa: E402
from slabkv.ucm import TransferError  # noqa: E402

BLOCKS, TENSOR = 8, 4096


def ids(n, seed=0):
    return [slabkv.key("block", seed, i) for i in range(n)]


def tensors(n, parts, fill):
    return [[torch.randint(0, 256, (TENSOR,), dtype=torch.uint8) if fill else torch.zeros(TENSOR, dtype=torch.uint8) for _ in range(parts)]
            for _ in range(n)]


def equal(a, b):
    return sum(torch.equal(x, y) for r, s in zip(a, b) for x, y in zip(r, s))


def ours(url, shard, block=None, **more):
    config = {"url": url, "namespace_tag": "w", "kv_dtype": "bfloat16", "tensor_size": TENSOR, "shard_size": shard,
              "block_size": block or shard, "device_id": 0, "host_memory": True, "timeout_ms": 1000, "io_direct": False, "storage_backends": ["/nowhere"],
              "unique_id": "u", "retry": 0.3, **more}
    return UcmConnectorFactoryV1.create_connector("SlabkvStore", config, "slabkv.ucm")


def both(name, store, parts):
    """What UCM's own test of a store does: dump, lookup, load."""
    want, got = tensors(BLOCKS, parts, True), tensors(BLOCKS, parts, False)
    blocks = ids(BLOCKS)
    assert list(store.lookup(blocks)) == [False] * BLOCKS and store.lookup_on_prefix(blocks) == -1
    begin = time.monotonic()
    store.wait(store.dump(blocks, [0] * BLOCKS, want))
    stored = time.monotonic() - begin
    other = ids(BLOCKS, 1)
    assert [bool(t) for t in store.lookup(blocks + other)] == [True] * BLOCKS + [False] * BLOCKS
    assert store.lookup_on_prefix(blocks + other) == BLOCKS - 1
    assert store.lookup_on_reverse(other[:2] + blocks[:3] + other[2:]) == 4 and store.lookup_on_reverse(other) == -1
    begin = time.monotonic()
    task = store.load(blocks, [0] * BLOCKS, got)
    assert store.check(task) in (False, True)
    store.wait(task)
    n = equal(want, got)
    print(f"{name}: {n} of {BLOCKS * parts} tensors equal; stored in {stored * 1e3:.1f} ms, loaded in {(time.monotonic() - begin) * 1e3:.1f} ms")
    assert n == BLOCKS * parts
    return got


def late(url):
    """Storage later than timeout_ms: wait and close return only when no I/O touches the tensors."""
    storage = slow.Storage()
    size = 16 * TENSOR  # one write of these is long enough to be held
    for how in ("wait", "check", "close"):
        for dump in (True, False):
            store = ours(url, 2 * size, tensor_size=size, engine="posix", namespace_tag=how)
            blocks = ids(BLOCKS, 30)
            rows = [[torch.randint(0, 256, (size,), dtype=torch.uint8) for _ in range(2)] for _ in range(BLOCKS)]
            if not dump:
                store.wait(store.dump(blocks, [0] * BLOCKS, rows))

            def begin(store=store, dump=dump, how=how, rows=rows, blocks=blocks):
                task = (store.dump if dump else store.load)(blocks, [0] * BLOCKS, rows)

                def report():
                    if how == "wait":
                        store.wait(task)
                    elif how == "check":
                        wait_for(lambda: store.check(task))
                    else:
                        wait_for(lambda: storage.held)
                        store.close()

                return report

            buffers = [(t.data_ptr(), size) for row in rows for t in row]
            storage.late(f"{how}, {'dump' if dump else 'load'}", begin, buffers, 2.0)
            if how != "close":
                store.close()


def main():
    logging.getLogger("slabkv").setLevel(logging.DEBUG)
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logging.getLogger("slabkv").addHandler(handler)
    with Daemon() as d, tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(1)
        mine = both("slabkv.ucm", ours(d.url, 2 * TENSOR), 2)
        torch.manual_seed(1)
        theirs = both("UCM's Posix pipeline", UcmConnectorFactoryV1.create_connector("UcmPipelineStore", {
            "store_pipeline": "Posix", "storage_backends": [folder], "unique_id": "u", "device_id": 0, "tensor_size": TENSOR,
            "shard_size": 2 * TENSOR, "block_size": 2 * TENSOR, "io_direct": False, "timeout_ms": 10000}), 2)
        assert equal(mine, theirs) == 2 * BLOCKS
        print(f"both beside each other: {equal(mine, theirs)} of {2 * BLOCKS} tensors equal")
        done = [line for line in lines if line.startswith("Ds3fs task(") and "finished, cost" in line]
        print(f"log: {done[0]}")
        assert len(done) == 2
        both("40 tensors a shard", ours(d.url, 40 * TENSOR), 40)

        # Shards of a block: it is there with its last one.
        store = ours(d.url, TENSOR, 3 * TENSOR)
        one, want, got = ids(1, 7), tensors(3, 1, True), tensors(3, 1, False)
        for i in range(3):
            assert store.lookup(one) == [False]
            store.wait(store.dump(one, [i], [want[i]]))
        assert store.lookup(one) == [True]
        store.wait(store.load_data(one * 3, [0, 1, 2], [[t.data_ptr() for t in row] for row in got]))
        assert equal(want, got) == 3
        print("shards: a block of three is there after the third")

        # Other weights find nothing; what is not there fails the task, and only that.
        assert not any(ours(d.url, 2 * TENSOR, namespace_tag="other").lookup(ids(BLOCKS)))
        try:
            store.wait(store.load(ids(1, 9), [0], tensors(1, 1, False)))
            raise SystemExit("a block that is not there was loaded")
        except TransferError as e:
            print(f"a miss: {e}")
        d.signal(signal.SIGSTOP)
        begin = time.monotonic()
        away = ours(d.url, 2 * TENSOR)
        assert away.lookup(ids(BLOCKS)) == [False] * BLOCKS
        took = time.monotonic() - begin
        assert away.lookup_on_prefix(ids(BLOCKS)) == -1 and away.check(away.dump(ids(1), [0], tensors(1, 2, True)))
        d.signal(signal.SIGCONT)
        print(f"a manager that is stopped: a miss after {took:.2f} s (timeout_ms 1000), then at once")
        assert took < 3
        late(d.url)
        for wrong in (dict(host_memory=False), dict(kv_dtype=None), dict(namespace_tag=None), dict(tensor_size=3000), dict(no_such_knob=1)):
            try:
                ours(d.url, 2 * TENSOR, **wrong)
                raise SystemExit(f"{wrong} was taken")
            except slabkv.InvalidError as e:
                print(f"refused: {e}")


if __name__ == "__main__":
    try:
        main()
    finally:
        os.chdir("/")
        shutil.rmtree(WORK, ignore_errors=True)
