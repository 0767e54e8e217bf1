"""What the tests under a real Slurm have in common: namespaces of their own, a Slurm, and a coordinator.

All of it runs in namespaces: network, processes, host name, mounts. So its ports are fixed, and no process outlives the test.
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
JOB = f"""name: trains
model: small-mlp
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


class SlurmTestCase(unittest.TestCase):
    """A Slurm of two nodes with CPUS each, and a coordinator."""

    address, lease, partitions = ADDRESS, "5s", slurm_cluster.PARTITIONS

    def setUp(self):
        if missing():
            self.skipTest(missing())
        folder = tempfile.TemporaryDirectory(prefix="hooke-slurm-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.addCleanup(end_all)
        self.slurm = slurm_cluster.SlurmCluster(self.folder, CPUS, self.partitions)
        self.addCleanup(self.slurm.stop)
        self.slurm.start()
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        self.token = self.folder / "token"
        self.token.write_text("0123456789abcdef0123456789abcdef\n")
        self.token.chmod(0o600)
        flags = [f"--listen={self.address}", f"--lease={self.lease}", f"--state-dir={self.folder}/server", f"--token-file={self.token}"]
        self.slurm.daemon(*self.at_server([str(PROGRAMS / "hooke-server"), *flags]), log="hooke-server")
        self.wait_for("the coordinator answers", lambda: self.hooke("nodes", check=False))
        self.before = names()

    def at_server(self, command):
        """Returns the command that runs a command on the server's host, which is this one."""
        return command

    def agent(self, *flags):
        """Starts the agent of site hpc. Its batch jobs' workers end 3 s after their last group."""
        process = self.slurm.daemon(
            str(PROGRAMS / "hooke-worker"),
            "--slurm",
            f"--coordinator={self.address}",
            f"--token-file={self.token}",
            "--site=hpc",
            "--allow-commands",
            f"--state-dir={self.folder}/agent",
            "--exit-idle=3s",
            *flags,
            TMPDIR=str(self.temporary),
        )
        self.before = sorted([*self.before, "hooke-worker"])
        return process

    def queue(self):
        """Returns Slurm's queue: id -> state."""
        return dict(line.split() for line in self.slurm.call("squeue", "--noheader", "--format=%i %T").splitlines())

    def hooke(self, *arguments, check=True):
        command = [str(PROGRAMS / "hooke"), *arguments, f"--coordinator={self.address}", f"--token-file={self.token}"]
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

    def wait_for(self, what, condition, seconds=WAIT_SECONDS, pause=0.1):
        return self.slurm.wait_for(what, condition, seconds, pause)

    def runs(self, job_id, incarnation, steps=0):
        """Waits until both groups run in this start or a later one and have made some steps."""

        def moved():
            groups = self.job(job_id)["groups"]
            done = [(group["progress"] or {}).get("step", 0) for group in groups if group["state"] in ("starting", "running") and group["incarnation"] >= incarnation]
            return len(done) == 2 and min(done) >= steps

        self.wait_for(f"both groups of {job_id} run in start {incarnation}", moved)

    def check_nothing_is_left(self):
        self.wait_for("Slurm's queue is empty", lambda: self.slurm.call("squeue", "--noheader") == "")
        self.wait_for(f"no process is left of {names()}", lambda: names() == self.before)
        self.assertEqual([path.name for path in self.temporary.iterdir()], [])
        self.assertEqual([path.name for path in pathlib.Path("/dev/shm").glob("hooke-*")], [])


def main(test):
    """Runs the tests of the program `test`, its path, in namespaces of its own."""
    if missing() or INSIDE in os.environ:
        if INSIDE in os.environ:
            prepare_namespaces()
        skips.main()
    os.execvpe(NAMESPACES[0], [*NAMESPACES, sys.executable, os.path.realpath(test), *sys.argv[1:]], {**os.environ, INSIDE: "1"})
