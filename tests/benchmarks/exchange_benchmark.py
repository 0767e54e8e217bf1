#!/usr/bin/env python3
"""Compares an elastic exchange of Hooke with the same bytes over plain sockets and over unary gRPC, alternating in one run, on loopback TCP.

`hooke`: ranks exchange their slices of a center with real hooke-servers, over TCP without gRPC. --ways can add `hooke-unix` and `hooke-grpc`.
The first uses Unix sockets, as ranks on a server's host do. The second uses gRPC, as ranks do that can reach only gRPC's port. `sockets`: the
same slices go to servers that copy each byte once and send it back. Each pair of rank and server has a connection, and nothing is parsed.
`grpc-unary`: one call for each pair, with a field of bytes each way. Ranks and servers are processes that sleep while others are timed. For
each size all ways check their answers; then they take turns, round by round. An exchange's time is the slowest rank's, from a barrier on.
bytes_per_s counts the vector twice, because it goes to the servers and comes back.
Asked of `hooke`, in each layout: from 64 MiB on, 0.7 times the bytes per second of `sockets` and 3 times those of `grpc-unary`. At 1 MiB, 0.5
times those of `sockets`. At 4 KiB, a median time under 3 times that of `sockets`. Otherwise the exit code is 1. The last line names what
--quick had no time for.
"""

import argparse
import contextlib
import os
import statistics
import tempfile
import time

import ranks
import report

SIZES = [4 << 10, 1 << 20, 64 << 20, 256 << 20]
QUICK_SIZES = [4 << 10, 1 << 20, 64 << 20]
LAYOUTS = [(count, servers) for servers in (1, 2) for count in (1, 2, 4)]
QUICK_LAYOUTS = [(1, 1), (2, 2)]
WAYS = ["hooke", "sockets", "grpc-unary"]
ROUNDS, QUICK_ROUNDS = 5, 3
# (rival, least size, largest size, least ratio of bytes per second to the rival's): docs/benchmarks.md.
ASKED = [("sockets", 64 << 20, float("inf"), 0.7), ("grpc-unary", 64 << 20, float("inf"), 3), ("sockets", 1 << 20, 1 << 20, 0.5), ("sockets", 4 << 10, 4 << 10, 1 / 3)]
# The time limit of --quick. The output names sizes that were left out.
QUICK_SECONDS = 33
SHARED_MEMORY = "/dev/shm"
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def numbers(text):
    return [int(word) for word in text.split(",")]


