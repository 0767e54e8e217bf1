#!/usr/bin/env python3
"""Tests the benchmark scripts' calculations and judgements on given results, without running a benchmark."""

import argparse
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import xml.etree.ElementTree

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[2] / "deploy")]
import averaging_benchmark as averaging  # noqa: E402
import away_benchmark as away  # noqa: E402
import cluster  # noqa: E402
import compression_benchmark as compression  # noqa: E402
import convergence_benchmark as convergence  # noqa: E402
import coordinator_benchmark as coordinator  # noqa: E402
import elastic_benchmark as elastic  # noqa: E402
import exchange_benchmark as exchange  # noqa: E402
import out_of_step_benchmark as out_of_step  # noqa: E402
import rounds_benchmark as rounds  # noqa: E402
import scheduling_benchmark as scheduling  # noqa: E402
import scale_benchmark as scale  # noqa: E402
import overlap_benchmark as overlap  # noqa: E402
import plot  # noqa: E402
import recovery_benchmark as recovery  # noqa: E402
import reports_benchmark as reports  # noqa: E402
import startup_benchmark as startup  # noqa: E402
import split_benchmark as split  # noqa: E402
import step_times  # noqa: E402
import submitted_benchmark as submitted  # noqa: E402
import training_benchmark as training  # noqa: E402
import types_benchmark  # noqa: E402
import wide_benchmark as wide  # noqa: E402
import skips  # noqa: E402

HOOKE = pathlib.Path("client/hooke").resolve()
SVG = "{http://www.w3.org/2000/svg}"


def row(rule, interval, accuracy, compression="none", moved=1000):
    return {
        "rule": rule, "model": "lenet", "interval": interval, "compression": compression, "accuracy": accuracy, "bytes": moved, "wall_s": 10.0, "complete": True,
        "curve": [(1.0, 1.0, 50.0), (2.0, 2.0, accuracy)],
    }  # fmt: skip


def status(state, now, center=None, ended=0):
    return {"state": state, "reason": "", "submitted_unix_ms": 1000, "now_unix_ms": now, "ended_unix_ms": ended, "center": center}


class Plot(unittest.TestCase):
    def test_ticks_are_round_and_within(self):
        self.assertEqual(plot.ticks(0, 60), [0, 10, 20, 30, 40, 50, 60])
        self.assertEqual(plot.ticks(88.3, 90.1), [88.5, 89, 89.5, 90])
        self.assertEqual(plot.ticks(5, 5), [5])

    def test_every_curve_is_drawn_and_named_within_the_picture(self):
        curves = {"sync 1": [(1, 70.0), (2, 88.0)], "a <b> & c": [(1.5, 60.0), (3, 89.5)], "none": []}
        tree = xml.etree.ElementTree.fromstring(plot.svg("t", "x", "y", curves, 65))
        self.assertEqual(len(tree.findall(SVG + "polyline")), 3)
        texts = [element.text for element in tree.findall(SVG + "text")]
        self.assertIn("a <b> & c (89.50)", texts)
        for line in tree.findall(SVG + "polyline"):
            for point in line.get("points").split():
                x, y = map(float, point.split(","))
                self.assertTrue(0 <= x <= plot.WIDTH and 0 <= y <= plot.HEIGHT, point)
        # A point below y_min is left out.
        self.assertEqual(len(tree.findall(SVG + "circle")), 3)

    def test_no_points_at_all(self):
        xml.etree.ElementTree.fromstring(plot.svg("t", "x", "y", {}))


class Reports(unittest.TestCase):
    def test_the_share_counts_threads_that_report(self):
        before = {("1", "hooke-rank"): 10.0, ("2", "hooke-reports"): 1.0}
        after = {("1", "hooke-rank"): 19.0, ("2", "hooke-reports"): 1.5, ("3", "grpc_global_tim"): 0.25, ("4", "hooke-exchange"): 0.25}
        self.assertAlmostEqual(reports.share_of_reports(before, after), 0.075)

    def test_measuring_is_bounded(self):
        # A small vector is measured every 0.4 s, and takes a microsecond for each thousand values. A large one is measured ever more rarely.
        self.assertAlmostEqual(reports.measure_share(1, 4000), 1e-5)
        self.assertAlmostEqual(reports.measure_share(1, 1e7), 0.0025)
        self.assertAlmostEqual(reports.measure_share(1, 1e9), 0.0025)

    def test_demands(self):
        calls = {"step_us": 1.0, "measure_ns": 0.5}
        row = reports.row_of("lenet", [0.001, 0.002], 0.01, calls, (1.5, 1.9))
        self.assertAlmostEqual(row["step_percent"], 0.2 + 0.01 + 100 * 0.5e-9 * 61706 / 0.4)
        self.assertEqual(reports.missed(row), [])
        self.assertEqual(len(reports.missed(reports.row_of("lenet", [0.005], 0.01, calls, (2.0, 1.0)))), 2)
        self.assertEqual(
            reports.missed(reports.row_of("lenet", [0.001], 0.01, calls, (1.0, 2.01))), ["the coordinator takes 2.01 % of a core while a page is open; asked is less than 2 %"]
        )
        self.assertEqual(len(reports.missed(reports.row_of("lenet", [0.001], 0.01, {"step_us": 1.0, "measure_ns": 2.5}, (0.5, 0.5)))), 1)


