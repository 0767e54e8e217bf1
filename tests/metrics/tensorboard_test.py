#!/usr/bin/env python3
"""TensorBoard's own reader finds in the files of `hooke export-tensorboard` what `hooke metrics --csv` says.

It installs TensorBoard from the package index, so it runs only if it is asked for: tests/run --tensorboard.
"""

import csv
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "python/tests"), str(TREE / "deploy"), str(TREE / "tests/metrics")]
import package_index  # noqa: E402
import polling  # noqa: E402
import time_shares  # noqa: E402

HOOKE = pathlib.Path("bin/hooke").resolve()
SECONDS = 300
DATA = "/usr/share/datasets/fashion-mnist"
JOB = f"""name: two
model: mlp
data: {{format: idx, train: {DATA}/train, test: {DATA}/t10k}}
train: {{epochs: 2, batch_size: 64, evaluate_every: 1, optimizer: {{name: sgd, learning_rate: 0.1}}}}
groups: {{count: 2, ranks: 1}}
"""
# Prints each run's charts as JSON: {run: {tag: [[step, value], ...]}}.
READER = """
import json, sys
from tensorboard.backend.event_processing import event_multiplexer
runs = event_multiplexer.EventMultiplexer().AddRunsFromDirectory(sys.argv[1]).Reload()
charts = {run: {tag: [[point.step, point.value] for point in runs.Scalars(run, tag)] for tag in tags["scalars"]} for run, tags in runs.Runs().items()}
print(json.dumps(charts))
"""
COLUMNS = {"loss": "loss", "samples_per_s": "samples_per_s", "exchange_ms": "exchange_ms", "accuracy": "accuracy_fraction", "center_distance": "center_distance", "staleness": "staleness"}


def charts_of(rows):
    """Returns the rows of `hooke metrics --csv` as READER prints what it has read."""
    charts = {}
    for row in rows:
        run = charts.setdefault(f"{row['job']}/" + (f"group-{row['group']}" if row["series"] == "group" else "center"), {})
        for tag, column in COLUMNS.items():
            if row[column]:
                run.setdefault(tag, []).append([int(row["step"]), float(row[column])])
    for run, charts_of_run in charts.items():
        of_group = [row for row in rows if f"{row['job']}/group-{row['group']}" == run]
        for step, shares in time_shares.shares_of(of_group):
            for part in time_shares.PARTS:
                charts_of_run.setdefault(f"{part}_share", []).append([step, shares[part]])
    return charts


class TensorBoard(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hooke-tensorboard-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = dict(os.environ, HOME=folder.name)
        for name in ("HOOKE_COORDINATOR", "HOOKE_TOKEN_FILE"):
            self.environment.pop(name, None)

    def hooke(self, *arguments):
        result = subprocess.run([HOOKE, *arguments], env=self.environment, capture_output=True, text=True, timeout=SECONDS, cwd=self.folder)
        self.assertEqual(result.returncode, 0, result)
        return result.stdout

    def start_cluster(self):
        log = self.folder / "up.log"
        with log.open("wb") as output:
            up = subprocess.Popen([HOOKE, "up"], env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self.addCleanup(up.wait, SECONDS)
        self.addCleanup(up.send_signal, signal.SIGINT)
        polling.wait_for("a cluster", (self.folder / ".hooke/up/coordinator").exists, SECONDS, lambda: "\n" + log.read_text())

    def test_reads_what_the_job_reported(self):
        python = package_index.environment_with(self, "tensorboard")
        self.start_cluster()
        (self.folder / "job.yaml").write_text(JOB)
        self.hooke("submit", "job.yaml", "--watch")
        rows = list(csv.DictReader(io.StringIO(self.hooke("metrics", "two-1", "--csv"))))
        self.hooke("export-tensorboard", "two-1", "runs")
        read = json.loads(package_index.run(self, SECONDS, python, "-c", READER, str(self.folder / "runs")).splitlines()[-1])
        expected = charts_of(rows)
        self.assertEqual({run: sorted(charts) for run, charts in read.items()}, {run: sorted(charts) for run, charts in expected.items()})
        self.assertEqual(sorted(expected), ["two-1/center", "two-1/group-0", "two-1/group-1"])
        for run, charts in expected.items():
            for tag, points in charts.items():
                self.assertEqual([step for step, _ in read[run][tag]], [step for step, _ in points], (run, tag))
                for (_, value), (_, wanted) in zip(read[run][tag], points):
                    self.assertAlmostEqual(value, wanted, delta=1e-6 * abs(wanted) + 1e-9)


if __name__ == "__main__":
    package_index.run_tests("TensorBoard")
