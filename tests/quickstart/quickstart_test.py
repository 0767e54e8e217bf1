#!/usr/bin/env python3
"""deploy/quickstart trains, exports and prints its two last lines. It leaves nothing behind at its end or after Ctrl-C, and a second one is refused."""

import json
import os
import pathlib
import random
import re
import shutil
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

PROGRAMS = pathlib.Path("bin/hooke").resolve().parent
QUICKSTART = pathlib.Path("deploy/quickstart").resolve()
# Limits for a whole run on a busy machine, and for short waits.
RUN_SECONDS = 240
SOON_SECONDS = 60
SIDE = 28
# The first words of the lines that announce each stage.
STAGES = ["starting", "cluster", "training:", "exporting", "stopping"]


def write_bars(prefix, samples, seed):
    """Writes images of ten classes as IDX files. Each has noise and a bright bar, whose place depends on its class. A network learns them in
    seconds."""
    noise = random.Random(seed)
    images, labels = bytearray(struct.pack(">4I", 0x803, samples, SIDE, SIDE)), bytearray(struct.pack(">2I", 0x801, samples))
    for _ in range(samples):
        label = noise.randrange(10)
        labels.append(label)
        for pixel in range(SIDE * SIDE):
            bar = pixel // SIDE // 5 == label if label < 5 else pixel % SIDE // 5 == label - 5
            images.append(120 * bar + noise.randrange(100))
    pathlib.Path(f"{prefix}-images-idx3-ubyte").write_bytes(images)
    pathlib.Path(f"{prefix}-labels-idx1-ubyte").write_bytes(labels)


