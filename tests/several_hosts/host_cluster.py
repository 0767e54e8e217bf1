"""A cluster over hosts that are network namespaces, with the real daemons."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile

import hosts
from support import DATA, PROGRAMS, wait_for

PORT = 7411
JOB = """name: two
model: small-mlp
data: {{format: idx, train: {data}, test: {data}}}
train: {{epochs: {epochs}, batch_size: 32, optimizer: {{name: sgd, learning_rate: 0.05}}}}
groups: {{count: 1, ranks: {ranks}}}
averaging: {{rule: elastic, interval: 4}}
"""


def training_job(epochs, ranks=4):
    """A job of one group."""
    return JOB.format(data=DATA, epochs=epochs, ranks=ranks)


def make_hosts(test, count, **options):
    """Makes hosts and a temporary folder, which are removed after the test. Returns both. By default links are not limited."""
    folder = tempfile.TemporaryDirectory(prefix="hooke-")
    test.addCleanup(folder.cleanup)
    network = hosts.Hosts(count, folder.name, **{"rate": None, **options})
    network.__enter__()
    test.addCleanup(network.__exit__)
    return network, folder.name


class HostCluster:
    """A server on the first host, and a worker on each of `worker_hosts`, which are all if it is None. Host i has the site `sites[i]`, or none."""

    def __init__(self, network, folder, slots=2, sites=(), worker_flags=(), server_flags=(), worker_hosts=None):
        self.server_flags, self.second = server_flags, None
        self.worker_flags = [f"--slots={slots}", "--allow-commands", *worker_flags]
        self.sites = sites
        self.network, self.folder, self.workers, self.ran_ssh = network, folder, {}, os.path.join(folder, "ssh.ran")
        # Nothing may call ssh. A script of that name comes first on the PATH and leaves a trace.
        tools = os.path.join(folder, "tools")
        os.mkdir(tools)
        for name in ("ssh", "rsh"):
            path = os.path.join(tools, name)
            pathlib.Path(path).write_text(f"#!/bin/sh\necho $0 $* >> {self.ran_ssh}\nexit 1\n")
            os.chmod(path, 0o755)
        # MPICH's UCX must find the network of each namespace. With tcp alone MPI_Finalize hangs now and then if a host has two ranks, also under an
        # mpirun that was started by hand.
        self.environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "UCX_TLS": "tcp,self,posix"}
        # Workers run commands only in a cluster with a token, because other machines reach this coordinator.
        token = os.path.join(folder, "token")
        with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write("several-hosts-token")
        self.environment["HOOKE_TOKEN_FILE"] = token
        first = network.addresses[0]
        self.address = f"[{first}]:{PORT}" if ":" in first else f"{first}:{PORT}"
        self.start_server()
        for host in range(network.count) if worker_hosts is None else worker_hosts:
            self.start_worker(host)

    def _start(self, host, name, command, wait=True):
        ready = os.path.join(self.folder, f"{name}.ready")
        if os.path.exists(ready):
            os.remove(ready)
        full = [str(PROGRAMS / command[0]), *command[1:], f"--state-dir={self.folder}/{name}", f"--ready-file={ready}"]
        with open(os.path.join(self.folder, f"{name}.log"), "ab") as log:
            process = subprocess.Popen(self.network.command(host, full), env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if not wait:
            return process
        wait_for(f"{name} is ready or has ended", lambda: os.path.exists(ready) or process.poll() is not None)
        if process.poll() is not None:
            raise AssertionError(f"{name} has ended with {process.returncode}{self.logs()}")
        return process

    def start_server(self):
        self.server = self._start(0, "server", ["hooke-server", f"--listen={self.address}", *self.server_flags])

    def start_second(self):
        """Starts a second server, on the second host."""
        address = f"{self.network.addresses[1]}:{PORT}"
        command = ["hooke-server", f"--listen={address}", f"--coordinator={self.address}", *self.server_flags]
        self.second = self._start(1, "server2", command)

    def start_worker(self, host, wait=True):
        name = f"n{host}"
        flags = self.worker_flags + ([f"--site={self.sites[host]}"] if self.sites else [])
        self.workers[name] = self._start(host, name, ["hooke-worker", f"--coordinator={self.address}", f"--name={name}", *flags], wait)

    def kill_worker(self, name):
        self.workers[name].send_signal(signal.SIGKILL)
        self.workers.pop(name).wait()

    def hooke(self, *arguments, status=0):
        command = self.network.command(0, [str(PROGRAMS / "hooke"), *arguments, f"--coordinator={self.address}"])
        result = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60)
        if status is not None and result.returncode != status:
            raise AssertionError(f"hooke {' '.join(arguments)}: {result.returncode}: {result.stdout}{result.stderr}{self.logs()}")
        return result.stdout

    def submit(self, text):
        """Submits the job of this YAML text. Returns its id."""
        path = os.path.join(self.folder, "job.yaml")
        pathlib.Path(path).write_text(text)
        return json.loads(self.hooke("submit", path, "--output=json"))["job_id"]

    def job(self, job_id):
        return json.loads(self.hooke("jobs", job_id, "--output=json"))

    def node(self, name):
        return next(node for node in json.loads(self.hooke("nodes", "--output=json"))["nodes"] if node["name"] == name)

    def logs(self):
        texts = [f"== {path.name}\n{path.read_text(errors='replace')[-3000:]}" for path in sorted(pathlib.Path(self.folder).glob("*.log"))]
        return "\n" + "\n".join(texts)

    def group(self, job_id):
        """Returns the first group; fails if its job has failed."""
        job = self.job(job_id)
        if job["state"] in ("failed", "cancelled"):
            raise AssertionError(f"{job['state']}: {job['reason']}{self.logs()}")
        return job["groups"][0]

    def trains(self, job_id, incarnation):
        """Returns the names of the workers, the lead first, once the group has made 20 steps in this start or a later one."""

        def moved():
            group = self.group(job_id)
            progress = group["progress"] or {}
            if group["state"] == "running" and group["incarnation"] >= incarnation and progress.get("step", 0) >= 20:
                return [part["worker"] for part in group["parts"]]
            return None

        return wait_for(f"start {incarnation} of {job_id} trains", moved)

    def ranks_on(self, name):
        """Returns the process ids of hooke-rank on a worker's host."""
        found = []
        for pid in self.network._processes(int(name[1:])):
            try:
                if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "hooke-rank":
                    found.append(pid)
            except OSError:
                pass
        return found

    def memory_folders(self):
        return {os.path.realpath(link) for link in pathlib.Path(self.folder).glob("n*/groups/*/memory")}

    def check_nothing_is_left(self, test, memory=()):
        """Ends the daemons. Afterwards no process, no folder of a group and no memory of a group may be there."""
        hosts = range(self.network.count)
        test.assertEqual(set(self.end()), {0}, self.logs())
        test.assertFalse(os.path.exists(self.ran_ssh), "ssh was called")
        test.assertEqual([self.network._processes(host) for host in hosts], [[] for _ in hosts])
        test.assertEqual(list(pathlib.Path(self.folder).glob("n*/groups/*")), [])
        test.assertEqual([path for path in memory if os.path.exists(path)], [])

    def end(self):
        """Ends all daemons, and returns their exit statuses."""
        daemons = [*self.workers.values(), self.server, *([self.second] if self.second else [])]
        for process in daemons:
            process.send_signal(signal.SIGTERM)
        return [process.wait(40) for process in daemons]
