#!/usr/bin/python3
"""Scripts submitted by hooke.submit: a job of two ranks trains as one process does with twice the batch."""

import pathlib
import sys
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree. It has put the programs into bin/.
sys.dont_write_bytecode = True
PACKAGE = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PACKAGE), str(PACKAGE / "tests")]
import hooke  # noqa: E402
import rank_program  # noqa: E402
import torch  # noqa: E402
import up_cluster  # noqa: E402

SECONDS = 200
EQUAL = ("sgd", "momentum", "adamw", "accumulated", "clipped")


class Submit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder, _ = up_cluster.start(cls, workers=2)

    def submit(self, groups, averaging, *arguments):
        environment = {"PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, *map(str, arguments)]
        return hooke.submit({"name": "test", "command": command, "environment": environment, "groups": {"count": groups, "ranks": 2}, "averaging": averaging})

    def wait(self, job):
        try:
            return hooke.wait(job, timeout=SECONDS)
        except hooke.Error as error:
            self.fail("\n".join([error.message, *hooke.logs(job)]))

    def test_equals_the_plain_script(self):
        """Each scenario makes 50 steps or more. With accumulation, a step has two backward passes."""
        for scenario in EQUAL:
            folder = self.folder / scenario
            folder.mkdir()
            self.wait(self.submit(1, {"rule": "none"}, PACKAGE / "tests/rank_program.py", scenario, folder))
            first, other = (torch.load(folder / f"{rank}.pt") for rank in range(2))
            _, seed, state = first
            for name, value in rank_program.plain(scenario, 2, seed).items():
                self.assertLess((state[name] - value).abs().max().item(), 1e-5, f"{scenario}: {name}")
                torch.testing.assert_close(other[2][name], state[name], rtol=0, atol=0)


if __name__ == "__main__":
    unittest.main()
