#!/usr/bin/env python3
"""deploy/quickstart trains where no name can be looked up, not even "localhost" or the host's own, because it never asks for one.

The quickstart runs in namespaces of its own. There /etc/hosts is empty, and the only name server answers no question. A single question would
delay the run for 10 s or more. The name server counts questions, so that the test does not depend on time.
"""

import fcntl
import functools
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[2] / "deploy")]
import quickstart_test  # noqa: E402
import skips  # noqa: E402

NAMESPACES = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--mount", "--uts", "--net"]
SIOCSIFFLAGS, IFF_UP_RUNNING = 0x8914, 0x41


@functools.cache
def missing():
    """Returns the reason why this machine cannot make such namespaces; None if it can."""
    with tempfile.TemporaryDirectory() as folder:
        probe = [*NAMESPACES, sys.executable, os.path.realpath(__file__), "--probe", folder]
        result = subprocess.run(probe, capture_output=True, text=True)
    said = result.stderr.strip().splitlines() or ["no reason given"]
    return None if result.returncode == 0 else f"no namespaces of its own: {said[-1]}"


def name_in(question):
    """Returns the name that a DNS question is about."""
    labels, at = [], 12
    while at < len(question) and question[at]:
        labels.append(question[at + 1 : at + 1 + question[at]].decode(errors="replace"))
        at += question[at] + 1
    return ".".join(labels)


def make_nameless(folder):
    """Runs inside the namespaces: removes all names of the host, and sends all questions to 127.0.0.1. Its files are in `folder`."""
    socket.sethostname("no-such-host")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP_RUNNING))
    for path, content in (("/etc/hosts", ""), ("/etc/resolv.conf", "nameserver 127.0.0.1\n"), ("/etc/nsswitch.conf", "hosts: files dns\n")):
        replacement = pathlib.Path(folder) / pathlib.Path(path).name
        replacement.write_text(content)
        subprocess.run(["mount", "--bind", replacement, path], check=True)


def run_inside(folder, command):
    """Runs inside the namespaces: removes all names, runs the command, and writes the names that it asked for to folder/asked."""
    make_nameless(folder)
    asked = []
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))

    def take_questions():
        while True:
            asked.append(name_in(server.recv(4096)))

    threading.Thread(target=take_questions, daemon=True).start()
    with subprocess.Popen(command) as process:
        # The test sends its signal to the whole process group. This process ignores it, because the quickstart itself
        # must end its cluster.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        status = process.wait()
    (pathlib.Path(folder) / "asked").write_text(json.dumps(asked))
    return status


class Names(quickstart_test.Runs):
    @classmethod
    def setUpClass(cls):
        # A decorator would also run in the namespaces, where this file is loaded again.
        if missing():
            raise unittest.SkipTest(missing())
        super().setUpClass()

    def start_nameless(self, *command):
        environment = dict(os.environ, HOOKE_PROGRAMS=str(quickstart_test.PROGRAMS), TMPDIR=str(self.temporary))
        output = open(self.tree / "output", "w+b")
        self.addCleanup(output.close)
        inside = [*NAMESPACES, sys.executable, os.path.realpath(__file__), "--inside", str(self.tree)]
        process = subprocess.Popen(
            [*inside, *map(str, command)], env=environment, cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        process.said = lambda: (self.tree / "output").read_text()
        self.addCleanup(self.kill, process)
        return process

    def asked(self, *command):
        process = self.start_nameless(*command)
        self.assertEqual(self.await_end(process, quickstart_test.RUN_SECONDS), 0, process.said())
        return json.loads((self.tree / "asked").read_text()), process.said()

    def test_no_name_is_looked_up(self):
        asked, said = self.asked(self.tree / "deploy/quickstart", self.write_job("bars", 1))
        self.assertIn("center test accuracy: ", said)
        self.assertEqual(asked, [])

    def test_a_look_up_would_be_seen(self):
        asked, _ = self.asked("sh", "-c", "timeout 1 getent hosts no-such-host || true")
        self.assertIn("no-such-host", asked)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--probe"]:
        sys.exit(make_nameless(sys.argv[2]))
    if sys.argv[1:2] == ["--inside"]:
        sys.exit(run_inside(sys.argv[2], sys.argv[3:]))
    skips.main()
