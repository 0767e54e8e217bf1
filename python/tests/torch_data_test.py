#!/usr/bin/python3
"""hooke.torch with a stand-in for the library: which samples a rank takes, restarts, and evaluation."""

import math
import pathlib
import sys
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]
import numpy  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import hooke  # noqa: E402
import hooke.torch  # noqa: E402
from fake_native import FakeNative  # noqa: E402
from torch_models import train, wrapped  # noqa: E402


class Evaluation(unittest.TestCase):
    def test_reports_and_restores_modes(self):
        job, native, model, _ = wrapped()
        model[1].eval()

        def accuracy(m):
            self.assertFalse(m.training or torch.is_grad_enabled())
            return torch.tensor(0.5)

        self.assertEqual(job.evaluate(accuracy), 0.5)
        self.assertEqual([m.training for m in model], [True, False, True, True])
        self.assertEqual((native.evaluations[0][0], native.evaluations[0][2]), (0.5, 0))
        job.evaluate(lambda m: {"accuracy": 0.25, "loss": 2, "samples": 10})
        self.assertEqual(native.evaluations[1], (0.25, 2.0, 10))
        with self.assertRaises(ZeroDivisionError):
            job.evaluate(lambda m: 1 / 0)
        self.assertEqual([m.training for m in model], [True, False, True, True])
        job.evaluate(lambda m: {"perplexity": torch.tensor(21.5), "samples": 3})
        self.assertTrue(math.isnan(native.evaluations[2][0]))
        self.assertEqual((native.evaluations[2][2], native.metrics_of_evaluations), (3, [{}, {}, {"perplexity": 21.5}]))
        with self.assertRaisesRegex(hooke.Error, "perplexity is 'low', which is no number"):
            job.evaluate(lambda m: {"perplexity": "low"})

    def test_server_away_other_groups_and_other_ranks(self):
        job, native, _, _ = wrapped()
        native.server_away = True
        self.assertIsNone(job.evaluate(lambda m: 1))
        job, native, _, _ = wrapped(group=1, groups=2)
        self.assertIsNone(job.evaluate(lambda m: 1))
        self.assertNotIn("with_center", native.calls)
        job, native, _, _ = wrapped(rank=1, ranks=2)
        self.assertEqual(job.evaluate(lambda m: 0.75), 0.75)
        self.assertIsNone(job.evaluate(lambda m: None))  # Only rank 0's result is reported, so rank 1 may return None.
        self.assertEqual(native.evaluations, [])


