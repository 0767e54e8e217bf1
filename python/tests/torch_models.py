"""Small models and loops for the tests of hooke.torch."""

import torch
from torch import nn

import hooke.torch
from fake_native import FakeNative

STEPS = 20


def make_model():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 2))


class Tied(nn.Module):
    """One weight used twice, one parameter that is never used, and one that is used in every second step."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.again = nn.Linear(4, 4, bias=False)
        self.again.weight = self.inner.weight
        self.never = nn.Parameter(torch.ones(3))
        self.sometimes = nn.Parameter(torch.ones(4))
        self.uses = 0

    def forward(self, x):
        self.uses += 1
        x = self.again(torch.tanh(self.inner(x)))
        return x * self.sometimes if self.uses % 2 else x


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
}


def inputs(step):
    return torch.randn(8, 4, generator=torch.Generator().manual_seed(step))


def train(model, optimizer, steps=STEPS, scheduler=None, set_to_none=True, clip=None):
    for step in range(steps):
        model(inputs(step)).square().sum().backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        if scheduler:
            scheduler.step()
        optimizer.zero_grad(set_to_none=set_to_none)


def fail_in_backward(model):
    """Makes a backward pass that raises ZeroDivisionError when the model's parameters have their gradients."""
    x = inputs(0).requires_grad_()
    x.register_hook(lambda _: 1 / 0)
    model(x).sum().backward()


def wrapped(model=None, optimizer=None, **place):
    """Returns (job, its native stand-in, model, optimizer). The other rank computes the same, so that combining changes nothing."""
    native = FakeNative(**{"ranks": 2, **place})
    job = hooke.torch.Job(native)
    model = model or make_model()
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.05)
    job.wrap(model, optimizer)
    return job, native, model, optimizer
