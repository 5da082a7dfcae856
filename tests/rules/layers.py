"""layers.py - dependencies point one way: checked in the #include lines and in the compiled objects.

The build enforces most of it (a component finds only the headers that it names); this finds what a
hand-written declaration, a relative include or a widened include path would let through. Objects are
taken from the build folder, whatever libraries they end up in, so that executables and shared
libraries are checked as well.
"""

import os
import re
import shutil
import subprocess

import core
import tree

# Folder: (symbols it must not need, headers it must not include). The longest folder wins. Symbols are
# regular expressions for whole names; what a component defines itself it may of course need.
SQL = r"sqlite3_\w+"
WEB = r"MHD_\w+"
NET = r"curl_\w+"
JSON = r"json_\w+|jansson_\w+"
PB = r"protobuf_c_\w+|slabkv__v1__\w+|skv_proto_\w+|kvcm_\w+"
V1 = r"skv_(v1|pb|jin|jat)_\w+|slabkv__v1__\w+"
POOL = r"skv_pool_\w+"
STORE = r"skv_(fault_|memory_)?store_\w+"
STORAGE = r"skv_storage_\w+"
CORE = r"skv_(core|cluster)_\w+"
FRONT = r"skv_(httpd|grpc)_\w+"
API = r"skv_v1_(api|input|message|protoset|request)\w*|skv_op_\w+|kvcm_\w+|skv_kvcm_\w+|skv_hf3fs_api_\w+"
H2 = r"nghttp2_\w+"
CLIENT = r"slabkv_\w+"
IO = r"open(at)?(64)?|f?read|f?write|fopen(64)?|p(read|write)v?(64)?|socket|clock_gettime|time|pthread_\w+"

