"""Hooke for plain arrays: no framework, the program computes its own gradients.

    import hooke.numpy as hooke
    job = hooke.init()
    sampler = job.sampler(samples, batch_size=64)
    parameters = job.register({"w": w, "b": b}, epochs=10)
    for epoch in job.epochs(10):
        for batch in sampler:
            job.gradients["w"][...], job.gradients["b"][...], loss = gradient_of(parameters, samples[batch])
            job.combine(loss)
            for name in parameters:
                parameters[name] -= 0.1 * job.gradients[name]
            job.end_step()
"""

import ctypes
import math
import pickle
from typing import Any, Dict, Iterator, Mapping, Optional

import numpy

from hooke import _job, _state
from hooke._native import BUFFER, PARAMETER, Code, Error, Native, Tensor, invalid, misuse
from hooke._sampler import RankSamples

__all__ = ["Code", "Error", "Job", "init"]


def init() -> "Job":
    """Joins the job: that of `hooke submit`, or the ranks that mpirun or srun started, or alone. Collective, once in a process."""
    return Job()


def _at(address: int, shape, dtype) -> numpy.ndarray:
    size = int(numpy.prod(shape, dtype=numpy.int64)) * dtype.itemsize
    return numpy.frombuffer((ctypes.c_char * size).from_address(address), dtype=dtype).reshape(shape)


class Sampler(RankSamples):
    """The batches of this rank, as arrays of the numbers of samples. Made by job.sampler()."""

    def __len__(self) -> int:
        """Batches of this rank in a whole epoch. The first epochs after a restart, or after a change of the number of groups, may have fewer."""
        return self.steps_per_epoch()

    def __iter__(self) -> Iterator[numpy.ndarray]:
        epoch, first_step, division = self._begin_pass()
        # The same on all ranks of all groups.
        order = numpy.random.default_rng([self._job.seed, epoch]).permutation(self._samples) if self._shuffle else numpy.arange(self._samples)
        left = numpy.concatenate([order[first:last] for first, last in division.part(epoch).left])
        return (left[batch] for batch in self._batches(epoch, first_step, division))


class Job(_job.Job):
    """This rank's part in the job."""

    _steps_advice = "call end_step() once for each batch of the sampler"
    _length_advice = "give register() the same number as `epochs`"

    def __init__(self, native: Optional[Native] = None):
        super().__init__(native)
        self._views: Dict[str, numpy.ndarray] = {}
        self._gradients: Dict[str, numpy.ndarray] = {}
        self._buffers: Dict[str, numpy.ndarray] = {}
        self._steps_planned = (0, 0)  # The steps of the whole training, and those of an epoch.

    gradients = property(lambda self: self._gradients, doc="The gradients by name. Write into them in place; end_step() zeroes them.")
    buffers = property(lambda self: self._buffers, doc="The buffers by name. The ranks' mean is taken in every step.")

    def register(
        self,
        parameters: Mapping[str, numpy.ndarray],
        buffers: Optional[Mapping[str, numpy.ndarray]] = None,
        steps_total: int = 0,
        steps_per_epoch: int = 0,
        epochs: int = 0,
    ) -> Dict[str, numpy.ndarray]:
        """Moves arrays of float32 or float16 into the job, begins training, and returns the views to train. Collective, once.

        Afterwards they have the values of the center. Change them in place. job.leave() replaces them in the dictionary
        by copies, because their memory is the job's.

        The job knows how long training is by `steps_total` and `steps_per_epoch`, or by a sampler and `epochs`.
        """
        if self._registered:
            raise misuse("job.register() was called before: one job trains one set of parameters")
        if self._sampler is not None and (steps_total or steps_per_epoch):
            raise invalid("register: the sampler says how many steps an epoch has; give `epochs` in place of steps_total and steps_per_epoch")
        if epochs and self._sampler is None:
            raise invalid("register: `epochs` needs a sampler, which says how long an epoch is; make it before, or give steps_total and steps_per_epoch")
        named = [(name, array, PARAMETER) for name, array in parameters.items()] + [(name, array, BUFFER) for name, array in (buffers or {}).items()]
        for name, array, _ in named:
            if not isinstance(array, numpy.ndarray) or array.dtype not in (numpy.float32, numpy.float16) or not array.size:
                what = f"{array.dtype} of shape {array.shape}" if isinstance(array, numpy.ndarray) else type(array).__name__
                raise invalid(f"{name} is {what}: Hooke takes numpy arrays of float32 or float16 with at least one value")
        packed = [numpy.ascontiguousarray(array) for _, array, _ in named]
        placed = self._native.register(
            [Tensor(name, array.shape, kind, copy.ctypes.data, array.dtype.name) for (name, array, kind), copy in zip(named, packed)]
        )
        for tensor, array in zip(placed, packed):
            view = _at(tensor.values, tensor.shape, array.dtype)
            (self._views if tensor.kind == PARAMETER else self._buffers)[tensor.name] = view
            if tensor.kind == PARAMETER:
                self._gradients[tensor.name] = _at(tensor.gradient, tensor.shape, array.dtype)
        self._registered = True
        self._steps_planned = (steps_total, steps_per_epoch)
        self._epochs_planned = epochs
        self.begin()
        return self._views

    def begin(self) -> None:
        begins = not self._begun
        super().begin()
        if begins:
            self._keep_state()

    def _keep_state(self) -> None:
        if self._native.state_due():
            kept = {"generators": _state.generators(), "objects": {**self._objects.others(), **self._objects.generators()}}
            self._native.save_state(pickle.dumps(kept))

    def _restore(self, state: bytes, step: int) -> None:
        # The bytes are this job's own program's.
        kept = pickle.loads(state)
        self._objects.set(kept["objects"])
        _state.set_generators(kept["generators"])

    def sampler(self, samples: Any, batch_size: int, shuffle: bool = True) -> Sampler:
        """Returns this rank's batches of a data set, or of a number of samples. Made before register(), the first one says how long an epoch is."""
        sampler = Sampler(self, samples, batch_size, shuffle)
        if self._sampler is None:
            if self._begun:
                raise misuse("job.sampler() was called after job.register(): make it before, so that the job knows how long an epoch is")
            self._sampler = sampler
        return sampler

    def _plan(self):
        if self._sampler is not None:
            return super()._plan()
        total, per_epoch = self._steps_planned
        # An epoch is as many samples as its steps take if each rank takes one.
        return total, self._divide(per_epoch * self._place.ranks_of_all, 1) if per_epoch else None

    def combine(self, loss: Optional[float] = None) -> float:
        """Makes each gradient the mean over the ranks. Returns the mean loss, and NaN if no rank gave one. Collective."""
        self.begin()
        self._loss = self._native.combine(math.nan if loss is None else _job.given_loss(loss))
        return self._loss

    def end_step(self, samples: int = 0, epoch: float = 0.0) -> int:
        """Counts the step, exchanges if it is time, and zeroes the gradients. Returns the steps done. Collective.

        `samples` is what this rank took in the step; 0: a batch of the sampler, if there is one.
        """
        self._end_step(samples or (self._sampler.batch_size if self._sampler is not None else 0), epoch)
        for gradient in self._gradients.values():
            gradient.fill(0)
        self._keep_state()
        return self.step

    def _take_back(self) -> None:
        for views in (self._views, self._gradients, self._buffers):
            views.update({name: view.copy() for name, view in views.items()})

    def evaluate(self, function):
        """Calls function(parameters) on the ranks of group 0 while they are the center's. See hooke.torch.Job.evaluate."""
        return self._evaluate(lambda: function(self._views))
