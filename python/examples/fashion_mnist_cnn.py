#!/usr/bin/python3
"""A convolutional network on Fashion-MNIST, with Hooke. fashion_mnist_cnn_plain.py is the same without it."""

import argparse
import gzip

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import hooke.torch as hooke


def load(prefix, samples):
    images = torch.frombuffer(bytearray(gzip.open(prefix + "-images-idx3-ubyte.gz").read()), dtype=torch.uint8, offset=16)
    labels = torch.frombuffer(bytearray(gzip.open(prefix + "-labels-idx1-ubyte.gz").read()), dtype=torch.uint8, offset=8)
    return TensorDataset(((images.view(-1, 1, 28, 28) / 255 - 0.286) / 0.353)[:samples], labels.long()[:samples])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist", help="folder of the IDX files (package dataset-fashion-mnist)")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--samples", type=int, default=60000)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    train, test = load(arguments.data + "/train", arguments.samples), load(arguments.data + "/t10k", arguments.samples)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    job = hooke.init()
    model, optimizer = job.wrap(model, optimizer)
    loader = DataLoader(train, batch_size=64, sampler=job.sampler(train, batch_size=64))

    @torch.no_grad()
    def accuracy(model):
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(test, batch_size=500))
        return right / len(test)

    for epoch in job.epochs(arguments.epochs):
        for x, y in loader:
            loss = functional.cross_entropy(model(x), y)
            job.report(loss=loss)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        print(f"epoch {epoch}: accuracy {job.evaluate(accuracy)}", flush=True)


if __name__ == "__main__":
    main()
