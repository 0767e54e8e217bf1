#!/usr/bin/env python3
"""The model of all-reduces among many ranks, against simulations and measurements.

Simulations: the ranks are threads of one process that run the code of jobs. Their messages cost virtual time: a latency, an overhead for each
message, and the bytes at the rate of a link. Each rank checks its result. One line for each number of nodes and bytes, with the algorithm that Hooke
chooses; --algorithms adds others. With --each the nodes have several ranks each, which share the node's link, and the algorithm is the one between
the nodes. Values take little memory, because a byte may count for many.

Measurements: with --measured FILE nothing is simulated. FILE comes from `tests/benchmarks/run allreduce --hosts 2,4,8 --ranks 2,4,8 --json FILE`.
The costs of a message are fitted to Hooke's times with one rank per host, and the table shows how far the model is from each time.

Asked: the model is within 10 % of each simulation; otherwise the exit code is 1. Nothing is asked of measurements. docs/scale.md explains the model.
"""

import argparse
import json
import os
import subprocess

import report

ERROR_PERCENT = 10
SECONDS = 900
# Decimals of a row's values in a file.
DIGITS = {"model_us": 2, "simulated_us": 2, "measured_us": 2, "error_percent": 2, "real_s": 2, "latency_us": 3, "overhead_us": 3, "gbit": 3}


def numbers(text):
    return [int(word) for word in text.split(",")]


def parse():
    parser = argparse.ArgumentParser(prog="tests/benchmarks/run scale", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--json", metavar="FILE", help="append one JSON object per line to FILE")
    parser.add_argument("--nodes", type=numbers, default=[8, 64, 256, 1024], help="default 8,64,256,1024")
    parser.add_argument("--each", type=int, default=1, help="ranks of each node (default 1)")
    parser.add_argument("--bytes", type=numbers, default=[4096, 1 << 20, 25000000], help="default 4096,1048576,25000000")
    parser.add_argument("--algorithms", type=lambda text: text.split(","), default=["chosen"],
                        help="of chosen, ring, pairwise, recursive-doubling, halving-doubling (default chosen)")  # fmt: skip
    parser.add_argument("--latency-us", type=float, default=20, help="default 20")
    parser.add_argument("--overhead-us", type=float, default=4, help="of each message (default 4)")
    parser.add_argument("--gbit", type=float, default=10, help="of each link (default 10)")
    parser.add_argument("--measured", metavar="FILE", help="fit the model to these measurements instead of simulating")
    return parser.parse_args()


def ask(arguments, options, text=""):
    """Returns the JSON object that the program prints."""
    command = [os.path.join(arguments.programs, "scale_simulation"), *options]
    result = subprocess.run(command, input=text, capture_output=True, text=True, timeout=SECONDS)
    if result.returncode:
        raise SystemExit(f"FAILED: {' '.join(command)}: {result.stderr.strip()}")
    return json.loads(result.stdout)


def simulate(arguments):
    """Returns a row for each simulation, and prints it."""
    print(f"scale: latency {arguments.latency_us:g} us, overhead {arguments.overhead_us:g} us, {arguments.gbit:g} Gbit/s, {arguments.each} per node")
    print(f"{'nodes':>6} {'bytes':>9} {'algorithm':20} {'model ms':>10} {'simulated':>10} {'error %':>8} {'real s':>7}", flush=True)
    rows = []
    for nodes in arguments.nodes:
        for size in arguments.bytes:
            for algorithm in arguments.algorithms:
                costs = [f"--latency-us={arguments.latency_us}", f"--overhead-us={arguments.overhead_us}", f"--gbit={arguments.gbit}"]
                options = [f"--nodes={nodes}", f"--each={arguments.each}", f"--bytes={size}", f"--algorithm={algorithm}", *costs]
                row = {"benchmark": "scale", "nodes": nodes, "each": arguments.each, "bytes": size, **ask(arguments, options)}
                row["error_percent"] = 100 * (row["model_us"] / row["simulated_us"] - 1)
                print(f"{nodes:6} {size:9} {row['algorithm']:20} {row['model_us'] / 1e3:10.3f} {row['simulated_us'] / 1e3:10.3f} "
                      f"{row['error_percent']:8.2f} {row['real_s']:7.1f}", flush=True)  # fmt: skip
                rows.append(row)
    return rows


def measured_times(lines):
    """Returns (hosts, bytes, microseconds) of Hooke's all-reduces with one rank per host, from the lines of a JSON file. The last of several lines
    for one host and size counts."""
    times = {}
    for row in map(json.loads, lines):
        if row["benchmark"] == "allreduce" and row["impl"] == "hooke" and row["ranks"] == row["hosts"] > 1 and row["correct"]:
            times[row["hosts"], row["bytes"]] = row["median_us"]
    return [(*key, us) for key, us in sorted(times.items())]


def fit(arguments):
    """Returns a row for each measured time, and prints it."""
    with open(arguments.measured) as file:
        times = measured_times(file)
    if not times:
        raise SystemExit(f"{arguments.measured}: no all-reduce of Hooke with one rank on each of several hosts")
    answer = ask(arguments, ["--fit"], "".join(f"{hosts} {size} {us}\n" for hosts, size, us in times))
    costs = {name: answer[name] for name in ("latency_us", "overhead_us", "gbit")}
    print(f"scale: fitted latency {costs['latency_us']:.1f} us, overhead {costs['overhead_us']:.1f} us, {costs['gbit']:.3f} Gbit/s")
    print(f"{'hosts':>6} {'bytes':>9} {'measured us':>12} {'model us':>12} {'error %':>8}")
    rows = []
    for (hosts, size, us), model in zip(times, answer["model_us"]):
        error = 100 * (model / us - 1)
        print(f"{hosts:6} {size:9} {us:12.1f} {model:12.1f} {error:8.1f}")
        rows.append({"benchmark": "scale", "hosts": hosts, "bytes": size, "measured_us": us, "model_us": model, "error_percent": error, **costs})
    return rows


def missed(rows):
    """Returns one line for each simulation from which the model is too far away."""
    return [
        f"{row['algorithm']} of {row['bytes']} bytes by {row['nodes']} nodes: the model is {report.text(abs(row['error_percent']), ERROR_PERCENT, 1)} % off; "
        f"asked is at most {ERROR_PERCENT} %"
        for row in rows
        if abs(row["error_percent"]) > ERROR_PERCENT
    ]


def main():
    arguments = parse()
    rows = fit(arguments) if arguments.measured else simulate(arguments)
    report.write_json(arguments.json, rows, DIGITS)
    report.judge([] if arguments.measured else missed(rows), asked=not arguments.measured)


if __name__ == "__main__":
    report.run(main)
