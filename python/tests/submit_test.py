#!/usr/bin/python3
"""Scripts submitted by hooke.submit: a job of two ranks trains as one process does with twice the batch, and groups of different size share the data."""

import pathlib
import re
import sys
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree. It has put the programs into bin/.
sys.dont_write_bytecode = True
PACKAGE = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PACKAGE), str(PACKAGE / "tests"), str(PACKAGE.parent / "deploy")]
import hooke  # noqa: E402
import rank_program  # noqa: E402
import skips  # noqa: E402
import torch  # noqa: E402
import up_cluster  # noqa: E402

SECONDS = 200
# Prints which samples each batch has.
AUDITED = """
import torch, hooke.torch as hooke
from torch.utils.data import DataLoader, TensorDataset

job = hooke.init()
data = TensorDataset(torch.arange(103.0)[:, None])
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
job.wrap(model, optimizer)
sampler = job.sampler(data, batch_size=3)
for epoch in job.epochs(2):
    for (x,) in DataLoader(data, batch_size=3, sampler=sampler):
        print("took", epoch, *map(int, x.flatten()), flush=True)
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
"""
EQUAL = ("sgd", "momentum", "adamw", "accumulated", "clipped")


class Submit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder, _ = up_cluster.start(cls, workers=2)

    def submit(self, groups, averaging, *arguments):
        """`groups`: their number, each of two ranks; or a list of kinds."""
        environment = {"PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, *map(str, arguments)]
        kinds = groups if isinstance(groups, list) else {"count": groups, "ranks": 2}
        return hooke.submit({"name": "test", "command": command, "environment": environment, "groups": kinds, "averaging": averaging})

    def wait(self, job):
        try:
            return hooke.wait(job, timeout=SECONDS)
        except hooke.Error as error:
            self.fail("\n".join([error.message, *hooke.logs(job)]))

    def test_groups_of_different_size_share_each_epoch(self):
        """Of 103 samples, 8 steps of 4 ranks take 96, each once in an epoch."""
        job = self.submit([{"ranks": 2}, {"count": 2}], {"rule": "sync", "grace_seconds": 10}, "-c", AUDITED)
        self.wait(job)
        taken = {}
        for line in hooke.logs(job, follow=True):
            match = re.search(r"took (\d) ([\d ]+)$", line)
            if match:
                taken.setdefault(match.group(1), []).extend(map(int, match.group(2).split()))
        self.assertEqual(sorted(taken), ["0", "1"])
        for samples in taken.values():
            self.assertEqual((len(samples), len(set(samples))), (96, 96))
        self.assertNotEqual(taken["0"], taken["1"])

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
    skips.main()
