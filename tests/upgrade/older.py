"""older.py - slabkvd of an older commit, built from git's history."""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def build(commit, folder):
    """Its slabkvd, made in `folder`. Ends the test as skipped where the history does not go back that far."""
    archive = subprocess.run(["git", "archive", "--format=tar", commit], cwd=HERE.parents[1], capture_output=True, check=False)
    if archive.returncode:
        print(f"skipped: {commit} is not in the history here: {archive.stderr.decode().strip()}")
        sys.exit(77)
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    for command in (["cmake", "-S", ".", "-B", "build", "-G", "Ninja", *launcher], ["ninja", "-C", "build", "slabkvd"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return os.path.join(folder, "build/server/main/slabkvd")
