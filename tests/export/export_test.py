#!/usr/bin/env python3
"""The programs printed in docs/export.md reach the accuracy that `hooke jobs` shows."""

import gzip
import json
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "deploy"))
import skips  # noqa: E402

PROGRAMS = pathlib.Path("bin").resolve()
PAGE = pathlib.Path("docs/export.md").read_text()
# Debian's Python, which has python3-torch, even if another python3 comes first in PATH.
PYTHON = "/usr/bin/python3"
TEST_DATA = "/usr/share/datasets/fashion-mnist/t10k"
SIDE = 28
TEST_SAMPLES = 1000
# Limits for a whole job on a busy machine, and for short waits.
JOB_SECONDS = 240
SOON_SECONDS = 60


def program(heading):
    """Returns the Python program in the page's section `heading`."""
    (section,) = re.findall(rf"^## {heading}$(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
    (text,) = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return text


def write_bars(prefix, samples, seed):
    """Writes images of ten classes. Each has a bright bar, whose place depends on its class, under so much noise that a network errs sometimes."""
    noise = random.Random(seed)
    images, labels = bytearray(struct.pack(">4I", 0x803, samples, SIDE, SIDE)), bytearray(struct.pack(">2I", 0x801, samples))
    for _ in range(samples):
        label = noise.randrange(10)
        labels.append(label)
        bright = noise.randrange(60)
        for pixel in range(SIDE * SIDE):
            bar = pixel // SIDE // 5 == label if label < 5 else pixel % SIDE // 5 == label - 5
            images.append(bright * bar + noise.randrange(190))
    for kind, content in (("images-idx3", images), ("labels-idx1", labels)):
        pathlib.Path(f"{prefix}-{kind}-ubyte.gz").write_bytes(gzip.compress(bytes(content), 1))


class Export(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="hooke-export-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.environment = dict(os.environ, HOME=folder.name)
        cls.environment.pop("HOOKE_COORDINATOR", None)
        write_bars(cls.folder / "train", 2000, 1)
        write_bars(cls.folder / "test", TEST_SAMPLES, 2)
        output = open(cls.folder / "up.log", "wb")
        cls.addClassCleanup(output.close)
        # There are two servers, so that a model comes in two parts.
        cls.cluster = subprocess.Popen([PROGRAMS / "hooke", "up", "--workers", "1", "--slots", "2"], env=cls.environment, stdout=output, stderr=output)
        cls.addClassCleanup(cls.stop_cluster)
        deadline = time.monotonic() + SOON_SECONDS
        while cls.nodes_alive() < 3:
            if cls.cluster.poll() is not None or time.monotonic() > deadline:
                raise AssertionError((cls.folder / "up.log").read_text())
            time.sleep(0.1)

    @classmethod
    def stop_cluster(cls):
        cls.cluster.send_signal(signal.SIGINT)
        try:
            cls.cluster.wait(SOON_SECONDS)
        except subprocess.TimeoutExpired:
            cls.cluster.kill()
            cls.cluster.wait()

    @classmethod
    def hooke(cls, *arguments, limit=SOON_SECONDS):
        return subprocess.run([PROGRAMS / "hooke", *map(str, arguments)], env=cls.environment, capture_output=True, text=True, timeout=limit)

    @classmethod
    def nodes_alive(cls):
        result = cls.hooke("nodes", "--output", "json")
        return sum(node["alive"] for node in json.loads(result.stdout)["nodes"]) if result.returncode == 0 else 0

    def train(self, model, rate):
        """Trains the model for an epoch. Returns the job's id and the accuracy that `hooke jobs` shows."""
        path = self.folder / f"{model}.yaml"
        path.write_text(
            f"name: {model}\nmodel: {model}\ndata: {{train: {self.folder}/train, test: {self.folder}/test}}\n"
            f"train: {{epochs: 1, batch_size: 16, optimizer: {{name: sgd, learning_rate: {rate}, momentum: 0.9}}, seed: 1}}\n"
            "groups: {count: 2, ranks: 1}\naveraging: {rule: elastic, interval: 4}\n"
        )
        result = self.hooke("submit", path, "--watch", limit=JOB_SECONDS)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        (job,) = [job for job in json.loads(self.hooke("jobs", "--output", "json").stdout)["jobs"] if job["name"] == model]
        return job["job_id"], job["center"]["accuracy"]

    def run_program(self, heading):
        """Runs the page's program on this test's files and returns its output."""
        text = program(heading)
        self.assertEqual(text.count(TEST_DATA), 1)
        text = text.replace(TEST_DATA, str(self.folder / "test"))
        result = subprocess.run([PYTHON, "-c", text], cwd=self.folder, capture_output=True, text=True, timeout=JOB_SECONDS)
        self.assertEqual(result.returncode, 0, result.stderr)
        return float(result.stdout)

    def export(self, job, name, *flags):
        result = self.hooke("export", job, self.folder / name, "--force", *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")

    def check(self, model, rate, has_source):
        job, accuracy = self.train(model, rate)
        # Guessing gives 0.1. A model without errors would hide some errors of the program.
        self.assertGreater(accuracy, 0.2)
        self.assertLess(accuracy, 0.999)
        self.export(job, "model.pt", "--format", "torchscript")
        self.export(job, "model.safetensors")
        # If the program adds in another order, it may classify one sample differently.
        tolerance = 1.001 / TEST_SAMPLES
        found = {"TorchScript": self.run_program("TorchScript")}
        if has_source:
            found["Safetensors"] = self.run_program("Safetensors")
        print(f"{model}: hooke jobs {accuracy}, {found}", flush=True)
        for heading, printed in found.items():
            self.assertAlmostEqual(printed, accuracy, delta=tolerance, msg=heading)
        return accuracy

    def test_mlp(self):
        accuracy = self.check("mlp", 0.02, has_source=True)
        content = (self.folder / "model.safetensors").read_bytes()
        said = json.loads(content[8 : 8 + struct.unpack_from("<Q", content)[0]])["__metadata__"]
        self.assertEqual(float(said["center_test_accuracy"]), accuracy)
        pixels = gzip.decompress((self.folder / "train-images-idx3-ubyte.gz").read_bytes())[16:]
        self.assertAlmostEqual(float(said["mean"]), sum(pixels) / len(pixels) / 255, delta=1e-12)
        # The page's table lists every key.
        table = set(re.findall(r"`([a-z_]+)`", "".join(line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `"))))
        self.assertEqual(set(said) - table, set())
        # "group_kinds" is written only for jobs whose groups differ; export_metadata_test has one.
        self.assertEqual(table - set(said) - {"safetensors", "torchscript"}, {"group_kinds"})

    def test_small_mlp(self):
        self.check("small-mlp", 0.02, has_source=True)

    def test_lenet(self):
        self.check("lenet", 0.02, has_source=True)

    def test_resnet20(self):
        self.check("resnet20", 0.05, has_source=False)


if __name__ == "__main__":
    skips.main()
