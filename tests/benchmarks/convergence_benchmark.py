#!/usr/bin/env python3
"""Measures how well and how fast each update rule learns Fashion-MNIST with 4 groups of 1 rank: center accuracy, wall time, bytes on the wire.

The rules are sync and async, elastic at interval 1, 4, 16 and 64, diloco at 64, and diloco at 64 with int8 on the wire. All see the same number
of samples. The server has a network namespace of its own (needs root), so exchanges go over TCP. The kernel counts their bytes in both
directions, with headers. Starting, evaluating and the coordinator use another link and are not counted. Wall time is from submit to the job's
end. With --hosts, two hosts have links of 100 Mbit/s and two groups each, and the server is on the first. Compared is how long it takes until
the center classifies 88 % of the test data right, with elastic at 16 and with sync. Sync is stopped after 6 times elastic's time.
Asked: elastic at most 0.5 points below sync up to interval 16 and 1.0 at 64. Diloco with int8 at most 0.3 points below diloco, with at least 3.9
times fewer bytes. Every case must end within --limit; if a case's job fails, the case counts as missed and the others run. With --hosts: elastic
in at most 1/5 of sync's time, where sync is watched for at least 5 times elastic's time. Misses are printed, and the exit code is 1.
"""

import argparse
import contextlib
import os
import statistics
import tempfile
import time
from typing import NamedTuple

import cluster
import hosts
import plot
import report

GROUPS = 4
BATCH = 64
# Under sync the center makes one step for the samples of all groups. Under other rules a step is for one group's
# samples. Under async the center makes four steps where sync makes one, each with a late gradient, so it has no
# momentum.
OPTIMIZERS = {
    "sync": "{name: sgd, learning_rate: 0.1, momentum: 0.9}",
    "async": "{name: sgd, learning_rate: 0.1}",
    "elastic": "{name: sgd, learning_rate: 0.1, momentum: 0.9, nesterov: true}",
    "diloco": "{name: adamw, learning_rate: 0.001}",
}
# Some models need a lower rate because groups train alone for up to 64 steps from the start.
OPTIMIZERS_OF_MODEL = {("lenet", "elastic"): "{name: sgd, learning_rate: 0.05, momentum: 0.9, nesterov: true}"}
# Keys of averaging besides the interval. alpha is larger than the default, because the few groups all train on the same
# data.
AVERAGING = {"elastic": {"alpha": 0.45}}
HOSTS_RATE = "100mbit"
HOSTS_TARGET = 88.0
# Elastic must take this many times less time than sync. Sync is stopped after HOSTS_FACTOR times elastic's time.
HOSTS_LESS, HOSTS_FACTOR = 5, 6
FEWER_BYTES = 3.9
# States of a job whose groups have begun to train and that has not ended.
TRAINING = ("running", "evaluating")
# Percent. The plot leaves out points below this accuracy.
PLOT_FROM = 70


class Case(NamedTuple):
    rule: str
    interval: int
    compression: str = "none"

    def __str__(self):
        return f"{self.rule} {self.interval}" + ("" if self.compression == "none" else f" {self.compression}")


CASES = [
    Case("sync", 1), Case("async", 1), Case("elastic", 1), Case("elastic", 4), Case("elastic", 16), Case("elastic", 64),
    Case("diloco", 64), Case("diloco", 64, "int8"),
]  # fmt: skip


