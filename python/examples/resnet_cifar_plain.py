#!/usr/bin/python3
"""A residual network with batch normalization on images of CIFAR's shape, made of noise, without Hooke. resnet_cifar.py is the same with it."""

import argparse

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = self.norm2(self.conv2(functional.relu(self.norm1(self.conv1(x)))))
        return functional.relu(y + self.shortcut(x))


def images(samples):
    """Noise with a bright spot, whose place is the class."""
    labels = torch.randint(10, (samples,))
    pixels = torch.randn(samples, 3, 32, 32)
    for sample, label in enumerate(labels):
        pixels[sample, :, 3 * label : 3 * label + 4, 8:24] += 1.5
    return TensorDataset(pixels, labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=4096)
    parser.add_argument("--blocks", type=int, default=3, help="blocks of each of the three sizes")
    arguments = parser.parse_args()
    torch.manual_seed(1)
    train, test = images(arguments.samples), images(512)
    sizes = [(16, 16, 1)] * arguments.blocks + [(16, 32, 2)] + [(32, 32, 1)] * (arguments.blocks - 1) + [(32, 64, 2)] + [(64, 64, 1)] * (arguments.blocks - 1)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), *(Block(*size) for size in sizes), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, arguments.epochs)
    loader = DataLoader(train, batch_size=64, shuffle=True, drop_last=True, num_workers=2)

    def accuracy(model):
        model.eval()
        with torch.no_grad():
            return sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(test, batch_size=128)) / len(test)

    for epoch in range(arguments.epochs):
        model.train()
        for x, y in loader:
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
        scheduler.step()
        print(f"epoch {epoch}: accuracy {accuracy(model)}", flush=True)


if __name__ == "__main__":
    main()
