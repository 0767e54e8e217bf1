#!/usr/bin/env python3
"""Seconds from `hooke submit` on a running cluster to the job's first training step.

A cluster of two servers and two workers is started once. Then the lenet job of two groups of two ranks is submitted --repetitions times, and
cancelled after its first step. The time is from before the submit command starts to the first step, by the coordinator's clock.
The benchmark asks for the job's state only twice a second, because each `hooke jobs` takes processor time from the ranks that start.
Asked: a median of at most 2.5 s; otherwise the exit code is 1.
"""

import json
import os
import statistics
import subprocess
import tempfile
import time

import report

JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/jobs/fashion.yaml")
FIRST_STEP_S = 2.5
POLL_S = 0.5


def first_step(hooke, environment):
    """Submits the job, waits for its first step and cancels it. Returns the seconds until that step."""

    def ask(*command):
        output = subprocess.run([hooke, *command, "--output", "json"], env=environment, check=True, capture_output=True, timeout=30).stdout
        return json.loads(output)

    begin = time.time()
    job = ask("submit", JOB)["job_id"]
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        status = next(status for status in ask("jobs")["jobs"] if status["job_id"] == job)
        if int(status.get("first_step_unix_ms", 0)):
            break
        if status["state"] in ("failed", "succeeded", "cancelled"):
            raise SystemExit(f"{job} ended: {status['reason']}")
        time.sleep(POLL_S)
    else:
        raise SystemExit(f"{job} made no step in a minute")
    ask("cancel", job)
    while any(int(node.get("slots_used", 0)) for node in ask("nodes")["nodes"]):
        if time.monotonic() > deadline:
            raise SystemExit(f"{job} was cancelled but still holds slots after a minute")
        time.sleep(0.1)
    return int(status["first_step_unix_ms"]) / 1000 - begin


def row_of(seconds):
    """Returns a row of the table. `seconds` has one value for each repetition."""
    return {"benchmark": "startup", "first_step_s": statistics.median(seconds)}


def missed(row):
    """Returns one line for each requirement that was missed."""
    if row["first_step_s"] <= FIRST_STEP_S:
        return []
    return [f"the first step came {report.text(row['first_step_s'], FIRST_STEP_S)} s after submit; asked is at most {FIRST_STEP_S:g} s"]


def main():
    arguments = report.parse_arguments(__doc__)
    hooke = os.path.join(arguments.programs, "hooke")
    with tempfile.TemporaryDirectory() as folder:
        with report.started([hooke, "up", "--state-dir", folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as up:
            address = report.wait_for_file(os.path.join(folder, "coordinator"), up)
            environment = dict(os.environ, HOOKE_COORDINATOR=address)
            seconds = [first_step(hooke, environment) for _ in range(arguments.repetitions)]
    print(f"submit to first step, {arguments.repetitions} repetitions: median {statistics.median(seconds):.2f} s, "
          f"min {min(seconds):.2f} s, max {max(seconds):.2f} s")
    row = row_of(seconds)
    report.write_json(arguments.json, [row], {"first_step_s": 3})
    report.judge(missed(row))


if __name__ == "__main__":
    report.run(main)
