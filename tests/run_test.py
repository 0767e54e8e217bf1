#!/usr/bin/env python3
"""Tests tests/run with a program in place of Bazel: its output and its exit status, and that Ctrl-C leaves no process running."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS = 60

BAZEL = """#!{python}
import pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[0]).parent
with open(folder / "asked", "a") as file:
    print(*[word for word in sys.argv[1:] if "json_file" not in word], file=file)
if sys.argv[1] == "test":
    events = next(word.partition("=")[2] for word in sys.argv if word.startswith("--build_event_json_file="))
    pathlib.Path(events).write_text((folder / "events").read_text())
    {commands}
"""
HANGS = """
    signal.signal(signal.SIGINT, lambda *_: sys.exit(8))
    (folder / "started").touch()
    time.sleep(120)
"""


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hooke-run-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "tmp").mkdir()
        for name in ("tests/run", "tests/count_results.py", "deploy/build_progress.py"):
            (self.folder / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, self.folder / name)
        self.program("deploy/install-deps", "#!/bin/sh\n")

    def program(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o700)

    def start(self, commands, events, *arguments):
        self.program("bazel", BAZEL.format(python=sys.executable, commands=commands))
        (self.folder / "events").write_text("".join(json.dumps(event) + "\n" for event in events))
        environment = dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}", TMPDIR=str(self.folder / "tmp"))
        for name in ("HOOKE_BAZEL_STARTUP", "HOOKE_BAZEL_KEEP_SERVER"):
            environment.pop(name, None)
        process = subprocess.Popen(
            [self.folder / "tests/run", *arguments], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, start_new_session=True,
            # SIGINT has its default effect, as in a terminal. The test's parent may ignore it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=SECONDS)

    def results(self, xml):
        path = self.folder / "test.xml"
        path.write_text(xml)
        output = [{"name": "test.xml", "uri": path.as_uri()}]
        return [{"id": {"testResult": {"label": "//a:a_test"}}, "testResult": {"status": "PASSED", "testActionOutput": output}}]

    def asked(self):
        return (self.folder / "asked").read_text().splitlines()

    def test_a_passing_run_prints_the_count_alone(self):
        process = self.start("", self.results('<testcase name="a"/>'), "--runs_per_test=3")
        self.assertEqual((*process.communicate(timeout=SECONDS), process.returncode), ("1 passed, 0 failed, 0 skipped\n", "", 0))
        flags = "--curses=no --show_progress_rate_limit=1 --keep_going --ui_event_filters=-info,-stdout"
        self.assertEqual(self.asked(), [f"test {flags} --runs_per_test=3 //...", "shutdown"])
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])

    def test_names_of_the_tests_that_all_tests_leave_out(self):
        for flag, name in {"--torch": "current_torch_test", "--frameworks": "frameworks_test"}.items():
            self.start("", self.results('<testcase name="a"/>'), flag, "--test_output=all").communicate(timeout=SECONDS)
            self.assertRegex(self.asked()[-2], f"--test_output=all //python/tests:{name}$")
        self.start("", self.results('<testcase name="a"/>'), "--intel-mpi").communicate(timeout=SECONDS)
        self.assertRegex(self.asked()[-2], "--config=mpich //tests/several_hosts:intel_mpi_test$")

    def test_a_failure_of_bazel_is_not_hidden_by_tests_that_passed(self):
        process = self.start("sys.exit(3)", self.results('<testcase name="a"/>'), "//a/...")
        self.assertEqual((*process.communicate(timeout=SECONDS), process.returncode), ("1 passed, 0 failed, 0 skipped\n", "", 3))

    def test_ctrl_c_ends_with_130_and_leaves_nothing(self):
        process = self.start(HANGS, [])
        deadline = time.monotonic() + SECONDS
        while not (self.folder / "started").exists():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        # Every process of the group gets the signal, as in a terminal.
        os.killpg(process.pid, signal.SIGINT)
        self.assertEqual((*process.communicate(timeout=SECONDS), process.returncode), ("", "tests/run: interrupted\n", 130))
        self.assertEqual(self.asked()[-1], "shutdown")
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])

    def test_help(self):
        process = self.start("", [], "--help")
        said, errors = process.communicate(timeout=SECONDS)
        self.assertTrue(said.startswith("usage: tests/run "), said)
        self.assertEqual((errors, process.returncode), ("", 0))
        self.assertFalse((self.folder / "asked").exists())


if __name__ == "__main__":
    unittest.main()
