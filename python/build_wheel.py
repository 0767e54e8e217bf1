"""Packs hooke as a wheel, with libhooke.so, its header and the program hooke if they are built. Needs Python's own library only.

pip calls it (PEP 517 and 660), and then it takes what Bazel has built in this tree. `bazel build //python:wheel` calls
it as a program.
"""

import argparse
import base64
import hashlib
import pathlib
import re
import sysconfig
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
BUILT = HERE.parent / "bazel-bin"
LIBRARY, HEADER, PROGRAM = "hooke/libhooke.so", "hooke/hooke.h", "hooke/hooke"
# Path in the wheel -> where it may have been built, best first.
BINARIES = {
    LIBRARY: (HERE / LIBRARY, BUILT / "worker/api/libhooke.so"),
    HEADER: (HERE.parent / "worker/api/hooke.h",),
    PROGRAM: (BUILT / "bin/hooke", BUILT / "client/hooke"),
}


def version():
    (found,) = re.findall(r'^__version__ = "(.*)"$', (HERE / "hooke/__init__.py").read_text(), re.MULTILINE)
    return found


def package_files(binaries=None):
    """Returns path in the wheel -> bytes."""
    files = {f"hooke/{path.name}": path.read_bytes() for path in sorted((HERE / "hooke").glob("*.py"))}
    for name, places in (binaries or BINARIES).items():
        built = next((place for place in places if place.exists()), None)
        if built:
            files[name] = built.read_bytes()
    return files


def wheel_tag(files):
    """Returns the wheel's tag. A library fits one platform, and any Python: it is loaded by ctypes."""
    binary = any(name in files for name in BINARIES)
    return "py3-none-" + (re.sub(r"[^0-9a-z]", "_", sysconfig.get_platform()) if binary else "any")


def write_wheel(folder, files):
    """Writes the wheel into a folder and returns its name. The same files give the same bytes."""
    tag, notes = wheel_tag(files), f"hooke-{version()}.dist-info"
    files = dict(files)
    files[f"{notes}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: hooke\nVersion: {version()}\nSummary: Train one model with many MPI groups\n"
        "License: Apache-2.0\nRequires-Python: >=3.9\n"
    ).encode()
    pure = str(tag.endswith("-any")).lower()
    files[f"{notes}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: build_wheel\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode()
    lines = []
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(content)}\n")
    files[f"{notes}/RECORD"] = "".join([*lines, f"{notes}/RECORD,,\n"]).encode()
    name = f"hooke-{version()}-{tag}.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path)  # Its time is 1980.
            entry.compress_type = zipfile.ZIP_DEFLATED
            # pip keeps the bits that make a file a program.
            entry.external_attr = (0o100755 if path == PROGRAM else 0o100644) << 16
            wheel.writestr(entry, content)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, package_files())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The wheel of `pip install -e`: it only names this folder."""
    return write_wheel(wheel_directory, {"hooke.pth": f"{HERE}\n".encode()})


def main():
    parser = argparse.ArgumentParser(description="Writes the wheel of the package hooke.")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the wheel's path; its name must be the one that it would get here")
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--header", type=pathlib.Path, required=True)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    built = {LIBRARY: (arguments.library,), HEADER: (arguments.header,), PROGRAM: (arguments.program,)}
    name = write_wheel(arguments.out.parent, package_files(built))
    if name != arguments.out.name:
        parser.exit(1, f"the wheel is called {name}, not {arguments.out.name}\n")


if __name__ == "__main__":
    main()
