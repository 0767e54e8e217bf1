"""Hosts on one machine: network namespaces joined by a bridge. By default each link is limited to 1 Gbit/s in both
directions. Needs root.

    with hosts.Hosts(2, folder) as h:
        h.command(1, ["hostname"])      # ["ip", "netns", "exec", ...]: runs there
        h.addresses                     # ["10.77.0.1", "10.77.0.2"]
        h.agent                         # a program that stands in for ssh: AGENT [OPTION]... ADDRESS COMMAND...
        h.bytes(0)                      # sent and received by the first so far, headers included

With `aside=PORT`, connections to that TCP port use a separate link, which is neither limited nor counted. With `rails=2` each host has a second
network card, eth1, in a second network; its link is limited as the first.

Names contain this process's id, so that runs do not collide. Leaving the block, in any way, removes the hosts.
"""

import json
import os
import shutil
import signal
import subprocess
import time

# `tc` is in /usr/sbin, which not every PATH has.
os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"

RATE = "1gbit"
# A link sends this many bytes at once after idle time. With a larger burst, small messages would beat the line rate.
# With a smaller one the kernel does not keep the rate when both cores are busy (measured: 32 kb gives half, 128 kb all
# of it). The queue holds the bytes of a TCP connection in flight.
BURST = "128kb"
QUEUE = "16mb"

AGENT = """#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1
shift
name={prefix}${{host##*.}}
exec ip netns exec "$name" unshare --uts sh -c "hostname $name; $*"
"""


