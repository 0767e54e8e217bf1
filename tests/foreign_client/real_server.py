"""A hooke-server for each test, and the values of its centers. Import this before wire_client, because it sets the path of the generated messages."""

import array
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path("tests/foreign_client").resolve()
sys.path.insert(0, str(HERE / "generated"))

import wire_client  # noqa: E402

VALUES = 3 * 16384 + 100
BLOCK_VALUES = 16384


def initial():
    return array.array("f", (0.25 * (i % 1000) for i in range(VALUES)))


def own():
    return array.array("f", (0.1 * (i % 997) - 3 for i in range(VALUES)))


class ServerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.start_server()

    def start_server(self):
        ready = os.path.join(self.folder, "ready")
        pathlib.Path(ready).unlink(missing_ok=True)
        self.server = subprocess.Popen(
            [pathlib.Path("server/hooke-server").resolve(), "--listen=127.0.0.1:0", f"--state-dir={self.folder}/state", f"--ready-file={ready}"],
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(self.server.wait, 30)
        self.addCleanup(self.server.terminate)
        deadline = time.monotonic() + 30
        while not os.path.exists(ready):
            self.assertIsNone(self.server.poll(), "the server has ended")
            self.assertLess(time.monotonic(), deadline, "the server is not ready")
            time.sleep(0.02)
        self.address = pathlib.Path(ready).read_text().strip()

    def kill_server(self):
        self.server.kill()
        self.server.wait(30)

    def attached(self, *groups):
        """Attaches the groups, the first one as creator of the center, and returns them."""
        states = [group.attach().state for group in groups]
        wait = wire_client.messages.AttachResponse.WAIT
        self.assertEqual(states, [wire_client.messages.AttachResponse.INITIALIZE] + [wait] * (len(groups) - 1))
        groups[0].initialize(initial())
        for group in groups:
            self.assertEqual(group.attach().state, wire_client.messages.AttachResponse.READY)
            self.assertEqual(group.block_values, BLOCK_VALUES)
        return groups
