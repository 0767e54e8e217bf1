#!/usr/bin/env python3
"""Rounds of many groups: the CPU time that an exchange costs the server, with 256 groups and with 8.

The rule is average, and one server has a center of 64 MiB. The groups are threads that call the server's shard, without sockets. So the time is
that of forming the round and of the rule itself. CPU time is that of the whole process, per exchange of one group. Repetitions take turns, and
medians are shown.

Asked: an exchange costs at most twice as much with 256 groups as with 8; otherwise the exit code is 1. Each answer is checked.
"""

import argparse
import json
import os
import subprocess
import sys

import report

FEW, MANY = 8, 256
RATIO = 2


def cpu_seconds(document):
    """Returns the CPU seconds per exchange by number of groups, from Google Benchmark's JSON."""
    return {
        int(entry["run_name"].split("/")[1]): 1 / entry["items_per_second"]
        for entry in document["benchmarks"]
        if entry.get("aggregate_name") == "median"
    }


def missed(seconds):
    """Returns one line for each requirement that was missed. `seconds` comes from cpu_seconds()."""
    ratio = seconds[MANY] / seconds[FEW]
    return [f"an exchange costs {report.text(ratio, RATIO)} times as much with {MANY} groups as with {FEW}; asked is at most {RATIO}"] if ratio > RATIO else []


def main():
    parser = argparse.ArgumentParser(prog="tests/benchmarks/run rounds", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--json", metavar="FILE", help="append one JSON object per line to FILE")
    parser.add_argument("--repetitions", type=int, default=3, help="of each number of groups (default 3)")
    arguments = parser.parse_args()
    command = [os.path.join(arguments.programs, "rounds_benchmark"), f"--benchmark_repetitions={arguments.repetitions}"]
    command += ["--benchmark_format=json", "--benchmark_enable_random_interleaving=true"]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=900)
    if result.returncode:
        sys.exit(f"FAILED: {result.stderr.decode(errors='replace').strip()}")
    document = json.loads(result.stdout)
    wrong = [entry["error_message"] for entry in document["benchmarks"] if entry.get("error_occurred")]
    if wrong:
        sys.exit(f"FAILED: {wrong[0]}")
    seconds = cpu_seconds(document)
    print("rounds: rule average, 64 MiB, one server without sockets, medians")
    print(f"{'groups':>6} {'CPU ms an exchange':>18} {'ratio':>6}")
    for groups, each in sorted(seconds.items()):
        print(f"{groups:6} {each * 1e3:18.2f} {each / seconds[FEW]:6.2f}")
    rows = [{"benchmark": "rounds", "impl": "hooke", "groups": groups, "cpu_ms": each * 1e3} for groups, each in sorted(seconds.items())]
    report.write_json(arguments.json, rows, {"cpu_ms": 3})
    report.judge(missed(seconds))


if __name__ == "__main__":
    report.run(main)
