#!/usr/bin/env python3
"""Kills, stops, cuts off and starts again random parts of a cluster while jobs run. Afterwards every job must have ended well, or have failed for a
stated reason, and nothing may be left of it. Needs root.

    tests/chaos/chaos.py --seed 7 --minutes 10

A seed gives the same faults in the same order; what they hit depends on the machine. The programs are those of `bazel build //:programs`.
"""

import argparse
import contextlib
import heapq
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
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
sys.path[:0] = [str(TESTS / "several_hosts"), str(TESTS / "benchmarks"), str(TESTS.parent / "deploy" / "slurm"), str(TESTS.parent / "deploy")]
import hosts  # noqa: E402
import slurm_cluster  # noqa: E402
import support  # noqa: E402
from host_cluster import HostCluster, make_hosts  # noqa: E402

HOSTS = 4
SLOTS = 2
# One more host has a whole Slurm, whose batch jobs are the workers of a site of their own.
SLURM_HOST, SLURM_SITE = HOSTS, "hpc"
# Slurm takes a node that it has given up back with the next slurmd.
SLURM_OPTIONS = f"SlurmdTimeout=3\nReturnToService=2\n{slurm_cluster.PARTITIONS}"
# A worker or server that was stopped or cut off for longer than this is lost; the faults last for less and for more.
LEASE = "5s"
FAULT_SECONDS = 8
# A slurmd may be away for so long that Slurm gives its node up. With the timeout above that takes 17 s and more, because a question to a node that is gone
# takes 15 s.
SLURMD_SECONDS = 40
# After the last fault, the jobs that are left must end.
END_SECONDS = 240
ASK_SECONDS = 60
GOING = 3
JOB = """name: {name}
model: mlp
data: {{format: idx, train: {data}, test: {data}}}
train: {{epochs: {epochs}, batch_size: 32, optimizer: {{name: sgd, learning_rate: 0.02}}}}
groups: {{count: {groups}, ranks: {ranks}, site: "{site}"}}
averaging: {averaging}
"""
# One job after the other is of the next kind. Each kind has another way to wait for its groups.
KINDS = (
    {"name": "elastic", "groups": 2, "ranks": 2, "averaging": "{rule: elastic, interval: 4}"},
    {"name": "wide", "groups": 1, "ranks": 3, "averaging": "{rule: average, interval: 8}"},
    {"name": "rounds", "groups": 2, "ranks": 1, "averaging": "{rule: diloco, interval: 8, learning_rate: 0.7, momentum: 0.9, grace_seconds: 2}"},
    {"name": "stale", "groups": 2, "ranks": 1, "averaging": "{rule: async}"},
)
# Its ranks share all cores, because Slurm gives each batch job the whole machine here, and so take longer for an epoch.
SLURM_KIND = {"name": "batch", "groups": 2, "ranks": 1, "averaging": "{rule: elastic, interval: 4}", "site": SLURM_SITE, "epochs": 3}
EPOCHS = 8


