#!/usr/bin/env python3
"""Measures how much accuracy of the center is lost if groups are out of step, that is, never in a round together.

The jobs train the built-in mlp on Fashion-MNIST in groups of 1 rank, with AdamW at 0.001. Out of step, `grace_seconds` is 0: a round waits for
no group, so each group has rounds of its own. Accuracies are means over seeds, and runs in step and out of step alternate.
Asked: out of step at most 4 points below in step, and at least 70 % in step. Otherwise the exit code is 1.
"""

import statistics
import tempfile
from typing import NamedTuple

import cluster
import convergence_benchmark
import report

BATCH = 64
POINTS = 4.0
# The least accuracy of groups in step. Without this limit, two jobs that learn nothing would count as close to each
# other.
LEARNED = 70.0
LIMIT_S = 600


class Case(NamedTuple):
    name: str
    averaging: str
    groups: int


CASES = [
    Case("diloco at 64", "rule: diloco, interval: 64", 2),
    Case("diloco at 64, delay 8, 4 fragments", "rule: diloco, interval: 64, delay: 8, fragments: 4", 2),
    Case("diloco at 64, 4 groups", "rule: diloco, interval: 64", 4),
    Case("slowmo at 16", "rule: slowmo, interval: 16", 2),
    Case("bmuf at 16", "rule: bmuf, interval: 16", 2),
    Case("average at 16", "rule: average, interval: 16", 2),
]


def options(parser):
    parser.add_argument("--epochs", type=int, default=2, help="passes over the data by all groups together (default 2)")
    parser.add_argument("--train", default="/usr/share/datasets/fashion-mnist/train", help="prefix of the IDX files")
    parser.add_argument("--test", default="/usr/share/datasets/fashion-mnist/t10k", help="prefix of the IDX files")


def job_text(arguments, case, in_step, seed):
    grace = "" if in_step else ", grace_seconds: 0"
    return (
        f"name: out-of-step\nmodel: mlp\ndata: {{train: {arguments.train}, test: {arguments.test}}}\n"
        f"train:\n  epochs: {arguments.epochs}\n  batch_size: {BATCH}\n  seed: {seed}\n"
        "  optimizer: {name: adamw, learning_rate: 0.001}\n"
        f"groups: {{count: {case.groups}, ranks: 1}}\naveraging: {{{case.averaging}{grace}}}\n"
    )


def accuracy(arguments, case, in_step, seed):
    where = f"{case.name}, {'in' if in_step else 'out of'} step, seed {seed}"
    with tempfile.TemporaryDirectory(prefix="hooke-out-of-step-") as folder:
        with cluster.Cluster(arguments.programs, folder, [case.groups]) as running:
            return convergence_benchmark.end_accuracy(running, job_text(arguments, case, in_step, seed), LIMIT_S, where)


def measure(arguments, case):
    found = {True: [], False: []}
    for seed in range(1, arguments.repetitions + 1):
        for in_step in found:
            found[in_step].append(accuracy(arguments, case, in_step, seed))
    return {
        "benchmark": "out_of_step", "case": case.name, "groups": case.groups, "epochs": arguments.epochs, "seeds": arguments.repetitions,
        "in_step": statistics.mean(found[True]), "out_of_step": statistics.mean(found[False]),
        "least_out_of_step": min(found[False]),
    }  # fmt: skip


def missed(rows):
    """Returns one line for each requirement that was missed."""
    lines = []
    for row in rows:
        below = row["in_step"] - row["out_of_step"]
        if row["in_step"] < LEARNED:
            lines.append(f"{row['case']}: {report.text(row['in_step'], LEARNED)} % in step; asked is at least {LEARNED:g} %")
        if below > POINTS + report.NOISE:
            lines.append(f"{row['case']}: {report.text(below, POINTS)} points below in step; asked is at most {POINTS:g}")
    return lines


def main():
    arguments = report.parse_arguments(__doc__, options, repetitions=2)
    print("| rule | in step | out of step | the worst seed |\n|---|---|---|---|", flush=True)
    rows = []
    for case in CASES:
        row = measure(arguments, case)
        rows.append(row)
        report.write_json(arguments.json, [row], {"in_step": 2, "out_of_step": 2, "least_out_of_step": 2})
        print(f"| {case.name} | {row['in_step']:.2f} % | {row['out_of_step']:.2f} % | {row['least_out_of_step']:.2f} % |", flush=True)
    report.judge(missed(rows))


if __name__ == "__main__":
    report.run(main)
