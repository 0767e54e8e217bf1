#!/usr/bin/python3
"""hooke.torch with a stand-in for the library: what is called when, and that a script trains as it did without Hooke."""

import copy
import ctypes
import io
import math
import pathlib
import sys
import unittest
import warnings

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]
import torch  # noqa: E402
from torch import nn  # noqa: E402

import hooke.torch  # noqa: E402
from fake_native import FakeNative  # noqa: E402
from hooke._torch_arena import at  # noqa: E402
from torch_models import OPTIMIZERS, STEPS, Tied, fail_in_backward, inputs, make_model, train, wrapped  # noqa: E402


class Mixed(nn.Module):
    """A layer of bfloat16 and one of float32."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.narrow, self.wide = nn.Linear(4, 5).bfloat16(), nn.Linear(5, 2)

    def forward(self, x):
        return self.wide(torch.tanh(self.narrow(x.bfloat16())).float())


def train_in_bfloat16(model, optimizer):
    for step in range(STEPS):
        model(inputs(step).bfloat16()).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()


class SameAsWithout(unittest.TestCase):
    def check_same(self, **what):
        """The same with a rank alone, whose gradients stay its own, as with two ranks. Returns what the latter called."""
        self.check_same_with(1, **what)
        return self.check_same_with(2, **what)

    def check_same_with(self, ranks, make=make_model, kind="sgd", train_with=train, tolerance=0.0, **how):
        plain, mine = make(), make()
        mine.load_state_dict(plain.state_dict())
        train_with(plain, OPTIMIZERS[kind](plain.parameters()), **how)
        job, native, model, optimizer = wrapped(mine, OPTIMIZERS[kind](mine.parameters()), ranks=ranks)
        self.assertIs(model, mine)
        train_with(model, optimizer, **how)
        for name, value in plain.state_dict().items():
            torch.testing.assert_close(mine.state_dict()[name], value, rtol=0, atol=tolerance, msg=f"{kind}: {name}")
        return native

    def test_every_optimizer(self):
        for kind in OPTIMIZERS:
            native = self.check_same(kind=kind)
            self.assertEqual(native.calls.count("end_step"), STEPS)

    def test_bfloat16(self):
        for kind in OPTIMIZERS:
            native = self.check_same(make=lambda: make_model().bfloat16(), kind=kind, train_with=train_in_bfloat16)
            self.assertEqual({t.type for t in native.tensors}, {"bfloat16"})

    def test_bfloat16_beside_float32(self):
        native = self.check_same(make=Mixed, kind="momentum", set_to_none=False)
        self.assertEqual([t.type for t in native.tensors], ["bfloat16", "bfloat16", "float32", "float32"])

    def test_clipping(self):
        self.check_same(kind="momentum", clip=0.1)

    def test_gradients_zeroed_instead_of_none(self):
        # The optimizer then goes on with a parameter that a step does not use.
        for make in (make_model, Tied):
            self.check_same(make=make, kind="momentum", set_to_none=False)

    def test_tied_unused_and_sometimes_used_parameters(self):
        # Weight decay and momentum would change a parameter whose gradient is zero instead of None.
        native = self.check_same(make=Tied, kind="momentum")
        self.assertEqual([t.name for t in native.tensors], ["never", "sometimes", "inner.weight", "inner.bias"])

    def test_model_zero_grad_instead_of_the_optimizers(self):
        def loop(model, optimizer):
            for step in range(STEPS):
                model.zero_grad()
                model(inputs(step)).square().sum().backward()
                optimizer.step()

        for make in (make_model, Tied):
            self.check_same(make=make, kind="momentum", train_with=loop)

    def test_accumulation_by_hand(self):
        def loop(model, optimizer):
            for step in range(STEPS):
                (model(inputs(step)).square().sum() / 2).backward()
                if step % 2:
                    optimizer.step()
                    optimizer.zero_grad()

        native = self.check_same(kind="adamw", train_with=loop)
        self.assertEqual((native.calls.count("combine"), native.calls.count("end_step")), (STEPS, STEPS // 2))

    def test_closure(self):
        def loop(model, optimizer):
            for step in range(STEPS):

                def closure():
                    optimizer.zero_grad()
                    loss = model(inputs(step)).square().sum()
                    loss.backward()
                    return loss

                optimizer.step(closure)

        self.check_same(kind="momentum", train_with=loop)

    def test_schedulers_made_before_and_after_wrap(self):
        for before in (True, False):
            plain, mine = make_model(), make_model()
            optimizer = OPTIMIZERS["momentum"](plain.parameters())
            train(plain, optimizer, scheduler=torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS))
            optimizer = OPTIMIZERS["momentum"](mine.parameters())
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS) if before else None
                wrapped(mine, optimizer)
                train(mine, optimizer, scheduler=scheduler or torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS))
            for name, value in plain.state_dict().items():
                torch.testing.assert_close(mine.state_dict()[name], value, rtol=0, atol=0)

    def test_optimizer_that_has_trained_before(self):
        plain, mine = make_model(), make_model()
        for model in (plain, mine):
            model.optimizer_of_test = OPTIMIZERS["adamw"](model.parameters())
            train(model, model.optimizer_of_test, 3)
        wrapped(mine, mine.optimizer_of_test)
        for model in (plain, mine):
            train(model, model.optimizer_of_test)
        for name, value in plain.state_dict().items():
            torch.testing.assert_close(mine.state_dict()[name], value, rtol=0, atol=0)

    def test_state_saved_and_restored(self):
        _, _, model, optimizer = wrapped(optimizer=None)
        train(model, optimizer, 3)
        saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
        train(model, optimizer, 3)
        after = copy.deepcopy(model.state_dict())
        model.load_state_dict(saved[0])
        optimizer.load_state_dict(saved[1])
        train(model, optimizer, 3)
        for name, value in after.items():
            torch.testing.assert_close(model.state_dict()[name], value, rtol=0, atol=0)

    def test_model_with_channels_last_keeps_its_values(self):
        model = nn.Conv2d(2, 3, 3).to(memory_format=torch.channels_last)
        before = model.weight.detach().clone()
        wrapped(model, OPTIMIZERS["sgd"](model.parameters()))
        torch.testing.assert_close(model.weight.detach(), before, rtol=0, atol=0)
        images = torch.randn(2, 2, 8, 8).contiguous(memory_format=torch.channels_last)
        self.assertTrue(model(images).is_contiguous(memory_format=torch.channels_last))

    def test_copies_of_the_model_are_ordinary_models(self):
        for steps in (0, 1):
            _, native, model, optimizer = wrapped()
            train(model, optimizer, steps)
            calls = list(native.calls)
            file = io.BytesIO()
            torch.save(model, file)
            file.seek(0)
            for other in (copy.deepcopy(model), torch.load(file, **({} if torch.__version__ < "2" else {"weights_only": False}))):
                other(inputs(0)).sum().backward()
                self.assertNotEqual(other[0].weight.data_ptr(), model[0].weight.data_ptr())
            self.assertEqual(native.calls, calls)

    def test_sparse_gradients(self):
        def loop(model, optimizer):
            for step in range(STEPS):
                if step % 3 == 0:
                    model.zero_grad()
                model(torch.tensor([[1, 2], [step % 5, 2]])).square().sum().backward()
                optimizer.step()

        self.check_same(make=lambda: nn.Embedding(5, 3, sparse=True), train_with=loop, tolerance=1e-6)


class Calls(unittest.TestCase):
    def test_order_of_a_step(self):
        _, native, model, optimizer = wrapped()
        train(model, optimizer, 1)
        ready = [f"ready {index}" for index in (5, 4, 3, 2, 1, 0)]
        steps = [call for call in native.calls if not call.startswith("broadcast")]
        self.assertEqual(steps[:2], ["register", "begin"])
        self.assertEqual(set(steps[2:8]), set(ready))
        self.assertLess(steps.index("ready 5"), steps.index("ready 0"))
        self.assertEqual(steps[8:], ["combine", "end_step"])

    def test_gradients_come_into_the_jobs_memory(self):
        _, native, model, optimizer = wrapped()
        for set_to_none in (True, False):
            train(model, optimizer, 2, set_to_none=set_to_none)
            for parameter, tensor in zip(model.parameters(), native.tensors):
                self.assertEqual(parameter.data_ptr(), tensor.values)
                if set_to_none:
                    self.assertIsNone(parameter.grad)
                else:
                    self.assertEqual(parameter.grad.data_ptr(), tensor.gradient)
                    self.assertEqual(parameter.grad.abs().sum(), 0)
            model(inputs(0)).square().sum().backward()
            for parameter, tensor in zip(model.parameters(), native.tensors):
                self.assertEqual(parameter.grad.data_ptr(), tensor.gradient)
                self.assertGreater(parameter.grad.abs().sum(), 0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=set_to_none)

    def test_gradients_of_a_rank_alone_stay_its_own(self):
        _, native, model, optimizer = wrapped(ranks=1)
        train(model, optimizer, 2)
        self.assertEqual([call for call in native.calls if not call.startswith("broadcast")], ["register", "begin", *["combine", "end_step"] * 2])
        for parameter, tensor in zip(model.parameters(), native.tensors):
            self.assertEqual(parameter.data_ptr(), tensor.values)
            self.assertIsNone(parameter.grad)

    def test_goes_on_after_a_backward_that_failed(self):
        for zero in (lambda model, optimizer: optimizer.zero_grad(), lambda model, optimizer: model.zero_grad()):
            _, native, model, optimizer = wrapped(ranks=1)
            model(inputs(0)).sum().backward()
            optimizer.step()
            with self.assertRaises(ZeroDivisionError):
                fail_in_backward(model)
            zero(model, optimizer)
            train(model, optimizer, 2)
            self.assertEqual(native.calls.count("end_step"), 3)

    def test_backward_that_failed_is_no_part_of_an_accumulation(self):
        for fails_after, zero in ((0, lambda model, optimizer: model.zero_grad()), (1, lambda model, optimizer: optimizer.zero_grad())):
            native, model = FakeNative(), make_model()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            hooke.torch.Job(native).wrap(model, optimizer, accumulate=2)
            for _ in range(fails_after):
                model(inputs(0)).sum().backward()
            with self.assertRaises(ZeroDivisionError):
                fail_in_backward(model)
            calls = native.calls.count("combine")
            zero(model, optimizer)
            for passes in range(2):
                self.assertEqual(native.calls.count("combine"), calls)
                model(inputs(0)).sum().backward()
            self.assertEqual(native.calls.count("combine"), calls + 1)

    def test_clipping_sees_combined_gradients(self):
        _, native, model, optimizer = wrapped()

        def halve(places):
            for address, count in places:
                values = (ctypes.c_float * count).from_address(address)
                values[:] = [value / 2 for value in values]

        model(inputs(0)).square().sum().backward()
        whole = nn.utils.clip_grad_norm_(model.parameters(), 1e9)
        optimizer.step()
        optimizer.zero_grad()
        native.on_combine = halve
        with torch.no_grad():
            for parameter, start in zip(model.parameters(), make_model().parameters()):
                parameter.copy_(start)
        model(inputs(0)).square().sum().backward()
        self.assertAlmostEqual(nn.utils.clip_grad_norm_(model.parameters(), 1e9).item(), whole.item() / 2, places=4)

    def test_no_sync_and_accumulate_combine_once(self):
        job, native, model, optimizer = wrapped()
        with job.no_sync():
            model(inputs(0)).sum().backward()
        self.assertNotIn("combine", native.calls)
        model(inputs(1)).sum().backward()
        self.assertEqual(native.calls.count("combine"), 1)
        self.assertEqual(sum(call.startswith("ready") for call in native.calls), 6)
        native = FakeNative()
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        hooke.torch.Job(native).wrap(model, optimizer, accumulate=3)
        for step in range(6):
            model(inputs(step)).sum().backward()
            if step % 3 == 2:
                optimizer.step()
                optimizer.zero_grad()
        self.assertEqual((native.calls.count("combine"), native.calls.count("end_step")), (2, 2))

    def test_parameter_that_another_rank_used_has_a_gradient(self):
        _, native, model, optimizer = wrapped(Tied())
        model(inputs(0)).sum().backward()
        self.assertIsNone(model.never.grad)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        native.used = [1, 0, 0, 0]
        model(inputs(0)).sum().backward()
        self.assertEqual(model.never.grad.tolist(), [0, 0, 0])
        self.assertIsNone(model.sometimes.grad)

    def test_several_optimizers_make_one_step(self):
        model = make_model()
        first, second = torch.optim.SGD(model[0].parameters(), lr=0.1), torch.optim.Adam(model[3].parameters())
        native = FakeNative()
        hooke.torch.Job(native).wrap(model, [first, second])
        for _ in range(3):
            model(inputs(0)).sum().backward()
            first.step()
            first.zero_grad()
            self.assertNotEqual(model[3].weight.grad.abs().sum(), 0)
            second.step()
            second.zero_grad()
        self.assertEqual(native.calls.count("end_step"), 3)

    def test_optimizer_that_a_scaler_skips_does_not_hold_the_other_up(self):
        """The first optimizer's step is skipped once, so that it makes the counted step full before the second one has stepped again."""
        model = make_model()
        first, second = torch.optim.SGD(model[0].parameters(), lr=0.1), torch.optim.SGD(model[3].parameters(), lr=0.1)
        native = FakeNative()
        hooke.torch.Job(native).wrap(model, [first, second])
        for step in range(4):
            model(inputs(step)).sum().backward()
            if step != 1:
                first.step()
            second.step()
            first.zero_grad()
            second.zero_grad()
        self.assertEqual(native.calls.count("end_step"), 3)
        with self.assertRaisesRegex(hooke.Error, "without a backward"):
            second.step()

    def test_optimizers_with_a_backward_each(self):
        model = make_model()
        first, second = torch.optim.SGD(model[0].parameters(), lr=0.1), torch.optim.SGD(model[3].parameters(), lr=0.1)
        native = FakeNative()
        hooke.torch.Job(native).wrap(model, [first, second])
        for _ in range(3):
            for each in (first, first, second):
                model(inputs(0)).sum().backward()
                each.step()
                each.zero_grad()
        self.assertEqual(native.calls.count("end_step"), 3)

    def test_skipped_step_of_a_scaler_is_not_counted(self):
        _, native, model, optimizer = wrapped()
        for step in range(4):
            model(inputs(step)).sum().backward()
            if step != 1:  # What GradScaler.step does if a gradient is infinite.
                optimizer.step()
            optimizer.zero_grad()
        self.assertEqual((native.calls.count("combine"), native.calls.count("end_step")), (4, 3))

    @unittest.skipUnless(hasattr(torch.amp, "GradScaler"), "torch.amp.GradScaler on the CPU came with torch 2.3")
    def test_grad_scaler_skips_after_an_overflow(self):
        _, native, model, optimizer = wrapped()
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        before = model[0].weight.clone()
        scaler.scale(model(inputs(0)).sum() * math.inf).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        self.assertNotIn("end_step", native.calls)
        torch.testing.assert_close(model[0].weight, before)
        scaler.scale(model(inputs(0)).sum()).backward()
        scaler.step(optimizer)
        self.assertEqual(native.calls.count("end_step"), 1)

    @unittest.skipUnless(hasattr(torch.amp, "GradScaler"), "torch.amp.GradScaler on the CPU came with torch 2.3")
    def test_step_that_a_fused_optimizer_leaves_out_is_not_counted(self):
        """The scaler then calls step(), and the optimizer looks by itself whether a gradient is infinite."""
        model = make_model()
        _, native, model, optimizer = wrapped(model, torch.optim.AdamW(model.parameters(), fused=True))
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        for factor in (1.0, math.inf, 1.0):
            scaler.scale(model(inputs(0)).sum() * factor).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        self.assertEqual(native.calls.count("end_step"), 2)
        self.assertTrue(all(p.isfinite().all() for p in model.parameters()))

    def test_loss_goes_with_the_step(self):
        job, native, model, optimizer = wrapped()
        loss = model(inputs(0)).square().sum()
        job.report(loss=loss)
        loss.backward()
        optimizer.step()
        self.assertAlmostEqual(job.loss, loss.item(), places=5)
        train(model, optimizer, 1)
        self.assertTrue(math.isnan(native.losses[1]))
        loss = model(inputs(0)).square().sum()
        loss.backward()
        job.report(loss=2.5)
        optimizer.step()
        train(model, optimizer, 2)
        self.assertEqual(native.losses[3], 2.5)
        self.assertTrue(math.isnan(native.losses[4]))
        # To the library NaN means that the loss is not known. A loss that came out as NaN must end the training.
        job.report(loss=math.nan)
        train(model, optimizer, 1)
        self.assertEqual(native.losses[5], math.inf)

    def test_mean_of_integers(self):
        job, _, _, _ = wrapped()
        self.assertIsInstance(job.all_reduce(1, "mean"), float)
        with self.assertRaisesRegex(hooke.Error, "the mean of integers would be cut"):
            job.all_reduce(torch.tensor([1, 2]), "mean")

    def test_servers_step(self):
        _, native, model, optimizer = wrapped(steps_locally=False, sends_gradients=True, has_servers=True, rule="sync")
        before = model[0].weight.clone()
        train(model, optimizer, 2)
        torch.testing.assert_close(model[0].weight, before)
        self.assertEqual(native.calls.count("end_step"), 2)
        self.assertEqual(len([notice for notice in native.notices if "the program's optimizer does not step" in notice]), 1)

    def test_servers_get_gradients_as_the_step_has_them(self):
        """Clipped, and unscaled if a GradScaler has left that to a fused optimizer. A step that overflows is not sent."""
        _, native, model, optimizer = wrapped(steps_locally=False, sends_gradients=True, has_servers=True, rule="sync")
        sent = []
        native.on_gradients = lambda places: sent.append(torch.cat([at(address, (count,), torch.float32) for address, count in places]))
        model(inputs(0)).square().sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        self.assertAlmostEqual(float(sent[0].norm()), 0.5, places=5)
        optimizer.zero_grad()
        for overflow in (0.0, 1.0):
            model(inputs(0)).square().sum().backward()
            expected = torch.cat([p.grad.flatten() for p in model.parameters()]) / 4
            optimizer.grad_scale, optimizer.found_inf = torch.tensor(4.0), torch.tensor(overflow)
            optimizer.step()
            del optimizer.grad_scale, optimizer.found_inf
            optimizer.zero_grad()
        torch.testing.assert_close(sent[1], expected)
        self.assertEqual(len(sent), 2)

    def test_one_rank_under_downpour_gives_its_gradients(self):
        """The optimizer steps, and yet the library must see the gradients, to send them: without them nobody learns."""
        plain = make_model()
        _, native, model, optimizer = wrapped(ranks=1, sends_gradients=True, has_servers=True, rule="downpour")
        plain(inputs(0)).square().sum().backward()
        model(inputs(0)).square().sum().backward()
        for tensor, (name, parameter) in zip(native.tensors, plain.named_parameters()):
            given = ctypes.string_at(tensor.gradient, 4 * parameter.numel())
            self.assertEqual(given, parameter.grad.numpy().tobytes(), name)
        before = model[0].weight.clone()
        optimizer.step()
        self.assertFalse(torch.equal(model[0].weight, before))

    def test_buffers_stay_in_the_job(self):
        _, native, model, optimizer = wrapped()
        names = [tensor.name for tensor in native.tensors]
        self.assertEqual(names[-2:], ["1.running_mean", "1.running_var"])
        self.assertIn("broadcast 1 int64 0", native.calls)
        model[1].running_mean = torch.full((6,), 5.0)
        train(model, optimizer, 1)
        self.assertEqual(model[1].running_mean.data_ptr(), native.tensors[-2].values)
        self.assertGreater(model[1].running_mean.min(), 4)

    def test_buffers_and_frozen_parameters_of_every_type_are_rank_0s(self):
        for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.complex64):
            for shape in ((), (3,), (2, 3)):
                model, expected = make_model(), torch.ones(shape, dtype=dtype)
                model.register_buffer("mask", torch.zeros(shape, dtype=dtype))
                model.frozen = nn.Parameter(torch.zeros(shape, dtype=dtype), requires_grad=False)
                native, memory = FakeNative(rank=1, ranks=2), expected.numpy().tobytes()
                padded = (len(memory) + 3) // 4

                def broadcast(address, count, kind, root, memory=memory, padded=padded):
                    if (count, kind) == (padded, "int32"):
                        ctypes.memmove(address, memory, len(memory))

                native.broadcast = broadcast
                hooke.torch.Job(native).wrap(model, torch.optim.SGD(model.parameters(), lr=0.1))
                self.assertTrue(model.mask.equal(expected) and model.frozen.equal(expected), (dtype, shape))

    def test_frozen_parameters_are_shared_but_not_trained(self):
        model = make_model()
        model[0].requires_grad_(False)
        _, native, model, optimizer = wrapped(model, torch.optim.SGD(model.parameters(), lr=0.1))
        self.assertEqual([t.name for t in native.tensors[:2]], ["1.weight", "1.bias"])
        self.assertIn("broadcast 24 float32 0", native.calls)
        train(model, optimizer, 2)

    def test_model_outlives_the_job(self):
        job, _, model, optimizer = wrapped()
        train(model, optimizer, 2)
        before = copy.deepcopy(model.state_dict())
        job.leave()
        for name, value in model.state_dict().items():
            torch.testing.assert_close(value, before[name], rtol=0, atol=0)
        model(inputs(0)).sum().backward()


if __name__ == "__main__":
    unittest.main()
