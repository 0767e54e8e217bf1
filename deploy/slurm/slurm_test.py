#!/usr/bin/env python3
"""deploy/slurm/worker.sbatch under a real Slurm: a job trains on its workers, they leave before the time limit and come back, scancel leaves nothing.

All of it runs in namespaces of its own: network, processes, host name, mounts. So its ports are fixed, and no process outlives the test.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree. Bazel has put the programs into bin/.
sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import skips  # noqa: E402
import slurm_cluster  # noqa: E402

PROGRAMS = pathlib.Path("bin/hooke").resolve().parent
NAMESPACES = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--net", "--uts", "--ipc"]
INSIDE = "HOOKE_SLURM_TEST_INSIDE"
DATA = "/usr/share/datasets/fashion-mnist/t10k"
ADDRESS = "127.0.0.1:7411"
CPUS = 2
WAIT_SECONDS = 180
JOB = f"""name: pilot
model: mlp
data: {{format: idx, train: {DATA}, test: {DATA}}}
train: {{epochs: EPOCHS, batch_size: 32, optimizer: {{name: sgd, learning_rate: 0.05}}}}
groups: {{count: 2, ranks: 1, site: hpc}}
averaging: {{rule: elastic, interval: 4}}
"""
# It takes no core while the test waits.
WAITING_JOB = """name: waits
command: [sleep, "3600"]
groups: {count: 2, ranks: 1, site: hpc}
averaging: {rule: elastic, interval: 4}
"""


def missing():
    """Returns the reason why the test cannot run here; None if it can."""
    why = slurm_cluster.missing()
    if why is None and subprocess.run([*NAMESPACES, "true"], capture_output=True).returncode != 0:
        why = "no namespaces of its own"
    return why


def prepare_namespaces():
    """Gives the network an address, and /dev/shm only what the test puts there."""
    for command in (
        ["ip", "link", "set", "lo", "up"],
        # Slurm looks up addresses only on a host that has another one than 127.0.0.1.
        ["ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth1"],
        ["ip", "address", "add", "198.18.255.1/24", "dev", "eth0"],
        ["ip", "link", "set", "eth0", "up"],
        ["ip", "link", "set", "eth1", "up"],
        ["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/dev/shm"],
        ["hostname", "slurm-test"],
    ):
        subprocess.run(command, check=True)


def processes():
    """Returns process id -> name of all processes of the namespace that are not dead, without this one."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state = (path / "stat").read_text().rsplit(")", 1)[1].split()[0]
            if state != "Z" and int(path.name) != os.getpid():
                found[int(path.name)] = (path / "comm").read_text().strip()
        except OSError:
            pass
    return found


def names():
    return sorted(processes().values())


