#!/usr/bin/python3
"""A client in another language, written from docs/wire.md alone, gets the same numbers from a real server as the C++
client. This holds on every kind of connection, and with every type that elastic allows.

Runs with Debian's Python, for which python3-grpcio is built.
"""

import array
import os
import pathlib
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # Keeps __pycache__ out of the tree.

from real_server import HERE, ServerTest, VALUES, initial, own  # noqa: E402
import wire_client  # noqa: E402
import wire_codec  # noqa: E402
from wire_rules import Elastic  # noqa: E402
# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "deploy"))
import skips  # noqa: E402

ALPHA = 0.3
SEQUENCES = [1, 2, 16, 17, 40]


class ForeignClient(ServerTest):
    def in_cpp(self, job_id, compression=wire_codec.FLOAT32):
        """Runs the exchanges of the test with the C++ client. Returns the group's values and the center."""
        files = [os.path.join(self.folder, name) for name in ("initial", "own", "x", "center")]
        for path, values in zip(files, (initial(), own())):
            pathlib.Path(path).write_bytes(values.tobytes())
        sequences = [f"--sequence={sequence}" for sequence in SEQUENCES]
        names = [f"--{name}={path}" for name, path in zip(("initial", "own", "x", "center"), files)]
        command = [HERE / "cpp_client", f"--server={self.address}", f"--job={job_id}", f"--alpha={ALPHA}", *names, *sequences]
        command += [f"--compression={compression}", f"--job-key={wire_client.JOB_KEY}"]
        subprocess.run(command, check=True, timeout=60)
        return [array.array("f", pathlib.Path(path).read_bytes()) for path in files[2:]]

    def group(self, job_id, compression=wire_codec.FLOAT32, count=VALUES, **who):
        return wire_client.Group(self.address, job_id, wire_client.compressed(wire_client.elastic(ALPHA), compression), count, **who)

    def in_python(self, job_id, compression=wire_codec.FLOAT32, way=wire_client.GRPC):
        (group,) = self.attached(self.group(job_id, compression))
        member = Elastic(wire_client.Exchanges(group, way), own())
        for sequence in SEQUENCES:
            member.exchange(sequence)
        member.exchanges.close()
        self.assertEqual(group.attach().last_sequence, SEQUENCES[-1])
        return member.x, group.pull()

    def test_same_numbers_as_cpp(self):
        cpp_x, cpp_center = self.in_cpp("cpp-1")
        for way in wire_client.WAYS:
            with self.subTest(way=way):
                x, center = self.in_python(f"python-{way}", way=way)
                self.assertEqual(x.tobytes(), cpp_x.tobytes())
                self.assertEqual(center.tobytes(), cpp_center.tobytes())
                self.assertNotEqual(x.tobytes(), own().tobytes())

    def test_same_numbers_as_cpp_compressed(self):
        ways = {wire_codec.FLOAT16: wire_client.GRPC, wire_codec.BFLOAT16: wire_client.TCP}
        for compression in (wire_codec.FLOAT16, wire_codec.BFLOAT16, wire_codec.INT8, wire_codec.INT4):
            with self.subTest(compression=compression):
                x, center = self.in_python(f"python-{compression}", compression, ways.get(compression, wire_client.LOCAL))
                cpp_x, cpp_center = self.in_cpp(f"cpp-{compression}", compression)
                self.assertEqual(x.tobytes(), cpp_x.tobytes())
                self.assertEqual(center.tobytes(), cpp_center.tobytes())
                self.assertNotEqual(x.tobytes(), own().tobytes())
                # The sum of center and group stays the same, up to the rounding of values below 350.
                drift = max(abs(a + b - c - d) for a, b, c, d in zip(x, center, own(), initial()))
                self.assertLess(drift, 1e-3)

    def test_an_exchange_that_is_sent_again_is_applied_once(self):
        """An exchange is repeated on another kind of connection after the first broke. The answer is bitwise equal to the first, and the center does
        not change."""
        (group,) = self.attached(self.group("python-again"))
        first = wire_client.Exchanges(group, wire_client.TCP)
        answers = list(first.exchange(16, own()))
        first.stream.close()
        center = group.pull()
        for way in (wire_client.LOCAL, wire_client.GRPC):
            again = wire_client.Exchanges(group, way)
            self.assertEqual(list(again.exchange(16, own())), answers)
            again.close()
        self.assertEqual(group.pull().tobytes(), center.tobytes())

    def test_what_was_saved_outlives_the_server(self):
        """If an exchange was answered and saved before the server was killed, a repeat gets a difference of 0."""
        (group,) = self.attached(self.group("python-saved"))
        exchanges = wire_client.Exchanges(group)
        for _ in exchanges.exchange(16, own()):
            pass
        exchanges.close()
        center = group.pull()
        group.save()
        self.kill_server()
        self.start_server()
        group = self.group("python-saved", incarnation=group.sender.incarnation)
        self.assertEqual(group.pull().tobytes(), center.tobytes())
        self.assertEqual(group.attach().last_sequence, 16)
        exchanges = wire_client.Exchanges(group)
        self.assertFalse(any(any(answer) for _, _, answer in exchanges.exchange(16, own())))
        exchanges.close()
        self.assertEqual(group.pull().tobytes(), center.tobytes())


if __name__ == "__main__":
    skips.main()
