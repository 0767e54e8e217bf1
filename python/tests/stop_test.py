#!/usr/bin/python3
"""A program of two groups stops early and reports metrics of its own: real daemons and a real mpirun."""

import json
import pathlib
import struct
import sys
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree. It has put the programs into bin/.
sys.dont_write_bytecode = True
PACKAGE = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PACKAGE), str(PACKAGE / "tests"), str(PACKAGE.parent / "deploy")]
import hooke  # noqa: E402
import skips  # noqa: E402
import up_cluster  # noqa: E402

SECONDS = 120
STEPS = 100000
# The center goes to 3. One rank of group 1 has enough after 20 steps; each rank of the other group would make all steps.
TRAINS = f"""
import sys
sys.dont_write_bytecode = True
import time, numpy, hooke.numpy as h
job = h.init()
w = job.register({{"w": numpy.zeros(4, dtype=numpy.float32)}}, steps_total={STEPS})["w"]
while job.step < {STEPS} and not job.stopping:
    job.gradients["w"][...] = w - 3
    job.combine(float(numpy.square(w - 3).sum()))
    if job.place.steps_locally:
        w -= 0.5 * job.gradients["w"]
    job.end_step()
    job.metrics({{"learning rate": 0.5, "not a number": float("nan")}}, step=job.step, group=job.group)
    time.sleep(0.01)
    if job.group == 1 and job.rank == 1 and job.step == 20:
        job.stop()
job.evaluate(lambda p: {{"distance": float(numpy.abs(p["w"] - 3).max())}})
job.finish()
print(f"rank {{job.rank}} of group {{job.group}} has stopped at step {{job.step}}", flush=True)
"""


def values_of(path):
    """Returns the only tensor of a safetensors file."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    (tensor,) = [value for name, value in json.loads(data[8 : 8 + size]).items() if name != "__metadata__"]
    begin, end = tensor["data_offsets"]
    return struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin : 8 + size + end])


class Stops(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder, _ = up_cluster.start(cls, workers=2)

    def check(self, **averaging):
        job = hooke.submit(
            {
                "name": "stop",
                "command": [sys.executable, "-c", TRAINS],
                "environment": {"PYTHONPATH": str(PACKAGE)},
                "groups": {"count": 2, "ranks": 2},
                "averaging": averaging,
                "train": {"optimizer": {"name": "sgd", "learning_rate": 0.3}},
            }
        )
        statuses = list(hooke.watch(job))
        log = "\n".join(hooke.logs(job))
        last = statuses[-1]
        self.assertEqual(last["state"], "succeeded", log)
        for group in (0, 1):
            for rank in (0, 1):
                self.assertRegex(log, f"rank {rank} of group {group} has stopped at step [0-9]+")
        self.assertNotIn("start 2", log)
        steps = [group["progress"]["step"] for group in last["groups"]]
        self.assertLess(max(steps), STEPS)
        print(averaging, "steps", steps, "center", last["center"], flush=True)
        self.assertEqual(last["groups"][1]["progress"]["metrics"], {"learning rate": 0.5, "not a number": None, "step": steps[1], "group": 1})
        self.assertIsNone(last["center"]["accuracy"])
        self.assertLess(last["center"]["metrics"]["distance"], 0.1)
        self.assertIn("coordinator center distance ", log)
        model = hooke.export(job, self.folder / f"{job}.safetensors")
        for value in values_of(model["path"]):
            self.assertAlmostEqual(value, 3, delta=0.1)

    def test_elastic(self):
        self.check(rule="elastic", interval=2)

    def test_rounds_that_need_all_groups(self):
        """No round waits for the group that has stopped, which would take 10 s for each."""
        self.check(rule="average", interval=2, quorum=2, grace_seconds=10)

    def test_gradients(self):
        self.check(rule="async", interval=2)


if __name__ == "__main__":
    skips.main()
