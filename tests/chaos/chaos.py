#!/usr/bin/env python3
"""Kills, stops, cuts off and starts again random parts of a cluster while jobs run. Afterwards every job must have ended well, or have failed for a
stated reason, and nothing may be left of it. Needs root.

    tests/chaos/chaos.py --seed 7 --minutes 10

A seed gives the same list of faults (fault_plan.py). What they hit depends on the machine, and a fault that finds no victim waits for one. Without
--seed, the seeds are the twenty of CI. The programs are those of `bazel build //:programs`.
"""

import argparse
import contextlib
import heapq
import itertools
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
TESTS = pathlib.Path(__file__).resolve().parents[1]
# Without Bazel, the programs are those of the last build.
if not pathlib.Path("bin/hooke").exists():
    os.chdir(TESTS.parent / "bazel-bin")
sys.path[:0] = [str(TESTS / "chaos"), str(TESTS / "several_hosts"), str(TESTS / "benchmarks"), str(TESTS.parent / "deploy" / "slurm"), str(TESTS.parent / "deploy")]
import fault_plan  # noqa: E402
import hosts  # noqa: E402
import skips  # noqa: E402
import slurm_cluster  # noqa: E402
import support  # noqa: E402
from audit import Audit, rank_lines  # noqa: E402
from chaos_cluster import HOSTS, SLURM_HOST, SLURM_SITE, ChaosCluster  # noqa: E402
from fault_plan import pick  # noqa: E402
from host_cluster import make_hosts  # noqa: E402

FAULT_SECONDS = 8
# A slurmd may be away long enough for Slurm to give up its node. With the SlurmdTimeout of chaos_cluster.py that takes
# at least 17 s, because a question to a node that is gone takes 15 s.
SLURMD_SECONDS = 40
# At the end of the run, a fault that has found no victim yet may look for one for this long.
VICTIM_SECONDS = 90
# When a worker that was stopped or cut off is back, it must hear within this time that its group has started elsewhere, and end it.
BACK_SECONDS = 15
# After the last fault, the jobs that are left must end.
END_SECONDS = 240
# Between two looks at the jobs. Each starts a program, and the jobs need the cores.
LOOK_SECONDS = 0.5
GOING = 3
JOB = """name: {name}
model: small-mlp
data: {{format: idx, train: {data}, test: {data}}}
train: {{epochs: {epochs}, batch_size: 32, optimizer: {{name: sgd, learning_rate: 0.02}}}}
groups: {{count: {groups}, ranks: {ranks}, site: "{site}"}}
averaging: {averaging}
"""
# The jobs take turns through these kinds. In each kind, groups wait for one another in another way.
KINDS = (
    {"name": "elastic", "groups": 2, "ranks": 2, "averaging": "{rule: elastic, interval: 4}"},
    {"name": "wide", "groups": 1, "ranks": 3, "averaging": "{rule: average, interval: 8}"},
    {"name": "rounds", "groups": 2, "ranks": 1, "averaging": "{rule: diloco, interval: 8, learning_rate: 0.7, momentum: 0.9, grace_seconds: 2}"},
    {"name": "stale", "groups": 2, "ranks": 1, "averaging": "{rule: async}"},
)
# A job of this kind runs in Slurm. Here Slurm gives the whole machine to each batch job. So the ranks share all cores, and a step takes ten times longer.
SLURM_KIND = {"name": "batch", "groups": 2, "ranks": 1, "averaging": "{rule: elastic, interval: 4}", "site": SLURM_SITE, "epochs": 1}
EPOCHS = 4


