#!/usr/bin/env python3
"""Groups over several hosts, which are network namespaces, with the real daemons and no ssh. Needs root."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "benchmarks")]
import hosts  # noqa: E402
from support import DATA, PROGRAMS, wait_for  # noqa: E402
import support  # noqa: E402

HOSTS = 3
PORT = 7411
JOB = """name: two
model: mlp
data: {{format: idx, train: {data}, test: {data}}}
train: {{epochs: {epochs}, batch_size: 32, optimizer: {{name: sgd, learning_rate: 0.05}}}}
groups: {{count: 1, ranks: 4}}
averaging: {{rule: elastic, interval: 4}}
"""
# Limit for the other workers to learn that a worker is dead. That usually takes well under 2 s. The rest is for a busy
# machine.
TOLD_SECONDS = 5


class Cluster:
    """A server on the first host, and a worker of two slots with `worker_flags` on each."""

    def __init__(self, network, folder, worker_flags=()):
        self.worker_flags = worker_flags
        self.network, self.folder, self.workers, self.ran_ssh = network, folder, {}, os.path.join(folder, "ssh.ran")
        # Nothing may call ssh. A script of that name comes first on the PATH and leaves a trace.
        tools = os.path.join(folder, "tools")
        os.mkdir(tools)
        for name in ("ssh", "rsh"):
            path = os.path.join(tools, name)
            pathlib.Path(path).write_text(f"#!/bin/sh\necho $0 $* >> {self.ran_ssh}\nexit 1\n")
            os.chmod(path, 0o755)
        # MPICH's UCX must find the network of each namespace. With tcp alone MPI_Finalize hangs now and then if a host has two ranks, also under an
        # mpirun that was started by hand.
        self.environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "UCX_TLS": "tcp,self,posix"}
        # Workers run commands only in a cluster with a token, because other machines reach this coordinator.
        token = os.path.join(folder, "token")
        with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write("several-hosts-token")
        self.environment["HOOKE_TOKEN_FILE"] = token
        first = network.addresses[0]
        self.address = f"[{first}]:{PORT}" if ":" in first else f"{first}:{PORT}"
        self.server = self._start(0, "server", ["hooke-server", f"--listen={self.address}"])
        for host in range(HOSTS):
            self.start_worker(host)

    def _start(self, host, name, command):
        ready = os.path.join(self.folder, f"{name}.ready")
        if os.path.exists(ready):
            os.remove(ready)
        full = [str(PROGRAMS / command[0]), *command[1:], f"--state-dir={self.folder}/{name}", f"--ready-file={ready}"]
        with open(os.path.join(self.folder, f"{name}.log"), "ab") as log:
            process = subprocess.Popen(self.network.command(host, full), env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for(f"{name} is ready", lambda: os.path.exists(ready))
        return process

    def start_worker(self, host):
        name = f"n{host}"
        self.workers[name] = self._start(host, name, ["hooke-worker", f"--coordinator={self.address}", f"--name={name}", "--slots=2", "--allow-commands", *self.worker_flags])

    def kill_worker(self, name):
        self.workers[name].send_signal(signal.SIGKILL)
        self.workers.pop(name).wait()

    def hooke(self, *arguments, status=0):
        command = self.network.command(0, [str(PROGRAMS / "hooke"), *arguments, f"--coordinator={self.address}"])
        result = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60)
        if status is not None and result.returncode != status:
            raise AssertionError(f"hooke {' '.join(arguments)}: {result.returncode}: {result.stdout}{result.stderr}{self.logs()}")
        return result.stdout

    def submit(self, epochs):
        path = os.path.join(self.folder, "job.yaml")
        pathlib.Path(path).write_text(JOB.format(data=DATA, epochs=epochs))
        return json.loads(self.hooke("submit", path, "--output=json"))["job_id"]

    def job(self, job_id):
        return json.loads(self.hooke("jobs", job_id, "--output=json"))

    def logs(self):
        texts = [f"== {path.name}\n{path.read_text(errors='replace')[-3000:]}" for path in sorted(pathlib.Path(self.folder).glob("*.log"))]
        return "\n" + "\n".join(texts)

    def group(self, job_id):
        """Returns the first group; fails if its job has failed."""
        job = self.job(job_id)
        if job["state"] in ("failed", "cancelled"):
            raise AssertionError(f"{job['state']}: {job['reason']}{self.logs()}")
        return job["groups"][0]

    def trains(self, job_id, incarnation):
        """Returns the names of the workers, the lead first, once the group has made 20 steps in this start or a later one."""

        def moved():
            group = self.group(job_id)
            progress = group["progress"] or {}
            if group["state"] == "running" and group["incarnation"] >= incarnation and progress.get("step", 0) >= 20:
                return [part["worker"] for part in group["parts"]]
            return None

        return wait_for(f"start {incarnation} of {job_id} trains", moved)

    def ranks_on(self, name):
        """Returns the process ids of hooke-rank on a worker's host."""
        found = []
        for pid in self.network._processes(int(name[1:])):
            try:
                if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "hooke-rank":
                    found.append(pid)
            except OSError:
                pass
        return found

    def memory_folders(self):
        return {os.path.realpath(link) for link in pathlib.Path(self.folder).glob("n*/groups/*/memory")}

    def end(self):
        for process in [*self.workers.values(), self.server]:
            process.send_signal(signal.SIGTERM)
        return [process.wait(40) for process in [*self.workers.values(), self.server]]


class SeveralHosts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hooke-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.network = hosts.Hosts(HOSTS, self.folder, rate=None)
        self.network.__enter__()
        self.addCleanup(self.network.__exit__)
        self.cluster = Cluster(self.network, self.folder)

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
        job_id = cluster.submit(epochs=25)
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

        self.assertEqual(cluster.end(), [0] * (HOSTS + 1), cluster.logs())
        self.assertFalse(os.path.exists(cluster.ran_ssh), "ssh was called")
        self.assertEqual([self.network._processes(host) for host in range(HOSTS)], [[]] * HOSTS)
        self.assertEqual([list(pathlib.Path(self.folder, f"n{host}", "groups").iterdir()) for host in range(HOSTS)], [[]] * HOSTS)
        self.assertEqual([path for path in memory if os.path.exists(path)], [])

    def test_a_group_on_two_hosts_gets_its_files_on_both(self):
        cluster = self.cluster
        work = pathlib.Path(self.folder, "work")
        work.mkdir()
        (work / "train.py").write_text("import os, brought\nprint(brought.TEXT, os.getcwd())\n")
        (work / "brought.py").write_text("TEXT = 'brought'\n")
        (work / "job.yaml").write_text("name: own\ncommand: [python3, train.py]\nfiles: [train.py, brought.py]\ngroups: {count: 1, ranks: 4}\n")
        job_id = json.loads(cluster.hooke("submit", str(work / "job.yaml"), "--output=json"))["job_id"]
        wait_for("the job has succeeded", lambda: cluster.group(job_id) and cluster.job(job_id)["state"] == "succeeded")
        log = cluster.hooke("logs", job_id)
        folders = re.findall(r"rank \d: brought (\S+)", log)
        self.assertEqual(len(folders), 4, log)
        self.assertEqual(len(set(folders)), 2, log)
        self.assertEqual(log.count("worker: fetched 2 of 2 files"), 2, log)
        self.assertEqual(cluster.end(), [0] * (HOSTS + 1), cluster.logs())
        self.assertEqual([folder for folder in folders if os.path.exists(folder)], [])


if __name__ == "__main__":
    support.main()
