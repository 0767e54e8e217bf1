#!/usr/bin/env python3
"""Tests build_progress.py: its text about Bazel's events and lines, and that it passes on Ctrl-C and the exit status."""

import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import time
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))
import build_progress  # noqa: E402

SECONDS = 60


def configured(label, kind="cc_library rule", size=None):
    return {"id": {"targetConfigured": {"label": label}}, "configured": {"targetKind": kind, **({"testSize": size} if size else {})}}


def completed(label, **outcome):
    return {"id": {"targetCompleted": {"label": label}}, **(outcome or {"completed": {"success": True}})}


def summary(label, status="PASSED"):
    return {"id": {"testSummary": {"label": label}}, "testSummary": {"overallStatus": status}}


class Words(unittest.TestCase):
    def test_durations(self):
        for seconds, said in ((0, "0:00"), (9.9, "0:09"), (61, "1:01"), (3599, "59:59"), (3600, "1:00:00"), (7325, "2:02:05")):
            self.assertEqual(build_progress.duration(seconds), said)

    def test_estimates_are_rounded_up(self):
        for seconds, said in ((0, "10 s"), (11, "20 s"), (100, "100 s"), (101, "2 min"), (120, "2 min"), (121, "3 min"), (3600, "60 min")):
            self.assertEqual(build_progress.about(seconds), said)

    def test_actions(self):
        for line, said in (
            ("Compiling server/a.cc; 11s local ... (2 actions running)", "Compiling server/a.cc (11 s)"),
            ("Compiling server/a.cc; 3s local, remote-cache ... (4 actions, 2 running)", "Compiling server/a.cc (3 s)"),
            ("Compiling server/a.cc", "Compiling server/a.cc"),
            ("Writing file a.params; 0s local ... (2 actions running)", "Writing file a.params"),
            ("Compiling server/a.cc; Downloading a.o, 176 KiB / 407.5 KiB", "Compiling server/a.cc"),
            ("Compiling server/a.cc ... (2 actions, 1 running)", "Compiling server/a.cc"),
            ("Testing //a:b_test; 1s local", "Testing //a:b_test (1 s)"),
            ("[Prepa] BazelWorkspaceStatusAction stable-status.txt", ""),
            ("checking cached actions", ""),
            ("", ""),
        ):
            self.assertEqual(build_progress.action_of(line), said)


class TimeLeft(unittest.TestCase):
    def test_from_the_rate_of_the_last_minutes(self):
        for samples, total, now, left in (
            ([], 100, 50, None),
            ([(0, 1)], 100, 14, None),  # It is too early for an estimate.
            ([(0, 1)], 100, 50, None),  # There is no rate yet.
            ([(0, 0), (20, 10)], 110, 20, 200),
            ([(0, 0), (20, 10)], 110, 40, 400),  # There was no progress since, so the rate is lower than it seemed.
            # The results from a cache came too long ago to count.
            ([(0, 0), (10, 1000), (100, 1010), (200, 1020)], 1120, 200, 1000),
            ([(0, 0), (10, 100)], 200, 1000, 1000),  # There was no progress in the last minutes, so the rate of the whole run counts.
            ([(0, 0), (20, 10)], 10, 20, 0),
        ):
            with self.subTest(samples=samples, now=now):
                self.assertEqual(build_progress.time_left(samples, total, now), left)


