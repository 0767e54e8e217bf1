#!/usr/bin/env python3
"""How long a group stands still after each kind of failure, and what the other group does meanwhile.

Five hosts are network namespaces of this machine, without a limit for their links: a coordinator, a second server and three workers of two slots. A
job has two groups of two ranks; one slot pair is spare. A step is a rest of 10 ms and a collective, so a group's rate does not depend on the cores that
the other one leaves it. --repetitions times, each failure happens to the first group or to a server, and is mended after --mend seconds. Lost are the
seconds in which the first group made no new steps, from the failure until it trains again in a later start, or for failures that end no group: the
seconds that its steps are short of its usual rate. The rate of the other group is that in the same time, by its usual one; if a server is away: in the
time for which it is. Asked: nothing is lost but time, and the other group keeps 0.95 of its rate in the median. Needs root.
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

TESTS = pathlib.Path(__file__).resolve().parents[1]
OTHERS_RATE = 0.95
USUAL_SECONDS = 2
SETTLE_SECONDS = 60
JOB = """name: recovery
command: [/usr/bin/python3, {script}]
environment: {{PYTHONPATH: {package}, PYTHONDONTWRITEBYTECODE: "1", OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1"}}
groups: {{count: 2, ranks: 2}}
averaging: {{rule: elastic, interval: 16}}
"""


class Watch:
    """Follows a job. `seen` is the last status, with the time at which it came; `moved` says for each group when a status first had its present step."""

    def __init__(self, cluster, job_id):
        command = cluster.network.command(0, [str(cluster.programs / "hooke"), "watch", job_id, "--output=json", f"--coordinator={cluster.address}"])
        self.process = subprocess.Popen(command, env=cluster.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.lock, self.seen, self.moved = threading.Lock(), (0.0, None), {}
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        for line in self.process.stdout:
            status = json.loads(line)
            if "groups" in status:
                with self.lock:
                    self.seen = (time.monotonic(), status)
                    for number, group in enumerate(status["groups"]):
                        step = (group["progress"] or {}).get("step", 0)
                        if self.moved.get(number, (0, None))[1] != step:
                            self.moved[number] = (self.seen[0], step)

    def group(self, number):
        """Returns (time, incarnation, step, worker) of a group as it was last seen; step 0: it has made none in this start."""
        with self.lock:
            when, status = self.seen
        if status is None:
            return when, 0, 0, ""
        if status["state"] not in ("queued", "running"):
            raise SystemExit(f"FAILED: the job is {status['state']}: {status['reason']}")
        group = status["groups"][number]
        running = group["state"] == "running"
        return when, group["incarnation"], int((group["progress"] or {}).get("step", 0)) if running else 0, group["worker"]

    def at_last_step(self, number):
        """Like group(), with the time at which the group's last step came. Groups report at different times, so only such times belong to steps."""
        _, *group = self.group(number)
        with self.lock:
            return (self.moved[number][0], *group)

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


def rate_between(before, after):
    """Returns steps a second between two answers of Watch.group for the same start."""
    return (after[2] - before[2]) / (after[0] - before[0]) if after[0] > before[0] else 0.0


def lost_seconds(before, after, usual):
    """Returns the seconds of the time between two answers for which there are no steps at the usual rate; at least 0."""
    return max(0.0, after[0] - before[0] - (after[2] - before[2]) / usual)


class Trial:
    """One job's groups before a failure."""

    def __init__(self, watch):
        self.watch = watch
        wait_for("both groups train", lambda: all(watch.group(number)[2] >= 20 for number in (0, 1)))
        first = [watch.at_last_step(number) for number in (0, 1)]
        wait_for("the usual rate", lambda: watch.group(0)[0] - first[0][0] >= USUAL_SECONDS)
        self.before = [watch.at_last_step(number) for number in (0, 1)]
        if any(now[1] != then[1] for now, then in zip(self.before, first)):
            raise SystemExit("FAILED: a group has started again by itself")
        self.usual = [rate_between(then, now) for now, then in zip(self.before, first)]
        self.failed_at = time.monotonic()

    def started_again(self):
        """Returns the seconds until group 0 trains in a later start, and the other group's part of its rate."""

        def trains():
            now = self.watch.group(0)
            return now if now[1] > self.before[0][1] and now[2] > 0 else None

        seconds = wait_for("group 0 trains again", trains)[0] - self.failed_at
        return seconds, self.others()

    def went_on(self, seconds, others=None):
        """Returns the seconds that group 0 has lost once `seconds` have passed, and the other group's part of its rate: `others`, or until then."""
        wait_for("time", lambda: self.watch.group(0)[0] - self.failed_at >= seconds)
        others = self.others() if others is None else others
        after = self.watch.at_last_step(0)
        if after[1] != self.before[0][1]:
            return after[0] - self.failed_at, others
        return lost_seconds(self.before[0], after, self.usual[0]), others

    def others(self):
        after = self.watch.at_last_step(1)
        return rate_between(self.before[1], after) / self.usual[1] if after[1] == self.before[1][1] else 0.0


class Failures:
    """The kinds of failure, each a method that returns what Trial measured."""

    def __init__(self, cluster, watch, mend):
        self.cluster, self.watch, self.seconds = cluster, watch, mend

    def host(self):
        return int(self.watch.group(0)[3][1:])

    def process(self, *names):
        for pid in self.cluster.network._processes(self.host()):
            if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() in names:
                return pid
        raise SystemExit(f"FAILED: no {names[0]} on the host of group 0")

    def rank_killed(self):
        trial = Trial(self.watch)
        os.kill(self.process("python3"), signal.SIGKILL)
        return trial.started_again()

    def mpirun_killed(self):
        trial = Trial(self.watch)
        os.kill(self.process("mpirun", "mpirun.openmpi", "orterun"), signal.SIGKILL)
        return trial.started_again()

    def worker_drained(self):
        trial, name = Trial(self.watch), f"n{self.host()}"
        self.cluster.hooke("drain", name, "--now")
        measured = trial.started_again()
        self.cluster.hooke("drain", name, "--undo")
        return measured

    def worker_ends(self):
        return self.without_worker(lambda worker: worker.send_signal(signal.SIGTERM))

    def worker_killed(self):
        return self.without_worker(lambda worker: worker.kill())

    def without_worker(self, end):
        trial, host = Trial(self.watch), self.host()
        worker = self.cluster.workers[f"n{host}"]
        end(worker)
        measured = trial.started_again()
        worker.wait()
        self.cluster.start_worker(host, wait=False)
        wait_for("the worker is back", lambda: self.cluster.node(f"n{host}")["alive"])
        return measured

    def host_cut_off(self):
        trial, host = Trial(self.watch), self.host()
        self.cluster.network.cut(host)
        measured = trial.started_again()
        self.cluster.network.join(host)
        wait_for("the worker is back", lambda: self.cluster.node(f"n{host}")["alive"])
        return measured

    def rank_stopped(self):
        trial = Trial(self.watch)
        pid = self.process("python3")
        os.kill(pid, signal.SIGSTOP)
        time.sleep(self.seconds)
        os.kill(pid, signal.SIGCONT)
        return trial.went_on(self.seconds + 2)

    def server_killed(self):
        trial = Trial(self.watch)
        self.cluster.second.kill()
        self.cluster.second.wait()
        time.sleep(self.seconds)
        others = trial.others()
        self.cluster.start_second()
        return trial.went_on(self.seconds + 5, others)

    def coordinator_killed(self):
        trial = Trial(self.watch)
        self.cluster.server.kill()
        self.cluster.server.wait()
        time.sleep(self.seconds)
        begun = time.monotonic()
        self.cluster.start_server()
        wait_for("the coordinator knows of the other group's steps", lambda: self.watch.group(1)[0] > begun and self.watch.group(1)[2] > 0)
        return trial.went_on(self.seconds + 5, trial.others())


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
            job_id = cluster.submit(JOB.format(script=TESTS / "benchmarks" / "paced_rank.py", package=TESTS.parent / "python"))
            watch = Watch(cluster, job_id)
            failures = Failures(cluster, watch, arguments.mend)
            for kind in arguments.failure or KINDS:
                yield row_of(kind, [getattr(failures, kind)() for _ in range(arguments.repetitions)])
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
