#!/usr/bin/env python3
"""Pages of metrics that are asked badly: busy ports, wrong addresses, garbage, slow clients, requests without the token."""

import contextlib
import http.client
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "deploy"))
import skips  # noqa: E402

SERVER = pathlib.Path("server/hooke-server").resolve()
WORKER = pathlib.Path("worker/daemon/hooke-worker").resolve()
SOON_SECONDS = 60
TOKEN = "0123456789abcdef0123456789abcdef"


def get(address, path="/metrics", token=None):
    """Returns the status and the text of a page."""
    connection = http.client.HTTPConnection(address, timeout=SOON_SECONDS)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def connect(address):
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=SOON_SECONDS)


def exchange(address, request):
    """Sends the bytes and returns all that comes back. A server that refuses them early may break the connection."""
    answer = b""
    with connect(address) as client, contextlib.suppress(ConnectionError):
        client.sendall(request)
        while piece := client.recv(4096):
            answer += piece
    return answer


class BadInput(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hooke-metrics-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {"HOME": folder.name, "PATH": os.environ["PATH"]}

    def run_briefly(self, *command):
        """Runs a daemon that is to end at once."""
        result = subprocess.run(list(map(str, command)), env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SOON_SECONDS)
        return result.returncode, result.stderr + result.stdout

    def start(self, *command):
        """Starts a daemon, and returns the lines of its ready file."""
        ready = self.folder / f"{pathlib.Path(command[0]).name}.ready"
        log = open(self.folder / f"{ready.stem}.log", "wb")
        self.addCleanup(log.close)
        process = subprocess.Popen([*map(str, command), "--ready-file", ready], env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(self.stop, process)
        deadline = time.monotonic() + SOON_SECONDS
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError((self.folder / f"{ready.stem}.log").read_text())
            time.sleep(0.02)
        self.process = process
        return ready.read_text().splitlines()

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        try:
            self.assertEqual(process.wait(SOON_SECONDS), 0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def start_server(self, metrics="127.0.0.1:0", *more):
        address, line = self.start(SERVER, "--listen", "127.0.0.1:0", "--state-dir", self.folder / "server", "--metrics", metrics, *more)
        self.assertRegex(line, r"^metrics .*:\d+$")
        return address, line.split()[1]

    def worker_command(self, coordinator, metrics):
        return [WORKER, "--coordinator", coordinator, "--state-dir", self.folder / "worker", "--rank-binary", "/bin/true", "--slots", "3", "--metrics", metrics]

    def test_a_worker_has_a_page_too(self):
        address, _ = self.start_server()
        _, line = self.start(*self.worker_command(address, "127.0.0.1:0"))
        status, text = get(line.split()[1])
        self.assertEqual(status, 200)
        self.assertIn("\nhooke_node_slots 3\n", text)
        self.assertIn("\nhooke_node_connected 1\n", text)
        self.assertIn(f"metrics at http://{line.split()[1]}/metrics\n", (self.folder / "hooke-worker.log").read_text())

    def test_a_busy_port_is_named(self):
        address, metrics = self.start_server()
        expected = f"cannot listen on {metrics}: address already in use by another program: choose another address with --metrics"
        status, text = self.run_briefly(SERVER, "--listen", "127.0.0.1:0", "--state-dir", self.folder / "other", "--metrics", metrics)
        self.assertEqual(status, 1)
        self.assertIn(expected, text)
        status, text = self.run_briefly(*self.worker_command(address, metrics))
        self.assertEqual(status, 1)
        self.assertIn(expected, text)

    def test_a_malformed_address_is_a_mistake_of_the_command_line(self):
        for command in ([SERVER, "--state-dir", self.folder / "server", "--metrics"], self.worker_command("127.0.0.1:1", "9090")[:-1]):
            for address in ("9090", "host:", ":1", "127.0.0.1:70000"):
                status, text = self.run_briefly(*command, address)
                self.assertEqual(status, 2, text)
                self.assertIn("--metrics", text)
                self.assertIn("HOST:PORT", text)

    def test_garbage_gets_an_answer_and_harms_nobody(self):
        _, metrics = self.start_server()
        for request in (b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET\r\n\r\n", b"GET /metrics FTP/9\r\n\r\n", b"\xff" * 300 + b"\r\n\r\n"):
            self.assertRegex(exchange(metrics, request), rb"^HTTP/1.1 400 ")
        self.assertRegex(exchange(metrics, b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 40000 + b"\r\n\r\n"), rb"^(HTTP/1.1 431 |$)")
        self.assertEqual(get(metrics, "/../etc/passwd")[0], 404)
        self.assertEqual(get(metrics, "/")[0], 404)
        self.assertEqual(get(metrics)[0], 200)

    def test_slow_clients_hold_up_neither_the_page_nor_the_end(self):
        _, metrics = self.start_server()
        with contextlib.ExitStack() as clients:
            for number in range(50):
                client = clients.enter_context(connect(metrics))
                if number % 2 == 0:
                    client.sendall(b"GET /metrics HTTP/1.1\r\nHost")
            self.assertEqual(get(metrics)[0], 200)
            # The first one, which never ends its request, is closed after 5 s.
            client = clients.enter_context(connect(metrics))
            client.sendall(b"GET")
            self.assertEqual(client.recv(100), b"")
            clients.enter_context(connect(metrics)).sendall(b"GET")
            self.process.send_signal(signal.SIGTERM)
            self.assertEqual(self.process.wait(SOON_SECONDS), 0)

    def test_other_machines_need_the_token(self):
        token = self.folder / "token"
        token.touch(0o600)
        token.write_text(TOKEN + "\n")
        _, metrics = self.start_server("0.0.0.0:0", "--token-file", token)
        there = metrics.replace("0.0.0.0", "127.0.0.1")
        status, text = get(there)
        self.assertEqual(status, 401)
        self.assertIn("Authorization: Bearer", text)
        self.assertNotIn(TOKEN, text)
        self.assertEqual(get(there, token=TOKEN[:-1] + "0")[0], 401)
        self.assertEqual(get(there, token=TOKEN)[0], 200)

    def test_this_machine_needs_none(self):
        token = self.folder / "token"
        token.touch(0o600)
        token.write_text(TOKEN + "\n")
        _, metrics = self.start_server("127.0.0.1:0", "--token-file", token)
        self.assertEqual(get(metrics)[0], 200)


if __name__ == "__main__":
    skips.main()