class Progress(unittest.TestCase):
    def setUp(self):
        self.progress = build_progress.Progress("run", 0)

    def take(self, now, *events):
        for event in events:
            self.progress.take_event(event, now)

    def test_each_stage_has_its_words(self):
        say = self.progress.text
        self.assertEqual(say(1), "run: 0:01; starting Bazel")
        self.assertTrue(self.progress.take_line("Loading: 3 packages loaded"))
        self.assertEqual(say(2), "run: 0:02; loading")
        self.assertTrue(self.progress.take_line("Analyzing: 3 targets (2 packages loaded, 0 targets configured)"))
        self.assertEqual(say(3), "run: 0:03; analyzing 3 targets")
        self.take(4, configured("//:a"), configured("//:b"), configured("//:c_test", "cc_test rule", "MEDIUM"), configured("//:d_test", "sh_test rule", "SMALL"))
        self.assertTrue(self.progress.take_line("[1 / 17] Compiling b.cc; 3s local ... (2 actions running)"))
        self.take(10, completed("//:a"))
        self.assertEqual(say(10), "run: 0:10, built 1 of 4 targets; Compiling b.cc (3 s)")
        # There are 4 + 3 + 0.5 units of work. Three are done, two of these in the last twenty seconds.
        self.take(30, completed("//:b"), completed("//:c_test"))
        self.assertTrue(self.progress.take_line("[9 / 17] 1 / 2 tests; Testing //:c_test; 2s local"))
        self.assertEqual(say(30), "run: 0:30, built 3 of 4 targets, about 50 s left; Testing //:c_test (2 s)")
        self.take(50, summary("//:c_test"), completed("//:d_test"), summary("//:d_test", "TIMEOUT"))
        self.assertEqual(say(50), "run: 0:50, built 4 of 4 targets, ran 2 of 2 tests, 1 failed, about 10 s left; Testing //:c_test (2 s)")

    def test_what_is_skipped_or_fails_to_build_is_done_and_its_test_is_not_waited_for(self):
        self.take(0, configured("//:a_test", "cc_test rule", "SMALL"), configured("//:b_test", "cc_test rule", "SMALL"), configured("//:c_test", "cc_test rule", "SMALL"))
        self.take(1, completed("//:a_test", aborted={"reason": "SKIPPED"}), completed("//:b_test", completed={}), completed("//:c_test"), summary("//:c_test"))
        self.assertEqual(self.progress.text(2), "run: 0:02, built 3 of 3 targets, ran 1 of 1 tests, 1 failed; starting Bazel")

    def test_what_an_interrupted_run_did_not_try_has_not_failed(self):
        self.take(0, configured("//:a"), configured("//:b_test", "cc_test rule", "SMALL"))
        self.take(1, completed("//:a"), completed("//:b_test", aborted={"reason": "USER_INTERRUPTED"}))
        self.take(1, {"id": {"testSummary": {"label": "//:b_test"}}, "aborted": {"reason": "USER_INTERRUPTED"}})
        self.assertEqual(self.progress.text(2), "run: 0:02, built 1 of 2 targets; starting Bazel")
        self.take(3, completed("//:b_test", aborted={"reason": "ANALYSIS_FAILURE"}))
        self.assertEqual(self.progress.text(4), "run: 0:04, built 2 of 2 targets, 1 failed; starting Bazel")

    def test_events_that_tell_nothing_change_nothing(self):
        said = self.progress.text(1)
        self.take(1, {}, {"id": {}}, {"id": {"pattern": {"pattern": ["//..."]}}}, {"id": {"started": None}}, summary("//:unknown"), completed("//:unknown"))
        self.assertEqual(self.progress.text(1), said)

    def test_errors_and_the_output_of_failed_tests_are_for_the_reader(self):
        border = "=" * 80
        for line, progress in (
            ("Loading: 0 packages loaded", True),
            ("    currently loading: deploy ... (2 packages)", True),
            ("... still trying to connect to local Bazel server after 10 seconds ...", True),
            ("ERROR: //:a failed to build", False),
            ("    an indented line of the error", False),
            ("[12 / 40, 1 failed] Compiling a.cc", True),
            ("[12 / 40] 3 / 9 tests, 1 failed; Testing //:a_test; 1s local", True),
            ("INFO: Build completed successfully, 1 total action", True),
            ("==================== Test output for //:a_test:", False),
            ("[12 / 40] words of the test itself", False),
            ("Loading: words of the test itself", False),
            (border, False),
            ("[13 / 40] Compiling b.cc", True),
        ):
            self.assertEqual(self.progress.take_line(line), progress, line)


