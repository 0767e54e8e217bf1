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
        # The job's memory is gone.
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
        job.register({"w": numpy.ones(1, numpy.float32)})
        job.stop()
        self.assertIn("stop", native.calls)
        native.stops_at = 2
        while not job.stopping:
            job.combine()
            job.end_step()
        self.assertEqual(job.step, 2)

    def test_misuse(self):
        job = hooke.numpy.Job(FakeNative())
        with self.assertRaisesRegex(hooke.Error, "no model yet"):
            job.combine()
        with self.assertRaisesRegex(hooke.Error, r"w is float64 of shape \(2,\)"):
            job.register({"w": numpy.zeros(2)})
        job.register({"w": numpy.zeros(2, numpy.float32)})
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
            self.assertEqual((count, kind), (4, "int64"))
            ctypes.memset(address, 0, 32)  # Rank 0's part.

        result = _memory.gathered(numpy.array([[1, 2], [3, 4]]).T, 1, 2, fill)
        self.assertEqual(result.tolist(), [[[0, 0], [0, 0]], [[1, 3], [2, 4]]])
        self.assertEqual(_memory.gathered(2.5, 0, 1, lambda *_: None), [2.5])

    def test_refuses_what_cannot_travel(self):
        for values, message in ((numpy.array([True]), "type bool"), ([1, 2], "list cannot travel"), ("x", "str cannot travel")):
            with self.assertRaisesRegex(hooke.Error, message):
                _memory.in_place(values, self.double)


if __name__ == "__main__":
    unittest.main()
