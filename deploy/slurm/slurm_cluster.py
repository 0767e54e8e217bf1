"""A Slurm of two nodes on this machine, for tests. All its files are in one folder. Run it in network and process namespaces of its own: its ports are
fixed, and its processes are then gone with the first one. Needs root."""

import os
import pathlib
import shutil
import socket
import subprocess

import polling

# Daemons and tools of the system are in /usr/sbin, which not every PATH has.
os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "scontrol", "squeue")
START_SECONDS = 30
STOP_SECONDS = 10
GPUS = 4
CONFIGURATION = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=6817
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
SchedulerParameters=sched_interval=1,bf_interval=1
KillWait=10
GresTypes=gpu
NodeName=n0 NodeHostname={host} NodeAddr=127.0.0.1 Port=6821 CPUs={cpus} Gres=gpu:{gpus}
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port=6822 CPUs={cpus} Gres=gpu:{gpus}
{more}
"""
NODES = ("n0", "n1")
PARTITIONS = "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP"


def missing():
    """Returns the reason why no Slurm can run here; None if one can."""
    for program in PROGRAMS:
        if shutil.which(program) is None:
            return f"no program {program}: install the packages slurm-wlm and munge, as deploy/install-deps --ci does"
    return None if os.geteuid() == 0 else "daemons of Slurm need root"


class SlurmCluster:
    """Two nodes of `cpus` CPUs and GPUS made-up GPUs each. `more` has more lines of slurm.conf. `environment` is that of its commands and daemons. They run on the host of
    the name `host`: `at_host` makes of a command the one that runs it there."""

    def __init__(self, folder, cpus, more=PARTITIONS, host=None, at_host=lambda command: command):
        self.folder, self.at_host, self.daemons, self.slurmds = pathlib.Path(folder), at_host, [], {}
        self.folder.chmod(0o755)
        (self.folder / "state").mkdir()
        configuration = self.folder / "slurm.conf"
        host = host or socket.gethostname().split(".")[0]
        configuration.write_text(CONFIGURATION.format(host=host, folder=folder, cpus=cpus, gpus=GPUS, more=more))
        # To Slurm a GPU is the name of a device. Any one serves.
        for number in range(GPUS):
            (self.folder / f"gpu{number}").symlink_to("/dev/null")
        (self.folder / "gres.conf").write_text(f"Name=gpu File={folder}/gpu[0-{GPUS - 1}]\n")
        self.environment = {**os.environ, "SLURM_CONF": str(configuration)}
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)

    def start(self):
        names = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munge.pid", "log-file": "munge.log", "seed-file": "munge.seed"}
        self.daemon("munged", "--foreground", *(f"--{flag}={self.folder / name}" for flag, name in names.items()))
        self.wait_for("munge's socket", (self.folder / "munge.socket").exists)
        self.daemon("slurmctld", "-D")
        for node in NODES:
            self.start_slurmd(node)
        self.wait_for("two idle nodes", lambda: self.call("sinfo", "-h", "-o", "%T %D", check=False).split() == ["idle", "2"])

    def start_slurmd(self, node):
        self.slurmds[node] = self.daemon("slurmd", "-D", "-N", node)

    def daemon(self, *command, log=None, **more):
        """Starts a daemon, which `stop` ends, and returns it. By default its log has the name of its program."""
        with open(self.folder / f"{log or pathlib.Path(command[0]).name}.log", "ab") as file:
            process = subprocess.Popen(self.at_host(list(command)), env={**self.environment, **more}, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        self.daemons.append(process)
        return process

    def stop(self):
        """Ends one after another, the last started first: a slurmd that has just ended a step tells slurmctld, and asks again for minutes if that is gone."""
        for process in reversed(self.daemons):
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def call(self, *command, check=True, **more):
        result = subprocess.run(self.at_host(list(command)), env={**self.environment, **more}, cwd=self.folder, capture_output=True, text=True, timeout=60)
        if check and result.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {result.returncode}: {result.stdout}{result.stderr}")
        return result.stdout

    def submit(self, *arguments, **more):
        """Returns the id of the job."""
        return self.call("sbatch", "--parsable", *map(str, arguments), **more).strip()

    def job(self, job_id):
        """Returns what Slurm says of a job, key -> value."""
        return dict(word.split("=", 1) for word in self.call("scontrol", "show", "job", job_id).split() if "=" in word)

    def wait_for(self, what, condition, seconds=START_SECONDS, pause=0.1):
        return polling.wait_for(what, condition, seconds, self.logs, pause)

    def logs(self):
        return "".join(f"\n== {path.name}\n{path.read_text(errors='replace')[-3000:]}" for path in sorted(self.folder.glob("*.log")))
