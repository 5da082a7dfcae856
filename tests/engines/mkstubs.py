#!/usr/bin/env python3
"""mkstubs.py TORCH_LIB OUT: empty libraries in place of the CUDA ones that torch was linked to but does not call on a CPU.

torch from PyPI wants 2 GB of them to be imported. Their names and version nodes are read from torch's own undefined symbols.
"""

import collections
import pathlib
import re
import subprocess
import sys

LIBRARIES = {
    "libcusparse.so.12": "cusparse", "libcufft.so.12": "cufft", "libcufile.so.0": "cuFile", "libcusparseLt.so.0": "cusparseLt",
    "libnccl.so.2": "nccl", "libcurand.so.10": "curand", "libcublas.so.13": "cublas", "libcublasLt.so.13": "cublasLt",
    "libcudnn.so.9": "cudnn", "libnvrtc.so.13": "nvrtc", "libcusolver.so.12": "cusolver", "libnvshmem_host.so.3": "nvshmem",
}
# The longest prefix first: cusparseLt before cusparse.
PREFIXES = sorted(((p, lib) for lib, p in LIBRARIES.items()), key=lambda x: -len(x[0]))


def objdump(*arguments):
    return subprocess.run(["objdump", *arguments], capture_output=True, text=True, check=True).stdout


def versions_of(path):
    """Version node to library, of what this file requires."""
    found, library = {}, None
    for line in objdump("-p", path).splitlines():
        if m := re.match(r"\s+required from (\S+):", line):
            library = m.group(1)
        elif library and (m := re.match(r"\s+0x\w+ 0x\w+ \d+ (\S+)", line)):
            found[m.group(1)] = library
    return found


def wanted(folder):
    """Library to version node ("" = none) to names."""
    names = collections.defaultdict(lambda: collections.defaultdict(set))
    for path in sorted(folder.glob("*.so*")):
        versions = versions_of(path)
        for line in objdump("-T", path).splitlines():
            if "*UND*" not in line:
                continue
            words = line.split()
            name, version = words[-1], words[-2].strip("()")
            library = versions.get(version)
            if library in LIBRARIES:
                names[library][version].add(name)
            elif library is None:
                library = next((lib for prefix, lib in PREFIXES if name.startswith(prefix)), None)
                if library:
                    names[library][""].add(name)
    return names


def main():
    torch_lib, out = map(pathlib.Path, sys.argv[1:3])
    out.mkdir(parents=True, exist_ok=True)
    found = wanted(torch_lib)
    for library in LIBRARIES:
        nodes = found[library]
        source, script = out / f"{library}.c", out / f"{library}.map"
        source.write_text("".join(f"int {name}(void) {{ return 1; }}\n" for name in sorted(set().union(*nodes.values()))))
        script.write_text("".join(f"{node} {{ global: {' '.join(n + ';' for n in sorted(names))} }};\n"
                                  for node, names in sorted(nodes.items()) if node))
        versions = [f"-Wl,--version-script={script}"] if script.stat().st_size else []
        subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-fno-builtin", "-o", out / library, source, f"-Wl,-soname,{library}", *versions],
                       check=True)
        source.unlink()
        script.unlink()


if __name__ == "__main__":
    main()