class ChaosCluster(HostCluster):
    """Also has a second server, a coordinator that may be away for a while, and a Slurm if `slurm_folder` is not None."""

    def __init__(self, network, folder, slurm_folder):
        super().__init__(network, folder, slots=SLOTS, server_flags=[f"--lease={LEASE}", "--snapshot-interval=5s"], worker_hosts=range(HOSTS))
        self.start_second()
        self.slurm = self.agent = None
        if slurm_folder is not None:
            self.start_slurm(slurm_folder)

    def start_slurm(self, folder):
        name = self.network.name(SLURM_HOST)

        def at_host(command):
            # Unlike `ip netns exec` this leaves /sys as it is. slurmd needs /sys/fs/cgroup.
            return ["nsenter", f"--net=/run/netns/{name}", "unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', name, *command]

        self.slurm = slurm_cluster.SlurmCluster(folder, SLOTS, SLURM_OPTIONS, name, at_host)
        # The folders of the batch jobs' workers.
        self.slurm_temporary = self.slurm.folder / "tmp"
        self.slurm_temporary.mkdir()
        self.environment["TMPDIR"] = str(self.slurm_temporary)
        self.slurm.start()
        self.start_agent()

    def start_agent(self, wait=False):
        """Starts the program that submits the batch jobs."""
        command = ["hooke-worker", "--slurm", f"--site={SLURM_SITE}", f"--coordinator={self.address}", "--allow-commands", "--exit-idle=3s"]
        self.environment["SLURM_CONF"] = self.slurm.environment["SLURM_CONF"]
        self.agent = self._start(SLURM_HOST, "slurm-agent", command, wait)

    def batch_workers(self):
        return [pid for pid in self.processes("hooke-worker") if pid in self.network._processes(SLURM_HOST) and pid != self.agent.pid]

    def memory_folders(self):
        if self.slurm is None:
            return super().memory_folders()
        return super().memory_folders() | {os.path.realpath(link) for link in self.slurm_temporary.glob("hooke-*/groups/*/memory")}

    def slurm_is_empty(self):
        return self.slurm is None or (self.slurm.call("squeue", "--noheader", check=False) == "" and self.batch_workers() == [])

    def end(self):
        for daemon in [*self.workers.values(), self.server, self.second]:
            daemon.send_signal(signal.SIGCONT)
        if self.slurm is not None:
            if self.agent is not None:
                self.agent.terminate()
                self.agent.wait(40)
            self.slurm.stop()
        return super().end()

    def ask(self, *arguments):
        """Asks the coordinator, which may be away for a while."""
        deadline = time.monotonic() + ASK_SECONDS
        while True:
            try:
                return self.hooke(*arguments)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                if time.monotonic() > deadline:
                    raise AssertionError(f"no answer within {ASK_SECONDS} s: {error}") from error
                time.sleep(0.2)

    def jobs(self):
        return {job["job_id"]: job for job in json.loads(self.ask("jobs", "--output=json"))["jobs"]}

    def processes(self, *names):
        """Returns the processes of all hosts that have one of these names."""
        found = []
        for host in range(self.network.count):
            for pid in self.network._processes(host):
                with contextlib.suppress(OSError):
                    if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() in names:
                        found.append(pid)
        return sorted(found)


class Chaos:
    """Does faults, keeps GOING jobs going, and mends what it broke when that is due."""

    def __init__(self, cluster, seed):
        self.cluster, self.chance = cluster, random.Random(seed)
        self.began = time.monotonic()
        self.mends = []  # A heap of (when, number, what, mend).
        self.number = 0
        self.away = set()  # Names of daemons that are dead, stopped or cut off: they get no second fault.
        self.submitted, self.cancelled, self.counts = [], set(), {}
        self.memory = set()  # Folders in which groups have shared memory, as far as they were seen.

    def say(self, text):
        print(f"{time.monotonic() - self.began:7.2f} s  {text}", flush=True)

    def later(self, what, mend, most):
        seconds = self.chance.uniform(0.2, most)
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
        faults = [getattr(self, name) for name in sorted(dir(self)) if name.startswith("fault_")]
        while time.monotonic() < deadline:
            self.mend()
            self.memory |= self.cluster.memory_folders()
            self.supervise()
            self.keep_going()
            fault = self.chance.choice(faults)
            what = fault()
            if what:
                self.counts[fault.__name__] = self.counts.get(fault.__name__, 0) + 1
                self.say(what)
            time.sleep(self.chance.uniform(0.1, 1.5))
        while self.mends:
            self.mend()
            self.supervise()
            time.sleep(0.1)

    def submit(self):
        kinds = KINDS if self.cluster.slurm is None else (SLURM_KIND, *KINDS)
        kind = {"site": "", "epochs": EPOCHS, **kinds[len(self.submitted) % len(kinds)]}
        path = pathlib.Path(self.cluster.folder, "job.yaml")
        path.write_text(JOB.format(data=support.DATA, **kind))
        job_id = json.loads(self.cluster.ask("submit", str(path), "--output=json"))["job_id"]
        self.submitted.append(job_id)
        self.say(f"submitted {job_id}")
        return job_id

    def keep_going(self):
        if "coordinator" in self.away:
            return
        jobs = self.cluster.jobs()
        going = [job_id for job_id in self.submitted if jobs[job_id]["state"] in ("queued", "running", "evaluating")]
        for _ in range(GOING - len(going)):
            self.submit()

    def signal(self, names, sign):
        """Sends a signal to a random process with one of these names. Returns its id, or None."""
        found = self.cluster.processes(*names)
        if not found:
            return None
        pid = self.chance.choice(found)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sign)
        return pid

    def fault_kill_rank(self):
        pid = self.signal(["hooke-rank"], signal.SIGKILL)
        return pid and f"killed rank {pid}"

    def fault_stop_rank(self):
        pid = self.signal(["hooke-rank"], signal.SIGSTOP)

        def mend():
            # The id may be another process's by now; SIGCONT does no harm.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

        return pid and f"stopped rank {pid} {self.later(f'rank {pid}', mend, FAULT_SECONDS)}"

    def fault_kill_launcher(self):
        pid = self.signal(["mpirun", "mpirun.openmpi", "orterun", "orted", "hooke-remote"], signal.SIGKILL)
        return pid and f"killed mpirun, orted or hooke-remote {pid}"

    def kill(self, name, process, start, most=FAULT_SECONDS):
        if name in self.away:
            return None
        self.away.add(name)
        process.kill()
        process.wait()

        def mend():
            start()
            self.away.discard(name)

        return f"killed {name} {self.later(name, mend, most)}"

    def stop(self, name, process):
        if name in self.away:
            return None
        self.away.add(name)
        process.send_signal(signal.SIGSTOP)

        def mend():
            process.send_signal(signal.SIGCONT)
            self.away.discard(name)

        return f"stopped {name} {self.later(name, mend, FAULT_SECONDS)}"

    def fault_kill_worker(self):
        name = self.chance.choice(sorted(self.cluster.workers))
        return self.kill(name, self.cluster.workers[name], lambda: self.cluster.start_worker(int(name[1:]), wait=False))

    def fault_stop_worker(self):
        name = self.chance.choice(sorted(self.cluster.workers))
        return self.stop(name, self.cluster.workers[name])

    def fault_kill_server(self):
        return self.kill("server2", self.cluster.second, self.cluster.start_second)

    def fault_stop_server(self):
        return self.stop("server2", self.cluster.second)

    def fault_kill_coordinator(self):
        return self.kill("coordinator", self.cluster.server, self.cluster.start_server)

    def fault_stop_coordinator(self):
        return self.stop("coordinator", self.cluster.server)

    def fault_kill_slurmd(self):
        node = self.chance.choice(slurm_cluster.NODES)
        if self.cluster.slurm is None:
            return None

        def start():
            state = self.cluster.slurm.call("sinfo", "--noheader", f"--nodes={node}", "--format=%T", check=False).strip()
            if state.startswith("down"):
                self.counts["node_down"] = self.counts.get("node_down", 0) + 1
            self.say(f"to Slurm {node} was {state}")
            self.cluster.slurm.start_slurmd(node)

        return self.kill(f"slurmd of {node}", self.cluster.slurm.slurmds[node], start, SLURMD_SECONDS)

    def fault_kill_agent(self):
        return self.cluster.agent and self.kill("agent", self.cluster.agent, self.cluster.start_agent)

    def fault_kill_batch_worker(self):
        if self.cluster.slurm is None or not (found := self.cluster.batch_workers()):
            return None
        pid = self.chance.choice(found)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return f"killed the worker {pid} of a batch job"

    def fault_cut_link(self):
        host = self.chance.randrange(1, self.cluster.network.count)
        name = f"link of host {host}"
        if name in self.away:
            return None
        self.away.add(name)
        self.cluster.network.cut(host)

        def mend():
            self.cluster.network.join(host)
            self.away.discard(name)

        return f"cut the {name} {self.later(name, mend, FAULT_SECONDS)}"

    def fault_cancel(self):
        # Most jobs are to end by themselves.
        if "coordinator" in self.away or self.chance.random() < 0.7 or not self.submitted:
            return None
        job_id = self.chance.choice(self.submitted)
        self.cancelled.add(job_id)
        self.cluster.ask("cancel", job_id)
        return f"cancelled {job_id}"


