#!/usr/bin/env python3
"""`hooke up --hosts`: a cluster on virtual hosts, with the real programs. Needs root."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "benchmarks")]
from support import DATA, PROGRAMS, wait_for  # noqa: E402
import support  # noqa: E402

JOB = f"""name: two
model: small-mlp
data: {{format: idx, train: {DATA}, test: {DATA}}}
train: {{epochs: 1, batch_size: 64, optimizer: {{name: sgd, learning_rate: 0.05}}}}
groups: {{count: 1, ranks: 4}}
averaging: {{rule: elastic, interval: 4}}
"""


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class UpHosts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hooke-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {**os.environ, "HOME": folder.name}
        self.addCleanup(self.remove)

    def remove(self):
        """Removes what a failed test has left. A device ends with the namespace of its peer."""
        for name in self.left():
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)

    def up(self, *options):
        log = open(self.folder / "up.log", "wb")
        self.addCleanup(log.close)
        command = [str(PROGRAMS / "hooke"), "up", "--hosts=2", *options]
        process = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(lambda: (process.kill(), process.wait()))
        wait_for("the cluster is up, or has ended", lambda: process.poll() is not None or "Stop: " in self.said())
        return process

    def said(self):
        return (self.folder / "up.log").read_text()

    def hooke(self, *arguments):
        result = subprocess.run([str(PROGRAMS / "hooke"), *arguments], env=self.environment, capture_output=True, text=True, timeout=90)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr + self.said())
        return result.stdout

    def network(self):
        return int((self.folder / ".hooke" / "up" / "network").read_text())

    def left(self):
        """Returns the namespaces and devices of this test's network that exist."""
        if not (self.folder / ".hooke" / "up" / "network").exists():
            return []
        names = [line.split()[0] for line in output("ip", "netns", "list").splitlines()]
        devices = os.listdir("/sys/class/net")
        return [name for name in names if name.startswith(f"hooke-{self.network()}-")] + [name for name in devices if name == f"hooke{self.network()}"]

    def test_a_group_trains_on_two_hosts_and_a_killed_cluster_starts_again(self):
        process = self.up("--link=1gbit")
        self.assertIn("links: 1gbit", self.said())
        host = f"hooke-{self.network()}-1"
        self.assertIn("rate 1Gbit", output("tc", "-n", host, "qdisc", "show", "dev", "eth0"))
        job = self.folder / "job.yaml"
        job.write_text(JOB)
        self.hooke("submit", str(job), "--watch")
        found = json.loads(self.hooke("jobs", "two-1", "--output=json"))
        self.assertEqual(found["state"], "succeeded")
        self.assertEqual({part["worker"] for part in found["groups"][0]["parts"]}, {"worker-1", "worker-2"})

        process.kill()
        process.wait()
        self.assertEqual(len(self.left()), 4)
        process = self.up()
        self.assertIn("links: any rate", self.said())
        self.assertNotIn("tbf", output("tc", "-n", host, "qdisc", "show", "dev", "eth0"))
        self.assertEqual(json.loads(self.hooke("jobs", "two-1", "--output=json"))["state"], "succeeded")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(40), 0, self.said())
        self.assertEqual(self.left(), [])

    def test_a_delay_is_kept_or_refused_by_name(self):
        process = self.up("--delay=20ms")
        if process.poll() is None:
            host = f"hooke-{self.network()}-1"
            self.assertRegex(output("tc", "-n", host, "qdisc", "show", "dev", "eth0"), "netem.* delay 20")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(40), 0, self.said())
        else:
            self.assertEqual(process.returncode, 1)
            self.assertIn("a delay needs netem (CONFIG_NET_SCH_NETEM), which this kernel does not have", self.said())
        self.assertEqual(self.left(), [])


if __name__ == "__main__":
    support.main(own_network=True)
