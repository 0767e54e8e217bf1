#!/usr/bin/env python3
"""The link of a group's host is down for a while. Needs root."""

import pathlib
import sys
import time
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "benchmarks")]
from host_cluster import HostCluster, make_hosts, training_job  # noqa: E402
from support import wait_for  # noqa: E402
import support  # noqa: E402

CUT_SECONDS = 30


class CutLink(unittest.TestCase):
    def test_a_host_that_is_cut_off_is_replaced_and_comes_back(self):
        """Meanwhile the group trains on the other hosts."""
        network, folder = make_hosts(self, 3)
        cluster = HostCluster(network, folder)
        job_id = cluster.submit(training_job(epochs=10000))
        name = next(name for name in cluster.trains(job_id, 1) if name != "n0")  # The server's host stays.
        ranks = set(cluster.ranks_on(name))
        self.assertEqual(len(ranks), 2)
        network.cut(int(name[1:]))
        cut = time.monotonic()
        self.assertNotIn(name, cluster.trains(job_id, 2))
        print(f"cut off {name}: the group trained elsewhere after {time.monotonic() - cut:.1f} s", flush=True)
        wait_for("30 s have passed", lambda: time.monotonic() >= cut + CUT_SECONDS)
        network.join(int(name[1:]))
        wait_for(f"{name} is back", lambda: cluster.node(name)["alive"])
        wait_for(f"the ranks of the first start on {name} have ended", lambda: not ranks & set(cluster.ranks_on(name)))
        start = cluster.group(job_id)["incarnation"]
        self.assertNotIn(name, cluster.trains(job_id, start))
        cluster.hooke("cancel", job_id)
        wait_for("the job is cancelled", lambda: cluster.job(job_id)["state"] == "cancelled")
        cluster.check_nothing_is_left(self)

    def test_a_group_whose_hosts_are_cut_off_together_ends(self):
        """Its hosts reach each other, but no server and not the coordinator. It ends before it might start elsewhere, and goes on later.

        The ranks of each host exchange with one of the two servers.
        """
        network, folder = make_hosts(self, 4)
        cluster = HostCluster(network, folder, worker_hosts=(2, 3))
        cluster.start_second()
        job_id = cluster.submit(training_job(epochs=10000))
        self.assertEqual(sorted(cluster.trains(job_id, 1)), ["n2", "n3"])
        self.assertEqual(len(cluster.job(job_id)["servers"]), 2)
        ranks = {name: cluster.ranks_on(name) for name in cluster.workers}
        self.assertEqual([len(pids) for pids in ranks.values()], [2, 2])
        network.cut(0)
        network.cut(1)
        logs = [pathlib.Path(folder) / f"{name}.log" for name in cluster.workers]
        said = "cut off: the coordinator has not answered this worker for"
        wait_for("a worker says that the group is cut off", lambda: any(said in log.read_text(errors="replace") for log in logs))
        wait_for("no rank is left", lambda: not any(cluster.ranks_on(name) for name in cluster.workers))
        self.assertNotEqual(cluster.group(job_id)["incarnation"], 2)
        network.join(0)
        network.join(1)
        self.assertEqual(sorted(cluster.trains(job_id, 2)), ["n2", "n3"])
        cluster.hooke("cancel", job_id)
        wait_for("the job is cancelled", lambda: cluster.job(job_id)["state"] == "cancelled")
        cluster.check_nothing_is_left(self)


if __name__ == "__main__":
    support.main()
