"""Which samples a rank takes: every sample at most once in an epoch, and those that are left after a restart or a change of the number of groups."""

import hashlib
import itertools
import sys
from typing import Iterator, Optional

import torch
from torch.utils.data import BatchSampler

from hooke import _job
from hooke._division import Division
from hooke._native import invalid


def order(samples: int, seed: int, epoch: int, shuffle: bool) -> torch.Tensor:
    """Returns the order of an epoch, the same on all ranks of all groups. torch's generator takes 32 bits of a seed, so these are mixed first."""
    if not shuffle:
        return torch.arange(samples)
    mixed = hashlib.sha256(f"{seed}/{epoch}".encode()).digest()[:4]
    return torch.randperm(samples, generator=torch.Generator().manual_seed(int.from_bytes(mixed, "little")))


class Sampler(torch.utils.data.Sampler):
    """The samples of this rank. Made by job.sampler()."""

    def __init__(self, job, samples: int, batch_size: int, shuffle: bool):
        if batch_size < 1:
            raise invalid(f"sampler: batch_size is {batch_size}, but must be at least 1")
        self._job = job
        self._samples = samples
        self.batch_size = batch_size
        self._shuffle = shuffle
        self._division: Optional[Division] = None
        self._passes = 0

    def division(self) -> Division:
        """How the groups divide the data. Made once, after the job was told how gradients accumulate."""
        if self._division is None:
            self.steps_per_epoch()
            self._division = self._job._divide(self._samples, self.batch_size * self._job.accumulate)
        return self._division

    def steps_per_epoch(self) -> int:
        """A group's steps in one pass of all groups. The rest, which does not fill a step of all groups, is left out."""
        job = self._job
        steps = self._samples // (self.batch_size * job.accumulate * job._place.ranks_of_all)
        if not steps:
            raise invalid(
                f"sampler: {self._samples} samples do not fill one step: batch_size {self.batch_size} x accumulate {job.accumulate} x "
                f"{job._place.ranks_of_all} ranks of all groups"
            )
        return steps

    def __len__(self) -> int:
        """Samples of this rank in a whole epoch. The first epochs after a restart, or after a change of the number of groups, may have fewer."""
        return self.steps_per_epoch() * self._job.accumulate * self.batch_size

    def __iter__(self) -> Iterator[int]:
        self._check_batch_size(sys._getframe(1).f_locals.get("self"))
        self._job.begin()
        division, epoch = self.division(), self._job._epoch
        if epoch is None:
            epoch, _ = next(itertools.islice(division.from_position(self._job._first_position), self._passes, None))
            self._passes += 1
        return self._samples_of(epoch, self._job._first_in(epoch, division), division)

    def _check_batch_size(self, caller) -> None:
        """The iterator of a BatchSampler, with which a DataLoader makes its batches, is its generator: so its frame tells the size."""
        if isinstance(caller, BatchSampler) and caller.batch_size != self.batch_size:
            raise invalid(f"the DataLoader has batch_size={caller.batch_size}, but its sampler has batch_size={self.batch_size}: give both the same")

    def _samples_of(self, epoch: int, first_step: int, division: Division) -> Iterator[int]:
        job, size = self._job, self.batch_size
        indices = order(self._samples, job.seed, epoch, self._shuffle)
        indices = torch.cat([indices[first:last] for first, last in division.part(epoch).left])
        if first_step:
            job._resume_data()
        for step in range(first_step, division.steps(epoch)):
            if job.stopping:
                return  # Another group has stopped the job. This comes to all ranks after the same step.
            for part in range(job.accumulate):
                first = _job.first_sample(step, part, size, job.accumulate, job._place)
                yield from indices[first : first + size].tolist()
