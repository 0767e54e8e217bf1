"""The user's optimizer as part of a job: its own step and zero_grad, with Hooke's work around them."""

import contextlib
import functools
import inspect
import types
from typing import List

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
        if steps_locally:
            result = own_step(*arguments, **options)
            # A fused optimizer gets the scaler's verdict, and leaves the step out by itself.
            overflow = getattr(self, "found_inf", None)
            if overflow is not None and bool(overflow):
                return result
        else:
            with torch.enable_grad() if closure else contextlib.nullcontext():
                result = closure() if closure else None
        after_step(self)
        return result

    optimizer.step = types.MethodType(step, optimizer)


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
