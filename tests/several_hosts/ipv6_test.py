#!/usr/bin/env python3
"""A group over three hosts that have IPv6 addresses only. The hosts are network namespaces. Needs root."""

import pathlib
import sys
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "benchmarks")]
from host_cluster import HostCluster, make_hosts, training_job  # noqa: E402
from support import wait_for  # noqa: E402
import support  # noqa: E402

HOSTS = 3


class Ipv6(unittest.TestCase):
    def setUp(self):
        network, folder = make_hosts(self, HOSTS, ipv6=True)
        self.cluster = HostCluster(network, folder)

    def test_a_group_trains_on_two_hosts(self):
        cluster = self.cluster
        log = pathlib.Path(cluster.folder, "n0.log").read_text()
        if "MPICH starts ranks on other nodes over IPv4 only" in log:
            self.assertIn("only groups whose ranks all run here", log)
            return
        job_id = cluster.submit(training_job(epochs=1))
        wait_for("the job has succeeded", lambda: cluster.group(job_id) and cluster.job(job_id)["state"] == "succeeded", 120)
        self.assertEqual(len(cluster.group(job_id)["parts"]), 2)
        self.assertNotIn("go through MPI, not sockets", cluster.hooke("logs", job_id))
        self.assertRegex(cluster.hooke("nodes", "--links"), r"(?m)^n0 +default +fd77::1 +eth0 ")
        cluster.check_nothing_is_left(self)


if __name__ == "__main__":
    support.main()
