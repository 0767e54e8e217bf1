"""Which samples a rank takes: every sample at most once in an epoch, and those that are left after a restart or a change of the number of groups."""

import itertools
import operator
from typing import Any, Iterator, Optional, Tuple

from hooke import _job
from hooke._division import Division
from hooke._native import invalid


class RankSamples:
    """The samples of this rank. Base of the samplers of hooke.torch and hooke.numpy, which put an epoch in order."""

    def __init__(self, job, samples: Any, batch_size: int, shuffle: bool):
        """`samples` is a data set, or the number of its samples."""
        if batch_size < 1:
            raise invalid(f"sampler: batch_size is {batch_size}, but must be at least 1")
        self._job = job
        self._samples = len(samples) if hasattr(samples, "__len__") else operator.index(samples)
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

    def _begin_pass(self) -> Tuple[int, int, Division]:
        """Begins training if that has not begun. Returns the epoch of this pass over the data, the first step of it that is left, and the division."""
        self._job.begin()
        division, epoch = self.division(), self._job._epoch
        if epoch is None:
            epoch, _ = next(itertools.islice(division.from_position(self._job._first_position), self._passes, None))
            self._passes += 1
        return epoch, self._job._first_in(epoch, division), division

    def _batches(self, epoch: int, first_step: int, division: Division) -> Iterator[slice]:
        """Yields the batches of this rank, as places in the list of what is left of the epoch."""
        job = self._job
        for step in range(first_step, division.steps(epoch)):
            if job.stopping:
                return  # Another group has stopped the job. This comes to all ranks after the same step.
            for part in range(job.accumulate):
                first = _job.first_sample(step, part, self.batch_size, job.accumulate, job._place)
                yield slice(first, first + self.batch_size)