class Sampling(unittest.TestCase):
    def take(self, samples, batch, accumulate=1, epochs=1, first_step=0, workers=0, **place):
        """Returns the batches of each epoch."""
        native = FakeNative(first_step=first_step, **place)
        job = hooke.torch.Job(native)
        model = nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0)
        job.wrap(model, optimizer, accumulate=accumulate)
        data = TensorDataset(torch.arange(samples))
        sampler = job.sampler(data, batch_size=batch)
        taken = {}
        for epoch in job.epochs(epochs):
            for number, (x,) in enumerate(DataLoader(data, batch_size=batch, sampler=sampler, num_workers=workers)):
                taken.setdefault(epoch, []).append(x.tolist())
                model(torch.ones(1, 1)).sum().backward()
                if number % accumulate == accumulate - 1:
                    optimizer.step()
                    optimizer.zero_grad()
        self.assertEqual(native.notices, [])
        self.assertEqual(native.calls[-1], "finish")
        self.assertEqual(native.plan[0], native.plan[1] * epochs)
        return taken

    def test_no_sample_twice_and_equal_shares(self):
        seen = []
        for group in range(3):
            for rank in range(2):
                (batches,) = self.take(100, 4, group=group, groups=3, rank=rank, ranks=2).values()
                self.assertEqual([len(batch) for batch in batches], [4] * 4)
                seen += sum(batches, [])
        self.assertEqual(len(set(seen)), len(seen))
        self.assertEqual(len(seen), 96)

    def test_no_sample_twice_in_groups_of_different_size(self):
        seen = []
        for group, ranks in enumerate((3, 1, 2)):
            for rank in range(ranks):
                place = {"group": group, "groups": 3, "rank": rank, "ranks": ranks, "ranks_before": (0, 3, 4)[group], "ranks_of_all": 6}
                (batches,) = self.take(100, 2, accumulate=2, **place).values()
                self.assertEqual([len(batch) for batch in batches], [2] * 8)
                seen += sum(batches, [])
        self.assertEqual(len(set(seen)), len(seen))
        self.assertEqual(len(seen), 96)

    def test_two_ranks_take_what_one_takes_with_twice_the_batch(self):
        for accumulate in (1, 3):
            ranks = [self.take(61, 5, accumulate, 2, rank=rank, ranks=2) for rank in range(2)]
            whole = self.take(61, 10, accumulate, 2)
            for epoch in range(2):
                self.assertEqual(whole[epoch], [a + b for a, b in zip(ranks[0][epoch], ranks[1][epoch])])
        self.assertNotEqual(whole[0], whole[1])

    def test_goes_on_where_it_was(self):
        whole = self.take(64, 4, epochs=3)
        again = self.take(64, 4, epochs=3, first_step=21)
        self.assertEqual(sorted(again), [1, 2])
        self.assertEqual(again[1], whole[1][5:])
        self.assertEqual(again[2], whole[2])
        self.assertEqual(self.take(64, 4, epochs=3, first_step=48), {})

    def test_scheduler_goes_on_where_it_was(self):
        for per, steps in (("step", 21), ("epoch", 1)):
            model = nn.Linear(1, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
            job = hooke.torch.Job(FakeNative(first_step=21))
            job.wrap(model, optimizer)
            job.sampler(64, batch_size=4)
            scheduler = job.advance(torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5), per)
            self.assertEqual(optimizer.param_groups[0]["lr"], 1)
            self.assertEqual(next(job.epochs(3)), 1)
            self.assertEqual((optimizer.param_groups[0]["lr"], scheduler.last_epoch), (0.5**steps, steps))
        with self.assertRaisesRegex(hooke.Error, "per is 'batch'"):
            job.advance(scheduler, "batch")

    def test_workers_of_the_loader(self):
        self.assertEqual(self.take(64, 4, workers=2), self.take(64, 4))

    def test_without_epochs(self):
        job = wrapped(ranks=1)[0]
        sampler = job.sampler(64, batch_size=4)
        first, second = list(sampler), list(sampler)
        self.assertEqual((len(first), sorted(first)), (64, list(range(64))))
        self.assertNotEqual(first, second)
        self.assertEqual(list(job.sampler(8, batch_size=4, shuffle=False)), list(range(8)))

    def test_epochs_without_a_sampler(self):
        job, native, _, _ = wrapped()
        self.assertEqual(list(job.epochs(3)), [0, 1, 2])
        self.assertEqual(native.plan, (0, 0))
        self.assertEqual(native.calls[-1], "finish")

    def test_stop_ends_the_epochs(self):
        job, native, model, optimizer = wrapped(ranks=1)
        job.sampler(64, batch_size=4)
        for epoch in job.epochs(5):
            train(model, optimizer, 3)
            if epoch == 1:
                job.stop()
        self.assertEqual((epoch, native.calls[-2:]), (1, ["stop", "finish"]))
        # An epoch with fewer steps than planned gives a notice, except the last epoch, in which the job stopped.
        self.assertEqual(len(native.notices), 1)

    def test_other_group_stops_the_job(self):
        """The epoch ends at once, and no other one begins."""
        for workers in (0, 2):
            job, native, model, optimizer = wrapped(ranks=1, groups=2)
            native.stops_at = 5
            sampler = job.sampler(64, batch_size=4)
            steps = 0
            for _ in job.epochs(5):
                for _ in DataLoader(range(64), batch_size=4, sampler=sampler, num_workers=workers):
                    train(model, optimizer, 1)
                    steps += 1
            # Batches that the loader's workers had begun before the stop still come.
            self.assertEqual(steps, 5 if workers == 0 else 8)
            self.assertEqual((native.calls[-2:], native.notices), (["stop", "finish"], []))

    def test_accumulation_that_nobody_told_is_noticed(self):
        job, native, model, optimizer = wrapped()
        sampler = job.sampler(64, batch_size=4)
        for _ in job.epochs(1):
            for number, _ in enumerate(sampler):
                if number % 8 == 0:
                    train(model, optimizer, 1)
        self.assertIn("accumulate=n", native.notices[0])


