#!/usr/bin/python3
"""A killed group goes on with its own state: real daemons, a real mpirun, and ranks that kill themselves at random moments.

HOOKE_KILLS=50 HOOKE_STEPS=4000 restart_test.py Restarts.test_one_group is a longer run of the same, by hand.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import torch

# Bazel runs a symbolic link to this file, so its real path leads to the tree. It has put the programs into bin/.
TESTS = pathlib.Path(__file__).resolve().parent
PROGRAMS = pathlib.Path("bin").resolve()
KILLS = int(os.environ.get("HOOKE_KILLS", "4"))
STEPS = int(os.environ.get("HOOKE_STEPS", "400"))
SECONDS = 240 + 20 * KILLS


class Cluster:
    """Runs `hooke up` on free ports in a folder of its own."""

    def __init__(self, folder, slots):
        self.environment = {"HOME": folder, "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
        command = [str(PROGRAMS / "hooke"), "up", "--servers=2", "--workers=1", f"--slots={slots}"]
        self.process = subprocess.Popen(command, env=self.environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said = []
        for line in self.process.stdout:
            self.said.append(line)
            if "hooke submit" in line or "Ctrl-C" in line:
                return
        raise AssertionError("the cluster did not start:\n" + "".join(self.said))

    def hooke(self, *arguments):
        return subprocess.run([str(PROGRAMS / "hooke"), *arguments], env=self.environment, capture_output=True, text=True, timeout=SECONDS)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)


class Restarts(unittest.TestCase):
    def setUp(self):
        # Sockets have short paths, so not in Bazel's folder.
        folder = tempfile.TemporaryDirectory(prefix="hooke-restart-test-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.cluster = None

    def train(self, kind, rule, groups=1, kills=0, seed=1, steps=STEPS):
        """Runs a job to its end. Returns its log, and what rank 0 of each group has written."""
        if self.cluster is None:
            self.cluster = Cluster(self.folder, slots=4)
            self.addCleanup(self.cluster.stop)
        name = f"{kind}-{rule}-{kills}"
        out = f"{self.folder}/{name}."
        job = {
            "name": name,
            "command": [sys.executable, str(TESTS / "restart_program.py"), kind, str(steps), str(kills), str(seed), out],
            "directory": self.folder,
            "groups": {"count": groups, "ranks": 2},
            "averaging": {"rule": rule, "interval": 3},
            "train": {"state_seconds": 0.001},
        }
        path = pathlib.Path(self.folder, "job.yaml")
        path.write_text(json.dumps(job))
        submitted = self.cluster.hooke("submit", str(path))
        self.assertEqual(submitted.returncode, 0, submitted.stderr)
        job_id = re.search(rf"{name}-\d+", submitted.stdout + submitted.stderr).group(0)
        log = self.cluster.hooke("logs", "--follow", job_id).stdout
        self.assertIn("job succeeded", log)
        return log, [torch.load(f"{out}{group}") for group in range(groups)]

    def check_equal(self, one, other, where=""):
        """Bitwise."""
        if torch.is_tensor(one):
            self.assertTrue(torch.equal(one, other), where)
        elif isinstance(one, dict):
            self.assertEqual(one.keys(), other.keys(), where)
            for key in one:
                self.check_equal(one[key], other[key], f"{where}/{key}")
        elif isinstance(one, (list, tuple)):
            self.assertEqual(len(one), len(other), where)
            for index, (a, b) in enumerate(zip(one, other)):
                self.check_equal(a, b, f"{where}/{index}")
        else:
            self.assertEqual(one, other, where)

    def test_one_group(self):
        """One group, killed at random moments, ends bitwise as one that was not: parameters, buffers, moments, and all else."""
        kinds = ("adamw", "momentum") if KILLS <= 4 else ("adamw",)
        for kind in kinds:
            _, plain = self.train(kind, "average")
            log, killed = self.train(kind, "average", kills=KILLS, seed=len(kind))
            starts = re.findall(r"start (\d+) at step (\d+): moments of ([0-9.]+)", log)
            print(kind, starts, flush=True)
            self.assertGreaterEqual(len(starts), KILLS, log)
            self.assertTrue(any(int(step) > 0 for _, step, _ in starts), "no state but the first was used")
            self.check_equal(plain, killed)

    def test_two_groups(self):
        """The killed group takes the center's values, and goes on with its momentum."""
        log, _ = self.train("momentum", "elastic", groups=2, kills=1, seed=3)
        self.assertRegex(log, r"group 1 was started again and goes on from step \d+ with its own state of step [1-9]")
        moments = re.search(r"start 2 at step \d+: moments of ([0-9.]+)", log)
        self.assertGreater(float(moments.group(1)), 0)


if __name__ == "__main__":
    unittest.main()
