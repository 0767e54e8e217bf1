"""The state of a PyTorch program besides its parameters, as bytes that the servers keep for a restart."""

import copy
import ctypes
import io
import pickle
import warnings
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


def _options(optimizer: torch.optim.Optimizer) -> List[Dict[str, Any]]:
    """Returns the options of each parameter group, such as the learning rate, which schedulers change."""
    return [{key: copy.deepcopy(value) for key, value in group.items() if key != "params"} for group in optimizer.param_groups]


class Schedulers:
    """The learning-rate schedulers that job.advance() got, in its order.

    Each has to be stepped as often as the group has made steps, or epochs. One that steps by a measure of the program's
    own, such as ReduceLROnPlateau, is never stepped here.
    """

    def __init__(self):
        self._all: List[Any] = []  # (scheduler, per, its optimizer's options when it came)
        self._new = 0  # Schedulers before this index have been stepped to where the group is.
        self._states: List[Any] = []
        self._at_states = {"step": 0, "epoch": 0}  # How often the per-step and the per-epoch schedulers had been stepped when `_states` was saved.
        self._anew = False  # The states are of an earlier generation, or of a later step than the one at which the group goes on.

    def add(self, scheduler, per: str) -> None:
        optimizer = getattr(scheduler, "optimizer", None)
        self._all.append((scheduler, per, _options(optimizer) if optimizer else []))

    def saved(self) -> List[Any]:
        return [scheduler.state_dict() for scheduler, _, _ in self._all]

    def set(self, states: List[Any], steps: int, epochs: int) -> None:
        """Takes the states of an earlier start, as they were after so many steps and epochs."""
        self._states, self._at_states = states, {"step": steps, "epoch": epochs}

    def begin_anew(self, states: List[Any]) -> None:
        """Takes states that are of no step before this start: schedulers cannot go back, and those of an earlier generation
        have the length that training had for the groups of that time.

        So schedulers begin anew, as they do in a new group, and the options of their optimizers, too. Only one that
        steps by a measure goes on with its state, and with the options that the optimizer has restored.
        """
        self._states, self._anew = states, True
        by_measure = [scheduler.optimizer for scheduler, _, _ in self._all if _by_measure(scheduler)]
        for scheduler, _, options in reversed(self._all):  # If several schedulers have one optimizer, the options that the first of them saw count.
            if options and not any(scheduler.optimizer is optimizer for optimizer in by_measure):
                for group, values in zip(scheduler.optimizer.param_groups, options):
                    group.update(copy.deepcopy(values))

    def catch_up(self, steps: int, epochs: int) -> None:
        """Brings new schedulers to where the group goes on: by their state, if there is one of a step before, and by stepping."""
        if not self._anew and self._at_states["step"] > steps:  # A server went back to its snapshot.
            self.begin_anew(self._states)
        for index in range(self._new, len(self._all)):
            scheduler, per, _ = self._all[index]
            behind = {"step": steps, "epoch": epochs}[per]
            if _by_measure(scheduler):
                behind = 0
                if index < len(self._states):
                    scheduler.load_state_dict(self._states[index])
            elif index < len(self._states) and not self._anew:
                scheduler.load_state_dict(self._states[index])
                behind -= self._at_states[per]
            _step(scheduler, behind)
        self._new = len(self._all)

    def step_epochs(self, count: int) -> None:
        """Steps the schedulers per epoch for epochs that the program does not see."""
        for scheduler, per, _ in self._all:
            if per == "epoch" and not _by_measure(scheduler):
                _step(scheduler, count)


def _by_measure(scheduler) -> bool:
    return isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)


def _step(scheduler, count: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The optimizer has not stepped yet in this start.
        for _ in range(count):
            scheduler.step()
