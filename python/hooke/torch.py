"""Hooke for PyTorch.

    import hooke.torch as hooke
    job = hooke.init()
    model, optimizer = job.wrap(model, optimizer)
    sampler = job.sampler(train_set, batch_size=64)
    for epoch in job.epochs(10):
        for x, y in DataLoader(train_set, batch_size=64, sampler=sampler):
            loss_fn(model(x), y).backward(); optimizer.step(); optimizer.zero_grad()
        job.evaluate(lambda m: accuracy(m, test_set))

docs/your-own-script.md explains each call.
"""

import contextlib
import ctypes
import math
import os
import socket
import threading
from typing import Any, Callable, List, Union

import torch

from hooke import _job, _threads, _torch_state
from hooke._native import TYPES, Code, Error, Native, invalid, misuse
from hooke._torch_arena import Arena, by_bytes, type_of
from hooke._torch_backward import Backward
from hooke._torch_optimizer import Steps, attach_step, attach_zero_grad, check_optimizers
from hooke._torch_sampler import Sampler

__all__ = ["Code", "Error", "Job", "Sampler", "init"]

# glibc's numbers of mallopt's parameters.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def _keep_memory() -> None:
    """Makes malloc keep large blocks. Each step allocates activations of some megabytes; the kernel would zero their pages anew each time."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt and "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        mallopt(_M_MMAP_THRESHOLD, 1 << 30)
        mallopt(_M_TRIM_THRESHOLD, 1 << 30)


def init() -> "Job":
    """Joins the job: that of `hooke submit`, or the ranks that mpirun or srun started, or alone. Collective, once in a process."""
    job = Job()
    _keep_memory()
    if job.ranks > 1:
        _share_cores(job)
    return job


def _share_cores(job: "Job") -> None:
    """Gives this rank its share of the cores that it may use. Collective."""
    cores = os.sched_getaffinity(0)
    places = job.all_gather(_threads.place_of(socket.gethostname(), cores))
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(_threads.threads_of(job.rank, len(cores), places))


class _Nothing:
    """A hook that does nothing."""

    def __call__(self, module, _):
        pass


class _Begins:
    """A hook before a forward pass: training begins there, since it brings the center's values. In copies of the model it does nothing."""

    def __init__(self, job):
        self._job = job

    def __call__(self, module, _):
        if module.training:
            self._job.begin()

    def __reduce__(self):
        return _Nothing, ()