def parse():
    parser = argparse.ArgumentParser(prog="tests/benchmarks/run convergence", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--json", metavar="FILE", help="append one JSON object per line to FILE")
    parser.add_argument("--svg", metavar="FILE", help="write a plot, accuracy over wall time, to FILE")
    parser.add_argument("--model", default="lenet", help="as `model` of a job file (default lenet)")
    parser.add_argument("--epochs", type=int, default=8, help="passes over the data by all groups together (default 8)")
    parser.add_argument("--cases", type=lambda words: words.split(","), help='only these, such as "sync 1,elastic 16,diloco 64 int8"')
    parser.add_argument("--repetitions", type=int, default=1, help="seeds 1 to so many; the table has the means (default 1)")
    parser.add_argument("--limit", type=float, default=1800, help="seconds after which a job is stopped (default 1800)")
    parser.add_argument("--hosts", action="store_true", help="time to 88 %% between two hosts at 100 Mbit/s")
    parser.add_argument("--train", default="/usr/share/datasets/fashion-mnist/train", help="prefix of the IDX files")
    parser.add_argument("--test", default="/usr/share/datasets/fashion-mnist/t10k", help="prefix of the IDX files")
    arguments = parser.parse_args()
    arguments.cases = [case for case in CASES if arguments.cases is None or str(case) in arguments.cases]
    if not arguments.cases:
        parser.error(f"--cases: known are {', '.join(map(str, CASES))}")
    return arguments


def optimizer(model, rule):
    return OPTIMIZERS_OF_MODEL.get((model, rule), OPTIMIZERS[rule])


def job_text(arguments, case, schedule, seed=1):
    averaging = f"rule: {case.rule}, interval: {case.interval}"
    averaging += "".join(f", {key}: {value}" for key, value in AVERAGING.get(case.rule, {}).items())
    if case.compression != "none":
        averaging += f", compression: {case.compression}"
    return (
        f"name: convergence\nmodel: {arguments.model}\n"
        f"data: {{train: {arguments.train}, test: {arguments.test}}}\n"
        f"train:\n  epochs: {arguments.epochs}\n  batch_size: {BATCH}\n  seed: {seed}\n"
        f"  optimizer: {optimizer(arguments.model, case.rule)}\n  schedule: {{name: {schedule}}}\n"
        f"groups: {{count: {GROUPS}, ranks: 1}}\n"
        f"averaging: {{{averaging}}}\n"
    )


class Curve:
    """The evaluations of the center that a job's statuses report: (seconds since submit, epoch, percent) of each."""

    def __init__(self):
        self.points, self.state, self.reason, self.wall_s = [], "", "", 0.0

    def add(self, status):
        self.state, self.reason = status["state"], status["reason"]
        now = status["ended_unix_ms"] or status["now_unix_ms"]
        self.wall_s = (now - status["submitted_unix_ms"]) / 1000
        center = status["center"]
        if center is None:
            return
        point = (center["epoch"], 100 * center["accuracy"])
        # The last evaluation may repeat an epoch, because it evaluates the center after all groups have ended.
        if not self.points or self.points[-1][1:] != point:
            self.points.append((self.wall_s, *point))

    def rounded(self):
        """Returns the points, rounded for a file."""
        return [(round(seconds, 2), epoch, round(accuracy, 2)) for seconds, epoch, accuracy in self.points]

    @property
    def accuracy(self):
        return self.points[-1][2] if self.points else None

    def reached(self, percent):
        """Returns the seconds until an evaluation reached `percent`; None if none did."""
        return next((seconds for seconds, _, accuracy in self.points if accuracy >= percent - report.NOISE), None)


def end_accuracy(running, text, seconds, where):
    """Returns the accuracy of a job's final center, in percent. Raises SystemExit, naming `where`, if the job has not succeeded after `seconds`."""
    curve = Curve()
    try:
        for status in running.follow(text, seconds):
            curve.add(status)
    except cluster.Refused as refused:
        raise SystemExit(f"FAILED: {where}: {refused}") from None
    if curve.state in ("failed", "cancelled"):
        raise SystemExit(f"FAILED: {where}: {curve.state}: {curve.reason}")
    if curve.state != "succeeded":
        raise SystemExit(f"FAILED: {where}: not at its end after {seconds} s")
    if curve.accuracy is None:
        raise SystemExit(f"FAILED: {where}: its center was never evaluated")
    return curve.accuracy


def train(arguments, case, seed):
    """Runs one job on its own cluster. Returns its curve and its bytes on the wire, or None in place of the bytes if they were not counted."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hooke-convergence-"))
        apart = None
        if not hosts.missing():
            apart = stack.enter_context(hosts.Hosts(2, folder, rate=None, aside=cluster.GRPC_PORT))
        running = stack.enter_context(cluster.Cluster(arguments.programs, folder, [0, GROUPS] if apart else [GROUPS], apart))
        before = sum(apart.bytes(0)) if apart else 0
        curve = Curve()
        for status in running.follow(job_text(arguments, case, "cosine", seed), arguments.limit):
            curve.add(status)
        moved = sum(apart.bytes(0)) - before if apart else None
    if curve.state in ("failed", "cancelled"):
        raise NoResult(f"{case}, seed {seed}: {curve.reason}")
    if curve.state != "succeeded":
        print(f"STOPPED: {case}: more than {arguments.limit:g} s", flush=True)
    return curve, moved


class NoResult(Exception):
    """A case gave no result. The text holds the reason."""


def run_case(arguments, case):
    """Returns a row, with the curve of the first seed. Raises NoResult if there is none."""
    try:
        runs = [train(arguments, case, seed) for seed in range(1, arguments.repetitions + 1)]
    except cluster.Refused as refused:
        raise NoResult(f"{case}: {refused}") from None
    curves = [curve for curve, _ in runs]
    if any(curve.accuracy is None for curve in curves):
        raise NoResult(f"{case}: its center was never evaluated")
    moved = [count for _, count in runs if count is not None]
    return {
        "benchmark": "convergence", "rule": case.rule, "interval": case.interval, "compression": case.compression, "model": arguments.model,
        "groups": GROUPS, "epochs": arguments.epochs, "accuracy": statistics.mean(curve.accuracy for curve in curves),
        "wall_s": statistics.mean(curve.wall_s for curve in curves), "bytes": statistics.mean(moved) if moved else None,
        "complete": all(curve.state == "succeeded" for curve in curves), "curve": curves[0].rounded(),
    }  # fmt: skip


def case_of(row):
    return Case(row["rule"], row["interval"], row["compression"])


# (case, reference, points): the case's accuracy may be at most `points` points below the reference's.
POINTS = [
    *((Case("elastic", interval), Case("sync", 1), 0.5) for interval in (1, 4, 16)),
    (Case("elastic", 64), Case("sync", 1), 1.0),
    (Case("diloco", 64, "int8"), Case("diloco", 64), 0.3),
]


# The two cases whose bytes are compared.
PLAIN, SMALL = Case("diloco", 64), Case("diloco", 64, "int8")


def complete(rows):
    """Returns, by case, the rows of jobs that ran to their end."""
    return {case_of(row): row for row in rows if row["complete"]}


def compared(rows):
    """Returns the entries of POINTS whose two cases both ran to their end."""
    ran = complete(rows)
    return [(case, base, points) for case, base, points in POINTS if case in ran and base in ran]


def missed(rows):
    """Returns one line for each requirement that was missed by the cases that ran."""
    ran = complete(rows)
    lines = [f"{case_of(row)} was stopped after {row['wall_s']:.0f} s, before its end: --limit" for row in rows if not row["complete"]]
    for case, base, points in compared(rows):
        below = ran[base]["accuracy"] - ran[case]["accuracy"]
        if below > points + report.NOISE:
            lines.append(f"{case} is {report.text(below, points)} points below {base}; asked is at most {points}")
    if PLAIN in ran and SMALL in ran and not not_judged(rows):
        ratio = ran[PLAIN]["bytes"] / ran[SMALL]["bytes"]
        if ratio < FEWER_BYTES:
            lines.append(f"{SMALL} moves {report.text(ratio, FEWER_BYTES)} times fewer bytes than {PLAIN}; asked is at least {FEWER_BYTES}")
    return lines


def not_judged(rows):
    """Returns the requirements on cases that ran but could not be compared."""
    ran = complete(rows)
    if PLAIN not in ran or SMALL not in ran or (ran[PLAIN]["bytes"] and ran[SMALL]["bytes"]):
        return []
    return [f"the bytes of {SMALL} against {PLAIN}, which were not counted"]


def table(rows):
    """Returns the results as Markdown, which the docs show, too."""
    sync = next((row["accuracy"] for row in rows if row["rule"] == "sync"), None)
    most = max((row["bytes"] for row in rows if row["bytes"]), default=None)
    yield "| rule, interval | optimizer | center accuracy | against sync | wall time | bytes on the wire | fewer than the most |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        against = "-" if sync is None else f"{row['accuracy'] - sync:+.2f}"
        bytes_text = "not counted" if row["bytes"] is None else f"{row['bytes'] / 1e6:.0f} MB"
        fewer = "-" if not row["bytes"] else f"{most / row['bytes']:.1f} x"
        wall = f"{row['wall_s']:.0f} s" if row["complete"] else f"more than {row['wall_s']:.0f} s"
        yield f"| {case_of(row)} | {optimizer(row['model'], row['rule'])} | {row['accuracy']:.2f} % | {against} | {wall} | {bytes_text} | {fewer} |"


def write_svg(arguments, rows):
    curves = {str(case_of(row)): [(seconds, accuracy) for seconds, _, accuracy in row["curve"]] for row in rows}
    title = f"Fashion-MNIST, {arguments.model}, {GROUPS} groups, {arguments.epochs} epochs"
    with open(arguments.svg, "w") as file:
        file.write(plot.svg(title, "seconds since submit", "center accuracy, %", curves, PLOT_FROM))


def compare_rules(arguments):
    reason = hosts.missing()
    if reason:
        print(f"SKIPPED: bytes on the wire: {reason}", flush=True)
    print(f"convergence: {arguments.model}, {arguments.epochs} epochs, {GROUPS} groups of 1 rank, batch {BATCH} each, {os.cpu_count()} cores", flush=True)
    rows, without = [], []
    for case in arguments.cases:
        try:
            row = run_case(arguments, case)
        except NoResult as reason:
            print(f"FAILED: {reason}", flush=True)
            without.append(str(reason))
            continue
        rows.append(row)
        report.write_json(arguments.json, [row], {"accuracy": 2, "wall_s": 1, "bytes": None})
        print(f"{str(case):16} {row['accuracy']:6.2f} % {row['wall_s']:8.1f} s {row['bytes'] or 0:14.0f} bytes", flush=True)
        if arguments.svg:
            write_svg(arguments, rows)
    print("\n" + "\n".join(table(rows)))
    return without + missed(rows), bool(compared(rows)), not_judged(rows)


def time_to_target(arguments, case, limit):
    """Returns (seconds until the center reached the target or None, the curve). Stops at the target, or after `limit` seconds of training."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hooke-convergence-"))
        limited = stack.enter_context(hosts.Hosts(2, folder, rate=HOSTS_RATE))
        running = stack.enter_context(cluster.Cluster(arguments.programs, folder, [GROUPS // 2, GROUPS // 2], limited))
        curve = Curve()
        begin = time.monotonic()
        for status in running.follow(job_text(arguments, case, "constant"), limit):
            curve.add(status)
            if curve.reached(HOSTS_TARGET) is not None:
                break
        if curve.state in ("failed", "cancelled"):
            raise NoResult(f"{case}: {curve.reason}")
        if curve.state not in cluster.ENDS:
            curve.wall_s = max(curve.wall_s, time.monotonic() - begin)
    return curve.reached(HOSTS_TARGET), curve


def missed_time(elastic_s, sync_s, watched_s, state):
    """Compares elastic's time with sync's. `sync_s` is None if sync did not reach the target in `watched_s` seconds; `state` is the state of its job
    then."""
    if sync_s is not None:
        slow = elastic_s * HOSTS_LESS > sync_s
        return [f"elastic took {report.text(elastic_s / sync_s, 1 / HOSTS_LESS)} of sync's time; asked is at most {1 / HOSTS_LESS:g}"] if slow else []
    if state not in (*TRAINING, "succeeded"):
        return [f"not decided: the job of sync was {state or 'unknown'} after {watched_s:.1f} s, and had not trained"]
    if watched_s < HOSTS_LESS * elastic_s:
        how = "ended all its epochs (take more: --epochs)" if state == "succeeded" else "was stopped"
        return [f"not decided: sync {how} after {watched_s:.1f} s without {HOSTS_TARGET:g} %, less than {HOSTS_LESS} times elastic's {elastic_s:.1f} s"]
    return []


def compare_hosts(arguments):
    reason = hosts.missing()
    if reason:
        raise SystemExit(f"SKIPPED: two hosts: {reason}")
    print(f"convergence: {arguments.model}, 2 hosts at {HOSTS_RATE}, {GROUPS} groups of 1 rank; until the center has {HOSTS_TARGET:g} %", flush=True)
    limit, elastic_s = arguments.limit, None
    for case in (Case("elastic", 16), Case("sync", 1)):
        try:
            seconds, curve = time_to_target(arguments, case, limit)
        except (NoResult, cluster.Refused) as reason:
            print(f"FAILED: {reason}", flush=True)
            return [f"{case} has no result"]
        row = {
            "benchmark": "convergence-hosts", "rule": case.rule, "interval": case.interval, "model": arguments.model, "rate": HOSTS_RATE,
            "target": HOSTS_TARGET, "reached_s": seconds, "stopped_s": curve.wall_s, "state": curve.state, "curve": curve.rounded(),
        }  # fmt: skip
        report.write_json(arguments.json, [row], {"reached_s": 2, "stopped_s": 1})
        text = f"{seconds:.1f} s" if seconds is not None else f"not in {curve.wall_s:.1f} s (then {curve.state}, at {curve.accuracy or 0:.2f} %)"
        print(f"{str(case):16} {text}", flush=True)
        if elastic_s is None:
            if seconds is None:
                return [f"{case} did not reach {HOSTS_TARGET:g} % in {curve.wall_s:.0f} s"]
            elastic_s, limit = seconds, HOSTS_FACTOR * seconds
    return missed_time(elastic_s, seconds, curve.wall_s, curve.state)


def main():
    arguments = parse()
    if arguments.hosts:
        report.judge(compare_hosts(arguments))
    else:
        report.judge(*compare_rules(arguments))


if __name__ == "__main__":
    report.run(main)
