"""Packs hooke as a wheel, with libhooke.so if Bazel has built it. pip calls it (PEP 517 and 660); it needs Python's own library only."""

import base64
import hashlib
import pathlib
import re
import sysconfig
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = HERE.parent / "bazel-bin/worker/api/libhooke.so"


def version():
    (found,) = re.findall(r'^__version__ = "(.*)"$', (HERE / "hooke/__init__.py").read_text(), re.MULTILINE)
    return found


def package_files():
    """Returns path in the wheel -> bytes."""
    files = {f"hooke/{path.name}": path.read_bytes() for path in sorted((HERE / "hooke").glob("*.py"))}
    for library in (HERE / "hooke/libhooke.so", LIBRARY):
        if library.exists():
            files["hooke/libhooke.so"] = library.read_bytes()
            break
    return files


def write_wheel(folder, files):
    """Writes the wheel into a folder and returns its name."""
    platform = re.sub(r"[^0-9a-z]", "_", sysconfig.get_platform()) if "hooke/libhooke.so" in files else "any"
    tag, notes = f"py3-none-{platform}", f"hooke-{version()}.dist-info"
    files = dict(files)
    files[f"{notes}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: hooke\nVersion: {version()}\nSummary: Train one model with many MPI groups\n"
        "License: Apache-2.0\nRequires-Python: >=3.9\n"
    ).encode()
    files[f"{notes}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: build_wheel\nRoot-Is-Purelib: {str(platform == 'any').lower()}\nTag: {tag}\n".encode()
    lines = []
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(content)}\n")
    files[f"{notes}/RECORD"] = "".join([*lines, f"{notes}/RECORD,,\n"]).encode()
    name = f"hooke-{version()}-{tag}.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            wheel.writestr(path, content)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, package_files())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The wheel of `pip install -e`: it only names this folder."""
    return write_wheel(wheel_directory, {"hooke.pth": f"{HERE}\n".encode()})
