#!/usr/bin/env python3
"""What it costs a training step, and the coordinator, that users see what a job does.

1. Reports of ranks. The sample job trains on a cluster on this machine, two groups of one rank each, for --seconds. In each rank's process the
   kernel counts the CPU time of each thread. That of the thread that makes reports, and of all threads of gRPC, by which they leave (and a
   part of the exchange), is the reports' share.
2. Calls by the thread that trains: those of a step, timed in a loop with reports and without, as a share of that job's step.
3. The distance from the center, measured at most every 0.4 s: nanoseconds a value, as a share of time for the vector of that job and, the most
   it may be, for a large one.
4. The coordinator with --groups groups that report as ranks do, four to a worker. CPU time of its process, as percent of a core: while a user
   lists all jobs every two seconds, and while a browser shows the page of the job with all these groups.

Asked: 1, 2 and 3 together less than 0.5 % of a step, and each of 4 less than 2 % of a core. Otherwise the exit code is 1.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

import cluster
import coordinator_benchmark as coordinator
import report

STEP_PERCENT = 0.5
COORDINATOR_PERCENT = 2
JOB = """
name: reports
model: {model}
data: {{format: idx, train: /usr/share/datasets/fashion-mnist/train, test: /usr/share/datasets/fashion-mnist/t10k}}
train: {{epochs: 100000, batch_size: 32, optimizer: {{name: sgd, learning_rate: 0.01, momentum: 0.9}}}}
groups: {{count: 2, ranks: 1}}
averaging: {{rule: elastic, interval: 4}}
"""
MODEL_VALUES = {"lenet": 61706, "mlp": 101770}
FIRST_STEP_SECONDS = 60
# How often an exchange is measured at most: MeasureEvery in worker/exchange/group_exchange.cc.
MEASURE_S = 0.4
MEASURE_S_PER_VALUE = 400e-9


def threads(pid):
    """Returns the CPU seconds of each thread of a process so far, by the thread's id and name."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            found[task.name, (task / "comm").read_text().strip()] = int((task / "schedstat").read_text().split()[0]) / 1e9
        except (FileNotFoundError, ProcessLookupError):
            continue  # It has just ended.
    return found


def is_reporting(name):
    """Whether a thread of this name works for reports: it makes them, or belongs to gRPC."""
    return name == "hooke-reports" or re.match("grpc|default-exec|resolver-exec|event_engine|timer_manager", name) is not None


def share_of_reports(before, after):
    """Returns the share of a process's CPU time between two results of threads() that reports took."""
    spent = {key: seconds - before.get(key, 0) for key, seconds in after.items()}
    return sum(seconds for (_, name), seconds in spent.items() if is_reporting(name)) / sum(spent.values())


def measure_share(measure_ns, values):
    """Returns the share of time that measuring the distance of so many values takes."""
    return measure_ns * 1e-9 * values / max(MEASURE_S, MEASURE_S_PER_VALUE * values)


def train(arguments, running):
    """Trains the job, and returns the reports' share of the CPU time of each rank and the seconds of a step."""
    text = JOB.format(model=arguments.model)
    hooke = [os.path.join(arguments.programs, "hooke"), f"--coordinator={running.address}"]
    pids, before, end = [], {}, None
    for status in running.follow(text, FIRST_STEP_SECONDS + arguments.seconds + 30):
        job = status["job_id"]
        if status["state"] in cluster.ENDS:
            raise SystemExit(f"{job} ended: {status.get('reason')}")
        steps = [int((group.get("progress") or {}).get("step", 0)) for group in status["groups"]]
        now = time.monotonic()
        if end is None and all(steps):
            log = subprocess.run([hooke[0], "logs", job, hooke[1]], check=True, capture_output=True, text=True, timeout=30).stdout
            pids = [int(pid) for pid in re.findall(r"group \d+ rank 0 is there \(pid (\d+)", log)]
            before = {pid: threads(pid) for pid in pids}
            begun, first, end = now, steps, now + arguments.seconds
        elif end is not None and now >= end:
            shares = [share_of_reports(before[pid], threads(pid)) for pid in pids]
            step_s = (now - begun) * len(steps) / (sum(steps) - sum(first))
            running.cancel(job)
            return shares, step_s
    raise SystemExit(f"the job made no step in {FIRST_STEP_SECONDS} s")


