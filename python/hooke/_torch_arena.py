"""A model whose parameters, gradients and float buffers are views of the job's memory."""

import ctypes
from typing import Any, Callable, Iterable, List, NamedTuple, Tuple

import torch

from hooke import _torch_staging
from hooke._native import BUFFER, PARAMETER, TRAINED, Native, Tensor, invalid, misuse


def at(address: int, shape: Tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Returns a tensor on the values at an address."""
    size = dtype.itemsize if hasattr(dtype, "itemsize") else torch.empty(0, dtype=dtype).element_size()
    for extent in shape:
        size *= extent
    return torch.frombuffer((ctypes.c_char * size).from_address(address), dtype=dtype).view(shape)


class Slot(NamedTuple):
    """A parameter's place. While training, `parameter.grad` is `gradient`, or None if no rank used the parameter.

    The gradient is a part of `flat`, from the value number `first` on. Without travelling gradients these are None.
    """

    name: str
    parameter: torch.nn.Parameter
    address: int
    gradient: Any = None
    flat: Any = None
    first: int = 0


class BufferSlot(NamedTuple):
    """A buffer's place, and the module that holds it as `module._buffers[key]`."""

    name: str
    module: torch.nn.Module
    key: str
    view: torch.Tensor


def check_tensor(kind: str, name: str, tensor: torch.Tensor) -> None:
    if tensor.device.type == "meta":
        raise invalid(f"{kind} {name} is on meta: it has no values; move the model with model.to_empty(device=...) and initialize it before wrap()")
    if tensor.layout != torch.strided:
        raise invalid(f"{kind} {name} is {tensor.layout}: Hooke takes dense tensors")
    if type_of(tensor) not in TRAINED:
        raise invalid(f"{kind} {name} is {tensor.dtype}: Hooke trains {', '.join(TRAINED)}; call model.float() or model.bfloat16() before wrap()")


def type_of(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).replace("torch.", "")


def by_bytes(tensor: torch.Tensor, broadcast: Callable[[torch.Tensor], Any]) -> None:
    """Broadcasts values of a type that the collectives do not know, such as bool. They travel as integers."""
    values = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().view(-1).view(torch.uint8)
    padded = torch.zeros(-(-values.numel() // 4) * 4, dtype=torch.uint8)
    padded[: values.numel()] = values
    broadcast(padded.view(torch.int32))
    tensor.detach().copy_(padded[: values.numel()].view(tensor.dtype).view(tensor.shape))


def buffers_to_register(model: torch.nn.Module) -> List[Tuple[str, torch.nn.Module, str]]:
    """Returns (name, module, key) of each float buffer that is part of the model's state, shared ones once. Counters stay each rank's own."""
    found, seen = [], set()
    for path, module in model.named_modules():
        for key, buffer in module._buffers.items():
            if buffer is None or key in module._non_persistent_buffers_set or id(buffer) in seen:
                continue
            seen.add(id(buffer))
            if buffer.is_floating_point() and buffer.numel():
                name = (f"{path}.{key}" if path else key).replace("_orig_mod.", "")
                check_tensor("buffer", name, buffer)
                found.append((name, module, key))
    return found


class Arena:
    """Registers a model's tensors, and makes them views of the job's memory.

    Tensors on a device cannot be. There gradients and buffers are views of flat tensors of their own, and parameters stay
    where they are (_torch_staging.py).

    If gradients do not travel, since the group has one rank and sends no gradients, they stay the program's own: autograd
    then need not add into memory that was zeroed.
    """

    def __init__(self, native: Native, model: torch.nn.Module, gradients_travel: bool, exchanges: bool):
        # Tied parameters come once, and a tensor without values needs no place.
        # torch.compile puts a prefix before each name.
        parameters = [(name.replace("_orig_mod.", ""), p) for name, p in model.named_parameters() if p.requires_grad and p.numel()]
        if not parameters:
            raise invalid("the model has no parameter that requires a gradient")
        for name, parameter in parameters:
            check_tensor("parameter", name, parameter)
        buffers = buffers_to_register(model)
        # Holds the values until the library has copied them.
        values = [p.detach().cpu().contiguous() for _, p in parameters] + [module._buffers[key].cpu().contiguous() for _, module, key in buffers]
        names = [name for name, _ in parameters] + [name for name, _, _ in buffers]
        kinds = [PARAMETER] * len(parameters) + [BUFFER] * len(buffers)
        placed = native.register(
            [Tensor(name, tuple(value.shape), kind, value.data_ptr(), type_of(value)) for name, value, kind in zip(names, values, kinds)]
        )
        staging = _torch_staging.Staging(native)
        self.gradients_travel = gradients_travel
        self.slots = [self._place(name, p, t, staging) for (name, p), t in zip(parameters, placed)]
        self.buffers = self._place_buffers(buffers, placed[len(parameters) :], staging)
        if gradients_travel:
            self._place_gradients(placed, staging)
        # None if no tensor has to be copied, because all of them are in the job's memory.
        self.staging = staging if staging.devices else None
        if self.staging:
            staging.pin(values=exchanges)
        self.index = {id(slot.parameter): index for index, slot in enumerate(self.slots)}
        # For each parameter 1 if it has a gradient on this rank, where without Hooke .grad would not be None. After combining: 1 if it has one on any rank.
        self.used = (ctypes.c_uint8 * len(self.slots))()
        self._runs = {}
        self._held_buffers = [slot.module._buffers[slot.key] for slot in self.buffers]
        self._where = [slot.parameter.data_ptr for slot in self.slots]
        self._addresses = [slot.address for slot in self.slots]

    def _place(self, name: str, parameter: torch.nn.Parameter, placed: Tensor, staging: _torch_staging.Staging) -> Slot:
        view = at(placed.values, placed.shape, parameter.dtype)
        if not _torch_staging.is_staged(parameter):
            parameter.data = view
        else:
            staging.add_values(view, parameter)
            if not parameter.is_contiguous():
                # Fused optimizers want parameters and gradients laid out alike.
                parameter.data = parameter.data.contiguous()
        return Slot(name, parameter, parameter.data_ptr())

    def _place_gradients(self, placed: List[Tensor], staging: _torch_staging.Staging) -> None:
        parameters = [slot.parameter for slot in self.slots]
        for run, flat in self._flats(parameters, [t.gradient for t in placed], staging, gradients=True):
            first = 0
            for index in run:
                slot, count = self.slots[index], parameters[index].numel()
                gradient = flat[first : first + count].view(slot.parameter.shape)
                self.slots[index] = slot._replace(gradient=gradient, flat=flat, first=first)
                slot.parameter.grad = gradient
                first += count

    def _place_buffers(self, buffers, placed: List[Tensor], staging: _torch_staging.Staging) -> List[BufferSlot]:
        tensors = [module._buffers[key] for _, module, key in buffers]
        slots = {}
        for run, flat in self._flats(tensors, [t.values for t in placed], staging, gradients=False):
            first = 0
            for index in run:
                name, module, key = buffers[index]
                view = flat[first : first + tensors[index].numel()].view(tensors[index].shape)
                # Assigns `data` instead of replacing the buffer, so that all modules that share it go on sharing it.
                tensors[index].data = view
                slots[index] = BufferSlot(name, module, key, view)
                first += tensors[index].numel()
        return [slots[index] for index in range(len(buffers))]

    def _flats(self, tensors, addresses: List[int], staging: _torch_staging.Staging, gradients: bool):
        """Yields each run of tensors that lie side by side, as their indices, and a flat tensor for it where the program computes."""
        places = []
        for tensor, address in zip(tensors, addresses):
            staged = _torch_staging.is_staged(tensor)
            places.append(_torch_staging.Place(address, tensor.numel() * tensor.element_size(), (tensor.dtype, tensor.device, staged)))
        # Runs are limited in size only if gradients are copied.
        limit = _torch_staging.PIECE_BYTES if gradients and any(place.key[2] for place in places) else 1 << 62
        for run in _torch_staging.runs(places, limit):
            dtype, device, staged = places[run[0]].key
            host = at(places[run[0]].address, (sum(tensors[index].numel() for index in run),), dtype)
            yield run, staging.add_piece(host, device, run if gradients else ()) if staged else host

    def adopt_gradient(self, index: int) -> None:
        """Puts the view of the gradient back where the program or autograd has put another tensor in its place."""
        slot = self.slots[index]
        gradient = slot.parameter.grad
        if gradient is slot.gradient:
            return
        if gradient is None:
            slot.gradient.zero_()
            self.used[index] = 0
        else:
            slot.gradient.copy_(gradient.detach() if gradient.layout == torch.strided else gradient.to_dense())
        slot.parameter.grad = slot.gradient

    def check_places(self) -> None:
        # This runs in each step. One comparison of lists costs half as much as one for each parameter.
        if [where() for where in self._where] == self._addresses:
            return
        for slot in self.slots:
            if slot.parameter.data_ptr() != slot.address:
                raise misuse(
                    f"parameter {slot.name} was moved after wrap(): call model.to(), model.half() and the like before wrap(), and "
                    "load_state_dict without assign=True"
                )

    def gather(self) -> None:
        """Makes sure that parameters, gradients and buffers are in the job's memory, before the ranks combine them."""
        self.check_places()
        if self.gradients_travel:
            for index, slot in enumerate(self.slots):
                if slot.parameter.grad is not slot.gradient:
                    self.adopt_gradient(index)
        for index, slot in enumerate(self.buffers):
            buffer = slot.module._buffers[slot.key]
            if buffer.data_ptr() == slot.view.data_ptr():
                continue
            if buffer.dtype != slot.view.dtype or buffer.shape != slot.view.shape or buffer.device != slot.view.device:
                raise misuse(f"buffer {slot.name} was moved or has another type or shape than at wrap(): call model.to() and model.half() before wrap()")
            slot.view.copy_(buffer)
            buffer.data = slot.view
            self._held_buffers[index] = buffer
        if self.staging and self.gradients_travel:
            self.staging.gather()

    def scatter(self) -> None:
        """After combining: what the ranks have combined goes to where the program computes.

        A parameter that no rank used has no gradient, so that the optimizer leaves it alone.
        """
        if not self.gradients_travel:
            return
        if self.staging:
            self.staging.scatter()
        if 0 not in bytes(self.used):
            return  # Since gather(), every parameter has its view.
        for slot, used in zip(self.slots, self.used):
            slot.parameter.grad = slot.gradient if used else None

    def indices(self, optimizer: torch.optim.Optimizer) -> List[int]:
        """Returns the places of the optimizer's parameters."""
        return [self.index[id(p)] for group in optimizer.param_groups for p in group["params"] if id(p) in self.index]

    def zero_gradients(self, indices: Iterable[int], set_to_none: bool) -> None:
        """Does for the optimizer's gradients what its own zero_grad would do.

        With `set_to_none`, autograd makes each gradient anew, and adopt_gradient copies it. That touches less memory than to zero the view and
        to add to it. Without, gradients that lie side by side are zeroed in one go, and still count as computed.
        """
        if set_to_none:
            for index in indices:
                self.used[index] = 0
                self.slots[index].parameter.grad = None
            return
        indices = tuple(sorted(indices))
        if indices not in self._runs:
            self._runs[indices] = self._join(indices)
        for run in self._runs[indices]:
            run.zero_()
        for index in indices:
            self.slots[index].parameter.grad = self.slots[index].gradient

    def _join(self, indices: Iterable[int]) -> List[torch.Tensor]:
        runs = []  # Each is [flat tensor, first value, values].
        for slot in sorted((self.slots[index] for index in indices), key=lambda slot: (id(slot.flat), slot.first)):
            count = slot.gradient.numel()
            if runs and runs[-1][0] is slot.flat and runs[-1][1] + runs[-1][2] == slot.first:
                runs[-1][2] += count
            else:
                runs.append([slot.flat, slot.first, count])
        return [flat[first : first + count] for flat, first, count in runs]

    def give_back(self) -> None:
        """Moves parameters and buffers out of the job's memory, so that the model outlives it."""
        if self.staging:
            # Leaving the job may still send them.
            self.staging.values_to_job()
            self.staging.close()
            self.staging = None
        for slot in self.slots:
            if slot.parameter.data_ptr() == slot.address and not _torch_staging.is_staged(slot.parameter):
                slot.parameter.data = slot.parameter.data.clone()
            if slot.gradient is not None and slot.parameter.grad is slot.gradient:
                slot.parameter.grad = None
        for slot, held in zip(self.buffers, self._held_buffers):
            if held.data_ptr() == slot.view.data_ptr():
                held.data = held.data.clone()
