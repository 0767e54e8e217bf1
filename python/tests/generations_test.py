#!/usr/bin/python3
"""hooke.torch and hooke.numpy with a stand-in for the library, when the number of groups changes: samples, epochs and schedules."""

import pathlib
import random
import sys
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]
import numpy  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import hooke.numpy  # noqa: E402
import hooke.torch  # noqa: E402
from fake_native import FakeNative  # noqa: E402
from hooke._division import Generation, Share  # noqa: E402

SAMPLES, BATCH, EPOCHS = 97, 2, 4


class Ends(Exception):
    """The group ends, because the number of groups has changed."""


class Rank:
    """A rank that trains until its group has done the step `last`, or to its end."""

    def __init__(self, earlier=(), generation_step=0, ranks=(1,), group=0, rank=0, first_step=0, kept=None, accumulate=1, due_after=()):
        place = {"group": group, "groups": len(ranks), "rank": rank, "ranks": ranks[group], "ranks_before": sum(ranks[:group]), "ranks_of_all": sum(ranks)}
        self.native = FakeNative(first_step=first_step, earlier=earlier, generation_step=generation_step, **place)
        self.native.kept, self.native.due_after = kept, set(due_after)
        self.job = hooke.torch.Job(self.native)
        self.model = nn.Linear(1, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1.0, momentum=0.5)
        self.job.wrap(self.model, self.optimizer, accumulate=accumulate)
        self.data = TensorDataset(torch.arange(SAMPLES))
        self.sampler = self.job.sampler(self.data, batch_size=BATCH)
        self.accumulate = accumulate
        self.taken = []  # (epoch, samples of a step)
        self.rates = []  # Of each step.
        self.epochs = []

    def step(self, scheduler=None):
        self.model(torch.ones(1, 1)).sum().backward()
        self.optimizer.step()
        self.rates.append(self.optimizer.param_groups[0]["lr"])
        if scheduler:
            scheduler.step()
        self.optimizer.zero_grad()

    def train(self, last=None, per_step=None, per_epoch=None, epochs=EPOCHS):
        try:
            for epoch in self.job.epochs(epochs):
                if self.job.step == last:
                    raise Ends()
                self.epochs.append(epoch)
                batches = []
                for (x,) in DataLoader(self.data, batch_size=BATCH, sampler=self.sampler):
                    batches += x.tolist()
                    if len(batches) < BATCH * self.accumulate:
                        self.model(torch.ones(1, 1)).sum().backward()
                        continue
                    self.taken.append((epoch, batches))
                    batches = []
                    self.step(per_step)
                    if self.job.step == last:
                        raise Ends()
                if per_epoch:
                    per_epoch.step()
        except Ends:
            pass
        if last is None:
            assert self.native.calls[-1] == "finish" and not self.native.notices, self.native.notices
        return self


