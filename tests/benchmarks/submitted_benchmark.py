#!/usr/bin/env python3
"""Samples per second of a group on two hosts that was submitted as a job, against the same ranks started by hand and against torch DDP.

`submitted`: a cluster with a worker on each host. A job of one group is submitted to it, too large for one worker, with an elastic exchange each
16 steps; the server is on the first host. `by-hand`: mpirun starts as many ranks on the same hosts, without a cluster, servers or exchanges, as in
the benchmark `overlap`. `ddp-gloo`: torch DistributedDataParallel over Gloo (torch_rank.py). There are two ranks on each host. The hosts are network
namespaces with links of 1 Gbit/s, which need root. All train with batch 64 and one thread a rank. Repetitions alternate; the table shows medians,
and the ratio is taken within each repetition. `first step` is the time from submit to the job's first step.
Asked: submitted at least 0.95 of by-hand and 1.5 times ddp-gloo, and a first step within 4 s. Otherwise the exit code is 1.
"""

import contextlib
import statistics
import tempfile
import time

import cluster
import hosts
import overlap_benchmark
import report
import training_benchmark

HOSTS, EACH, BATCH = 2, 2, 64
RANKS = HOSTS * EACH
SHARE_OF_BY_HAND = 0.95
TIMES_DDP = 1.5
FIRST_STEP_S = 4
FIRST_STEP_LIMIT_S = 60
JOB = """
name: submitted
model: {model}
data: {{format: idx, train: {train}, test: {test}}}
train: {{epochs: 1000, batch_size: 64, optimizer: {{name: sgd, learning_rate: 0.01, momentum: 0.9}}}}
groups: {{count: 1, ranks: {ranks}}}
averaging: {{rule: elastic, interval: 16}}
"""


def submitted(arguments, running):
    """Runs the job. Returns its steps per second, and the seconds from submit to its first step."""
    text = JOB.format(model=arguments.model, train=arguments.train, test=arguments.test, ranks=RANKS)
    begin, seen, opened = time.time(), [], None
    with contextlib.closing(running.follow(text, FIRST_STEP_LIMIT_S + 2 * arguments.seconds)) as statuses:
        for status in statuses:
            if status["state"] in cluster.ENDS:
                raise SystemExit(f"{status['job_id']} ended: {status.get('reason')}")
            step, now = int((status["groups"][0].get("progress") or {}).get("step", 0)), time.monotonic()
            if step and (not seen or seen[-1][1] != step):
                seen.append((now, step))
                opened = opened or now + 1
            if opened and now > opened + arguments.seconds and (rate := training_benchmark.rate(seen, opened)):
                running.cancel(status["job_id"])
                return rate, int(status["first_step_unix_ms"]) / 1000 - begin
    raise SystemExit(f"the job made no steps that could be measured in {FIRST_STEP_LIMIT_S + 2 * arguments.seconds:g} s")


def by_hand(arguments, folder, network, repetition):
    ranks = RANKS
    start = training_benchmark.start_file(folder, "by-hand", arguments, ranks, [], repetition)
    command = overlap_benchmark.mpirun(folder, network, ranks, EACH) + training_benchmark.rank_command(arguments, start)
    return training_benchmark.measure([network.command(0, command)], arguments.seconds)


