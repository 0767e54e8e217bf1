"""The user's optimizer as part of a job: its own step and zero_grad, with Hooke's work around them."""

import functools
import inspect
import types
from typing import Dict, List

import torch

from hooke._native import invalid
from hooke._torch_arena import Arena


def check_optimizers(optimizers: List[torch.optim.Optimizer], model: torch.nn.Module, arena_parameters: dict) -> None:
    """Refuses optimizers that would step other things than the model's parameters, or not in the same way on all ranks."""
    model_parameters = {id(p) for p in model.parameters()}
    for optimizer in optimizers:
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise invalid(f"wrap(model, optimizer): {type(optimizer).__name__} is no torch.optim.Optimizer")
        if isinstance(optimizer, torch.optim.LBFGS):
            raise invalid("LBFGS decides by the loss of one rank, so ranks would part: take another optimizer")
        for number, group in enumerate(optimizer.param_groups):
            for p in group["params"]:
                if id(p) not in model_parameters:
                    raise invalid(
                        f"param_groups[{number}] of {type(optimizer).__name__} has a tensor of shape {tuple(p.shape)} that is no parameter of the "
                        "model: wrap the module that holds all parameters, and make the optimizer from that module's parameters"
                    )
                if p.requires_grad and p.numel() and id(p) not in arena_parameters:
                    raise invalid(
                        f"param_groups[{number}] of {type(optimizer).__name__} has a tensor of shape {tuple(p.shape)} that was frozen when the model "
                        "was wrapped: set requires_grad before wrap()"
                    )


def attach_step(optimizer: torch.optim.Optimizer, before_step, after_step, steps_locally: bool) -> None:
    """Replaces `step` of this one optimizer. It stays a bound method with the old attributes, as schedulers expect."""
    own_step = optimizer.step

    @functools.wraps(own_step)
    def step(self, *arguments, **options):
        closure = arguments[0] if arguments else options.get("closure")
        before_step(self, closure is not None)
        # A GradScaler leaves its work to a fused optimizer: to unscale the gradients, and to leave out a step that overflows.
        found_inf = getattr(self, "found_inf", None)
        result = None
        if steps_locally:
            result = own_step(*arguments, **options)
        elif closure:
            with torch.enable_grad():
                result = closure()
        if found_inf is not None and bool(found_inf):
            return result
        if not steps_locally:
            _unscale(self)
        after_step(self)
        return result

    optimizer.step = types.MethodType(step, optimizer)


def _unscale(optimizer: torch.optim.Optimizer) -> None:
    """Divides the gradients by the scale that a GradScaler has left to the optimizer, which does not step, to apply."""
    scale = getattr(optimizer, "grad_scale", None)
    if scale is None:
        return
    for group in optimizer.param_groups:
        for p in group["params"]:
            if p.grad is not None:
                p.grad.div_(scale.to(p.grad.device))


def attach_zero_grad(optimizer: torch.optim.Optimizer, arena: Arena, after_zero) -> None:
    """Replaces `zero_grad` of this one optimizer by one that keeps gradients in the job's memory, if that is where they are."""
    own_zero_grad = optimizer.zero_grad
    # torch 2.0 changed the default.
    default = inspect.signature(own_zero_grad).parameters["set_to_none"].default

    @functools.wraps(own_zero_grad)
    def zero_grad(self, set_to_none=default):
        if arena.gradients_travel:
            arena.zero_gradients(arena.indices(self), set_to_none)
        else:
            own_zero_grad(set_to_none=set_to_none)
        after_zero()

    optimizer.zero_grad = types.MethodType(zero_grad, optimizer)


# In a round every optimizer steps alone. After this many rounds each optimizer is taken to have a backward pass of its
# own. A GradScaler, which leaves out single steps, does not make so many rounds in a row.
_ROUNDS_APART = 8


class Steps:
    """Decides when a step is complete: when every optimizer has stepped. And how many steps were skipped, after they had taken their samples.

    An optimizer that a GradScaler skips is not called. If all optimizers step with the same gradients, a step that some
    of them left out is not counted, like one that all have left out. Else the rest of it would be taken for the beginning
    of the next step, from then on each step would be counted in its midst, and a state that is kept there would not be
    whole. If each optimizer has a backward pass of its own, as in a GAN, steps that were left out cannot be told. A program
    may begin with joint steps and then give each optimizer a pass of its own: that is known once so many steps were such.
    """

    def __init__(self):
        self.optimizers = 1
        self.skipped = 0
        self._stepped = set()  # Optimizers that have stepped since the last counted step.
        self._since_combined = set()  # Optimizers that have stepped with the present gradients.
        self._together = False  # All optimizers have once stepped with the same gradients.
        self._uncounted = False  # No step with the present gradients was counted yet.
        self._noted = False  # The present gradients are in `skipped` already.
        self._perhaps_skipped = 0  # What `skipped` gets once it is known that all optimizers step together.
        self._apart = set()  # Optimizers that have stepped alone since the last counted step.
        self._rounds_apart = 0  # How often every optimizer has stepped alone, since the last counted step.
        self._skipped_since = 0  # What was added to `skipped` since the last counted step.

    def saved(self) -> Dict[str, int]:
        return {"skipped": self.skipped, "together": self._together}

    def restore(self, saved: Dict[str, int], counts: bool = True) -> None:
        """Takes back what was saved. The steps that were skipped before count only if the data are still divided as then."""
        self.skipped, self._together = saved.get("skipped", 0) if counts else 0, bool(saved.get("together"))

    def combined(self) -> None:
        """Called when the ranks have combined new gradients."""
        self._since_combined.clear()
        self._uncounted, self._noted = True, False

    def zeroed(self) -> None:
        """Called when the program drops the gradients."""
        if not self._uncounted or self._noted:
            return
        self._noted = True
        if self._together or self.optimizers == 1:
            self.skipped += 1
            self._skipped_since += 1
        else:
            self._perhaps_skipped += 1

    def stepped(self, optimizer: int) -> bool:
        """Called when an optimizer has stepped. Returns whether the step is to be counted now."""
        self._since_combined.add(optimizer)
        if self._together:
            self._note_apart(optimizer)
        if self._together:
            self._stepped &= self._since_combined
        self._stepped.add(optimizer)
        complete = len(self._stepped) == self.optimizers
        if not self._together and len(self._since_combined) == self.optimizers > 1:
            self._learn_together(complete)
        if not complete:
            return False
        if self._noted and (self._together or self.optimizers == 1):
            self.skipped -= 1  # Gradients were zeroed between the steps of two optimizers.
        self._uncounted = self._noted = False
        self._perhaps_skipped = 0
        self._stepped.clear()
        self._apart.clear()
        self._rounds_apart = self._skipped_since = 0
        return True

    def _note_apart(self, optimizer: int) -> None:
        """Notices that the optimizers do not step with the same gradients any more."""
        if len(self._since_combined) > 1:
            return
        self._apart.add(optimizer)
        if len(self._apart) < self.optimizers:
            return
        self._rounds_apart += 1
        if self._rounds_apart == _ROUNDS_APART:
            self._together = False
            self._stepped = set(self._apart)
            # The steps before this one were not counted. Their samples were taken once, but were noted at each optimizer.
            self.skipped += _ROUNDS_APART - 1 - self._skipped_since
        self._apart.clear()

    def _learn_together(self, complete: bool) -> None:
        self._together = True
        if complete:
            self.skipped += self._perhaps_skipped
        else:
            # The step was counted before its last optimizer had stepped.
            self._stepped.clear()
