#!/usr/bin/env python3
"""Tests output that all benchmark scripts share: missed requirements, rounded figures, and interrupts."""

import contextlib
import io
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
SCRIPTS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPTS))
import report  # noqa: E402


class Judge(unittest.TestCase):
    def test_a_miss_is_printed_and_ends_the_program(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), self.assertRaises(SystemExit) as end:
            report.judge(["one", "two"])
        self.assertEqual((said.getvalue(), end.exception.code), ("MISSED: one\nMISSED: two\n", 1))
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            report.judge([])
            report.judge([], asked=False)
        self.assertEqual(said.getvalue(), "met: all that is asked of what ran\nnothing is asked of what ran\n")

    def test_what_was_not_judged_is_said_last_and_nothing_is_met(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), self.assertRaises(SystemExit):
            report.judge([], not_judged=["a", "b"])
            report.judge([], asked=False, not_judged=["c"])
            report.judge(["one"], not_judged=["d"])
        self.assertEqual(
            said.getvalue(),
            "not judged: a; b; nothing else was missed\nnot judged: c; nothing is asked of what ran\nMISSED: one\nnot judged: d\n",
        )


class Rounded(unittest.TestCase):
    def test_rows_are_rounded_in_the_file_only(self):
        rows = [{"a": 1.23456, "b": None, "c": 2.7, "d": "x", "e": 0.123}]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "rows")
            report.write_json(str(path), rows, {"a": 2, "b": 2, "c": None})
            self.assertEqual(json.loads(path.read_text()), {"a": 1.23, "b": None, "c": 3, "d": "x", "e": 0.123})
        self.assertEqual(rows[0]["a"], 1.23456)

    def test_a_miss_never_reads_like_what_is_asked(self):
        for value, asked, said in ((0.89, 0.9, "0.89"), (0.8996, 0.9, "0.8996"), (0.9, 0.9, "0.90"), (3.004, 3, "3.004"), (2.9999999, 3, "2.9999999")):
            self.assertEqual(report.text(value, asked), said)
        self.assertEqual(report.text(250.0, 250, 1), "250.0")


class Interrupted(unittest.TestCase):
    """Ctrl-C and SIGTERM end a benchmark with one line, after the processes that it started have ended."""

    def interrupt(self, sign):
        script = """
import report, signal, sys
def main(sign):
    with report.started(["sleep", "600"]) as process:
        print(process.pid, flush=True)
        signal.raise_signal(sign)
report.run(main, int(sys.argv[1]))
"""
        ended = subprocess.run([sys.executable, "-B", "-c", script, str(int(sign))], cwd=SCRIPTS, capture_output=True, text=True, timeout=60)
        self.assertFalse(pathlib.Path("/proc", ended.stdout.strip()).exists())
        return ended.returncode, ended.stderr

    def test_one_line(self):
        self.assertEqual(self.interrupt(signal.SIGINT), (128 + signal.SIGINT, "interrupted\n"))
        self.assertEqual(self.interrupt(signal.SIGTERM), (1, "terminated\n"))

    def test_all_benchmarks_end_so(self):
        scripts = sorted(SCRIPTS.glob("*_benchmark.py"))
        self.assertEqual([script.name for script in scripts if "    report.run(" not in script.read_text()], [])
        self.assertEqual([script.name for script in scripts if "signal.signal(" in script.read_text()], [])
        self.assertGreater(len(scripts), 10)


if __name__ == "__main__":
    unittest.main()
