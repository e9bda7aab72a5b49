"""Modules that calculate their activations again in the backward pass, or keep them in the host's memory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Any

from torchemu.frontends.numpy.autograd.graph import save_on_cpu
from torchemu.frontends.numpy.distributed.fsdp.wrap import lambda_auto_wrap_policy, wrap_parts
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.parameter import Parameter
from torchemu.frontends.numpy.utils.checkpoint import checkpoint

__all__ = [
    "ActivationWrapper",
    "CheckpointImpl",
    "CheckpointWrapper",
    "OffloadWrapper",
    "apply_activation_checkpointing",
    "checkpoint_wrapper",
    "offload_wrapper",
]

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(Enum):
    """Which of torch.utils.checkpoint's two ways."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module):
    """A module around another one, of which names of parameters and states say nothing.

    Args:
        mod: the other one.
    """

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(_without_prefix)
        self._register_load_state_dict_pre_hook(_with_prefix)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(_CHECKPOINT_WRAPPED_MODULE), name)

    def __getitem__(self, key: int) -> Any:
        return self._checkpoint_wrapped_module[key]  # type: ignore[index] # as a Sequential's

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Raises ValueError: subclasses say how."""
        raise ValueError("Subclasses should implement forward().")

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters of the other module, by the names that they have there."""
        for name, p in super().named_parameters(prefix, recurse, remove_duplicate):
            yield name.replace(_CHECKPOINT_PREFIX, ""), p


def _renamed(state: dict[str, Any], old: str, new: str) -> None:
    for name in [name for name in state if name.startswith(old)]:
        state[new + name.removeprefix(old)] = state.pop(name)


def _without_prefix(module: Module, state: dict[str, Any], prefix: str, *_: Any) -> dict[str, Any]:
    _renamed(state, prefix + _CHECKPOINT_PREFIX, prefix)
    return state


def _with_prefix(state: dict[str, Any], prefix: str, *_: Any) -> None:
    _renamed(state, prefix, prefix + _CHECKPOINT_PREFIX)


class OffloadWrapper(ActivationWrapper):
    """A module whose activations are kept in the host's memory until the backward pass."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the other module returns."""
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """A module whose activations are calculated again in the backward pass; see checkpoint_wrapper."""

    def __init__(
        self,
        mod: Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        how = checkpoint_fn or functools.partial(checkpoint, use_reentrant=checkpoint_impl is CheckpointImpl.REENTRANT)
        self.checkpoint_fn = functools.partial(how, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the other module returns."""
        module = self._checkpoint_wrapped_module
        if self.checkpoint_impl is not CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(module, *args, **kwargs)
        count, names = len(args), list(kwargs)  # that way takes positional arguments only

        def call(*values: Any) -> Any:
            return module(*values[:count], **dict(zip(names, values[count:], strict=True)))

        return self.checkpoint_fn(call, *args, *kwargs.values())


def offload_wrapper(module: Module) -> Module:
    """The module, with its activations kept in the host's memory until the backward pass."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: Any,
) -> Module:
    """The module, with its activations calculated again in the backward pass.

    Args:
        checkpoint_impl: which of torch.utils.checkpoint's two ways.
        checkpoint_fn: in the place of torch.utils.checkpoint.checkpoint.
        checkpoint_fn_kwargs: further arguments of that.
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda _: True,
    auto_wrap_policy: Any = None,
) -> None:
    """Wraps parts of a model, which itself stays.

    Args:
        checkpoint_wrapper_fn: wraps one.
        check_fn: says of a module whether it is wrapped.
        auto_wrap_policy: in the place of check_fn; see torch.distributed.fsdp.wrap.
    """
    policy = auto_wrap_policy or functools.partial(lambda_auto_wrap_policy, lambda_fn=check_fn)
    wrap_parts(model, policy, set(), checkpoint_wrapper_fn)
