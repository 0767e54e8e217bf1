#!/usr/bin/python3
"""The number of a job's groups changes while groups are killed, hang or are cut off, and while the coordinator is killed: an audit of the center.

Real daemons, a real mpirun. The center itself counts what it has of each sample, so the audit does not trust what any program says.
"""

import json
import os
import pathlib
import signal
import sys
import time
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree. It has put the programs into bin/.
sys.dont_write_bytecode = True
PACKAGE = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PACKAGE), str(PACKAGE / "tests"), str(PACKAGE.parent / "deploy")]
import hooke  # noqa: E402
import skips  # noqa: E402
import torch  # noqa: E402
from daemons import Daemons  # noqa: E402

SECONDS = 240  # How long a test waits for what must happen at some time.
SAMPLES, BATCH, EPOCHS, GROUPS = 1003, 2, 4, 3
# The model has one parameter for each sample and epoch. Its gradient is 1 in the step that takes the sample, and under
# downpour at a rate of 1 the center goes down by the sum of all gradients. So each value of the center is minus the
# number of times that it has the sample. Ranks also tell which steps they have made, for the test's timing.
SCRIPT = f"""
import os, time, torch, hooke.torch as hooke
from torch.utils.data import DataLoader, TensorDataset

class Counts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.taken = torch.nn.Parameter(torch.zeros({EPOCHS}, {SAMPLES}))

job = hooke.init()
data = TensorDataset(torch.arange({SAMPLES}))
model = Counts()
model, optimizer = job.wrap(model, torch.optim.SGD(model.parameters(), lr=1.0))
loader = DataLoader(data, batch_size={BATCH}, sampler=job.sampler(data, batch_size={BATCH}))
trace = os.open(os.environ["TRACE"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for epoch in job.epochs({EPOCHS}):
    for numbers, in loader:
        loss = model.taken[epoch, numbers].sum()
        job.report(loss=loss)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        os.write(trace, f"{{len(job.generations)}} {{job.group}} {{os.getpid()}} {{job.step}}\\n".encode())
        time.sleep(0.02)
"""


class ScaleFaults(unittest.TestCase):
    def begin(self):
        """Starts a cluster, and a job of GROUPS groups, each on a worker of its own. Returns when all have made some steps."""
        self.cluster = Daemons(self, GROUPS, server_flags=["--lease=5s", "--snapshot-interval=1s"])
        self.trace = self.cluster.folder / "trace"
        environment = {"PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "TRACE": str(self.trace)}
        self.job = hooke.submit(
            {
                "name": "count",
                "command": [sys.executable, "-c", SCRIPT],
                "environment": environment,
                "groups": {"count": GROUPS, "ranks": 1},
                "averaging": {"rule": "downpour", "interval": 7},
                "train": {"optimizer": {"name": "sgd", "learning_rate": 1}},
            }
        )
        self.await_steps(0, GROUPS)

    def await_that(self, holds, what):
        deadline = time.monotonic() + SECONDS
        while not holds():
            if time.monotonic() > deadline:
                self.fail(f"not in time: {what}\n{self.log()}")
            time.sleep(0.005)

    def log(self):
        return "\n".join(hooke.logs(self.job))

    def steps(self, generation):
        """Returns for each group of the generation the process and the step of each of its steps."""
        steps = {}
        if self.trace.exists():
            for line in self.trace.read_text().splitlines():
                of, group, pid, step = map(int, line.split())
                if of == generation:
                    steps.setdefault(group, []).append((pid, step))
        return steps

    def await_steps(self, generation, groups, count=30):
        def made():
            steps = self.steps(generation)
            return all(len(steps.get(group, [])) >= count for group in range(groups))

        self.await_that(made, f"{count} steps of each of {groups} groups in generation {generation}")

    def pid(self, generation, group):
        return self.steps(generation)[group][-1][0]

    def check(self, changes):
        """Waits for the job's end. Then each epoch has each sample once, but for those that fill no step of all groups at its end."""
        hooke.wait(self.job, timeout=SECONDS)
        log = self.log()
        self.assertEqual(hooke.status(self.job)["state"], "succeeded", log)
        self.assertEqual(log.count(" divide what is left, from step "), changes, log)
        path = self.cluster.folder / "center.safetensors"
        hooke.export(self.job, path)
        file = path.read_bytes()
        header_bytes = int.from_bytes(file[:8], "little")
        begin, end = json.loads(file[8 : 8 + header_bytes])["taken"]["data_offsets"]
        values = torch.frombuffer(bytearray(file[8 + header_bytes + begin : 8 + header_bytes + end]), dtype=torch.float32)
        for epoch, counts in enumerate(-values.reshape(EPOCHS, SAMPLES)):
            twice, missing = int((counts > 1).sum()), int((counts == 0).sum())
            print(f"epoch {epoch}: {int(counts.sum())} in the center, {twice} twice, {missing} missing", flush=True)
            self.assertEqual(set(counts.tolist()) - {0.0, 1.0}, set(), f"epoch {epoch}\n{log}")
            self.assertLess(missing, GROUPS * BATCH, f"epoch {epoch}\n{log}")

    def test_killed(self):
        """A group is killed just before the change, and another one while the groups leave for the next change."""
        self.begin()
        os.kill(self.pid(0, 1), signal.SIGKILL)
        hooke.scale(self.job, 2)
        self.await_steps(1, 2)
        killed = self.pid(1, 0)
        hooke.scale(self.job, 3)
        os.kill(killed, signal.SIGKILL)
        self.check(changes=2)

    def test_hangs(self):
        """A group whose rank is stopped cannot leave."""
        self.begin()
        os.kill(self.pid(0, 2), signal.SIGSTOP)
        hooke.scale(self.job, 2)
        self.check(changes=1)

    def test_cut_off(self):
        """The coordinator does not hear of a group that trains on, and takes it for lost. Its late exchanges are refused."""
        self.begin()
        worker = next(group["worker"] for group in hooke.status(self.job)["groups"] if group["group"] == 1)
        self.cluster.signal(worker, signal.SIGSTOP)
        hooke.scale(self.job, 2)
        made = len(self.steps(0)[1])
        self.await_steps(1, 1)
        self.assertGreater(len(self.steps(0)[1]), made + 20, "it was to train on until its worker's lease ended")
        self.cluster.signal(worker, signal.SIGCONT)
        self.check(changes=1)

    def test_coordinator_killed(self):
        """The coordinator dies with its server when some groups have left, and comes back."""
        self.begin()
        ranks = [self.pid(0, group) for group in range(GROUPS)]
        os.kill(ranks[2], signal.SIGSTOP)
        hooke.scale(self.job, 2)
        self.await_that(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in ranks[:2]), "two groups have left")
        self.cluster.signal("server", signal.SIGKILL)
        self.cluster.start_server()
        self.check(changes=1)


if __name__ == "__main__":
    skips.main()
