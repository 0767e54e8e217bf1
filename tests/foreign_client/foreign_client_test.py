#!/usr/bin/python3
"""A client in another language, written from docs/wire.md alone, gets from a real server the numbers that the C++ client gets.

Debian's own Python: the one that python3-grpcio is for.
"""

import array
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path("tests/foreign_client").resolve()
sys.dont_write_bytecode = True  # The modules lie in the tree.
sys.path.insert(0, str(HERE / "generated"))

import grpc  # noqa: E402
import wire_client  # noqa: E402

VALUES = 3 * 16384 + 100
ALPHA = 0.3
SEQUENCES = [1, 2, 16, 17, 40]


def initial():
    return array.array("f", (0.25 * (i % 1000) for i in range(VALUES)))


def own():
    return array.array("f", (0.1 * (i % 997) - 3 for i in range(VALUES)))


class ForeignClient(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        ready = os.path.join(self.folder, "ready")
        server = subprocess.Popen(
            [pathlib.Path("server/hooke-server").resolve(), "--listen=127.0.0.1:0", f"--state-dir={self.folder}/state", f"--ready-file={ready}"],
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(server.wait, 30)
        self.addCleanup(server.terminate)
        deadline = time.monotonic() + 30
        while not os.path.exists(ready):
            self.assertIsNone(server.poll(), "the server has ended")
            self.assertLess(time.monotonic(), deadline, "the server is not ready")
            time.sleep(0.02)
        self.address = pathlib.Path(ready).read_text().strip()

    def in_cpp(self, job_id, compression=wire_client.FLOAT32):
        """The group's values and the center after the same exchanges by the C++ client."""
        files = [os.path.join(self.folder, name) for name in ("initial", "own", "x", "center")]
        for path, values in zip(files, (initial(), own())):
            pathlib.Path(path).write_bytes(values.tobytes())
        sequences = [f"--sequence={sequence}" for sequence in SEQUENCES]
        names = [f"--{name}={path}" for name, path in zip(("initial", "own", "x", "center"), files)]
        command = [HERE / "cpp_client", f"--server={self.address}", f"--job={job_id}", f"--alpha={ALPHA}", *names, *sequences]
        command.append(f"--compression={compression}")
        subprocess.run(command, check=True, timeout=60)
        return [array.array("f", pathlib.Path(path).read_bytes()) for path in files[2:]]

    def in_python(self, job_id, compression=wire_client.FLOAT32):
        group = wire_client.Group(self.address, job_id, compression)
        answer = group.attach(VALUES, wire_client.elastic(ALPHA))
        self.assertEqual(answer.state, wire_client.messages.AttachResponse.INITIALIZE)
        group.initialize(initial(), answer.block_values)
        answer = group.attach(VALUES, wire_client.elastic(ALPHA))
        self.assertEqual(answer.state, wire_client.messages.AttachResponse.READY)
        x = own()
        group.exchanges(x, SEQUENCES, answer.block_values, answer.window_blocks)
        self.assertEqual(group.attach(VALUES, wire_client.elastic(ALPHA)).last_sequence, SEQUENCES[-1])
        return x, group.pull()

    def test_same_numbers_as_cpp(self):
        x, center = self.in_python("python-1")
        cpp_x, cpp_center = self.in_cpp("cpp-1")
        self.assertEqual(x.tobytes(), cpp_x.tobytes())
        self.assertEqual(center.tobytes(), cpp_center.tobytes())
        self.assertNotEqual(x.tobytes(), own().tobytes())

    def test_same_numbers_as_cpp_compressed(self):
        for compression in (wire_client.FLOAT16, wire_client.INT8):
            with self.subTest(compression=compression):
                x, center = self.in_python(f"python-{compression}", compression)
                cpp_x, cpp_center = self.in_cpp(f"cpp-{compression}", compression)
                self.assertEqual(x.tobytes(), cpp_x.tobytes())
                self.assertEqual(center.tobytes(), cpp_center.tobytes())
                self.assertNotEqual(x.tobytes(), own().tobytes())
                # What center and group have together stays; a value is below 350.
                drift = max(abs(a + b - c - d) for a, b, c, d in zip(x, center, own(), initial()))
                self.assertLess(drift, 1e-3)

    def averaged(self, job_id, fragments=1):
        """Two groups of a job by the rule average, and the center they start from."""
        job = wire_client.average(2, 16, VALUES, fragments)
        groups = [wire_client.Group(self.address, job_id, group=index) for index in (0, 1)]
        answers = [group.attach(VALUES, job) for group in groups]
        states = [answer.state for answer in answers]
        self.assertEqual(states, [wire_client.messages.AttachResponse.INITIALIZE, wire_client.messages.AttachResponse.WAIT])
        groups[0].initialize(initial(), answers[0].block_values)
        for group in groups:
            self.assertEqual(group.attach(VALUES, job).state, wire_client.messages.AttachResponse.READY)
        streams = [wire_client.Stream(group, VALUES, answers[0].block_values, answers[0].window_blocks) for group in groups]
        return groups, [wire_client.Averaged(stream, group.pull()) for stream, group in zip(streams, groups)], answers[0].block_values

    def exchange_together(self, groups, *arguments):
        with concurrent.futures.ThreadPoolExecutor(len(groups)) as threads:
            for done in [threads.submit(group.exchange, *arguments) for group in groups]:
                done.result(60)

    def test_average_in_rounds(self):
        """Rounds of two groups: the center goes to their mean, exactly, as the numbers are; both have it; and on from there."""
        groups, members, _ = self.averaged("python-average")
        expected = initial()
        for sequence, moves in ((16, (1.0, 3.0)), (32, (-0.5, 2.0))):
            for member, move in zip(members, moves):
                member.x = array.array("f", (x + move for x in member.x))
            self.exchange_together(members, sequence)
            expected = array.array("f", (x + sum(moves) / 2 for x in expected))
            self.assertEqual([member.x.tobytes() for member in members], [expected.tobytes()] * 2)
        for member in members:
            member.stream.close()
        self.assertEqual(groups[1].pull().tobytes(), expected.tobytes())

    def test_average_by_fragments_as_pace_says(self):
        groups, members, block_values = self.averaged("python-fragments", 2)
        border = 2 * block_values  # Of four blocks two are of the first fragment.
        self.assertLess(border, VALUES)
        expected = initial()
        for turn, sequence in ((0, 8), (1, 16), (0, 24)):
            paces = [group.pace(speed) for group, speed in zip(groups, (10, 4))]
            self.assertEqual([pace.next_fragment for pace in paces], [turn, turn])
            self.assertEqual(paces[1].fastest_steps_per_second, 10)
            part = slice(border, VALUES) if turn else slice(0, border)
            members[0].x = array.array("f", (x + 1 for x in members[0].x))
            moved = [member.x[part] for member in members]
            self.exchange_together(members, sequence, turn, 2)
            expected[part] = array.array("f", (sum(both) / 2 for both in zip(*moved)))
            self.assertEqual([member.x[part].tobytes() for member in members], [expected[part].tobytes()] * 2)
            self.assertEqual(groups[0].pull().tobytes(), expected.tobytes())

    def test_the_page_s_example(self):
        """The messages of the worked example, byte by byte, as the page prints them."""
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs/wire.md").read_text()
        example = page[page.index("## A worked example") : page.index("### The same, compressed")]
        printed = bytes.fromhex("".join(line[4:40] for line in example.splitlines() if line[:4].strip().isdigit()))
        sender = wire_client.messages.Sender(job_id="job-1", group=2, rank=1, incarnation=3)
        expected = wire_client.opening(sender)
        expected += wire_client.values_message(16, 32768, array.array("f", [7, 0.5]))
        expected += wire_client.values_message(16, 32768, array.array("f", [1, -0.25]))
        self.assertEqual(printed, expected)

    def test_the_page_s_compressed_example(self):
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs/wire.md").read_text()
        example = page[page.index("### The same, compressed") :]
        printed = bytes.fromhex("".join(line[4:40] for line in example.splitlines() if line[:4].strip().isdigit()))
        self.assertEqual(printed, wire_client.values_message(16, 32768, array.array("f", [7, 0.5]), wire_client.INT8))

    def test_other_types_are_refused(self):
        group = wire_client.Group(self.address, "python-2")
        answer = group.attach(VALUES, wire_client.elastic(ALPHA))
        group.initialize(initial(), answer.block_values)
        opening = wire_client.opening(group.sender)
        message = bytearray(wire_client.values_message(1, 0, own()[: answer.block_values]))
        message[1] = 2
        self.assertEqual(group.send_raw(opening, bytes(message)), grpc.StatusCode.INVALID_ARGUMENT)
        half = wire_client.values_message(1, 0, own()[: answer.block_values], wire_client.FLOAT16)
        self.assertEqual(group.send_raw(opening, half), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(group.pull().tobytes(), initial().tobytes())


if __name__ == "__main__":
    unittest.main()