class Chaos:
    """Does faults, keeps GOING jobs going, and mends what it broke when that is due."""

    def __init__(self, cluster, seed):
        self.cluster, self.plan = cluster, fault_plan.faults(seed)
        self.began = time.monotonic()
        self.mends = []  # A heap of (time, number, text, function): what must be mended, and when.
        self.number = 0
        self.away = set()  # Names of daemons that are dead, stopped or cut off: they get no second fault.
        self.unheard = {}  # A place where ranks run -> the steady time until which it may not hear the coordinator.
        self.submission = None  # The process of the `hooke submit` that is running.
        self.submitted, self.going, self.cancelled, self.counts = [], [], set(), {}
        self.kinds, self.unanswered, self.submitted_away = itertools.count(), 0, 0
        self.memory = set()  # Folders in which groups have shared memory, as far as they were seen.

    def say(self, text):
        print(f"{time.monotonic() - self.began:7.2f} s  {text}", flush=True)

    def later(self, what, mend, fault, most=FAULT_SECONDS):
        seconds = fault_plan.seconds(fault.part, most)
        self.number += 1
        heapq.heappush(self.mends, (time.monotonic() + seconds, self.number, what, mend))
        return f"for {seconds:.1f} s"

    def mend(self):
        while self.mends and self.mends[0][0] <= time.monotonic():
            _, _, what, mend = heapq.heappop(self.mends)
            mend()
            self.say(f"mended: {what}")

    def supervise(self):
        """Starts workers again that have ended, as systemd would: a new one is refused until the coordinator knows that the old one is dead."""
        for name, process in list(self.cluster.workers.items()):
            if name not in self.away and process.poll() is not None:
                self.cluster.start_worker(int(name[1:]), wait=False)
                self.say(f"{name} had ended with {process.returncode}, and starts again")
        if self.cluster.slurm is not None and "agent" not in self.away and self.cluster.agent.poll() is not None:
            self.say(f"the agent had ended with {self.cluster.agent.returncode}, and starts again")
            self.cluster.start_agent()

    def run(self, seconds):
        deadline = self.began + seconds
        drawn, waiting, pause = 0, [], 0.5
        while time.monotonic() < deadline or drawn < fault_plan.FAULTS_MIN or (waiting and time.monotonic() < deadline + VICTIM_SECONDS):
            self.mend()
            self.memory |= self.cluster.memory_folders()
            self.supervise()
            self.keep_going()
            if time.monotonic() < deadline or drawn < fault_plan.FAULTS_MIN:
                waiting.append(next(self.plan))
                drawn, pause = drawn + 1, waiting[-1].pause
            waiting = self.first_possible(waiting)
            time.sleep(pause)
        while self.mends or self.submission is not None:
            self.mend()
            self.supervise()
            self.take_submission()
            time.sleep(0.1)
        return [fault.kind for fault in waiting]

    def first_possible(self, faults):
        """Does the first of the faults that finds a victim. Returns those that wait for one."""
        for number, fault in enumerate(faults):
            if fault.kind in fault_plan.SLURM_KINDS and self.cluster.slurm is None:
                return faults[:number] + faults[number + 1 :]
            if what := getattr(self, f"fault_{fault.kind}")(fault):
                self.counts[fault.kind] = self.counts.get(fault.kind, 0) + 1
                self.say(what)
                return faults[:number] + faults[number + 1 :]
        return faults

    def submit(self):
        """Begins to submit a job. The coordinator may be away, and may go away meanwhile."""
        kinds = KINDS if self.cluster.slurm is None else (SLURM_KIND, *KINDS[:2], SLURM_KIND, *KINDS[2:])
        kind = {"site": "", "epochs": EPOCHS, **kinds[next(self.kinds) % len(kinds)]}
        self.submission = self.cluster.begin_submit(JOB.format(data=support.DATA, **kind))
        self.submitted_away += "coordinator" in self.away

    def take_submission(self):
        """Takes the answer of `hooke submit`, if there is one."""
        if self.submission is None or self.submission.poll() is None:
            return
        output, error = self.submission.communicate()
        if self.submission.returncode == 0:
            self.submitted.append(json.loads(output)["job_id"])
            self.say(f"submitted {self.submitted[-1]}")
        else:
            # `hooke submit` says that no coordinator was there, or that none has answered. In the second case the coordinator may know the job.
            self.unanswered += 1
            self.say(f"not submitted: {error.strip()}")
        self.submission = None

    def keep_going(self):
        self.take_submission()
        if self.submission is not None:
            return
        if "coordinator" not in self.away:
            jobs = self.cluster.jobs()
            self.check_known(jobs)
            self.resume_held(jobs)
            self.going = [job_id for job_id, job in jobs.items() if job["state"] in ("queued", "running", "evaluating")]
            if len(self.going) >= GOING:
                return
        self.submit()

    def check_known(self, jobs):
        """Each job that was acknowledged is known. Others may be known whose submission was not answered."""
        unknown = set(self.submitted) - set(jobs)
        if unknown or len(jobs) > len(self.submitted) + self.unanswered:
            raise AssertionError(f"acknowledged: {self.submitted}; not answered: {self.unanswered}; known: {sorted(jobs)}")

    def resume_held(self, jobs):
        """Does what a person does after three faults in a row that hit a group while it starts: it is held then."""
        for job_id, job in jobs.items():
            if any(group["state"] == "held" for group in job["groups"]):
                self.cluster.ask("resume", job_id)
                self.counts["held"] = self.counts.get("held", 0) + 1
                self.say(f"resumed {job_id}")

    def may_run_twice(self, line):
        """Whether a rank of this command line may run beside a later start of its group: its worker does not hear the coordinator, or has just heard it
        again. This is what docs/life-of-a-step.md says of a worker that is cut off while its group reaches a server. Only these servers then refuse
        the earlier start. A worker that is stopped cannot end its group either."""
        return time.monotonic() < self.unheard.get(self.cluster.place(line), 0)

    def is_unheard(self, place):
        self.unheard[place] = float("inf")

    def is_heard(self, place):
        self.unheard[place] = time.monotonic() + BACK_SECONDS

    def signal(self, fault, names, sign):
        """Sends a signal to a process with one of these names. Returns its id, or None if there is none."""
        pid = pick(self.cluster.processes(*names), fault.choice)
        if pid is None:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sign)
        return pid

    def fault_kill_rank(self, fault):
        pid = self.signal(fault, ["hooke-rank"], signal.SIGKILL)
        return pid and f"killed rank {pid}"

    def fault_stop_rank(self, fault):
        pid = self.signal(fault, ["hooke-rank"], signal.SIGSTOP)

        def mend():
            # Another process may have the id by now. SIGCONT does it no harm.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

        return pid and f"stopped rank {pid} {self.later(f'rank {pid}', mend, fault)}"

    def fault_kill_launcher(self, fault):
        pid = self.signal(fault, ["mpirun", "mpirun.openmpi", "orterun", "orted", "hooke-remote"], signal.SIGKILL)
        return pid and f"killed mpirun, orted or hooke-remote {pid}"

    def kill(self, fault, name, process, start, most=FAULT_SECONDS):
        if name in self.away:
            return None
        self.away.add(name)
        process.kill()
        process.wait()

        def mend():
            start()
            self.away.discard(name)

        return f"killed {name} {self.later(name, mend, fault, most)}"

    def stop(self, fault, name, process):
        if name in self.away:
            return None
        self.away.add(name)
        self.is_unheard(name)
        process.send_signal(signal.SIGSTOP)

        def mend():
            process.send_signal(signal.SIGCONT)
            self.is_heard(name)
            self.away.discard(name)

        return f"stopped {name} {self.later(name, mend, fault)}"

    def fault_kill_worker(self, fault):
        name = pick(sorted(self.cluster.workers), fault.choice)
        return self.kill(fault, name, self.cluster.workers[name], lambda: self.cluster.start_worker(int(name[1:]), wait=False))

    def fault_stop_worker(self, fault):
        name = pick(sorted(self.cluster.workers), fault.choice)
        return self.stop(fault, name, self.cluster.workers[name])

    def fault_kill_server(self, fault):
        return self.kill(fault, "server2", self.cluster.second, self.cluster.start_second)

    def fault_stop_server(self, fault):
        return self.stop(fault, "server2", self.cluster.second)

    def fault_kill_coordinator(self, fault):
        return self.kill(fault, "coordinator", self.cluster.server, self.cluster.start_server)

    def fault_stop_coordinator(self, fault):
        return self.stop(fault, "coordinator", self.cluster.server)

    def fault_kill_slurmd(self, fault):
        node = pick(slurm_cluster.NODES, fault.choice)

        def start():
            state = self.cluster.slurm.call("sinfo", "--noheader", f"--nodes={node}", "--format=%T", check=False).strip()
            if state.startswith("down"):
                self.counts["node_down"] = self.counts.get("node_down", 0) + 1
            self.say(f"to Slurm {node} was {state}")
            self.cluster.slurm.start_slurmd(node)

        return self.kill(fault, f"slurmd of {node}", self.cluster.slurm.slurmds[node], start, SLURMD_SECONDS)

    def fault_kill_agent(self, fault):
        return self.kill(fault, "agent", self.cluster.agent, self.cluster.start_agent)

    def fault_kill_batch_worker(self, fault):
        pid = pick(self.cluster.batch_workers(), fault.choice)
        if pid is None:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return f"killed the worker {pid} of a batch job"

    def fault_cut_link(self, fault):
        host = pick(range(1, self.cluster.network.count), fault.choice)
        place = SLURM_SITE if host == SLURM_HOST else f"n{host}"
        name = f"link of host {host}"
        if name in self.away:
            return None
        self.away.add(name)
        self.is_unheard(place)
        self.cluster.network.cut(host)

        def mend():
            self.cluster.network.join(host)
            self.is_heard(place)
            self.away.discard(name)

        return f"cut the {name} {self.later(name, mend, fault)}"

    def fault_cancel(self, fault):
        job_id = pick([job_id for job_id in self.going if job_id not in self.cancelled], fault.choice)
        if "coordinator" in self.away or job_id is None:
            return None
        self.cancelled.add(job_id)
        self.cluster.ask("cancel", job_id)
        return f"cancelled {job_id}"