class Samples(unittest.TestCase):
    def test_every_sample_once_while_groups_come_and_go(self):
        """1 -> 3 -> 2 groups, each after random steps, and in one of them a restart."""
        for seed in range(12):
            chance = random.Random(seed)
            accumulate = chance.randint(1, 2)
            earlier, first, seen = [], 0, {}
            for number, groups in enumerate((1, 3, 2)):
                ranks = [chance.randint(1, 2) for _ in range(groups)]
                ends = number == 2
                probe = Rank(earlier, first, ranks, accumulate=accumulate)
                total = first + probe.sampler.division().steps_before(EPOCHS)
                about = chance.randint(first, total)
                last = [None if ends else max(first, min(total, about + chance.randint(-3, 3))) for _ in ranks]
                for group, size in enumerate(ranks):
                    for rank in range(size):
                        place = {"earlier": earlier, "generation_step": first, "ranks": ranks, "group": group, "rank": rank, "accumulate": accumulate}
                        begun = Rank(**place).train(last[group])
                        self.assertEqual(begun.native.plan, (total, SAMPLES // (BATCH * accumulate * sum(ranks))))
                        # The epochs done, and those that the groups still have to do, are all epochs.
                        self.assertAlmostEqual(begun.native.epochs_done + (total - first) / begun.native.plan[1], EPOCHS)
                        taken = begun.taken
                        if group == 0 and len(taken) > 2:
                            cut = chance.randrange(1, len(taken))
                            again = Rank(first_step=first + cut, **place).train(last[group])
                            self.assertEqual(again.taken, taken[cut:], f"seed {seed}: a restart after {cut} steps")
                        for epoch, samples in taken:
                            seen.setdefault(epoch, []).extend(samples)
                earlier.append(Generation(first, tuple(Share(r, step) for r, step in zip(ranks, last) if step is not None)))
                first = max(step or 0 for step in last) + chance.randint(0, 2)
            for epoch in range(EPOCHS):
                self.assertEqual(len(seen[epoch]), len(set(seen[epoch])), f"seed {seed}: a sample twice in epoch {epoch}")
                self.assertGreater(len(seen[epoch]), SAMPLES - BATCH * accumulate * 6, f"seed {seed}: epoch {epoch}")

    def test_without_epochs(self):
        """A program that only iterates over its sampler gets what is left, too."""
        rank = Rank([Generation(0, (Share(1, 60),))], 60)  # 48 steps are an epoch.
        rest, whole = list(rank.sampler), list(rank.sampler)
        self.assertEqual((len(rest), len(whole)), (2 * 36, 2 * 48))
        first = Rank()
        list(first.sampler)
        self.assertEqual(list(first.sampler)[24:], rest)

    def test_nothing_is_left(self):
        rank = Rank([Generation(0, (Share(1, 192),))], 192, ranks=(1, 1)).train()
        self.assertEqual((rank.epochs, rank.native.plan[0]), ([], 192))

    def test_too_many_groups(self):
        with self.assertRaisesRegex(hooke.Error, "97 samples do not fill one step: batch_size 2 x accumulate 1 x 49 ranks of all groups"):
            Rank([Generation(0, (Share(1, 9),))], 9, ranks=(1,) * 49).train()

    def test_what_a_script_sees(self):
        earlier = [Generation(0, (Share(1, 9), Share(1, 7)))]
        rank = Rank(earlier, 10, ranks=(1, 2, 1), group=1)
        self.assertEqual((rank.job.groups, rank.job.generations, rank.job.generation_step), (3, tuple(earlier), 10))
        self.assertEqual((rank.job.first_step, rank.job.step), (10, 10))
        self.assertEqual(len(rank.sampler), 2 * (97 // 8))


class Schedules(unittest.TestCase):
    """Training began in one group, which made 60 steps of 48 an epoch. Now two groups make 24: 18 of epoch 1, and then two epochs."""

    EARLIER = [Generation(0, (Share(1, 60),))]

    def cosine(self, rank):
        return rank.job.advance(torch.optim.lr_scheduler.CosineAnnealingLR(rank.optimizer, EPOCHS * len(rank.sampler) // BATCH))

    def per_epoch(self, rank):
        return rank.job.advance(torch.optim.lr_scheduler.ExponentialLR(rank.optimizer, 0.5), "epoch")

    def kept(self, *schedulers, last=60, ranks=(1,)):
        """What group 0 has kept at the end of the first generation."""
        rank = Rank(ranks=ranks, due_after=[last])
        made = {name: getattr(self, name)(rank) for name in schedulers}
        rank.train(last + 1, per_step=made.get("cosine"), per_epoch=made.get("per_epoch"), epochs=9)
        return rank.native.saved[last], last

    def test_schedule_of_the_length_of_training(self):
        """It ends where training ends, in a group that was there and in a new one."""
        rates = []
        for group, kept in ((0, self.kept("cosine")), (1, None)):
            rank = Rank(self.EARLIER, 60, ranks=(1, 1), group=group, kept=kept)
            scheduler = self.cosine(rank)
            rank.train(per_step=scheduler)
            rates.append(rank.rates)
            self.assertEqual(len(rank.rates), 18 + 48)
            self.assertAlmostEqual(scheduler.get_last_lr()[0], 0, places=6)
        numpy.testing.assert_allclose(rates[0], rates[1], rtol=1e-9)
        self.assertAlmostEqual(rates[0][0], (1 + numpy.cos(numpy.pi * 60 / 192)) / 2, places=6)

    def test_one_step_for_each_epoch(self):
        """Also for the rest of one, and if a group had finished it when another one had not."""
        for kept, earlier, epochs in (
            (self.kept("per_epoch"), self.EARLIER, [1, 2, 3]),
            (None, self.EARLIER, [1, 2, 3]),
            (self.kept("per_epoch", last=98, ranks=(1, 1)), [Generation(0, (Share(1, 98), Share(1, 22)))], [0, 1, 2, 3, 4]),
        ):
            rank = Rank(earlier, 98 if len(epochs) > 3 else 60, ranks=(1, 1), kept=kept)
            rank.train(per_epoch=self.per_epoch(rank), epochs=epochs[-1] + 1)
            self.assertEqual(rank.epochs, epochs)
            for (epoch, _), rate in zip(rank.taken, rank.rates):
                self.assertEqual(rate, 0.5**epoch)

    def test_epoch_whose_rest_fills_no_step(self):
        """The script does not see it; its schedule does."""
        first = Generation(0, (Share(3, 14), Share(3, 1)))
        for earlier, now, steps in (
            ([Generation(0, (Share(1, 46), Share(1, 2)))], 24, [0, 1, 2, 2]),
            ([first, Generation(14, (Share(5, 22), Share(1, 14)))], 6, [1, 0, 8, 8]),
        ):
            rank = Rank(earlier, 46, ranks=(now,))
            self.assertEqual([rank.sampler.division().steps(epoch) for epoch in range(EPOCHS)], steps)
            rank.train(per_epoch=self.per_epoch(rank))
            self.assertEqual(rank.epochs, [epoch for epoch in range(EPOCHS) if steps[epoch]])
            self.assertEqual(rank.rates, [0.5**epoch for epoch, _ in rank.taken])

    def test_restart_within_a_generation(self):
        """The state that was kept in this generation counts, as before."""
        place = {"earlier": self.EARLIER, "generation_step": 60, "ranks": (1, 1)}
        whole = Rank(**place, kept=self.kept("cosine"), due_after=[85])
        whole.train(per_step=self.cosine(whole))
        again = Rank(**place, kept=(whole.native.saved[85], 85), first_step=85)
        again.train(per_step=self.cosine(again))
        numpy.testing.assert_allclose(again.rates, whole.rates[25:], rtol=1e-9)
        self.assertEqual(again.taken, whole.taken[25:])

    def test_momentum_comes_back(self):
        kept = self.kept()
        rank = Rank(self.EARLIER, 60, ranks=(1, 1), kept=kept)
        rank.job.begin()
        self.assertTrue(all("momentum_buffer" in state for state in rank.optimizer.state.values()) and rank.optimizer.state)

    def test_schedule_by_a_measure_goes_on(self):
        def plateau(rank):
            return rank.job.advance(torch.optim.lr_scheduler.ReduceLROnPlateau(rank.optimizer, patience=0), "epoch")

        first = Rank(due_after=[60])
        scheduler = plateau(first)
        first.job.begin()
        scheduler.step(1.0)
        scheduler.step(2.0)
        first.train(61)
        rank = Rank(self.EARLIER, 60, ranks=(1, 1), kept=(first.native.saved[60], 60))
        scheduler = plateau(rank)
        rank.job.begin()
        self.assertEqual((scheduler.best, rank.optimizer.param_groups[0]["lr"]), (1.0, 0.1))


class Skipped(unittest.TestCase):
    def test_steps_that_were_skipped_count_within_a_generation_only(self):
        rank = Rank(due_after=[2])
        rank.job.begin()
        for skips in (True, False, False, False):
            rank.model(torch.ones(1, 1)).sum().backward()
            if not skips:
                rank.optimizer.step()
            rank.optimizer.zero_grad()
        kept = (rank.native.saved[2], 2)
        self.assertEqual(Rank(first_step=2, kept=kept).train().taken, Rank().train().taken[3:])
        later = {"earlier": [Generation(0, (Share(1, 2),))], "generation_step": 2}
        self.assertEqual(Rank(kept=kept, **later).train().taken, Rank(**later).train().taken)


class Arrays(unittest.TestCase):
    def test_epochs_of_plain_arrays(self):
        """One group of two ranks made 7 steps of 5 an epoch. Now one rank makes 10."""
        native = FakeNative(earlier=[Generation(0, (Share(2, 7),))], generation_step=7)
        job = hooke.numpy.Job(native)
        job.register({"w": numpy.zeros(1, numpy.float32)}, steps_total=7 + 16, steps_per_epoch=10)
        self.assertEqual((native.plan, native.epochs_done, job.step), ((23, 10), 1.4, 7))
        self.assertEqual(list(job.epochs(3)), [1, 2])
        self.assertEqual((job.generation_step, job.generations[0].shares[0].ranks), (7, 2))

    def test_without_a_length(self):
        native = FakeNative(earlier=[Generation(0, (Share(2, 7),))], generation_step=7)
        job = hooke.numpy.Job(native)
        job.register({"w": numpy.zeros(1, numpy.float32)})
        self.assertEqual((native.plan, native.epochs_done, list(job.epochs(2))), ((0, 0), 0, [0, 1]))


if __name__ == "__main__":
    unittest.main()
