#!/usr/bin/env python3
"""Prints how long four MPI ranks on two nodes of a Slurm take from their start to the end of MPI_Init in the last of them: by `srun --mpi=pmix` in an
allocation, and as a group of Hooke on workers in an allocation. Each node is a network namespace of this machine.

    deploy/slurm/srun_start.py

Needs root, the packages slurm-wlm, munge and libopenmpi-dev, and `bazel build //:programs`.
"""

import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
if not pathlib.Path("bin/hooke").exists():
    os.chdir(HERE.parents[1] / "bazel-bin")
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "tests" / "benchmarks"), str(HERE.parents[1] / "tests" / "several_hosts")]
import hosts  # noqa: E402
import slurm_cluster  # noqa: E402
from host_cluster import HostCluster  # noqa: E402

TIMES = 10
CPUS = 2
PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <time.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  int ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  printf("began as one of %d at %ld.%09ld\n", ranks, (long)now.tv_sec, now.tv_nsec);
  return MPI_Finalize();
}
"""
JOB = """name: starts
command: [{program}]
groups: {{count: 1, ranks: 4, site: hpc}}
averaging: {{rule: none}}
"""


def last_began(text):
    """Returns when the last of four ranks had ended MPI_Init, by the lines that they print."""
    began = [float(at) for at in re.findall(r"began as one of 4 at ([\d.]+)", text)]
    if len(began) != 4:
        raise SystemExit(f"these are no lines of four ranks of one MPI job:\n{text}")
    return max(began)


class TwoNodes(slurm_cluster.SlurmCluster):
    """A Slurm whose node n1 is on the second host. Everything else is on the first one."""

    def __init__(self, folder, network):
        # Each slurmd needs a folder of its own for PMIx.
        more = f"TmpFS={folder}/%n-tmp\n{slurm_cluster.PARTITIONS}"

        def at_host(command):
            name = network.name(1 if command[-1:] == ["n1"] else 0)
            # Unlike `ip netns exec` this leaves /sys as it is. slurmd needs /sys/fs/cgroup.
            return ["nsenter", f"--net=/run/netns/{name}", "unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', name, *command]

        super().__init__(folder, CPUS, more, network.name(0), at_host)
        path = self.folder / "slurm.conf"
        text = path.read_text()
        for host, node in enumerate(slurm_cluster.NODES):
            (self.folder / f"{node}-tmp").mkdir()
            text = re.sub(rf"NodeName={node} NodeHostname=\S+ NodeAddr=\S+", f"NodeName={node} NodeHostname={network.name(host)} NodeAddr={network.addresses[host]}", text)
        path.write_text(text.replace("(127.0.0.1)", f"({network.addresses[0]})"))


def with_srun(slurm, program):
    took = []
    for _ in range(TIMES):
        # The time of the allocation does not count.
        text = slurm.call("salloc", "--quiet", "--nodes=2", "--ntasks=4", "sh", "-c", f"date +%s.%N; srun --mpi=pmix {program}")
        took.append(last_began(text) - float(text.split()[0]))
    return took


def with_hooke(slurm, cluster, program):
    flags = [f"--coordinator={cluster.address}", "--site=hpc", "--allow-commands", f"--token-file={cluster.environment['HOOKE_TOKEN_FILE']}"]
    path = f"{pathlib.Path('bin').resolve()}:{os.environ['PATH']}"
    allocation = slurm.submit("--nodes=2", "--exclusive", HERE / "worker.sbatch", *flags, PATH=path)
    slurm.wait_for("both workers are there", lambda: cluster.hooke("nodes").count(f"-{allocation}") == 2)
    took = []
    for _ in range(TIMES):
        began = time.time()
        job_id = cluster.submit(JOB.format(program=program))
        slurm.wait_for("the job has ended", lambda: cluster.job(job_id)["state"] == "succeeded", pause=0.5)
        took.append(last_began(cluster.hooke("logs", job_id)) - began)
    slurm.call("scancel", "--batch", "--signal=TERM", allocation)
    slurm.wait_for("Slurm is empty", lambda: slurm.call("squeue", "--noheader") == "")
    return took


def main():
    if missing := slurm_cluster.missing() or hosts.missing():
        raise SystemExit(missing)
    with tempfile.TemporaryDirectory(prefix="hooke-", dir="/tmp") as folder, hosts.Hosts(2, folder, rate=None) as network:
        program = pathlib.Path(folder, "starts")
        subprocess.run(["mpicc.openmpi", "-x", "c", "-", "-o", str(program)], input=PROGRAM, text=True, check=True)
        pathlib.Path(folder, "slurm").mkdir()
        pathlib.Path(folder).chmod(0o755)
        slurm = TwoNodes(f"{folder}/slurm", network)
        cluster = None
        try:
            slurm.start()
            cluster = HostCluster(network, folder, worker_hosts=())
            for name, took in (("srun --mpi=pmix", with_srun(slurm, program)), ("hooke submit", with_hooke(slurm, cluster, program))):
                print(f"{name}: median {statistics.median(took):.2f} s, worst {max(took):.2f} s of {TIMES}", flush=True)
        finally:
            slurm.stop()
            if cluster is not None:
                cluster.end()


if __name__ == "__main__":
    main()
