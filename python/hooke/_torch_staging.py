"""Models on a device: how their gradients, buffers and values get into the job's memory, which is the host's, and back.

The library combines and exchanges values in host memory. Gradients and buffers of a device lie side by side in flat
tensors there, so that few copies move them. Each copy begins when all of its gradients are written, and the ranks
combine them when it has ended, while backward goes on. Parameters stay where they are on the device.
"""

import collections
import contextlib
import threading
from typing import Any, Iterable, List, NamedTuple, Sequence, Tuple

import torch

from hooke._native import Native, misuse

# A copy moves at most this many bytes of gradients, unless one gradient is larger. Much smaller copies would cost more
# than they move.
PIECE_BYTES = 4 << 20
_PAGE = 4096

Pair = Tuple[torch.Tensor, torch.Tensor]  # A tensor in the job's memory, and the one on the device.


def is_staged(tensor: torch.Tensor) -> bool:
    """Whether the program computes with the tensor in other memory than the job's."""
    return tensor.device.type != "cpu"


class Place(NamedTuple):
    """Where a tensor lies in the job's memory. Tensors of different keys do not travel together."""

    address: int
    size: int  # Bytes.
    key: Any


def runs(places: Sequence[Place], size_max: int) -> List[List[int]]:
    """Groups places that lie side by side, from the last to the first, as backward completes gradients.

    Returns the indices of each group in ascending order. A group has at most `size_max` bytes, unless it is one place.
    The groups come in the order in which they are complete.
    """
    groups, begin, size = [], {}, {}
    newest = {}  # For each key the group that was made last, which may still grow.
    for index in range(len(places) - 1, -1, -1):
        place = places[index]
        key = place.key
        if key in newest and place.address + place.size == begin[key] and size[key] + place.size <= size_max:
            newest[key].append(index)
            size[key] += place.size
        else:
            newest[key] = [index]
            groups.append(newest[key])
            size[key] = place.size
        begin[key] = place.address
    return sorted(([*reversed(group)] for group in groups), key=lambda group: -group[0])


def pages(spans: Iterable[Tuple[int, int]]) -> List[Tuple[int, int]]:
    """Joins spans, each (address, bytes), that share a page or meet: a page can be pinned once."""
    joined = []
    for address, size in sorted(spans):
        if joined and address // _PAGE <= (joined[-1][0] + joined[-1][1]) // _PAGE:
            joined[-1][1] = max(joined[-1][1], address + size - joined[-1][0])
        else:
            joined.append([address, size])
    return [(address, size) for address, size in joined]


class Copies:
    """Copies between a device and the job's memory. This class waits for each copy, which is right on every device of torch."""

    def writer(self) -> Any:
        """Returns what writes to the device at this moment, in this thread. to_job() waits for it."""
        return None

    def to_job(self, pairs: Sequence[Pair], writers: Iterable[Any]) -> Any:
        """Begins to copy from the device. Returns what has_come() and wait() want."""
        for host, values in pairs:
            host.copy_(values)

    def has_come(self, copy: Any) -> bool:
        return True

    def wait(self, copy: Any) -> None:
        pass

    def from_job(self, pairs: Sequence[Pair]) -> None:
        """Copies to the device. Later work of this thread on the device sees the values. The job's memory must not change before finish() has returned."""
        for host, values in pairs:
            values.copy_(host)

    def finish(self) -> None:
        """Waits for all of from_job(), so that the job's memory may change."""

    def pin(self, spans: Iterable[Tuple[int, int]]) -> bool:
        """Makes copies of the job's memory faster, if it can, for all devices of its kind."""
        return False

    def unpin(self) -> None:
        pass


class CudaCopies(Copies):
    """Copies from a CUDA device beside its other work, on a stream of their own, and to it on the program's stream."""

    def __init__(self, device: torch.device):
        self._device = device
        self._stream = torch.cuda.Stream(device)
        self._pinned: List[int] = []

    def writer(self) -> Any:
        return torch.cuda.current_stream(self._device)

    def to_job(self, pairs: Sequence[Pair], writers: Iterable[Any]) -> Any:
        for stream in writers:
            self._stream.wait_stream(stream)
        copied = torch.cuda.Event(blocking=True)  # wait() then leaves the core to the ranks' collectives.
        with torch.cuda.stream(self._stream):
            for host, values in pairs:
                host.copy_(values, non_blocking=True)
            copied.record(self._stream)
        return copied

    def has_come(self, copy: Any) -> bool:
        return copy.query()

    def wait(self, copy: Any) -> None:
        copy.synchronize()

    def from_job(self, pairs: Sequence[Pair]) -> None:
        for host, values in pairs:
            values.copy_(host, non_blocking=True)

    def finish(self) -> None:
        torch.cuda.current_stream(self._device).synchronize()

    def pin(self, spans: Iterable[Tuple[int, int]]) -> bool:
        # Memory that cannot be pinned is copied more slowly, and not beside other work.
        for address, size in pages(spans):
            portable = 1
            if int(torch.cuda.cudart().cudaHostRegister(address, size, portable)) == 0:
                self._pinned.append(address)
            else:
                with contextlib.suppress(RuntimeError):
                    torch.zeros(1, device=self._device)  # Takes the error off CUDA's record; else the program's next kernel would raise it.
        return True

    def unpin(self) -> None:
        torch.cuda.synchronize(self._device)
        for address in self._pinned:
            torch.cuda.cudart().cudaHostUnregister(address)
        self._pinned.clear()


