#!/usr/bin/python3
"""hooke.torch for models on a device, without one: every tensor counts as a device's, and copies come as late as they may.

The tests of models in host memory run again here.
"""

import math
import pathlib
import sys
import threading
import types
import unittest
from unittest import mock

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]
import torch  # noqa: E402
from torch import nn  # noqa: E402

import hooke.torch  # noqa: E402
import torch_data_test  # noqa: E402
import torch_misuse_test  # noqa: E402
import torch_test  # noqa: E402
from fake_native import FakeNative  # noqa: E402
from hooke import _torch_staging, _torch_state  # noqa: E402
from hooke._torch_arena import at  # noqa: E402
from hooke._torch_staging import Copies, Place, pages, runs  # noqa: E402
from torch_models import OPTIMIZERS, inputs, make_model, train, wrapped  # noqa: E402


class LateCopies(Copies):
    """Stands in for copies that take time: until somebody waits for a copy, or asks for it a second time, the job's memory is NaN."""

    def writer(self):
        return threading.get_ident()

    def to_job(self, pairs, writers):
        assert set(writers) == {threading.get_ident()}
        for host, _ in pairs:
            host.fill_(math.nan)
        return {"pairs": pairs, "asked": 0}

    def has_come(self, copy):
        copy["asked"] += 1
        if copy["asked"] == 2:
            self.wait(copy)
        return copy["asked"] >= 2

    def wait(self, copy):
        for host, values in copy["pairs"]:
            host.copy_(values)


class Staged:
    """Makes every tensor of a test count as a device's, so that gradients and values are copied."""

    is_staged = staticmethod(lambda tensor: True)

    def setUp(self):
        for name, value in {"is_staged": self.is_staged, "copies_for": lambda device: LateCopies(), "PIECE_BYTES": 100}.items():
            patch = mock.patch.object(_torch_staging, name, value)
            patch.start()
            self.addCleanup(patch.stop)


class SameAsWithout(Staged, torch_test.SameAsWithout):
    pass


class PartlyOnADevice(torch_test.SameAsWithout):
    """Parameters with an even number of values are on a device, the others in the job's memory."""

    setUp = Staged.setUp
    is_staged = staticmethod(lambda tensor: tensor.numel() % 2 == 0)


class Calls(Staged, torch_test.Calls):
    # These look at addresses in the job's memory.
    test_gradients_come_into_the_jobs_memory = None
    test_gradients_of_a_rank_alone_stay_its_own = None
    test_buffers_stay_in_the_job = None


class Misuse(Staged, torch_misuse_test.Misuse):
    pass


class Evaluation(Staged, torch_data_test.Evaluation):
    pass


class State(Staged, torch_data_test.State):
    pass


