#!/usr/bin/python3
"""ResNet-50 on images of noise, in bfloat16. resnet50.py is the same with Hooke."""

import argparse
import time

import torch
from torch import nn
from torch.nn import functional


class Bottleneck(nn.Module):
    def __init__(self, inputs, inner, stride):
        super().__init__()
        outputs = 4 * inner
        self.conv1, self.norm1 = nn.Conv2d(inputs, inner, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv2, self.norm2 = nn.Conv2d(inner, inner, 3, stride, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv3, self.norm3 = nn.Conv2d(inner, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        fits = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if fits else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = functional.relu(self.norm1(self.conv1(x)))
        y = functional.relu(self.norm2(self.conv2(y)))
        return functional.relu(self.norm3(self.conv3(y)) + self.shortcut(x))


def resnet(blocks, classes):
    layers, inputs = [], 64
    for stage, count in enumerate(blocks):
        inner = 64 << stage
        for number in range(count):
            layers.append(Bottleneck(inputs, inner, 2 if stage and not number else 1))
            inputs = 4 * inner
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


def now(device):
    """The time when the device has done all that it was given."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--steps", type=int, default=80, help="steps of an epoch, of all ranks together")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--size", type=int, default=224, help="pixels of an image's side")
    parser.add_argument("--blocks", type=int, nargs=4, default=[3, 4, 6, 3], help="blocks of each size")
    parser.add_argument("--unmeasured", type=int, default=20, help="steps before the speed is measured")
    arguments = parser.parse_args()
    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # The same images are used in each step. Otherwise the loading of images would be measured, too.
    images = torch.randn(arguments.batch, 3, arguments.size, arguments.size, device=device).to(memory_format=torch.channels_last)
    labels = torch.randint(1000, (arguments.batch,), device=device)
    model = resnet(arguments.blocks, 1000).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)

    # The last step is not measured: the end of training may come with it.
    steps = arguments.steps
    step, last, times = 0, arguments.epochs * steps - 1, []
    for epoch in range(arguments.epochs):
        for _ in range(steps):
            if step in (arguments.unmeasured, last):
                times.append(now(device))
            with torch.autocast(device, torch.bfloat16):
                loss = functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            step += 1
        print(f"epoch {epoch}: loss {loss.item()}", flush=True)
    if len(times) == 2:
        done = (last - arguments.unmeasured) * arguments.batch
        print(f"speed: {done / (times[1] - times[0]):.1f} images per second", flush=True)


if __name__ == "__main__":
    main()
