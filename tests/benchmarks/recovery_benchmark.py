#!/usr/bin/env python3
"""How long a group stands still after each kind of failure, and what the other group does meanwhile.

Five hosts are network namespaces of this machine, without a limit for their links: a coordinator, a second server and three workers of two slots. A
job has two groups of two ranks; one slot pair is spare. A step is a rest of 10 ms and a collective, so a group's rate does not depend on the cores that
the other one leaves it. --repetitions times, each failure happens to the first group or to a server, and is mended after --mend seconds. Each
rank 0 writes down when its steps ended. Lost are the seconds from the failure until the first group's first step in a later start, or for failures that
end no group: the seconds that its steps are short of its usual rate. The rate of the other group is that in the same time, by its usual one; if a server
is away: in the time for which it is. Asked: nothing is lost but time, and the other group keeps 0.95 of its rate in the median. Needs root.
"""

import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import report
import step_times

TESTS = pathlib.Path(__file__).resolve().parents[1]
OTHERS_RATE = 0.95
USUAL_SECONDS = 3
SETTLE_SECONDS = 60
JOB = """name: recovery
command: [/usr/bin/python3, {script}]
environment: {{PYTHONPATH: "{package}", STEP_TIMES: "{steps}", PYTHONDONTWRITEBYTECODE: "1", OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1"}}
groups: {{count: 2, ranks: 2}}
averaging: {{rule: elastic, interval: 16}}
"""


