#!/usr/bin/env python3
"""One job at a site of a real Slurm and at a site behind a slow link, while a batch job's time ends, ranks are killed and the link is cut. Needs root."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / folder) for folder in ("tests/several_hosts", "tests/benchmarks", "deploy/slurm", "deploy")]
import hosts  # noqa: E402
import slurm_fixture  # noqa: E402
from audit import Audit, rank_lines, starts_of, twice  # noqa: E402

DATA = "/usr/share/datasets/fashion-mnist"
SERVER = "10.77.0.1"  # The cloud's hosts have 10.77.0.2 and 10.77.0.3.
SLURM = "10.77.0.100"
LINK = "100mbit"
CUT_SECONDS = 30
ACCURACY = 0.88
WAIT_SECONDS = 300
# Groups 0 and 1 are at hpc, 2 and 3 in the cloud.
HPC, CLOUD = (0, 1), (2, 3)
CLOUD_HOSTS = (1, 2)
JOB = f"""name: hybrid
model: mlp
data: {{format: idx, train: {DATA}/train, test: {DATA}/t10k}}
train:
  epochs: 11
  batch_size: 32
  evaluate_every: 0
  optimizer: {{name: sgd, learning_rate: 0.04, momentum: 0.9}}
  schedule: {{name: cosine}}
groups:
  - {{site: hpc, count: 2, ranks: 2, batch_size: 16}}
  - {{site: cloud, count: 2}}
