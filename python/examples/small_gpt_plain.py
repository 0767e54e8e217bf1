#!/usr/bin/python3
"""A small language model of letters, trained on a licence's text, without Hooke. small_gpt.py is the same with it."""

import argparse
import pathlib

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    """All windows of `width` letters of a text, each with the letters that follow."""

    def __init__(self, text, width):
        self.letters = sorted(set(text))
        self.codes = torch.tensor([self.letters.index(letter) for letter in text])
        self.width = width

    def __len__(self):
        return len(self.codes) - self.width

    def __getitem__(self, first):
        window = self.codes[first : first + self.width + 1]
        return window[:-1], window[1:]


class Gpt(nn.Module):
    def __init__(self, letters, width, features, layers):
        super().__init__()
        self.letter, self.place = nn.Embedding(letters, features), nn.Parameter(torch.randn(width, features) * 0.02)
        block = nn.TransformerEncoderLayer(features, 4, 4 * features, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, layers, nn.LayerNorm(features), enable_nested_tensor=False)
        self.head = nn.Linear(features, letters, bias=False)
        self.head.weight = self.letter.weight  # Tied.
        nn.init.normal_(self.letter.weight, std=0.02)

    def forward(self, x):
        ahead = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return self.head(self.blocks(self.letter(x) + self.place[: x.shape[1]], ahead))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=pathlib.Path, default="/usr/share/common-licenses/GPL-3")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--letters", type=int, default=35000, help="take so many letters of the text")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    windows = Windows(arguments.text.read_text()[: arguments.letters], arguments.width)
    model = Gpt(len(windows.letters), arguments.width, arguments.features, arguments.layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(windows, batch_size=32, shuffle=True, drop_last=True)

    for epoch in range(arguments.epochs):
        for x, y in loader:
            loss = functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        print(f"epoch {epoch}: loss {loss.item()}", flush=True)


if __name__ == "__main__":
    main()
