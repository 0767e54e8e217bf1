"""Hosts on one machine: network namespaces joined by a bridge, each link limited to 1 Gbit/s in both directions. Needs root.

    with hosts.Hosts(2, folder) as h:
        h.command(1, ["hostname"])      # ["ip", "netns", "exec", ...]: runs there
        h.addresses                     # ["10.77.0.1", "10.77.0.2"]
        h.agent                         # a program that stands in for ssh: AGENT [OPTION]... ADDRESS COMMAND...

Names carry this process's id, so runs do not meet; all is removed when the block is left, however it is left.
"""

import os
import signal
import subprocess
import time

RATE = "1gbit"
# A burst lets that many bytes pass at once after an idle time. Larger, small messages would beat the line; smaller, the kernel does not
# keep the rate when both cores are busy (measured: 32 kb 0.5 of it, 128 kb all). The queue holds what a TCP connection has under way.
BURST = "128kb"
QUEUE = "16mb"

AGENT = """#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1
shift
name={prefix}${{host##*.}}
exec ip netns exec "$name" unshare --uts sh -c "hostname $name; $*"
"""


def missing():
    """Why there can be no hosts here; None if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program in ("ip", "tc"):
        if subprocess.run(["sh", "-c", f"command -v {program}"], stdout=subprocess.DEVNULL).returncode:
            return f"no program {program}: install iproute2"
    probe = subprocess.run(["unshare", "--net", "true"], capture_output=True)
    return None if probe.returncode == 0 else "this kernel or container allows no network namespaces"


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"{' '.join(command)}: {result.stderr.strip()}")


class Hosts:
    def __init__(self, count, folder):
        self.count = count
        self.prefix = f"hk{os.getpid()}-"
        self.bridge = f"hkb{os.getpid()}"
        self.addresses = [f"10.77.0.{host + 1}" for host in range(count)]
        self.agent = os.path.join(folder, "agent")

    def name(self, host):
        return f"{self.prefix}{host + 1}"

    def command(self, host, command):
        # A host name of its own: Open MPI names its shared-memory files after it.
        named = ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', self.name(host), *command]
        return ["ip", "netns", "exec", self.name(host), *named]

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_):
        self._remove()

    def _make(self):
        # The bridge stands in a namespace of its own too: nothing of the machine's network is touched.
        switch = f"{self.prefix}0"
        run("ip", "netns", "add", switch)
        run("ip", "-n", switch, "link", "add", self.bridge, "type", "bridge")
        run("ip", "-n", switch, "link", "set", self.bridge, "up")
        for host in range(self.count):
            name, port = self.name(host), f"port{host}"
            run("ip", "netns", "add", name)
            run("ip", "-n", switch, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "-n", switch, "link", "set", port, "master", self.bridge, "up")
            run("ip", "-n", name, "address", "add", self.addresses[host] + "/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            for namespace, device in ((name, "eth0"), (switch, port)):
                run("tc", "-n", namespace, "qdisc", "add", "dev", device, "root", "tbf", "rate", RATE, "burst", BURST, "limit", QUEUE)
        with open(self.agent, "w") as file:
            file.write(AGENT.format(prefix=self.prefix))
        os.chmod(self.agent, 0o700)

    def _remove(self):
        # A daemon that mpirun's agent started may have left every process group of ours: its namespace tells that it is ours.
        for sign in (signal.SIGTERM, signal.SIGKILL):
            found = [pid for host in range(self.count) for pid in self._processes(host)]
            for pid in found:
                try:
                    os.kill(pid, sign)
                except ProcessLookupError:
                    pass
            if not found:
                break
            time.sleep(0.3)
        for number in range(self.count + 1):
            subprocess.run(["ip", "netns", "delete", f"{self.prefix}{number}"], capture_output=True)

    def _processes(self, host):
        answer = subprocess.run(["ip", "netns", "pids", self.name(host)], capture_output=True, text=True)
        return [int(pid) for pid in answer.stdout.split()]