class Convergence(unittest.TestCase):
    def test_nothing_is_missed_where_all_is_as_asked(self):
        rows = [row("sync", 1, 90.0), row("elastic", 1, 89.5), row("elastic", 64, 89.0), row("diloco", 64, 88.0, moved=3900)]
        rows.append(row("diloco", 64, 87.7, "int8", moved=1000))
        self.assertEqual(convergence.missed(rows), [])

    def test_each_miss_is_named(self):
        rows = [row("sync", 1, 90.0), row("elastic", 16, 89.49), row("elastic", 64, 88.99), row("diloco", 64, 88.0, moved=3899)]
        rows.append(row("diloco", 64, 87.69, "int8", moved=1000))
        self.assertEqual(
            convergence.missed(rows),
            [
                "elastic 16 is 0.51 points below sync 1; asked is at most 0.5",
                "elastic 64 is 1.01 points below sync 1; asked is at most 1.0",
                "diloco 64 int8 is 0.31 points below diloco 64; asked is at most 0.3",
                "diloco 64 int8 moves 3.899 times fewer bytes than diloco 64; asked is at least 3.9",
            ],
        )

    # In floats, 50.1 - 49.8 is more than 0.3.
    def test_as_many_points_as_are_asked_are_no_miss(self):
        for tenths in range(500, 1000):
            rows = [row("diloco", 64, tenths / 10, moved=3900), row("diloco", 64, (tenths - 3) / 10, "int8", moved=1000)]
            self.assertEqual(convergence.missed(rows), [])

    def test_what_did_not_run_is_not_judged(self):
        rows = [row("elastic", 16, 10.0), row("diloco", 64, 10.0, "int8")]
        self.assertEqual(convergence.missed(rows), [])
        self.assertEqual(convergence.compared(rows), [])
        self.assertEqual(len(convergence.compared([*rows, row("sync", 1, 10.0)])), 1)

    # If such a job were compared, a sync job cut off by --limit would make every elastic case look good.
    def test_a_job_that_was_stopped_is_missed_and_compared_with_nothing(self):
        cut = {**row("sync", 1, 10.0), "complete": False, "wall_s": 1800.0}
        rows = [cut, row("elastic", 16, 60.0), row("diloco", 64, 88.0), {**row("diloco", 64, 50.0, "int8"), "complete": False}]
        stopped = ["sync 1 was stopped after 1800 s, before its end: --limit", "diloco 64 int8 was stopped after 10 s, before its end: --limit"]
        self.assertEqual(convergence.missed(rows), stopped)
        self.assertEqual(convergence.compared(rows), [])
        self.assertEqual(convergence.not_judged(rows), [])

    def test_bytes_that_were_not_counted_are_not_judged(self):
        rows = [row("diloco", 64, 88.0, moved=None), row("diloco", 64, 87.9, "int8", moved=None)]
        self.assertEqual(convergence.missed(rows), [])
        self.assertEqual(convergence.not_judged(rows), ["the bytes of diloco 64 int8 against diloco 64, which were not counted"])
        self.assertEqual(convergence.not_judged(rows[:1]), [])
        self.assertEqual(convergence.not_judged([row("diloco", 64, 88.0), row("diloco", 64, 87.9, "int8")]), [])

    def test_a_case_without_a_result_says_why(self):
        arguments = argparse.Namespace(repetitions=1)
        with unittest.mock.patch.object(convergence, "train", return_value=(convergence.Curve(), None)):
            with self.assertRaisesRegex(convergence.NoResult, "^sync 1: its center was never evaluated"):
                convergence.run_case(arguments, convergence.Case("sync", 1))
        with unittest.mock.patch.object(convergence, "train", side_effect=cluster.Refused("no such rule")):
            with self.assertRaisesRegex(convergence.NoResult, "^sync 1: no such rule"):
                convergence.run_case(arguments, convergence.Case("sync", 1))

    def test_a_case_without_a_result_does_not_take_the_others_with_it(self):
        cases = [convergence.Case("async", 1), convergence.Case("sync", 1), convergence.Case("elastic", 16)]
        arguments = argparse.Namespace(cases=cases, model="mlp", epochs=1, json=None, svg=None)
        outcomes = [convergence.NoResult("async 1, seed 1: diverged"), row("sync", 1, 90.0), row("elastic", 16, 89.9)]
        with unittest.mock.patch.object(convergence, "run_case", side_effect=outcomes), contextlib.redirect_stdout(io.StringIO()) as said:
            missed, asked, not_judged = convergence.compare_rules(arguments)
        self.assertEqual((missed, asked, not_judged), (["async 1, seed 1: diverged"], True, []))
        self.assertIn("FAILED: async 1, seed 1: diverged", said.getvalue())

    def test_a_job_between_hosts_that_fails_is_missed(self):
        arguments = argparse.Namespace(model="mlp", limit=1, json=None)
        failed = unittest.mock.patch.object(convergence, "time_to_target", side_effect=convergence.NoResult("elastic 16: diverged"))
        alone = unittest.mock.patch.object(convergence.hosts, "missing", return_value="")
        with failed, alone, contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(convergence.compare_hosts(arguments), ["elastic 16 has no result"])
        self.assertIn("FAILED: elastic 16: diverged", said.getvalue())

    def test_a_curve_has_each_evaluation_once_and_the_time_of_the_end(self):
        curve = convergence.Curve()
        curve.add(status("queued", 1500))
        self.assertIsNone(curve.accuracy)
        first, second = {"epoch": 1.0, "accuracy": 0.8}, {"epoch": 2.0, "accuracy": 0.9}
        for at, center in ((2000, None), (3000, first), (4000, first), (5000, second)):
            curve.add(status("running", at, center))
        curve.add(status("succeeded", 9000, second, ended=7000))
        self.assertEqual(curve.points, [(2.0, 1.0, 80.0), (4.0, 2.0, 90.0)])
        self.assertEqual((curve.accuracy, curve.wall_s, curve.state), (90.0, 6.0, "succeeded"))
        self.assertEqual((curve.reached(80), curve.reached(85), curve.reached(95)), (2.0, 4.0, None))

    def test_time_between_hosts(self):
        self.assertEqual(convergence.missed_time(10.0, 50.0, 50.1, "running"), [])
        self.assertEqual(convergence.missed_time(10.0, 40.0, 40.1, "running"), ["elastic took 0.25 of sync's time; asked is at most 0.2"])
        # If sync never reached the target, it must have been watched long enough, and must have trained all that time.
        self.assertEqual(convergence.missed_time(10.0, None, 60.0, "running"), [])
        self.assertEqual(convergence.missed_time(10.0, None, 50.0, "succeeded"), [])
        (line,) = convergence.missed_time(10.0, None, 49.9, "succeeded")
        self.assertEqual(
            line, "not decided: sync ended all its epochs (take more: --epochs) after 49.9 s without 88 %, less than 5 times elastic's 10.0 s"
        )
        (line,) = convergence.missed_time(10.0, None, 60.0, "queued")
        self.assertEqual(line, "not decided: the job of sync was queued after 60.0 s, and had not trained")
        self.assertEqual(len(convergence.missed_time(10.0, None, 0.0, "")), 1)

    def test_the_table_has_a_row_for_each(self):
        lines = list(convergence.table([row("sync", 1, 90.0, moved=4000), row("elastic", 16, 89.5)]))
        self.assertEqual(len(lines), 4)
        self.assertIn("| elastic 16 |", lines[3])
        self.assertIn("| -0.50 |", lines[3])
        self.assertIn("| 4.0 x |", lines[3])
        self.assertEqual({line.count("|") for line in lines}, {8})

    def test_hooke_takes_every_job_file(self):
        arguments = argparse.Namespace(model="lenet", epochs=2, train="/data/train", test="/data/t10k")
        with tempfile.TemporaryDirectory() as folder:
            for case in convergence.CASES:
                path = os.path.join(folder, "job.yaml")
                with open(path, "w") as file:
                    file.write(convergence.job_text(arguments, case, "cosine"))
                # No coordinator listens at this address, so the exit code is 1. A wrong file would be reported first,
                # with exit code 2.
                result = subprocess.run([HOOKE, "submit", path, "--coordinator=127.0.0.1:1"], capture_output=True, text=True, timeout=60)
                self.assertEqual(result.returncode, 1, result.stderr)


