#!/usr/bin/env python3
"""Many starts of groups over two hosts: none hangs, none is tried twice, and none leaves a process, a folder, memory or a namespace. Needs root."""

import json
import pathlib
import subprocess
import sys
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "benchmarks")]
from host_cluster import HostCluster, make_hosts  # noqa: E402
from support import wait_for  # noqa: E402
import support  # noqa: E402

STARTS = 100
SITES = ("a", "b")
PROGRAM = pathlib.Path("worker/api/linear_regression").resolve()
# Each site has two hosts of one slot, so that a group of two ranks is on both.
JOB = """name: start
command: [{program}, "2"]
groups: {{count: 1, ranks: 2, site: {site}}}
averaging: {{rule: none}}
"""
# The limit for all starts together, on a busy machine. A start takes about a second.
LIMIT_SECONDS = 600


class Starts(unittest.TestCase):
    def test_none_hangs_and_none_leaves_anything(self):
        network, folder = make_hosts(self, 2 * len(SITES))
        cluster = HostCluster(network, folder, slots=1, sites=[site for site in SITES for _ in range(2)])
        submitted = [cluster.submit(JOB.format(program=PROGRAM, site=SITES[number % len(SITES)])) for number in range(STARTS)]

        memory = set()

        def states():
            memory.update(cluster.memory_folders())
            jobs = json.loads(cluster.hooke("jobs", "--output=json"))["jobs"]
            return {job["job_id"]: job["state"] for job in jobs}

        wait_for("all jobs have ended", lambda: set(states().values()) <= {"succeeded", "failed", "cancelled"}, LIMIT_SECONDS)
        self.assertEqual(states(), {job_id: "succeeded" for job_id in submitted}, cluster.logs())
        for job_id in submitted:
            group = cluster.group(job_id)
            self.assertEqual(group["incarnation"], 1, f"{job_id} was started again: {group}")
        self.assertTrue(memory, "no folder of a group was seen")
        cluster.check_nothing_is_left(self, memory)
        self.doCleanups()
        self.assertNotIn(network.prefix, subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    support.main()
