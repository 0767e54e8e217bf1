#!/usr/bin/python3
"""hooke.numpy and the collectives' memory on one rank, with a stand-in for the library."""

import pathlib
import sys
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]
import ctypes  # noqa: E402

import numpy  # noqa: E402

import hooke  # noqa: E402
import hooke.numpy  # noqa: E402
from fake_native import FakeNative  # noqa: E402
from hooke import _memory  # noqa: E402


class Arrays(unittest.TestCase):
    def test_trains_a_line(self):
        native = FakeNative()
        job = hooke.numpy.Job(native)
        parameters = job.register({"w": numpy.zeros((1, 2), numpy.float32), "b": numpy.float32([3])}, {"mean": numpy.zeros(2, numpy.float32)}, 50, 10)
        self.assertEqual((native.plan, job.first_step, parameters["b"][0]), ((50, 10), 0, 3))
        x = numpy.random.default_rng(1).normal(size=(32, 2)).astype(numpy.float32)
        y = x @ [[1.0], [-2.0]] + 0.5
        for _ in range(200):
            error = x @ parameters["w"].T + parameters["b"] - y
            job.gradients["w"][...] = 2 * error.T @ x / len(x)
            job.gradients["b"][...] = 2 * error.mean()
            loss = job.combine(float((error**2).mean()))
            for name in parameters:
                parameters[name] -= 0.1 * job.gradients[name]
            job.end_step(samples=32)
        self.assertLess(loss, 1e-6)
        numpy.testing.assert_allclose(parameters["w"], [[1, -2]], atol=1e-3)
        self.assertEqual(parameters["w"].ctypes.data, native.tensors[0].values)
        self.assertEqual((job.gradients["w"].any(), job.step), (False, 200))
        self.assertEqual(job.evaluate(lambda p: float(p["b"][0])), float(parameters["b"][0]))
        job.finish()
        trained = parameters["w"].tolist()
        job.leave()
        self.assertEqual(native.calls[-2:], ["finish", "leave"])
        # The arrays outlive the job's memory.
        self.assertEqual(parameters["w"].tolist(), trained)

    def test_float16(self):
        native = FakeNative()
        job = hooke.numpy.Job(native)
        parameters = job.register({"w": numpy.ones(3, numpy.float16), "b": numpy.ones(5, numpy.float32)}, {"mean": numpy.ones(1, numpy.float16)})
        self.assertEqual([t.type for t in native.tensors], ["float16", "float32", "float16"])
        for arrays in (parameters, job.gradients):
            self.assertEqual([arrays["w"].dtype, arrays["b"].dtype], [numpy.float16, numpy.float32])
        parameters["w"] -= numpy.float16(0.5)
        self.assertEqual((parameters["w"].tolist(), parameters["b"].tolist(), job.buffers["mean"].tolist()), ([0.5] * 3, [1] * 5, [1]))

    def test_metrics(self):
        native = FakeNative()
        job = hooke.numpy.Job(native)
        job.metrics({"learning rate": numpy.float32(0.5), "perplexity": 30}, perplexity=numpy.array([21.5]))
        self.assertEqual(native.metrics, {"learning rate": 0.5, "perplexity": 21.5})
        for values, said in (({"norm": "x"}, "norm is 'x', which is no number"), ({"norm": numpy.zeros(2)}, "no number"), ({3: 1}, "the name 3 is no str")):
            with self.assertRaisesRegex(hooke.Error, said):
                job.metrics(values)

    def test_stop(self):
        """A program without epochs looks at job.stopping."""
        native = FakeNative()
        job = hooke.numpy.Job(native)
        with self.assertRaisesRegex(hooke.Error, "no model yet"):
            job.stop()
        self.assertFalse(job.stopping)
        job.sampler(64, 1)
        job.register({"w": numpy.ones(1, numpy.float32)}, epochs=3)
        job.stop()
        self.assertIn("stop", native.calls)
        native.stops_at = 2
        while not job.stopping:
            job.combine()
            job.end_step()
        self.assertEqual(job.step, 2)

    def take(self, samples, batch, epochs=1, first_step=0, **place):
        """Returns the batches of each epoch."""
        native = FakeNative(first_step=first_step, **place)
        job = hooke.numpy.Job(native)
        sampler = job.sampler(samples, batch)
        job.register({"w": numpy.zeros(1, numpy.float32)}, epochs=epochs)
        taken = {}
        for epoch in job.epochs(epochs):
            for numbers in sampler:
                taken.setdefault(epoch, []).append(numbers.tolist())
                job.combine(0.0)
                job.end_step()
        self.assertEqual((native.notices, native.calls[-1]), ([], "finish"))
        self.assertEqual(native.plan, (len(sampler) * epochs, len(sampler)))
        return taken

    def test_no_sample_twice_in_groups_of_different_size(self):
        seen = []
        for group, ranks in enumerate((3, 1, 2)):
            for rank in range(ranks):
                place = {"group": group, "groups": 3, "rank": rank, "ranks": ranks, "ranks_before": (0, 3, 4)[group], "ranks_of_all": 6}
                (batches,) = self.take(range(100), 4, **place).values()
                self.assertEqual([len(batch) for batch in batches], [4] * 4)
                seen += sum(batches, [])
        self.assertEqual((len(set(seen)), len(seen)), (96, 96))

    def test_goes_on_where_it_was(self):
        whole = self.take(64, 4, epochs=3)
        self.assertEqual([sorted(sum(whole[epoch], [])) for epoch in range(3)], [list(range(64))] * 3)
        self.assertNotEqual(whole[0], whole[1])
        again = self.take(64, 4, epochs=3, first_step=21)
        self.assertEqual(again, {1: whole[1][5:], 2: whole[2]})
        self.assertEqual(self.take(64, 4, epochs=3, first_step=48), {})

    def test_order_and_number_of_samples(self):
        native = FakeNative()
        job = hooke.numpy.Job(native)
        sampler = job.sampler(numpy.int64(10), batch_size=4, shuffle=False)
        job.register({"w": numpy.zeros(1, numpy.float32)}, epochs=1)
        self.assertEqual([batch.tolist() for batch in sampler], [[0, 1, 2, 3], [4, 5, 6, 7]])
        job.combine()
        job.end_step()
        self.assertEqual(native.samples, 4)

    def test_other_group_stops_the_job(self):
        """The epoch ends at once, and no other one begins."""
        native = FakeNative(groups=2)
        native.stops_at = 5
        job = hooke.numpy.Job(native)
        sampler = job.sampler(64, batch_size=4)
        job.register({"w": numpy.zeros(1, numpy.float32)}, epochs=5)
        for _ in job.epochs(5):
            for _ in sampler:
                job.combine()
                job.end_step()
        self.assertEqual((job.step, native.calls[-2:], native.notices), (5, ["stop", "finish"], []))

    def test_steps_that_do_not_fit_the_samples(self):
        native = FakeNative()
        job = hooke.numpy.Job(native)
        sampler = job.sampler(64, batch_size=4)
        with self.assertRaisesRegex(hooke.Error, "give `epochs` in place of steps_total"):
            job.register({"w": numpy.zeros(1, numpy.float32)}, steps_per_epoch=3)
        job.register({"w": numpy.zeros(1, numpy.float32)}, epochs=2)
        for _ in job.epochs(1):
            for number, _ in enumerate(sampler):
                if number % 4 == 0:
                    job.combine()
                    job.end_step()
        self.assertIn("epochs(1) came after training had begun: give register() the same number as `epochs`", native.notices[0])
        self.assertIn("epoch 0 took 4 steps instead of 16, so a restart would go on at a wrong sample: call end_step() once", native.notices[1])

    def test_misuse(self):
        job = hooke.numpy.Job(FakeNative())
        with self.assertRaisesRegex(hooke.Error, "no model yet"):
            job.combine()
        with self.assertRaisesRegex(hooke.Error, r"w is float64 of shape \(2,\)"):
            job.register({"w": numpy.zeros(2)})
        with self.assertRaisesRegex(hooke.Error, "`epochs` needs a sampler"):
            job.register({"w": numpy.zeros(2, numpy.float32)}, epochs=2)
        job.register({"w": numpy.zeros(2, numpy.float32)})
        with self.assertRaisesRegex(hooke.Error, "make it before, so that the job knows how long an epoch is"):
            job.sampler(8, batch_size=1)
        with self.assertRaisesRegex(hooke.Error, "before: one job trains one set"):
            job.register({"w": numpy.zeros(2, numpy.float32)})