class Overlap(unittest.TestCase):
    TIMES = {"alone": [60.0, 50.0, 55.0], "together": [155.0], "funneled": [80.0, 70.0], "concurrent": [155.0], "chained": [165.0]}

    def test_hidden_is_the_part_of_the_communication_not_waited_for(self):
        lines, rows = overlap.table(self.TIMES)
        self.assertEqual([row["hidden"] for row in rows], [None, None, 0.8, 0.0, -0.1])
        self.assertEqual(rows[0]["step_ms"], 55.0)
        self.assertEqual(len(lines), 1 + len(self.TIMES))

    def test_nothing_to_hide_is_said(self):
        lines, rows = overlap.table({**self.TIMES, "together": [50.0]})
        self.assertEqual({row["hidden"] for row in rows}, {None})
        self.assertIn("communication costs nothing", lines[-1])


class Asked(unittest.TestCase):
    """Benchmarks with requirements name those that were missed."""

    def training_rows(self, rates, model="lenet", ranks=2):
        lines, rows = training.table(rates)
        return lines, [{"model": model, "ranks": ranks, **row} for row in rows]

    def test_training(self):
        _, rows = self.training_rows({"hooke": [90.0, 80.0, 95.0], "alone": [100.0, 100.0, 100.0]})
        self.assertEqual(training.missed(rows), [])
        lines, rows = self.training_rows({"hooke": [89.0, 80.0, 95.0], "ddp-gloo": [60.0, 50.0, 60.0], "alone": [100.0, 100.0, 100.0]})
        self.assertEqual(training.missed(rows), ["hooke has 0.890 times the samples per second of alone; asked is at least 0.9"])
        self.assertEqual(lines[-1], "hooke / alone: median 0.890, min 0.800, max 0.950")
        self.assertEqual([row["ratio"] for row in rows], [None, 95 / 60, 0.89])
        self.assertEqual(training.missed(rows[:2]), [])

    def test_training_against_ddp(self):
        for model, least in (("lenet", 1.3), ("mlp", 2.5)):
            _, rows = self.training_rows({"hooke": [100.0 * least], "ddp-gloo": [100.0]}, model)
            self.assertEqual(training.missed(rows), [])
            _, rows = self.training_rows({"hooke": [99.0 * least], "ddp-gloo": [100.0]}, model)
            line = f"hooke has {0.99 * least:.3f} times the samples per second of ddp-gloo; asked is at least {least}"
            self.assertEqual(training.missed(rows), [line])
        # The requirement holds for two ranks only.
        _, rows = self.training_rows({"hooke": [50.0], "ddp-gloo": [100.0]}, "mlp", 4)
        self.assertEqual(training.missed(rows), [])

    def test_away(self):
        row = away.row_of("ASYNC", "kill", [(40.0, 39.0, 41.0), (20.0, 19.5, 20.0), (10.0, 1.0, 10.0)])
        self.assertEqual((row["rule"], row["before"], row["away"], row["after"], row["share"]), ("async", 20.0, 19.5, 20.0, 0.975))
        self.assertEqual(away.missed([row, dict(row, share=0.95)]), [])
        line = "by async (kill) a group makes 0.9499 of its steps per second while a server is away; asked is at least 0.95"
        self.assertEqual(away.missed([dict(row, share=0.9499)]), [line])
        self.assertEqual(away.row_of("SSP", "stop", [(0.0, 0.0, 0.0)])["share"], 0.0)

    def test_recovery(self):
        with tempfile.TemporaryDirectory() as folder:

            def steps(group, start, *seconds):
                writer = step_times.Writer(folder, group, start)
                for second in seconds:
                    # Ten steps a second, each in its tenth's middle.
                    for tenth in range(10):
                        writer.add(second + (tenth + 0.5) / 10)
                writer.file.close()

            # The first group makes no steps for 2 s. The other one makes 9 of 10 in the second after the failure.
            steps(0, 2, 97, 98, 99, 102, 103, 104)
            steps(1, 1, 97, 98, 99)
            whole = step_times.Writer(folder, 1, 1)
            for tenth in range(9):
                whole.add(100.05 + tenth / 10)
            whole.file.write(b"cut")
            whole.file.close()
            one = recovery.Steps(folder, [2, 1], 100.0)
            self.assertEqual(one.usual, [10, 10])
            self.assertAlmostEqual(one.lost(105.0), 2)
            self.assertAlmostEqual(one.others(101.0), 0.9)
            self.assertIsNone(one.again())
            # Then the first group starts again, and later the other one.
            steps(0, 3, 106)
            self.assertAlmostEqual(one.again(), 106.05)
            steps(1, 2, 106)
            self.assertEqual(one.others(101.0), 0.0)
        row = recovery.row_of("rank_killed", [(1.0, 1.0), (3.0, 0.9), (1.5, 0.949)])
        self.assertEqual((row["trials"], row["median_s"], row["worst_s"], row["others_lowest"]), (3, 1.5, 3.0, 0.9))
        self.assertEqual(recovery.missed([row]), ["rank_killed: the other group made 0.949 of its usual steps; asked is at least 0.95"])
        self.assertEqual(recovery.missed([recovery.row_of("rank_killed", [(1.0, 0.95)])]), [])

    def test_startup(self):
        self.assertEqual(startup.missed({"first_step_s": 2.5}), [])
        self.assertEqual(startup.missed({"first_step_s": 2.51}), ["the first step came 2.51 s after submit; asked is at most 2.5 s"])

    def test_split(self):
        names = ("compute", "waiting", "collective", "exchange", "server_cores")
        profiles = [dict(zip(names, values)) for values in ((0.9, 0.05, 0.03, 0.02, 0.1), (0.91, 0.04, 0.04, 0.01, 0.2), (0.92, 0.01, 0.05, 0.03, 0.3))]
        rows = split.rows_of({"mlp": profiles})
        self.assertEqual(rows, [{"benchmark": "split", "model": "mlp", **dict(zip(names, (0.91, 0.04, 0.04, 0.02, 0.2)))}])
        self.assertEqual(split.missed(rows), ["mlp: our own work takes 4.00 % of a step; asked is less than 4 %"])
        self.assertEqual(split.missed([{**rows[0], "collective": 0.0399}]), [])

    def test_submitted(self):
        row = submitted.row_of({"model": "lenet"}, {"submitted": [90, 100, 120], "by-hand": [100, 100, 100], "ddp-gloo": [60, 50, 90]}, [3, 5, 4])
        self.assertEqual([row["times_by-hand"], row["times_ddp-gloo"], row["first_step_s"]], [1.0, 1.5, 4])
        self.assertEqual(submitted.missed(row), [])
        worse = {**row, "times_by-hand": 0.9499, "times_ddp-gloo": 1.4, "first_step_s": 4.001}
        self.assertEqual(len(submitted.missed(worse)), 3)
        self.assertIn("0.9499 times the samples per second of by-hand", submitted.missed(worse)[0])
        self.assertEqual(submitted.missed({"first_step_s": 1}), [], "what did not run is not judged")

    def test_types(self):
        times = {(4, "float32"): [3, 2, 4], (4, "float16"): [2, 1, 9]}
        rows = types_benchmark.rows_of(times, {key: [1e6, 3e6] for key in times})
        self.assertEqual(rows[1], {"values": 4, "type": "float16", "median_ms": 2, "times_float32": 1.5, "sent_mb": 2})

    def test_wide(self):
        self.assertEqual(wide.missed({"p99_ms": 249.9}), [])
        self.assertEqual(wide.missed({"p99_ms": 250.0}), ["p99 is 250.0 ms; asked is under 250 ms"])

    def test_scale(self):
        row = {"algorithm": "ring", "bytes": 4, "nodes": 8, "error_percent": -10.0}
        self.assertEqual(scale.missed([row]), [])
        what = "ring of 4 bytes by 8 nodes: the model is 10.01 % off; asked is at most 10 %"
        self.assertEqual(scale.missed([{**row, "error_percent": -10.01}]), [what])

    def test_scale_fits_only_hookes_times_with_one_rank_per_host(self):
        row = {"benchmark": "allreduce", "impl": "hooke", "ranks": 4, "hosts": 4, "bytes": 64, "median_us": 9, "correct": True}
        others = [{"impl": "openmpi"}, {"ranks": 8}, {"ranks": 1, "hosts": 1}, {"correct": False}, {"benchmark": "reduce"}]
        lines = [json.dumps({**row, **other}) for other in [{"median_us": 5}, *others, {}]]
        self.assertEqual(scale.measured_times(lines), [(4, 64, 9)])

    def test_elastic(self):
        self.assertEqual(elastic.missed({"served": 0.7, "streamed": 0.71}), [])
        self.assertEqual(elastic.missed({"served": 0.69, "streamed": 0.71}), ["served has 0.69 of the bandwidth of in place; asked is at least 0.7"])

    def test_rounds(self):
        self.assertEqual(rounds.missed({8: 0.01, 64: 1.0, 256: 0.02}), [])
        what = "an exchange costs 2.01 times as much with 256 groups as with 8; asked is at most 2"
        self.assertEqual(rounds.missed({8: 0.01, 64: 0.01, 256: 0.0201}), [what])

    def test_scheduling(self):
        def missed(kind, median, p99):
            return scheduling.missed([{"kind": kind, "median_ms": median, "p99_ms": p99}])

        self.assertEqual(missed("tick", 0.0999, 49.9), [])
        self.assertEqual(missed("end", 20, 49.9), [])
        self.assertEqual(missed("end", 20, 50.0), ["end: p99 is 50.00 ms of CPU time; asked is less than 50 ms"])
        self.assertEqual(missed("tick", 0.1, 1), ["tick: median is 0.10 ms of CPU time; asked is less than 0.1 ms"])

    def test_coordinator(self):
        def missed(cpu, scrape=0.1):
            return coordinator.missed({"cpu_percent": cpu, "scrape_percent": scrape})

        self.assertEqual(missed(19.99, 1.99), [])
        what = "the coordinator takes 20.004 % of a core; asked is less than 20 %"
        self.assertEqual(missed(20.004), [what])
        self.assertEqual(len(missed(20.0)), 1)
        self.assertEqual(missed(1, 2.5), ["its metrics, read every 5 s, take 2.50 % of a core; asked is less than 2 %"])

    def exchange_rows(self, size, hooke, **rivals):
        times = {"hooke": hooke, **{name.replace("_", "-"): ms for name, ms in rivals.items()}}
        return [{"impl": impl, "bytes": size, "servers": 2, "ranks": 1, "median_ms": ms} for impl, ms in times.items()]

    def test_exchange(self):
        met = self.exchange_rows(64 << 20, 10.0, sockets=7.0, grpc_unary=30.0) + self.exchange_rows(1 << 20, 2.0, sockets=1.0, grpc_unary=1.0)
        met += self.exchange_rows(4 << 10, 2.9, sockets=1.0) + self.exchange_rows(64 << 10, 90.0, sockets=1.0)
        self.assertEqual(exchange.missed(met), [])
        self.assertEqual(exchange.missed([]), [])
        self.assertTrue(any(exchange.compared(met)))
        self.assertFalse(any(exchange.compared(self.exchange_rows(64 << 10, 90.0, sockets=1.0))))
        self.assertEqual(
            exchange.missed(self.exchange_rows(256 << 20, 10.0, sockets=6.9, grpc_unary=29.0)),
            [
                "1 ranks, 2 servers, 268435456 bytes: hooke has 0.69 times the bytes per second of sockets; asked is at least 0.70",
                "1 ranks, 2 servers, 268435456 bytes: hooke has 2.90 times the bytes per second of grpc-unary; asked is at least 3.00",
            ],
        )
        self.assertEqual(len(exchange.missed(self.exchange_rows(1 << 20, 2.1, sockets=1.0))), 1)
        self.assertEqual(len(exchange.missed(self.exchange_rows(4 << 10, 3.1, sockets=1.0))), 1)


    def test_exchange_says_which_asked_sizes_it_had_no_time_for(self):
        skipped = [((2, 1), 64 << 20), ((2, 1), 64 << 10)]
        self.assertEqual(exchange.not_compared(skipped, exchange.WAYS), ["2 ranks, 1 servers, 67108864 bytes: no time for it"])
        self.assertEqual(exchange.not_compared(skipped, ["hooke"]), [])
        self.assertEqual(exchange.not_compared(skipped, ["sockets", "grpc-unary"]), [])

    def exchange_main(self, *options):
        """Returns the output and exit code of `exchange` if each layout has time for 1 MiB but not for 64 MiB."""
        rows, said = self.exchange_rows(1 << 20, 1.0, sockets=1.0), io.StringIO()
        with unittest.mock.patch.object(exchange, "run_layout", return_value=(rows, [64 << 20])), contextlib.redirect_stdout(said):
            with unittest.mock.patch.object(sys, "argv", ["exchange", "--programs=x", "--ranks=2", *options]):
                try:
                    exchange.main()
                except SystemExit as end:
                    return said.getvalue(), end.code
        return said.getvalue(), 0

    def test_exchange_is_met_only_where_all_asked_sizes_had_time(self):
        line = "2 ranks, 2 servers, 67108864 bytes: no time for it"
        self.assertEqual(self.exchange_main("--quick"), (f"not judged: {line}; nothing else was missed\n", 0))
        self.assertEqual(self.exchange_main("--servers=2"), (f"MISSED: {line}\n", 1))


