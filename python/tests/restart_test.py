#!/usr/bin/python3
"""A killed group goes on with its own state: real daemons, a real mpirun, and ranks that kill themselves at random moments.

HOOKE_KILLS=50 HOOKE_STEPS=4000 restart_test.py Restarts.test_one_group is a longer run of the same, by hand.
"""

import os
import pathlib
import re
import sys
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree. It has put the programs into bin/.
sys.dont_write_bytecode = True
PACKAGE = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PACKAGE), str(PACKAGE / "tests"), str(PACKAGE.parent / "deploy")]
import hooke  # noqa: E402
import skips  # noqa: E402
import torch  # noqa: E402
import up_cluster  # noqa: E402

KILLS = int(os.environ.get("HOOKE_KILLS", "3"))
STEPS = int(os.environ.get("HOOKE_STEPS", "240"))
SECONDS = 240 + 20 * KILLS


class Restarts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder, _ = up_cluster.start(cls, workers=2)

    def train(self, kind, rule, groups=1, kills=0, seed=1):
        """Runs a job to its end. Returns its log, and what rank 0 of each group has written."""
        out = f"{self.folder}/{kind}-{rule}-{kills}."
        job = hooke.submit(
            {
                "name": "restart",
                "command": [sys.executable, str(PACKAGE / "tests/restart_program.py"), kind, str(STEPS), str(kills), str(seed), out],
                "groups": {"count": groups, "ranks": 2},
                "averaging": {"rule": rule, "interval": 3},
                "train": {"state_seconds": 0.001},
            }
        )
        try:
            hooke.wait(job, timeout=SECONDS)
        except hooke.Error as error:
            self.fail("\n".join([error.message, *hooke.logs(job)]))
        return "\n".join(hooke.logs(job)), [torch.load(f"{out}{group}") for group in range(groups)]

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
        for kind in ("adamw", "staged_momentum"):
            _, plain = self.train(kind, "average")
            log, killed = self.train(kind, "average", kills=KILLS, seed=len(kind))
            starts = re.findall(r"start (\d+) at step (\d+): moments of ([0-9.]+)", log)
            print(kind, starts, flush=True)
            self.assertGreaterEqual(len(starts), KILLS, log)
            self.assertTrue(any(int(step) > 0 for _, step, _ in starts), "no state but the first was used")
            self.check_equal(plain, killed)

    def test_exchanges_of_a_model_on_a_device(self):
        """They are those of a model in the job's memory, bitwise."""
        for rule in ("elastic", "sync"):
            _, plain = self.train("momentum", rule)
            _, staged = self.train("staged_momentum", rule)
            self.check_equal(plain, staged)

    def test_two_groups(self):
        """The killed group takes the center's values, and goes on with its momentum."""
        log, _ = self.train("momentum", "elastic", groups=2, kills=1, seed=3)
        self.assertRegex(log, r"group 1 was started again and goes on from step \d+ with its own state of step [1-9]")
        moments = re.search(r"start 2 at step \d+: moments of ([0-9.]+)", log)
        self.assertGreater(float(moments.group(1)), 0)


if __name__ == "__main__":
    skips.main()