class ChaosTest(unittest.TestCase):
    seeds, seconds = [1], 30

    def test_jobs_end_whatever_happens(self):
        for seed in self.seeds:
            with self.subTest(seed=seed):
                try:
                    self.check(seed)
                finally:
                    # After Ctrl-C, too, for which unittest calls no cleanups.
                    self.doCleanups()

    def check(self, seed):
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
        try:
            chaos.run(self.seconds)
            support.wait_for("all jobs have ended", lambda: self.all_ended(chaos), END_SECONDS)
        except BaseException:
            print(cluster.hooke("jobs", status=None), cluster.logs(), flush=True)
            if kept := os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR"):
                for log in pathlib.Path(folder).glob("*.log"):
                    shutil.copy(log, f"{kept}/seed-{seed}-{log.name}")
            raise
        jobs = cluster.jobs()
        self.assertEqual(sorted(jobs), sorted(chaos.submitted), "submitted jobs, and no others")
        for job_id, job in jobs.items():
            may_be_cancelled = job["state"] == "cancelled" and job_id in chaos.cancelled
            stated = job["state"] == "failed" and job["reason"] != ""
            if stated:
                chaos.say(f"{job_id} failed: {job['reason']}")
            self.assertTrue(job["state"] == "succeeded" or may_be_cancelled or stated, job)
        states = [job["state"] for job in jobs.values()]
        faults = ", ".join(f"{count} {name.removeprefix('fault_')}" for name, count in sorted(chaos.counts.items()))
        print(f"seed {seed}: {', '.join(f'{states.count(state)} {state}' for state in sorted(set(states)))}; {faults}", flush=True)
        self.assertIn("succeeded", states)
        self.assertNotEqual(chaos.memory, set())
        support.wait_for(f"Slurm is empty{cluster.logs()}", cluster.slurm_is_empty)
        cluster.check_nothing_is_left(self, chaos.memory)

    def all_ended(self, chaos):
        chaos.supervise()
        return all(job["state"] in ("succeeded", "failed", "cancelled") for job in chaos.cluster.jobs().values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int, action="append", help="which faults happen; may be given several times")
    parser.add_argument("--minutes", type=float, default=0.5, help="how long faults happen, for each seed")
    arguments = parser.parse_args()
    missing = hosts.missing()
    if missing:
        support.skip(missing)
        return
    ChaosTest.seeds, ChaosTest.seconds = arguments.seed or [1], arguments.minutes * 60
    try:
        unittest.main(argv=sys.argv[:1])
    except KeyboardInterrupt:
        raise SystemExit("interrupted") from None


if __name__ == "__main__":
    main()