class Travel(Staged, unittest.TestCase):
    def test_parameters_stay_and_gradients_are_in_pieces(self):
        model = make_model()
        before = [p.data_ptr() for p in model.parameters()]
        job, _, model, optimizer = wrapped(model)
        train(model, optimizer, 2)
        self.assertEqual([p.data_ptr() for p in model.parameters()], before)
        # Parameters of 96, 24, 24, 24, 48 and 8 bytes in pieces of at most 100.
        self.assertEqual([piece.parameters for piece in job._arena.staging._pieces if piece.parameters], [[3, 4, 5], [1, 2], [0]])

    def test_only_whoever_is_told_moves_values(self):
        """After each step the test fills the values in the job's memory with NaN. Training is not affected, because values are
        copied there before the library uses them."""
        native = FakeNative(ranks=2, has_servers=True, rule="elastic")
        native.values_due_after = {2}
        plain, model = make_model(), make_model()
        optimizer, plain_optimizer = (OPTIMIZERS["momentum"](m.parameters()) for m in (model, plain))
        hooke.torch.Job(native).wrap(model, optimizer)
        seen = []

        def pull(places):
            seen.append(native.steps)
            for address, count in places:
                values = at(address, (count,), torch.float32)
                self.assertTrue(values.isfinite().all())
                values += 0.5

        def spoil():
            for tensor in native.tensors[:6]:
                at(tensor.values, tensor.shape, torch.float32).fill_(math.nan)

        native.on_values = pull
        with torch.no_grad():
            for tensor in [*plain.parameters(), plain[1].running_mean, plain[1].running_var]:
                tensor += 0.5
        for number in range(4):
            for m, o in ((model, optimizer), (plain, plain_optimizer)):
                m(inputs(number)).square().sum().backward()
                o.step()
                o.zero_grad()
            if number == 1:
                with torch.no_grad():
                    for tensor in [*plain.parameters(), plain[1].running_mean, plain[1].running_var]:
                        tensor += 0.5
            spoil()
        self.assertEqual(seen, [0, 2])
        for name, value in plain.state_dict().items():
            torch.testing.assert_close(model.state_dict()[name], value, rtol=0, atol=0, msg=name)

    def test_evaluation_sees_the_center(self):
        job, native, model, optimizer = wrapped(has_servers=True, rule="elastic")
        native.values_due_after = set()
        train(model, optimizer, 1)
        own, other = model[0].weight.clone(), []

        def center(places):
            other.append(at(places[0][0], (6, 4), torch.float32))
            self.assertTrue(other[0].equal(own))
            other[0].fill_(2)

        native.on_values = center
        with_center = native.with_center

        def with_center_and_back(work):
            try:
                with_center(work)
            finally:
                other[0].copy_(own)

        native.with_center = with_center_and_back
        self.assertEqual(job.evaluate(lambda m: m[0].weight.mean()), 2)
        self.assertTrue(model[0].weight.equal(own))
        with self.assertRaises(ZeroDivisionError):
            job.evaluate(lambda m: 1 / 0)
        self.assertTrue(model[0].weight.equal(own))

    def test_leaving_sends_the_last_values(self):
        job, native, model, optimizer = wrapped(has_servers=True, rule="elastic")
        native.values_due_after = set()
        train(model, optimizer, 3)
        seen = []
        leave = native.leave
        native.leave = lambda: (seen.append(at(native.tensors[0].values, (6, 4), torch.float32).clone()), leave())
        job.leave()
        self.assertTrue(seen[0].equal(model[0].weight))

    def test_says_which_way_gradients_take(self):
        _, native, _, _ = wrapped()
        self.assertRegex(native.notices[0], "the model is on cpu: gradients and buffers are combined in host memory")
        for place in ({"ranks": 1}, {"rank": 1}):
            self.assertEqual(wrapped(**place)[1].notices, [])

    def test_rank_alone_copies_nothing(self):
        _, native, model, optimizer = wrapped(ranks=1)
        native.values_due_after = set()
        model(inputs(0)).sum().backward()
        with mock.patch.object(LateCopies, "to_job", None):
            optimizer.step()
            train(model, optimizer, 2)

    def test_gradient_in_several_parts(self):
        job, _, model, _ = wrapped()
        job.begin()
        staging = job._arena.staging
        staging.gradient_ready(5)
        with self.assertRaisesRegex(hooke.Error, "use_reentrant=False"):
            staging.gradient_ready(5)

    def test_threads_of_two_devices_give_the_library_one_call_at_a_time(self):
        """While one thread's call is in the library, the other thread's gradients wait, and come with a later call."""
        job, native, _, _ = wrapped()
        job.begin()
        staging = job._arena.staging
        inside, other_done = threading.Event(), threading.Event()
        calls = []

        def gradient_ready(index):
            if not inside.is_set():
                inside.set()
                self.assertTrue(other_done.wait(60))
            calls.append(index)

        native.gradient_ready = gradient_ready
        with mock.patch.object(LateCopies, "has_come", lambda self, copy: True):
            first = threading.Thread(target=lambda: staging.gradient_ready(0))  # A piece of its own.
            first.start()
            self.assertTrue(inside.wait(60))
            for index in (5, 4, 3):
                staging.gradient_ready(index)
            self.assertEqual(calls, [])
            other_done.set()
            first.join()
            staging.gather()
        self.assertEqual(sorted(calls), [0, 3, 4, 5])

    def test_loss_of_a_device_is_read_when_backward_has_ended(self):
        job, native, model, optimizer = wrapped()
        loss = model(inputs(0)).square().sum()
        read = []

        class OnDevice(torch.Tensor):
            device = property(lambda self: types.SimpleNamespace(type="cuda"))

            def __float__(self):
                read.append(list(native.calls))
                return 2.5

        job.report(loss.detach().as_subclass(OnDevice))
        self.assertEqual(read, [])
        loss.backward()
        optimizer.step()
        self.assertEqual(native.losses, [2.5])
        self.assertIn("ready 5", read[0])