def copies_for(device: torch.device) -> Copies:
    return CudaCopies(device) if device.type == "cuda" else Copies()


def _copy_to_job(moves: Iterable[Tuple[Copies, Sequence[Pair]]]) -> None:
    """Copies the pairs from the device as it is now. All copies are under way before the first one is waited for."""
    under_way = [(copies, copies.to_job(pairs, [copies.writer()])) for copies, pairs in moves]
    for copies, copy in under_way:
        copies.wait(copy)


class Piece:
    """Gradients, or buffers, that travel between a device and the job's memory by one copy."""

    def __init__(self, copies: Copies, pair: Pair, parameters: Sequence[int] = ()):
        self.copies, self.pair = copies, pair
        self.parameters = parameters
        self.reset()

    def reset(self) -> None:
        self.missing = set(self.parameters)
        self.writers = set()
        self.sent = False
        self.copy = None

    def send(self) -> None:
        self.sent = True
        self.copy = self.copies.to_job([self.pair], self.writers)


class Staging:
    """The gradients and buffers of a step, on their way between devices and the job's memory.

    Each device has a thread for its part of the backward pass; the library takes one call at a time.
    """

    def __init__(self, native: Native):
        self._native = native
        self._copies = {}  # The Copies of each device.
        self._pieces: List[Piece] = []
        self._piece_of = {}  # The piece of each parameter's gradient, by the parameter's index.
        self._values: List[Tuple[torch.Tensor, torch.Tensor]] = []
        self._under_way = collections.deque()
        self._lock = threading.Lock()

    devices = property(lambda self: list(self._copies), doc="The devices with tensors of the model.")

    def add_values(self, host: torch.Tensor, parameter: torch.Tensor) -> None:
        """Adds a parameter, whose values the library exchanges."""
        self._copies_of(parameter.device)
        self._values.append((host, parameter))

    def add_piece(self, host: torch.Tensor, device: torch.device, parameters: Sequence[int] = ()) -> torch.Tensor:
        """Adds a part of the job's memory that holds gradients of these parameters, or buffers. Returns memory of the same size and type on the device,
        with the same values.
        """
        values = torch.zeros(host.numel(), dtype=host.dtype, device=device)
        values.copy_(host)
        piece = Piece(self._copies_of(device), (host, values), parameters)
        self._pieces.append(piece)
        self._piece_of.update({index: piece for index in parameters})
        return values

    def _copies_of(self, device: torch.device) -> Copies:
        if device not in self._copies:
            self._copies[device] = copies_for(device)
        return self._copies[device]

    def pin(self, values: bool) -> None:
        """Pins the memory of the job that was added; that of parameters only with `values`."""
        pairs = [piece.pair for piece in self._pieces] + (self._values if values else [])
        spans = [(host.data_ptr(), host.numel() * host.element_size()) for host, _ in pairs]
        any(copies.pin(spans) for copies in self._copies.values())

    # ---- Gradients and buffers, in each step ----

    def gradient_ready(self, index: int) -> None:
        """A parameter's gradient is complete. With the last one of its piece, the piece begins to travel."""
        piece = self._piece_of.get(index)
        if piece is None:
            with self._lock:
                self._native.gradient_ready(index)
            return
        if index not in piece.missing:
            raise misuse("a gradient was computed in several parts: use torch.utils.checkpoint with use_reentrant=False")
        piece.missing.discard(index)
        piece.writers.add(piece.copies.writer())
        if not piece.missing:
            piece.send()
            self._under_way.append(piece)
            if self._lock.acquire(blocking=False):
                try:
                    self._hand_over(wait=False)
                finally:
                    self._lock.release()

    def _hand_over(self, wait: bool) -> None:
        """Gives the library the gradients that have come, in the order in which they were sent."""
        while self._under_way:
            piece = self._under_way[0]
            if wait:
                piece.copies.wait(piece.copy)
            elif not piece.copies.has_come(piece.copy):
                return
            self._under_way.popleft()
            for index in reversed(piece.parameters):
                self._native.gradient_ready(index)

    def gather(self) -> None:
        """After backward: returns when all gradients and buffers are in the job's memory."""
        rest = [piece for piece in self._pieces if not piece.sent]
        for piece in rest:
            piece.writers.add(piece.copies.writer())
            piece.send()
        with self._lock:
            self._hand_over(wait=True)
        for piece in rest:
            piece.copies.wait(piece.copy)

    def scatter(self) -> None:
        """After the ranks have combined them, brings gradients and buffers back."""
        for piece in self._pieces:
            piece.copies.from_job([piece.pair])
            piece.reset()

    def gradients_to_job(self) -> None:
        """Copies the gradients into the job's memory, as the program has them now."""
        _copy_to_job((piece.copies, [piece.pair]) for piece in self._pieces if piece.parameters)

    # ---- Values, for an exchange ----

    def _pairs(self, device: torch.device) -> List[Pair]:
        buffers = [piece.pair for piece in self._pieces if not piece.parameters]
        return [(host, values.data) for host, values in self._values + buffers if values.device == device]

    def values_to_job(self) -> None:
        """Copies parameters and buffers into the job's memory."""
        _copy_to_job((copies, self._pairs(device)) for device, copies in self._copies.items())

    def values_from_job(self) -> None:
        """Copies parameters and buffers out of the job's memory."""
        for device, copies in self._copies.items():
            copies.from_job(self._pairs(device))
            copies.finish()

    def close(self) -> None:
        """Called before the job's memory is freed."""
        for copies in self._copies.values():
            copies.finish()
            copies.unpin()
