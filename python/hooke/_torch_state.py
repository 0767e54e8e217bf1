"""The state of a PyTorch program besides its parameters, as bytes that the servers keep for a restart."""

import ctypes
import io
import pickle
from typing import Any, Dict, List, Sequence

import torch

from hooke import _state


def devices_of(model: torch.nn.Module) -> List[torch.device]:
    """Returns the devices other than the CPU that the model is on."""
    found = {tensor.device: None for tensors in (model.parameters(), model.buffers()) for tensor in tensors}
    return [device for device in found if device.type not in ("cpu", "meta")]


def _of_device(device: torch.device, name: str, *arguments):
    """Calls a function of the device's own module, such as torch.cuda. One that has a single device takes no number."""
    function = getattr(getattr(torch, device.type), name)
    return function(*arguments) if device.type == "mps" else function(*arguments, device)


def generators(devices: Sequence[torch.device]) -> Dict[str, Any]:
    """The state of the generators of torch, on these devices too, of Python and of numpy."""
    return {"torch": torch.get_rng_state(), "devices": [_of_device(device, "get_rng_state") for device in devices], **_state.generators()}


def set_generators(states: Dict[str, Any], devices: Sequence[torch.device]) -> None:
    """Takes back the states. Those of devices go to the same number of them, in their order."""
    torch.set_rng_state(states["torch"])
    for device, state in zip(devices, states.get("devices", [])):
        _of_device(device, "set_rng_state", state)
    _state.set_generators(states)


class KeepsGenerators:
    """Inside this `with`, the program's random numbers do not count: afterwards the generators are as before."""

    def __init__(self, devices: Sequence[torch.device]):
        self._devices = devices

    def __enter__(self):
        self._states = generators(self._devices)

    def __exit__(self, *_):
        set_generators(self._states, self._devices)


def own_buffers(model: torch.nn.Module, arena) -> Dict[str, torch.Tensor]:
    """Returns the buffers that are each rank's own, such as counters."""
    registered = {id(slot.module._buffers[slot.key]) for slot in arena.buffers}
    return {name: buffer for name, buffer in model.named_buffers() if id(buffer) not in registered}


def encode(state: Dict[str, Any]) -> bytes:
    memory = io.BytesIO()
    torch.save(state, memory)
    return memory.getvalue()


def decode(state: bytes, devices: Sequence[torch.device] = ()) -> Dict[str, Any]:
    """What is decoded comes from this job's own program, by way of its servers. Where torch can, it is read as plain values only.

    Tensors of a device go to one of `devices`: the same, or else the first. Without devices all go to the CPU.
    """
    places = [str(device) for device in devices]

    def place(storage, location):
        if location == "cpu" or not places:
            return storage
        return torch.serialization.default_restore_location(storage, location if location in places else places[0])

    try:
        return torch.load(io.BytesIO(state), map_location=place, weights_only=True)
    except (TypeError, RuntimeError, pickle.UnpicklingError):
        pass  # This torch has no weights_only, or the state holds an object of a class that weights_only refuses.
    try:
        return torch.load(io.BytesIO(state), map_location=place, weights_only=False)
    except TypeError:
        return torch.load(io.BytesIO(state), map_location=place)


def packed(objects: Dict[str, Any]) -> torch.Tensor:
    """The program's objects as bytes of their own: unlike an optimizer's state, they go back to their devices as they are read."""
    return torch.frombuffer(bytearray(encode(objects)), dtype=torch.uint8)


def unpacked(objects: torch.Tensor, devices: Sequence[torch.device]) -> Dict[str, Any]:
    return decode(ctypes.string_at(objects.data_ptr(), objects.numel()), devices)


class Schedulers:
    """The learning-rate schedulers that job.advance() got, in its order."""

    def __init__(self):
        self._all: List[Any] = []  # (scheduler, per)
        self._new = 0  # Those before this index are where the group is.
        self._states: List[Any] = []
        self._state_step = 0

    def add(self, scheduler, per: str) -> None:
        self._all.append((scheduler, per))

    def saved(self) -> List[Any]:
        return [scheduler.state_dict() for scheduler, _ in self._all]

    def set(self, states: List[Any], step: int) -> None:
        """Takes the states of an earlier start, which has made `step` steps by then."""
        self._states, self._state_step = states, step

    def catch_up(self, first_step: int, steps_per_epoch: int) -> None:
        """Brings new schedulers to where the group goes on: by their state, if there is one of a step before, and by stepping."""
        for index in range(self._new, len(self._all)):
            scheduler, per = self._all[index]
            steps = steps_per_epoch if per == "epoch" else 1
            behind = first_step // steps
            if index < len(self._states) and self._state_step <= first_step:
                scheduler.load_state_dict(self._states[index])
                behind -= self._state_step // steps
            for _ in range(behind):
                scheduler.step()
        self._new = len(self._all)