class Averaging(unittest.TestCase):
    def test_medians_of_the_repetitions(self):
        lines, rows = averaging.table({"fashion": [(89.0, 100.0), (91.0, 80.0), (90.5, 120.0)]})
        self.assertEqual(rows, [{"benchmark": "averaging", "job": "fashion", "accuracy": 90.5, "seconds": 100.0, "repetitions": 3}])
        self.assertEqual(lines[1].split(), ["fashion", "90.50", "%", "89.00", "91.00", "100.0", "s"])


class Rate(unittest.TestCase):
    def test_between_the_first_and_the_last_of_the_window(self):
        self.assertEqual(training.rate([(1.0, 5), (2.0, 10), (3.0, 20), (4.0, 40)], 2.0), 15.0)

    # With fewer than two progress lines there is no rate, so measuring must go on.
    def test_too_few_lines_are_no_rate(self):
        self.assertIsNone(training.rate([(1.0, 5), (2.0, 10)], 2.0))
        self.assertIsNone(training.rate([(1.0, 5)], 2.0))
        self.assertIsNone(training.rate([(2.0, 5), (2.0, 6)], 2.0))

    def test_a_program_whose_lines_come_slowly_is_waited_for(self):
        line = 'sleep {}; echo "{{\\"progress\\": {{\\"step\\": {}}}}}"; '
        command = ["bash", "-c", "".join(line.format(pause, step) for pause, step in ((0, 1), (1.1, 2), (0.5, 3))) + "sleep 60"]
        self.assertGreater(training.measure([command], 0.1), 0)


