#!/usr/bin/python3
"""Mixed precision, accumulation over four batches and clipping, without Hooke. amp_accumulate.py is the same with it."""

import argparse

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

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
    loader = DataLoader(train, batch_size=16, shuffle=True, drop_last=True)

    for epoch in range(arguments.epochs):
        for number, (x, y) in enumerate(loader, 1):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = functional.mse_loss(model(x).float(), y) / ACCUMULATE
            scaler.scale(loss).backward()
            if number % ACCUMULATE:
                continue
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        print(f"epoch {epoch}: loss {loss.item() * ACCUMULATE}", flush=True)


if __name__ == "__main__":
    main()
