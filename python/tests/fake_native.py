"""A stand-in for hooke._native.Native: a job of one rank in this process, which notes its calls. A test sets what other
ranks would add."""

import ctypes
import math
import os

from hooke._native import PARAMETER, Place

PLACE = Place(
    job="", group=0, groups=1, rank=0, ranks=1, incarnation=1, has_servers=False, steps_locally=True, sends_gradients=False, seed=7, rule="none", ranks_before=0, ranks_of_all=0
)


class FakeNative:
    def __init__(self, first_step=0, earlier=(), generation_step=0, **place):
        self.calls = []
        self.earlier = (list(earlier), generation_step)
        first_step = max(first_step, generation_step)
        self.first_step = self.steps = first_step
        self.used = None  # If set: the used flags of another rank.
        self.on_combine = None  # If set: called in each combine with (address of gradient, count) of all parameters.
        self.server_away = False
        self.notices, self.evaluations, self.losses, self.plan = [], [], [], None
        self.metrics, self.metrics_of_evaluations = {}, []
        self.stops_at = math.inf  # After so many steps another group has stopped the job.
        place = PLACE._replace(**place)
        if not place.ranks_of_all:  # All groups are alike.
            place = place._replace(ranks_before=place.group * place.ranks, ranks_of_all=place.groups * place.ranks)
        self._place = place
        self._memory = []
        self._pid = os.getpid()
        self.tensors = []
        self.values_due_after = None  # The steps after which values are due; None: after every step.
        self.on_gradients = None  # If set: called in each end_step with (address, count) of the gradients, which servers may get.
        self.on_values = None  # If set: called while the library has the values, with (address, count) of all tensors.
        self.due_after = set()  # The steps after which a state is due.
        self.saved = {}  # The saved states. The key is the step.
        self.kept = None  # The state that an earlier start of the group has left: (state, step).

    def in_own_process(self):
        return os.getpid() == self._pid

    def place(self):
        return self._place

    def earlier_generations(self):
        return self.earlier

    def register(self, tensors):
        """Puts values and gradients into one block each, without gaps."""
        sizes = [math.prod(tensor.shape) * (4 if tensor.type == "float32" else 2) for tensor in tensors]
        values = (ctypes.c_char * sum(sizes))()
        gradients = (ctypes.c_char * sum(sizes))()
        self._memory += [values, gradients]
        offset = 0
        for tensor, size in zip(tensors, sizes):
            to, gradient = ctypes.addressof(values) + offset, ctypes.addressof(gradients) + offset
            ctypes.memmove(to, tensor.values, size)
            self.tensors.append(tensor._replace(values=to, gradient=gradient if tensor.kind == PARAMETER else 0))
            offset += size
        self.calls.append("register")
        return self.tensors

    def begin(self, steps_total, steps_per_epoch, epochs_done):
        self.calls.append("begin")
        self.epochs_done = epochs_done
        self.plan = (steps_total, steps_per_epoch)
        self._see_values()
        return self.first_step

    def gradient_ready(self, index):
        self.calls.append(f"ready {index}")

    def combine(self, loss, used=None):
        self.calls.append("combine")
        self.losses.append(loss)
        if self.on_combine:
            self.on_combine([(tensor.gradient, math.prod(tensor.shape)) for tensor in self.tensors if tensor.kind == PARAMETER])
        for index, value in enumerate(self.used or []):
            used[index] |= value
        return loss

    def end_step(self, samples, epoch):
        self.calls.append("end_step")
        self.samples = samples
        if self.on_gradients:
            self.on_gradients([(tensor.gradient, math.prod(tensor.shape)) for tensor in self.tensors if tensor.kind == PARAMETER])
        self.steps += 1
        if self.values_due_after is None or self.steps in self.values_due_after:
            self._see_values()
        return self.steps

    def values_due(self):
        return self.values_due_after is None or self.steps + 1 in self.values_due_after

    def _see_values(self):
        if self.on_values:
            self.on_values([(tensor.values, math.prod(tensor.shape)) for tensor in self.tensors])

    def state_due(self):
        return self.steps in self.due_after and self.steps not in self.saved

    def save_state(self, state):
        assert self.state_due()
        self.saved[self.steps] = state

    def saved_state(self):
        return self.kept

    def with_center(self, work):
        self.calls.append("with_center")
        if not self.server_away:
            self._see_values()
            work()

    def evaluated(self, accuracy, loss, samples, metrics):
        self.evaluations.append((accuracy, loss, samples))
        self.metrics_of_evaluations.append(metrics)

    def report_metrics(self, metrics):
        self.metrics.update(metrics)

    def stop(self):
        self.calls.append("stop")

    def stopping(self):
        return self.steps >= self.stops_at

    def all_reduce(self, address, count, kind, reduction):
        self.calls.append(f"all_reduce {count} {kind} {reduction}")

    def broadcast(self, address, count, kind, root):
        self.calls.append(f"broadcast {count} {kind} {root}")

    def all_gather(self, address, count, kind):
        self.calls.append(f"all_gather {count} {kind}")

    def barrier(self):
        self.calls.append("barrier")

    def notice(self, text):
        self.notices.append(text)

    def finish(self):
        self.calls.append("finish")

    def leave(self):
        self.calls.append("leave")
        for block in self._memory:
            ctypes.memset(block, 0xFF, ctypes.sizeof(block))  # The memory is NaN from now on. So a test notices a tensor that still uses it.

    def fail(self, code, message):
        self.calls.append(f"fail {int(code)} {message}")