class OutOfStep(unittest.TestCase):
    def test_missed(self):
        row = {"case": "diloco at 64", "in_step": 87.0, "out_of_step": 83.0}
        self.assertEqual(out_of_step.missed([row]), [])
        self.assertEqual(out_of_step.missed([{**row, "out_of_step": 82.99}]), ["diloco at 64: 4.01 points below in step; asked is at most 4"])
        # A better result out of step is no miss. If groups in step learned nothing, that is a miss.
        self.assertEqual(out_of_step.missed([{**row, "out_of_step": 89.0}]), [])
        self.assertEqual(
            out_of_step.missed([{**row, "in_step": 10.0, "out_of_step": 10.0}, row]), ["diloco at 64: 10.00 % in step; asked is at least 70 %"]
        )

    def test_a_row_has_means_over_seeds(self):
        accuracies = {(True, 1): 88.0, (False, 1): 80.0, (True, 2): 86.0, (False, 2): 84.0}
        case, asked = out_of_step.CASES[0], []

        def accuracy(arguments, case, in_step, seed):
            asked.append((in_step, seed))
            return accuracies[in_step, seed]

        with unittest.mock.patch.object(out_of_step, "accuracy", accuracy):
            row = out_of_step.measure(argparse.Namespace(repetitions=2, epochs=2), case)
        self.assertEqual(asked, list(accuracies))
        self.assertEqual((row["case"], row["in_step"], row["out_of_step"], row["least_out_of_step"]), (case.name, 87.0, 82.0, 80.0))
        self.assertEqual(out_of_step.missed([row]), [f"{case.name}: 5.00 points below in step; asked is at most 4"])

    def follow(self, statuses):
        """Returns the result of out_of_step.accuracy for a job with these statuses. A status that is an exception is raised."""

        def follow(text, seconds):
            for status in statuses:
                if isinstance(status, Exception):
                    raise status
                yield status

        arguments = argparse.Namespace(programs="", train="a", test="b", epochs=2)
        with unittest.mock.patch.object(out_of_step.cluster, "Cluster") as made:
            made.return_value.__enter__.return_value.follow = follow
            return out_of_step.accuracy(arguments, out_of_step.CASES[2], False, 7)

    def test_accuracy_is_that_of_the_end_and_every_other_end_is_a_failure(self):
        first, last = {"epoch": 1.0, "accuracy": 0.8}, {"epoch": 2.0, "accuracy": 0.875}
        running = [status("queued", 1500), status("running", 3000, first)]
        self.assertEqual(self.follow([*running, status("succeeded", 9000, last, ended=7000)]), 87.5)
        for ends, said in (
            ([{**status("failed", 4000, first), "reason": "no memory"}], "failed: no memory"),
            ([], "not at its end after 600 s"),
            ([cluster.Refused("line 3: no such rule")], "line 3: no such rule"),
        ):
            with self.assertRaises(SystemExit) as end:
                self.follow([*running, *ends])
            self.assertEqual(end.exception.code, f"FAILED: diloco at 64, 4 groups, out of step, seed 7: {said}")
        with self.assertRaisesRegex(SystemExit, "its center was never evaluated"):
            self.follow([status("succeeded", 9000, ended=7000)])

    def test_hooke_takes_every_job_file(self):
        arguments = argparse.Namespace(epochs=2, train="/data/train", test="/data/t10k")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.yaml")
            for case in out_of_step.CASES:
                for in_step in (True, False):
                    with open(path, "w") as file:
                        file.write(out_of_step.job_text(arguments, case, in_step, 1))
                    # No coordinator listens at this address, so the exit code is 1. A wrong file would be reported
                    # first, with exit code 2.
                    result = subprocess.run([HOOKE, "submit", path, "--coordinator=127.0.0.1:1"], capture_output=True, text=True, timeout=60)
                    self.assertEqual(result.returncode, 1, result.stderr)

    def test_groups_out_of_step_wait_for_nobody(self):
        arguments = argparse.Namespace(train="a", test="b", epochs=2)
        for case in out_of_step.CASES:
            in_step, apart = (out_of_step.job_text(arguments, case, way, 1) for way in (True, False))
            self.assertEqual(apart, in_step.replace(case.averaging, case.averaging + ", grace_seconds: 0"))
            self.assertIn(f"count: {case.groups},", in_step)