def end_all():
    """Ends what a failed test has left, all of it in this namespace, so that nothing writes into the test's folder while that is removed."""
    if os.getpid() != 1:
        raise AssertionError("this process is not the first of a namespace of its own")
    deadline = time.monotonic() + WAIT_SECONDS
    while processes() and time.monotonic() < deadline:
        for pid in processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class Pilot(unittest.TestCase):
    def setUp(self):
        if missing():
            self.skipTest(missing())
        folder = tempfile.TemporaryDirectory(prefix="hooke-slurm-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.addCleanup(end_all)
        self.slurm = slurm_cluster.SlurmCluster(self.folder, CPUS)
        self.addCleanup(self.slurm.stop)
        self.slurm.start()
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        self.token = self.folder / "token"
        self.token.write_text("0123456789abcdef0123456789abcdef\n")
        self.token.chmod(0o600)
        self.slurm.daemon(
            str(PROGRAMS / "hooke-server"), f"--listen={ADDRESS}", "--lease=5s", f"--state-dir={self.folder}/server", f"--token-file={self.token}"
        )
        self.before = names()

    def pilot(self, *arguments, path=True, **more):
        """Submits worker.sbatch for both nodes, with `arguments` for sbatch. Returns its job id."""
        flags = ["--coordinator", ADDRESS, "--token-file", self.token, "--site", "hpc", "--allow-commands"]
        search = f"{PROGRAMS}:{os.environ['PATH']}" if path else os.environ["PATH"]
        return self.slurm.submit("--nodes=2", *arguments, HERE / "worker.sbatch", *flags, PATH=search, TMPDIR=str(self.temporary), **more)

    def hooke(self, *arguments, check=True):
        command = [str(PROGRAMS / "hooke"), *arguments, f"--coordinator={ADDRESS}", f"--token-file={self.token}"]
        return self.slurm.call(*command, check=check)

    def submit(self, text):
        path = self.folder / "job.yaml"
        path.write_text(text)
        return json.loads(self.hooke("submit", str(path), "--output=json"))["job_id"]

    def job(self, job_id):
        return json.loads(self.hooke("jobs", job_id, "--output=json"))

    def workers(self):
        return {node["name"]: node for node in json.loads(self.hooke("nodes", "--output=json", check=False) or '{"nodes": []}')["nodes"] if node["kind"] == "worker"}

    def alive(self):
        return sorted(name for name, node in self.workers().items() if node["alive"])

    def wait_for(self, what, condition):
        return self.slurm.wait_for(what, condition, WAIT_SECONDS)

    def runs(self, job_id, incarnation, steps=0):
        """Waits until both groups run in this start or a later one and have made some steps."""

        def moved():
            groups = self.job(job_id)["groups"]
            done = [(group["progress"] or {}).get("step", 0) for group in groups if group["state"] in ("starting", "running") and group["incarnation"] >= incarnation]
            return len(done) == 2 and min(done) >= steps

        self.wait_for(f"both groups of {job_id} run in start {incarnation}", moved)

    def log(self, slurm_job):
        return (self.folder / f"hooke-worker-{slurm_job}.log").read_text()

    def check_nothing_is_left(self):
        self.wait_for("Slurm's queue is empty", lambda: self.slurm.call("squeue", "--noheader") == "")
        self.wait_for(f"no process is left of {names()}", lambda: names() == self.before)
        self.assertEqual([path.name for path in self.temporary.iterdir()], [])
        self.assertEqual([path.name for path in pathlib.Path("/dev/shm").glob("hooke-*")], [])

    def test_a_job_trains_and_scancel_leaves_nothing(self):
        pilot = self.pilot()
        workers = [f"n0-{pilot}", f"n1-{pilot}"]
        self.wait_for("both workers are there", lambda: self.alive() == workers)
        self.assertEqual([self.workers()[name]["slots"] for name in workers], [CPUS, CPUS])
        job_id = self.submit(JOB.replace("EPOCHS", "1"))
        self.wait_for("the job has succeeded", lambda: self.job(job_id)["state"] == "succeeded")
        job_id = self.submit(JOB.replace("EPOCHS", "1000"))
        self.runs(job_id, 1, steps=20)
        self.slurm.call("scancel", pilot)
        self.check_nothing_is_left()
        self.assertEqual(self.slurm.job(pilot)["JobState"], "CANCELLED")
        self.assertEqual(self.log(pilot).count("stopped"), 2, self.log(pilot))

    def test_workers_leave_before_the_time_limit_and_come_back(self):
        # Slurm looks at limits each 30 s, and sends the signal up to 60 s early.
        pilot = self.pilot("--time=1", "--signal=B:USR1@55", HOOKE_REQUEUE="1")
        self.wait_for("both workers are there", lambda: len(self.alive()) == 2)
        job_id = self.submit(WAITING_JOB)
        self.runs(job_id, 1)
        self.wait_for("the job was requeued", lambda: int(self.slurm.job(pilot)["Restarts"]) >= 1)
        log = self.log(pilot)
        self.assertIn("worker.sbatch: the time limit is near: the workers end\n", log)
        self.assertGreaterEqual(log.count("stopped"), 2, log)
        self.assertNotIn("TIME LIMIT", log)
        self.runs(job_id, 2)
        self.slurm.call("scancel", pilot)
        self.check_nothing_is_left()

    def test_workers_leave_when_they_are_told_to(self):
        pilot = self.pilot()
        self.wait_for("both workers are there", lambda: len(self.alive()) == 2)
        self.slurm.call("scancel", "--batch", "--signal=TERM", pilot)
        self.check_nothing_is_left()
        self.assertEqual([self.slurm.job(pilot)[key] for key in ("JobState", "ExitCode", "Restarts")], ["COMPLETED", "0:0", "0"], self.log(pilot))


    def test_a_missing_program_is_named(self):
        pilot = self.pilot(path=False)
        self.check_nothing_is_left()
        self.assertEqual(self.slurm.job(pilot)["JobState"], "FAILED")
        self.assertIn("hooke-worker is not on the PATH of node slurm-test", self.log(pilot))


def main():
    if missing() or INSIDE in os.environ:
        if INSIDE in os.environ:
            prepare_namespaces()
        skips.main()
    os.execvpe(NAMESPACES[0], [*NAMESPACES, sys.executable, os.path.realpath(__file__), *sys.argv[1:]], {**os.environ, INSIDE: "1"})


if __name__ == "__main__":
    main()