LAYERS = {
    "api/base": ([r"skv_\w+", CLIENT, SQL, WEB, NET, JSON, PB],
                 ["sqlite3.h", "microhttpd.h", "curl/", "jansson.h", "protobuf-c/", "slabkv.h"]),
    "api": ([POOL, STORE, STORAGE, CORE, FRONT, CLIENT, SQL, WEB, NET, JSON],
            ["skv/pool.h", "skv/store.h", "skv/storage.h", "skv/core.h", "skv/httpd.h", "slabkv.h",
             "sqlite3.h", "microhttpd.h", "curl/", "jansson.h"]),
    "api/http": ([V1, POOL, STORE, STORAGE, CORE, FRONT, CLIENT, SQL, WEB, JSON, PB],
                 ["skv/ops.h", "skv/v1_json.h", "skv/v1_pb.h", "skv/v1_codec.h", "slabkv.h", "sqlite3.h", "microhttpd.h", "jansson.h"]),
    "api/proto": ([V1, r"kvcm_\w+", POOL, STORE, STORAGE, CORE, FRONT, CLIENT, SQL, WEB, NET, JSON],
                  ["skv/ops.h", "skv/kvcm.h", "kvcm/", "skv/v1_json.h", "skv/v1_pb.h", "skv/v1_codec.h", "slabkv.h", "jansson.h"]),
    "api/kvcm": ([V1, POOL, STORE, STORAGE, CORE, FRONT, CLIENT, SQL, WEB, NET, JSON],
                 ["skv/v1_json.h", "skv/v1_pb.h", "skv/v1_codec.h", "skv/pool.h", "skv/store.h", "skv/storage.h", "skv/core.h",
                  "skv/httpd.h", "slabkv.h", "sqlite3.h", "microhttpd.h", "curl/", "jansson.h"]),
    "allocator": ([STORE, STORAGE, CORE, FRONT, CLIENT, SQL, WEB, NET, JSON, IO, r"skv_(now|log|mutex|rwlock)\w*"],
                  ["skv/store.h", "skv/storage.h", "skv/core.h", "skv/httpd.h", "skv/ops.h", "skv/log.h",
                   "skv/clock.h", "skv/lock.h", "slabkv.h", "sqlite3.h", "microhttpd.h", "curl/", "jansson.h",
                   "pthread.h", "fcntl.h", "unistd.h", "stdio.h"]),
    "backends": ([POOL, STORAGE, CORE, FRONT, CLIENT, WEB, NET, JSON],
                 ["skv/pool.h", "skv/storage.h", "skv/core.h", "skv/httpd.h", "skv/ops.h", "slabkv.h",
                  "microhttpd.h", "curl/", "jansson.h"]),
    "backends/storage": ([POOL, STORE, CORE, FRONT, CLIENT, SQL, WEB, NET, JSON],
                         ["skv/pool.h", "skv/store.h", "skv/core.h", "skv/httpd.h", "skv/ops.h", "slabkv.h",
                          "sqlite3.h", "microhttpd.h", "curl/", "jansson.h"]),
    "server/policy": ([POOL, STORE, STORAGE, CORE, FRONT, API, CLIENT, SQL, WEB, H2, NET, JSON, PB, IO, r"skv_(now|log|mutex|rwlock)\w*"],
                      ["skv/pool.h", "skv/store.h", "skv/storage.h", "skv/core.h", "skv/httpd.h", "skv/ops.h", "skv/log.h",
                       "skv/clock.h", "skv/lock.h", "slabkv.h", "sqlite3.h", "microhttpd.h", "curl/", "jansson.h",
                       "pthread.h", "fcntl.h", "unistd.h", "stdio.h"]),
    "backends/fsmaster": ([POOL, STORE, CORE, FRONT, CLIENT, SQL, WEB, NET, JSON],
                          ["skv/pool.h", "skv/store.h", "skv/core.h", "skv/httpd.h", "skv/ops.h", "slabkv.h",
                           "sqlite3.h", "microhttpd.h", "curl/", "jansson.h"]),
    "server/core": ([FRONT, CLIENT, SQL, WEB, NET, JSON, PB],
                    ["skv/httpd.h", "skv/v1_json.h", "skv/v1_pb.h", "skv/v1_codec.h", "slabkv.h", "sqlite3.h", "microhttpd.h", "curl/",
                     "jansson.h"]),
    "server/request": ([POOL, STORE, STORAGE, FRONT, API, CLIENT, SQL, WEB, H2, NET, JSON, PB],
                    ["skv/pool.h", "skv/storage.h", "skv/httpd.h", "skv/grpc.h", "skv/v1_api.h", "skv/kvcm_api.h",
                     "skv/v1_json.h", "skv/v1_pb.h", "skv/v1_codec.h", "slabkv.h", "sqlite3.h", "microhttpd.h", "nghttp2/", "curl/",
                     "jansson.h"]),
    "server/v1": ([POOL, STORE, STORAGE, FRONT, r"kvcm_\w+|skv_kvcm_\w+|skv_hf3fs_api_\w+", CLIENT, SQL, WEB, H2, NET, JSON, PB],
                      ["skv/pool.h", "skv/storage.h", "skv/httpd.h", "skv/grpc.h", "skv/kvcm_api.h", "slabkv.h",
                       "sqlite3.h", "microhttpd.h", "nghttp2/", "curl/", "jansson.h"]),
    "server/kvcm": ([POOL, STORE, STORAGE, FRONT, r"skv_v1_(api|input|message|protoset|request)\w*|skv_op_\w+", CLIENT, SQL, WEB, H2, NET, JSON],
                    ["skv/pool.h", "skv/storage.h", "skv/httpd.h", "skv/grpc.h", "skv/v1_api.h", "slabkv.h",
                     "sqlite3.h", "microhttpd.h", "nghttp2/", "curl/", "jansson.h"]),
    "server/hf3fs": ([POOL, STORE, STORAGE, FRONT, r"skv_v1_(api|input|message|protoset|request)\w*|skv_op_\w+|kvcm_\w+|skv_kvcm_\w+", CLIENT, SQL, WEB, H2,
                      NET, JSON, PB],
                     ["skv/pool.h", "skv/storage.h", "skv/httpd.h", "skv/grpc.h", "skv/v1_api.h", "skv/kvcm_api.h",
                      "slabkv.h", "sqlite3.h", "microhttpd.h", "nghttp2/", "curl/", "jansson.h"]),
    "server/grpc": ([POOL, STORE, STORAGE, CORE, API, r"skv_httpd_\w+", r"skv_v1_\w+", CLIENT, SQL, WEB, NET, JSON, PB],
                    ["skv/pool.h", "skv/store.h", "skv/storage.h", "skv/httpd.h", "skv/v1_api.h", "skv/kvcm_api.h",
                     "skv/v1_codec.h", "slabkv.h", "sqlite3.h", "microhttpd.h", "curl/", "jansson.h"]),
    "server/http": ([POOL, STORE, STORAGE, CORE, API, r"skv_grpc_\w+", r"skv_v1_\w+", CLIENT, SQL, H2, NET, JSON, PB],
                     ["skv/pool.h", "skv/store.h", "skv/storage.h", "skv/grpc.h", "skv/v1_api.h", "skv/kvcm_api.h",
                      "skv/v1_codec.h", "slabkv.h", "sqlite3.h", "nghttp2/", "curl/", "jansson.h"]),
    "server/simulate": ([POOL, STORAGE, FRONT, API, CLIENT, SQL, WEB, H2, NET, JSON, PB],
                        ["skv/pool.h", "skv/storage.h", "skv/httpd.h", "skv/grpc.h", "skv/v1_api.h", "skv/kvcm_api.h",
                         "skv/v1_json.h", "skv/v1_pb.h", "skv/v1_codec.h", "slabkv.h", "sqlite3.h", "microhttpd.h", "nghttp2/", "curl/",
                         "jansson.h"]),
    "server/main": ([POOL, CLIENT, SQL, NET], ["skv/pool.h", "slabkv.h", "sqlite3.h", "curl/"]),
    "client": ([POOL, STORE, STORAGE, CORE, FRONT, SQL, WEB, NET, PB],
               ["skv/pool.h", "skv/store.h", "skv/storage.h", "skv/core.h", "skv/httpd.h", "sqlite3.h",
                "microhttpd.h", "curl/"]),
    # `slabkv plan` counts slots with the allocator, which is pure.
    "client/cli": ([STORE, STORAGE, CORE, FRONT, SQL, WEB, NET, PB],
                   ["skv/store.h", "skv/storage.h", "skv/core.h", "skv/httpd.h", "sqlite3.h", "microhttpd.h", "curl/"]),
}

