#!/usr/bin/env python3
"""The elastic update of the center: its share of one core's memory bandwidth, measured in the same run.

`served`: an update as a server makes it. A group's block and its answer are in cache, and the center passes by in memory (8 bytes per value, read
and written). `streamed`: group, center and answer are all in memory (16 bytes per value: 8 read, 8 written). Each is compared with a plain pass
that reads and writes as many bytes: `in place` changes the sign of a vector's values, `memcpy` copies. One thread; vectors of 64 MiB and more,
larger than caches. Repetitions take turns in random order, and medians are shown.

    share = (bytes the update must read and write / its time) / (bytes of the plain pass / its time)

Asked: at least 0.7 of both; otherwise the exit code is 1. Results are checked before anything is timed.
"""

import argparse
import json
import os
import subprocess
import sys

import report

KERNELS = {"served": "BenchmarkServedExchange", "streamed": "BenchmarkElasticExchange"}
BOUNDS = {"memcpy": "BenchmarkMemcpy", "in place": "BenchmarkInPlace"}
# The update -> the plain pass that reads and writes as many bytes.
BOUND_OF = {"served": "in place", "streamed": "memcpy"}
VALUES = 16 << 20
SHARE = 0.7


def shares(rates):
    """Returns the share of each update. `rates` has the bytes per second of each update and each plain pass."""
    return {name: rates[name] / rates[BOUND_OF[name]] for name in KERNELS}


def medians(document):
    """Returns the bytes per second by name, from Google Benchmark's JSON."""
    by_function = {
        entry["run_name"].split("/")[0]: entry["bytes_per_second"] for entry in document["benchmarks"] if entry.get("aggregate_name") == "median"
    }
    return {name: by_function[function] for name, function in {**KERNELS, **BOUNDS}.items()}


def missed(share):
    """Returns one line for each requirement that was missed. `share` comes from shares()."""
    return [f"{name} has {report.text(value, SHARE)} of the bandwidth of {BOUND_OF[name]}; asked is at least {SHARE}" for name, value in share.items() if value < SHARE]


def main():
    parser = argparse.ArgumentParser(prog="tests/benchmarks/run elastic", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--json", metavar="FILE", help="append one JSON object per line to FILE")
    arguments = parser.parse_args()
    functions = "|".join([*KERNELS.values(), *BOUNDS.values()])
    command = [os.path.join(arguments.programs, "elastic_benchmark"), f"--benchmark_filter=^({functions})/{VALUES}"]
    command += ["--benchmark_format=json", "--benchmark_enable_random_interleaving=true"]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    if result.returncode:
        sys.exit(f"FAILED: {result.stderr.decode(errors='replace').strip()}")
    rates = medians(json.loads(result.stdout))
    share = shares(rates)
    print(f"elastic: one thread, {VALUES} values, medians")
    print(f"{'':10} {'GB/s':>7} {'share':>6}")
    for name, rate in rates.items():
        print(f"{name:10} {rate / 1e9:7.2f}" + (f" {share[name]:6.2f}" if name in share else ""))
    report.write_json(
        arguments.json,
        [
            {"benchmark": "elastic", "impl": name, "values": VALUES, "bytes_per_s": rate, "share": share.get(name)}
            for name, rate in rates.items()
        ],
        {"bytes_per_s": None, "share": 3},
    )
    report.judge(missed(share))


if __name__ == "__main__":
    report.run(main)
