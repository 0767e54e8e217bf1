#!/usr/bin/env python3
"""Times hooke_combine of gradients of each type that a program may register, with the same number of values.

The ranks are on two hosts with links of 1 Gbit/s, which are network namespaces and need root, or on one host. Each rank fills its gradients,
meets the others at a barrier, and times hooke_combine, which averages them. Backward does not run meanwhile. Types alternate. The table has the
medians over all steps of all repetitions, how much faster a step is than with float32, and between hosts the megabytes that one of them sends in
a step. Every mean is compared with the right one.
"""

import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

import hosts
import report

HERE = pathlib.Path(__file__).resolve().parent
TYPES = ("float32", "bfloat16", "float16")
SECONDS = 300


def command(arguments, network, kind, values):
    """Returns the command of mpirun for the ranks of one run."""
    ranks = arguments.hosts * arguments.each
    start = ["mpirun.openmpi", "-n", str(ranks), "--oversubscribe", "--bind-to", "none"]
    if os.geteuid() == 0:
        start.append("--allow-run-as-root")
    start += ["-x", "OMP_NUM_THREADS=1", "-x", f"HOOKE_LIBRARY={arguments.programs}/libhooke.so"]
    if network is not None:
        start += network.openmpi(arguments.each)
    start += ["/usr/bin/python3", str(HERE / "types_rank.py"), kind, str(values), str(arguments.steps)]
    return start if network is None else network.command(0, start)


def measure(arguments, network, kind, values):
    """Returns what rank 0 prints."""
    result = subprocess.run(command(arguments, network, kind, values), capture_output=True, text=True, timeout=SECONDS)
    if result.returncode:
        raise SystemExit(f"{kind}, {values} values: {result.stdout}{result.stderr}")
    return json.loads(result.stdout.strip().splitlines()[-1])


def rows_of(times, sent):
    """Returns the rows of JSON. For each (values, type), `times` has the milliseconds of all steps, and `sent` the bytes of a step by repetition."""
    median = {key: statistics.median(each) for key, each in times.items()}
    return [
        {
            "values": values,
            "type": kind,
            "median_ms": median[values, kind],
            "times_float32": median[values, "float32"] / median[values, kind],
            "sent_mb": statistics.median(sent[values, kind]) / 1e6,
        }
        for values, kind in times
    ]


def main():
    def add(parser):
        parser.add_argument("--hosts", type=int, choices=(1, 2), default=2, help="how many the ranks are on (default 2)")
        parser.add_argument("--each", type=int, help="ranks of each host, two or an even number in all (default: two in all)")
        parser.add_argument("--values", default="16384,262144,4194304", help="numbers of values (default 16384,262144,4194304)")
        parser.add_argument("--steps", type=int, default=20, help="steps of each repetition (default 20)")

    arguments = report.parse_arguments(__doc__, add, repetitions=3)
    arguments.each = arguments.each or 2 // arguments.hosts
    if arguments.hosts * arguments.each % 2:
        raise SystemExit("the number of ranks must be even")
    reason = hosts.missing() if arguments.hosts > 1 else None
    if reason:
        print(f"SKIPPED: {reason}", flush=True)
        return
    sizes = [int(values) for values in arguments.values.split(",")]
    times = {(values, kind): [] for values in sizes for kind in TYPES}
    sent = {key: [] for key in times}
    with tempfile.TemporaryDirectory(prefix="hooke-") as folder, contextlib.ExitStack() as stack:
        network = stack.enter_context(hosts.Hosts(arguments.hosts, folder)) if arguments.hosts > 1 else None
        for _ in range(arguments.repetitions):
            for values, kind in times:
                measured = measure(arguments, network, kind, values)
                times[values, kind] += measured["ms"]
                sent[values, kind].append(measured["sent"] if network else 0)
    where = f"2 hosts at {hosts.RATE}" if arguments.hosts > 1 else "one host"
    print(f"types, {where}, {arguments.each} ranks each, {arguments.repetitions} repetitions of {arguments.steps} steps")
    rows = rows_of(times, sent)
    print(f"{'values':>9} {'type':9} {'median ms':>10} {'x float32':>10} {'MB sent':>9}")
    for row in rows:
        print(f"{row['values']:9} {row['type']:9} {row['median_ms']:10.3f} {row['times_float32']:10.2f} {row['sent_mb']:9.3f}")
    common = {"benchmark": "types", "hosts": arguments.hosts, "each": arguments.each}
    report.write_json(arguments.json, [{**common, **row} for row in rows], {"median_ms": 4, "times_float32": 3, "sent_mb": 4})


if __name__ == "__main__":
    report.run(main)
