#!/usr/bin/env python3
"""256 simulated groups, each exchanging 1 MiB every second with one server: latency of the exchanges, errors, the server's CPU.

There is one hooke-server process. The groups are real clients with connections of their own over loopback TCP, all in one program (wide/). The
rule is elastic. The groups start evenly spread over a period, in an order from --seed. An exchange's latency counts from when it was due. So if
the group's previous exchange delays it, the delay counts in full. In the end the sum of center and groups must be what it was at the start:
no exchange was lost or applied twice.
Asked: p99 under 250 ms and no error; otherwise the exit code is 1.
"""

import argparse
import contextlib
import json
import os
import select
import statistics
import subprocess
import tempfile
import time

import report

P99_MS = 250
# The number of decimals with which a row's values are written to a file.
DIGITS = {"median_ms": 3, "p99_ms": 3, "max_ms": 3, "server_cpu_cores": 3, "server_mib": 1}
START_SECONDS = 120
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def parse():
    parser = argparse.ArgumentParser(prog="tests/benchmarks/run wide", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--json", metavar="FILE", help="append one JSON object per line to FILE")
    parser.add_argument("--groups", type=int, default=256, help="default 256")
    parser.add_argument("--bytes", type=int, default=1 << 20, help="of the center (default 1048576)")
    parser.add_argument("--period", type=float, default=1, help="seconds between two exchanges of a group (default 1)")
    parser.add_argument("--seconds", type=float, default=20, help="how long they exchange (default 20)")
    parser.add_argument("--seed", type=int, default=1, help="of the order in which groups start (default 1)")
    parser.add_argument("--grpc", action="store_true", help="exchange by gRPC instead of plain TCP")
    return parser.parse_args()


def percentile(values, share):
    """Returns the smallest of the values that at least `share` percent of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)]


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def status(pid, field):
    with open(f"/proc/{pid}/status") as file:
        return next(line.split()[1] for line in file if line.startswith(field + ":"))


def read_line(process, log, seconds):
    """Returns the next line of a process's output."""
    name = os.path.basename(process.args[0])
    if not select.select([process.stdout], [], [], seconds)[0]:
        raise SystemExit(f"FAILED: {name} said nothing for {seconds:g} s")
    line = process.stdout.readline()
    if not line:
        log.seek(0)
        raise SystemExit(f"FAILED: {name} ended with status {process.wait()}\n{log.read().decode(errors='replace')[-2000:]}")
    return line


def measure(arguments, folder):
    """Returns the groups' result, and the server's CPU seconds, threads and memory."""
    ready = os.path.join(folder, "ready")
    server = [os.path.join(arguments.programs, "hooke-server"), "--listen=127.0.0.1:0", f"--state-dir={folder}/server", f"--ready-file={ready}"]
    server += ["--snapshot-interval=8760h", "--log-level=warning"]
    groups = [os.path.join(arguments.programs, "wide_groups"), f"--groups={arguments.groups}", f"--bytes={arguments.bytes}"]
    groups += [f"--period={arguments.period}", f"--seconds={arguments.seconds}", f"--seed={arguments.seed}"] + ["--grpc"] * arguments.grpc
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(report.started(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        address = report.wait_for_file(ready, process)
        log = stack.enter_context(open(os.path.join(folder, "groups.log"), "w+b"))
        client = stack.enter_context(
            report.started([*groups, f"--server={address}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        )
        read_line(client, log, START_SECONDS)
        before, begin = cpu_seconds(process.pid), time.monotonic()
        client.stdin.write(b"go\n")
        client.stdin.flush()
        result = json.loads(read_line(client, log, arguments.seconds + START_SECONDS))
        result["server_cpu_s"] = cpu_seconds(process.pid) - before
        result["wall_s"] = time.monotonic() - begin
        result["server_threads"] = int(status(process.pid, "Threads"))
        result["server_mib"] = int(status(process.pid, "VmHWM")) / 1024
    return result


def row_of(arguments, result):
    """Returns a row of the table. `result` comes from measure()."""
    latencies = result["latencies_ms"]
    return {
        "benchmark": "wide", "impl": "hooke", "groups": arguments.groups, "bytes": arguments.bytes, "period_s": arguments.period,
        "median_ms": statistics.median(latencies), "p99_ms": percentile(latencies, 99), "max_ms": max(latencies),
        "exchanges": len(latencies), "errors": result["errors"], "server_cpu_cores": result["server_cpu_s"] / result["wall_s"],
        "server_mib": result["server_mib"], "server_threads": result["server_threads"],
    }  # fmt: skip


def missed(row):
    """Returns one line for each requirement that was missed."""
    return [f"p99 is {report.text(row['p99_ms'], P99_MS, 1)} ms; asked is under {P99_MS} ms"] if row["p99_ms"] >= P99_MS else []


def main():
    arguments = parse()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(arguments, folder)
    row = row_of(arguments, result)
    print(f"wide: {arguments.groups} groups, {arguments.bytes} bytes every {arguments.period:g} s, one server, loopback TCP, {os.cpu_count()} cores")
    print(f"{'exchanges':>9} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8} {'errors':>6} {'server CPU':>10} {'MiB':>6} {'threads':>7}")
    print(f"{row['exchanges']:9} {row['median_ms']:8.2f} {row['p99_ms']:8.2f} {row['max_ms']:8.2f} {row['errors']:6} "
          f"{100 * row['server_cpu_cores']:8.0f} % {row['server_mib']:6.0f} {row['server_threads']:7}")
    report.write_json(arguments.json, [row], DIGITS)
    if result["errors"]:
        raise SystemExit(f"FAILED: {result['errors']} groups had errors, one of them: {result['first_error']}")
    report.judge(missed(row))


if __name__ == "__main__":
    report.run(main)
