"""A training script for restart_test.py: restart_program.py OPTIMIZER STEPS KILLS SEED OUT.

In each of the last group's first KILLS starts a rank kills itself. The moment follows from the seed and the start, and
is at a later step in a later start. Rank 0 of each group writes what it has at the end to the file OUT and its group's
number.
"""

import os
import pathlib
import random
import signal
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

import hooke.torch as hooke  # noqa: E402

BATCH, SAMPLES = 4, 320
OPTIMIZERS = {
    "momentum": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9, nesterov=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.003),
}


class Noisy(torch.utils.data.Dataset):
    """Samples with noise from all three random generators, drawn in the rank's own process."""

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        x = torch.arange(12.0).mul(index % 7 + 1).sin()
        x = x + 0.1 * torch.randn(12) + 0.1 * random.random() + 0.1 * float(numpy.random.rand())
        return x, x[:2].square()


def kill_after(seconds):
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL))
    timer.daemon = True
    timer.start()


def main(kind, steps, kills, seed, out):
    job = hooke.init()
    start = job.place.incarnation
    chance = random.Random(seed * 1000 + start)
    victim = chance.randrange(job.ranks) if start <= kills and job.group == job.groups - 1 else -1
    deadly_step = int(steps * (start - chance.random()) / (kills + 1))
    torch.manual_seed(job.seed)
    random.seed(job.seed)
    numpy.random.seed(job.seed)
    model = nn.Sequential(nn.Linear(12, 600), nn.BatchNorm1d(600), nn.ReLU(), nn.Dropout(0.3), nn.Linear(600, 300), nn.Tanh(), nn.Linear(300, 2))
    model, optimizer = job.wrap(model, OPTIMIZERS[kind](model.parameters()))
    scheduler = job.advance(torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps))
    mean = job.state(mean={name: p.detach().clone() for name, p in model.named_parameters()})
    data = Noisy()
    sampler = job.sampler(data, batch_size=BATCH)
    for _ in job.epochs(steps // sampler.steps_per_epoch()):
        if start > 1 and job.rank == 0 and job.step == job.first_step:
            moments = [value for state in optimizer.state.values() for value in state.values() if torch.is_tensor(value)]
            print(f"start {start} at step {job.first_step}: moments of {sum(float(m.abs().sum()) for m in moments):.6f}", flush=True)
        for x, y in DataLoader(data, batch_size=BATCH, sampler=sampler):
            if job.rank == victim and job.step >= deadly_step:
                victim = -1
                kill_after(chance.random() * 0.03)
            loss = nn.functional.mse_loss(model(x), y)
            job.report(loss=loss)
            loss.backward()
            optimizer.step()
            scheduler.step()
            for name, p in model.named_parameters():
                mean[name] = 0.9 * mean[name] + 0.1 * p.detach()
            optimizer.zero_grad()
            time.sleep(0.008)  # So a state is kept every hundred steps or so.
        job.evaluate(lambda m: {"accuracy": 0.0, "loss": float(torch.rand(()))})
    if job.rank == 0:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "mean": mean, "rate": scheduler.get_last_lr()}, f"{out}{job.group}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
