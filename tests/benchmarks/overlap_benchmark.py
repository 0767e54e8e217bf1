#!/usr/bin/env python3
"""Measures how much of the communication each issue order hides behind backward.

There are two hosts with links of 1 Gbit/s and one rank each, or both ranks are on one host.

`alone`: two ranks train by themselves at the same time. This is the time of a step without communication.
`together`: the two ranks are a group, and gradients are summed after backward (`collectives.overlap: false`).
`funneled`, `concurrent`, `chained`: the two ranks are a group, and gradients are summed in buckets while backward runs, in that issue order.
Repetitions alternate. The hidden share is (together - this) / (together - alone), of the median times of a step. There are no servers and no
exchanges. Two hosts are network namespaces, which need root. On one host (`--hosts=1`) the gradients lie in memory that the ranks share.
"""

import contextlib
import os
import statistics
import tempfile

import hosts
import report
import training_benchmark

ORDERS = ("funneled", "concurrent", "chained")
IMPLS = ("alone", "together", *ORDERS)
BATCH, RANKS = 64, 2


def collectives(impl, arguments):
    order = impl if impl in ORDERS else "funneled"
    return {
        "aggregation": arguments.aggregation.upper(),
        "overlap": impl in ORDERS,
        "order": order.upper(),
        "bucketMib": arguments.bucket_mib,
    }


def mpirun(folder, network, ranks, each=1):
    """Returns the command for ranks, `each` on every host of `network`; None: all on this host."""
    command = ["mpirun.openmpi", "-n", str(ranks), "--oversubscribe", "--bind-to", "none"]
    if os.geteuid() == 0:
        command.append("--allow-run-as-root")
    command += ["--mca", "orte_tmpdir_base", folder, "--mca", "btl_vader_backing_directory", folder]
    # One thread for each rank's kernels. Otherwise OpenMP and OpenBLAS take every core, and the ranks compete.
    command += ["-x", "OMP_NUM_THREADS=1", "-x", "OPENBLAS_NUM_THREADS=1"]
    if ranks > 1 and network is not None:
        command += network.openmpi(each)
    return command


def commands(folder, network, arguments, impl, repetition):
    """Returns the command of each group."""

    def start(name, ranks):
        return training_benchmark.start_file(folder, name, arguments, ranks, [], repetition, collectives(impl, arguments))

    if impl == "alone":
        groups = [(host, 1, start(f"{impl}{host}", 1)) for host in range(RANKS)]
    else:
        groups = [(0, RANKS, start(impl, RANKS))]
    commands = [(host, mpirun(folder, network, ranks) + training_benchmark.rank_command(arguments, file)) for host, ranks, file in groups]
    return [command if network is None else network.command(host, command) for host, command in commands]


def steps_per_second(folder, network, arguments, impl, repetition):
    groups = commands(folder, network, arguments, impl, repetition)
    return training_benchmark.measure(groups, arguments.seconds) / len(groups)


def table(times):
    """Returns the lines to print and the rows of JSON. `times` has for each impl the milliseconds of a step in every repetition."""
    median = {impl: statistics.median(values) for impl, values in times.items()}
    exposed = median["together"] - median["alone"]
    lines = [f"{'impl':11} {'step ms':>8} {'min':>8} {'max':>8} {'hidden':>7}"]
    rows = []
    for impl, values in times.items():
        hidden = (median["together"] - median[impl]) / exposed if impl in ORDERS and exposed > 0 else None
        lines.append(f"{impl:11} {median[impl]:8.1f} {min(values):8.1f} {max(values):8.1f} {'-' if hidden is None else f'{hidden:.2f}':>7}")
        rows.append({"impl": impl, "step_ms": median[impl], "hidden": hidden})
    if exposed <= 0:
        lines.append("communication costs nothing here that could be hidden: is the machine busy?")
    return lines, rows


def main():
    def add(parser):
        parser.add_argument("--hosts", type=int, choices=(1, RANKS), default=RANKS, help=f"how many the ranks are on (default {RANKS})")
        parser.add_argument("--model", default="lenet", help="as `model` of a job file (default lenet)")
        parser.add_argument("--aggregation", choices=("allreduce", "rooted", "sharded"), default="allreduce", help="default allreduce")
        parser.add_argument("--bucket-mib", type=float, default=4, help="size of a bucket (default 4, as in jobs)")
        parser.add_argument("--seconds", type=float, default=6, help="length of a measurement (default 6)")
        parser.add_argument("--train", default="/usr/share/datasets/fashion-mnist/train", help="prefix of the IDX files")
        parser.add_argument("--test", default="/usr/share/datasets/fashion-mnist/t10k", help="prefix of the IDX files")

    arguments = report.parse_arguments(__doc__, add)
    reason = hosts.missing() if arguments.hosts > 1 else None
    if reason:
        print(f"SKIPPED: {reason}", flush=True)
        return
    times = {impl: [] for impl in IMPLS}
    with tempfile.TemporaryDirectory(prefix="hooke-") as folder, contextlib.ExitStack() as stack:
        network = stack.enter_context(hosts.Hosts(RANKS, folder)) if arguments.hosts > 1 else None
        for repetition in range(1, arguments.repetitions + 1):
            for impl in IMPLS:
                times[impl].append(1000 / steps_per_second(folder, network, arguments, impl, repetition))
    where = f"{RANKS} hosts at {hosts.RATE}" if arguments.hosts > 1 else f"{RANKS} ranks on one host"
    print(f"overlap {arguments.model}, {arguments.aggregation}, {where}, batch {BATCH} each, {arguments.repetitions} repetitions of {arguments.seconds:g} s")
    lines, rows = table(times)
    print("\n".join(lines))
    common = {"benchmark": "overlap", "model": arguments.model, "aggregation": arguments.aggregation, "hosts": arguments.hosts}
    report.write_json(arguments.json, [{**common, **row} for row in rows], {"step_ms": 2, "hidden": 3})


if __name__ == "__main__":
    report.run(main)
