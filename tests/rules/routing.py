#!/usr/bin/env python3
"""routing.py [DIR] - the files that know where a call belongs. Run as a program it prints them with the names that they use.

An operation gets the core that has its object, or the cluster; finding it, and sending a call to its owner, is the work of the files
below. The list only gets shorter: another file is a breach, and so is one that needs its place no more.
"""

import os
import re
import sys

import tree

FILES = {
    # finding: which partition, and whose
    "server/core/include/skv/asks.h", "server/core/include/skv/core.h", "server/core/include/skv/find.h",
    "server/core/route/at.c", "server/core/route/find.c", "server/core/route/route.c", "server/core/route/route.h",
    # a call: found, forwarded, kept waiting, told the owner
    "server/request/request.c", "server/request/include/skv/request.h", "server/request/forward.c",
    "server/request/include/skv/forward.h", "server/request/pause.c", "server/request/owner.c",
    # each API: the object that a message names; calls for several owners
    "server/kvcm/op.c", "server/hf3fs/make.c", "server/hf3fs/ranks.c", "server/v1/match.c", "server/v1/asks.c",
    # a replay runs on the core of its only partition
    "server/simulate/full.c",
}
KNOWS = re.compile(
    r"\b(skv_find|skv_door\w*|skv_where|SKV_(?:HERE|THERE|SOON|NOWHERE)|skv_target\w*|SKV_TARGET_\w+|SKV_PLACE|skv_peer_call|"
    r"skv_request_(?:find|check_door|is_of_one|partition)|skv_cluster_(?:part|core|ask_by)|skv_forward_(?!start\b|stop\b)\w+)\b"
)


def uses(root):
    """{path: names of finding and forwarding in it}"""
    found = {}
    for path in tree.files(root, ".c", ".h", under=tree.COMPONENTS):
        names = set(KNOWS.findall(tree.code(tree.text(root, path))))
        if names:
            found[path] = names
    return found


def rule_routing(args):
    """Only few files know where a call belongs."""
    report = args.report()
    found = uses(args.source)
    for path, names in found.items():
        if path not in FILES:
            report.breach(path, 0, f"knows about routing ({', '.join(sorted(names))}): an operation gets a core or the cluster")
    for path in sorted(FILES - set(found)):
        if os.path.exists(os.path.join(args.source, path)):
            report.breach(path, 0, "knows nothing about routing any more: take it off the list in routing.py")
    return report.end(f"{len(found)} files that know about routing")


if __name__ == "__main__":
    for name, what in uses(sys.argv[1] if sys.argv[1:] else ".").items():
        print(f"{name:45} {' '.join(sorted(what))}")