class Memory(unittest.TestCase):
    def double(self, address, count, kind):
        """Stands in for the sum over two equal ranks."""
        kinds = {"float32": ctypes.c_float, "float64": ctypes.c_double, "int64": ctypes.c_int64}
        values = (kinds[kind] * count).from_address(address)
        values[:] = [2 * value for value in values]

    def test_arrays_numbers_and_arrays_with_gaps(self):
        array = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
        self.assertIs(_memory.in_place(array, self.double), array)
        self.assertEqual(array.tolist(), [[0, 2, 4], [6, 8, 10]])
        _memory.in_place(array[:, 1], self.double)
        self.assertEqual(array.tolist(), [[0, 4, 4], [6, 16, 10]])
        self.assertEqual((_memory.in_place(3, self.double), _memory.in_place(1.5, self.double)), (6, 3.0))

    def test_gather(self):
        def fill(address, count, kind):
            self.assertEqual((count, kind), (8, "int64"))
            ctypes.memset(address, 0, 32)  # Rank 0's part.

        result = _memory.gathered(numpy.array([[1, 2], [3, 4]]).T, 1, 2, fill)
        self.assertEqual(result.tolist(), [[[0, 0], [0, 0]], [[1, 3], [2, 4]]])
        self.assertEqual(_memory.gathered(2.5, 0, 1, lambda *_: None), [2.5])

    def test_numbers_of_numpy(self):
        for number, expected in ((numpy.int64(3), 6), ((numpy.arange(3) > 0).sum(), 4), (numpy.float32(1.5), 3.0), (numpy.bool_(True), 2)):
            result = _memory.in_place(number, self.double)
            self.assertEqual((type(result), result), (type(expected), expected))
        self.assertEqual(_memory.gathered(numpy.int32(3), 0, 1, lambda *_: None), [3])
        native = FakeNative()
        self.assertEqual(hooke.numpy.Job(native).all_reduce(numpy.int64(3), "mean"), 3.0)
        self.assertEqual(native.calls, ["all_reduce 1 float64 mean"])
        array = numpy.array(3.0)  # It has memory, which is changed in place.
        self.assertIs(_memory.in_place(array, self.double), array)

    def test_refuses_what_cannot_travel(self):
        for values, message in ((numpy.array([True]), "type bool"), ([1, 2], "list cannot travel"), ("x", "str cannot travel")):
            with self.assertRaisesRegex(hooke.Error, message):
                _memory.in_place(values, self.double)


if __name__ == "__main__":
    unittest.main()
