"""core.py - the components of server/core stand on each other: a graph from the objects of a build.

An edge is a symbol that an object of one component needs and one of another defines. It must point down, so there is no
circle. What points up does so by a pointer: a field of a struct that a lower component declares, into which a higher one
puts a function (tables of operations, callbacks). These edges are found in the sources, checked against the symbols of
the file's object, and reported: they are how the lower one is meant to reach the higher one.

No object keeps a variable, and what a partition uses of the core around it is listed here: so there may be several. Only the
highest component knows that there are: no other names the cluster, their handle.
"""

import os
import re
import subprocess

import measure
import tree

CORE = os.path.join("server", "core")
LAYERS = ("lock", "model", "journal", "storage", "evict", "ops", "recovery", "admin", "route")  # from the bottom up
MAX_CIRCLE = 5  # .c files of one component that need each other

FIELD = re.compile(r"\(\*(\w+)\)\s*\(")  # a pointer to a function, as a header declares it
# What a partition uses of its core: its number, the clock, the store, the options, the boot, how records come back, what tenants may have, the journal that
# it queues for, whether all of it shuts down, the counters; and for its asserts who holds the lock, and whether it is told.
LENT = {"number", "clock", "store", "o", "boot_id", "records", "commit", "closing", "count", "lock", "part", "regions", "rules"}
CLUSTER = re.compile(r"\bskv_cluster\w*")  # the handle of all partitions, and its functions
USES = re.compile(r"\b(?:p|part|\(p\))->core->(\w+)")
WRITABLE = re.compile(r"\.(data(?!\.rel\.ro)|bss|tdata|tbss)")  # sections
GIVEN = re.compile(r"(?:\.|->)(\w+) = (\w+)\b")


def component(path):
    """The folder below server/core, or None."""
    parts = path.split(os.sep)
    return parts[2] if parts[:2] == ["server", "core"] and len(parts) > 3 else None


def fields(root):
    """{pointer to a function: the components whose headers declare one of this name}"""
    found = {}
    for path in tree.files(root, ".h", under=("server",)):
        if component(path):
            for name in FIELD.findall(tree.code(tree.text(root, path))):
                found.setdefault(name, set()).add(component(path))
    return found


def functions_of(obj):
    out = subprocess.run(["nm", obj], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in out.splitlines() if line.split()[-2] in "tTU"}


def callbacks(root, objs):
    """{(lower component, higher one): {"field = function (file)"}}"""
    declared, found = fields(root), {}
    for path, obj in objs.items():
        at = component(path)
        functions = functions_of(obj)
        for field, name in GIVEN.findall(tree.code(tree.text(root, path))):
            if name not in functions:
                continue
            for below in declared.get(field, ()):
                if LAYERS.index(below) < LAYERS.index(at):
                    found.setdefault((below, at), set()).add(f"{field} = {name} ({os.path.basename(path)})")
    return found


def variables(obj):
    """Bytes that an object keeps outside of functions and constants."""
    out = subprocess.run(["size", "-A", obj], capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in out.splitlines())
    return sum(int(row[1]) for row in rows if len(row) == 3 and WRITABLE.match(row[0]))


def rule_core(args):
    """The components of the core need only what is below them; circles of files within one stay small."""
    objs = {  # a build folder may have some of files that were moved since
        path: obj
        for path, obj in measure.objects(args.build).items()
        if component(path) and os.path.exists(os.path.join(args.source, path))
    }
    breaches = [f"{path}:0: {component(path)} is no component of the core" for path in objs if component(path) not in LAYERS]
    for path in tree.files(args.source, ".c", under=("server",)):
        if path.startswith(CORE + os.sep) and path not in objs:
            breaches.append(f"{path}:0: {args.build} has no object of it")
    if breaches:
        print("\n".join(breaches))
        return 1
    breaches += [f"{path}:0: keeps {n} bytes of variables" for path, obj in objs.items() if (n := variables(obj))]
    for path in tree.files(args.source, ".c", ".h", under=("server",)):
        if component(path):
            others = set(USES.findall(tree.code(tree.text(args.source, path)))) - LENT
            breaches += [f"{path}:0: a partition uses core->{name}, which is not lent to it" for name in sorted(others)]
            found = CLUSTER.search(tree.code(tree.text(args.source, path)))
            if found and component(path) in LAYERS[:-1]:
                breaches.append(f"{path}:0: {component(path)} names {found.group()}, which only {LAYERS[-1]} knows")
    needs = measure.needs(objs)
    edges = {}
    for path, wanted in sorted(needs.items()):
        for other in sorted(wanted):
            a, b = component(path), component(other)
            if a != b:
                edges.setdefault(a, {}).setdefault(b, []).append((path, other))
            if LAYERS.index(a) < LAYERS.index(b):
                breaches.append(f"{path}:0: {a} must not need {b} ({os.path.basename(other)})")
    if measure.largest_circle(set(LAYERS), edges) > 1 and not breaches:
        breaches.append(f"{CORE}:0: a circle of components")
    for layer in LAYERS:
        files = {path for path in objs if component(path) == layer}
        circle = measure.largest_circle(files, needs)
        if circle > MAX_CIRCLE:
            breaches.append(f"{os.path.join(CORE, layer)}:0: a circle of {circle} files, {MAX_CIRCLE} at most")
        below = ", ".join(f"{b} {len(edges[layer][b])}" for b in LAYERS if b in edges.get(layer, {}))
        print(f"{layer}: {len(files)} files, largest circle {circle}; needs {below or 'nothing of the core'}")
    for (below, above), given in sorted(callbacks(args.source, objs).items()):
        print(f"{below} calls {above} by {len(given)} pointers: {', '.join(sorted(given))}")
    for b in breaches:
        print(b)
    print(f"looked at {len(objs)} objects: {len(breaches)} breaches")
    return 1 if breaches else 0
