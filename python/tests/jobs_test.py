#!/usr/bin/python3
"""PyTorch scripts in jobs: groups with servers, started by `hooke run` with real daemons and a real mpirun."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "deploy"))
import skips  # noqa: E402

# Bazel runs a symbolic link to this file, so its real path leads to the tree. It has put the programs into bin/.
PACKAGE = pathlib.Path(__file__).resolve().parents[1]
PROGRAMS = pathlib.Path("bin").resolve()
EXAMPLE = [sys.executable, str(PACKAGE / "examples/fashion_mnist_cnn.py")]
SECONDS = 200


# Fits a line, with values of bfloat16.
BFLOAT16 = """
import time, torch, hooke.torch as hooke
from torch.utils.data import DataLoader, TensorDataset

job = hooke.init()
torch.manual_seed(job.seed)
x = torch.randn(640, 8)
data = TensorDataset(x.bfloat16(), x @ torch.linspace(-1, 1, 8)[:, None])
model = torch.nn.Linear(8, 1).bfloat16()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
job.wrap(model, optimizer)
sampler = job.sampler(data, batch_size=8)
loss_of = lambda model, x, y: torch.nn.functional.mse_loss(model(x).float(), y)
for epoch in job.epochs(8):
    print(f"epoch {epoch}", flush=True)
    for batch in DataLoader(data, batch_size=8, sampler=sampler):
        loss_of(model, *batch).backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.01)  # So that the kill comes in mid-run.
    job.evaluate(lambda model: {"accuracy": 0.0, "loss": float(loss_of(model, *data.tensors))})
assert loss_of(model, *data.tensors) < 0.02
print(f"learned {model.weight.dtype}", flush=True)
"""


class Run:
    """A running `hooke run`. Its lines can be waited for."""

    def __init__(self, home, *arguments):
        environment = {"HOME": home, "PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [str(PROGRAMS / "hooke"), "run", *arguments]
        self.process = subprocess.Popen(command, env=environment, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines, self.changed = [], threading.Condition()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line)
                self.changed.notify_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.reader.join(10)
        self.process.stdout.close()

    def output(self):
        with self.changed:
            return "".join(self.lines)

    def await_line(self, pattern):
        """Returns the match of the first line that has the pattern."""

        def found():
            return next(filter(None, (re.search(pattern, line) for line in self.lines)), None)

        with self.changed:
            if not self.changed.wait_for(found, SECONDS):
                raise AssertionError(f"no line with {pattern} in {SECONDS} s:\n{''.join(self.lines)}")
            return found()

    def end(self):
        """Returns the exit status."""
        status = self.process.wait(SECONDS)
        self.reader.join(10)
        return status


class Jobs(unittest.TestCase):
    def setUp(self):
        # Sockets have short paths, so not in Bazel's folder.
        folder = tempfile.TemporaryDirectory(prefix="hooke-jobs-test-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.home = folder.name

    def train(self, rule, *flags):
        with Run(self.home, "--groups=2", "--ranks=2", f"--rule={rule}", "--interval=2", "--", *EXAMPLE, *flags) as run:
            self.assertEqual(run.end(), 0, run.output())
            return run.output()

    def check(self, output):
        for group in (0, 1):
            self.assertRegex(output, f"group {group} at step 10: finished")
        self.assertRegex(output, r"group 0 rank 0: epoch 0: accuracy [0-9.]+")

    def test_elastic(self):
        self.check(self.train("elastic", "--samples=2560", "--epochs=1"))

    def test_diloco(self):
        self.check(self.train("diloco", "--samples=2560", "--epochs=1"))

    def test_the_example_in_c(self):
        program = str(pathlib.Path("worker/api/linear_regression").resolve())
        with Run(self.home, "--groups=2", "--ranks=2", "--rule=elastic", "--interval=4", "--", program) as run:
            self.assertEqual(run.end(), 0, run.output())
            output = run.output()
        self.assertIn("group 0 rank 0: 2 ranks, 2 groups, rule elastic", output)
        self.assertIn("group 0 rank 0: center: y = 2.000 x0 -3.000 x1 +1.000", output)

    def test_bfloat16(self):
        """A model of bfloat16 in groups, whose center is float32. A group whose rank is killed goes on from the center."""
        command = [sys.executable, "-c", BFLOAT16]
        with Run(self.home, "--groups=2", "--ranks=2", "--rule=elastic", "--interval=2", "--", *command) as run:
            victim = int(run.await_line(r"group 1 rank 0 is there \(pid (\d+)\)").group(1))
            run.await_line(r"group 1 rank 0: epoch 1")
            os.kill(victim, signal.SIGKILL)
            self.assertEqual(run.end(), 0, run.output())
            output = run.output()
        self.assertRegex(output, r"group 1 was started again and goes on from step \d+")
        self.assertEqual(re.findall(r"group \d rank \d: (learned torch.bfloat16)", output), ["learned torch.bfloat16"] * 4)

    def test_killed_rank(self):
        """Its group is started again and goes on from its last exchange. The job ends as if nothing had been."""
        command = [*EXAMPLE, "--samples=2560", "--epochs=6"]
        with Run(self.home, "--groups=2", "--ranks=2", "--rule=elastic", "--interval=2", "--", *command) as run:
            victim = int(run.await_line(r"group 1 rank 0 is there \(pid (\d+)\)").group(1))
            run.await_line(r"group 1 rank 0: epoch 0")
            os.kill(victim, signal.SIGKILL)
            self.assertEqual(run.end(), 0, run.output())
            output = run.output()
        self.assertRegex(output, r"group 1 starts on worker worker-1 at site local, start 2")
        # A state of its own is kept every 30 s: a slow machine may have come that far.
        kept = r"(optimizer's state as at the start|own state of step [1-9]\d*)"
        self.assertRegex(output, r"group 1 was started again and goes on from step [1-9]\d* with its " + kept)
        for group in (0, 1):
            self.assertRegex(output, f"group {group} at step 60: finished")

    def test_script_that_raises(self):
        """The job fails at once, with the exception as its reason."""
        script = "import hooke.torch as h\njob = h.init()\nif job.rank == 1: raise ValueError('boom')\njob.barrier()"
        with Run(self.home, "--ranks=2", "--", sys.executable, "-c", script) as run:
            self.assertEqual(run.end(), 1, run.output())
            output = run.output()
        self.assertRegex(output, r"failed: .*ValueError: boom")
        self.assertNotIn("start 2", output)
        self.assertIn("group 0 rank 1: Traceback (most recent call last):", output)


if __name__ == "__main__":
    skips.main()
