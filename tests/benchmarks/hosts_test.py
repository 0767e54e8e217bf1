#!/usr/bin/env python3
"""Two hosts made of network namespaces: hooke-bench measures the links and leaves nothing behind, and a group uses all networks. Needs root."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from xml.sax import saxutils

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "deploy")]
import hosts  # noqa: E402
import skips  # noqa: E402
import training_benchmark  # noqa: E402

MPIRUN = sys.argv.pop(1) if len(sys.argv) > 1 else "mpirun.openmpi"
BENCH = pathlib.Path("worker/bench/hooke-bench").resolve()
RANK = pathlib.Path("worker/rank/hooke-rank").resolve()
IMAGES = "/usr/share/datasets/fashion-mnist"
PARAMETERS = 669706  # The number of parameters of `mlp`.
SECONDS = 200


def mpirun(program, network, folder, each=1):
    """Returns the command that starts so many ranks on each of two hosts."""
    if "mpich" in program:
        # UCX would see that the namespaces are one machine and use shared memory.
        network_only = ["env", "UCX_TLS=tcp,self", "UCX_NET_DEVICES=eth0"]
        return [*network_only, program, "-n", str(2 * each), *network.mpich(each)]
    command = [program, "-n", str(2 * each), "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
    command += ["--mca", "orte_tmpdir_base", folder, "--mca", "btl_vader_backing_directory", folder, "--mca", "mpi_yield_when_idle", "1"]
    # MPI uses only the first network. So all that passes in the other networks are messages of Hooke's sockets.
    command += ["--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0"]
    return [*command, *network.openmpi(each)]


class Measure(unittest.TestCase):
    def test_what_carries_messages_between_hosts_is_in_the_tuning(self):
        with tempfile.TemporaryDirectory(prefix="hooke-") as folder, hosts.Hosts(2, folder) as network:
            prefix = network.prefix
            command = [*mpirun(MPIRUN, network, folder), str(BENCH), "measure", "--seconds=5", "--bytes-max=16384"]
            result = subprocess.run(network.command(0, command), capture_output=True, text=True, timeout=SECONDS)
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLess(result.stderr.index("measuring messages between nodes"), result.stderr.index("measuring all-reduce"))
        document = json.loads(result.stdout)
        self.assertEqual((document["topology"]["ranks"], document["topology"]["nodes"]), (2, 2))
        measured = {(one["carrier"], one["bytes"]) for one in document["between_nodes"]}
        self.assertEqual(measured, {(carrier, size) for carrier in ("sockets", "mpi") for size in (4, 256, 16384)})
        # A message over a link takes longer than one through memory. So both carriers used the link.
        self.assertGreater(min(one["median_us"] for one in document["between_nodes"]), 5)
        names = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
        self.assertNotIn(prefix, names)

    def test_hosts_that_share_two_networks_use_both(self):
        with tempfile.TemporaryDirectory(prefix="hooke-") as folder, hosts.Hosts(2, folder, rails=2) as network:
            job = argparse.Namespace(model="mlp", train=f"{IMAGES}/train", test=f"{IMAGES}/t10k")
            start = training_benchmark.start_file(folder, "rails", job, 4, [], seed=1)
            command = [*mpirun(MPIRUN, network, folder, each=2), str(RANK), f"--start-json={start}", "--progress=json"]
            training_benchmark.measure([network.command(0, command)], seconds=2)
            sent = [network.bytes(0, device)[0] for device in ("eth0", "eth1")]
        # Each of a host's two ranks sums its part of the gradients over a network of its own: 6 and 5 pieces of 256 KiB. The first network carries the
        # messages of MPI, the first values and the measurement of the links, too, which weigh more the fewer steps there are.
        self.assertGreater(sent[1], 0.25 * sum(sent), sent)
        self.assertGreater(sum(sent), 4 * PARAMETERS, sent)


def skip(reason):
    """Skips the test, and tells the reason to count_results.py, too."""
    line = f"skipped: {reason}; run as root with iproute2 and kernel support for network namespaces"
    print(line)
    path = os.environ.get("XML_OUTPUT_FILE")
    if path:
        case = f'<testcase classname="Hosts" name="All"><skipped message={saxutils.quoteattr(line)}/></testcase>'
        pathlib.Path(path).write_text(f'<testsuites><testsuite name="Hosts" tests="1">{case}</testsuite></testsuites>\n')


if __name__ == "__main__":
    missing = hosts.missing()
    if missing:
        skip(missing)
    else:
        skips.main()
