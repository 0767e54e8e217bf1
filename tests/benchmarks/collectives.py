"""Compares a collective operation of Hooke with that of other libraries, alternating in one run. Called by <operation>_benchmark.py.

Each library's ranks are started once per layout (--ranks on --hosts) and sleep while others are timed. For each size all libraries check their
results; then they take turns, round by round. Before each call every rank writes its values. A call's time is the slowest rank's, from a barrier
that all libraries use. If a library has several ways (MPI_Bcast and MPI_Ibcast; Gloo's algorithms), each is timed and the best counts. Hosts are
network namespaces with links of 1 Gbit/s.
docs/collectives.md explains the limit and lists the requirements; if one is missed the exit code is 1.
"""

import argparse
import contextlib
import functools
import math
import os
import sys
import tempfile
import time

import hosts
import mpi_libraries
import ranks
import report
import summary

# Most powers of two follow one or two other sizes. The algorithm chosen for a power of two must suit these sizes, too.
SIZES = [4, 64, 1 << 10, 3000, 1 << 12, 12000, 1 << 14, 48000, 1 << 16, 200000, 1 << 18, 700000, 1 << 20]
SIZES += [3000000, 4 * 1000003, 1 << 22, 6650000, 1 << 23, 10000000, 1 << 24, 1 << 26]
QUICK_SIZES = [4, 1 << 14, 48000, 1 << 16, 1 << 20, 4 * 1000003, 1 << 24]
ROUNDS, QUICK_ROUNDS = 5, 3
# With --quick, the largest size between hosts. Larger ones would take a quarter of a second per call.
QUICK_NETWORK_BYTES = 1 << 22
# The time limit of --quick. On a busy machine a library that spins may take a hundred times as long. The output names
# sizes that were left out.
QUICK_SECONDS = 34
MBIT = 1000
# The goodput of the links is measured with the bytes that cross a link at the given size, but with at least this many.
GOODPUT_BYTES_MIN = 1 << 20
PORT = 29500
SHARED_MEMORY = "/dev/shm"
CORES = len(os.sched_getaffinity(0))


def numbers(text):
    return [int(word) for word in text.split(",")]