def probes(name):
    """Returns the features that `Hosts` needs of a machine, with a command that tests each. The commands use nothing of `Hosts`, so that a fault of
    `Hosts` does not look like a fault of the machine."""
    return (
        ("network namespaces", ["ip", "netns", "add", name]),
        ("programs inside a network namespace", ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", 'hostname "$0"', name]),
        ("bridges", ["ip", "-n", name, "link", "add", "name", "bridge0", "type", "bridge"]),
        ("pairs of virtual devices", ["ip", "-n", name, "link", "add", "name", "end0", "type", "veth", "peer", "name", "end1"]),
        ("links of a limited rate", ["tc", "-n", name, "qdisc", "add", "dev", "end0", "root", "tbf", "rate", RATE, "burst", BURST, "limit", QUEUE]),
    )


def missing():
    """Returns the reason why this machine can have no hosts; None if it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program in ("ip", "tc", "unshare"):
        if shutil.which(program) is None:
            return f"no program {program}: install iproute2 and util-linux"
    name = f"hkp{os.getpid()}"
    try:
        for ability, command in probes(name):
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode:
                said = result.stderr.strip().splitlines()
                return f"this machine or container allows no {ability}: {' '.join(command[:3])}: {said[-1] if said else f'exit {result.returncode}'}"
    finally:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True)
    return None


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"{' '.join(command)}: {result.stderr.strip()}")


class Hosts:
    def __init__(self, count, folder, rate=RATE, aside=None, ipv6=False, burst=BURST, rails=1):
        """Prepares `count` hosts. `rate` and `burst` are those of the links in tc's format; rate None: not limited. With `ipv6` the hosts have IPv6
        addresses only, and none of `agent`, `aside` and `rails` works; neither do `aside` and `rails` together."""
        self.count, self.rate, self.aside, self.burst, self.rails = count, rate, aside, burst, rails
        self.prefix = f"hk{os.getpid()}-"
        self.bridge = f"hkb{os.getpid()}"
        self.addresses = [f"fd77::{host + 1}" if ipv6 else f"10.77.0.{host + 1}" for host in range(count)]
        self.agent = os.path.join(folder, "agent")

    def name(self, host):
        return f"{self.prefix}{host + 1}"

    def command(self, host, command):
        # Each host needs its own host name, because Open MPI names its shared-memory files after it.
        named = ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', self.name(host), *command]
        return ["ip", "netns", "exec", self.name(host), *named]

    def openmpi(self, each):
        """Returns the arguments of mpirun.openmpi for `each` ranks on every host."""
        places = ",".join(f"{address}:{each}" for address in self.addresses)
        return ["--host", places, "--map-by", "slot", "--mca", "plm_rsh_agent", self.agent, "--mca", "plm_rsh_no_tree_spawn", "1"]

    def mpich(self, each):
        """Returns the arguments of mpirun.mpich for `each` ranks on every host."""
        return ["-hosts", ",".join(f"{address}:{each}" for address in self.addresses), "-launcher", "ssh", "-launcher-exec", self.agent]

    def bytes(self, host, device="eth0"):
        """Returns (sent, received) over the counted link. Packets that the kernel joins into one segment count with one header."""
        answer = subprocess.run(["ip", "-n", self.name(host), "-s", "-j", "link", "show", "dev", device], capture_output=True, text=True, check=True)
        counters = json.loads(answer.stdout)[0]["stats64"]
        return counters["tx"]["bytes"], counters["rx"]["bytes"]

    def cut(self, host):
        """Takes the host's link down: nothing passes until join()."""
        run("ip", "-n", self.switch(), "link", "set", f"port{host}", "down")

    def join(self, host):
        run("ip", "-n", self.switch(), "link", "set", f"port{host}", "up")

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
        # The bridge is in its own namespace, too, so that the machine's network is not touched.
        run("ip", "netns", "add", self.switch())
        for host in range(self.count):
            run("ip", "netns", "add", self.name(host))
            run("ip", "-n", self.name(host), "link", "set", "lo", "up")
        self._link("eth0", self.bridge, "port")
        for host in range(self.count):
            # Without nodad, an IPv6 address could not be used for its first seconds.
            network = ["/64", "nodad"] if ":" in self.addresses[host] else ["/24"]
            run("ip", "-n", self.name(host), "address", "add", self.addresses[host] + network[0], "dev", "eth0", *network[1:])
        self._limit("eth0", "port")
        for rail in range(1, self.rails):
            self._link(f"eth{rail}", f"{self.bridge}r{rail}", f"rail{rail}-")
            for host in range(self.count):
                run("ip", "-n", self.name(host), "address", "add", f"10.77.{rail}.{host + 1}/24", "dev", f"eth{rail}")
            self._limit(f"eth{rail}", f"rail{rail}-")
        if self.aside is not None:
            self._set_aside()
        with open(self.agent, "w") as file:
            file.write(AGENT.format(prefix=self.prefix))
        os.chmod(self.agent, 0o700)

    def _limit(self, device, port):
        """Limits the rate of this device of each host, and that of the bridge's port at its other end."""
        if self.rate is None:
            return
        for host in range(self.count):
            for namespace, name in ((self.name(host), device), (self.switch(), f"{port}{host}")):
                run("tc", "-n", namespace, "qdisc", "add", "dev", name, "root", "tbf", "rate", self.rate, "burst", self.burst, "limit", QUEUE)

    def switch(self):
        """Returns the name of the bridge's namespace."""
        return f"{self.prefix}0"

    def _link(self, device, bridge, port):
        """Adds a device in each host and joins them by a bridge."""
        switch = self.switch()
        run("ip", "-n", switch, "link", "add", bridge, "type", "bridge")
        run("ip", "-n", switch, "link", "set", bridge, "up")
        for host in range(self.count):
            run("ip", "-n", switch, "link", "add", f"{port}{host}", "type", "veth", "peer", "name", device, "netns", self.name(host))
            run("ip", "-n", switch, "link", "set", f"{port}{host}", "master", bridge, "up")
            run("ip", "-n", self.name(host), "link", "set", device, "up")

    def _set_aside(self):
        """Routes packets from and to the port `aside`, with the same addresses, over a second link."""
        self._link("eth1", f"{self.bridge}a", "aside")
        network = self.addresses[0].rpartition(".")[0] + ".0/24"
        for host in range(self.count):
            name = self.name(host)
            run("ip", "-n", name, "route", "add", network, "dev", "eth1", "src", self.addresses[host], "table", "100")
            for end in ("sport", "dport"):
                run("ip", "-n", name, "rule", "add", "ipproto", "tcp", end, str(self.aside), "lookup", "100")

    def _remove(self):
        # A daemon that mpirun's agent started may be in none of our process groups, but it is still in a namespace of
        # ours.
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