def ddp(arguments, folder, network, repetition):
    commands = training_benchmark.ddp_commands(folder, arguments, RANKS, BATCH, repetition)
    # The interface that Gloo uses; torch_rank.py would take the loopback.
    each = [network.command(rank // EACH, ["env", "GLOO_SOCKET_IFNAME=eth0", *command]) for rank, command in enumerate(commands)]
    return training_benchmark.measure(each, arguments.seconds) / len(each)


def row_of(common, rates, first_steps):
    """Returns the row of the table. `rates` has the samples per second of each way in every repetition."""
    row = {**common, "first_step_s": statistics.median(first_steps)}
    for way, values in rates.items():
        row[f"{way}_samples_per_s"] = statistics.median(values)
        if way != "submitted":
            row[f"times_{way}"] = statistics.median(own / other for own, other in zip(rates["submitted"], values))
    return row


def missed(row):
    """Returns one line for each requirement that was missed."""
    lines = []
    for way, least in (("by-hand", SHARE_OF_BY_HAND), ("ddp-gloo", TIMES_DDP)):
        ratio = row.get(f"times_{way}")
        if ratio is not None and ratio < least:
            lines.append(f"submitted has {report.text(ratio, least, 3)} times the samples per second of {way}; asked is at least {least}")
    if row["first_step_s"] > FIRST_STEP_S:
        lines.append(f"the first step came {report.text(row['first_step_s'], FIRST_STEP_S)} s after submit; asked is at most {FIRST_STEP_S} s")
    return lines


def measure(arguments, why_no_ddp):
    """Returns the samples per second of each way, and the seconds to the first step, of every repetition."""
    rates = {"submitted": [], "by-hand": [], **({} if why_no_ddp else {"ddp-gloo": []})}
    first_steps, samples = [], RANKS * BATCH
    with tempfile.TemporaryDirectory(prefix="hooke-") as folder, hosts.Hosts(HOSTS, folder) as network:
        for repetition in range(1, arguments.repetitions + 1):
            # A cluster of its own each time: its daemons take no part in the other measurements.
            with tempfile.TemporaryDirectory(prefix="hooke-") as own, cluster.Cluster(arguments.programs, own, [EACH] * HOSTS, network) as running:
                rate, seconds = submitted(arguments, running)
            rates["submitted"].append(rate * samples)
            first_steps.append(seconds)
            rates["by-hand"].append(by_hand(arguments, folder, network, repetition) * samples)
            if not why_no_ddp:
                rates["ddp-gloo"].append(ddp(arguments, folder, network, repetition) * samples)
    return rates, first_steps


def main():
    def add(parser):
        parser.add_argument("--model", choices=training_benchmark.DDP_MODELS, default="lenet", help="default lenet")
        parser.add_argument("--seconds", type=float, default=12, help="length of a measurement (default 12)")
        parser.add_argument("--train", default="/usr/share/datasets/fashion-mnist/train", help="prefix of the IDX files")
        parser.add_argument("--test", default="/usr/share/datasets/fashion-mnist/t10k", help="prefix of the IDX files")

    arguments = report.parse_arguments(__doc__, add)
    reason = hosts.missing()
    if reason:
        print(f"SKIPPED: {reason}", flush=True)
        return
    why_no_ddp = training_benchmark.why_no_ddp(arguments)
    rates, first_steps = measure(arguments, why_no_ddp)
    print(f"submitted {arguments.model}, {HOSTS} hosts at {hosts.RATE} with {EACH} ranks each, {arguments.repetitions} repetitions of "
          f"{arguments.seconds:g} s")
    print(f"{'way':10} {'samples/s':>10} {'min':>8} {'max':>8}")
    for way, values in rates.items():
        print(f"{way:10} {statistics.median(values):10.0f} {min(values):8.0f} {max(values):8.0f}")
    row = row_of({"benchmark": "submitted", "model": arguments.model, "hosts": HOSTS, "ranks": RANKS}, rates, first_steps)
    for way in ("by-hand", "ddp-gloo"):
        if way in rates:
            print(f"submitted / {way}: median {row[f'times_{way}']:.3f}")
    print(f"submit to first step: median {row['first_step_s']:.2f} s, min {min(first_steps):.2f} s, max {max(first_steps):.2f} s")
    report.write_json(arguments.json, [row], {name: 3 for name in row if name.startswith(("times", "first"))})
    report.judge(missed(row), not_judged=[f"submitted against ddp-gloo: {why_no_ddp}"] if why_no_ddp else ())


if __name__ == "__main__":
    report.run(main)
