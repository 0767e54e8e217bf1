#!/usr/bin/python3
"""`pip install ./python` works without network, setuptools or wheel, and the installed package finds its library."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
PACKAGE = pathlib.Path(__file__).resolve().parents[1]
SECONDS = 120
sys.path.insert(0, str(PACKAGE))
import build_wheel  # noqa: E402


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_version_is_that_of_the_programs(self):
        self.assertIn(f'VERSION = "{build_wheel.version()}"', (PACKAGE.parent / "version.bzl").read_text())

    def test_wheel_with_a_library(self):
        name = build_wheel.write_wheel(self.folder, {**build_wheel.package_files(), "hooke/libhooke.so": b"no library"})
        with zipfile.ZipFile(self.folder / name) as wheel:
            wheel.extractall(self.folder)
            notes = {path.split("/")[1] for path in wheel.namelist() if ".dist-info/" in path}
            self.assertEqual(notes, {"METADATA", "WHEEL", "RECORD"})
        environment = {name: value for name, value in os.environ.items() if name not in ("HOOKE_LIBRARY", "PYTHONPATH")}
        program = "import hooke.numpy; hooke.numpy.init()"
        result = subprocess.run([sys.executable, "-c", program], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=SECONDS)
        self.assertIn(f"{self.folder}/hooke/libhooke.so: file too short", result.stderr.replace(os.path.realpath(self.folder), str(self.folder)))

    @unittest.skipUnless(importlib.util.find_spec("pip"), "this Python has no pip")
    def test_pip(self):
        for kind in ([], ["--editable"]):
            target = self.folder / ("editable" if kind else "plain")
            command = [sys.executable, "-m", "pip", "install", "--no-index", "--disable-pip-version-check", "--prefix", target, *kind, PACKAGE]
            environment = {**os.environ, "PIP_BREAK_SYSTEM_PACKAGES": "1", "PIP_IGNORE_INSTALLED": "1"}
            result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
            self.assertEqual(result.returncode, 0, result.stderr)
            found = {path.name for path in target.rglob("*") if path.name in ("_native.py", "hooke.pth")}
            self.assertEqual(found, {"hooke.pth"} if kind else {"_native.py"})


if __name__ == "__main__":
    unittest.main()
