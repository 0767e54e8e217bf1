"""Runs one hooke-server and workers as processes, on this machine or on hosts of hosts.py, submits jobs to them and follows the jobs."""

import contextlib
import json
import os
import select
import subprocess
import time

import report

GRPC_PORT = 7411
START_SECONDS = 40
ENDS = ("succeeded", "failed", "cancelled")


class Refused(Exception):
    """hooke refused the job file. The text holds the reason."""


def lines(pipe, deadline):
    """Yields the lines that come before the pipe's end or the deadline."""
    rest = b""
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([pipe], [], [], min(left, 1))[0]:
            continue
        chunk = os.read(pipe.fileno(), 1 << 16)
        if not chunk:
            return
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole


class Cluster:
    """A context manager. `slots` has the slots of the worker on each host, 0 for no worker. The server runs on the first host.

    `hosts` is a running hosts.Hosts, or None: everything on this machine's loopback.
    """

    def __init__(self, programs, folder, slots, hosts=None):
        self.programs, self.folder, self.slots, self.hosts = programs, folder, slots, hosts
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            ready = os.path.join(self.folder, "server.ready")
            listen = f"{self.hosts.addresses[0]}:{GRPC_PORT}" if self.hosts else "127.0.0.1:0"
            # The server writes no snapshot during training.
            server = self._start(stack, "server", 0, ["hooke-server", f"--listen={listen}", f"--ready-file={ready}", "--snapshot-interval=8760h"])
            self.address = report.wait_for_file(ready, server, START_SECONDS)
            for host, slots in enumerate(self.slots):
                if slots:
                    self._start_worker(stack, host, slots)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def _start_worker(self, stack, host, slots):
        ready = os.path.join(self.folder, f"worker{host}.ready")
        command = ["hooke-worker", f"--coordinator={self.address}", f"--name=w{host}", f"--slots={slots}", f"--ready-file={ready}"]
        if self.hosts:
            command.append("--bind=none")  # All hosts have the same cores.
        # A server behind a slow link must not count as dead.
        worker = self._start(stack, f"worker{host}", host, [*command, "--exchange-timeout=60s"])
        report.wait_for_file(ready, worker, START_SECONDS)

    def _command(self, host, command):
        full = [os.path.join(self.programs, command[0]), *command[1:]]
        return self.hosts.command(host, full) if self.hosts else full

    def _start(self, stack, name, host, command):
        log = stack.enter_context(open(os.path.join(self.folder, name + ".log"), "wb"))
        full = self._command(host, [*command, f"--state-dir={self.folder}/{name}"])
        return stack.enter_context(report.started(full, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def follow(self, text, seconds):
        """Submits a job file with this text. Yields its statuses until the job ends or `seconds` have passed; the last status tells which. Raises
        Refused if hooke does not take the file."""
        path = os.path.join(self.folder, "job.yaml")
        with open(path, "w") as file:
            file.write(text)
        errors = os.path.join(self.folder, "submit.log")
        command = self._command(0, ["hooke", "submit", path, "--watch", "--output=json", f"--coordinator={self.address}"])
        deadline = time.monotonic() + seconds
        with open(errors, "wb") as log, report.started(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log) as process:
            for line in lines(process.stdout, deadline):
                status = json.loads(line)
                if "state" in status:
                    yield status
                    if status["state"] in ENDS:
                        return
            if time.monotonic() >= deadline:
                return
            code = process.wait()
        with open(errors, errors="replace") as log:
            said = log.read().strip()
        if code == 2:
            raise Refused(said)
        raise SystemExit(f"FAILED: hooke submit --watch ended with status {code}: {said}")

    def cancel(self, job):
        """Cancels a job and waits until it holds no slots any more."""

        def hooke(*arguments):
            command = self._command(0, ["hooke", *arguments, f"--coordinator={self.address}", "--output=json"])
            return subprocess.run(command, check=True, capture_output=True, timeout=30).stdout

        hooke("cancel", job)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if not any(int(node.get("slots_used", 0)) for node in json.loads(hooke("nodes"))["nodes"]):
                return
            time.sleep(0.1)
        raise SystemExit(f"{job} was cancelled but still holds slots after {START_SECONDS} s")
