"""Hooke: train one model with many MPI groups. `import hooke.torch` for PyTorch, `import hooke.numpy` for plain arrays.

This module itself submits jobs and looks after them: submit, jobs, status, watch, wait, scale, cancel, logs, export.
"""

from hooke._client import cancel, export, jobs, logs, scale, status, submit, wait, watch
from hooke._native import Code, Error

__all__ = ["Code", "Error", "cancel", "export", "jobs", "logs", "scale", "status", "submit", "wait", "watch"]
__version__ = "0.1.0"
