#!/usr/bin/env python3
"""Tests that the benchmark of the coordinator runs with a small load and writes all it measured, and that Ctrl-C leaves nothing behind."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "deploy"))
import skips  # noqa: E402

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
SCRIPT = pathlib.Path(__file__).resolve().parent / "coordinator_benchmark.py"
PROGRAMS = pathlib.Path("tests/benchmarks/coordinator/bin").resolve()
COMMAND = [sys.executable, "-B", str(SCRIPT), f"--programs={PROGRAMS}", "--workers=3", "--ranks=24", "--group-ranks=2", "--job-groups=5"]
PATIENCE = 120


def commands_naming(text):
    """The command lines of all processes that contain `text`."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue  # It has ended meanwhile.
        if text.encode() in line:
            found.append(line)
    return found


class Coordinator(unittest.TestCase):
    def test_a_small_load_gives_a_complete_row(self):
        with tempfile.TemporaryDirectory() as folder:
            rows = os.path.join(folder, "rows")
            result = subprocess.run([*COMMAND, "--warm-up=0", "--seconds=1", "--page-seconds=2", f"--json={rows}"], capture_output=True, text=True, timeout=PATIENCE)
            # The coordinator's CPU time differs between machines, so the verdict may be either.
            self.assertRegex(result.stdout, r"\n(met|MISSED): ", result.stderr)
            with open(rows) as file:
                (row,) = [json.loads(line) for line in file]
        self.assertEqual((row["benchmark"], row["workers"], row["ranks"], row["group_ranks"], row["watchers"]), ("coordinator", 3, 24, 2, 5))
        for name in ("cpu_percent", "mib", "threads", "list_median_ms", "list_p99_ms", "progress_per_s", "heartbeats_per_s", "writes_per_s", "statuses_per_s", "page_kib", "open_page_percent", "open_page_kib_per_s"):
            self.assertGreater(row[name], 0, name)
        for name in ("user_percent", "profiles_per_s", "late_ms"):
            self.assertGreaterEqual(row[name], 0, name)
        self.assertIn("\nwith a job's page open: ", result.stdout)
        # 12 groups report twice a second each; a slow machine may stretch the second.
        self.assertLessEqual(row["progress_per_s"], 40)

    def test_ranks_that_do_not_fill_groups_are_refused(self):
        result = subprocess.run([*COMMAND, "--ranks=25"], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 1)
        self.assertIn("--ranks=25 is not a multiple of --group-ranks=2", result.stderr)

    def test_ctrl_c_leaves_nothing_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            with subprocess.Popen([*COMMAND, "--seconds=100"], env={**os.environ, "TMPDIR": folder}, stderr=subprocess.PIPE, text=True) as process:
                deadline = time.monotonic() + PATIENCE
                # The load's log is opened last before the load starts.
                while not list(pathlib.Path(folder).glob("*/load.log")):
                    self.assertLess(time.monotonic(), deadline)
                    self.assertIsNone(process.poll())
                    time.sleep(0.05)
                process.send_signal(signal.SIGINT)
                _, said = process.communicate(timeout=PATIENCE)
            self.assertEqual((process.returncode, said), (128 + signal.SIGINT, "interrupted\n"))
            self.assertEqual(commands_naming(folder), [])
            self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    skips.main()
