#!/usr/bin/env python3
"""A group on two hosts whose ranks Intel MPI starts, by programs that are built with MPICH. Needs root. Usage: intel_mpi_test.py LIBRARY

LIBRARY is the MPI library that the programs are built with. The test installs Intel MPI from the package index, so it runs only if it is asked for:
tests/run --intel-mpi.
"""

import os
import pathlib
import signal
import sys
import tempfile
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "tests/several_hosts"), str(TREE / "tests/benchmarks"), str(TREE / "python/tests")]
import hosts  # noqa: E402
from host_cluster import HostCluster, make_hosts, training_job  # noqa: E402
import package_index  # noqa: E402
from support import wait_for  # noqa: E402

LIBRARY = sys.argv.pop(1)


class IntelMpi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        case = cls("test_a_group_of_one_host_trains")
        cls.addClassCleanup(case.doCleanups)
        python = package_index.environment_with(case, "impi-rt")
        cls.folder = str(pathlib.Path(python).parents[1])
        # docs/several-machines.md: the programs ask for MPICH's library by its name.
        links = tempfile.TemporaryDirectory(prefix="hooke-")
        cls.addClassCleanup(links.cleanup)
        os.symlink(f"{cls.folder}/lib/libmpi.so.12", f"{links.name}/libmpich.so.12")
        os.environ.update(LD_LIBRARY_PATH=f"{links.name}:{cls.folder}/lib", I_MPI_ROOT=cls.folder, FI_PROVIDER_PATH=f"{cls.folder}/lib")

    def setUp(self):
        network, folder = make_hosts(self, 2)
        self.cluster = HostCluster(network, folder, worker_flags=[f"--mpirun={self.folder}/bin/mpiexec.hydra"])

    def end_of(self, job_id):
        wait_for("the job has succeeded", lambda: self.cluster.group(job_id) and self.cluster.job(job_id)["state"] == "succeeded", 120)
        return self.cluster.group(job_id)

    def test_a_group_of_unequal_parts_trains_and_leaves_nothing(self):
        job_id = self.cluster.submit(training_job(epochs=1, ranks=3))
        self.assertEqual([part["ranks"] for part in self.end_of(job_id)["parts"]], [2, 1])
        self.assertNotIn("go through MPI, not sockets", self.cluster.hooke("logs", job_id))
        self.cluster.check_nothing_is_left(self, self.cluster.memory_folders())

    def test_a_group_of_one_host_trains(self):
        self.assertEqual(self.end_of(self.cluster.submit(training_job(epochs=1, ranks=2)))["parts"], [])
        self.cluster.check_nothing_is_left(self)

    def test_a_script_that_fails_ends_its_job_with_its_last_line(self):
        # Intel MPI kills rank 0 then, and says so, but not that rank 1 has failed.
        script = "if [ $PMI_RANK = 1 ]; then echo boom >&2; exit 3; fi; exec sleep 60"
        job_id = self.cluster.submit(f"name: bad\ncommand: [sh, -c, '{script}']\ngroups: {{count: 1, ranks: 4}}\naveraging: {{rule: none}}\n")
        wait_for("the job has failed", lambda: self.cluster.job(job_id)["state"] == "failed", 60)
        self.assertIn("boom", self.cluster.job(job_id)["reason"])
        self.cluster.check_nothing_is_left(self)

    def test_a_killed_rank_on_either_host_is_named_and_the_group_starts_again(self):
        job_id = self.cluster.submit(training_job(epochs=1000))
        memory = set()
        for start, name in enumerate(("n0", "n1"), 1):
            self.cluster.trains(job_id, start)
            memory |= self.cluster.memory_folders()
            victim = self.cluster.ranks_on(name)[0]
            os.kill(victim, signal.SIGKILL)
            self.cluster.trains(job_id, start + 1)
            self.assertRegex(self.cluster.hooke("logs", job_id), rf"worker {name}: rank \d \(pid {victim}\) (is gone|ended by signal 9)")
        self.cluster.hooke("cancel", job_id)
        self.cluster.check_nothing_is_left(self, memory)


if __name__ == "__main__":
    if LIBRARY != "mpich":
        package_index.skip("IntelMpi", "only programs that are built with MPICH run under Intel MPI; use tests/run --intel-mpi")
    elif hosts.missing():
        package_index.skip("IntelMpi", f"{hosts.missing()}; run as root with iproute2 and kernel support for network namespaces")
    else:
        package_index.run_tests("IntelMpi")
