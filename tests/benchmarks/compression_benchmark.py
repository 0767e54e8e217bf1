#!/usr/bin/env python3
"""Measures how much accuracy is lost if exchanges are compressed. Compared is the center's accuracy after one epoch, in which there are few
exchanges.

The jobs train the built-in mlp on Fashion-MNIST in groups of 1 rank, with SGD at 0.05 with momentum 0.9 or AdamW at 0.001. Accuracies are means
over seeds; all compressions of a rule have the same seeds.
Asked of diloco, slowmo, bmuf and average, with a job file's defaults: at most 1 point below the accuracy without compression. That accuracy
itself must be at least 70 %. Otherwise the exit code is 1. The losses of sync, and of a smaller top_k, are only shown.
"""

import statistics
import tempfile
from typing import NamedTuple

import cluster
import convergence_benchmark
import report

BATCH = 64
POINTS = 1.0
# The least accuracy without compression. Without this limit, two jobs that learn nothing would count as close to each
# other.
LEARNED = 70.0
LIMIT_S = 600
SLOTS = 4


SGD = "{name: sgd, learning_rate: 0.05, momentum: 0.9}"
ADAMW = "{name: adamw, learning_rate: 0.001}"


class Job(NamedTuple):
    name: str
    rule: str
    groups: int
    optimizer: str


class Case(NamedTuple):
    job: Job
    compression: str
    judged: bool = True  # True: its accuracy must be close to that without compression.


DILOCO = [Job("diloco, 2 groups", "diloco", 2, SGD), Job("diloco, 2 groups, adamw", "diloco", 2, ADAMW), Job("diloco, 4 groups", "diloco", 4, SGD)]
OTHERS = [Job(f"{rule}, 2 groups", rule, 2, SGD) for rule in ("slowmo", "bmuf", "average")]
SYNC = Job("sync, 2 groups", "sync", 2, SGD)
CASES = [
    *(Case(job, compression) for job in DILOCO for compression in ("none", "int8", "int4", "top_k")),
    *(Case(job, compression) for job in OTHERS for compression in ("none", "top_k")),
    *(Case(SYNC, compression, False) for compression in ("none", "top_k")),
    *(Case(job, f"top_k, top_k: {k}", False) for job in DILOCO for k in (0.01, 0.05)),
]


def options(parser):
    parser.add_argument("--epochs", type=int, default=1, help="passes over the data by both groups together (default 1)")
    parser.add_argument("--rules", type=lambda words: words.split(","), help='only these, such as "diloco,sync"')
    parser.add_argument("--train", default="/usr/share/datasets/fashion-mnist/train", help="prefix of the IDX files")
    parser.add_argument("--test", default="/usr/share/datasets/fashion-mnist/t10k", help="prefix of the IDX files")


def job_text(arguments, case, seed):
    return (
        f"name: compression\nmodel: mlp\ndata: {{train: {arguments.train}, test: {arguments.test}}}\n"
        f"train:\n  epochs: {arguments.epochs}\n  batch_size: {BATCH}\n  seed: {seed}\n"
        f"  optimizer: {case.job.optimizer}\n"
        f"groups: {{count: {case.job.groups}, ranks: 1}}\naveraging: {{rule: {case.job.rule}, grace_seconds: 10, compression: {case.compression}}}\n"
    )


def accuracy(running, arguments, case, seed):
    where = f"{case.job.name}, {case.compression}, seed {seed}"
    return convergence_benchmark.end_accuracy(running, job_text(arguments, case, seed), LIMIT_S, where)


def measure(running, arguments, case):
    found = [accuracy(running, arguments, case, seed) for seed in range(1, arguments.repetitions + 1)]
    return {
        "benchmark": "compression", "job": case.job.name, "compression": case.compression, "judged": case.judged,
        "epochs": arguments.epochs, "seeds": arguments.repetitions, "accuracy": statistics.mean(found), "least": min(found),
    }  # fmt: skip


def plain_of(rows):
    """Returns the accuracy without compression, for each job."""
    return {row["job"]: row["accuracy"] for row in rows if row["compression"] == "none"}


def missed(rows):
    """Returns one line for each requirement that was missed."""
    lines = []
    plain = plain_of(rows)
    for row in rows:
        if row["compression"] == "none" and row["accuracy"] < LEARNED:
            lines.append(f"{row['job']}: {report.text(row['accuracy'], LEARNED)} % without compression; asked is at least {LEARNED:g} %")
        below = plain[row["job"]] - row["accuracy"]
        if row["judged"] and below > POINTS + report.NOISE:
            lines.append(f"{row['job']}, {row['compression']}: {report.text(below, POINTS)} points below none; asked is at most {POINTS:g}")
    return lines


def main():
    arguments = report.parse_arguments(__doc__, options, repetitions=3)
    cases = [case for case in CASES if not arguments.rules or case.job.rule in arguments.rules]
    print("| job | compression | accuracy | against none | the worst seed |\n|---|---|---|---|---|", flush=True)
    rows = []
    with tempfile.TemporaryDirectory(prefix="hooke-compression-") as folder, cluster.Cluster(arguments.programs, folder, [SLOTS]) as running:
        for case in cases:
            row = measure(running, arguments, case)
            rows.append(row)
            report.write_json(arguments.json, [row], {"accuracy": 2, "least": 2})
            against = row["accuracy"] - plain_of(rows)[case.job.name]
            print(f"| {case.job.name} | {case.compression} | {row['accuracy']:.2f} % | {against:+.2f} | {row['least']:.2f} % |", flush=True)
    report.judge(missed(rows))


if __name__ == "__main__":
    report.run(main)
