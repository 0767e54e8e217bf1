#!/usr/bin/env python3
"""Tests the calculations of `tests/benchmarks/run python`, without running it."""

import argparse
import pathlib
import sys
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import python_benchmark  # noqa: E402


class Ratios(unittest.TestCase):
    RATES = {
        "hooke-torch": [160, 90, 80],
        "ddp-gloo": [80, 60, 80],
        "torch-alone": [200, 100, 100],
        "built-in": [300, 240, 160],
        "built-in-alone": [375, 300, 200],
        "hooke-torch-1": [99, 98, 97],
        "torch-1": [100, 100, 100],
    }

    def test_each_is_the_median_of_the_repetitions_own_ratios(self):
        of = python_benchmark.ratios(self.RATES)
        self.assertEqual((of["ddp-gloo"], of["torch-alone"], of["torch-1"]), (1.5, 0.8, 0.98))
        self.assertEqual(of["built-in"], 0.5)

    def test_kernels_that_are_slower_for_both_do_not_count_per_compute_second(self):
        # The script loses a fifth to its peers, and the built-in trainer too, though it computes twice as fast.
        self.assertAlmostEqual(python_benchmark.ratios(self.RATES)[python_benchmark.PER_COMPUTE_SECOND], 1.0)

    def test_a_model_that_the_built_in_trainer_lacks_has_no_such_ratio(self):
        rates = {way: values for way, values in self.RATES.items() if not way.startswith("built-in")}
        self.assertEqual(set(python_benchmark.ratios(rates)), {"ddp-gloo", "torch-alone", "torch-1"})

    def test_ranks_alone_are_plain_scripts(self):
        arguments = argparse.Namespace(model="gpt", ranks=3, python="python3", train="train")
        commands, speaks_for = python_benchmark.ways(arguments, "folder", 1)["torch-alone"]
        self.assertEqual([[word for word in command if word.startswith("--by=")] for command in commands], [["--by=nothing"]] * 3)
        self.assertEqual(speaks_for, 1)

    def test_what_is_missed(self):
        of = {"ddp-gloo": 1.2, "torch-alone": 0.5, "built-in": 0.5, python_benchmark.PER_COMPUTE_SECOND: 0.96, "torch-1": 0.97}
        lines = python_benchmark.missed("lenet", 2, of)
        self.assertEqual(len(lines), 3)
        self.assertIn("hooke-torch-1 has 0.970 times the samples per second of torch-1; asked is at least 0.98", lines[0])
        self.assertEqual(len(python_benchmark.missed("lenet", 4, of)), 1)  # With other ranks, only one process is asked for.
        self.assertEqual(python_benchmark.missed("gpt", 2, {"ddp-gloo": 1.0, "torch-1": 0.98}), [])


if __name__ == "__main__":
    unittest.main()
