#!/usr/bin/python3
"""hooke.torch with a stand-in for the library: what misuse says."""

import pathlib
import sys
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import hooke  # noqa: E402
import hooke.torch  # noqa: E402
from fake_native import FakeNative  # noqa: E402
from torch_models import fail_in_backward, inputs, make_model, train, wrapped  # noqa: E402


class Misuse(unittest.TestCase):
    def expect(self, pattern):
        return self.assertRaisesRegex(hooke.Error, pattern)

    def test_wrap_twice_and_too_late(self):
        job, _, model, optimizer = wrapped()
        with self.expect("before: one job trains one model"):
            job.wrap(model, optimizer)
        job.leave()
        with self.expect("after the job had ended"):
            job.wrap(model, optimizer)

    def test_step_without_backward(self):
        _, _, model, optimizer = wrapped()
        with self.expect("without a backward"):
            optimizer.step()
        train(model, optimizer, 1)
        with self.expect("without a backward"):
            optimizer.step()

    def test_step_without_combining(self):
        job, _, model, optimizer = wrapped()
        with self.expect(r"outside of job.no_sync\(\)"):
            with job.no_sync():
                model(inputs(0)).sum().backward()
                optimizer.step()
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        hooke.torch.Job(FakeNative()).wrap(model, optimizer, accumulate=4)
        model(inputs(0)).sum().backward()
        with self.expect("after 1 backward passes, but wrap.. was told accumulate=4"):
            optimizer.step()

    def test_moved_after_wrap(self):
        for move in (lambda m: m.half(), lambda m: m.double().float()):
            for begun in (False, True):
                job, _, model, optimizer = wrapped(nn.Linear(4, 2))
                if begun:
                    job.begin()
                move(model)
                with self.expect("parameter (weight|bias) was moved after wrap"):
                    model.bias.sum().backward() if begun else model(inputs(0))
                    optimizer.step()

    def test_buffer_moved_after_wrap(self):
        _, _, model, optimizer = wrapped()
        train(model, optimizer, 1)
        loss = model(inputs(0)).sum()
        model[1].running_mean = model[1].running_mean.double()
        with self.expect("buffer 1.running_mean was moved or has another type"):
            loss.backward()
            optimizer.step()

    def test_parameter_of_another_type(self):
        model = make_model()
        model[3].double()
        with self.expect("parameter 3.weight is torch.float64"):
            wrapped(model)
        model = make_model()
        model[1].running_mean = model[1].running_mean.double()
        with self.expect("buffer 1.running_mean is torch.float64: Hooke trains float32, bfloat16, float16"):
            wrapped(model)
        with self.expect("parameter weight is on meta"):
            wrapped(nn.Linear(2, 2, device="meta"))
        with self.expect("no parameter that requires a gradient"):
            model = nn.Linear(2, 2).requires_grad_(False)
            wrapped(model, torch.optim.SGD(model.parameters(), lr=0.1))

    def test_foreign_optimizer(self):
        stranger = nn.Parameter(torch.zeros(5))
        with self.expect(r"tensor of shape \(5,\) that is no parameter of the model"):
            wrapped(optimizer=torch.optim.SGD([stranger], lr=0.1))
        with self.expect("LBFGS"):
            model = make_model()
            wrapped(model, torch.optim.LBFGS(model.parameters()))
        with self.expect("str is no torch.optim.Optimizer"):
            wrapped(optimizer="sgd")
        _, _, model, optimizer = wrapped()
        optimizer.add_param_group({"params": [stranger]})
        with self.expect(r"param_groups\[1\] of SGD"):
            train(model, optimizer, 1)

    def test_thawed_after_wrap(self):
        model = make_model()
        model[0].requires_grad_(False)
        _, _, model, optimizer = wrapped(model, torch.optim.SGD(model.parameters(), lr=0.1))
        model[0].requires_grad_(True)
        with self.expect("parameter 0.weight was frozen when the model was wrapped"):
            train(model, optimizer, 1)

    def test_batch_size_of_the_loader(self):
        job = wrapped()[0]
        data = TensorDataset(torch.arange(64))
        for drop_last in (False, True):
            with self.expect("DataLoader has batch_size=8, but its sampler has batch_size=4"):
                list(DataLoader(data, batch_size=8, sampler=job.sampler(data, batch_size=4), drop_last=drop_last))

    def test_too_few_samples(self):
        job = wrapped(ranks=4, groups=2)[0]
        job.sampler(31, batch_size=4)
        with self.expect("31 samples do not fill one step: batch_size 4 x accumulate 1 x 8 ranks of all groups"):
            job.epochs(1)

    def test_before_wrap_and_after_the_end(self):
        job = hooke.torch.Job(FakeNative())
        for call in (lambda: job.epochs(1), lambda: job.evaluate(lambda m: 1), lambda: list(job.sampler(8, 1))):
            with self.expect("no model yet: call job.wrap"):
                call()
        job, _, model, optimizer = wrapped()
        list(job.epochs(1))
        with self.expect("after training had ended"):
            train(model, optimizer, 1)
        with self.expect("after training had ended"):
            job.epochs(1)

    def test_going_on_after_a_backward_that_gave_some_gradients(self):
        """The other ranks would wait for the rest of them."""
        calls = {
            "backward": lambda job, model, optimizer: model(inputs(0)).sum().backward(),
            "step": lambda job, model, optimizer: optimizer.step(),
            "evaluate": lambda job, model, optimizer: job.evaluate(lambda m: 1),
            "finish": lambda job, model, optimizer: job.finish(),
        }
        for name, call in calls.items():
            # With 1, there is a backward pass before the failing one. It has been combined, but no step followed.
            for before in (0, 1):
                job, native, model, optimizer = wrapped()
                for _ in range(before):
                    model(inputs(0)).sum().backward()
                with self.assertRaises(ZeroDivisionError):
                    fail_in_backward(model)
                if name != "step":
                    model.zero_grad()
                    optimizer.zero_grad()
                made = list(native.calls)
                with self.expect("backward.. failed after the job had got some of its gradients.*let the error of backward.. end the program"):
                    call(job, model, optimizer)
                self.assertEqual(native.calls, made, name)

    def test_backward_before_training_began(self):
        _, _, model, _ = wrapped()
        weight = model[0].weight
        with self.expect(r"call job.begin\(\) after wrap"):
            weight.sum().backward()


if __name__ == "__main__":
    unittest.main()
