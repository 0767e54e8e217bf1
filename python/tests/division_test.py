#!/usr/bin/python3
"""hooke._division against an audit that writes every sample down: who takes what while the number of groups changes."""

import itertools
import pathlib
import random
import sys
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1])]
from hooke._division import Division, Generation, Part, Share, at_places, divide  # noqa: E402


def positions(ranges):
    return [position for first, last in ranges for position in range(first, last)]


class Audit:
    """Trains by lists of samples. The slow, obvious version of the rules in _division.py."""

    def __init__(self, samples, unit):
        self.samples, self.unit = samples, unit
        self.left = {}  # Epoch -> the list that is left.
        self.next = 0
        self.taken = {}  # Epoch -> all that was taken, in any order.
        self.unfilled = {}  # Epoch that is over -> (samples left out, samples of a step of all groups).

    def begins(self, ranks):
        """Begins a generation. Yields the epochs that it works through: (epoch, its list, its steps)."""
        epochs = [(epoch, self.left[epoch]) for epoch in sorted(self.left)]
        whole = ((epoch, list(range(self.samples))) for epoch in itertools.count(self.next))
        for epoch, samples in itertools.chain(epochs, whole):
            yield epoch, samples, len(samples) // (self.unit * sum(ranks))

    def generation(self, ranks, done):
        """Group g with ranks[g] ranks makes done[g] steps. Returns what each group took in each step: (epoch, samples)."""
        took = [[] for _ in ranks]
        epochs = []
        for epoch, samples, steps in self.begins(ranks):
            if sum(steps for _, _, steps in epochs) >= max(done) and epoch >= self.next:
                break
            epochs.append((epoch, samples, steps))
        left = {}
        at = 0
        for epoch, samples, steps in epochs:
            all_taken = set()
            for group, size in enumerate(ranks):
                for step in range(steps):
                    if at + step < done[group]:
                        first = (step * sum(ranks) + sum(ranks[:group])) * self.unit
                        mine = samples[first : first + size * self.unit]
                        took[group].append((epoch, mine))
                        all_taken.update(mine)
            self.taken.setdefault(epoch, []).extend(sorted(all_taken))
            rest = [sample for sample in samples if sample not in all_taken]
            finished = all(position >= at + steps for position in done)
            if finished and (steps or all(position > at for position in done)):
                self.unfilled[epoch] = (len(rest), self.unit * sum(ranks))
            else:
                left[epoch] = rest
            at += steps
        if epochs:
            self.next = max(self.next, epochs[-1][0] + 1)
        self.left = left
        return took


def steps_of(division, ranks, group, unit, count):
    """What a group takes in its first `count` steps, as the sampler has it."""
    took = []
    for epoch, first in division.from_position(0):
        indices = positions(division.part(epoch).left)
        for step in range(first, division.steps(epoch)):
            if len(took) == count:
                return took
            begin = (step * sum(ranks) + sum(ranks[:group])) * unit
            took.append((epoch, indices[begin : begin + ranks[group] * unit]))
    return took


