#!/usr/bin/python3
"""Tests the bytes that docs/wire.md prints, and encodings computed by hand; needs no server."""

import array
import collections
import math
import pathlib
import struct
import sys
import unittest

sys.dont_write_bytecode = True  # Keeps __pycache__ out of the tree.

import wire_codec  # noqa: E402

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/wire.md"


def printed(start, end=None):
    """Returns the bytes that the page prints between two headings."""
    page = PAGE.read_text()
    example = page[page.index(start) : page.index(end) if end else len(page)]
    return bytes.fromhex("".join(line[4:40] for line in example.splitlines() if line[:4].strip().isdigit()))


def floats(*values):
    return array.array("f", values)


def of_bits(*bits):
    return array.array("f", struct.pack(f"<{len(bits)}I", *bits))


class WireCodec(unittest.TestCase):
    def test_the_page_s_example(self):
        expected = wire_codec.opening("job-1", group=2, rank=1, incarnation=3, job_key="key7")
        expected += wire_codec.values_message(16, 32768, floats(7, 0.5))
        expected += wire_codec.values_message(16, 32768, floats(1, -0.25))
        self.assertEqual(printed("## A worked example", "### The same, compressed"), expected)

    def test_the_page_s_compressed_example(self):
        expected = wire_codec.values_message(16, 32768, floats(7, 0.5), wire_codec.INT8)
        self.assertEqual(printed("### The same, compressed", "### A refusal"), expected)

    def test_the_page_s_refusal(self):
        message = printed("### A refusal")
        self.assertEqual(wire_codec.bytes_behind(message), len(message) - wire_codec.HEADER_BYTES)
        self.assertEqual(wire_codec.read_refusal(message), (3, "header.sequence is 0; it is at least 1"))

    def test_float16_ends_at_its_largest(self):
        self.assertEqual(list(wire_codec.rounded(wire_codec.FLOAT16, 0, floats(1e9, -1e9, 65519, 2.0**-26))), [65504, -65504, 65504, 0])

    def test_bfloat16_rounds_to_even_and_ends_at_its_largest(self):
        # The lower halves are below half a unit, half above an even code, half above an odd code, and above half. Then
        # come the largest float32 values, which would round to infinity.
        values = of_bits(0x3F807FFF, 0x3F808000, 0x3F818000, 0x3F808001, 0x7F7FFFFF, 0xFF7FFFFF, 0xBF818000, 0x80000000)
        codes = [0x3F80, 0x3F80, 0x3F82, 0x3F81, 0x7F7F, 0xFF7F, 0xBF82, 0x8000]
        self.assertEqual(wire_codec.encode(wire_codec.BFLOAT16, 0, values), struct.pack("<8H", *codes))
        self.assertEqual(wire_codec.rounded(wire_codec.BFLOAT16, 0, values).tobytes(), of_bits(*(code << 16 for code in codes)).tobytes())

    def test_int4_of_an_odd_number(self):
        # The scale 14 / 7 = 2 is exact. The codes are 7, -7, 1, 2 (1.5 rounds to even) and 0 (0.5 rounds to even).
        values = floats(14, -14, 2, 3, 1)
        encoded = struct.pack("<f", 2) + bytes([0x97, 0x21, 0x00])
        self.assertEqual(wire_codec.encode(wire_codec.INT4, 0, values), encoded)
        self.assertEqual(list(wire_codec.decode(wire_codec.INT4, 0, 5, encoded)), [14, -14, 2, 4, 0])

    def test_scales_have_17_bits_and_are_not_subnormal(self):
        # The float32 of 1 / 7 is 0x3e124925; its lowest 7 bits are cleared.
        self.assertEqual(wire_codec.encode(wire_codec.INT4, 0, floats(1))[:4], struct.pack("<I", 0x3E124900))
        for value_type, most in wire_codec.MOST.items():
            least = most * 2.0**-126
            self.assertEqual(list(wire_codec.rounded(value_type, 0, floats(least, -least))), [least, -least])
            self.assertEqual(list(wire_codec.rounded(value_type, 0, floats(least / 2, 0))), [0, 0])

    def test_a_run_begins_after_each_full_one(self):
        for value_type, run in ((wire_codec.INT8, 256), (wire_codec.INT4, 128)):
            most = wire_codec.MOST[value_type]
            values = floats(*[most] * run, *[2 * most] * 3)
            encoded = wire_codec.encode(value_type, 0, values)
            self.assertEqual(len(encoded), wire_codec.payload_bytes(value_type, 0, run + 3))
            second = encoded[-wire_codec.payload_bytes(value_type, 0, 3) :]
            self.assertEqual(encoded[:4] + second[:4], struct.pack("<2f", 1, 2))
            self.assertEqual(wire_codec.decode(value_type, 0, run + 3, encoded), values)

    def test_top_k_keeps_the_largest_and_of_equal_ones_the_first(self):
        k = 16384 // 4
        self.assertEqual(wire_codec.entries_of_whole_run(0.25), k)
        self.assertEqual(wire_codec.entries_of_whole_run(math.nextafter(0.25, 1)), k + 1)
        # top_k is a quarter: of 10 values ceil(10 / 4) = 3 are sent, -5 and the first two of the 3s.
        values = floats(1, 3, 0, 3, 2, -5, 3, 1, 2, 0)
        encoded = struct.pack("<6H", 1, 0x4040, 3, 0x4040, 5, 0xC0A0)
        self.assertEqual(wire_codec.encode(wire_codec.TOP_K, k, values), encoded)
        self.assertEqual(list(wire_codec.decode(wire_codec.TOP_K, k, 10, encoded)), [0, 3, 0, 3, 0, -5, 0, 0, 0, 0])
        # A whole run is followed by a run of 10 values, whose indices start again at 0.
        both = floats(*[0] * 16383, 7, *values)
        payload = wire_codec.encode(wire_codec.TOP_K, k, both)
        self.assertEqual(len(payload), 4 * (k + 3))
        self.assertEqual(payload[-16:], struct.pack("<HH", 16383, 0x40E0) + encoded)
        self.assertEqual(len(payload), wire_codec.payload_bytes(wire_codec.TOP_K, k, len(both)))

    def test_what_was_rounded_once_stays(self):
        values = floats(*(0.37 * i * (-1) ** i for i in range(700)))
        for value_type in (wire_codec.FLOAT32, wire_codec.FLOAT16, wire_codec.BFLOAT16, wire_codec.INT8, wire_codec.INT4):
            once = wire_codec.rounded(value_type, 0, values)
            self.assertEqual(wire_codec.rounded(value_type, 0, once), once)

    def test_parts_follow_one_another(self):
        for count in range(12):
            for parts in range(1, 6):
                cut = [wire_codec.part(count, index, parts) for index in range(parts)]
                self.assertEqual([block for part in cut for block in part], list(range(count)))
                sizes = collections.Counter(map(len, cut))
                self.assertEqual([len(part) for part in cut], sorted(sizes.elements(), reverse=True))
                self.assertLessEqual(max(sizes) - min(sizes), 1)


if __name__ == "__main__":
    unittest.main()
