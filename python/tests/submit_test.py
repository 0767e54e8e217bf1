#!/usr/bin/python3
"""Scripts submitted by hooke.submit: a job of two ranks trains as one process does with twice the batch, and groups of different size share the data."""

import pathlib
import re
import subprocess
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
# A program with tied and frozen parameters, a float buffer and a counter. Rank 0 writes its model's state.
EXPORTED = """
import sys, torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(4, 6)
        self.frozen = nn.Linear(6, 6)
        self.norm = nn.BatchNorm1d(6)
        self.head = nn.Linear(6, 4)
        self.head.weight = self.embedding.weight

    def forward(self, x):
        return self.head(self.norm(self.frozen(self.embedding(x))))


def make_model():
    model = Model()
    nn.init.eye_(model.frozen.weight)  # In place of a file.
    nn.init.zeros_(model.frozen.bias)
    model.frozen.requires_grad_(False)
    return model


if __name__ == "__main__":
    import hooke.torch as hooke

    job = hooke.init()
    torch.manual_seed(job.rank)
    model = make_model()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    job.wrap(model, optimizer)
    for _ in job.epochs(1):
        for _ in range(20):
            x = torch.randint(4, (8,))
            nn.functional.cross_entropy(model(x), x).backward()
            optimizer.step()
            optimizer.zero_grad()
    if job.rank == 0:
        torch.save(model.state_dict(), sys.argv[1])
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

    def test_the_program_in_the_docs_loads_an_exported_model(self):
        folder = self.folder / "exported"
        folder.mkdir()
        (folder / "train.py").write_text(EXPORTED)
        job = self.submit(1, {"rule": "average", "interval": 8}, folder / "train.py", folder / "trained.pt")
        self.wait(job)
        hooke.export(job, folder / "model.safetensors")
        page = (PACKAGE.parent / "docs/your-own-script.md").read_text()
        (section,) = re.findall(r"^### Loading the exported model$(.*?)(?=^##)", page, re.MULTILINE | re.DOTALL)
        (program,) = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
        self.load(folder, program)
        # A model that lacks a parameter of the file, and one that has one more.
        for old, new, said in (
            ("nn.Linear(6, 4)", "nn.Linear(6, 4, bias=False)", r"unknown \['head.bias'\], missing \[\]"),
            ("self.frozen = ", "self.more = nn.Linear(1, 1)\n        self.frozen = ", "missing .*'more.weight'"),
        ):
            (folder / "train.py").write_text(EXPORTED.replace(old, new))
            self.assertRegex(self.load(folder, program, fails=True), said)

    def load(self, folder, program, fails=False):
        """Runs a program that loads the model. Without `fails`, the model must be as it was trained. Returns what it says."""
        program += (
            "trained = torch.load('trained.pt')\n"
            "del trained['norm.num_batches_tracked']\n"
            "for name, value in trained.items():\n"
            "    torch.testing.assert_close(model.state_dict()[name], value, msg=name)\n"
            "assert model.head.weight is model.embedding.weight and not model.training\n"
        )
        result = subprocess.run([sys.executable, "-Bc", program], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
        self.assertEqual(result.returncode != 0, fails, result.stdout)
        return result.stdout

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
