#!/usr/bin/python3
"""Each PyTorch example in jobs of two groups of two ranks, with elastic averaging and with DiLoCo, and with a SIGKILL
in mid-run."""

import pathlib
import sys
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree. It has put the programs into bin/.
sys.dont_write_bytecode = True
PACKAGE = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PACKAGE), str(PACKAGE / "tests"), str(PACKAGE.parent / "deploy")]
import hooke  # noqa: E402
import skips  # noqa: E402
import up_cluster  # noqa: E402

SECONDS = 200
INTERVAL = 2
# Example -> flags that make it small, and the steps that each group then does.
EXAMPLES = {
    "fashion_mnist_cnn": (["--samples=1280", "--epochs=2"], 10),
    "small_gpt": (["--letters=800", "--width=16", "--features=16", "--layers=1"], 6),
    "resnet_cifar": (["--samples=768", "--epochs=2", "--blocks=1"], 6),
    "amp_accumulate": (["--samples=1024", "--epochs=2"], 8),
}


class ExampleJobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder, _ = up_cluster.start(cls, workers=2)

    def check(self, name, rule):
        flags, steps = EXAMPLES[name]
        job = hooke.submit(
            {
                "name": name.replace("_", "-"),
                "command": [sys.executable, str(PACKAGE / "tests/killed_example.py"), str(INTERVAL), str(PACKAGE / f"examples/{name}.py"), *flags],
                "environment": {"PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"},
                "groups": {"count": 2, "ranks": 2},
                "averaging": {"rule": rule, "interval": INTERVAL},
            }
        )
        try:
            groups = hooke.wait(job, timeout=SECONDS)["groups"]
        except hooke.Error as error:
            self.fail("\n".join([error.message, *hooke.logs(job)]))
        log = "\n".join(hooke.logs(job))
        self.assertEqual([group["state"] for group in groups], ["finished"] * 2, log)
        self.assertEqual([group["incarnation"] for group in groups], [1, 2], log)
        self.assertEqual([group["progress"]["step"] for group in groups], [steps] * 2, log)
        self.assertIn(f"group 1 was started again and goes on from step {INTERVAL} ", log)


for each in EXAMPLES:
    for rule in ("elastic", "diloco"):
        setattr(ExampleJobs, f"test_{each}_{rule}", lambda self, each=each, rule=rule: self.check(each, rule))

if __name__ == "__main__":
    skips.main()
