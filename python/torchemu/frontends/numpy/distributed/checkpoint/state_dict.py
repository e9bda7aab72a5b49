"""torch.distributed.checkpoint.state_dict: states of models and optimizers by names that no wrapper has changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import zeros_like
from torchemu.frontends.numpy.distributed import broadcast_object_list, get_rank, is_initialized
from torchemu.frontends.numpy.distributed.fsdp import FullyShardedDataParallel as FSDP  # noqa: N817 (its usual name)
from torchemu.frontends.numpy.distributed.fsdp._states import plain
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.parallel import DataParallel, DistributedDataParallel
from torchemu.unsupported import unsupported

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]


@dataclass
class StateDictOptions:
    """How states are made.

    Args:
        full_state_dict: tensors are whole in any case; with cpu_offload only the first rank has them.
        cpu_offload: put them into the host's memory.
        ignore_frozen_params: leave out parameters that need no gradient.
        strict: of load_state_dict.
        broadcast_from_rank0: take what the first rank was given; wants full_state_dict.
        flatten_optimizer_state_dict: not supported.
        keep_submodule_prefixes, dsd_fqn_modifiers: mean nothing here.

    Raises:
        ValueError: broadcast_from_rank0 without full_state_dict. NotImplementedError: what is not supported.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"

    def __post_init__(self) -> None:
        if self.broadcast_from_rank0 and not self.full_state_dict:
            raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
        if self.flatten_optimizer_state_dict:
            raise unsupported("StateDictOptions(flatten_optimizer_state_dict=True)", "save the nested dictionary")


def _plain(name: str, model: Module) -> str:
    """The name of a parameter without what wrappers have put in front of it."""
    if isinstance(model, DistributedDataParallel | DataParallel):
        name = name.removeprefix("module.")
    return plain(name)


def _many(optimizers: Any) -> tuple[Any, ...]:
    return tuple(optimizers) if isinstance(optimizers, Iterable) else (optimizers,)


def _on_host(value: Any, options: StateDictOptions) -> Any:
    return value.cpu() if options.cpu_offload and isinstance(value, Tensor) else value


def _is_left_to_first(options: StateDictOptions) -> bool:
    """Whether only the first rank is to have a state, and this is another."""
    return options.full_state_dict and options.cpu_offload and is_initialized() and get_rank() > 0


def _given(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """What is to be loaded on this rank."""
    if not (options.broadcast_from_rank0 and is_initialized()):
        return state
    box = [state]
    broadcast_object_list(box)
    return box[0]


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The parameters and buffers of a model, as of the module within DistributedDataParallel and other wrappers.

    Args:
        submodules: only those of these modules.
        options: how.
    """
    options = options or StateDictOptions()
    frozen = {name for name, p in model.named_parameters() if not p.requires_grad}
    left_out = {_plain(name, model) for name in frozen} if options.ignore_frozen_params else set()
    found = {_plain(name, model): _on_host(value, options) for name, value in model.state_dict().items()}
    if submodules is not None:
        paths = [_plain(f"{path}.", model) for path, module in model.named_modules() if module in submodules]
        found = {name: value for name, value in found.items() if any(name.startswith(path) for path in paths)}
    if _is_left_to_first(options):
        return {}
    return {name: value for name, value in found.items() if name not in left_out}


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Gives a model what get_model_state_dict has returned; returns what load_state_dict does."""
    options = options or StateDictOptions()
    state = _given(model_state_dict, options)
    if isinstance(model, FSDP):
        return model.load_state_dict(state, options.strict)
    own = {_plain(name, model): name for name in model.state_dict()}
    return model.load_state_dict({own.get(k, k): v for k, v in state.items()}, options.strict)


def get_optimizer_state_dict(
    model: Module, optimizers: Any, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The states of optimizers of a model, by the names of the model's parameters. One that has made no step yet makes
    one that changes nothing, so that there is a state to load into.

    Args:
        optimizers: one, or several.
        submodules: means nothing here.
        options: how.
    """
    options = options or StateDictOptions()
    found: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _many(optimizers):
        _begin(optimizer)
        part = _named_state(model, optimizer)
        for name, entry in part["state"].items():
            found["state"][name] = {key: _on_host(value, options) for key, value in entry.items()}
        found["param_groups"] += part["param_groups"]
    return {} if _is_left_to_first(options) else found


def _begin(optimizer: Any) -> None:
    """Makes the state of an optimizer that has none, with gradients of zeros and a learning rate of zero."""
    params = [p for group in optimizer.param_groups for p in group["params"]]
    if optimizer.state or any(p.grad is not None for p in params):
        return
    for p in params:
        if p.requires_grad:
            p.grad = zeros_like(p)
    rates = [group.get("lr") for group in optimizer.param_groups]
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if rate is not None:
            group["lr"] = 0.0
    optimizer.step(closure=None)
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if rate is not None:
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def _named_state(model: Module, optimizer: Any) -> dict[str, Any]:
    if FSDP.fsdp_modules(model):
        return FSDP.optim_state_dict(model, optimizer)
    state, names = optimizer.state_dict(), _names(model)
    groups = []
    by_number: dict[int, str] = {}
    for given, saved in zip(optimizer.param_groups, state["param_groups"], strict=True):
        own = [names[id(p)] for p in given["params"]]
        by_number.update(zip(saved["params"], own, strict=True))
        groups.append({**saved, "params": own})
    return {"state": {by_number[k]: entry for k, entry in state["state"].items()}, "param_groups": groups}


def _names(model: Module) -> dict[int, str]:
    return {id(p): _plain(name, model) for name, p in model.named_parameters()}


def set_optimizer_state_dict(
    model: Module, optimizers: Any, optim_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> None:
    """Gives optimizers what get_optimizer_state_dict has returned."""
    state = _given(optim_state_dict, options or StateDictOptions())
    for optimizer in _many(optimizers):
        _begin(optimizer)
        if FSDP.fsdp_modules(model):
            optimizer.load_state_dict(FSDP.optim_state_dict_to_load(model, optimizer, state))
        else:
            optimizer.load_state_dict(_numbered(model, optimizer, state))


def _numbered(model: Module, optimizer: Any, state: dict[str, Any]) -> dict[str, Any]:
    names = _names(model)
    by_name = {name: group for group in state["param_groups"] for name in group["params"]}
    entries, groups, number = {}, [], 0
    for given in optimizer.param_groups:
        own = [names[id(p)] for p in given["params"]]
        for place, name in enumerate(own, number):
            if name in state["state"]:
                entries[place] = state["state"][name]
        saved = by_name.get(own[0], {}) if own else {}
        groups.append({**given, **saved, "params": [*range(number, number + len(own))]})
        number += len(own)
    return {"state": entries, "param_groups": groups}


def get_state_dict(
    model: Module, optimizers: Any, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both states; see get_model_state_dict and get_optimizer_state_dict."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, options=options) if _many(optimizers) else {},
    )


def set_state_dict(
    model: Module,
    optimizers: Any,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Gives both back what get_state_dict has returned; returns what load_state_dict does."""
    if _many(optimizers):
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