# The core's own components, whose order core.py has: none includes the headers of one above it.
for i, layer in enumerate(core.LAYERS):
    above = [f"{name}/" for name in core.LAYERS[i + 1:]]
    LAYERS[os.path.join(core.CORE, layer)] = (LAYERS[core.CORE][0], LAYERS[core.CORE][1] + above)


def layer_of(path):
    """The longest folder of LAYERS that holds the path, or None."""
    best = None
    for folder in LAYERS:
        if path.startswith(folder + "/") and (best is None or len(folder) > len(best)):
            best = folder
    return best


def check_includes(source, breaches):
    looked_at = 0
    for path in tree.files(source, ".c", ".h", under=tree.COMPONENTS):
        layer = layer_of(path)
        if layer is None:
            continue
        looked_at += 1
        for number, name in tree.includes(tree.text(source, path)):
            if any(name == h or (h.endswith("/") and name.startswith(h)) for h in LAYERS[layer][1]):
                breaches.append(f"{path}:{number}: {layer} must not include <{name}>")
            elif name.startswith("../"):
                breaches.append(f"{path}:{number}: '{name}' goes round the include path of the component")
    return looked_at


def is_left_over(source, build, path):
    """Is this the object of a file that has been moved or deleted since? A build folder keeps them."""
    m = re.fullmatch(r"(.*)/CMakeFiles/[^/]+\.dir/(.*)\.o", path)
    return m is not None and not any(os.path.exists(os.path.join(top, m.group(1), m.group(2))) for top in (source, build))


def objects(source, build):
    """{folder of LAYERS: [object files]} of a CMake build; tests are nobody's layer."""
    found = {}
    for folder, _, names in os.walk(build):
        relative = os.path.relpath(folder, build)
        for name in names:
            path = os.path.join(relative, name)
            layer = layer_of(re.sub(r"/CMakeFiles/[^/]+\.dir", "", path)) if name.endswith(".o") else None
            if layer is not None and not is_left_over(source, build, path):
                found.setdefault(layer, []).append(os.path.join(folder, name))
    return found


def symbols(paths):
    """(defined, {needed: an object that needs it})."""
    defined, needed = set(), {}
    run = subprocess.run(["nm", "-A", "-P", *paths], capture_output=True, text=True, check=True)
    for line in run.stdout.split("\n"):
        # "<file>: <symbol> <type> ..."
        m = re.match(r"(.*?): (\S+) (\S)", line)
        if m and m.group(3) in "Uw":
            needed[m.group(2)] = os.path.basename(m.group(1))
        elif m:
            defined.add(m.group(2))
    return defined, needed


def has_sources(source, layer):
    """Does the layer have .c files of its own that its CMakeLists.txt builds?"""
    return any(layer_of(p) == layer for p in tree.files(source, ".c", under=tree.COMPONENTS))


def rule_layers(args):
    """Dependencies point one way: server -> api, allocator, backends -> api/base; client -> api."""
    breaches = []
    files = check_includes(args.source, breaches)
    if not shutil.which("nm"):
        breaches.append("nm: not installed (package binutils), the objects were not checked")
        built = {}
    else:
        built = objects(args.source, args.build)
    for layer, (forbidden, _) in sorted(LAYERS.items()):
        if layer not in built:
            if has_sources(args.source, layer):
                breaches.append(f"{layer}:0: has sources, but {args.build} has no objects of it: build all of it")
            else:
                print(f"{layer}: no sources yet")
            continue
        defined, needed = symbols(built[layer])
        pattern = re.compile("(?:" + "|".join(forbidden) + ")")
        for name in sorted(set(needed) - defined):
            if pattern.fullmatch(name):
                breaches.append(f"{layer}/{needed[name]}:0: needs {name}, which is not below it")
        print(f"{layer}: {len(built[layer])} objects need {len(set(needed) - defined)} symbols of others")
    for b in breaches:
        print(b)
    print(f"looked at {files} C files and {sum(map(len, built.values()))} objects: {len(breaches)} breaches")
    return 1 if breaches else 0
