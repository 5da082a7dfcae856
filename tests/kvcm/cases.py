"""cases.py - how cases are written and run.

A suite is a class whose functions test_* are the cases; each runs over each of its transports, with an
instance id of its own in `self.instance`. A script ends with `main(Suite, ...)`:

    SCRIPT SLABKVD [--peer KV_CACHE_MANAGER_BIN] [--as-peer] [--over http,grpc] [--only WORD,WORD]

runs those cases whose name (Suite.test_name) contains one of the words. With --as-peer the cases run against
kv_cache_manager_bin, on its separate ports. Every case is run and named; a case that raises
Skip says why. Exit 0: all passed; 1: some failed; 77: a package is missing, or nothing could be run.
"""

import argparse
import re
import sys
import traceback

import client
import server
import uri


class Skip(Exception):
    pass


def group_fields(name, storages, **changes):
    """An instance group as an administrator writes it: enums by number, batch_key_size left out.
    changes: path with two underscores for a dot, e.g. cache_config__data_storage_strategy=2."""
    group = {
        "name": name, "storage_candidates": list(storages), "global_quota_group_name": "default_quota_group",
        "max_instance_count": 100,
        "quota": {"capacity": 1 << 30, "quota_config": [{"storage_type": 4, "capacity": 1 << 30}]},
        "cache_config": {
            "reclaim_strategy": {
                "storage_unique_name": storages[0] if storages else "", "reclaim_policy": 1,
                "trigger_strategy": {"used_size": 1 << 30, "used_percentage": 0.8}, "trigger_period_seconds": 60,
                "reclaim_step_size": 0, "reclaim_step_percentage": 0, "delay_before_delete_ms": 0,
            },
            "data_storage_strategy": 2,
            "meta_indexer_config": {
                "max_key_count": 1000000, "mutex_shard_num": 16,
                "meta_storage_backend_config": {"storage_type": "local", "storage_uri": ""},
                "meta_cache_policy_config": {"capacity": 10000, "type": "LRU", "cache_shard_bits": 0,
                                             "high_pri_pool_ratio": 0.0},
            },
        },
        "user_data": "made by a test", "version": 1,
    }
    for path, value in changes.items():
        *way, last = path.split("__")
        part = group
        for step in way:
            part = part[step]
        part[last] = value
    return group


class Suite:
    """One server for all cases of a suite and transport, or for each case if `fresh`."""

    over = ("http", "grpc")
    fresh = False
    parameters = {}

    def __init__(self, running, kvcm, name):
        self.server, self.kvcm, self.name = running, kvcm, name
        self.instance = f"{name}-{kvcm.name}"[:127] if kvcm else name
        self.transport = kvcm.name if kvcm else "http"

    @classmethod
    def make_server(cls, args):
        if args.as_peer:
            return server.Peer(args.peer)
        return server.Slabkvd(args.program, **cls.parameters)

    # ---- the calls that most cases make ----------------------------------------------------------

    def register_fields(self, specs, instance=None, **more):
        """specs: {name: size}, in order."""
        fields = {
            "trace_id": "register", "instance_group": "default", "instance_id": instance or self.instance,
            "block_size": 4, "model_deployment": {"model_name": "m", "dtype": "bf16", "tp_size": len(specs)},
            "location_spec_infos": [{"name": n, "size": s} for n, s in specs.items()],
        }
        fields.update(more)
        return fields

    def register(self, specs=None, instance=None, **more):
        return self.kvcm("RegisterInstance", **self.register_fields(specs or {"tp0": 4096}, instance, **more)).ok()

    def start(self, keys, instance=None, **more):
        more.setdefault("write_timeout_seconds", 30)
        return self.kvcm("StartWriteCache", trace_id="start", instance_id=instance or self.instance,
                         block_keys=keys, **more)

    def finish(self, session, success, instance=None):
        """success: a number (offset), a list (booleans), or the mask itself."""
        if isinstance(success, int):
            success = {"offset": success}
        elif isinstance(success, list):
            success = {"bool_masks": {"values": success}}
        return self.kvcm("FinishWriteCache", trace_id="finish", instance_id=instance or self.instance,
                         write_session_id=session, success_blocks=success)

    def write(self, keys, instance=None, **more):
        """Starts and finishes; no bytes. Gives the answer of the start."""
        started = self.start(keys, instance, **more).ok()
        self.finish(started["write_session_id"], len(started["locations"]), instance).ok()
        return started

    def get(self, keys, query_type="QT_PREFIX_MATCH", instance=None, **more):
        return self.kvcm("GetCacheLocation", trace_id="get", instance_id=instance or self.instance,
                         query_type=query_type, block_keys=keys, **more)

    def hits(self, keys, instance=None):
        """Which keys can be read."""
        locations = self.get(keys, "QT_BATCH_GET", instance).ok()["locations"]
        assert len(locations) == len(keys), locations
        return [all(s["uri"] for s in at["location_specs"]) and at["type"] != "ST_UNSPECIFIED" for at in locations]

    def states(self, keys, instance=None):
        """State of each key without CLS_, by getCacheMeta."""
        metas = self.kvcm("GetCacheMeta", trace_id="meta", instance_id=instance or self.instance,
                          block_keys=keys).ok()["metas"]
        assert len(metas) == len(keys), metas
        found = [re.search(r'"status":"CLS_(\w+)"', m) for m in metas]
        assert all(found), metas
        return [m.group(1) for m in found]

    def remove(self, keys, instance=None, **more):
        return self.kvcm("RemoveCache", trace_id="remove", instance_id=instance or self.instance,
                         block_keys=keys, **more)

    def trim(self, strategy="TS_REMOVE_ALL_CACHE", instance=None, **more):
        return self.kvcm("TrimCache", trace_id="trim", instance_id=instance or self.instance, strategy=strategy,
                         **more)

    def until_hits(self, keys, wanted, what, instance=None, seconds=10):
        server.until(lambda: self.hits(keys, instance) == wanted, seconds, what)

    # ---- administration --------------------------------------------------------------------------

    def add_storage(self, name, **more):
        """An nfs storage in a directory of its own below the server's."""
        if not more:
            more = {"nfs": {"root_path": self.server.path("storages", name) + "/", "key_count_per_file": 4}}
        return self.kvcm("AddStorage", trace_id="storage", storage={"global_unique_name": name, **more})

    def create_group(self, name, storages, **changes):
        return self.kvcm("CreateInstanceGroup", trace_id="group", instance_group=group_fields(name, storages, **changes))

    def update_group(self, fields, **changes):
        """Replaces the group by `fields` with changes, as the next version of it; `fields` follows."""
        now = fields["version"]
        fields.update(group_fields(fields["name"], fields["storage_candidates"], **changes))
        fields["version"] = now + 1
        return self.kvcm("UpdateInstanceGroup", trace_id="update", instance_group=fields, current_version=now)

    def own_group(self, **changes):
        """A group with a storage of its own, both named after the case; gives its fields."""
        name = re.sub(r"[^a-z0-9]+", "-", self.instance.lower())
        self.add_storage(f"st-{name}").ok()
        self.create_group(f"g-{name}", [f"st-{name}"], **changes).ok()
        return group_fields(f"g-{name}", [f"st-{name}"], **changes)


