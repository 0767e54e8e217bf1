#!/usr/bin/env python3
"""Where the time of a step goes in a submitted job: computing, waiting for a slower rank, collectives, exchanges, and the servers' share.

One server and one worker of --ranks slots run on this machine. For each model a job of one group is submitted, with batch 64, its gradients
summed each step and an elastic exchange each 16 steps. After --seconds of steps, `hooke profile JOB --steps` splits the last steps; then the
job is cancelled. The table has medians of --repetitions. A rank waits if another one is late: a busy machine shows there.
Our own work is the column `collective`: all time in collectives in which no rank is waited for. Asked: less than 4 % of a step. Otherwise the
exit code is 1.
"""

import contextlib
import json
import os
import statistics
import subprocess
import tempfile
import time

import cluster
import report

OWN_WORK = 0.04
SHARES = ("compute", "waiting", "collective", "exchange")
JOB = """
name: split
model: {model}
data: {{format: idx, train: {train}, test: {test}}}
train: {{epochs: 1000, batch_size: 64, optimizer: {{name: sgd, learning_rate: 0.01, momentum: 0.9}}}}
groups: {{count: 1, ranks: {ranks}}}
averaging: {{rule: elastic, interval: 16}}
"""
FIRST_STEP_SECONDS = 60


def profile(arguments, running, job):
    """Returns the shares of the last steps of a running job, and the cores that its servers keep busy."""
    command = [os.path.join(arguments.programs, "hooke"), "profile", job, "--steps", "--output=json", f"--coordinator={running.address}"]
    said = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=30).stdout)
    shares = {name: said["steps"][0][f"{name}_share"] for name in SHARES}
    return {**shares, "server_cores": sum(server["cores"] for server in said["servers"])}


def split(arguments, running, model):
    """Runs one job and returns its profile."""
    text = JOB.format(model=model, train=arguments.train, test=arguments.test, ranks=arguments.ranks)
    end = None
    with contextlib.closing(running.follow(text, FIRST_STEP_SECONDS + arguments.seconds)) as statuses:
        for status in statuses:
            if status["state"] in cluster.ENDS:
                raise SystemExit(f"{status['job_id']} ended: {status.get('reason')}")
            if end is None and int(status.get("first_step_unix_ms", 0)):
                end = time.monotonic() + arguments.seconds
            if end is not None and time.monotonic() >= end:
                found = profile(arguments, running, status["job_id"])
                running.cancel(status["job_id"])
                return found
    raise SystemExit(f"the job of {model} made no step in {FIRST_STEP_SECONDS} s")


def rows_of(profiles):
    """Returns the rows of the table. `profiles` has for each model the profile of every repetition."""
    names = (*SHARES, "server_cores")
    return [
        {"benchmark": "split", "model": model, **{name: statistics.median(one[name] for one in each) for name in names}}
        for model, each in profiles.items()
    ]


def missed(rows):
    """Returns one line for each requirement that was missed."""
    return [
        f"{row['model']}: our own work takes {report.text(100 * row['collective'], 100 * OWN_WORK)} % of a step; asked is less than {100 * OWN_WORK:g} %"
        for row in rows
        if row["collective"] >= OWN_WORK
    ]


def main():
    def add(parser):
        parser.add_argument("--models", type=lambda text: text.split(","), default=["lenet", "mlp"], help="default lenet,mlp")
        parser.add_argument("--ranks", type=int, default=2, help="ranks of the group (default 2)")
        parser.add_argument("--seconds", type=float, default=12, help="length of training before the profile (default 12)")
        parser.add_argument("--train", default="/usr/share/datasets/fashion-mnist/train", help="prefix of the IDX files")
        parser.add_argument("--test", default="/usr/share/datasets/fashion-mnist/t10k", help="prefix of the IDX files")

    arguments = report.parse_arguments(__doc__, add, repetitions=3)
    profiles = {model: [] for model in arguments.models}
    with tempfile.TemporaryDirectory() as folder, cluster.Cluster(arguments.programs, folder, [arguments.ranks]) as running:
        for _ in range(arguments.repetitions):
            for model, each in profiles.items():
                each.append(split(arguments, running, model))
    rows = rows_of(profiles)
    print(f"split of a step, {arguments.ranks} ranks, batch 64 each, {arguments.repetitions} repetitions")
    print(f"{'model':10}" + "".join(f" {name:>11}" for name in SHARES) + f" {'server cores':>13}")
    for row in rows:
        print(f"{row['model']:10}" + "".join(f" {100 * row[name]:9.2f} %" for name in SHARES) + f" {row['server_cores']:13.2f}")
    report.write_json(arguments.json, rows, {**{name: 4 for name in SHARES}, "server_cores": 2})
    report.judge(missed(rows))


if __name__ == "__main__":
    report.run(main)
