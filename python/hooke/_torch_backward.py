"""Whether a backward pass is under way. Autograd calls back at the end of a pass, but not when one fails."""

import weakref
from typing import Callable

import torch


class _End:
    """An object that only autograd holds. It is destroyed when the backward pass has ended or failed."""

    def __init__(self, ended: Callable[[], None]):
        self._ended = ended

    def __call__(self):
        self._ended()


class Backward:
    """The present backward pass, or the last one."""

    def __init__(self):
        self._end = None  # A weak reference to the pass's _End. None: the last pass has ended, or is forgotten.

    def begin(self, ended: Callable[[], None]) -> None:
        """Called inside a backward pass. At its end autograd calls `ended`, which calls forget()."""
        end = _End(ended)
        self._end = weakref.ref(end)
        torch.autograd.Variable._execution_engine.queue_callback(end)

    def forget(self) -> None:
        self._end = None

    @property
    def under_way(self) -> bool:
        return self._end is not None and self._end() is not None

    @property
    def unfinished(self) -> bool:
        """True if the pass is under way or has failed."""
        return self._end is not None

    @property
    def failed(self) -> bool:
        return self._end is not None and self._end() is None
