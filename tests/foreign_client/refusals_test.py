#!/usr/bin/python3
"""A server refuses a wrong message, by gRPC and without it, and changes nothing. It gives the status in docs/wire.md's table and a text about
the fault."""

import array
import math
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True  # Keeps __pycache__ out of the tree.

from real_server import BLOCK_VALUES, ServerTest, VALUES, initial, own  # noqa: E402
import wire_client  # noqa: E402
import wire_codec  # noqa: E402
# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "deploy"))
import skips  # noqa: E402

INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, FAILED_PRECONDITION, ABORTED = 3, 5, 7, 9, 10
KEY = wire_client.JOB_KEY
JOB = "refusals"


def with_byte(message, at, value):
    return message[:at] + bytes([value]) + message[at + 1 :]


def with_value(value):
    """Returns the first block, with one value replaced by `value`."""
    values = initial()[:BLOCK_VALUES]
    values[5] = value
    return values


def block(sequence=17, first=0, values=None, **how):
    return wire_codec.values_message(sequence, first, initial()[:BLOCK_VALUES] if values is None else values, **how)


class Refusals(ServerTest):
    def setUp(self):
        super().setUp()
        (self.group,) = self.attached(self.new_group(incarnation=2))

    def new_group(self, job_id=JOB, job=None, count=VALUES, **who):
        return wire_client.Group(self.address, job_id, job or wire_client.elastic(0.25), count, **who)

    def outcome(self, way, *stream):
        """Returns the (status, text) with which the server ends a stream of these messages."""
        connected = self.group.connect(way)
        try:
            for message in stream:
                connected.send(message)
            with self.assertRaises(wire_client.Refused) as refusal:
                while connected.receive() is not None:
                    pass
        finally:
            connected.close()
        return refusal.exception.status, refusal.exception.text

    def test_messages_of_an_exchange(self):
        exchanges = wire_client.Exchanges(self.group)
        for _ in exchanges.exchange(16, initial()):  # The group sends the center's own values, so the center does not change.
            pass
        exchanges.close()
        opening = self.group.opening()
        cases = {
            "a value is no number": ([opening, block(values=with_value(math.nan))], INVALID_ARGUMENT, "values are finite"),
            "a value is infinite": ([opening, block(values=with_value(-math.inf))], INVALID_ARGUMENT, "values are finite"),
            "sequence 0": ([opening, block(sequence=0)], INVALID_ARGUMENT, "sequence is 0"),
            "a sequence before the last": ([opening, block(sequence=15)], INVALID_ARGUMENT, "sequences grow"),
            "part of a block": ([opening, block(values=own()[:100])], INVALID_ARGUMENT, "a block has"),
            "from within a block": ([opening, block(first=1)], INVALID_ARGUMENT, "a block has"),
            "beyond the vector": ([opening, block(first=1 << 40)], INVALID_ARGUMENT, "this shard holds"),
            "another type than the job's": ([opening, block(value_type=wire_codec.INT8)], INVALID_ARGUMENT, "compression is none"),
            "no known type": ([opening, with_byte(block(), 1, 7)], INVALID_ARGUMENT, "values are of type 7"),
            "k without top_k": ([opening, with_byte(block(), 2, 1)], INVALID_ARGUMENT, "bytes 2 and 3"),
            "no values": ([opening, block(values=array.array("f"))], INVALID_ARGUMENT, "announces 0 values"),
            "no known kind": ([opening, with_byte(block(), 0, 9)], INVALID_ARGUMENT, "kind 9"),
            "no opening": ([block()], INVALID_ARGUMENT, "opening"),
            "two openings": ([opening, opening, block()], INVALID_ARGUMENT, "a second opening"),
            "another version": ([wire_codec.opening(JOB, job_key=KEY, version=1)], INVALID_ARGUMENT, "version 1"),
            "no job's id": ([wire_codec.opening("No job")], INVALID_ARGUMENT, "a-z, 0-9 and -"),
            "a job that is not here": ([wire_codec.opening("another"), block()], NOT_FOUND, "another"),
            "a group beyond the last": ([wire_codec.opening(JOB, 1, job_key=KEY), block()], INVALID_ARGUMENT, "sender.group is 1"),
            "a rank beyond the last": ([wire_codec.opening(JOB, 0, 1, job_key=KEY), block()], INVALID_ARGUMENT, "sender.rank is 1"),
            "incarnation 0": ([wire_codec.opening(JOB, 0, 0, 0, KEY), block()], INVALID_ARGUMENT, "incarnation is 0"),
            "an incarnation that was replaced": ([wire_codec.opening(JOB, 0, 0, 1, KEY), block()], ABORTED, "replaced by start 2"),
            "an incarnation that has not attached": ([wire_codec.opening(JOB, 0, 0, 3, KEY), block()], NOT_FOUND, "start 3 of group 0 has not"),
            "no key": ([wire_codec.opening(JOB, 0, 0, 2), block()], PERMISSION_DENIED, "not the key of job"),
            "another key": ([wire_codec.opening(JOB, 0, 0, 2**32 - 1, KEY + "!"), block()], PERMISSION_DENIED, "not the key of job"),
        }
        for way in wire_client.WAYS:
            for name, (stream, status, words) in cases.items():
                with self.subTest(way=way, name=name):
                    got, text = self.outcome(way, *stream)
                    self.assertEqual(got, status, text)
                    self.assertIn(words, text)
        self.assertEqual(self.group.pull().tobytes(), initial().tobytes())

    def test_a_stranger_s_calls(self):
        """A client without the job's key can neither report the group's speed nor save the center. It does not replace the group."""
        stranger = self.new_group(incarnation=2**32 - 1)
        stranger.sender.job_key = ""
        for call in (lambda: stranger.pace(1), stranger.save):
            with self.assertRaises(wire_client.Refused) as refusal:
                call()
            self.assertEqual(refusal.exception.status, PERMISSION_DENIED, refusal.exception.text)
        self.group.pace(1)
        self.group.save()

    def test_a_length_that_is_not_the_count_s(self):
        """gRPC gives a message's length. It must be the length that follows from the message's count of values."""
        for message in (block()[:-4], block() + bytes(4), block()[:20]):
            with self.subTest(length=len(message)):
                status, text = self.outcome(wire_client.GRPC, self.group.opening(), message)
                self.assertEqual(status, INVALID_ARGUMENT, text)

    def test_a_connection_that_ends_in_a_message(self):
        """Without gRPC, a message that is cut short counts as a broken connection: the server sends no refusal, and applies nothing."""
        for way in (wire_client.TCP, wire_client.LOCAL):
            stream = self.group.open(way)
            stream.send(block(values=own()[:BLOCK_VALUES])[:-4])
            stream.end()
            self.assertIsNone(stream.receive())
            stream.close()
        self.assertEqual(self.group.pull().tobytes(), initial().tobytes())

    def test_encodings(self):
        """In a job with int8, the scales and codes that the page forbids are refused."""
        job = wire_client.compressed(wire_client.elastic(0.25), wire_codec.INT8)
        (group,) = self.attached(self.new_group("int8", job))
        good = block(value_type=wire_codec.INT8)
        # The scales are negative, infinite, subnormal, with one of the lowest 7 bits set, and too large for a code of
        # 127. The last case is a code of -128.
        for bad in ("000080bf", "0000807f", "00004000", "0100803f", "0000007f"):
            with self.subTest(scale=bad):
                scaled = good[: wire_codec.HEADER_BYTES] + bytes.fromhex(bad) + good[wire_codec.HEADER_BYTES + 4 :]
                status, text = self.outcome(wire_client.LOCAL, group.opening(), scaled)
                self.assertEqual(status, INVALID_ARGUMENT, text)
        status, text = self.outcome(wire_client.LOCAL, group.opening(), with_byte(good, wire_codec.HEADER_BYTES + 4, 0x80))
        self.assertEqual(status, INVALID_ARGUMENT, text)
        self.assertEqual(group.pull().tobytes(), initial().tobytes())

    def test_attach(self):
        top_k = wire_client.compressed(wire_client.elastic(0.25), wire_codec.TOP_K, 0.01)
        cut = wire_client.elastic(0.25)
        cut.shard_index = 1
        cases = {
            "another layout": (self.new_group(count=VALUES + 1, incarnation=2), FAILED_PRECONDITION),
            "another alpha": (self.new_group(job=wire_client.elastic(0.5), incarnation=2), FAILED_PRECONDITION),
            "an incarnation that was replaced": (self.new_group(), ABORTED),
            "elastic with top_k": (self.new_group("top-k", top_k), INVALID_ARGUMENT),
            "a place beyond the list of servers": (self.new_group("cut", cut), INVALID_ARGUMENT),
            "no job's id": (self.new_group("No job"), INVALID_ARGUMENT),
        }
        for name, (group, status) in cases.items():
            with self.subTest(name=name):
                with self.assertRaises(wire_client.Refused) as refusal:
                    group.attach()
                self.assertEqual(refusal.exception.status, status, refusal.exception.text)

    def test_initial_values(self):
        """Initial values must cover all blocks, each once. A client that was refused may send them again."""
        group = self.new_group("initial")
        self.assertEqual(group.attach().state, wire_client.messages.AttachResponse.INITIALIZE)
        blocks = [
            wire_codec.values_message(0, first, initial()[first : first + group.block_values]) for first in range(0, VALUES, group.block_values)
        ]
        cases = {
            "a value is no number": [block(0, values=with_value(math.nan)), *blocks[1:]],
            "a block is missing": blocks[1:],
            "a block comes twice": [blocks[0], *blocks],
            "another type": [block(0, value_type=wire_codec.FLOAT16), *blocks[1:]],
            "a sequence": [block(1), *blocks[1:]],
        }
        for name, sent in cases.items():
            with self.subTest(name=name):
                with self.assertRaises(wire_client.Refused) as refusal:
                    group.send_initial(sent)
                self.assertEqual(refusal.exception.status, INVALID_ARGUMENT, refusal.exception.text)
        stream = group.open(wire_client.TCP)
        stream.send(block())
        with self.assertRaises(wire_client.Refused) as refusal:
            stream.receive()
        stream.close()
        self.assertEqual(refusal.exception.status, NOT_FOUND, "there is no center yet")
        group.initialize(initial())
        self.assertEqual(group.attach().state, wire_client.messages.AttachResponse.READY)
        self.assertEqual(group.pull().tobytes(), initial().tobytes())


if __name__ == "__main__":
    skips.main()
