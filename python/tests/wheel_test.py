#!/usr/bin/python3
"""The wheel of `bazel build //python:wheel`, installed by pip into a virtual environment, without network. Usage: wheel_test.py WHEEL."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

SECONDS = 120
PROGRAM = """
import numpy, hooke, hooke.numpy
job = hooke.numpy.init()
w = job.register({"w": numpy.ones(3, numpy.float32)})["w"]
job.gradients["w"][...] = w
assert job.combine(2.0) == 2.0
assert job.end_step(1) == 1
job.finish()
print(hooke.__file__)
print(hooke._client.program())
try:
    hooke.jobs(coordinator="127.0.0.1:1")
except hooke.Error as error:
    print(error)
"""


class Wheel(unittest.TestCase):
    wheel: pathlib.Path

    def run_program(self, *command):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("HOOKE_", "PYTHON"))}
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def test_installed_package_trains(self):
        """A rank alone takes a step, and the package finds the library and the program that came with it."""
        with tempfile.TemporaryDirectory() as folder:
            folder = os.path.realpath(folder)
            self.run_program(sys.executable, "-m", "venv", "--system-site-packages", folder)
            self.run_program(f"{folder}/bin/python", "-m", "pip", "install", "--no-index", "--no-deps", self.wheel)
            package, program, error = self.run_program(f"{folder}/bin/python", "-c", PROGRAM).splitlines()
            self.assertTrue(package.startswith(f"{folder}/"), package)
            self.assertEqual(program, str(pathlib.Path(package).parent / "hooke"))
            self.assertIn("cannot reach the coordinator at 127.0.0.1:1", error)

    def test_content(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            self.assertLessEqual({"hooke/libhooke.so", "hooke/hooke.h", "hooke/hooke", "hooke/torch.py", "hooke/_native.py"}, set(wheel.namelist()))
            self.assertEqual({entry.date_time[0] for entry in wheel.infolist()}, {1980}, "the same sources give the same wheel")


if __name__ == "__main__":
    Wheel.wheel = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