def seeds_of_shard():
    """Returns those of CI's seeds that this process is to run. Bazel may divide them among several."""
    if status := os.environ.get("TEST_SHARD_STATUS_FILE"):
        pathlib.Path(status).touch()
    return fault_plan.CI_SEEDS[int(os.environ.get("TEST_SHARD_INDEX", 0)) :: int(os.environ.get("TEST_TOTAL_SHARDS", 1))]


class ChaosTest(unittest.TestCase):
    seeds, seconds = (), 0

    def test_jobs_end_whatever_happens(self):
        happened, self.memory = set(), set()
        for seed in self.seeds:
            with self.subTest(seed=seed):
                try:
                    happened |= self.check(seed)
                finally:
                    # After Ctrl-C, too, for which unittest calls no cleanups.
                    self.doCleanups()
        without = () if slurm_cluster.missing() is None else fault_plan.SLURM_KINDS
        self.assertEqual(fault_plan.kinds(self.seeds) - happened - set(without), set(), "kinds of faults that did not happen")
        self.assertNotEqual(self.memory, set(), "no memory of a group was seen, so none could have been left")

    def check(self, seed):
        """Runs the faults of one seed. Returns the kinds that happened."""
        print(f"seed {seed}: {self.seconds:.0f} s of faults", flush=True)
        slurm_folder = None
        if slurm_cluster.missing():
            print(f"without a Slurm: {slurm_cluster.missing()}", flush=True)
        else:
            # Its own folder, because every parent folder of munge's socket must be open to all.
            made = tempfile.TemporaryDirectory(prefix="hooke-slurm-", dir="/tmp")
            self.addCleanup(made.cleanup)
            slurm_folder = made.name
        network, folder = make_hosts(self, HOSTS + (slurm_folder is not None))
        cluster = ChaosCluster(network, folder, slurm_folder)
        chaos = Chaos(cluster, seed)
        # A worker that was killed removes the memory of its groups when it starts again. After Ctrl-C it does not.
        self.addCleanup(lambda: [shutil.rmtree(path, ignore_errors=True) for path in chaos.memory | cluster.memory_folders()])
        self.addCleanup(cluster.end)
        audit = Audit(lines=lambda: [line for line in rank_lines() if cluster.place(line)], excuses=chaos.may_run_twice)
        try:
            with audit:
                self.assertEqual(chaos.run(self.seconds), [], "faults without a victim")
                support.wait_for("all jobs have ended", lambda: self.all_ended(chaos), END_SECONDS, LOOK_SECONDS)
            chaos.say("all jobs have ended")
            self.assertEqual(audit.wrong, [])
            chaos.check_known(cluster.jobs())
        except skips.Terminated:
            raise
        except BaseException:
            print(cluster.hooke("jobs", status=None), cluster.logs(), flush=True)
            if kept := os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR"):
                for log in pathlib.Path(folder).glob("*.log"):
                    shutil.copy(log, f"{kept}/seed-{seed}-{log.name}")
            raise
        jobs = cluster.jobs()
        for job_id, job in jobs.items():
            may_be_cancelled = job["state"] == "cancelled" and job_id in chaos.cancelled
            stated = job["state"] == "failed" and job["reason"] != ""
            if stated:
                chaos.say(f"{job_id} failed: {job['reason']}")
            self.assertTrue(job["state"] == "succeeded" or may_be_cancelled or stated, job)
        states = [job["state"] for job in jobs.values()]
        faults = ", ".join(f"{count} {name.removeprefix('fault_')}" for name, count in sorted(chaos.counts.items()))
        print(f"seed {seed}: {', '.join(f'{states.count(state)} {state}' for state in sorted(set(states)))}; {faults}", flush=True)
        looks = f"{audit.looks} looks, {audit.excused} of them at two starts that may be"
        print(f"seed {seed}: {chaos.submitted_away} submissions while the coordinator was away, {chaos.unanswered} not answered; {looks}", flush=True)
        self.assertIn("succeeded", states)
        support.wait_for(f"Slurm is empty{cluster.logs()}", cluster.slurm_is_empty)
        if chaos.counts.get("node_down"):
            cluster.tidy_slurm()
            support.wait_for("Slurm's nodes are tidy", cluster.slurm_is_empty)
        cluster.check_nothing_is_left(self, chaos.memory)
        self.memory |= chaos.memory
        return set(chaos.counts)

    def all_ended(self, chaos):
        chaos.memory |= chaos.cluster.memory_folders()
        chaos.supervise()
        jobs = chaos.cluster.jobs()
        chaos.resume_held(jobs)
        return all(job["state"] in ("succeeded", "failed", "cancelled") for job in jobs.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int, action="append", help="which faults happen; may be given several times")
    parser.add_argument("--minutes", type=float, default=0.05, help="how long faults happen, for each seed")
    arguments = parser.parse_args()
    missing = hosts.missing()
    if missing:
        support.skip(missing)
        return
    ChaosTest.seeds, ChaosTest.seconds = arguments.seed or seeds_of_shard(), arguments.minutes * 60
    try:
        skips.main(argv=sys.argv[:1])
    except KeyboardInterrupt:
        raise SystemExit("interrupted") from None


if __name__ == "__main__":
    main()
