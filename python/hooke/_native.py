"""The C interface of libhooke.so (worker/api/hooke.h) as Python calls. An error of the library becomes a hooke.Error."""

import contextlib
import ctypes
import enum
import os
import pathlib
import re
from typing import Callable, List, Mapping, NamedTuple, Optional, Tuple

from hooke._division import Generation, Share

API_VERSION = 7
HOST = -1
PARAMETER, BUFFER = 0, 1
TYPES = {"float32": 0, "float64": 1, "bfloat16": 2, "float16": 3, "int32": 4, "int64": 5}
TRAINED = ("float32", "bfloat16", "float16")  # Types of parameters and buffers.
REDUCTIONS = {"sum": 0, "mean": 1, "min": 2, "max": 3}
LIBRARY = "libhooke.so"
HERE = pathlib.Path(__file__).resolve().parent


class Code(enum.IntEnum):
    """What kind of error it is. The numbers are those of gRPC's status codes."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16

    @classmethod
    def _missing_(cls, value):
        return cls.UNKNOWN


class Error(RuntimeError):
    """What went wrong and what to do about it. `code` is a hooke.Code, `message` the text."""

    __module__ = "hooke"  # Programs know it as hooke.Error, and tracebacks call it so.

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = Code(code)
        self.message = message

    def __reduce__(self):
        return Error, (self.code, self.message)


def misuse(message: str) -> Error:
    """The error of a call that came at the wrong time."""
    return Error(Code.FAILED_PRECONDITION, message)


def invalid(message: str) -> Error:
    """The error of an argument that cannot be used."""
    return Error(Code.INVALID_ARGUMENT, message)


class Place(NamedTuple):
    """Where this rank is in its job."""

    job: str
    group: int
    groups: int
    rank: int
    ranks: int
    incarnation: int
    has_servers: bool
    steps_locally: bool
    sends_gradients: bool
    seed: int
    rule: str
    ranks_before: int
    ranks_of_all: int


class Tensor(NamedTuple):
    """A tensor to register, and after that its places in memory. `type` is a name of TRAINED. `gradient` is 0 for a buffer."""

    name: str
    shape: tuple
    kind: int
    values: int
    type: str = "float32"
    gradient: int = 0


class _Place(ctypes.Structure):
    _fields_ = [
        ("job", ctypes.c_char_p),
        ("group", ctypes.c_uint32),
        ("groups", ctypes.c_uint32),
        ("rank", ctypes.c_uint32),
        ("ranks", ctypes.c_uint32),
        ("incarnation", ctypes.c_uint32),
        ("has_servers", ctypes.c_uint32),
        ("steps_locally", ctypes.c_uint32),
        ("sends_gradients", ctypes.c_uint32),
        ("seed", ctypes.c_uint64),
        ("rule", ctypes.c_char_p),
        ("ranks_before", ctypes.c_uint32),
        ("ranks_of_all", ctypes.c_uint32),
    ]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_uint64)),
        ("dimensions", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("type", ctypes.c_uint32),
        ("device", ctypes.c_int32),
        ("stream", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("gradient", ctypes.c_void_p),
    ]


class _Share(ctypes.Structure):
    _fields_ = [("ranks", ctypes.c_uint32), ("last_step", ctypes.c_uint64)]


class _Generation(ctypes.Structure):
    _fields_ = [("first_step", ctypes.c_uint64), ("groups", ctypes.c_uint32), ("shares", ctypes.POINTER(_Share))]


class _Plan(ctypes.Structure):
    _fields_ = [("steps_total", ctypes.c_uint64), ("steps_per_epoch", ctypes.c_uint64), ("epochs_done", ctypes.c_double)]


class _Step(ctypes.Structure):
    _fields_ = [("samples", ctypes.c_uint64), ("epoch", ctypes.c_double)]


class _Metric(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_double)]


class _Array(ctypes.Structure):
    _fields_ = [
        ("values", ctypes.c_void_p),
        ("count", ctypes.c_uint64),
        ("type", ctypes.c_uint32),
        ("device", ctypes.c_int32),
        ("stream", ctypes.c_void_p),
    ]


_WORK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_JOB = ctypes.c_void_p
_P = ctypes.POINTER
# Function -> types of its arguments. All of these return a hooke_code.
_ARGUMENTS = {
    "hooke_join": [ctypes.c_uint32, _P(_JOB)],
    "hooke_get_place": [_JOB, _P(_Place)],
    "hooke_earlier_generations": [_JOB, _P(_P(_Generation)), _P(ctypes.c_size_t), _P(ctypes.c_uint64)],
    "hooke_register": [_JOB, _P(_Tensor), ctypes.c_size_t],
    "hooke_begin": [_JOB, _P(_Plan), _P(ctypes.c_uint64)],
    "hooke_gradient_ready": [_JOB, ctypes.c_size_t],
    "hooke_combine": [_JOB, ctypes.c_float, _P(ctypes.c_float), _P(ctypes.c_uint8)],
    "hooke_end_step": [_JOB, _P(_Step), _P(ctypes.c_uint64)],
    "hooke_values_due": [_JOB, _P(ctypes.c_int)],
    "hooke_state_due": [_JOB, _P(ctypes.c_int)],
    "hooke_save_state": [_JOB, ctypes.c_char_p, ctypes.c_size_t],
    "hooke_saved_state": [_JOB, _P(ctypes.c_void_p), _P(ctypes.c_size_t), _P(ctypes.c_uint64)],
    "hooke_with_center": [_JOB, _WORK, ctypes.c_void_p],
    "hooke_evaluated_metrics": [_JOB, ctypes.c_double, ctypes.c_double, ctypes.c_uint64, _P(_Metric), ctypes.c_size_t],
    "hooke_report_metrics": [_JOB, _P(_Metric), ctypes.c_size_t],
    "hooke_stop": [_JOB],
    "hooke_stopping": [_JOB, _P(ctypes.c_int)],
    "hooke_all_reduce": [_JOB, _P(_Array), ctypes.c_int],
    "hooke_broadcast": [_JOB, _P(_Array), ctypes.c_uint32],
    "hooke_all_gather": [_JOB, _P(_Array)],
    "hooke_barrier": [_JOB],
    "hooke_notice": [_JOB, ctypes.c_char_p],
    "hooke_finish": [_JOB],
    "hooke_leave": [_JOB],
    "hooke_leave_at_exit": [_JOB, ctypes.c_char_p],
}


def candidates() -> List[str]:
    """Returns the places where the library is looked for, best first."""
    chosen = os.environ.get("HOOKE_LIBRARY")
    if chosen:
        return [chosen]
    built = HERE.parent.parent / "bazel-bin/worker/api" / LIBRARY
    return [str(HERE / LIBRARY), *([str(built)] if built.exists() else []), LIBRARY]


def _open(path: str) -> ctypes.CDLL:
    """Opens the library. A TensorFlow that was imported before shows its own Protocol Buffers to everybody.

    The library would call these instead of its own, and crash. So it then looks into its own libraries first. It does
    not always do that, because that would go past an allocator of LD_PRELOAD.
    """
    if not hasattr(ctypes.CDLL(None), "_ZTVN6google8protobuf7MessageE"):
        return ctypes.CDLL(path)
    _open_mpi_of(path)
    return ctypes.CDLL(path, ctypes.DEFAULT_MODE | os.RTLD_DEEPBIND)


def _open_mpi_of(path: str) -> None:
    """Opens the MPI library that the library needs, which then looks for symbols as usual.

    Many programs, as Debian's Python, have a copy of libc's `environ`. An MPI library that looks into its own libraries
    first would take libc's for the environment, and free strings that are not its own when it sets a variable.
    """
    with contextlib.suppress(OSError):
        with open(path, "rb") as file:
            for name in re.findall(rb"\0(lib(?:mpi|mpich)\.so\.[0-9]+)\0", file.read()):
                ctypes.CDLL(name.decode())


def load() -> ctypes.CDLL:
    """Loads libhooke.so and declares its functions."""
    tried = []
    for path in candidates():
        try:
            library = _open(path)
            for name, arguments in _ARGUMENTS.items():
                getattr(library, name).argtypes = arguments
                getattr(library, name).restype = ctypes.c_int
            library.hooke_message.argtypes, library.hooke_message.restype = [], ctypes.c_char_p
            library.hooke_fail.argtypes, library.hooke_fail.restype = [_JOB, ctypes.c_int, ctypes.c_char_p], None
            return library
        except (OSError, AttributeError) as error:
            tried.append(f"  {path}: {error}")
    advice = "Build it (bazel build //worker/api:libhooke.so) and set HOOKE_LIBRARY to its path, or install the package again."
    raise Error(Code.NOT_FOUND, f"{LIBRARY} cannot be loaded. Tried:\n" + "\n".join(tried) + "\n" + advice)


def _metrics(metrics: Mapping[str, float]) -> ctypes.Array:
    return (_Metric * len(metrics))(*[_Metric(name.encode(errors="replace"), value) for name, value in metrics.items()])


def _array(address: int, count: int, kind: str) -> _Array:
    """Describes values in host memory for a call of the library."""
    return _Array(address, count, TYPES[kind], HOST, None)


class Native:
    """One rank's part in its job. The calls of the library may raise hooke.Error. See hooke.h for what each of them
    does."""

    def __init__(self):
        self._library = load()
        self._pid = os.getpid()
        self._job = _JOB()
        self._call("hooke_join", API_VERSION, ctypes.byref(self._job), job=False)
        # What the calls of each step need. It is made once and used in every call.
        self._gradient_ready = self._library.hooke_gradient_ready
        self._mean_loss = ctypes.c_float()
        self._step = ctypes.c_uint64()
        self._due = ctypes.c_int()
        self._stopping = ctypes.c_int()
        self._done = _Step()

    def in_own_process(self) -> bool:
        """False in a process that was forked from the one that joined, for instance a worker of a DataLoader."""
        return os.getpid() == self._pid

    def _call(self, name: str, *arguments, job: bool = True) -> None:
        if not self.in_own_process():
            raise misuse(f"{name} was called in process {os.getpid()}, a child of process {self._pid}, which joined the job; only that one may call Hooke")
        code = getattr(self._library, name)(*((self._job,) if job else ()), *arguments)
        if code:
            raise self._error(code)

    def _error(self, code: int) -> Error:
        return Error(code, self._library.hooke_message().decode(errors="replace"))

    def place(self) -> Place:
        place = _Place()
        self._call("hooke_get_place", ctypes.byref(place))
        values = [getattr(place, name) for name, _ in _Place._fields_]
        values = [value.decode(errors="replace") if isinstance(value, bytes) else value for value in values]
        place = Place(*values)
        return place._replace(**{name: bool(getattr(place, name)) for name in ("has_servers", "steps_locally", "sends_gradients")})

    def earlier_generations(self) -> Tuple[List[Generation], int]:
        """Returns the job's earlier generations, and the first step of the present one."""
        generations, count, first = _P(_Generation)(), ctypes.c_size_t(), ctypes.c_uint64()
        self._call("hooke_earlier_generations", ctypes.byref(generations), ctypes.byref(count), ctypes.byref(first))
        earlier = [generations[i] for i in range(count.value)]
        return [Generation(g.first_step, tuple(Share(s.ranks, s.last_step) for s in g.shares[: g.groups])) for g in earlier], first.value

    def register(self, tensors: List[Tensor]) -> List[Tensor]:
        """Returns the tensors with their new places."""
        array = (_Tensor * len(tensors))()
        for entry, tensor in zip(array, tensors):
            entry.name = tensor.name.encode()
            entry.shape = (ctypes.c_uint64 * max(1, len(tensor.shape)))(*tensor.shape)
            entry.dimensions = len(tensor.shape)
            entry.kind, entry.type, entry.device, entry.values = tensor.kind, TYPES[tensor.type], HOST, tensor.values
        self._call("hooke_register", array, len(tensors))
        return [tensor._replace(values=entry.values, gradient=entry.gradient or 0) for entry, tensor in zip(array, tensors)]

    def begin(self, steps_total: int, steps_per_epoch: int, epochs_done: float) -> int:
        first = ctypes.c_uint64()
        self._call("hooke_begin", ctypes.byref(_Plan(steps_total, steps_per_epoch, epochs_done)), ctypes.byref(first))
        return first.value

    def gradient_ready(self, index: int) -> None:
        # This runs for each parameter in each step, so it leaves out the check of _call(). The library itself refuses
        # other processes.
        code = self._gradient_ready(self._job, index)
        if code:
            raise self._error(code)

    def combine(self, loss: float, used: Optional[ctypes.Array] = None) -> float:
        self._call("hooke_combine", loss, ctypes.byref(self._mean_loss), used)
        return self._mean_loss.value

    def end_step(self, samples: int, epoch: float) -> int:
        self._done.samples, self._done.epoch = samples, epoch
        self._call("hooke_end_step", ctypes.byref(self._done), ctypes.byref(self._step))
        return self._step.value

    def values_due(self) -> bool:
        """Whether end_step() will read or change the registered values."""
        self._call("hooke_values_due", ctypes.byref(self._due))
        return bool(self._due.value)

    def state_due(self) -> bool:
        self._call("hooke_state_due", ctypes.byref(self._due))
        return bool(self._due.value)

    def save_state(self, state: bytes) -> None:
        self._call("hooke_save_state", state, len(state))

    def saved_state(self) -> Optional[Tuple[bytes, int]]:
        """Returns the state of an earlier start and its step."""
        state, size, step = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_uint64()
        self._call("hooke_saved_state", ctypes.byref(state), ctypes.byref(size), ctypes.byref(step))
        return (ctypes.string_at(state.value, size.value), step.value) if size.value else None

    def with_center(self, work: Callable[[], None]) -> None:
        """Calls `work` while the values are the center's, if all servers are there. An exception of `work` comes back from here."""
        raised = []

        def call(_):
            # An exception must not cross the C code. To the library, the work is done: it puts the values back, and the
            # group is not lost.
            try:
                work()
            except BaseException as error:
                raised.append(error)
            return 0

        self._call("hooke_with_center", _WORK(call), None)
        if raised:
            raise raised[0]

    def evaluated(self, accuracy: float, loss: float, samples: int, metrics: Mapping[str, float]) -> None:
        self._call("hooke_evaluated_metrics", accuracy, loss, samples, _metrics(metrics), len(metrics))

    def report_metrics(self, metrics: Mapping[str, float]) -> None:
        self._call("hooke_report_metrics", _metrics(metrics), len(metrics))

    def stop(self) -> None:
        self._call("hooke_stop")

    def stopping(self) -> bool:
        self._call("hooke_stopping", ctypes.byref(self._stopping))
        return bool(self._stopping.value)

    def all_reduce(self, address: int, count: int, kind: str, reduction: str) -> None:
        if reduction not in REDUCTIONS:
            raise invalid(f"reduction {reduction!r}: one of {', '.join(REDUCTIONS)}")
        self._call("hooke_all_reduce", _array(address, count, kind), REDUCTIONS[reduction])

    def broadcast(self, address: int, count: int, kind: str, root: int) -> None:
        self._call("hooke_broadcast", _array(address, count, kind), root)

    def all_gather(self, address: int, count: int, kind: str) -> None:
        self._call("hooke_all_gather", _array(address, count, kind))

    def barrier(self) -> None:
        self._call("hooke_barrier")

    def notice(self, text: str) -> None:
        self._call("hooke_notice", " ".join(text.split()).encode())

    def finish(self) -> None:
        self._call("hooke_finish")

    def leave(self) -> None:
        self._call("hooke_leave")
        self._job = _JOB()

    def leave_at_exit(self, message: Optional[str]) -> None:
        """Leaves when the process exits with status 0. If it exits with another one, the rank gives up with that message."""
        self._call("hooke_leave_at_exit", None if message is None else message.encode(errors="replace"))

    def fail(self, code: int, message: str) -> None:
        """Ends the process at once with exit status 1."""
        self._library.hooke_fail(self._job, code, message.encode(errors="replace"))
