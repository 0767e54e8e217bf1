#!/usr/bin/python3
"""A rank that trains with torch, for `tests/benchmarks/run training` and `python`, which start it. Needs torch.

--by=ddp combines gradients with DistributedDataParallel over Gloo, and --by=hooke with hooke.torch. --by=nothing does not combine them. mlp and
lenet are the networks of worker/model/networks.cc, with the same data, batch, optimizer and thread count as the built-in trainer. This rank does
less than the trainer: its images are normalized once, at the start, and it exchanges nothing with a server. gpt is a transformer of 10 million
parameters on random letters. Whatever combines the gradients, malloc keeps large blocks, as hooke.init() and the trainer make it do. Every half
second it prints a line of JSON with its step; of ranks under one mpirun, only rank 0 does.
"""

import argparse
import ctypes
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
        # Channels last, as in the built-in trainer: that takes a quarter less time. With one channel, contiguous() would leave the strides alone.
        x = images.view(-1, 28, 28, 1).permute(0, 3, 1, 2)
        x = functional.relu(functional.max_pool2d(self.conv1(x), 2))
        x = functional.relu(functional.max_pool2d(self.conv2(x), 2))
        return self.fc2(functional.relu(self.fc1(x.flatten(1))))


class Gpt(nn.Module):
    LETTERS, WIDTH, FEATURES, LAYERS, HEADS = 128, 64, 320, 8, 8

    def __init__(self):
        super().__init__()
        self.letter, self.place = nn.Embedding(self.LETTERS, self.FEATURES), nn.Parameter(torch.randn(self.WIDTH, self.FEATURES) * 0.02)
        layer = nn.TransformerEncoderLayer(self.FEATURES, self.HEADS, 4 * self.FEATURES, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, self.LAYERS, nn.LayerNorm(self.FEATURES))
        self.head = nn.Linear(self.FEATURES, self.LETTERS)
        # Not a buffer: DDP would broadcast it, and Gloo has no booleans.
        self.ahead = torch.ones(self.WIDTH, self.WIDTH, dtype=torch.bool).triu(1)

    def forward(self, letters):
        return self.head(self.layers(self.letter(letters) + self.place, self.ahead)).transpose(1, 2)


MODELS = {"mlp": Mlp, "lenet": LeNet, "gpt": Gpt}


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


def samples_of(arguments):
    """Returns inputs, and the outputs that the model should learn for them."""
    if arguments.model == "gpt":
        letters = torch.randint(Gpt.LETTERS, (4096, Gpt.WIDTH + 1))
        return letters[:, :-1].contiguous(), letters[:, 1:].contiguous()
    return load(arguments.train)


def combined(arguments, model, optimizer):
    """Returns the model and the optimizer with which this rank trains."""
    if arguments.by == "ddp":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        rendezvous = f"file://{arguments.rendezvous}"
        torch.distributed.init_process_group("gloo", init_method=rendezvous, rank=arguments.rank, world_size=arguments.size)
        return nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True), optimizer
    if arguments.by == "hooke":
        import hooke.torch as hooke

        job = hooke.init()
        arguments.rank, arguments.size = job.rank, job.ranks
        return job.wrap(model, optimizer)
    return model, optimizer


def keep_memory():
    """Makes malloc keep large blocks, as hooke.init() and the built-in trainer do. Without that the kernel zeroes the activations' pages in each step."""
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        libc, trim_threshold, mmap_threshold = ctypes.CDLL(None), -1, -3
        for parameter in (mmap_threshold, trim_threshold):
            if not libc.mallopt(parameter, 1 << 30):
                raise SystemExit("malloc refuses the settings with which all ways are compared")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--by", choices=("ddp", "hooke", "nothing"), default="ddp")
    parser.add_argument("--rank", type=int, default=0, help="with --by=ddp and nothing")
    parser.add_argument("--size", type=int, default=1, help="with --by=ddp and nothing: number of ranks")
    parser.add_argument("--rendezvous", help="with --by=ddp: path of a file that does not exist yet, the same for all ranks")
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--train", required=True, help="prefix of the IDX files")
    arguments = parser.parse_args()
    keep_memory()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    inputs, labels = samples_of(arguments)
    model = MODELS[arguments.model]()
    model, optimizer = combined(arguments, model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9))
    step, said, speaks = 0, time.monotonic(), arguments.by != "hooke" or arguments.rank == 0
    own = torch.arange(arguments.rank, len(labels), arguments.size)
    while True:
        for indices in own[torch.randperm(len(own))].split(arguments.batch):
            if len(indices) < arguments.batch:
                continue
            optimizer.zero_grad()
            functional.cross_entropy(model(inputs[indices]), labels[indices]).backward()
            optimizer.step()
            step += 1
            if speaks and time.monotonic() > said + 0.5:
                said = time.monotonic()
                print(json.dumps({"progress": {"step": step}}), flush=True)


if __name__ == "__main__":
    main()