class Watch:
    """Follows a job, and knows its last status."""

    def __init__(self, cluster, job_id):
        command = cluster.network.command(0, [str(cluster.programs / "hooke"), "watch", job_id, "--output=json", f"--coordinator={cluster.address}"])
        self.process = subprocess.Popen(command, env=cluster.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.lock, self.seen = threading.Lock(), (0.0, None)
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        for line in self.process.stdout:
            status = json.loads(line)
            if "groups" in status:
                with self.lock:
                    self.seen = (time.monotonic(), status)

    def group(self, number):
        """Returns (time, incarnation, worker) of a group as it was last seen; incarnation 0: it does not train."""
        with self.lock:
            when, status = self.seen
        if status is None:
            return when, 0, ""
        if status["state"] not in ("queued", "running"):
            raise SystemExit(f"FAILED: the job is {status['state']}: {status['reason']}")
        group = status["groups"][number]
        trains = group["state"] == "running" and int((group["progress"] or {}).get("step", 0)) > 0
        return when, group["incarnation"] if trains else 0, group["worker"]

    def end(self):
        self.process.kill()
        self.process.wait()
        self.thread.join()


def wait_for(what, condition, seconds=SETTLE_SECONDS):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise SystemExit(f"FAILED: {what}: not within {seconds} s")


class Steps:
    """The steps of both groups, whose usual rate is that of the last USUAL_SECONDS before `failed_at`."""

    def __init__(self, folder, starts, failed_at):
        self.folder, self.starts, self.failed_at = folder, starts, failed_at
        self.usual = [self.count(number, failed_at - USUAL_SECONDS, failed_at) / USUAL_SECONDS for number in (0, 1)]
        if min(self.usual) == 0:
            raise SystemExit(f"FAILED: a group makes no steps before the failure: {self.usual} a second")

    def count(self, number, begin, end):
        return step_times.between(step_times.starts(self.folder, number)[self.starts[number]], begin, end)

    def again(self):
        """Returns when the first group made its first step in a later start; None: not yet."""
        return step_times.first_after(step_times.starts(self.folder, 0), self.starts[0])

    def lost(self, end):
        """Returns the seconds until `end` for which the first group has no steps at its usual rate; at least 0."""
        return max(0.0, end - self.failed_at - self.count(0, self.failed_at, end) / self.usual[0])

    def others(self, end):
        """Returns the second group's rate from the failure until `end`, by its usual one. A group that has started again has none."""
        if step_times.first_after(step_times.starts(self.folder, 1), self.starts[1]) is not None:
            return 0.0
        return self.count(1, self.failed_at, end) / (end - self.failed_at) / self.usual[1]


class Trial:
    """One job's groups before a failure."""

    def __init__(self, watch, folder):
        begun = time.monotonic()
        wait_for("both groups train", lambda: all(when > begun and start > 0 for when, start, _ in map(watch.group, (0, 1))))
        starts = [watch.group(number)[1] for number in (0, 1)]
        time.sleep(USUAL_SECONDS)
        self.steps = Steps(folder, starts, time.monotonic())

    def started_again(self):
        """Returns the seconds until the first group trains in a later start, and the other group's part of its rate."""
        again = wait_for("group 0 trains again", self.steps.again)
        return again - self.steps.failed_at, self.steps.others(again)

    def went_on(self, seconds, away=None):
        """Returns the seconds that the first group has lost once `seconds` have passed, and the other group's part of its rate in the first `away`
        of them; None: in all."""
        end = self.steps.failed_at + seconds
        time.sleep(max(0, end - time.monotonic()))
        again = self.steps.again()
        lost = self.steps.lost(end) if again is None else again - self.steps.failed_at
        return lost, self.steps.others(end if away is None else self.steps.failed_at + away)


class Failures:
    """The kinds of failure, each a method that returns what Trial measured."""

    def __init__(self, cluster, watch, steps, mend):
        self.cluster, self.watch, self.steps, self.seconds = cluster, watch, steps, mend

    def trial(self):
        return Trial(self.watch, self.steps)

    def host(self):
        return int(self.watch.group(0)[2][1:])

    def process(self, *names):
        for pid in self.cluster.network._processes(self.host()):
            if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() in names:
                return pid
        raise SystemExit(f"FAILED: no {names[0]} on the host of group 0")

    def rank_killed(self):
        trial = self.trial()
        os.kill(self.process("python3"), signal.SIGKILL)
        return trial.started_again()

    def mpirun_killed(self):
        trial = self.trial()
        os.kill(self.process("mpirun", "mpirun.openmpi", "orterun"), signal.SIGKILL)
        return trial.started_again()

    def worker_drained(self):
        trial, name = self.trial(), f"n{self.host()}"
        self.cluster.hooke("drain", name, "--now")
        measured = trial.started_again()
        self.cluster.hooke("drain", name, "--undo")
        return measured

    def worker_ends(self):
        return self.without_worker(lambda worker: worker.send_signal(signal.SIGTERM))

    def worker_killed(self):
        return self.without_worker(lambda worker: worker.kill())

    def without_worker(self, end):
        trial, host = self.trial(), self.host()
        worker = self.cluster.workers[f"n{host}"]
        end(worker)
        measured = trial.started_again()
        worker.wait()
        self.cluster.start_worker(host, wait=False)
        wait_for("the worker is back", lambda: self.cluster.node(f"n{host}")["alive"])
        return measured

    def host_cut_off(self):
        trial, host = self.trial(), self.host()
        self.cluster.network.cut(host)
        measured = trial.started_again()
        self.cluster.network.join(host)
        wait_for("the worker is back", lambda: self.cluster.node(f"n{host}")["alive"])
        return measured

    def rank_stopped(self):
        trial = self.trial()
        pid = self.process("python3")
        os.kill(pid, signal.SIGSTOP)
        time.sleep(self.seconds)
        os.kill(pid, signal.SIGCONT)
        return trial.went_on(self.seconds + 2)

    def server_killed(self):
        trial = self.trial()
        self.cluster.second.kill()
        self.cluster.second.wait()
        time.sleep(self.seconds)
        self.cluster.start_second()
        return trial.went_on(self.seconds + 5, self.seconds)

    def coordinator_killed(self):
        trial = self.trial()
        self.cluster.server.kill()
        self.cluster.server.wait()
        time.sleep(self.seconds)
        self.cluster.start_server()
        return trial.went_on(self.seconds + 5, self.seconds)


KINDS = {
    "rank_killed": "a rank is killed",
    "mpirun_killed": "mpirun is killed",
    "worker_drained": "a worker is drained",
    "worker_ends": "a worker gets SIGTERM",
    "worker_killed": "a worker is killed",
    "host_cut_off": "a worker's host is cut off",
    "rank_stopped": "a rank is stopped for a while",
    "server_killed": "a server is killed and starts again",
    "coordinator_killed": "the coordinator, a server too, is killed and starts again",
}


def row_of(kind, trials):
    """Returns a row of the table. `trials` has (seconds, other group's part of its rate) of each trial."""
    seconds, rates = [one for one, _ in trials], [rate for _, rate in trials]
    return {
        "benchmark": "recovery",
        "failure": kind,
        "trials": len(trials),
        "median_s": statistics.median(seconds),
        "worst_s": max(seconds),
        "others_median": statistics.median(rates),
        "others_lowest": min(rates),
    }


def missed(rows):
    """Returns one line for each requirement that was missed."""
    return [
        f"{row['failure']}: the other group made {report.text(row['others_median'], OTHERS_RATE)} of its usual steps; asked is at least {OTHERS_RATE:g}"
        for row in rows
        if row["others_median"] < OTHERS_RATE
    ]


def add_options(parser):
    parser.add_argument("--mend", type=float, default=2, help="seconds until a stopped rank goes on, or a server starts again (default 2)")
    parser.add_argument("--failure", choices=sorted(KINDS), action="append", help="only this kind; may be given several times")


def run_all(arguments):
    # The modules of the other folder look for the programs in bin/.
    os.chdir(pathlib.Path(arguments.programs).resolve().parent)
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(TESTS / "several_hosts")]
    import hosts
    import support
    from host_cluster import HostCluster

    if missing := hosts.missing():
        raise SystemExit(f"FAILED: {missing}")
    with tempfile.TemporaryDirectory(prefix="hooke-") as folder, hosts.Hosts(5, folder, rate=None) as network:
        cluster = HostCluster(network, folder, worker_hosts=range(2, 5))
        cluster.programs = support.PROGRAMS
        try:
            cluster.start_second()
            steps = pathlib.Path(folder, "steps")
            steps.mkdir()
            package = f"{TESTS.parent / 'python'}:{TESTS / 'benchmarks'}"
            job_id = cluster.submit(JOB.format(script=TESTS / "benchmarks" / "paced_rank.py", package=package, steps=steps))
            watch = Watch(cluster, job_id)
            try:
                failures = Failures(cluster, watch, steps, arguments.mend)
                for kind in arguments.failure or KINDS:
                    yield row_of(kind, [getattr(failures, kind)() for _ in range(arguments.repetitions)])
            finally:
                watch.end()
            cluster.hooke("cancel", job_id)
        finally:
            cluster.end()


def main():
    arguments = report.parse_arguments(__doc__, add_options, repetitions=20)
    rows = []
    print(f"{'failure':<58} {'trials':>6} {'median':>8} {'worst':>8}   other group: median, lowest", flush=True)
    for row in run_all(arguments):
        rows.append(row)
        print(
            f"{KINDS[row['failure']]:<58} {row['trials']:>6} {row['median_s']:>6.2f} s {row['worst_s']:>6.2f} s   "
            f"{row['others_median']:.2f} {row['others_lowest']:.2f}",
            flush=True,
        )
    report.write_json(arguments.json, rows, {"median_s": 3, "worst_s": 3, "others_median": 3, "others_lowest": 3})
    report.judge(missed(rows))


if __name__ == "__main__":
    report.run(main)
