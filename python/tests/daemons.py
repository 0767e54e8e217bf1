"""A cluster whose daemons are processes of their own, so that a test can kill, stop and start them."""

import os
import pathlib
import signal
import subprocess
import tempfile
import time

READY_SECONDS = 60


class Daemons:
    """One server, which is also the coordinator, and workers. They end with the test `case`. hooke.submit finds this cluster."""

    def __init__(self, case, workers, server_flags=(), worker_flags=()):
        # Bazel has put the programs into bin/. A worker looks for other programs beside itself, so the real folder is used.
        self._programs = pathlib.Path("bin/hooke").resolve().parent
        folder = tempfile.TemporaryDirectory(prefix="hooke-daemons-", dir="/tmp")  # Sockets have short paths, so not in Bazel's folder.
        case.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self._running = {}
        case.addCleanup(self._end)
        self._server_flags = list(server_flags)
        self.address = self.start_server("127.0.0.1:0")
        for i in range(workers):
            self._start(f"w{i}", "hooke-worker", f"--coordinator={self.address}", f"--name=w{i}", "--slots=1", "--allow-commands", *worker_flags)
        os.environ.update(HOME=folder.name, HOOKE_PROGRAM=str(self._programs / "hooke"), HOOKE_COORDINATOR=self.address)

    def start_server(self, listen=None):
        """Starts the server, or starts it again at its address and with its folder. Returns the address."""
        return self._start("server", "hooke-server", f"--listen={listen or self.address}", *self._server_flags)

    def signal(self, name, number):
        self._running[name].send_signal(number)
        if number == signal.SIGKILL:
            self._running[name].wait()

    def log(self, name):
        return (self.folder / f"{name}.log").read_text()

    def _start(self, name, program, *flags):
        ready = self.folder / f"{name}.ready"
        ready.unlink(missing_ok=True)
        with open(self.folder / f"{name}.log", "a") as log:
            argv = [str(self._programs / program), *flags, f"--state-dir={self.folder}/{name}", f"--ready-file={ready}"]
            self._running[name] = subprocess.Popen(argv, cwd=self.folder, stdout=log, stderr=log)
        deadline = time.monotonic() + READY_SECONDS
        while not ready.exists() or not ready.read_text():
            if self._running[name].poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"{name} was not ready: {self.log(name)}")
            time.sleep(0.01)
        return ready.read_text().split()[0]

    def _end(self):
        for process in reversed(self._running.values()):
            process.send_signal(signal.SIGCONT)  # A stopped process would not handle SIGTERM.
            process.terminate()
        for process in self._running.values():
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
