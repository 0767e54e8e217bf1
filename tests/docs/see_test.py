#!/usr/bin/env python3
"""A walk through docs/see.md: every command of its code blocks runs, in order, on a cluster of its own, and does what the page says."""

import csv
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

# Bazel runs a symbolic link to this file, so its real path leads to the tree. Bazel has put the programs into bin/
# below the working folder.
sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/docs"), str(ROOT / "tests/quickstart"), str(ROOT / "deploy")]
import polling  # noqa: E402
import quickstart_test  # noqa: E402
import skips  # noqa: E402
import walk  # noqa: E402

PROGRAMS = pathlib.Path("bin/hooke").resolve().parent
PAGE = (ROOT / "docs/see.md").read_text()
DATA = "/usr/share/datasets/fashion-mnist"
# Limits for a whole job on a busy machine, and for short waits.
JOB_SECONDS = 300
SOON_SECONDS = 60
# What the page shows, and this test does not run: the words of the page, and the reason.
NOT_RUN = {"tensorboard --logdir runs": "TensorBoard comes from the package index; `tests/run --tensorboard` reads such files with it"}


class Walk(unittest.TestCase):
    def test_takes_the_commands_of_shell_blocks(self):
        page = "a\n```sh\nhooke up   # here\n# no\n\nhooke plot 'a#b' > c\n```\nb\n```yaml\nname: a\n```\n```sh\nc\n```\n"
        self.assertEqual(walk.commands(page), [(3, "hooke up", "here"), (6, "hooke plot 'a#b' > c", ""), (13, "c", "")])

    def test_refuses_commands_over_several_lines(self):
        for page in ("```sh\na \\\n  b\n```\n", "```sh\na <<E\n  b\n```\n"):
            with self.assertRaises(ValueError):
                walk.commands(page)

    def test_shapes_differ_only_in_numbers(self):
        self.assertEqual(walk.shape("at http://127.0.0.1:41234/, 5 s"), walk.shape("at http://127.0.0.1:7/, 0.25 s"))
        self.assertNotEqual(walk.shape("step 5"), walk.shape("steps 5"))


class See(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hooke-see-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = dict(os.environ, HOME=folder.name, PATH=f"{PROGRAMS}:{os.environ['PATH']}")
        for name in ("HOOKE_COORDINATOR", "HOOKE_TOKEN_FILE"):
            self.environment.pop(name, None)
        # The jobs of the page, with data that they learn in seconds.
        (self.folder / "deploy/jobs").mkdir(parents=True)
        (self.folder / "data").mkdir()
        quickstart_test.write_bars(self.folder / "data/train", 2000, 1)
        quickstart_test.write_bars(self.folder / "data/t10k", 200, 2)
        for path in (ROOT / "deploy/jobs").glob("*.yaml"):
            text = path.read_text()
            self.assertEqual(text.count(f"{DATA}/"), 2, path)
            (self.folder / "deploy/jobs" / path.name).write_text(text.replace(DATA, f"{self.folder}/data"))

    def log(self):
        return (self.folder / "up.log").read_text()

    def start_cluster(self):
        """Runs `hooke up` as terminal 1 does, until its line about the web page is there."""
        with (self.folder / "up.log").open("wb") as output:
            # SIGINT has its default effect, as in a terminal; the test's parent may ignore it.
            default = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
            up = subprocess.Popen(["hooke", "up"], env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, preexec_fn=default)
        self.addCleanup(self.stop, up)
        (shown,) = re.findall(r"`hooke up` prints where its web page is: `([^`]*)`", PAGE)
        polling.wait_for("a cluster", lambda: up.poll() is not None or walk.shape(shown) in map(walk.shape, self.log().splitlines()), SOON_SECONDS, lambda: "\n" + self.log())
        self.assertIsNone(up.poll(), self.log())
        return up

    def stop(self, up):
        """Ends `hooke up` as Ctrl-C does, and returns its exit status."""
        up.send_signal(signal.SIGINT)
        try:
            return up.wait(SOON_SECONDS)
        except subprocess.TimeoutExpired:
            up.kill()
            return up.wait()

    def run_command(self, command):
        """Runs a line in a shell, as terminal 2 does, and returns what it printed."""
        began = time.monotonic()
        shell = ["bash", "-c", command.text]
        result = subprocess.run(shell, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=JOB_SECONDS)
        print(f"line {command.line}: {command.text}: {time.monotonic() - began:.1f} s", flush=True)
        self.assertEqual(result.returncode, 0, f"docs/see.md:{command.line}: {command.text}\n{result.stdout}{result.stderr}")
        return result.stdout

    def check_submit(self, command, output):
        job = re.search(r"fashion-[a-z0-9-]+", command.comment).group()
        self.assertEqual(output.splitlines()[0], f"submitted {job}")
        self.assertIn(f"  {job}: succeeded", output)

    def check_metrics(self, _, output):
        self.assertEqual([line.split("  ")[0] for line in output.splitlines()], ["SERIES", "group 0", "group 1", "center"])

    def check_csv(self, *_):
        with (self.folder / "fashion-1.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        table = PAGE[PAGE.index("| column | meaning |") :].split("\n\n")[0]
        columns = [name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])]
        self.assertEqual(list(rows[0]), columns)
        self.assertEqual(list(dict.fromkeys((row["series"], row["group"]) for row in rows)), [("group", "0"), ("group", "1"), ("center", "")])

    def check_plot(self, *_):
        root = xml.etree.ElementTree.parse(self.folder / "see.svg").getroot()
        texts = " ".join(root.itertext())
        for job in ("fashion-1", "fashion-none-2", "loss", "accuracy"):
            self.assertIn(job, texts)

    def check_tensorboard(self, *_):
        runs = {str(path.parent.relative_to(self.folder)) for path in self.folder.glob("runs/**/*tfevents*")}
        self.assertEqual(runs, {f"runs/fashion-1/{run}" for run in ("group-0", "group-1", "center")})

    def test_every_command_does_what_the_page_says(self):
        checks = {
            "hooke submit deploy/jobs/fashion.yaml --watch": self.check_submit,
            "hooke submit deploy/jobs/fashion-none.yaml --watch": self.check_submit,
            "hooke metrics fashion-1": self.check_metrics,
            "hooke metrics fashion-1 --csv > fashion-1.csv": self.check_csv,
            "hooke plot fashion-1 fashion-none-2 --svg see.svg": self.check_plot,
            "hooke export-tensorboard fashion-1 runs": self.check_tensorboard,
        }
        first, *others = walk.commands(PAGE)
        self.assertEqual(first.text, "hooke up")
        self.assertEqual([command.text for command in others], list(checks), "each command needs its check here")
        up = self.start_cluster()
        for command in others:
            checks[command.text](command, self.run_command(command))
        self.assertEqual(self.stop(up), 0, self.log())

    def test_what_is_not_run_is_still_in_the_page(self):
        for words in NOT_RUN:
            self.assertIn(words, PAGE)


if __name__ == "__main__":
    skips.main()
