"""What a program needs besides its parameters to go on after a restart: random generators, and what it gives to job.state()."""

import copy
import random
import sys
from typing import Any, Dict

from hooke._native import invalid


def _numpy():
    """Returns the module numpy if the program has imported it, else None."""
    return sys.modules.get("numpy")


def _is_generator(value) -> bool:
    """True for a random.Random, and for a random generator of numpy or torch."""
    return isinstance(value, random.Random) or hasattr(value, "bit_generator") or (hasattr(value, "get_state") and hasattr(value, "set_state"))


def _is_writable_array(value) -> bool:
    """True for an array that can be changed in place. A single number of numpy looks like an array, but cannot."""
    return hasattr(value, "__array_interface__") and bool(getattr(getattr(value, "flags", None), "writeable", False))


def check(name: str, value: Any) -> None:
    """Refuses a value that cannot be saved and given back in place."""
    known = hasattr(value, "state_dict") and hasattr(value, "load_state_dict")
    if not (known or _is_generator(value) or isinstance(value, (dict, list)) or hasattr(value, "copy_") or _is_writable_array(value)):
        raise invalid(
            f"state: {name} is {type(value).__name__}: give an object with state_dict() and load_state_dict(), a random generator, a tensor, a writable array, "
            "a dict or a list"
        )


def saved(value: Any) -> Any:
    """Returns a copy of the value's state."""
    if hasattr(value, "state_dict"):
        return copy.deepcopy(value.state_dict())
    if isinstance(value, random.Random):
        return value.getstate()
    if hasattr(value, "bit_generator"):
        return copy.deepcopy(value.bit_generator.state)
    if _is_generator(value):
        return value.get_state()
    if hasattr(value, "copy_"):
        return value.detach().clone()
    return copy.deepcopy(value)


def restore(name: str, value: Any, state: Any) -> None:
    """Gives the value the state that `saved` returned, in place."""
    try:
        if hasattr(value, "load_state_dict"):
            value.load_state_dict(state)
        elif isinstance(value, random.Random):
            version, words, following = state
            value.setstate((version, tuple(words), following))
        elif hasattr(value, "bit_generator"):
            value.bit_generator.state = state
        elif _is_generator(value):
            value.set_state(state)
        elif hasattr(value, "copy_"):
            value.detach().copy_(state)
        elif isinstance(value, dict):
            value.clear()
            value.update(state)
        elif isinstance(value, list):
            value[:] = state
        else:
            value[...] = state
    except Exception as error:  # The program's own load_state_dict may raise anything.
        raise invalid(f"state: {name} does not fit what an earlier start of the group kept: {error}") from error


def generators() -> Dict[str, Any]:
    """The state of Python's random generator, and of numpy's if the program uses it, as plain numbers."""
    states: Dict[str, Any] = {"python": random.getstate()}
    if _numpy() is not None:
        kind, keys, *rest = _numpy().random.get_state()
        states["numpy"] = (kind, keys.tolist(), *rest)
    return states


def set_generators(states: Dict[str, Any]) -> None:
    version, words, following = states["python"]
    random.setstate((version, tuple(words), following))
    if "numpy" in states and _numpy() is not None:
        kind, keys, *rest = states["numpy"]
        _numpy().random.set_state((kind, _numpy().array(keys, dtype="uint32"), *rest))


class Objects:
    """The objects that the program gave to job.state(), by name.

    Random generators are returned apart from the rest, because a job may have to save them earlier: loading the next batch changes them.
    """

    def __init__(self):
        self._objects: Dict[str, Any] = {}
        self._waiting: Dict[str, Any] = {}  # States of an earlier start that no object has taken yet.

    def add(self, objects: Dict[str, Any]) -> None:
        for name, value in objects.items():
            check(name, value)
            if name in self._objects:
                raise invalid(f"state: {name} was given before")
            self._objects[name] = value
            if name in self._waiting:
                restore(name, value, self._waiting.pop(name))

    def generators(self) -> Dict[str, Any]:
        return {name: saved(value) for name, value in self._objects.items() if _is_generator(value)}

    def others(self) -> Dict[str, Any]:
        return {name: saved(value) for name, value in self._objects.items() if not _is_generator(value)}

    def set(self, states: Dict[str, Any]) -> None:
        for name, state in states.items():
            if name in self._objects:
                restore(name, self._objects[name], state)
            else:
                self._waiting[name] = state
