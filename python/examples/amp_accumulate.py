#!/usr/bin/python3
"""Mixed precision, accumulation over four batches and clipping, with Hooke. amp_accumulate_plain.py is the same without it."""

import argparse

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import hooke.torch as hooke

ACCUMULATE = 4


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=4096)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    x = torch.randn(arguments.samples, 32)
    train = TensorDataset(x, x[:, :4].prod(1, keepdim=True))
    model = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    # Float16 needs a scaler, bfloat16 could do without. Before 2.3 torch has none for the CPU.
    scaler = torch.amp.GradScaler("cpu") if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler(enabled=False)
    job = hooke.init()
    model, optimizer = job.wrap(model, optimizer, accumulate=ACCUMULATE)
    job.state(scaler=scaler)
    loader = DataLoader(train, batch_size=16, sampler=job.sampler(train, batch_size=16))

    for epoch in job.epochs(arguments.epochs):
        for number, (x, y) in enumerate(loader, 1):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = functional.mse_loss(model(x).float(), y) / ACCUMULATE
            job.report(loss=loss * ACCUMULATE)
            scaler.scale(loss).backward()
            if number % ACCUMULATE:
                continue
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        print(f"epoch {epoch}: loss {job.loss}", flush=True)


if __name__ == "__main__":
    main()
