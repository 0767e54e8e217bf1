#!/usr/bin/env python3
"""Measures the gain from averaging. The sample job runs with elastic averaging, without averaging, and as one group; compared are center
accuracy and wall time.

Each job runs on a cluster of its own: two workers of two slots, or one worker of four for the job of one group. Wall time is from submit to
the job's end, by the coordinator's clock.
"""

import json
import os
import statistics
import subprocess
import tempfile

import report

JOBS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/jobs")
SHAPES = {
    "fashion": ["--workers", "2", "--slots", "2"],
    "fashion-none": ["--workers", "2", "--slots", "2"],
    "fashion-1x4": ["--workers", "1", "--slots", "4"],
}


def run(hooke, name):
    """Returns the accuracy in percent and the seconds of one job."""
    with tempfile.TemporaryDirectory() as folder:
        up = [hooke, "up", *SHAPES[name], "--state-dir", folder]
        with report.started(up, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            environment = dict(os.environ, HOOKE_COORDINATOR=report.wait_for_file(os.path.join(folder, "coordinator"), process, 40))
            job_file = os.path.join(JOBS, name + ".yaml")
            subprocess.run([hooke, "submit", job_file, "--watch"], env=environment, check=True, stdout=subprocess.DEVNULL, timeout=1800)
            jobs = subprocess.run([hooke, "jobs", "--output", "json"], env=environment, check=True, capture_output=True, timeout=30)
            job = json.loads(jobs.stdout)["jobs"][0]
    return 100 * job["center"]["accuracy"], (int(job["ended_unix_ms"]) - int(job["submitted_unix_ms"])) / 1000


def table(results):
    """Returns the lines to print and the rows of JSON. `results` has for each job the (accuracy, seconds) of every repetition."""
    lines, rows = [f"{'job':14} {'center accuracy':>16} {'least':>7} {'most':>7} {'wall time':>10}"], []
    for name, values in results.items():
        accuracy, seconds = (statistics.median(column) for column in zip(*values))
        least, most = min(values)[0], max(values)[0]
        lines.append(f"{name:14} {accuracy:14.2f} % {least:7.2f} {most:7.2f} {seconds:8.1f} s")
        rows.append({"benchmark": "averaging", "job": name, "accuracy": accuracy, "seconds": seconds, "repetitions": len(values)})
    return lines, rows


def main():
    arguments = report.parse_arguments(__doc__, repetitions=1)
    hooke = os.path.join(arguments.programs, "hooke")
    results = {name: [] for name in SHAPES}
    for _ in range(arguments.repetitions):
        for name in SHAPES:
            results[name].append(run(hooke, name))
    print(f"medians of {arguments.repetitions}")
    lines, rows = table(results)
    print("\n".join(lines))
    report.write_json(arguments.json, rows, {"accuracy": 2, "seconds": 1})


if __name__ == "__main__":
    report.run(main)
