#!/usr/bin/python3
"""hooke.torch on a CUDA device trains as without Hooke. Skipped where there is none. Usage: torch_cuda_test.py MPIRUN..."""

import pathlib
import sys
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree.
sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]
import torch  # noqa: E402
from torch import nn  # noqa: E402

import package_index  # noqa: E402
import ranks_test  # noqa: E402
from hooke import _torch_staging, _torch_state  # noqa: E402
from torch_models import OPTIMIZERS, inputs, make_model, wrapped  # noqa: E402

# The bias before a batch normalization has a gradient that is rounding noise, and the norm for clipping is summed in
# another order if gradients lie elsewhere. With its usual eps, Adam would make steps of full size out of that noise.
OPTIMIZERS = {
    **OPTIMIZERS,
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, eps=1e-4),
    "fused": lambda p: torch.optim.AdamW(p, lr=0.01, eps=1e-4, fused=True),
    "capturable": lambda p: torch.optim.AdamW(p, lr=0.01, eps=1e-4, capturable=True),
}


def train(model, optimizer):
    for step in range(20):
        model(inputs(step).cuda()).square().sum().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


class OneProcess(unittest.TestCase):
    """With a stand-in for the library."""

    def test_same_as_without(self):
        for kind in OPTIMIZERS:
            for ranks in (1, 2):
                plain, mine = make_model().cuda(), make_model().cuda()
                train(plain, OPTIMIZERS[kind](plain.parameters()))
                job, _, _, optimizer = wrapped(mine, OPTIMIZERS[kind](mine.parameters()), ranks=ranks)
                train(mine, optimizer)
                for name, value in plain.state_dict().items():
                    torch.testing.assert_close(mine.state_dict()[name], value, rtol=0, atol=1e-5, msg=f"{kind}, {ranks} ranks: {name}")
                job.leave()

    def test_backward_on_a_stream_of_the_programs_own(self):
        plain, mine = make_model().cuda(), make_model().cuda()
        train(plain, OPTIMIZERS["momentum"](plain.parameters()))
        job, _, _, optimizer = wrapped(mine, OPTIMIZERS["momentum"](mine.parameters()))
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            train(mine, optimizer)
        stream.synchronize()
        for name, value in plain.state_dict().items():
            torch.testing.assert_close(mine.state_dict()[name], value, rtol=0, atol=1e-6, msg=name)
        job.leave()

    def test_copies_wait_for_what_writes(self):
        """The device is busy for long before it writes the values, and before it reads what comes back."""
        device = torch.device("cuda", torch.cuda.current_device())
        copies = _torch_staging.CudaCopies(device)
        memory = torch.zeros(1 << 20)
        copies.pin([(memory.data_ptr(), memory.numel() * 4)])
        self.assertEqual(len(copies._pinned), 1, "the memory is not pinned")
        values = torch.zeros_like(memory, device=device)
        for number in range(1, 6):
            torch.cuda._sleep(50_000_000)
            values.fill_(number)
            copy = copies.to_job([(memory, values)], [copies.writer()])
            copies.wait(copy)
            self.assertTrue(copies.has_come(copy))
            self.assertEqual((memory.min().item(), memory.max().item()), (number, number))
            memory.add_(0.5)
            torch.cuda._sleep(50_000_000)
            copies.from_job([(memory, values)])
            copies.finish()
            memory.zero_()
            self.assertEqual((values.min().item(), values.max().item()), (number + 0.5, number + 0.5))
        copies.unpin()

    def test_memory_that_cannot_be_pinned_leaves_no_error_behind(self):
        copies = _torch_staging.CudaCopies(torch.device("cuda", 0))
        copies.pin([(8, 100)])
        self.assertEqual(copies._pinned, [])
        torch.zeros(3, device="cuda").add_(1)
        torch.cuda.synchronize()

    def test_random_generator_and_objects_of_a_start(self):
        devices = [torch.device("cuda", 0)]
        kept = _torch_state.decode(_torch_state.encode(_torch_state.generators(devices)))
        expected = torch.rand(3, device="cuda")
        _torch_state.set_generators(kept, devices)
        self.assertTrue(torch.rand(3, device="cuda").equal(expected))
        objects = _torch_state.packed({"mean": torch.ones(2, device="cuda"), "count": torch.ones(2)})
        devices_of = {name: value.device.type for name, value in _torch_state.unpacked(objects, devices).items()}
        self.assertEqual(devices_of, {"mean": "cuda", "count": "cpu"})

    def test_collectives_take_tensors_of_the_device(self):
        job, _, _, _ = wrapped(make_model().cuda())
        for result in (job.all_reduce(torch.ones(3, device="cuda")), job.broadcast(torch.ones(2, 2, device="cuda").t())):
            self.assertEqual((result.device.type, result.min().item()), ("cuda", 1))
        self.assertEqual(job.all_gather(torch.ones(3, device="cuda")).device.type, "cuda")


class Ranks(ranks_test.Trains):
    """With the library. All ranks share the device, or one of them is on the host."""

    def test_two_ranks(self):
        for scenario in ("momentum", "adamw", "clipped", "accumulated_untold", "no_sync", "two_optimizers", "scaled", "scaled_fused", "mixed", "autocast"):
            with self.subTest(scenario):
                self.check(scenario, 2, "cuda", tolerance=1e-4)

    def test_a_device_and_the_host(self):
        # Both ranks have the same gradients, but the optimizers of a device and of the host round differently.
        self.check("momentum", 2, "cuda,cpu", tolerance=1e-4, apart=1e-4)


if __name__ == "__main__":
    ranks_test.MPIRUN += sys.argv[1:]
    if not torch.cuda.is_available():
        package_index.skip("TorchCuda", f"torch {torch.__version__} finds no CUDA device")
    else:
        unittest.main(argv=sys.argv[:1])
