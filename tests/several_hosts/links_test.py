#!/usr/bin/env python3
"""`hooke nodes --links`: what the ranks of a group measure between three hosts, which are network namespaces. Needs root."""

import json
import pathlib
import subprocess
import sys
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "benchmarks")]
import hosts  # noqa: E402
from host_cluster import HostCluster, make_hosts, training_job  # noqa: E402
from support import wait_for  # noqa: E402
import support  # noqa: E402

HOSTS = 3
RUNS_MAX = 8
PAIRS = {("n0", "n1"), ("n0", "n2"), ("n1", "n2")}


class Links(unittest.TestCase):
    def nodes(self, cluster):
        return json.loads(cluster.hooke("nodes", "--links", "--output=json"))

    def measured(self, cluster):
        """Runs a group on all hosts and returns the links that it has measured."""
        before = {link["measured_unix_ms"] for link in self.nodes(cluster)["links"]}
        # Three ranks need the one slot of each of the three workers.
        job_id = cluster.submit(training_job(epochs=1, ranks=HOSTS))
        links = wait_for("three links are measured", lambda: cluster.group(job_id) and self.new_links(cluster, before))
        wait_for("the job has succeeded", lambda: cluster.group(job_id) and cluster.job(job_id)["state"] == "succeeded")
        self.assertNotIn("go through MPI, not sockets", cluster.hooke("logs", job_id))
        self.assertEqual({tuple(sorted((link["from"], link["to"]))) for link in links}, PAIRS)
        print([(link["from"], link["to"], link["round_trip_seconds"], link["bytes_per_second"]) for link in links], flush=True)
        return links

    def new_links(self, cluster, before):
        links = [link for link in self.nodes(cluster)["links"] if link["measured_unix_ms"] not in before]
        return links if len(links) == len(PAIRS) else None

    def test_the_figures_are_those_of_the_link(self):
        network, folder = make_hosts(self, HOSTS, rate="1gbit")
        cluster = HostCluster(network, folder, slots=1)
        self.assertEqual(self.nodes(cluster)["links"], [])
        self.assertEqual(cluster.hooke("nodes", "--links").count("not yet: no group has run on both"), len(PAIRS))
        # While other programs take the cores, ranks wait longer for a core than for the link. So each pair has several tries.
        right = set()
        for _ in range(RUNS_MAX):
            for link in self.measured(cluster):
                rate = link["bytes_per_second"] or 0
                if 125e6 / 1.5 < rate < 125e6 * 1.5 and 0 < link["round_trip_seconds"] < 0.005:
                    right.add((link["from"], link["to"]))
            if len(right) == len(PAIRS):
                break
        self.assertEqual(len(right), len(PAIRS), right)
        table = cluster.hooke("nodes", "--links")
        self.assertRegex(table, r"(?m)^n1 +default +10\.77\.0\.2 +eth0 +10\.0 Gbit/s$")
        self.assertRegex(table, r"(?m)^n0 +n1 +\d+\.\d+ ms .* \d+:\d\d ago$")
        self.assertNotIn("not yet", table)
        cluster.check_nothing_is_left(self)

    def sent(self, network, host, device):
        answer = subprocess.run(["ip", "-n", network.name(host), "-s", "-j", "link", "show", "dev", device], capture_output=True, text=True, check=True)
        return json.loads(answer.stdout)[0]["stats64"]["tx"]["bytes"]

    def test_hookes_own_sockets_use_the_chosen_interface(self):
        network, folder = make_hosts(self, HOSTS)
        # Ranks would take the first network, because the kernel says the same speed of both.
        network._link("eth1", network.bridge + "a", "aside")
        for host in range(HOSTS):
            hosts.run("ip", "-n", network.name(host), "address", "add", f"10.78.0.{host + 1}/24", "dev", "eth1")
        cluster = HostCluster(network, folder, slots=1, worker_flags=["--interface=eth1"])
        self.measured(cluster)
        # The server is on host 0, so the other hosts' first network carries their exchanges.
        for host in (1, 2):
            exchanged, chosen = self.sent(network, host, "eth0"), self.sent(network, host, "eth1")
            print(f"host {host} sent {exchanged} bytes by eth0 and {chosen} bytes by eth1", flush=True)
            self.assertGreater(chosen, 3 * exchanged)
        interfaces = {node["name"]: node["interfaces"] for node in self.nodes(cluster)["nodes"] if node["kind"] == "worker"}
        self.assertEqual(interfaces["n2"], [{"name": "eth1", "address": "10.78.0.3", "megabits": 10000}])
        cluster.check_nothing_is_left(self)


if __name__ == "__main__":
    support.main()