class SkippedSteps(unittest.TestCase):
    """Optimizers that a GradScaler skips in some steps."""

    def train(self, due=(), kept=None, values=None, first_step=0):
        """Trains with two optimizers. Returns the batches taken, the library, the last parameters, and the parameters after each counted step. A
        state is due after the steps `due`."""
        torch.manual_seed(3)
        native = FakeNative(first_step=first_step)
        native.kept, native.due_after = kept, set(due)
        model = nn.Linear(2, 3)
        if values:
            model.load_state_dict(values)
        optimizers = [torch.optim.Adam([model.weight], 0.1), torch.optim.SGD([model.bias], 0.1, momentum=0.9)]
        job = hooke.torch.Job(native)
        job.wrap(model, optimizers)
        data = TensorDataset(torch.arange(48.0).reshape(24, 2))
        sampler = job.sampler(data, batch_size=2)
        taken, after = [], {}
        own_end_step = native.end_step

        def end_step(*arguments):
            step = own_end_step(*arguments)
            after[step] = {name: value.clone() for name, value in model.state_dict().items()}
            return step

        native.end_step = end_step
        for _ in job.epochs(3):
            for (x,) in DataLoader(data, batch_size=2, sampler=sampler):
                taken.append(x.tolist())
                model(x / 48).square().sum().backward()
                for index, optimizer in enumerate(optimizers):
                    if int(x.sum()) % 5 not in (index, 3):  # Some leave out the first, some the second, some both.
                        optimizer.step()
                for optimizer in optimizers:
                    optimizer.zero_grad()
        self.assertEqual(native.notices, [])
        return taken, native, model.state_dict(), after

    def test_restart_is_exact(self):
        taken, native, parameters, after = self.train(due=range(1, 40))
        self.assertEqual(len(taken), 36)
        self.assertLess(native.steps, 30)
        for step, state in sorted(native.saved.items()):
            again, _, ends, _ = self.train(kept=(state, step), values=after[step], first_step=step)
            self.assertEqual(taken[-len(again) :] if again else [], again, step)
            for name, value in parameters.items():
                self.assertTrue(torch.equal(value, ends[name]), f"{name} after a restart at step {step}")

    def test_counts(self):
        """(optimizers, what happens: c new gradients, z zeroed, a number: that optimizer steps) -> (counted after, skipped)."""
        table = [
            (1, "c0z c0z", [1, 4], 0),
            (1, "c0z cz c0z", [1, 6], 1),
            (1, "cc0z cc0z", [2, 6], 0),  # Two backward passes in each step.
            (2, "c01z c01z", [2, 6], 0),
            (2, "c0z1z c0z1z", [3, 8], 0),
            (2, "c01z c1z c01z", [2, 9], 1),
            (2, "c01z c0z c01z", [2, 9], 1),
            (2, "cz cz c01z", [6], 2),
            (2, "c1z c01z c01z", [4, 9], 0),  # Counted too early once, before it is known that they step together.
            (2, "c0zc1z c0zc1z", [4, 10], 0),  # As in a GAN.
            (2, "c01z" + 9 * "c0zc1z", [2, 50, 56], 7),  # Joint steps first, then as in a GAN. Some steps are not counted.
            (2, "c01z c0z c1z c01z", [2, 12], 2),  # Each left out once.
        ]
        for optimizers, events, counted, skipped in table:
            steps = hooke.torch.Steps()
            steps.optimizers = optimizers
            found = []
            for at, event in enumerate(events.replace(" ", "")):
                if event == "c":
                    steps.combined()
                elif event == "z":
                    steps.zeroed()
                elif steps.stepped(int(event)):
                    found.append(at)
            self.assertEqual((found, steps.skipped), (counted, skipped), events)