class Compression(unittest.TestCase):
    def row(self, compression, accuracy, judged=True):
        return {"job": "diloco, 2 groups", "compression": compression, "accuracy": accuracy, "judged": judged}

    def test_missed(self):
        plain = self.row("none", 85.0)
        self.assertEqual(compression.missed([plain, self.row("int4", 84.0), self.row("top_k", 86.0)]), [])
        self.assertEqual(
            compression.missed([plain, self.row("top_k", 83.99)]), ["diloco, 2 groups, top_k: 1.01 points below none; asked is at most 1"]
        )
        # A setting that is not a default is shown but not judged. A job that learned nothing is itself a miss.
        self.assertEqual(compression.missed([plain, self.row("top_k, top_k: 0.01", 77.0, judged=False)]), [])
        self.assertEqual(
            compression.missed([self.row("none", 10.0), self.row("top_k", 10.0)]),
            ["diloco, 2 groups: 10.00 % without compression; asked is at least 70 %"],
        )

    def test_a_row_has_means_over_seeds(self):
        found = {1: 84.0, 2: 86.0}
        with unittest.mock.patch.object(compression, "accuracy", lambda running, arguments, case, seed: found[seed]):
            row = compression.measure(None, argparse.Namespace(repetitions=2, epochs=1), compression.CASES[0])
        self.assertEqual((row["job"], row["compression"], row["accuracy"], row["least"]), ("diloco, 2 groups", "none", 85.0, 84.0))

    def test_each_job_has_its_measure_first(self):
        seen = set()
        for case in compression.CASES:
            self.assertTrue(case.compression == "none" or case.job.name in seen, case)
            seen.add(case.job.name)
            self.assertLessEqual(case.job.groups, compression.SLOTS)

    def test_hooke_takes_every_job_file(self):
        arguments = argparse.Namespace(epochs=1, train="/data/train", test="/data/t10k")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.yaml")
            for case in compression.CASES:
                with open(path, "w") as file:
                    file.write(compression.job_text(arguments, case, 1))
                # No coordinator listens at this address, so the exit code is 1. A wrong file would be reported first,
                # with exit code 2.
                result = subprocess.run([HOOKE, "submit", path, "--coordinator=127.0.0.1:1"], capture_output=True, text=True, timeout=60)
                self.assertEqual(result.returncode, 1, result.stderr)