def parse():
    parser = argparse.ArgumentParser(prog="tests/benchmarks/run exchange", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--json", metavar="FILE", help="append one JSON object per line to FILE")
    parser.add_argument("--ranks", type=numbers, help="only these numbers of ranks (default 1,2,4)")
    parser.add_argument("--servers", type=numbers, help="only these numbers of servers (default 1,2)")
    parser.add_argument("--sizes", type=numbers, help="bytes of the vector")
    parser.add_argument("--ways", type=lambda text: text.split(","), default=WAYS, help="these of hooke, hooke-unix, hooke-grpc, sockets, grpc-unary (default hooke,sockets,grpc-unary)")
    parser.add_argument("--seconds", type=float, help="time for each way at each size (default 2; 0.4 with --quick)")
    parser.add_argument("--quick", action="store_true", help="few sizes and layouts: under 40 s")
    arguments = parser.parse_args()
    quick = arguments.quick
    arguments.layouts = [
        (count, servers)
        for count, servers in (QUICK_LAYOUTS if quick else LAYOUTS)
        if count in (arguments.ranks or [count]) and servers in (arguments.servers or [servers])
    ]
    arguments.sizes = [max(4, size // 4 * 4) for size in arguments.sizes or (QUICK_SIZES if quick else SIZES)]
    arguments.seconds = arguments.seconds or (0.4 if quick else 2)
    arguments.rounds = QUICK_ROUNDS if quick else ROUNDS
    return arguments


class Servers:
    """A context manager: the server processes of one way."""

    def __init__(self, programs, way, count, folder):
        self.addresses, self.processes, self.stack = [], [], contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            for index in range(count):
                own = os.path.join(folder, f"{way}-server-{index}")
                os.mkdir(own)
                ready = os.path.join(own, "ready")
                if way.startswith("hooke"):
                    command = [os.path.join(programs, "hooke-server"), "--listen=127.0.0.1:0", f"--state-dir={own}/state", f"--ready-file={ready}"]
                    # No server writes a snapshot while others are timed.
                    command += ["--snapshot-interval=8760h", "--log-level=warning"]
                    if index > 0:
                        command.append(f"--coordinator={self.addresses[0]}")
                else:
                    command = [os.path.join(programs, "rival_server"), f"--way={way}", f"--ready-file={ready}"]
                with open(os.path.join(own, "log"), "wb") as log:
                    self.processes.append(stack.enter_context(report.started(command, stdout=log, stderr=log)))
                self.addresses.append(report.wait_for_file(ready, self.processes[-1]))
            self.stack = stack.pop_all()

    def cpu_seconds(self):
        """Returns the CPU seconds of all servers since they started, in user and system mode."""
        ticks = 0
        for process in self.processes:
            with open(f"/proc/{process.pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / TICKS_PER_SECOND

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()


class Way:
    """The ranks and servers of one way, and their times at the current size."""

    def __init__(self, stack, arguments, name, layout, folder):
        self.name, (count, servers) = name, layout
        self.servers = stack.enter_context(Servers(arguments.programs, name, servers, folder))
        command = [os.path.join(arguments.programs, "exchange_rank"), f"--way={name}", f"--ranks={count}"]
        command += [f"--server={address}" for address in self.servers.addresses]
        self.ranks = stack.enter_context(ranks.Ranks(name, [[*command, f"--rank={rank}"] for rank in range(count)], count, folder))

    def prepare(self, size):
        """Checks the answers at this size."""
        self.us, self.cpu_seconds = [], 0.0
        self.first_us = self.ranks.prepare("exchange", size // 4)[0]["us"]

    def run(self, seconds):
        expected = statistics.median(self.us) if self.us else self.first_us / 2
        calls = int(min(2000, max(1, seconds * 1e6 / max(expected, 1))))
        warmups = 1 if expected < 2e5 else 0
        before = self.servers.cpu_seconds()
        self.us += self.ranks.time(0, calls, warmups)
        # Leave out the warm-up calls' share of the CPU time.
        self.cpu_seconds += (self.servers.cpu_seconds() - before) * calls / (calls + warmups)

    def row(self, size, layout):
        median = statistics.median(self.us)
        p99 = sorted(self.us)[(len(self.us) * 99 - 1) // 100]
        moved = 2 * size * len(self.us)
        # The kernel counts CPU time in ticks, and a few ticks are too inexact.
        cpu = self.cpu_seconds / (moved / 2**30) if self.cpu_seconds >= 0.1 else None
        return {
            "benchmark": "exchange", "impl": self.name, "bytes": size, "servers": layout[1], "ranks": layout[0],
            "median_ms": median / 1e3, "p99_ms": p99 / 1e3, "bytes_per_s": 2 * size / median * 1e6,
            "server_cpu_s_per_gib": cpu, "calls": len(self.us),
        }  # fmt: skip


def show(rows):
    by_name = {row["impl"]: row for row in rows}
    for row in rows:
        cpu = row["server_cpu_s_per_gib"]
        line = f"{row['bytes']:10}  {row['impl']:11} {row['median_ms']:10.3f} {row['p99_ms']:10.3f} {row['bytes_per_s'] / 1e9:7.2f}"
        line += f" {'-' if cpu is None else format(cpu, '.2f'):>9}"
        for rival in WAYS[1:]:
            known = row["impl"].startswith("hooke") and rival in by_name
            line += f" {row['bytes_per_s'] / by_name[rival]['bytes_per_s']:11.2f}" if known else f" {'':>11}"
        print(line.rstrip(), flush=True)


def where(layout, size):
    return f"{layout[0]} ranks, {layout[1]} servers, {size} bytes"


def asked_at(size):
    """Returns the (rival, least ratio) required at that size."""
    return [(rival, least) for rival, low, high, least in ASKED if low <= size <= high]


def compared(rows):
    """Yields (where, rival, hooke's ratio to it, least ratio) for each requirement on the ways and sizes that ran."""
    measured = {(row["ranks"], row["servers"], row["bytes"], row["impl"]): row for row in rows}
    for (ranks_count, servers, size, impl), row in measured.items():
        for rival, least in asked_at(size):
            other = measured.get((ranks_count, servers, size, rival))
            if impl == "hooke" and other is not None:
                yield where((ranks_count, servers), size), rival, other["median_ms"] / row["median_ms"], least


def not_compared(skipped, ways):
    """Returns one line for each of `skipped` that has a requirement with these ways. `skipped` has the (layout, size) left out for lack of time."""
    return [
        f"{where(layout, size)}: no time for it"
        for layout, size in skipped
        if "hooke" in ways and any(rival in ways for rival, _ in asked_at(size))
    ]


def missed(rows):
    """Returns one line for each requirement that was missed."""
    return [
        f"{where}: hooke has {report.text(ratio, least)} times the bytes per second of {rival}; asked is at least {least:.2f}"
        for where, rival, ratio, least in compared(rows)
        if ratio < least
    ]


def run_layout(arguments, layout, deadline):
    """Returns the table's rows, and the sizes left out for lack of time."""
    rows, skipped = [], []
    print(f"\nexchange: {layout[0]} ranks, {layout[1]} servers, loopback TCP, {os.cpu_count()} cores")
    print(f"{'bytes':>10}  {'impl':11} {'median ms':>10} {'p99 ms':>10} {'GB/s':>7} {'CPU s/GiB':>9} {'x sockets':>11} {'x unary':>11}", flush=True)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=f"hooke-{os.getpid()}-", dir=SHARED_MEMORY))
        ways = [Way(stack, arguments, name, layout, folder) for name in arguments.ways]
        for size in arguments.sizes:
            if time.monotonic() > deadline:
                print(f"SKIPPED: {size} bytes: the time of --quick is used up; is the machine busy?", flush=True)
                skipped.append(size)
                continue
            for way in ways:
                way.prepare(size)
            for _ in range(arguments.rounds):
                for way in ways:
                    way.run(arguments.seconds / arguments.rounds)
            rows += [way.row(size, layout) for way in ways]
            show(rows[-len(ways) :])
    report.write_json(arguments.json, rows, {"median_ms": 4, "p99_ms": 4, "bytes_per_s": None, "server_cpu_s_per_gib": 3})
    return rows, skipped


def main():
    arguments = parse()
    start, rows, skipped = time.monotonic(), [], []
    for number, layout in enumerate(arguments.layouts, 1):
        deadline = start + QUICK_SECONDS * number / len(arguments.layouts) if arguments.quick else float("inf")
        try:
            more, left_out = run_layout(arguments, layout, deadline)
            rows, skipped = rows + more, skipped + [(layout, size) for size in left_out]
        except ranks.Failed as failure:
            raise SystemExit(f"FAILED: {failure}") from None
    unjudged = not_compared(skipped, arguments.ways)
    # Only with --quick may a requirement stay unjudged.
    report.judge(missed(rows) + ([] if arguments.quick else unjudged), asked=any(compared(rows)), not_judged=unjudged if arguments.quick else ())


if __name__ == "__main__":
    report.run(main)
