#!/usr/bin/env python3
"""The list of faults of a seed, and which starts of a group may run beside a later one."""

import itertools
import pathlib
import sys
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "several_hosts")]
import audit  # noqa: E402
import fault_plan  # noqa: E402


def first(seed, count):
    return list(itertools.islice(fault_plan.faults(seed), count))


class FaultPlanTest(unittest.TestCase):
    def test_a_seed_is_a_list(self):
        self.assertEqual(first(7, 100), first(7, 100))
        self.assertEqual(first(7, 100), first(7, 1000)[:100])
        self.assertNotEqual(first(7, 100), first(8, 100))

    def test_the_seeds_of_ci_have_every_kind_of_fault(self):
        self.assertEqual(fault_plan.kinds(fault_plan.CI_SEEDS), set(fault_plan.WEIGHTS))
        self.assertLess(set(fault_plan.SLURM_KINDS), set(fault_plan.WEIGHTS))
        self.assertEqual(fault_plan.kinds([7]), {fault.kind for fault in first(7, fault_plan.FAULTS_MIN)})

    def test_draws_are_within_their_ranges(self):
        for fault in first(1, 1000):
            self.assertTrue(0 <= fault.choice < 1 and 0 <= fault.part < 1 and 0.1 <= fault.pause <= 1.5, fault)

    def test_each_victim_can_be_meant(self):
        self.assertIsNone(fault_plan.pick([], 0.5))
        self.assertEqual([fault_plan.pick("abc", choice) for choice in (0, 0.33, 0.34, 0.66, 0.67, 0.999999)], list("aabbcc"))
        self.assertEqual({fault_plan.pick("abcde", fault.choice) for fault in first(1, 100)}, set("abcde"))
        self.assertEqual([fault_plan.seconds(part, 8) for part in (0, 0.5, 1)], [0.2, 4.1, 8])


class AuditTest(unittest.TestCase):
    LINES = ["hooke-rank /t/n1/groups/a-1-0-1/start", "hooke-rank /t/n2/groups/a-1-0-2/start", "hooke-rank /t/n3/groups/a-1-1-4/start"]

    def looks(self, *lines, excuses=lambda line: False):
        seen = audit.Audit(lines=lambda: lines, excuses=excuses)
        seen._look()
        return seen

    def test_two_starts_of_a_group_are_found(self):
        self.assertEqual(audit.earlier_lines(self.LINES), {("a-1", 0): self.LINES[:1]})
        self.assertEqual(len(self.looks(*self.LINES).wrong), 1)
        self.assertEqual(self.looks(*self.LINES[1:]).wrong, [])

    def test_only_the_earlier_start_is_excused(self):
        seen = self.looks(*self.LINES, excuses=lambda line: "/n1/" in line)
        self.assertEqual((seen.wrong, seen.excused), ([], 1))
        self.assertEqual(len(self.looks(*self.LINES, excuses=lambda line: "/n2/" in line).wrong), 1)


if __name__ == "__main__":
    unittest.main()
