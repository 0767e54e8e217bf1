#!/usr/bin/python3
"""A script whose job gets more groups, and then fewer, while it trains: real daemons, a real mpirun, and an audit of all samples."""

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
import up_cluster  # noqa: E402

SECONDS = 280
SAMPLES, BATCH, EPOCHS = 1003, 2, 3
# Says which samples it has trained with. A step that does not count says nothing.
SCRIPT = f"""
import time, torch, hooke.torch as hooke
from torch.utils.data import DataLoader, TensorDataset

job = hooke.init()
torch.manual_seed(job.seed)
x = torch.randn({SAMPLES}, 3)
data = TensorDataset(torch.arange({SAMPLES}), x, x.sum(1, keepdim=True) + 0.1 * torch.randn({SAMPLES}, 1))
model = torch.nn.Linear(3, 1)
model, optimizer = job.wrap(model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5))
loader = DataLoader(data, batch_size={BATCH}, sampler=job.sampler(data, batch_size={BATCH}))
scheduler = job.advance(torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, {EPOCHS} * len(loader)))
each_epoch = job.advance(torch.optim.lr_scheduler.LambdaLR(torch.optim.SGD([torch.zeros(1)], lr=1.0), lambda epoch: epoch), "epoch")
for epoch in job.epochs({EPOCHS}):
    if job.step == job.first_step:
        moments = sum(float(s["momentum_buffer"].abs().sum()) for s in optimizer.state.values() if s.get("momentum_buffer") is not None)
        print(f"begins {{len(job.generations)}} {{job.group}} {{job.groups}} {{job.first_step}} {{job.generation_step}} {{moments}}", flush=True)
    assert each_epoch.get_last_lr() == [epoch], (epoch, each_epoch.get_last_lr())
    for numbers, x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        job.report(loss=loss)
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        print(f"took {{len(job.generations)}} {{job.group}} {{job.step}} {{epoch}}:", *numbers.tolist(), flush=True)
        time.sleep(0.01)
    each_epoch.step()
print(f"ends {{job.step}} {{scheduler.get_last_lr()[0]:.6f}}", flush=True)
"""


class Scales(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder, _ = up_cluster.start(cls, workers=3)

    def submit(self, averaging):
        environment = {"PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", SCRIPT]
        return hooke.submit({"name": "scale", "command": command, "environment": environment, "groups": {"count": 1, "ranks": 1}, "averaging": averaging})

    def scale_while_it_runs(self, job, *numbers):
        """Gives the job the next number of groups as soon as all present ones have made 30 steps. Returns the lines of its log, until its end."""
        present, lines, steps = 1, [], {}
        for line in hooke.logs(job, follow=True):
            lines.append(line)
            match = re.search(r"took (\d+) (\d+) ", line)
            if not match or not numbers:
                continue
            steps[match.groups()] = steps.get(match.groups(), 0) + 1
            generation = match.group(1)
            if all(steps.get((generation, str(group)), 0) >= 30 for group in range(present)):
                present, *numbers = numbers
                hooke.scale(job, present)
                steps = {key: -(10**9) for key in steps}
        return lines

    def check(self, averaging):
        job = self.submit(averaging)
        lines = self.scale_while_it_runs(job, 3, 2)
        log = "\n".join(lines)
        self.assertEqual(hooke.status(job)["state"], "succeeded", log)
        begins = [tuple(map(float, match)) for match in re.findall(r"begins (\d+) (\d+) (\d+) (\d+) (\d+) (\S+)", log)]
        print(averaging, begins, flush=True)
        self.assertEqual(sorted((g, group, groups) for g, group, groups, *_ in begins), [(0, 0, 1), (1, 0, 3), (1, 1, 3), (1, 2, 3), (2, 0, 2), (2, 1, 2)], log)
        for generation, group, _, first_step, generation_step, moments in begins:
            self.assertEqual(first_step, generation_step)
            self.assertEqual(moments > 0, generation > 0 and not (generation == 1 and group > 0), f"a group that was there has its momentum:\n{log}")
        taken = {}
        for epoch, samples in re.findall(r"took \d+ \d+ \d+ (\d+): ([\d ]+)$", log, re.MULTILINE):
            taken.setdefault(int(epoch), []).extend(map(int, samples.split()))
        self.assertEqual(sorted(taken), list(range(EPOCHS)))
        for epoch, samples in taken.items():
            twice = len(samples) - len(set(samples))
            missing = SAMPLES - len(set(samples))
            print(f"epoch {epoch}: {len(samples)} samples, {twice} twice, {missing} missing", flush=True)
            self.assertEqual(twice, 0, log)
            self.assertLess(missing, 3 * BATCH, log)  # At an epoch's end, samples are left out that do not fill a step of all groups.
        ends = {match for match in re.findall(r"ends (\d+) ([\d.]+)", log)}
        self.assertEqual(len(ends), 1, "all groups end at one step, and with one rate")
        self.assertEqual(float(next(iter(ends))[1]), 0)

    def test_elastic(self):
        self.check({"rule": "elastic", "interval": 7})

    def test_average(self):
        self.check({"rule": "average", "interval": 5})


if __name__ == "__main__":
    skips.main()
