#!/usr/bin/python3
"""The package with the PyTorch of today's package index, where Debian's is from 2022. Usage: current_torch_test.py MPIRUN...

For each version it makes a virtual environment, installs torch, and runs the other tests with it. The index has torch for
Linux with all of CUDA: an installation takes 1 minute and 5 GB of disk, one at a time. So the test runs only if it is
asked for: tests/run --torch.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from xml.sax import saxutils

# Bazel runs a symbolic link to this file, so its real path leads to the tree. It has put the library into this test's
# folder.
HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = str(pathlib.Path("worker/api/libhooke.so").resolve())
VERSIONS = ("torch", "torch==2.11.0")
INSTALL_SECONDS = 900
SECONDS = 1500
MPIRUN = []


def missing():
    """Returns the reason why torch cannot be installed here; None if it can."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--dest", folder, "typing-extensions"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    said = result.stderr.strip().splitlines() or ["pip gives no reason"]
    return None if result.returncode == 0 else f"pip reaches no package index: {said[-1]}"


def skip(reason):
    """Skips the test, and tells the reason to count_results.py, too."""
    line = f"skipped: {reason}"
    print(line)
    path = os.environ.get("XML_OUTPUT_FILE")
    if path:
        case = f'<testcase classname="CurrentTorch" name="All"><skipped message={saxutils.quoteattr(line)}/></testcase>'
        pathlib.Path(path).write_text(f'<testsuites><testsuite name="CurrentTorch" tests="1">{case}</testsuite></testsuites>\n')


class CurrentTorch(unittest.TestCase):
    def run_program(self, seconds, *command):
        environment = {**os.environ, "HOOKE_LIBRARY": LIBRARY, "PYTHONDONTWRITEBYTECODE": "1"}
        result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds)
        self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout

    def check(self, version):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            python = f"{folder}/bin/python"
            self.run_program(INSTALL_SECONDS, sys.executable, "-m", "venv", folder)
            self.run_program(INSTALL_SECONDS, python, "-m", "pip", "install", "--no-cache-dir", "--no-compile", version, "numpy")
            print(self.run_program(SECONDS, python, "-c", "import torch; print('torch', torch.__version__)"), flush=True)
            for name, arguments in {"torch_test": [], "torch_misuse_test": [], "torch_data_test": [], "examples_test": [], "ranks_test": MPIRUN}.items():
                output = self.run_program(SECONDS, python, str(HERE / f"{name}.py"), *arguments)
                print(f"{name}: {output.strip().splitlines()[-1]}", flush=True)
                self.assertNotIn("skipped=", output, "this torch has all that the tests need")


for each in VERSIONS:
    setattr(CurrentTorch, f"test_{each}", lambda self, each=each: self.check(each))

if __name__ == "__main__":
    MPIRUN += sys.argv[1:]
    reason = missing()
    if reason:
        skip(reason)
    else:
        unittest.main(argv=sys.argv[:1])
