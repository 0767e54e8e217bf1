"""A library's ranks as processes (tests/benchmarks/collectives). They are started once and then get commands; see collectives/serve.h.

Waiting ranks sleep in recv, so the ranks of several libraries can take turns without disturbing one another.
"""

import json
import os
import socket
import subprocess

import report

START_SECONDS = 60
ANSWER_SECONDS = 100


class Failed(Exception):
    """These ranks cannot be used further. The text holds the reason."""


class Ranks:
    """A context manager. `commands` start processes that together are `count` ranks. They get --socket and --barrier."""

    def __init__(self, name, commands, count, folder, environment=None):
        self.name, self.count = name, count
        self.folder = os.path.join(folder, name)
        self.connections = []
        self.processes = []
        self._start(commands, dict(os.environ, OMP_NUM_THREADS="1", **(environment or {})))

    def _start(self, commands, environment):
        os.mkdir(self.folder)
        barrier, path = os.path.join(self.folder, "barrier"), os.path.join(self.folder, "socket")
        with open(barrier, "wb") as file:
            file.truncate(4096)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(self.count)
            listener.settimeout(0.5)
            with open(self._log(), "wb") as log:
                for command in commands:
                    full = [*command, f"--socket={path}", f"--barrier={barrier}"]
                    self.processes.append(
                        subprocess.Popen(full, start_new_session=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=self.folder)
                    )
            try:
                by_rank = dict(self._accept(listener) for _ in range(self.count))
            except BaseException:
                self.stop()
                raise
        self.connections = [by_rank[rank] for rank in sorted(by_rank)]

    def _accept(self, listener):
        for _ in range(2 * START_SECONDS):
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                if any(process.poll() is not None for process in self.processes):
                    raise self._failed("a process ended before it was ready")
                continue
            connection.settimeout(ANSWER_SECONDS)
            stream = connection.makefile("rw")
            connection.close()  # The stream keeps the socket open.
            return json.loads(stream.readline())["rank"], stream
        raise self._failed(f"not ready after {START_SECONDS} s")

    def _log(self):
        return os.path.join(self.folder, "log")

    def _failed(self, what):
        with open(self._log(), errors="replace") as file:
            tail = "".join(file.readlines()[-12:])
        return Failed(f"{self.name}: {what}\n{tail}".rstrip())

    def ask(self, command):
        """Sends a command to all ranks and returns each rank's answer."""
        answers = []
        try:
            for stream in self.connections:
                stream.write(command + "\n")
                stream.flush()
            for stream in self.connections:
                line = stream.readline()
                if not line:
                    raise self._failed(f"a rank ended at '{command}'")
                answers.append(json.loads(line))
        except TimeoutError:
            raise self._failed(f"no answer to '{command}' after {ANSWER_SECONDS} s") from None
        except OSError as error:
            raise self._failed(f"'{command}': {error}") from None
        errors = [answer["error"] for answer in answers if "error" in answer]
        if errors:
            raise self._failed(f"'{command}': {errors[0]}")
        return answers

    def prepare(self, operation, count):
        """Returns these ranks' ways: [{"name", "correct" (on all ranks), "us" (of the slowest rank)}]."""
        answers = [answer["rivals"] for answer in self.ask(f"prepare {operation} {count}")]
        return [
            {"name": rivals[0]["name"], "correct": all(rival["correct"] for rival in rivals), "us": max(rival["us"] for rival in rivals)}
            for rivals in zip(*answers)
        ]

    def time(self, index, calls, warmups, row=1):
        """Returns the slowest rank's microseconds for each call. With `row` > 1, each value is the mean of `row` calls in succession."""
        answers = [answer["us"] for answer in self.ask(f"time {index} {calls} {warmups} {row}")]
        return [max(call) for call in zip(*answers)]

    def stop(self):
        for stream in self.connections:
            try:
                stream.close()  # A rank that waits for a command then ends by itself.
            except OSError:
                pass
        self.connections = []
        for process in self.processes:
            try:
                process.wait(3)
            except subprocess.TimeoutExpired:
                report.stop(process, 2)
        self.processes = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