class Job(_job.Job):
    """This rank's part in the job."""

    _steps_advice = "if you accumulate gradients over n backward passes, give accumulate=n to wrap()"
    _length_advice = "give it before the first step"

    def __init__(self, native: Native = None):
        super().__init__(native)
        self._model = self._arena = None
        self._optimizers: List[torch.optim.Optimizer] = []
        self._steps = Steps()
        self._may_step = set()  # Optimizers that have not stepped since the gradients were combined.
        self._schedulers = _torch_state.Schedulers()
        self._to_keep = None  # Set while a state is due: its parts that loading the next batch would change.
        self._generators_kept = None  # The generators of the state with which this start goes on.
        self._hooks, self._forward_hooks = [], []
        self._holding = 0  # How many no_sync() the program is inside of.
        self._backwards = 0  # Backward passes since the gradients were last combined.
        self._backward = Backward()
        self._combining = False
        self._given = False  # The library has some gradients of a step, and waits for the others.
        self._begins_backward = threading.Lock()  # A backward pass over several devices has several threads.
        self._reported: Union[float, torch.Tensor] = math.nan
        self._loss_sent = False
        self._devices: List[torch.device] = []

    # ---- The model ----

    def wrap(self, model: torch.nn.Module, optimizer: Union[torch.optim.Optimizer, List[torch.optim.Optimizer]], accumulate: int = 1):
        """Moves the model into the job and lets the optimizer step with it. Collective, once. Returns its arguments.

        With `accumulate`, gradients are combined after every so many backward passes.
        """
        if self._left or self._finished:
            raise misuse("job.wrap() was called after the job had ended")
        if self._registered:
            raise misuse("job.wrap() was called before: one job trains one model; give several optimizers as a list")
        if isinstance(model, torch.nn.parallel.DistributedDataParallel):
            raise invalid("wrap the plain module instead of DistributedDataParallel: Hooke averages the gradients")
        if accumulate < 1:
            raise invalid(f"wrap: accumulate is {accumulate}, but must be at least 1")
        optimizers = list(optimizer) if isinstance(optimizer, (list, tuple)) else [optimizer]
        check_optimizers(optimizers, model, {id(p) for p in model.parameters() if p.requires_grad})
        self._arena = Arena(self._native, model, gradients_travel=self.ranks > 1 or self._place.sends_gradients, exchanges=self._place.has_servers)
        self._registered = True
        self._devices = _torch_state.devices_of(model)
        self._model, self._optimizers, self.accumulate = model, optimizers, accumulate
        self._steps.optimizers = len(optimizers)
        self._groups_known = [len(o.param_groups) for o in optimizers]
        self._frozen = [(name, p) for name, p in model.named_parameters() if not p.requires_grad]
        self._share_the_rest()
        self._gradient_ready = self._arena.staging.gradient_ready if self._arena.staging else self._native.gradient_ready
        for index, slot in enumerate(self._arena.slots):
            self._hook(index, slot.parameter)
        # Each module gets the hook, because a program may call a part of the model instead of the whole.
        begins = _Begins(self)
        self._forward_hooks = [module.register_forward_pre_hook(begins) for module in model.modules()]
        for each in optimizers:
            attach_step(each, self._before_step, self._after_step, self._place.steps_locally)
            attach_zero_grad(each, self._arena, self._after_zero)
        if not self._place.steps_locally and self.rank == 0:
            self._native.notice(f"the servers step by the rule {self._place.rule} and the job's train.optimizer; the program's optimizer does not step")
        if self._arena.staging and self.ranks > 1 and self.rank == 0:
            where = ", ".join(map(str, self._arena.staging.devices))
            self._native.notice(
                f"the model is on {where}: gradients and buffers are combined in host memory, because this version has no groups on device memory; "
                "docs/your-own-script.md says what that costs"
            )
        return model, optimizer

    def _share_the_rest(self) -> None:
        """Gives all ranks rank 0's frozen parameters and counters, which are not registered."""
        registered = {id(slot.module._buffers[slot.key]) for slot in self._arena.buffers}
        for tensor in [p.data for _, p in self._frozen] + [b for b in self._model.buffers() if id(b) not in registered]:
            if not tensor.numel() or tensor.device.type == "meta":
                continue
            if type_of(tensor) in TYPES:
                self.broadcast(tensor)
            elif tensor.layout == torch.strided and not tensor.is_quantized:
                by_bytes(tensor, self.broadcast)

    def _hook(self, index: int, parameter: torch.nn.Parameter) -> None:
        if hasattr(parameter, "register_post_accumulate_grad_hook"):
            self._hooks.append(parameter.register_post_accumulate_grad_hook(lambda _: self._on_gradient(index)))
            return
        # Before torch 2.1 the hook goes on the node that adds into .grad. Nobody else keeps that node alive.
        node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        node.register_hook(lambda *_: self._on_gradient(index))
        self._hooks.append(node)

    def begin(self) -> None:
        if self._arena and not self._begun:
            self._arena.check_places()
        begins = not self._begun
        with self._values_in_job(begins and self._registered):
            super().begin()
        if begins:
            self._advance_schedulers()
            self._note_state_due()
        while self._forward_hooks:
            self._forward_hooks.pop().remove()

    @contextlib.contextmanager
    def _values_in_job(self, needed: bool = True):
        """Inside, the values are in the job's memory, where the library reads and changes them. Without devices they always are."""
        staging = self._arena.staging if needed and self._arena else None
        if staging:
            staging.values_to_job()
        try:
            yield
        finally:
            if staging:
                staging.values_from_job()

    def finish(self) -> None:
        self._check_completed()
        with self._values_in_job(not self._finished):
            super().finish()

    def _end_step(self, samples: int, epoch: float = 0.0) -> None:
        if self._arena.staging and self._place.sends_gradients:
            self._arena.staging.gradients_to_job()  # The program may have clipped or unscaled them.
        if self._arena.staging and self._native.values_due():
            with self._values_in_job():
                super()._end_step(samples, epoch)
        else:
            super()._end_step(samples, epoch)

    def _with_center(self, work) -> None:
        self._check_completed()
        if not self._arena.staging or not self._place.has_servers:
            super()._with_center(work)
            return

        def with_values():
            self._arena.staging.values_from_job()
            work()

        with self._values_in_job():
            super()._with_center(with_values)

    def _epochs_left(self, count: int):
        before = None
        for epoch in super()._epochs_left(count):
            # An epoch of which earlier generations have left no step is not yielded, but schedulers count it.
            self._schedulers.step_epochs(0 if before is None else epoch - before - 1)
            before = epoch
            yield epoch

    # ---- Backward ----

    def _on_gradient(self, index: int) -> None:
        """Autograd has added into a parameter's gradient."""
        if self._left:
            return
        if not self._backward.under_way:
            with self._begins_backward:
                if not self._backward.under_way:
                    self._begin_backward()
        arena = self._arena
        if not arena.gradients_travel:
            return
        arena.used[index] = 1
        arena.adopt_gradient(index)
        if self._combining:
            self._given = True
            self._gradient_ready(index)

    def _begin_backward(self) -> None:
        if not self._begun:
            raise misuse("backward() came before training had begun: call job.begin() after wrap(), before the first forward pass")
        self._check_completed()
        if self._backward.failed:
            self._backwards -= 1
        if self._to_keep:
            self._keep_state()
        self._backwards += 1
        self._combining = not self._holding and self._backwards >= self.accumulate
        self._backward.begin(self._after_backward)

    def _check_completed(self) -> None:
        if self._given:
            raise misuse(
                "backward() failed after the job had got some of its gradients, so this step cannot be completed: let the error of backward() end the "
                "program instead of going on after it"
            )

    def _after_backward(self) -> None:
        self._backward.forget()
        self._may_step.clear()
        if self._combining:
            self._combine()

    def _combine(self) -> None:
        if self._finished:
            raise misuse("loss.backward() came after training had ended: job.epochs() ends it after its last epoch")
        self._arena.gather()
        reported = _job.given_loss(self._reported) if isinstance(self._reported, torch.Tensor) else self._reported
        self._given = False
        mean = self._native.combine(reported, self._arena.used if self._arena.gradients_travel else None)
        if not math.isnan(reported):
            self._loss, self._loss_sent = mean, True
        self._arena.scatter()
        self._backwards = 0
        self._steps.combined()
        self._may_step.update(map(id, self._optimizers))

    @contextlib.contextmanager
    def no_sync(self):
        """Inside, backward() adds gradients up without combining them. The last backward() before a step must be outside."""
        self._holding += 1
        try:
            yield
        finally:
            self._holding -= 1

    # ---- The step ----

    def report(self, loss: Union[float, torch.Tensor]) -> None:
        """Tells the job the loss. Before backward() it goes with this step, after it with the next one."""
        if isinstance(loss, torch.Tensor) and loss.device.type != "cpu":
            self._reported = loss.detach().clone()  # Read when backward has ended: to wait for the device here would keep it idle.
        else:
            self._reported = _job.given_loss(loss.detach() if isinstance(loss, torch.Tensor) else loss)
        self._loss_sent = False

    def _before_step(self, optimizer: torch.optim.Optimizer, has_closure: bool) -> None:
        if self._finished or self._left:
            raise misuse("optimizer.step() came after training had ended: job.epochs() ends it after its last epoch")
        if has_closure:
            return  # It calls backward() itself.
        self._check_combined(optimizer)

    def _check_combined(self, optimizer: torch.optim.Optimizer) -> None:
        self._check_completed()
        if id(optimizer) in self._may_step:
            return
        self._arena.check_places()  # A tensor that was moved may have lost its hook.
        if self._backwards and self._holding == 0 and self.accumulate > 1:
            raise misuse(f"optimizer.step() came after {self._backwards} backward passes, but wrap() was told accumulate={self.accumulate}")
        if self._backwards:
            raise misuse("optimizer.step() came with gradients that are not combined: the last backward() before it must be outside of job.no_sync()")
        raise misuse("optimizer.step() came without a backward() of the wrapped model since the last step: call loss.backward() first")

    def _after_step(self, optimizer: torch.optim.Optimizer) -> None:
        self._check_combined(optimizer)
        self._may_step.discard(id(optimizer))
        for name, parameter in self._frozen:
            if parameter.requires_grad:
                raise misuse(f"parameter {name} was frozen when the model was wrapped, and now requires a gradient: set requires_grad before wrap()")
        groups = [len(o.param_groups) for o in self._optimizers]
        if groups != self._groups_known:
            check_optimizers(self._optimizers, self._model, self._arena.index)
            self._groups_known = groups
        counts = self._steps.stepped(id(optimizer))
        self._skipped = self._steps.skipped
        if counts:
            if self._loss_sent:
                self._reported, self._loss_sent = math.nan, False
            self._end_step(self._sampler.batch_size * self.accumulate if self._sampler else 0)
            self._note_state_due()

    def _after_zero(self) -> None:
        if self._backward.unfinished:  # It failed.
            self._backward.forget()
            self._backwards = 0
        self._steps.zeroed()
        self._skipped = self._steps.skipped

    # ---- State for a restart ----

    def _note_state_due(self) -> None:
        """If a state is due, takes now what fetching the next batch and the next forward pass would change.

        The rest is taken when the next backward pass begins. Until then the program may still step its schedulers,
        update its GradScaler and whatever else belongs to the step.
        """
        if not self._native.state_due():
            return
        self._to_keep = {
            "generation": len(self._earlier),
            "steps": self._steps.saved(),
            "generators": _torch_state.generators(self._devices),
            "own_generators": self._objects.generators(),
            "buffers": {name: buffer.clone() for name, buffer in _torch_state.own_buffers(self._model, self._arena).items()},
        }

    def _keep_state(self) -> None:
        state, self._to_keep = self._to_keep, None
        state["optimizers"] = [optimizer.state_dict() for optimizer in self._optimizers]
        state["schedulers"] = self._schedulers.saved()
        state["objects"] = _torch_state.packed(self._objects.others())
        state["own_generators"] = _torch_state.packed(state["own_generators"])
        self._native.save_state(_torch_state.encode(state))

    def _restore(self, state: bytes, step: int) -> None:
        kept = _torch_state.decode(state)
        of_this_generation = kept.get("generation", 0) == len(self._earlier)
        self._steps.restore(kept.get("steps", {}), counts=of_this_generation)
        self._skipped = self._steps.skipped
        self._restore_optimizers(kept["optimizers"], step)
        if of_this_generation or self._division is None:
            self._schedulers.set(kept["schedulers"], *self._schedule_at(step))
        else:
            self._schedulers.begin_anew(kept["schedulers"])
        own_generators = _torch_state.unpacked(kept["own_generators"], self._devices)
        self._objects.set({**_torch_state.unpacked(kept["objects"], self._devices), **own_generators})
        for name, buffer in _torch_state.own_buffers(self._model, self._arena).items():
            if name in kept["buffers"]:
                buffer.copy_(kept["buffers"][name])
        self._generators_kept = (kept["generators"], own_generators)
        _torch_state.set_generators(kept["generators"], self._devices)

    def _restore_optimizers(self, states: List[Any], step: int) -> None:
        if len(states) == len(self._optimizers):
            for optimizer, its_state in zip(self._optimizers, states):
                optimizer.load_state_dict(its_state)
        elif self.rank == 0:
            self._native.notice(
                f"group {self.group} goes on with its optimizers' state, such as momentum, as at the start: its kept state of step {step} has "
                f"{len(states)} of them, and job.wrap() got {len(self._optimizers)}"
            )

    def _resume_data(self) -> None:
        # A DataLoader's new iterator has just drawn a random number. The earlier start drew it at the epoch's begin,
        # before its state was kept. So the generators go back to that state.
        if self._generators_kept:
            generators, own = self._generators_kept
            self._generators_kept = None
            _torch_state.set_generators(generators, self._devices)
            self._objects.set(own)

    # ---- Data and evaluation ----

    def sampler(self, samples: Any, batch_size: int, shuffle: bool = True) -> Sampler:
        """Returns this rank's sampler of a data set, or of a number of samples. The first one made says how long an epoch is."""
        sampler = Sampler(self, samples, batch_size, shuffle)
        if self._sampler is None:
            self._sampler = sampler
        return sampler

    def advance(self, scheduler, per: str = "step"):
        """Returns the scheduler, and keeps its state. After a restart, it is first brought to where the earlier starts had stepped it: `per` step or epoch."""
        if per not in ("step", "epoch"):
            raise invalid(f"advance: per is {per!r}, but must be 'step' or 'epoch'")
        self._schedulers.add(scheduler, per)
        if self._begun:
            self._advance_schedulers()
        return scheduler

    def _advance_schedulers(self) -> None:
        self._schedulers.catch_up(*self._schedule_at(self._first_step))

    def _schedule_at(self, step: int):
        """Returns how often a scheduler has stepped at this step of the present generation, if it does so per step and per epoch.

        If the number of groups has changed, steps count as if the present groups had done all the work. So a schedule
        that is as long as `epochs * len(loader)` says goes on where the data do.
        """
        if self._division is None:
            return step, step
        position = max(0, step - self._generation_step)
        epoch, _ = next(self._division.from_position(position + self._skipped))
        return self._division.steps_behind + position, epoch

    def evaluate(self, function: Callable[[torch.nn.Module], Any]):
        """Calls function(model) on the ranks of group 0, with the center's values, without gradients, in evaluation mode.

        It returns an accuracy, or a dict of numbers: accuracy, loss, samples, and metrics of its own; rank 0's go to the job. Random numbers that it
        draws do not count for training. All ranks call evaluate(). It returns what the function returned; None in other groups, and if a server is away.
        """

        def work():
            training = {module: module.training for module in self._model.modules()}
            self._model.eval()
            try:
                with torch.no_grad(), _torch_state.KeepsGenerators(self._devices):
                    return function(self._model)
            finally:
                for module, was_training in training.items():
                    module.training = was_training

        return self._evaluate(work)

    def _take_back(self) -> None:
        if self._arena:
            self._arena.give_back()