averaging: {{rule: elastic, interval: 16, compression: int8}}
"""


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class AuditTest(unittest.TestCase):
    def test_two_starts_of_one_group_are_noted(self):
        lines = ["hooke-rank --start /s/n0/groups/a-1-0-1/start", "hooke-rank --start /s/n1/groups/a-1-0-2/start", "hooke-rank --start /s/n1/groups/a-1-1-2/start "]
        self.assertEqual(starts_of([*lines, "bash -c x", ""]), {("a-1", 0): {1, 2}, ("a-1", 1): {2}})
        self.assertEqual(twice(starts_of(lines)), {("a-1", 0): [1, 2]})
        self.assertEqual(twice(starts_of(lines[1:])), {})


class Hybrid(slurm_fixture.SlurmTestCase):
    address, lease = f"{SERVER}:7411", "10s"

    def setUp(self):
        if missing := slurm_fixture.missing() or hosts.missing():
            self.skipTest(missing)
        self.make_hosts()
        super().setUp()

    def make_hosts(self):
        """Makes hosts for the server and the cloud, each behind a link of a limited rate, and joins this namespace, where Slurm is, to them."""
        os.makedirs("/run/netns", exist_ok=True)
        run("mount", "-t", "tmpfs", "tmpfs", "/run/netns")
        self.network = hosts.Hosts(1 + len(CLOUD), "/run/netns", rate=LINK)
        self.network.__enter__()
        self.addCleanup(self.network.__exit__)
        run("ip", "link", "add", "slurm", "type", "veth", "peer", "name", "slurm", "netns", self.network.switch())
        run("ip", "-n", self.network.switch(), "link", "set", "slurm", "master", self.network.bridge, "up")
        run("ip", "address", "add", f"{SLURM}/24", "dev", "slurm")
        run("ip", "link", "set", "slurm", "up")

    def at_server(self, command):
        return self.network.command(0, command)

    def start_cloud_worker(self, host):
        """A host of the cloud has one core."""
        cores = sorted(os.sched_getaffinity(0))
        command = ["taskset", "--cpu-list", str(cores[host % len(cores)]), str(slurm_fixture.PROGRAMS / "hooke-worker")]
        command += [f"--coordinator={self.address}", f"--token-file={self.token}", "--site=cloud", "--slots=1"]
        command += [f"--name=cloud{host}", f"--state-dir={self.folder}/cloud{host}"]
        self.slurm.daemon(*self.network.command(host, command), log=f"cloud{host}")

    def groups(self, job_id):
        job = self.job(job_id)
        if job["state"] not in ("queued", "running"):
            raise AssertionError(f"{job_id} is {job['state']} too early: {job['reason']}{self.slurm.logs()}")
        return job["groups"]

    def say(self, text):
        print(f"{time.monotonic() - self.began:5.1f} s: {text}", flush=True)

    def wait(self, what, condition):
        """Asks seldom, because the ranks need the cores."""
        self.wait_for(what, condition, WAIT_SECONDS, pause=0.5)
        self.say(what)

    def trains(self, job_id, starts):
        """Waits until each of these groups has made steps in the start that `starts` says."""

        def moved():
            groups = self.groups(job_id)
            return all(groups[group]["incarnation"] == start and self.step(groups[group]) > 0 for group, start in starts.items())

        self.wait(f"groups train in starts {starts}", moved)

    def step(self, group):
        return int((group["progress"] or {}).get("step", 0)) if group["state"] in ("running", "finished") else 0

    def batch_job_of(self, job_id, group):
        """Returns the id of the batch job in which a group runs."""
        return self.groups(job_id)[group]["worker"].rpartition("-")[2]

    def batch_log(self, batch_job):
        path = self.folder / "agent" / "slurm" / f"slurm-{batch_job}.log"
        return path.read_text() if path.exists() else ""

    def batch_jobs_too_many(self):
        """A batch job lives until its workers end. Each group at hpc may have one."""
        if time.monotonic() < self.next_queue:
            return []
        self.next_queue = time.monotonic() + 0.5
        live = [number for number, state in self.queue().items() if state != "COMPLETING" and "the workers end" not in self.batch_log(number)]
        self.batch_jobs.update(live)
        return [f"batch jobs {live}"] if len(live) > len(HPC) else []

    def kill_ranks(self, job_id, group):
        killed = 0
        for pid, name in slurm_fixture.processes().items():
            try:
                line = pathlib.Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ") if name == "hooke-rank" else ""
            except OSError:
                continue  # It has ended meanwhile.
            if (job_id, group) in starts_of([line]):
                os.kill(pid, signal.SIGKILL)
                killed += 1
        self.assertEqual(killed, 1)

    def test_slurm_and_cloud_train_one_model_under_faults(self):
        self.agent("--sbatch=--signal=B:USR1@55")
        for host in CLOUD_HOSTS:
            self.start_cloud_worker(host)
        self.wait_for("the cloud's workers", lambda: len(self.alive()) == len(CLOUD))
        self.before = slurm_fixture.names()
        self.next_queue, self.batch_jobs, self.began = 0.0, set(), time.monotonic()
        with Audit(self.batch_jobs_too_many) as audit:
            job_id = self.submit(JOB)
            self.trains(job_id, {0: 1, 1: 1, 2: 1, 3: 1})
            self.faults(job_id)
            self.wait("the job has ended", lambda: self.job(job_id)["state"] not in ("queued", "running", "evaluating"))
        log = self.hooke("logs", job_id)
        job = self.job(job_id)
        self.say(f"{job['state']}, accuracy {job['center']['accuracy']}, {audit.looks} looks at all processes")
        self.assertEqual(audit.wrong, [], log)
        self.assertGreater(audit.looks, 100)
        self.check(job, log, audit)
        self.check_nothing_is_left()

    def faults(self, job_id):
        """Each fault begins while the others are not yet over."""
        limited = self.batch_job_of(job_id, 0)
        # Slurm looks at limits each 30 s, and sends the signal up to 60 s early.
        self.slurm.call("scontrol", "update", f"JobId={limited}", "TimeLimit=1")
        self.kill_ranks(job_id, 2)
        self.trains(job_id, {2: 2})
        for host in CLOUD_HOSTS:
            self.network.cut(host)
        cut = time.monotonic()
        self.say("the cloud's links are cut")
        before = self.step(self.groups(job_id)[1])
        self.wait("a group at hpc goes on while the cloud is cut off", lambda: self.step(self.groups(job_id)[1]) > before)
        self.wait("the coordinator has given the cloud's groups up", lambda: all(self.groups(job_id)[group]["state"] == "waiting" for group in CLOUD))
        live = starts_of(rank_lines())
        self.assertEqual([group for group in CLOUD if (job_id, group) in live], [], "they had to end before")
        for host in CLOUD_HOSTS:
            self.assertIn("cut off: the coordinator has not answered this worker for", (self.folder / f"cloud{host}.log").read_text())
        self.wait("30 s have passed", lambda: time.monotonic() >= cut + CUT_SECONDS)
        for host in CLOUD_HOSTS:
            self.network.join(host)
        self.trains(job_id, {0: 2, 1: 1, 2: 3, 3: 2})
        self.assertNotEqual(self.batch_job_of(job_id, 0), limited)
        self.assertIn("worker.sbatch: the time limit is near: the workers end\n", self.batch_log(limited))
        self.assertNotIn("TIME LIMIT", self.batch_log(limited), "Slurm itself has ended the workers")

    def check(self, job, log, audit):
        self.assertEqual(job["state"], "succeeded", log)
        self.assertGreaterEqual(job["center"]["accuracy"], ACCURACY, log)
        starts = {group["group"]: group["incarnation"] for group in job["groups"]}
        self.assertEqual(starts, {0: 2, 1: 1, 2: 3, 3: 2}, log)
        left, again = re.search(r"group 0 rank 0: .*: left after step (\d+), as asked", log), re.search(r"group 0 .*goes on from step (\d+) with its own state of step (\d+)", log)
        self.assertTrue(left and again, log)
        self.assertEqual(again.groups(), (left[1], left[1]), "the group at hpc has lost no step")
        self.assertEqual(len(self.batch_jobs), len(HPC) + 1, "batch jobs")


if __name__ == "__main__":
    slurm_fixture.main(__file__)
