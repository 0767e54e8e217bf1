#!/usr/bin/python3
"""Puts all that the check needs on another machine into one folder: programs, their libraries, MPI, and the Python package."""

import argparse
import pathlib
import re
import shutil
import subprocess

# Every Linux machine with Python has these, and they must be its own.
OF_THE_SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libresolv.so.2", "libutil.so.1", "libstdc++.so.6", "libgcc_s.so.1"}
# Folders of the MPI library, which opens files there by name. check.py tells it where they are.
MPI_PLUGINS = ("/usr/lib/x86_64-linux-gnu/openmpi/lib/openmpi3", "/usr/lib/x86_64-linux-gnu/pmix2/lib/pmix")
MPI_TEXTS = ("/usr/share/openmpi",)
MPI_PROGRAMS = {"mpirun.openmpi": "/usr/bin/orterun", "orted": "/usr/bin/orted"}
# A worker wants this program, which only jobs with a built-in network run. Its LibTorch has four times the size of all else.
NO_TRAINER = "#!/bin/sh\necho 'hooke-rank: this copy of Hooke runs commands only, no built-in networks' >&2\nexit 1\n"
# Files of the source tree that run under the machine's Python.
SOURCES = ("python/hooke/*.py", "python/examples/*.py", "python/tests/*.py", "deploy/skips.py", "deploy/polling.py")


def libraries_of(file: pathlib.Path) -> set:
    """The libraries that the dynamic loader finds for a program or library, except those in OF_THE_SYSTEM."""
    listed = subprocess.run(["ldd", str(file)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    missing = re.findall(r"^\s*(\S+) => not found", listed, re.MULTILINE)
    if missing:
        raise SystemExit(f"stage.py: {file} needs {', '.join(missing)}, which this machine does not have")
    found = re.findall(r"^\s*(\S+) => (/\S+)", listed, re.MULTILINE)
    return {(name, path) for name, path in found if name not in OF_THE_SYSTEM}


def stage(programs: pathlib.Path, tree: pathlib.Path, folder: pathlib.Path) -> None:
    shutil.copytree(programs, folder / "bin")
    for name, path in MPI_PROGRAMS.items():
        shutil.copy(pathlib.Path(path).resolve(), folder / "bin" / name)
    trainer = folder / "bin/hooke-rank"
    trainer.write_text(NO_TRAINER)
    trainer.chmod(0o755)
    for path in MPI_PLUGINS:
        shutil.copytree(path, folder / "plugins" / pathlib.Path(path).name, ignore=shutil.ignore_patterns("*.la", "*.a"))
    for path in MPI_TEXTS:
        shutil.copytree(path, folder / "share" / pathlib.Path(path).name)
    (folder / "lib").mkdir()
    code = [*(file for file in (folder / "bin").iterdir() if file != trainer), *(folder / "plugins").glob("*/*.so")]
    for name, path in sorted(set().union(*(libraries_of(file) for file in code))):
        shutil.copy(pathlib.Path(path).resolve(), folder / "lib" / name)
    for pattern in SOURCES:
        for source in sorted(tree.glob(pattern)):
            copy = folder / "tree" / source.relative_to(tree)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
    for name in ("check.py", "report.py"):
        shutil.copy(tree / "deploy/gpu_check" / name, folder / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="folder of the built programs")
    parser.add_argument("--tree", type=pathlib.Path, required=True, help="Hooke's source tree")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="new folder")
    arguments = parser.parse_args()
    stage(arguments.programs, arguments.tree.resolve(), arguments.folder)


if __name__ == "__main__":
    main()
