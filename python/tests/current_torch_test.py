#!/usr/bin/python3
"""The package with the PyTorch of today's package index, where Debian's is from 2022. Usage: current_torch_test.py MPIRUN...

For each version it makes a virtual environment, installs torch, and runs the other tests with it. The index has torch for
Linux with all of CUDA: an installation takes 1 minute and 5 GB of disk, one at a time. So the test runs only if it is
asked for: tests/run --torch.
"""

import pathlib
import sys
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree. It has put the library into this test's
# folder.
sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]
import package_index  # noqa: E402

LIBRARY = str(pathlib.Path("worker/api/libhooke.so").resolve())
VERSIONS = ("torch", "torch==2.11.0")
SECONDS = 1500
MPIRUN = []


class CurrentTorch(unittest.TestCase):
    def run_program(self, *command):
        return package_index.run(self, SECONDS, *command, HOOKE_LIBRARY=LIBRARY, PYTHONDONTWRITEBYTECODE="1")

    def check(self, version):
        python = package_index.environment_with(self, version, "numpy")
        print(self.run_program(python, "-c", "import torch; print('torch', torch.__version__)"), flush=True)
        alone = ("torch_test", "torch_misuse_test", "torch_data_test", "torch_staged_test")
        for name, arguments in {**dict.fromkeys(alone, []), "examples_test": MPIRUN, "ranks_test": MPIRUN}.items():
            output = self.run_program(python, str(HERE / f"{name}.py"), *arguments)
            print(f"{name}: {output.strip().splitlines()[-1]}", flush=True)
            self.assertNotIn("skipped=", output, "this torch has all that the tests need")


for each in VERSIONS:
    setattr(CurrentTorch, f"test_{each}", lambda self, each=each: self.check(each))

if __name__ == "__main__":
    MPIRUN += sys.argv[1:]
    package_index.run_tests("CurrentTorch")