class State(unittest.TestCase):
    def start(self, kept=None, first_step=0, due_after=()):
        """Starts a script. Returns its job, the fake library, model, optimizer, scheduler, and the object that it gave to job.state()."""
        torch.manual_seed(3)
        native = FakeNative(first_step=first_step)
        native.kept, native.due_after = kept, set(due_after)
        job = hooke.torch.Job(native)
        model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Dropout(0.5))
        model, optimizer = job.wrap(model, torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9))
        scheduler = job.advance(torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5))
        return job, native, model, optimizer, scheduler, job.state(seen={"steps": 0})

    def steps(self, count, model, optimizer, scheduler, seen):
        for _ in range(count):
            model(torch.randn(4, 3)).square().sum().backward()
            optimizer.step()
            scheduler.step()
            seen["steps"] += 1
            optimizer.zero_grad()

    def test_goes_on_with_all_of_it(self):
        """Momentum, scheduler, random numbers, counters and the script's own object are as they were at the end of the step."""
        job, native, *objects = self.start(due_after=[2])
        job.begin()
        self.steps(3, *objects)
        self.assertEqual(list(native.saved), [2])
        expected = torch.rand(3)
        job, _, model, optimizer, scheduler, seen = self.start(kept=(next(iter(native.saved.values())), 2), first_step=2)
        job.begin()
        self.assertEqual((seen, scheduler.last_epoch, optimizer.param_groups[0]["lr"], int(model[1].num_batches_tracked)), ({"steps": 2}, 2, 0.125, 2))
        self.steps(1, model, optimizer, scheduler, seen)
        self.assertTrue(torch.rand(3).equal(expected))

    def test_a_later_step_than_the_state(self):
        """With several groups the center is ahead of the state. The scheduler is brought to the center's step."""
        job, native, *objects = self.start(due_after=[2])
        job.begin()
        self.steps(3, *objects)
        job, _, _, optimizer, scheduler, seen = self.start(kept=(next(iter(native.saved.values())), 2), first_step=5)
        job.begin()
        self.assertEqual((seen["steps"], scheduler.last_epoch), (2, 5))
        self.assertEqual(optimizer.param_groups[0]["lr"], 0.5**6)

    def test_an_earlier_step_than_the_state(self):
        """A server went back to its snapshot, and the state is of a later step. The scheduler goes on at the center's step. So does the learning rate, which
        came back with the optimizer. The script's own object is as it was kept."""
        job, native, *objects = self.start(due_after=[4])
        job.begin()
        self.steps(5, *objects)
        job, _, model, optimizer, scheduler, seen = self.start(kept=(next(iter(native.saved.values())), 4), first_step=1)
        job.begin()
        self.assertEqual((seen["steps"], scheduler.last_epoch, optimizer.param_groups[0]["lr"]), (4, 1, 0.5**2))
        self.steps(2, model, optimizer, scheduler, seen)
        self.assertEqual((scheduler.last_epoch, optimizer.param_groups[0]["lr"]), (3, 0.5**4))

    def test_another_number_of_optimizers_is_noticed(self):
        job, native, *objects = self.start(due_after=[2])
        job.begin()
        self.steps(3, *objects)
        for rank in (0, 1):
            again = FakeNative(first_step=2, rank=rank, ranks=2)
            again.kept = (native.saved[2], 2)
            job = hooke.torch.Job(again)
            model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Dropout(0.5))
            job.wrap(model, [torch.optim.SGD([p], lr=0.5, momentum=0.9) for p in model.parameters()])
            job.begin()
            said = "group 0 goes on with its optimizers' state, such as momentum, as at the start: its kept state of step 2 has 1 of them, and job.wrap() got 4"
            self.assertEqual(again.notices.count(said), 1 if rank == 0 else 0, again.notices)

    def test_evaluation_draws_no_numbers_of_training(self):
        job, _, *_ = self.start()
        torch.manual_seed(9)
        expected = torch.rand(2)
        torch.manual_seed(9)
        job.evaluate(lambda m: float(torch.rand(())))
        self.assertTrue(torch.rand(2).equal(expected))

    def test_what_cannot_be_kept(self):
        job, _, *_ = self.start()
        with self.assertRaisesRegex(hooke.Error, "state: number is int"):
            job.state(number=3)
        with self.assertRaisesRegex(hooke.Error, "state: number is float64"):
            job.state(number=numpy.float64(3))
        with self.assertRaisesRegex(hooke.Error, "seen was given before"):
            job.state(seen=[])


if __name__ == "__main__":
    unittest.main()
