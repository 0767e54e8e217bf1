#!/usr/bin/python3
"""A group killed at any of 50 random steps ends bitwise as one that was not: real daemons, a real mpirun, ranks that kill themselves.

The jobs run beside each other, because a restart is mostly waiting. HOOKE_SEED=N repeats a run.
"""

import os
import pathlib
import random
import re
import sys
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree. It has put the programs into bin/.
sys.dont_write_bytecode = True
PACKAGE = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PACKAGE), str(PACKAGE / "tests"), str(PACKAGE.parent / "deploy")]
import hooke  # noqa: E402
import numpy  # noqa: E402
import skips  # noqa: E402
import up_cluster  # noqa: E402

SEED = int(os.environ.get("HOOKE_SEED", random.randrange(10**6)))
JOBS, KILLS, STEPS = 5, 10, 200
TORCH_KILLS, TORCH_STEPS = 3, 40  # To import torch takes each rank some seconds.
SECONDS = 600


class Kills(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder, _ = up_cluster.start(cls, workers=JOBS + 1)

    def submit(self, rule, kills, seed, program="kill_program.py", steps=STEPS, rate=2e-6):
        command = [sys.executable, str(PACKAGE / "tests" / program), str(steps), str(kills), str(seed), f"{self.folder}/{seed}.npz"]
        train = {"optimizer": {"name": "sgd", "learning_rate": rate, "momentum": 0.9}} if rule == "sync" else {}
        return hooke.submit(
            {
                "name": "kills",
                "command": command,
                "groups": {"count": 1, "ranks": 2},
                "averaging": {"rule": rule, **({} if rule == "sync" else {"interval": 3})},
                "train": {"state_seconds": 0.001, **train},
            }
        )

    def end(self, job, seed):
        """Returns the job's log and what it has written."""
        try:
            hooke.wait(job, timeout=SECONDS)
        except hooke.Error as error:
            self.fail("\n".join([error.message, *hooke.logs(job)]))
        with numpy.load(f"{self.folder}/{seed}.npz") as file:
            return "\n".join(hooke.logs(job)), dict(file)

    def check(self, rule, jobs, kills=KILLS, **program):
        print(f"HOOKE_SEED={SEED}", flush=True)
        plain = self.submit(rule, 0, SEED, **program)
        killed = {seed: self.submit(rule, kills, seed, **program) for seed in range(SEED + 1, SEED + 1 + jobs)}
        _, expected = self.end(plain, SEED)
        used = 0
        for seed, job in killed.items():
            log, ended = self.end(job, seed)
            starts = [int(step) for step in re.findall(r"rank 0: start \d+ goes on from step (\d+), ", log)]
            print(f"{rule}, seed {seed}: starts go on from {starts}", flush=True)
            self.assertEqual(len(starts), kills + 1, log)
            used += sum(step > 0 for step in starts)
            for name, value in expected.items():
                self.assertTrue(numpy.array_equal(ended[name], value), f"HOOKE_SEED={SEED}: seed {seed}: {name}\n{log}")
        # The rest were killed before the first state was kept.
        self.assertGreater(used, jobs * kills / 2)

    def test_fifty_random_steps(self):
        """The model has three blocks. The servers keep the optimizer's state."""
        self.check("sync", JOBS)

    def test_programs_that_step(self):
        """The program keeps its velocity and its random generator."""
        self.check("average", 1)

    def test_torch(self):
        self.check("sync", 1, TORCH_KILLS, program="kill_torch_program.py", steps=TORCH_STEPS, rate=0.01)


if __name__ == "__main__":
    skips.main()
