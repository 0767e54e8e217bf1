"""A PyTorch script for kills_test.py: kill_torch_program.py STEPS KILLS SEED OUT.

As kill_program.py, for a job whose servers step. Each step's samples come from its number. After a step, the rank that
kill_program.plan names kills itself, EARLIEST steps later: a start that was killed before anything was kept tells nothing.
"""

import os
import pathlib
import signal
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]
import kill_program  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402

import hooke.torch as hooke  # noqa: E402

EARLIEST = 5
INPUTS, HIDDEN, OUTPUTS, BATCH = 256, 128, 10, 4  # Three blocks, so each rank sends some.


def main(steps, kills, seed, out):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(INPUTS, HIDDEN), torch.nn.Tanh(), torch.nn.BatchNorm1d(HIDDEN), torch.nn.Linear(HIDDEN, OUTPUTS))
    job = hooke.init()
    model, optimizer = job.wrap(model, torch.optim.SGD(model.parameters(), lr=1.0))  # Only the servers step.
    start = job.place.incarnation
    deadly_step, deadly_rank, _ = kill_program.plan(steps - EARLIEST, kills, seed)[start - 1] if start <= kills else (0, -1, 0)
    job.begin()
    print(f"start {start} goes on from step {job.first_step}, to {steps}", flush=True)
    while job.step < steps:
        x = torch.randn(BATCH, INPUTS, generator=torch.Generator().manual_seed(2 * job.step + job.rank))
        loss = torch.nn.functional.mse_loss(model(x), x[:, :OUTPUTS])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if (job.step - EARLIEST, job.rank) == (deadly_step, deadly_rank):
            os.kill(os.getpid(), signal.SIGKILL)
    job.finish()
    if job.rank == 0:
        # Counters are no part of the center. They are as old as the newest kept state.
        numpy.savez(out, **{name: value.numpy() for name, value in model.state_dict().items() if value.is_floating_point()})


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
