"""The order of an epoch as torch shuffles it, and the sampler that a DataLoader takes."""

import hashlib
import sys
from typing import Iterator

import torch
from torch.utils.data import BatchSampler

from hooke._division import Division
from hooke._native import invalid
from hooke._sampler import RankSamples


def order(samples: int, seed: int, epoch: int, shuffle: bool) -> torch.Tensor:
    """Returns the order of an epoch, the same on all ranks of all groups. torch's generator takes 32 bits of a seed, so these are mixed first."""
    if not shuffle:
        return torch.arange(samples)
    mixed = hashlib.sha256(f"{seed}/{epoch}".encode()).digest()[:4]
    return torch.randperm(samples, generator=torch.Generator().manual_seed(int.from_bytes(mixed, "little")))


class Sampler(RankSamples, torch.utils.data.Sampler):
    """The samples of this rank. Made by job.sampler()."""

    def __len__(self) -> int:
        """Samples of this rank in a whole epoch. The first epochs after a restart, or after a change of the number of groups, may have fewer."""
        return self.steps_per_epoch() * self._job.accumulate * self.batch_size

    def __iter__(self) -> Iterator[int]:
        self._check_batch_size(sys._getframe(1).f_locals.get("self"))
        return self._samples_of(*self._begin_pass())

    def _check_batch_size(self, caller) -> None:
        """The iterator of a BatchSampler, with which a DataLoader makes its batches, is its generator: so its frame tells the size."""
        if isinstance(caller, BatchSampler) and caller.batch_size != self.batch_size:
            raise invalid(f"the DataLoader has batch_size={caller.batch_size}, but its sampler has batch_size={self.batch_size}: give both the same")

    def _samples_of(self, epoch: int, first_step: int, division: Division) -> Iterator[int]:
        indices = order(self._samples, self._job.seed, epoch, self._shuffle)
        indices = torch.cat([indices[first:last] for first, last in division.part(epoch).left])
        if first_step:
            self._job._resume_data()
        for batch in self._batches(epoch, first_step, division):
            yield from indices[batch].tolist()
