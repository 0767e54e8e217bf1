#!/usr/bin/python3
"""The examples for JAX and TensorFlow: two ranks train as one does with twice the batch, with mpirun and in a job. Usage: frameworks_test.py MPIRUN...

Debian has neither, so the test makes virtual environments: 2 GB of disk, some minutes. It runs only if it is asked for:
tests/run --frameworks.
"""

import pathlib
import re
import sys
import tempfile
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree. It has put the programs into bin/.
sys.dont_write_bytecode = True
PACKAGE = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PACKAGE / "tests")]
import package_index  # noqa: E402

PROGRAMS = pathlib.Path("bin").resolve()
EXAMPLES = {"jax": "jax_network.py", "tensorflow-cpu": "tensorflow_network.py"}
STEPS = 100
SECONDS = 300
MPIRUN = []


class Frameworks(unittest.TestCase):
    def setUp(self):
        # Sockets have short paths, so not in Bazel's folder.
        folder = tempfile.TemporaryDirectory(prefix="hooke-frameworks-test-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.home = folder.name

    def loss(self, *command):
        output = package_index.run(
            self, SECONDS, *command, HOME=self.home, HOOKE_LIBRARY=str(PROGRAMS / "libhooke.so"), PYTHONPATH=str(PACKAGE), PYTHONDONTWRITEBYTECODE="1"
        )
        steps, loss = re.search(r"step (\d+): loss ([0-9.]+)$", output, re.MULTILINE).groups()
        self.assertEqual(int(steps), STEPS)
        return float(loss)

    def check(self, package):
        program = [package_index.environment_with(self, package), str(PACKAGE / "examples" / EXAMPLES[package]), f"--steps={STEPS}"]
        alone = self.loss(*program, "--batch=32")
        two_ranks = self.loss(*MPIRUN, "-n", "2", *program, "--batch=16")
        job = self.loss(str(PROGRAMS / "hooke"), "run", "--ranks=2", "--rule=average", "--interval=5", "--", *program, "--batch=16")
        # There the servers step, and the program must not.
        servers = self.loss(str(PROGRAMS / "hooke"), "run", "--ranks=2", "--rule=async", "--interval=5", "--", *program, "--batch=16")
        print(f"{package}: loss {alone} alone, {two_ranks} with two ranks, {job} in a job, {servers} if servers step", flush=True)
        self.assertLess(servers, 1)
        self.assertAlmostEqual(alone, two_ranks, delta=1e-5)
        self.assertAlmostEqual(alone, job, delta=1e-5)
        self.assertLess(alone, 0.6)


for each in EXAMPLES:
    setattr(Frameworks, f"test_{each}", lambda self, each=each: self.check(each))

if __name__ == "__main__":
    MPIRUN += sys.argv[1:]
    package_index.run_tests("Frameworks")
