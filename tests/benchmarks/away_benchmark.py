#!/usr/bin/env python3
"""Steps per second of a group before one of its two servers is killed or stopped, while the server is away, and after it is back.

`mpirun -n 2 hooke-rank` trains lenet on Fashion-MNIST with two servers on this machine, under each rule without waits for other groups, with its
default interval. The second server is ended with SIGKILL, or stopped with SIGSTOP. Steps are counted for --seconds before that. They are counted
again for --seconds from 6 s after it, when the first exchange has waited for --exchange-timeout (5 s). The last count is for --seconds after the
server is back. The table has medians over the repetitions.
Asked: at least 0.95 of the steps per second while the server is away; otherwise the exit code is 1.
"""

import contextlib
import json
import os
import select
import signal
import statistics
import subprocess
import tempfile
import time

import report
import training_benchmark as training

INTERVALS = {"ELASTIC": 16, "ASYNC": 1, "SSP": 1, "DOWNPOUR": 16}
WAYS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
NOTICED_S = 6
LEAST = 0.95
DIGITS = {"before": 1, "away": 1, "after": 1, "share": 3}


class Server:
    """A hooke-server that can be ended and started again at the same address with the same state."""

    def __init__(self, arguments, folder, name, coordinator=None):
        self.arguments, self.name, self.listen = arguments, os.path.join(folder, name), "127.0.0.1:0"
        self.flags = [f"--coordinator={coordinator}"] if coordinator else []
        self.process = None
        self.start()

    def start(self):
        ready = self.name + ".ready"
        with contextlib.suppress(FileNotFoundError):
            os.remove(ready)
        command = [os.path.join(self.arguments.programs, "hooke-server"), f"--listen={self.listen}", f"--state-dir={self.name}", *self.flags]
        with open(self.name + ".log", "ab") as log:
            self.process = subprocess.Popen([*command, f"--ready-file={ready}", "--snapshot-interval=1s"], start_new_session=True, stdout=log, stderr=log)
        self.listen = report.wait_for_file(ready, self.process)

    def go(self, way):
        self.process.send_signal(WAYS[way])

    def come_back(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            time.sleep(0.2)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(0.5)
        if self.process.poll() is not None:
            self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGCONT)
        report.stop(self.process)


class Ranks:
    """A group that trains. `rate` reads rank 0's progress lines."""

    def __init__(self, process):
        self.process, self.rest = process, b""

    def _steps(self, deadline):
        """Yields (time, step) for each progress line of rank 0 until the deadline."""
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([self.process.stdout], [], [], min(left, 1))[0]:
                continue
            chunk = os.read(self.process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise SystemExit(f"FAILED: the ranks ended with status {self.process.wait()}")
            *lines, self.rest = (self.rest + chunk).split(b"\n")
            for line in lines:
                with contextlib.suppress(ValueError):
                    progress = json.loads(line).get("progress", {})
                    if int(progress.get("step", 0)) > 0:
                        yield time.monotonic(), int(progress["step"])

    def first_step(self, seconds=60):
        for _ in self._steps(time.monotonic() + seconds):
            return
        raise SystemExit(f"FAILED: no step within {seconds} s")

    def rate(self, seconds):
        """Returns the steps per second over the next `seconds` seconds."""
        moments = list(self._steps(time.monotonic() + seconds))
        if len(moments) < 2:
            return 0.0
        (begin, first), (end, last) = moments[0], moments[-1]
        return (last - first) / (end - begin)

    def skip(self, seconds):
        for _ in self._steps(time.monotonic() + seconds):
            pass


def start_file(arguments, folder, rule, seed, servers):
    path = training.start_file(folder, f"away-{rule.lower()}", arguments, 2, servers, seed)
    with open(path) as file:
        start = json.load(file)
    averaging = {"rule": rule, "interval": INTERVALS[rule], "alpha": 0.5, "quorum": 1}
    if rule == "SSP":
        averaging["stalenessBound"] = 16
    start["job"]["averaging"] = averaging
    with open(path, "w") as file:
        json.dump(start, file)
    return path


def measure(arguments, rule, way, seed):
    """Returns the steps per second before the second server is ended or stopped, while it is away, and after it is back."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        first = stack.enter_context(Server(arguments, folder, "first"))
        second = stack.enter_context(Server(arguments, folder, "second", first.listen))
        command = training.mpirun(arguments, 2, start_file(arguments, folder, rule, seed, [first.listen, second.listen]))
        process = stack.enter_context(report.started(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment))
        ranks = Ranks(process)
        ranks.first_step()
        ranks.skip(1)
        before = ranks.rate(arguments.seconds)
        second.go(way)
        ranks.skip(NOTICED_S)
        away = ranks.rate(arguments.seconds)
        second.come_back()
        ranks.skip(2)
        return before, away, ranks.rate(arguments.seconds)


def row_of(rule, way, measured):
    """Returns a row of the table. `measured` has (before, away, after) of each repetition."""
    row = {"benchmark": "away", "rule": rule.lower(), "way": way}
    for i, name in enumerate(("before", "away", "after")):
        row[name] = statistics.median(each[i] for each in measured)
    # The ratio is taken within each repetition, because the machine's load changes between them.
    row["share"] = statistics.median(each[1] / each[0] if each[0] else 0.0 for each in measured)
    return row


def missed(rows):
    """Returns one line for each requirement that was missed."""
    return [
        f"by {row['rule']} ({row['way']}) a group makes {report.text(row['share'], LEAST, 3)} of its steps per second while a server is away; "
        f"asked is at least {LEAST:g}"
        for row in rows
        if row["share"] < LEAST - report.NOISE
    ]


def add_options(parser):
    parser.add_argument("--seconds", type=float, default=8, help="of each of the three measurements (default 8)")
    parser.add_argument("--rules", default=",".join(rule.lower() for rule in INTERVALS), help="which of them, separated by commas (default all)")
    parser.add_argument("--train", default="/usr/share/datasets/fashion-mnist/train")
    parser.add_argument("--test", default="/usr/share/datasets/fashion-mnist/t10k")


def main():
    arguments = report.parse_arguments(__doc__, add_options, repetitions=3)
    arguments.model = "lenet"
    rows = []
    print(f"{'rule':<10}{'way':<6}{'before':>10}{'away':>10}{'after':>10}{'share':>8}   steps/s; away / before", flush=True)
    for rule in arguments.rules.upper().split(","):
        if rule not in INTERVALS:
            raise SystemExit(f"no rule {rule.lower()} that waits for nobody; there are {', '.join(each.lower() for each in INTERVALS)}")
        for way in WAYS:
            row = row_of(rule, way, [measure(arguments, rule, way, seed) for seed in range(1, arguments.repetitions + 1)])
            rows.append(row)
            print(f"{row['rule']:<10}{way:<6}{row['before']:>10.1f}{row['away']:>10.1f}{row['after']:>10.1f}{row['share']:>8.3f}", flush=True)
    report.write_json(arguments.json, rows, DIGITS)
    report.judge(missed(rows))


if __name__ == "__main__":
    report.run(main)
