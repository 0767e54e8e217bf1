#!/usr/bin/env python3
"""Tests that the benchmark scripts judge exact measurements, and round only what they print and write."""

import argparse
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import collectives  # noqa: E402
import compression_benchmark as compression  # noqa: E402
import convergence_benchmark as convergence  # noqa: E402
import coordinator_benchmark as coordinator  # noqa: E402
import exchange_benchmark as exchange  # noqa: E402
import out_of_step_benchmark as out_of_step  # noqa: E402
import report  # noqa: E402
import startup_benchmark as startup  # noqa: E402
import summary  # noqa: E402
import training_benchmark as training  # noqa: E402
import wide_benchmark as wide  # noqa: E402


def evaluated(state, now, epoch, accuracy):
    """Returns the status of a job, submitted at time 1000, with an evaluation of its center."""
    center = {"epoch": epoch, "accuracy": accuracy}
    return {"state": state, "reason": "", "submitted_unix_ms": 1000, "now_unix_ms": now, "ended_unix_ms": 0, "center": center}


class Unrounded(unittest.TestCase):
    """A requirement that is missed by less than the printed or written precision is still missed."""

    def test_training(self):
        _, rows = training.table({"hooke": [89.96], "alone": [100.0]})
        rows = [{"model": "lenet", "ranks": 2, **row} for row in rows]
        self.assertEqual(training.missed(rows), ["hooke has 0.8996 times the samples per second of alone; asked is at least 0.9"])

    def test_startup(self):
        line = "the first step came 2.5004 s after submit; asked is at most 2.5 s"
        self.assertEqual(startup.missed(startup.row_of([2.0, 2.5004, 9.0])), [line])

    def test_wide(self):
        arguments = argparse.Namespace(groups=1, bytes=4, period=1.0)
        result = {"errors": 0, "server_cpu_s": 1.0, "wall_s": 3.0, "server_mib": 10.04, "server_threads": 9}
        # Rounded, this value would miss a requirement that the exact value meets.
        row = wide.row_of(arguments, {**result, "latencies_ms": [249.9996]})
        self.assertEqual(wide.missed(row), [])
        self.assertEqual(len(wide.missed(wide.row_of(arguments, {**result, "latencies_ms": [250.0]}))), 1)
        written = report.rounded(row, wide.DIGITS)
        self.assertEqual((written["p99_ms"], written["server_cpu_cores"], written["server_mib"], written["groups"]), (250.0, 0.333, 10.0, 1))

    def test_coordinator(self):
        arguments = argparse.Namespace(workers=2, ranks=8, group_ranks=4, job_groups=1, watchers=1, seconds=3.0)
        counts = {"progress": 12, "profiles": 1, "heartbeats": 6, "writes": 9, "statuses": 15}
        result = {**counts, "cpu_s": 0.59999, "user_s": 0.4, "wall_s": 3.0, "late_ms": 1.0, "list_ms": [2.0, 1.0, 9.0], "threads": 9, "mib": 30.04}
        result |= {"scrape_percent": 1.9999, "page_kib": 110.6, "opened": (1.999, 96.84)}
        row = coordinator.row_of(arguments, result)
        # Here the rounded value would miss a requirement that was met.
        self.assertEqual(coordinator.missed(row), [])
        written = report.rounded(row, coordinator.DIGITS)
        self.assertEqual((written["cpu_percent"], written["user_percent"], written["progress_per_s"]), (20.0, 13.33, 4.0))
        self.assertEqual((written["list_median_ms"], written["list_p99_ms"], written["mib"], written["workers"]), (2.0, 9.0, 30.0, 2))

    def test_exchange(self):
        rows = []
        for name, us in (("hooke", 300.04), ("sockets", 100.0)):
            way = exchange.Way.__new__(exchange.Way)
            way.name, way.us, way.cpu_seconds = name, [us], 0.0
            rows.append(way.row(4 << 10, (1, 2)))
        (line,) = exchange.missed(rows)
        self.assertIn("hooke has 0.33 times", line)

    def test_compression(self):
        found = {"none": 85.0, "top_k": 83.996}
        rows = []
        for case in (compression.CASES[0], compression.CASES[3]):
            with unittest.mock.patch.object(compression, "accuracy", lambda running, arguments, case, seed: found[case.compression]):
                rows.append(compression.measure(None, argparse.Namespace(repetitions=1, epochs=1), case))
        self.assertEqual(compression.missed(rows), ["diloco, 2 groups, top_k: 1.004 points below none; asked is at most 1"])

    def test_out_of_step(self):
        found = {(True, 1): 87.0, (False, 1): 83.0, (True, 2): 87.0, (False, 2): 82.992}
        case = out_of_step.CASES[0]
        with unittest.mock.patch.object(out_of_step, "accuracy", lambda arguments, case, in_step, seed: found[in_step, seed]):
            row = out_of_step.measure(argparse.Namespace(repetitions=2, epochs=2), case)
        self.assertEqual(out_of_step.missed([row]), [f"{case.name}: 4.004 points below in step; asked is at most 4"])

    def convergence_row(self, case, *accuracies):
        runs = []
        for accuracy in accuracies:
            curve = convergence.Curve()
            curve.add(evaluated("succeeded", 7004, 2.0, accuracy))
            runs.append((curve, None))
        with unittest.mock.patch.object(convergence, "train", side_effect=runs):
            return convergence.run_case(argparse.Namespace(repetitions=len(runs), model="lenet", epochs=2), case)

    def test_convergence(self):
        sync = self.convergence_row(convergence.Case("sync", 1), 0.9, 0.9)
        elastic_16 = self.convergence_row(convergence.Case("elastic", 16), 0.895, 0.89492)
        self.assertEqual(convergence.missed([sync, elastic_16]), ["elastic 16 is 0.504 points below sync 1; asked is at most 0.5"])
        self.assertEqual(elastic_16["curve"], [(6.0, 2.0, 89.5)])

    def test_time_to_the_target(self):
        curve = convergence.Curve()
        curve.add(evaluated("running", 5004, 1.0, 0.87996))
        self.assertIsNone(curve.reached(88))
        curve.add(evaluated("running", 6004, 2.0, 0.88))
        self.assertEqual(curve.reached(88), 5.004)

    def test_collectives(self):
        ways = [argparse.Namespace(name=impl, impl=impl, correct=True, us=[us]) for impl, us in (("hooke", 2.004), ("gloo", 3.0))]
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            path = pathlib.Path(folder, "rows")
            arguments = argparse.Namespace(json=str(path), row=1)
            table = collectives.Table("allreduce", argparse.Namespace(count=2, host_count=1), arguments)
            table.add(4, ways)
            written = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual([row["median_us"] for row in written], [2.0, 3.0])
        line = "allreduce, 2 ranks on 1 host, 4 bytes: hooke is 1.497 times as fast as gloo; asked is at least 1.5"
        self.assertEqual(summary.missed(table.rows, 2), [line])
        self.assertEqual(summary.missed(written, 2), [])


if __name__ == "__main__":
    unittest.main()
