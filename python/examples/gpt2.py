#!/usr/bin/python3
"""A language model of GPT-2's shape (124 M parameters) on random tokens, in bfloat16, with Hooke. gpt2_plain.py is the same without it."""

import argparse
import math
import time

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import hooke.torch as hooke


def attend(query, key, value):
    if hasattr(functional, "scaled_dot_product_attention"):  # From torch 2.0 on.
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    ahead = torch.ones(query.shape[-2], query.shape[-2], dtype=torch.bool, device=query.device).triu(1)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    return scores.masked_fill(ahead, -math.inf).softmax(-1) @ value


class Block(nn.Module):
    def __init__(self, features, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.mix, self.project = nn.LayerNorm(features), nn.Linear(features, 3 * features), nn.Linear(features, features)
        self.norm2 = nn.LayerNorm(features)
        self.mlp = nn.Sequential(nn.Linear(features, 4 * features), nn.GELU(), nn.Linear(4 * features, features))

    def forward(self, x):
        parts = self.mix(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.project(attend(*parts).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, tokens, width, features, heads, layers):
        super().__init__()
        self.token, self.place = nn.Embedding(tokens, features), nn.Parameter(torch.randn(width, features) * 0.02)
        self.blocks = nn.Sequential(*(Block(features, heads) for _ in range(layers)), nn.LayerNorm(features))
        self.head = nn.Linear(features, tokens, bias=False)
        self.head.weight = self.token.weight  # Tied.
        nn.init.normal_(self.token.weight, std=0.02)

    def forward(self, x):
        return self.head(self.blocks(self.token(x) + self.place))


def now(device):
    """The time when the device has done all that it was given."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--samples", type=int, default=1600, help="sequences of an epoch")
    parser.add_argument("--batch", type=int, default=16, help="sequences of a step")
    parser.add_argument("--width", type=int, default=1024, help="tokens of a sequence")
    parser.add_argument("--tokens", type=int, default=50257, help="different tokens")
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--unmeasured", type=int, default=20, help="steps before the speed is measured")
    arguments = parser.parse_args()
    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    text = TensorDataset(torch.randint(arguments.tokens, (arguments.samples, arguments.width + 1)))
    model = Gpt(arguments.tokens, arguments.width, arguments.features, arguments.heads, arguments.layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, **({"fused": True} if device == "cuda" else {}))
    job = hooke.init()
    model, optimizer = job.wrap(model, optimizer)
    loader = DataLoader(text, batch_size=arguments.batch, sampler=job.sampler(text, arguments.batch), pin_memory=device == "cuda")

    # The last step is not measured: the end of training may come with it.
    step, last, times = 0, arguments.epochs * len(loader) - 1, []
    for epoch in job.epochs(arguments.epochs):
        for (batch,) in loader:
            if step in (arguments.unmeasured, last):
                times.append(now(device))
            batch = batch.to(device, non_blocking=True)
            with torch.autocast(device, torch.bfloat16):
                loss = functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            step += 1
        print(f"epoch {epoch}: loss {loss.item()}", flush=True)
    if len(times) == 2:
        done = (last - arguments.unmeasured) * arguments.batch * arguments.width
        print(f"speed: {done / (times[1] - times[0]):.1f} tokens per second", flush=True)


if __name__ == "__main__":
    main()
