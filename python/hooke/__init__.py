"""Hooke: train one model with many MPI groups. `import hooke.torch` for PyTorch, `import hooke.numpy` for plain arrays."""

from hooke._native import Code, Error

__all__ = ["Code", "Error"]
__version__ = "0.1.0"