def processes_of(folder):
    """Returns the processes that have the folder in their command line or environment."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if any(folder.encode() in (path / name).read_bytes() for name in ("cmdline", "environ")):
                found[int(path.name)] = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # The process has ended, or belongs to another user.
            pass
    return found


class Runs(unittest.TestCase):
    """Runs of the quickstart, each in its own tree."""

    def setUp(self):
        tree = tempfile.TemporaryDirectory(prefix="hooke-quickstart-")
        self.addCleanup(tree.cleanup)
        self.tree = pathlib.Path(tree.name)
        self.temporary = self.tree / "tmp"
        for folder in (self.temporary, self.tree / "deploy", self.tree / "data"):
            folder.mkdir()
        shutil.copy(QUICKSTART, self.tree / "deploy")
        write_bars(self.tree / "data/train", 1000, 1)
        write_bars(self.tree / "data/test", 200, 2)
        self.memory = set()  # The shared-memory folders on /dev/shm of all groups that were seen.

    def write_job(self, name, epochs):
        path = self.tree / f"{name}.yaml"
        data = f"{{train: {self.tree}/data/train, test: {self.tree}/data/test}}"
        train = f"{{epochs: {epochs}, batch_size: 16, optimizer: {{name: sgd, learning_rate: 0.05, momentum: 0.9}}}}"
        path.write_text(f"name: {name}\nmodel: mlp\ndata: {data}\ntrain: {train}\ngroups: {{count: 2, ranks: 2}}\naveraging: {{rule: elastic, interval: 8}}\n")
        return path

    def start(self, *arguments, programs=PROGRAMS):
        environment = dict(os.environ, HOOKE_PROGRAMS=str(programs), TMPDIR=str(self.temporary))
        output = open(self.tree / f"output-{time.monotonic_ns()}", "w+b")
        self.addCleanup(output.close)
        process = subprocess.Popen(
            [self.tree / "deploy/quickstart", *map(str, arguments)],
            env=environment, cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
            # SIGINT has its default effect, as in a terminal. The test's parent may ignore it, and a shell cannot trap
            # a signal that was ignored at its start.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        process.said = lambda: (os.fsync(output.fileno()), pathlib.Path(output.name).read_text())[1]
        self.addCleanup(self.kill, process)
        return process

    def kill(self, process):
        """Ends the process, so that nothing of a failed test runs on."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(SOON_SECONDS)
        for pid in processes_of(str(self.tree)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def await_true(self, process, condition, seconds, what):
        """Waits until the condition holds, and meanwhile records the shared-memory folders of running groups."""
        deadline = time.monotonic() + seconds
        while not condition():
            for link in (self.tree / ".hooke/quickstart").glob("cluster/*/groups/*/memory"):
                try:
                    self.memory.add(os.readlink(link))
                except FileNotFoundError:
                    pass
            self.assertLess(time.monotonic(), deadline, f"{what}: not in {seconds} s; it said:\n{process.said()}")
            time.sleep(0.05)

    def await_end(self, process, seconds):
        self.await_true(process, lambda: process.poll() is not None, seconds, "the end")
        return process.returncode

    def assert_nothing_left(self):
        deadline = time.monotonic() + SOON_SECONDS
        while left := processes_of(str(self.tree)):  # A killed process may exist for a moment longer.
            self.assertLess(time.monotonic(), deadline, f"still there: {left}")
            time.sleep(0.05)
        self.assertEqual([path for path in self.memory if os.path.exists(path)], [])
        self.assertEqual(list(self.temporary.iterdir()), [])
        self.assertEqual(list((self.tree / ".hooke/quickstart").glob("cluster/*/groups/*")), [])

    def assert_interrupted(self, process):
        """Sends SIGINT to every process of the group, as Ctrl-C in a terminal does."""
        os.killpg(process.pid, signal.SIGINT)
        self.assertEqual(self.await_end(process, SOON_SECONDS), 130, process.said())
        self.assertIn("quickstart: interrupted; the cluster and its job end\n", process.said())
        self.assertNotIn("center test accuracy", process.said())
        self.assert_nothing_left()


class Quickstart(Runs):
    def trains(self):
        return any("hooke-rank" in command for command in processes_of(str(self.tree)).values()) and len(self.memory) >= 2

    def test_trains_and_exports_and_leaves_nothing(self):
        job = self.write_job("bars", 2)
        # The second run replaces the model of the first.
        for _ in range(2):
            process = self.start(job)
            self.assertEqual(self.await_end(process, RUN_SECONDS), 0, process.said())
            accuracy, model = process.said().splitlines()[-2:]
            self.assertRegex(accuracy, r"^center test accuracy: \d{1,3}\.\d\d %$")
            self.assertGreater(float(re.search(r"[\d.]+", accuracy).group()), 30, "ten classes: 10 % is chance")
            self.assertEqual(model, "model: .hooke/quickstart/bars.safetensors")
            self.assertEqual(re.findall(r"^quickstart: ([a-z]+:?|[0-9]+ s) ", process.said(), re.MULTILINE)[:-1], STAGES)
            self.assertRegex(process.said(), r"(?m)^quickstart: [0-9]+ s from starting the cluster to the exported model$")
            self.assertGreaterEqual(len(self.memory), 2, "both groups were seen")
            self.assert_nothing_left()
        content = (self.tree / ".hooke/quickstart/bars.safetensors").read_bytes()
        header = json.loads(content[8 : 8 + struct.unpack_from("<Q", content)[0]])
        self.assertIn([SIDE * SIDE], [each.get("shape", [])[1:] for each in header.values()])

    def test_interrupted_while_it_trains_and_another_is_refused(self):
        job = self.write_job("long", 100000)
        first = self.start(job)
        self.await_true(first, self.trains, RUN_SECONDS, "the job's ranks")
        second = self.start(job)
        self.assertEqual(self.await_end(second, SOON_SECONDS), 1, second.said())
        self.assertEqual(second.said(), "deploy/quickstart: another one runs in this folder; wait for its end, or stop it with Ctrl-C\n")
        # The refused second run does not disturb the first.
        self.assertTrue(self.trains())
        self.assertIsNone(first.poll(), first.said())
        self.assert_interrupted(first)

    def test_interrupted_while_the_cluster_starts(self):
        process = self.start(self.write_job("long", 100000))
        self.await_true(process, lambda: (self.tree / ".hooke/quickstart/up.log").exists(), SOON_SECONDS, "hooke up")
        self.assert_interrupted(process)

    def test_what_it_cannot_use_is_named(self):
        job = self.write_job("bars", 1)
        for arguments, programs, said in (
            ([self.tree / "none.yaml"], PROGRAMS, f"deploy/quickstart: {self.tree}/none.yaml: cannot be read; name a job file that exists\n"),
            ([job, job], PROGRAMS, f"deploy/quickstart: {job} exists already; name another file, or remove it first\n"),
            ([job], self.tree, f"deploy/quickstart: {self.tree}/hooke: no such program; HOOKE_PROGRAMS is the folder of hooke, hooke-server, hooke-worker and hooke-rank\n"),
        ):
            process = self.start(*arguments, programs=programs)
            self.assertEqual(self.await_end(process, SOON_SECONDS), 2)
            self.assertEqual(process.said(), said)


if __name__ == "__main__":
    skips.main()