class Plain(unittest.TestCase):
    def test_places(self):
        self.assertEqual(at_places([(3, 5), (8, 12)], iter([(1, 3), (4, 5)])), ((4, 5), (8, 9), (10, 11)))
        self.assertEqual(at_places([(3, 5), (5, 9)], iter([(1, 2), (2, 4)])), ((4, 7),))
        self.assertEqual(at_places([(0, 9)], iter([])), ())

    def test_first_generation(self):
        division = divide([], 10, 1, 3)
        self.assertEqual((division.whole_steps, division.steps_behind, division.steps_before(4)), (3, 0, 12))
        self.assertEqual(list(itertools.islice(division.from_position(4), 3)), [(1, 1), (2, 0), (3, 0)])
        self.assertEqual(division.part(1), Part(1, ((0, 10),)))

    def test_groups_in_different_epochs(self):
        """Two groups of one rank; 10 samples, so 5 steps. Group 0 is at step 6, group 1 at step 3."""
        division = divide([Generation(0, (Share(1, 6), Share(1, 3)))], 10, 1, 1)
        # Of epoch 0 group 1's last two are left, of epoch 1 all but group 0's first.
        self.assertEqual(division.part(0).left, ((7, 8), (9, 10)))
        self.assertEqual(division.part(1).left, ((1, 10),))
        self.assertEqual((division.steps(0), division.steps(1), division.steps(2)), (2, 9, 10))
        self.assertEqual((division.steps_before(1), division.steps_before(2), division.steps_before(4)), (2, 11, 31))
        self.assertEqual(division.steps_behind, 20 - 11)
        self.assertEqual(list(itertools.islice(division.from_position(11), 2)), [(2, 0), (3, 0)])

    def test_epoch_that_all_have_finished_is_over(self):
        division = divide([Generation(0, (Share(1, 5), Share(2, 3)))], 11, 1, 1)  # 3 steps; 2 samples fill none.
        self.assertEqual(division.part(1).left, ((1, 3), (4, 11)))
        self.assertEqual(list(itertools.islice(division.from_position(0), 2)), [(1, 0), (2, 0)])

    def test_rest_that_fills_no_step(self):
        """It has no steps, and is over only when groups have gone past it: a smaller generation may still take it."""
        first = Generation(0, (Share(1, 7),))
        big = divide([first], 10, 1, 4)
        self.assertEqual((big.steps(0), next(big.from_position(0))), (0, (1, 0)))
        at_once = divide([first, Generation(7, (Share(1, 7),) * 4)], 10, 1, 1)
        self.assertEqual(at_once.part(0).left, ((7, 10),))
        later = divide([first, Generation(7, (Share(1, 8),) * 4)], 10, 1, 1)
        self.assertEqual(next(later.from_position(0)), (1, 0))
        self.assertEqual(later.part(1).left, ((4, 10),))

    def test_data_that_fill_no_step(self):
        self.assertEqual(next(divide([Generation(0, (Share(2, 3),))], 1, 1, 1).from_position(0)), (0, 0))
        self.assertEqual(list(Division(3, 4).from_position(0)), [])


class AgainstTheAudit(unittest.TestCase):
    def check(self, seed):
        chance = random.Random(seed)
        unit, samples, epochs = chance.randint(1, 3), chance.randint(24, 90), chance.randint(1, 4)
        audit = Audit(samples, unit)
        earlier, first_step = [], 0
        # 1 -> 3 -> 2 groups, and other sequences; of one size, and of different ones.
        counts = chance.choice([[1, 3, 2], [2, 1, 3], [1, 3, 2, 2, 1], [3, 1]])
        for number, groups in enumerate(counts):
            ranks = [chance.randint(1, 2) for _ in range(groups)]
            division = divide(earlier, samples, unit, sum(ranks))
            total = division.steps_before(epochs)
            last = number == len(counts) - 1
            about = chance.randint(0, total)
            done = [total if last else min(total, max(0, about + chance.randint(-4, 4))) for _ in ranks]
            if chance.random() < 0.2 and not last:
                done = [0] * groups
            took = audit.generation(ranks, done)
            for group in range(groups):
                self.assertEqual(steps_of(division, ranks, group, unit, done[group]), took[group], f"seed {seed}, generation {number}")
            self.assertEqual(division.steps_behind + division.steps_before(99), 99 * division.whole_steps)
            earlier.append(Generation(first_step, tuple(Share(r, first_step + d) for r, d in zip(ranks, done))))
            first_step += max(done) + chance.randint(0, 2)
        for epoch in range(epochs):
            taken = audit.taken.get(epoch, [])
            self.assertEqual(len(taken), len(set(taken)), f"seed {seed}: a sample twice in epoch {epoch}")
            # An epoch ends when what is left of it fills no step of all groups.
            missing = samples - len(taken)
            self.assertLess(missing, unit * sum(ranks) if epoch not in audit.unfilled else audit.unfilled[epoch][1], f"seed {seed}: epoch {epoch}")

    def test_every_sample_once(self):
        for seed in range(2000):
            self.check(seed)

    def test_many_samples_are_few_ranges(self):
        """Ten million samples: what is left takes a few ranges, not a list of numbers."""
        generation = Generation(0, (Share(2, 100003), Share(1, 100000), Share(3, 100007)))
        division = divide([generation, Generation(100010, (Share(1, 100020), Share(1, 100019)))], 10_000_000, 4, 8)
        self.assertLess(len(division.part(0).left), 20)
        taken = 4 * (2 * 100003 + 100000 + 3 * 100007 + 10 + 9)
        self.assertEqual(division.part(0).size(), 10_000_000 - taken)


if __name__ == "__main__":
    unittest.main()
