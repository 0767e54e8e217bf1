#!/usr/bin/env python3
"""Groups over several hosts, which are network namespaces, with the real daemons and no ssh. Needs root."""

import json
import os
import pathlib
import re
import sys
import time
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "benchmarks")]
from host_cluster import HostCluster, make_hosts, training_job  # noqa: E402
from support import wait_for  # noqa: E402
import support  # noqa: E402

HOSTS = 3
PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python"
SCRIPT_JOB = """name: script
command: [/usr/bin/python3, {script}, --samples=1280, --epochs={epochs}]
environment: {{PYTHONPATH: {package}, PYTHONDONTWRITEBYTECODE: "1", OMP_NUM_THREADS: "1"}}
groups: {{count: 1, ranks: 4}}
averaging: {{rule: elastic, interval: 2}}
"""
# Limit for the other workers to learn that a worker is dead. That usually takes well under 2 s. The rest is for a busy
# machine.
TOLD_SECONDS = 5
# Limit for a script of torch on four ranks, on a busy machine.
SCRIPT_SECONDS = 400


class SeveralHosts(unittest.TestCase):
    def setUp(self):
        self.network, self.folder = make_hosts(self, HOSTS)
        self.cluster = HostCluster(self.network, self.folder)

    def kill(self, job_id, name, other):
        """Kills a worker. The other one's ranks must end soon, and the reason names the killed one."""
        start = self.cluster.group(job_id)["incarnation"]
        ranks = set(self.cluster.ranks_on(other))
        self.assertEqual(len(ranks), 2)
        killed = time.monotonic()
        self.cluster.kill_worker(name)
        wait_for("the other worker's ranks have ended", lambda: not ranks & set(self.cluster.ranks_on(other)), TOLD_SECONDS)
        ended = time.monotonic() - killed
        wait_for("the coordinator knows", lambda: self.cluster.group(job_id)["incarnation"] > start or self.cluster.group(job_id)["state"] == "waiting")
        print(f"killed {name}: the ranks on {other} had ended after {ended:.2f} s, the coordinator knew after {time.monotonic() - killed:.2f} s", flush=True)
        log = self.cluster.hooke("logs", job_id)
        self.assertRegex(log, rf"group 0 at step \d+: failed \(worker {name} is gone; ")

    def test_a_group_on_two_hosts_survives_the_death_of_its_lead_and_of_another_worker(self):
        cluster = self.cluster
        job_id = cluster.submit(training_job(epochs=25))
        workers = cluster.trains(job_id, 1)
        self.assertEqual(len(workers), 2)
        first_step = cluster.job(job_id)
        print(f"first step {(first_step['first_step_unix_ms'] - first_step['submitted_unix_ms']) / 1000:.2f} s after submit", flush=True)
        memory = cluster.memory_folders()
        self.assertEqual(len(memory), 2)

        # Kills the worker of rank 0, where mpirun runs.
        self.kill(job_id, workers[0], workers[1])
        second = cluster.trains(job_id, 2)
        self.assertNotIn(workers[0], second)
        self.assertEqual(len(second), 2)
        cluster.start_worker(int(workers[0][1:]))
        memory |= cluster.memory_folders()

        # Kills the worker without rank 0.
        self.kill(job_id, second[1], second[0])
        third = cluster.trains(job_id, 3)
        self.assertNotIn(second[1], third)
        cluster.start_worker(int(second[1][1:]))
        memory |= cluster.memory_folders()
        wait_for("the group has finished", lambda: cluster.group(job_id)["state"] == "finished", 200)
        wait_for("the job has succeeded", lambda: cluster.job(job_id)["state"] == "succeeded")
        self.assertGreater(cluster.job(job_id)["center"]["accuracy"], 0.5)

        cluster.check_nothing_is_left(self, memory)

    def check_cores(self, log):
        """Each node says in one line which cores its ranks have, and there they run. All hosts are this machine, so the first one may have all its cores."""
        self.assertEqual(len(re.findall(r"worker: each rank on n\d has|worker: ranks on n\d are not bound to cores", log)), 2, log)
        runs_on = dict(re.findall(r"rank (\d): runs on \[(.*)\]", log))
        self.assertEqual(sorted(runs_on), list("0123"), log)
        taken = []
        for rank, text in re.findall(r"[:;] rank (\d) CPUs? ([\d,-]+)", log):
            ends = [part.split("-") for part in text.split(",")]
            cpus = [cpu for end in ends for cpu in range(int(end[0]), int(end[-1]) + 1)]
            self.assertEqual(runs_on.pop(rank), ", ".join(map(str, cpus)), log)
            taken += cpus
        self.assertEqual(len(taken), len(set(taken)), log)
        for text in runs_on.values():
            self.assertEqual(text, ", ".join(map(str, sorted(os.sched_getaffinity(0)))), log)

    def test_a_group_on_two_hosts_gets_its_files_on_both(self):
        cluster = self.cluster
        work = pathlib.Path(self.folder, "work")
        work.mkdir()
        (work / "train.py").write_text("import os, brought\nprint(brought.TEXT, os.getcwd())\nprint('runs on', sorted(os.sched_getaffinity(0)))\n")
        (work / "brought.py").write_text("TEXT = 'brought'\n")
        (work / "job.yaml").write_text("name: own\ncommand: [python3, train.py]\nfiles: [train.py, brought.py]\ngroups: {count: 1, ranks: 4}\n")
        job_id = json.loads(cluster.hooke("submit", str(work / "job.yaml"), "--output=json"))["job_id"]
        wait_for("the job has succeeded", lambda: cluster.group(job_id) and cluster.job(job_id)["state"] == "succeeded")
        log = cluster.hooke("logs", job_id)
        folders = re.findall(r"rank \d: brought (\S+)", log)
        self.assertEqual(len(folders), 4, log)
        self.assertEqual(len(set(folders)), 2, log)
        self.assertEqual(log.count("worker: fetched 2 of 2 files"), 2, log)
        self.check_cores(log)
        cluster.check_nothing_is_left(self)
        self.assertEqual([folder for folder in folders if os.path.exists(folder)], [])

    def test_a_script_of_torch_trains_on_two_hosts(self):
        """The example as it is, the same as on one machine."""
        cluster = self.cluster
        job_id = cluster.submit(SCRIPT_JOB.format(script=PACKAGE / "examples/fashion_mnist_cnn.py", package=PACKAGE, epochs=2))
        wait_for("the job has succeeded", lambda: cluster.group(job_id) and cluster.job(job_id)["state"] == "succeeded", SCRIPT_SECONDS)
        group = cluster.group(job_id)
        self.assertEqual((group["incarnation"], group["progress"]["step"]), (1, 10), cluster.hooke("logs", job_id))
        self.assertEqual(len(group["parts"]), 2)
        cluster.check_nothing_is_left(self)

    def test_a_script_leaves_a_drained_worker_and_loses_no_step(self):
        """Its ranks on the other worker leave with those on the drained one. The script has momentum, and goes on with it."""
        cluster = self.cluster
        job_id = cluster.submit(SCRIPT_JOB.format(script=PACKAGE / "examples/fashion_mnist_cnn.py", package=PACKAGE, epochs=12))
        wait_for("the script trains", lambda: cluster.group(job_id) and int((cluster.group(job_id)["progress"] or {}).get("step", 0)) >= 3, 120)
        drained = cluster.group(job_id)["parts"][1]["worker"]
        cluster.hooke("drain", drained, "--now")
        wait_for("the job has succeeded", lambda: cluster.job(job_id)["state"] == "succeeded", SCRIPT_SECONDS)
        log = cluster.hooke("logs", job_id)
        left, again = re.search(r": left after step (\d+), as asked: stopped: worker (\S+) is drained", log), re.search(r"goes on from step (\d+) with its own state of step (\d+)", log)
        self.assertTrue(left and again, log)
        self.assertEqual((left[2], again[1], again[2]), (drained, left[1], left[1]), log)
        self.assertNotIn("Traceback", log)
        group = cluster.group(job_id)
        self.assertEqual((group["incarnation"], group["progress"]["step"]), (2, 60), log)
        self.assertNotIn(drained, [part["worker"] for part in group["parts"]])
        cluster.check_nothing_is_left(self)


if __name__ == "__main__":
    support.main()
