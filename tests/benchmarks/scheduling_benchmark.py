#!/usr/bin/env python3
"""The coordinator's decisions with 10,000 workers and 1,000 jobs of 100,000 ranks, in virtual time.

Workers join, then jobs are submitted, which are more than fit. Then groups end, one after another, and each end frees slots for a group that waits.
Jobs have priorities, sites and estimates. There are no sockets, threads, disks or processes, so the time is that of the decisions themselves:

- submit: a job is checked, queued and placed.
- end: the end of a group, and what starts in its place.
- tick: what is due each 100 ms.
- leave, with --preemptible: the end of a group that made room for a job of higher priority, and what starts in its place.

No slot may be given out twice. Asked: the p99 of each kind is under 50 ms of CPU time, and the median of a tick under 0.1 ms, for which it may not look
at all workers or jobs; otherwise the exit code is 1. On a machine that does nothing else, a decision takes as long as its CPU time.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

import report
import wide_benchmark as wide

P99_MS = 50
TICK_MEDIAN_MS = 0.1


def parse():
    parser = argparse.ArgumentParser(prog="tests/benchmarks/run scheduling", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--json", metavar="FILE", help="append one JSON object per line to FILE")
    parser.add_argument("--workers", type=int, default=10000, help="default 10000")
    parser.add_argument("--slots", type=int, default=8, help="of a worker (default 8)")
    parser.add_argument("--jobs", type=int, default=1000, help="default 1000")
    parser.add_argument("--groups", type=int, default=25, help="of a job (default 25)")
    parser.add_argument("--ranks", type=int, default=4, help="of a group (default 4)")
    parser.add_argument("--ends", type=int, default=2000, help="groups that end (default 2000)")
    parser.add_argument("--preemptible", action="store_true", help="groups leave for jobs of higher priority, which are more decisions")
    return parser.parse_args()


def rows_of(arguments, result):
    """One row for each kind of decision; `result` is what the program printed."""
    sizes = {name: getattr(arguments, name) for name in ("workers", "slots", "jobs", "groups", "ranks")}
    return [
        {"benchmark": "scheduling", "impl": "hooke", "kind": kind, **sizes, "count": len(cpu), "median_ms": statistics.median(cpu),
         "p99_ms": wide.percentile(cpu, 99), "max_ms": max(cpu), "wall_median_ms": statistics.median(result["wall_ms"][kind]),
         "wall_p99_ms": wide.percentile(result["wall_ms"][kind], 99), "waiting": result["waiting"], "mib": result["mib"]}
        for kind, cpu in result["cpu_ms"].items()
    ]  # fmt: skip


def missed(rows):
    """One line for each requirement that was missed."""
    asked = [(row["kind"], name, row[f"{name}_ms"], P99_MS if name == "p99" else TICK_MEDIAN_MS) for row in rows for name in ("p99", "median")]
    return [
        f"{kind}: {name} is {report.text(value, most)} ms of CPU time; asked is less than {most:g} ms"
        for kind, name, value, most in asked
        if value >= most and (name == "p99" or kind == "tick")
    ]


def main():
    arguments = parse()
    command = [os.path.join(arguments.programs, "scheduling_benchmark")]
    command += [f"--{name}={getattr(arguments, name)}" for name in ("workers", "slots", "jobs", "groups", "ranks", "ends")]
    command += ["--preemptible"] if arguments.preemptible else []
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=900)
    if result.returncode:
        sys.exit(f"FAILED: {result.stderr.strip()}")
    rows = rows_of(arguments, json.loads(result.stdout))
    first = rows[0]
    print(f"scheduling: {first['workers']} workers with {first['slots']} slots, {first['jobs']} jobs of {first['groups']} groups with {first['ranks']} ranks")
    print(f"{first['waiting']} jobs wait at the end; {first['mib']:.0f} MiB")
    print(f"{'':15} {'CPU time, ms':^26} {'wall time, ms':^17}")
    print(f"{'kind':8} {'count':>6} {'p50':>8} {'p99':>8} {'max':>8} {'p50':>8} {'p99':>8}")
    for row in rows:
        times = [row[name] for name in ("median_ms", "p99_ms", "max_ms", "wall_median_ms", "wall_p99_ms")]
        print(f"{row['kind']:8} {row['count']:6} " + " ".join(f"{time:8.2f}" for time in times))
    report.write_json(arguments.json, rows, {"median_ms": 3, "p99_ms": 3, "max_ms": 3, "wall_median_ms": 3, "wall_p99_ms": 3, "mib": 1})
    report.judge(missed(rows))


if __name__ == "__main__":
    report.run(main)