def parse(operation):
    parser = argparse.ArgumentParser(prog=f"tests/benchmarks/run {operation}", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--json", metavar="FILE", help="append one JSON object per line to FILE")
    parser.add_argument("--ranks", type=numbers, help="numbers of ranks, over all hosts (default 2,3,4,8)")
    parser.add_argument("--hosts", type=numbers, help="numbers of hosts (default 1,2,4); on more than one, those of --ranks that are 1 or 2 per host")
    parser.add_argument("--sizes", type=numbers, help="bytes of each rank's values")
    parser.add_argument("--mbit", type=int, default=MBIT, help="rate of the links between hosts (default 1000); at other rates nothing is judged")
    parser.add_argument("--rails", type=int, choices=(1, 2), default=1, help="networks between the hosts (default 1); with 2 nothing is judged")
    parser.add_argument("--impls", type=lambda text: text.split(","), help="only these of hooke, openmpi, openmpi-tuned, mpich, gloo")
    parser.add_argument("--mpi", metavar="FOLDER", action="append", default=[], help="also the MPI library of this virtual environment (may be repeated)")
    parser.add_argument("--seconds", type=float, help="time for each way at each size (default 0.4; 0.05 with --quick)")
    parser.add_argument("--row", type=int, default=1, help="take the time of so many calls one after the other, from one barrier; not judged (default 1)")
    parser.add_argument("--quick", action="store_true", help="few sizes, 2 ranks, 1 and 2 hosts: under 40 s")
    arguments = parser.parse_args()
    if arguments.row < 1:
        parser.error("--row must be at least 1")
    if not 1 <= arguments.mbit <= 100000:
        parser.error("--mbit must be from 1 to 100000")
    quick = arguments.quick
    arguments.ranks = arguments.ranks or ([2] if quick else [2, 3, 4, 8])
    arguments.hosts = arguments.hosts or ([1, 2] if quick else [1, 2, 4])
    arguments.sizes = [max(4, size // 4 * 4) for size in arguments.sizes or (QUICK_SIZES if quick else SIZES)]
    arguments.seconds = arguments.seconds or (0.05 if quick else 0.4)
    arguments.rounds = QUICK_ROUNDS if quick else ROUNDS
    try:
        arguments.libraries = [mpi_libraries.Library(folder) for folder in arguments.mpi]
    except mpi_libraries.Unusable as error:
        parser.error(f"--mpi: {error}")
    return arguments


def layouts(arguments):
    """Returns the (ranks, hosts) of each table."""
    return [(r, h) for h in arguments.hosts for r in arguments.ranks if r > 1 and (h == 1 or r in (h, 2 * h))]


class Layout:
    """A number of ranks on a number of hosts, and the commands that start programs there."""

    def __init__(self, programs, count, host_count, folder, network):
        self.programs, self.count, self.host_count, self.folder, self.network = programs, count, host_count, folder, network
        self.addresses = network.addresses if network else ["127.0.0.1"]
        # If each rank can have a core, ranks are bound. Otherwise results would depend on where the kernel puts them.
        self.a_core_each = not network and count <= CORES

    def program(self, name):
        return os.path.join(self.programs, name)

    def on_host(self, host, command):
        return self.network.command(host, command) if self.network else command

    def openmpi(self, *options):
        command = ["mpirun.openmpi", "-n", str(self.count)]
        # Open MPI's files are in our folder, so that those of a killed run are removed with it.
        command += ["--mca", "orte_tmpdir_base", self.folder, "--mca", "btl_vader_backing_directory", self.folder]
        if os.geteuid() == 0:
            command.append("--allow-run-as-root")
        # Open MPI takes each host for a separate machine, so binding would put the ranks of all hosts on the same
        # cores.
        command += ["--bind-to", "core"] if self.a_core_each else ["--oversubscribe", "--bind-to", "none"]
        # Open MPI sets this itself when it sees too few cores, but it takes our hosts for machines with their own
        # cores.
        if self.count > CORES:
            command += ["--mca", "mpi_yield_when_idle", "1"]
        if self.network:
            command += self.network.openmpi(self.count // self.host_count)
        return self.on_host(0, [*command, *options])

    def mpich(self):
        command = ["mpirun.mpich", "-n", str(self.count)]
        if self.a_core_each:
            command += ["-bind-to", "core"]
        if self.network:
            command += self.network.mpich(self.count // self.host_count)
        return self.on_host(0, command)

    def each_rank(self, name, options):
        """Returns the commands that start one process per rank, without MPI."""
        each = self.count // self.host_count
        return [
            self.on_host(rank // each, [self.program(name), f"--rank={rank}", f"--size={self.count}", *options(self.addresses[rank // each])])
            for rank in range(self.count)
        ]

    def start_library(self, library):
        """Starts the ranks of an MPI library other than Debian's, on one host."""
        command = [*library.command(self.count, self.a_core_each, self.count > CORES), self.program(library.program), f"--name={library.name}"]
        return ranks.Ranks(library.name, [command], self.count, self.folder, library.environment(self.folder))

    def start(self, impl):
        commands, environment = getattr(self, "_" + impl.replace("-", "_"))()
        count = self.host_count if impl == "limit" and self.network else self.count
        return ranks.Ranks(impl, commands, count, self.folder, environment)

    def _hooke(self):
        return [[*self.openmpi(), self.program("hooke_rank")]], None

    def _openmpi(self):
        return [[*self.openmpi(), self.program("openmpi_rank"), "--name=openmpi", "--ring"]], None

    def _openmpi_tuned(self):
        return [[*self.openmpi("--mca", "btl_tcp_links", "4"), self.program("openmpi_rank"), "--name=openmpi-tuned"]], None

    def _mpich(self):
        # UCX sees that the namespaces are one machine and would use shared memory, so it is told to use the network.
        cards = ",".join(f"eth{rail}" for rail in range(self.network.rails)) if self.network else None
        environment = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": cards} if self.network else None
        return [[*self.mpich(), self.program("mpich_rank"), "--name=mpich"]], environment

    def _gloo(self):
        store = os.path.join(self.folder, "gloo-store")
        os.mkdir(store)
        return self.each_rank("gloo_rank", lambda address: [f"--store={store}", f"--address={address}"]), None

    def _limit(self):
        if not self.network:
            commands = self.each_rank("limit_rank", lambda address: [f"--memory={self.folder}/limit-memory"])
            if self.a_core_each:
                cores = sorted(os.sched_getaffinity(0))
                commands = [["taskset", "--cpu-list", str(core), *command] for core, command in zip(cores, commands)]
            return commands, None
        commands = []
        for host, address in enumerate(self.addresses):
            after = self.addresses[(host + 1) % self.host_count]
            options = [f"--rank={host}", f"--size={self.host_count}", f"--address={address}", f"--next={after}", f"--port={PORT}"]
            commands.append(self.on_host(host, [self.program("limit_rank"), *options]))
        return commands, None


def median(values):
    return sorted(values)[len(values) // 2]


def percentile99(values):
    return sorted(values)[(len(values) * 99 - 1) // 100]


def crossing_bytes(operation, host_count, size):
    """Returns the least number of bytes that each link must carry, in its busier direction."""
    return 2 * (host_count - 1) / host_count * size if operation == "allreduce" else size


def limit_bytes(operation, host_count, size):
    """Returns the number of bytes with which limit_rank measures the limit."""
    return max(int(crossing_bytes(operation, host_count, size)), GOODPUT_BYTES_MIN) if host_count > 1 else size


def limit_us(operation, layout, size, measured):
    """Returns the least possible time. On one host `measured` is the time to read and rewrite all ranks' values once. Between hosts it is the time to
    move limit_bytes over each link both ways."""
    n, h = layout.count, layout.host_count
    if h > 1:
        return crossing_bytes(operation, h, size) / limit_bytes(operation, h, size) * measured
    # `moved` counts reads and writes of `size` bytes each. The measurement made n reads and n writes.
    moved = {"allreduce": 2 * n, "broadcast": n, "reduce": n + 1}[operation]
    return moved / (2 * n) * measured


class Way:
    """One way to run an operation and its times."""

    def __init__(self, group, index, rival):
        self.group, self.index = group, index
        self.name, self.correct, self.first_us = rival["name"], rival["correct"], rival["us"]
        self.impl = self.name.split("/")[0]
        self.us = []

    def run(self, seconds, row):
        share = seconds * 1e6 / row
        # The first call is slower than later ones. So its time is halved until there are others.
        expected = median(self.us) if self.us else self.first_us / 2
        calls = int(min(400, max(1, share / max(expected, 1))))
        self.us += self.group.time(self.index, calls, 1 if expected < 2e4 else 0, row)


def measure(groups, operation, size, arguments, host_count, failures):
    """Returns all libraries' ways with their times, including the limit's."""
    ways = []

    def guarded(group, action):
        try:
            return action()
        except ranks.Failed as failure:
            print(f"FAILED at {size} bytes: {failure}", file=sys.stderr, flush=True)
            failures.append(str(failure))
            group.stop()
            groups.remove(group)
            ways[:] = [way for way in ways if way.group is not group]
            return []

    for group in list(groups):
        bytes_here = limit_bytes(operation, host_count, size) if group.name == "limit" else size
        prepared = guarded(group, lambda: group.prepare(operation, bytes_here // 4))
        ways += [Way(group, index, rival) for index, rival in enumerate(prepared)]
    for _ in range(arguments.rounds):
        for way in list(ways):
            if way in ways:
                guarded(way.group, lambda: way.run(arguments.seconds / arguments.rounds, arguments.row))
    return ways


def best_by_impl(ways):
    best = {}
    for way in ways:
        # A way with wrong results never wins over a correct one.
        key = (not way.correct, median(way.us))
        if way.impl not in best or key < best[way.impl][0]:
            best[way.impl] = (key, way)
    return {impl: way for impl, (_, way) in best.items()}


class Table:
    def __init__(self, operation, layout, arguments):
        self.operation, self.layout, self.json_path, self.row = operation, layout, arguments.json, arguments.row
        self.rows = []
        kind = "memory" if layout.host_count == 1 else "goodput"
        row = f"; {self.row} calls in a row" if self.row > 1 else ""
        print(f"\n{operation}: {layout.count} ranks on {layout.host_count} host{'s' * (layout.host_count > 1)} ({CORES} cores); limit: {kind}{row}")
        print(f"{'bytes':>9}  {'impl':22} {'median us':>11} {'p99 us':>11} {'GB/s':>7} {'of limit':>8} {'best rival/this':>15}", flush=True)

    def add(self, size, ways):
        best = best_by_impl(ways)
        limit = None
        for name in ("memory", "goodput"):
            if name in best:
                limit = limit_us(self.operation, self.layout, size, median(best.pop(name).us))
        rivals = [median(way.us) for impl, way in best.items() if not impl.startswith("hooke") and way.correct]
        rows = []
        for impl, way in sorted(best.items(), key=lambda item: median(item[1].us)):
            us = median(way.us)
            share = f"{limit / us:8.2f}" if limit else f"{'-':>8}"
            ratio = f"{min(rivals) / us:15.2f}" if rivals else f"{'-':>15}"
            wrong = "" if way.correct else "  WRONG RESULT"
            print(f"{size:9}  {way.name:22} {us:11.1f} {percentile99(way.us):11.1f} {size / us / 1e3:7.2f} {share} {ratio}{wrong}")
            rows.append({
                "benchmark": self.operation, "impl": impl, "ranks": self.layout.count, "hosts": self.layout.host_count, "bytes": size,
                "median_us": us, "p99_us": percentile99(way.us), "correct": way.correct,
                "limit_us": limit, "row": self.row,
            })  # fmt: skip
        print(flush=True)
        report.write_json(self.json_path, rows, {"median_us": 2, "p99_us": 2, "limit_us": 2})
        self.rows += rows
        return [f"{way.name} at {size} bytes: wrong result" for way in ways if not way.correct]


def links(host_count, folder, mbit, rails):
    """Returns hosts with links of such a rate in so many networks. A slower link lets less pass at once after idle time, in proportion."""
    if mbit == MBIT:
        return hosts.Hosts(host_count, folder, rails=rails)
    return hosts.Hosts(host_count, folder, rate=f"{mbit}mbit", burst=f"{max(16, 128 * mbit // MBIT)}kb", rails=rails)


def run_layout(operation, arguments, count, host_count, deadline):
    """Returns the failures, the table's rows, and the sizes left out for lack of time."""
    failures, skipped = [], []
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=f"hooke-{os.getpid()}-", dir=SHARED_MEMORY))
        network = stack.enter_context(links(host_count, folder, arguments.mbit, arguments.rails)) if host_count > 1 else None
        layout = Layout(arguments.programs, count, host_count, folder, network)
        impls = ["hooke", "openmpi", "mpich", "gloo"] + (["openmpi-tuned"] if network else [])
        chosen = ["limit"] + [impl for impl in impls if not arguments.impls or impl in arguments.impls]
        starts = [functools.partial(layout.start, impl) for impl in chosen]
        if not network:
            starts += [functools.partial(layout.start_library, library) for library in arguments.libraries]
        groups = []
        for start in starts:
            try:
                groups.append(stack.enter_context(start()))
            except ranks.Failed as failure:
                print(f"FAILED to start: {failure}", file=sys.stderr, flush=True)
                failures.append(str(failure))
        table = Table(operation, layout, arguments)
        for size in arguments.sizes:
            if arguments.quick and network and size > QUICK_NETWORK_BYTES:
                skipped.append(size)
                continue
            if time.monotonic() > deadline:
                print(f"SKIPPED: {size} bytes: the time of --quick is used up; is the machine busy?", flush=True)
                skipped.append(size)
                continue
            failures += table.add(size, measure(groups, operation, size, arguments, host_count, failures))
        print("\n".join(summary.lines(table.rows)), flush=True)
    return failures, table.rows, skipped


def main(operation):
    arguments = parse(operation)
    failures, rows, not_judged = [], [], []
    start, chosen = time.monotonic(), layouts(arguments)
    for number, (count, host_count) in enumerate(chosen, 1):
        deadline = start + QUICK_SECONDS * number / len(chosen) if arguments.quick else math.inf
        reason = hosts.missing() if host_count > 1 else None
        if reason:
            print(f"\nSKIPPED: {count} ranks on {host_count} hosts: {reason}", flush=True)
            not_judged.append(f"{summary.where(operation, count, host_count)}: {reason}")
        else:
            failed, more, skipped = run_layout(operation, arguments, count, host_count, deadline)
            failures, rows = failures + failed, rows + more
            if skipped:
                not_judged.append(f"{summary.where(operation, count, host_count)}: no time for {', '.join(map(str, skipped))} bytes")
    if failures:
        raise SystemExit(f"{len(failures)} failures:\n" + "\n".join(failures))
    if arguments.row > 1 or arguments.mbit != MBIT or arguments.rails > 1:
        rows = []  # Requirements hold for single calls at 1 Gbit/s in one network only.
    ours = not arguments.impls or "hooke" in arguments.impls
    report.judge(summary.missed(rows, CORES), asked=any(summary.judged(rows, CORES)), not_judged=not_judged if ours else ())
