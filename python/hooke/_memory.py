"""Tensors and arrays as memory for the library's collectives: (address, number of values, type). Imports neither torch nor numpy."""

import ctypes
from typing import Callable, Tuple

from hooke._native import TYPES, invalid


def is_tensor(values) -> bool:
    return hasattr(values, "data_ptr")


def kind_of(values) -> str:
    """Returns the name of the values' type, as in TYPES."""
    kind = str(values.dtype).replace("torch.", "")
    if kind not in TYPES:
        raise invalid(f"values of type {kind} cannot travel: one of {', '.join(TYPES)}")
    return kind


def memory_of(values) -> Tuple[int, int, str]:
    """Returns (address, count, type) of contiguous values."""
    if is_tensor(values):
        return values.data_ptr(), values.numel(), kind_of(values)
    return values.ctypes.data, values.size, kind_of(values)


def check(values) -> None:
    if not is_tensor(values) and not (hasattr(values, "ctypes") and hasattr(values, "dtype")):
        raise invalid(f"{type(values).__name__} cannot travel: give a tensor, a numpy array or a number")
    if is_tensor(values) and values.device.type == "meta":
        raise invalid("a tensor on meta cannot travel: it has no values")
    kind_of(values)


def as_number(values):
    """Returns numpy's numbers, and other values without extents that are no memory, as numbers of Python; all else as it is."""
    has_memory = is_tensor(values) or hasattr(values, "ctypes")
    return values.item() if not has_memory and getattr(values, "ndim", None) == 0 and hasattr(values, "item") else values


def in_place(values, collective: Callable[[int, int, str], None]):
    """Runs a collective on the memory of `values` and returns them. Values with gaps or on a device travel as a copy. A number gives a number."""
    values = as_number(values)
    if isinstance(values, (bool, int, float)):
        number = (ctypes.c_double if isinstance(values, float) else ctypes.c_int64)(values)
        collective(ctypes.addressof(number), 1, "float64" if isinstance(values, float) else "int64")
        return number.value
    check(values)
    if is_tensor(values):
        source = values.detach()
        packed = source.cpu().contiguous()
        collective(*memory_of(packed))
        if packed.data_ptr() != source.data_ptr():
            source.copy_(packed)
        return values
    if values.flags.c_contiguous and values.flags.writeable:
        collective(*memory_of(values))
        return values
    packed = values.copy(order="C")
    collective(*memory_of(packed))
    values[...] = packed
    return values


def gathered(values, rank: int, ranks: int, all_gather: Callable[[int, int, str], None]):
    """Returns the values of all ranks in one new tensor or array, whose first extent is the rank. Numbers give a list."""
    values = as_number(values)
    if isinstance(values, (bool, int, float)):
        numbers = ((ctypes.c_double if isinstance(values, float) else ctypes.c_int64) * ranks)()
        numbers[rank] = values
        all_gather(ctypes.addressof(numbers), ranks, "float64" if isinstance(values, float) else "int64")
        return list(numbers)
    check(values)
    shape = (ranks, *values.shape)
    if is_tensor(values):
        result = values.detach().new_empty(shape, device="cpu")
        result[rank] = values.detach()
    else:
        # Not empty_like: it would keep the order of the source's axes.
        result = values.__array__().reshape((1, *values.shape)).repeat(ranks, axis=0)
    all_gather(*memory_of(result))
    return result.to(values.device) if is_tensor(values) else result