# Stands in for bazel; `commands` is a Python program that gets its arguments.
BAZEL = """#!{python}
import json, os, pathlib, signal, sys, time
events = next((word.partition("=")[2] for word in sys.argv if word.startswith("--build_event_json_file=")), None)
def happens(*all):
    with open(events, "a") as file:
        file.writelines(json.dumps(event) + "\\n" for event in all)
def say(text):
    print(text, file=sys.stderr, flush=True)
folder = pathlib.Path(sys.argv[0]).parent
{commands}
"""
HANGS = """
def interrupted(*_):
    (folder / "interrupted").touch()
    say("ERROR: build interrupted")
    sys.exit(8)
signal.signal(signal.SIGINT, interrupted)
(folder / "started").touch()
time.sleep(%d)
""" % (4 * SECONDS)


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hooke-progress-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def command(self, commands, *arguments):
        bazel = self.folder / "bazel"
        bazel.write_text(BAZEL.format(python=sys.executable, commands=commands))
        bazel.chmod(0o700)
        return [sys.executable, "-B", str(FOLDER / "build_progress.py"), *arguments, "run", str(bazel), "--startup=1", "build", "--flag", "//:a"]

    def run_to_its_end(self, commands, *arguments):
        return subprocess.run(self.command(commands, *arguments), capture_output=True, text=True, timeout=SECONDS)

    def await_file(self, name):
        deadline = time.monotonic() + SECONDS
        while not (self.folder / name).exists():
            self.assertLess(time.monotonic(), deadline, f"no {name}")
            time.sleep(0.02)

    def test_a_short_run_passes_on_what_matters_and_the_exit_status(self):
        result = self.run_to_its_end('say("[1 / 2] Compiling a.cc"); say("ERROR: a.cc:1: no"); sys.stderr.write("no line end"); sys.exit(3)')
        self.assertEqual((result.returncode, result.stdout, result.stderr), (3, "", "ERROR: a.cc:1: no\nno line end"))

    def test_arguments_keep_their_places(self):
        result = self.run_to_its_end('print(*sys.argv[1:], sep="\\n")', "--events", f"{self.folder}/events")
        self.assertEqual(
            result.stdout.splitlines(),
            ["--startup=1", "build", "--curses=no", "--show_progress_rate_limit=1", f"--build_event_json_file={self.folder}/events", "--flag", "//:a"],
        )

    def test_counts_the_targets_behind_the_named_ones(self):
        commands = """
if "cquery" in sys.argv:
    print("//:a (0a1b)\\n//b:b (0a1b)\\n//:tool (HOST)\\n@x//:x (0a1b)")
    (folder / "asked").write_text(sys.argv[-1])
else:
    print(*sys.argv[sys.argv.index("--flag"):])
"""
        self.assertEqual(self.run_to_its_end(commands, "--behind").stdout, "--flag //:a //b:b\n")
        self.assertEqual((self.folder / "asked").read_text(), "kind(rule, deps(//:a))")
        # If the query fails because of an error in a BUILD file, the build itself reports the error.
        failing = 'sys.exit(1) if "cquery" in sys.argv else print(*sys.argv[sys.argv.index("--flag"):])'
        self.assertEqual(self.run_to_its_end(failing, "--behind").stdout, "--flag //:a\n")

    def test_a_terminal_has_one_line_that_is_rewritten(self):
        events = [configured("//:a"), configured("//:b"), completed("//:a")]
        # The program in place of Bazel waits until its line has been shown.
        commands = f"""
happens(*json.loads('''{json.dumps(events)}'''))
say("[1 / 2] Compiling " + 100 * "b" + ".cc")
while not (folder / "seen").exists(): time.sleep(0.02)
say("ERROR: no")
"""
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        environment = dict(os.environ, COLUMNS="60")
        process = subprocess.Popen(self.command(commands), stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment)
        os.close(theirs)
        said = b""
        while True:
            try:
                said += os.read(ours, 4096)
            except OSError:  # The last process that could write to the terminal has ended.
                break
            if b"built 1 of 2" in said:
                (self.folder / "seen").touch()
        self.assertEqual(process.wait(SECONDS), 0)
        *lines, last = said.decode().replace("\r\n", "\n").split("\r\033[K")
        self.assertEqual(last, "")
        self.assertEqual(lines[-1], "ERROR: no\n")
        self.assertTrue(lines[-2].startswith("run: 0:0"), lines)
        self.assertTrue(lines[-2].endswith("b…"), lines)
        self.assertEqual(len(lines[-2]), 59)

    def test_ctrl_c_reaches_bazel_and_ends_with_130(self):
        for number, *arguments in ((signal.SIGINT,), (signal.SIGTERM,), (signal.SIGINT, "--behind")):
            with self.subTest(number=number, arguments=arguments):
                process = subprocess.Popen(self.command(HANGS, *arguments), stderr=subprocess.PIPE, text=True)
                self.await_file("started")
                process.send_signal(number)
                said = process.communicate(timeout=SECONDS)[1]
                self.assertEqual((process.returncode, said), (130, "ERROR: build interrupted\n"))
                (self.folder / "started").unlink()

    def test_bazel_does_not_outlive_its_caller(self):
        # The shell is killed at once and cannot pass a signal on.
        shell = subprocess.Popen(["sh", "-c", '"$@"; true', "sh", *self.command(HANGS)], stderr=subprocess.DEVNULL)
        self.await_file("started")
        shell.kill()
        shell.wait(SECONDS)
        self.await_file("interrupted")


class Plain(unittest.TestCase):
    def test_without_a_terminal_a_line_comes_every_thirty_seconds(self):
        written = []
        screen = build_progress.Screen(0, terminal=False, write=written.append)
        progress = build_progress.Progress("run", 0)
        for now in range(0, 95):
            screen.show(progress, now)
        self.assertEqual(written, [f"run: {time}; starting Bazel\n" for time in ("0:30", "1:00", "1:30")])


if __name__ == "__main__":
    unittest.main()