class Lines(unittest.TestCase):
    def test_lines_come_whole(self):
        reader, writer = os.pipe()
        os.write(writer, b"one\ntwo\nthr")
        with os.fdopen(reader, "rb") as pipe:
            found = cluster.lines(pipe, time.monotonic() + 60)
            self.assertEqual([next(found), next(found)], [b"one", b"two"])
            os.write(writer, b"ee\n")
            os.close(writer)
            self.assertEqual(list(found), [b"three"])


class Figures(unittest.TestCase):
    def test_percentile(self):
        self.assertEqual(wide.percentile(range(1, 101), 99), 99)
        self.assertEqual(wide.percentile([3, 1, 2], 50), 2)
        self.assertEqual(wide.percentile([7], 99), 7)

    def test_share_of_a_pass_that_moves_as_much(self):
        shares = elastic.shares({"served": 7e9, "streamed": 4e9, "memcpy": 8e9, "in place": 10e9})
        self.assertEqual(shares, {"served": 0.7, "streamed": 0.5})

    def test_medians_of_google_benchmark(self):
        entries = [
            {"run_name": f"{function}/{elastic.VALUES}/repeats:9", "aggregate_name": aggregate, "bytes_per_second": rate}
            for function, rate in (
                ("BenchmarkServedExchange", 1.0), ("BenchmarkElasticExchange", 2.0), ("BenchmarkMemcpy", 3.0), ("BenchmarkInPlace", 4.0),
            )  # fmt: skip
            for aggregate in ("mean", "median")
        ]
        self.assertEqual(elastic.medians({"benchmarks": entries}), {"served": 1.0, "streamed": 2.0, "memcpy": 3.0, "in place": 4.0})

    def test_cpu_seconds_of_google_benchmark(self):
        entries = [
            {"run_name": f"BenchmarkRound/{groups}/process_time", "aggregate_name": aggregate, "items_per_second": rate}
            for groups, rate in ((8, 100.0), (256, 50.0))
            for aggregate in ("mean", "median")
        ]
        self.assertEqual(rounds.cpu_seconds({"benchmarks": entries}), {8: 0.01, 256: 0.02})


if __name__ == "__main__":
    skips.main()
