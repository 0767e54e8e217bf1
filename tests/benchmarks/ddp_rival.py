#!/usr/bin/python3
"""A rank of torch DistributedDataParallel over Gloo: the rival of `tests/benchmarks/run training`, which starts it. Needs python3-torch.

It has the same networks as worker/model/networks.cc, and the same data, batch, optimizer and thread count. It does less than Hooke: its images
are normalized once, at the start, and it exchanges nothing with a server. Every half second it prints a line of JSON with its step.
"""

import argparse
import gzip
import json
import os
import time

import torch
import torch.distributed
import torch.nn.functional as functional
from torch import nn

CLASSES = 10


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(784, 512), nn.Linear(512, 512), nn.Linear(512, CLASSES)

    def forward(self, images):
        x = functional.relu(self.fc1(images.flatten(1)))
        return self.fc3(functional.relu(self.fc2(x)))


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 5, padding=2), nn.Conv2d(32, 64, 5, padding=2)
        self.fc1, self.fc2 = nn.Linear(64 * 7 * 7, 512), nn.Linear(512, CLASSES)

    def forward(self, images):
        x = functional.relu(functional.max_pool2d(self.conv1(images), 2))
        x = functional.relu(functional.max_pool2d(self.conv2(x), 2))
        return self.fc2(functional.relu(self.fc1(x.flatten(1))))


MODELS = {"mlp": Mlp, "lenet": LeNet}


def read(path):
    for name, opener in ((path, open), (path + ".gz", gzip.open)):
        if os.path.exists(name):
            with opener(name, "rb") as file:
                return bytearray(file.read())
    raise SystemExit(f"no file {path} or {path}.gz")


def load(prefix):
    labels = torch.frombuffer(read(prefix + "-labels-idx1-ubyte"), dtype=torch.uint8, offset=8).long()
    images = torch.frombuffer(read(prefix + "-images-idx3-ubyte"), dtype=torch.uint8, offset=16).view(-1, 1, 28, 28).float()
    return (images - images.mean()) / images.std(), labels


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--rendezvous", required=True, help="path of a file that does not exist yet, the same for all ranks")
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--train", required=True, help="prefix of the IDX files")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.distributed.init_process_group("gloo", init_method=f"file://{arguments.rendezvous}", rank=arguments.rank, world_size=arguments.size)
    images, labels = load(arguments.train)
    model = nn.parallel.DistributedDataParallel(MODELS[arguments.model](), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    step, said = 0, time.monotonic()
    own = torch.arange(arguments.rank, len(labels), arguments.size)
    while True:
        for indices in own[torch.randperm(len(own))].split(arguments.batch):
            if len(indices) < arguments.batch:
                continue
            optimizer.zero_grad()
            functional.cross_entropy(model(images[indices]), labels[indices]).backward()
            optimizer.step()
            step += 1
            if time.monotonic() > said + 0.5:
                said = time.monotonic()
                print(json.dumps({"progress": {"step": step}}), flush=True)


if __name__ == "__main__":
    main()
