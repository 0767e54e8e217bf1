"""The cluster to which chaos.py does its faults: hosts that are network namespaces, two servers, workers, and a Slurm."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import slurm_cluster
from host_cluster import HostCluster
from support import PROGRAMS

HOSTS = 4
SLOTS = 2
# One more host has a whole Slurm, whose batch jobs are the workers of a site of their own.
SLURM_HOST, SLURM_SITE = HOSTS, "hpc"
# When slurmd starts again, Slurm takes back a node that it has given up.
SLURM_OPTIONS = f"SlurmdTimeout=3\nReturnToService=2\n{slurm_cluster.PARTITIONS}"
# A worker or server that was stopped or cut off for longer than this is lost. Some faults last less long, others longer.
LEASE = "5s"
ASK_SECONDS = 60
SBATCH = pathlib.Path(slurm_cluster.__file__).resolve().with_name("worker.sbatch")


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
            # Unlike `ip netns exec`, these commands do not mount another /sys: slurmd needs /sys/fs/cgroup.
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

    def tidy_slurm(self):
        """Starts a worker on each node of Slurm that ends at once. It removes what is left of those that Slurm has killed when it found a lost node again."""
        path = f"{PROGRAMS}:{self.environment['PATH']}"
        self.slurm.submit("--nodes=2", "--exclusive", "--output=/dev/null", SBATCH, "--help", PATH=path, TMPDIR=str(self.slurm_temporary))

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

    def begin_submit(self, text):
        """Starts `hooke submit` with the job of this YAML text. Returns the process."""
        path = pathlib.Path(self.folder, "job.yaml")
        path.write_text(text)
        command = self.network.command(0, [str(PROGRAMS / "hooke"), "submit", str(path), "--output=json", f"--coordinator={self.address}"])
        return subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def place(self, line):
        """Returns where a rank with this command line runs: the name of its worker, or the site of the batch jobs. Of other clusters' ranks None."""
        if found := re.search(rf"{re.escape(self.folder)}/(n\d+)/groups/", line):
            return found[1]
        return SLURM_SITE if self.slurm is not None and str(self.slurm_temporary) in line else None

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