def coordinator_percents(arguments, folder):
    """Returns the percent of a core that a coordinator takes with so many groups of one rank: while jobs are listed, and while their page is open."""
    load = argparse.Namespace(
        programs=os.path.join(folder, "programs"), workers=max(1, arguments.groups // 4), ranks=arguments.groups, group_ranks=1, job_groups=arguments.groups,
        watchers=0, list_every=2, warm_up=34, seconds=20, page_seconds=20,
    )  # fmt: skip
    os.mkdir(load.programs)
    os.symlink(os.path.join(arguments.programs, "hooke-server"), os.path.join(load.programs, "hooke-server"))
    os.symlink(os.path.join(arguments.own, "coordinator_load"), os.path.join(load.programs, "coordinator_load"))
    result = coordinator.measure(load, folder)
    return 100 * result["cpu_s"] / result["wall_s"], result["opened"][0]


def row_of(model, shares, step_s, calls, coordinator_cpu):
    """Returns a row of the table. `calls` is what report_calls has printed, `coordinator_cpu` comes from coordinator_percents()."""
    row = {
        "benchmark": "reports", "model": model, "step_ms": 1000 * step_s, "reports_percent": 100 * max(shares), "calls_us": calls["step_us"],
        "calls_percent": 100 * calls["step_us"] / (1e6 * step_s), "measure_ns": calls["measure_ns"],
        "measure_percent": 100 * measure_share(calls["measure_ns"], MODEL_VALUES[model]), "measure_most_percent": 100 * measure_share(calls["measure_ns"], 1e9),
        "coordinator_percent": coordinator_cpu[0], "coordinator_page_percent": coordinator_cpu[1],
    }  # fmt: skip
    row["step_percent"] = row["reports_percent"] + row["calls_percent"] + row["measure_percent"]
    return row


def missed(row):
    """Returns one line for each requirement that was missed."""
    lines = []
    if row["step_percent"] >= STEP_PERCENT:
        lines.append(f"reports take {report.text(row['step_percent'], STEP_PERCENT, 3)} % of a step; asked is less than {STEP_PERCENT} %")
    if row["measure_most_percent"] >= STEP_PERCENT:
        lines.append(f"measuring a large vector takes {report.text(row['measure_most_percent'], STEP_PERCENT, 3)} % of a step; asked is less than {STEP_PERCENT} %")
    for name, when in (("coordinator_percent", ""), ("coordinator_page_percent", " while a page is open")):
        if row[name] >= COORDINATOR_PERCENT:
            lines.append(f"the coordinator takes {report.text(row[name], COORDINATOR_PERCENT)} % of a core{when}; asked is less than {COORDINATOR_PERCENT} %")
    return lines


def main():
    def add(parser):
        parser.add_argument("--model", choices=sorted(MODEL_VALUES), default="lenet", help="default lenet")
        parser.add_argument("--seconds", type=float, default=30, help="length of the training that is measured (default 30)")
        parser.add_argument("--groups", type=int, default=100, help="groups that report to the coordinator (default 100)")

    arguments = report.parse_arguments(__doc__, add, repetitions=1)
    arguments.own = os.path.join(arguments.programs, "../tests/benchmarks/reports/bin")
    calls = json.loads(subprocess.run([os.path.join(arguments.own, "report_calls")], check=True, capture_output=True, timeout=120).stdout)
    with tempfile.TemporaryDirectory() as folder:
        with cluster.Cluster(arguments.programs, folder, [2]) as running:
            shares, step_s = train(arguments, running)
    with tempfile.TemporaryDirectory() as folder:
        cpu = coordinator_percents(arguments, folder)
    row = row_of(arguments.model, shares, step_s, calls, cpu)
    print(f"{row['model']}: two groups of one rank, a step of {row['step_ms']:.2f} ms, {os.cpu_count()} cores")
    print(f"reports and gRPC: {row['reports_percent']:.3f} % of a rank's CPU time")
    print(f"calls of a step: {row['calls_us']:.2f} us ({calls['step_without_reports_us']:.2f} without reports), {row['calls_percent']:.3f} % of a step")
    print(f"distance: {row['measure_ns']:.2f} ns a value, {row['measure_percent']:.3f} % of a step, and of a large vector at most {row['measure_most_percent']:.3f} %")
    print(f"together {row['step_percent']:.3f} % of a step")
    print(f"coordinator with {arguments.groups} groups: {row['coordinator_percent']:.2f} % of a core, and with their page open {row['coordinator_page_percent']:.2f} %")
    report.write_json(arguments.json, [row], {name: 4 for name in row if isinstance(row[name], float)})
    report.judge(missed(row))


if __name__ == "__main__":
    report.run(main)