class Decisions(unittest.TestCase):
    def test_runs(self):
        a, b = "float32", "bfloat16"
        for places, size_max, expected in (
            ([], 100, []),
            ([Place(0, 8, a)], 4, [[0]]),
            ([Place(0, 8, a), Place(8, 8, a), Place(16, 8, a)], 100, [[0, 1, 2]]),
            ([Place(0, 8, a), Place(8, 8, a), Place(16, 8, a)], 16, [[1, 2], [0]]),
            ([Place(0, 8, a), Place(9, 8, a)], 100, [[1], [0]]),
            # Those of two types lie in two blocks. The group with the later first member is complete earlier.
            ([Place(0, 8, a), Place(100, 8, b), Place(8, 8, a), Place(108, 8, b)], 100, [[1, 3], [0, 2]]),
            ([Place(8, 8, a), Place(0, 8, a)], 100, [[1], [0]]),
        ):
            self.assertEqual(runs(places, size_max), expected, places)

    def test_pages(self):
        for spans, expected in (
            ([], []),
            ([(0, 10), (10, 10)], [(0, 20)]),
            ([(5000, 10), (0, 10)], [(0, 10), (5000, 10)]),
            ([(0, 10), (4090, 10)], [(0, 4100)]),
            ([(0, 10000), (50, 5)], [(0, 10000)]),
            ([(0, 4096), (4096, 1), (9000, 1)], [(0, 4097), (9000, 1)]),
        ):
            self.assertEqual(pages(spans), expected)


class FakeDevice(types.ModuleType):
    """Stands for a module such as torch.cuda: each of its devices has a generator."""

    def __init__(self):
        super().__init__("fake")
        self.states = {}

    def get_rng_state(self, device):
        return torch.tensor([self.states.get(device.index, 0)], dtype=torch.uint8)

    def set_rng_state(self, state, device):
        self.states[device.index] = int(state)


class DeviceState(unittest.TestCase):
    def setUp(self):
        self.module = FakeDevice()
        patch = mock.patch.object(torch, "xpu", self.module, create=True)
        patch.start()
        self.addCleanup(patch.stop)

    def test_generators_of_devices(self):
        self.module.states = {0: 11, 1: 22}
        devices = [torch.device("xpu", 1), torch.device("xpu", 0)]
        kept = _torch_state.decode(_torch_state.encode(_torch_state.generators(devices)))
        self.module.states = {}
        _torch_state.set_generators(kept, devices)
        self.assertEqual(self.module.states, {0: 11, 1: 22})
        # A rank that has only one device in this start goes on with the first of the kept states.
        _torch_state.set_generators(kept, [torch.device("xpu", 0)])
        self.assertEqual(self.module.states[0], 22)
        with _torch_state.KeepsGenerators(devices):
            self.module.states = {0: 3}
        self.assertEqual(self.module.states, {0: 22, 1: 22})

    def test_devices_of_a_model(self):
        model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, device="meta"))
        self.assertEqual(_torch_state.devices_of(model), [])

    def test_objects_go_back_to_their_devices(self):
        """A dictionary is restored with new tensors. They must be where the program had them, on the device that it has now."""
        places = []
        objects = {"mean": {"weight": torch.ones(2)}, "count": 3}
        with mock.patch.object(torch.serialization, "location_tag", lambda storage: "xpu:5"):
            kept = _torch_state.packed(objects)
        with mock.patch.object(torch.serialization, "default_restore_location", lambda storage, place: places.append(place) or storage):
            for devices in ([torch.device("xpu", 0)], [torch.device("xpu", 0), torch.device("xpu", 5)], []):
                self.assertEqual(_torch_state.unpacked(kept, devices)["mean"]["weight"].tolist(), [1, 1])
        self.assertEqual(places, ["xpu:0", "xpu:5"])


if __name__ == "__main__":
    unittest.main()