def specs_of(location):
    """What a client uses of a location, and start and get must agree on: but for the link in what is read."""
    specs = [{**s, "uri": s["uri"].replace("/mounted/", "/")} for s in location["location_specs"]]
    return {"type": location["type"], "spec_size": location["spec_size"], "location_specs": specs}


def all_places(locations):
    return [p for at in locations for p in uri.places(at).values()]


# ---- running -------------------------------------------------------------------------------------


class Report:
    def __init__(self):
        self.passed, self.failed, self.skipped, self.missing = 0, [], [], []

    def case(self, name, function):
        print(name, flush=True)
        try:
            function()
            self.passed += 1
        except Skip as e:
            print(f"  skipped: {e}", flush=True)
            self.skipped.append(name)
        except Exception:  # every case is run, whatever became of the others
            traceback.print_exc()
            self.failed.append(name)

    def end(self):
        print(f"{self.passed} passed, {len(self.skipped)} skipped, {len(self.failed)} failed")
        for name in self.failed:
            print(f"FAILED: {name}")
        if self.failed:
            return 1
        return client.SKIPPED if self.missing or self.skipped or not self.passed else 0


def cases_of(suite, only):
    names = [n for n in vars(suite) if n.startswith("test_")]
    return [n for n in names if any(word in f"{suite.__name__}.{n}" for word in only.split(","))]


def run_suite(suite, transport, names, args, report):
    def one(running, name):
        # Suite and case: no two suites of a server share an instance.
        case = suite(running, kvcm, f"{suite.__name__}.{name[5:]}")
        report.case(f"{suite.__name__}.{name} {transport or ''}", getattr(case, name))

    def some(names):
        nonlocal kvcm
        with suite.make_server(args) as running:
            kvcm = client.TRANSPORTS[transport](running) if transport else None
            for name in names:
                one(running, name)
            if kvcm:
                kvcm.close()
            if report.failed:
                print(running.text("log")[-3000:], flush=True)

    kvcm = None
    try:
        for batch in [[n] for n in names] if suite.fresh else [names]:
            some(batch)
    except ImportError as e:
        print(f"skipped: {e}")
        report.missing.append(str(e))
    except (AssertionError, SystemExit) as e:
        print(f"{suite.__name__}: {e}")
        report.failed.append(f"{suite.__name__}: the server")


def main(*suites):
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--peer", default="")
    parser.add_argument("--as-peer", action="store_true")
    parser.add_argument("--over", default="http,grpc")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    report = Report()
    for suite in suites:
        names = cases_of(suite, args.only)
        for transport in [t for t in suite.over if t in args.over.split(",")] if suite.over else [None]:
            if names:
                run_suite(suite, transport, names, args, report)
    sys.exit(report.end())
