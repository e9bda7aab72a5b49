"""The errors of operations whose operands are on several devices, with PyTorch's texts for a GPU.

What the texts are in PyTorch 2.11 on an H200, tests/python/frontends/torch/recorded_cuda.json has.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from torchemu.frontends.torch.device import places
from torchemu.frontends.torch.device.patches import Replacements, overridable
from torchemu.frontends.torch.device.places import HOST

_MAY_INDEX = {"index", "_unsafe_index"}
"""Operations that read by lists of indices, which the host may have."""

WRITES_BY_INDEX = {"index_put", "index_put_", "_index_put_impl_", "_unsafe_index_put"}
"""Operations that write by lists of indices, which may be anywhere."""

aten = torch.ops.aten

FILLS = (aten.index_fill_.int_Scalar, aten.index_fill.int_Scalar)
"""The operations, and that of its gradient, by which newer PyTorch does ``t[i] = 4.0`` where it takes both for tensors
of one device, and for others index_put_: from there indices may be anywhere, too. Programs call them by other names."""

_MAY_MIX = {
    "set_", "_foreach_copy_", "_foreach_norm", "_pack_padded_sequence", "_pack_padded_sequence_backward",
    "_pad_packed_sequence", "_ctc_loss", "ctc_loss", "_sparse_addmm",
    "_fused_adam_", "_fused_adamw_", "_fused_sgd_",
}  # fmt: skip
"""Operations of which the host may have operands, such as the lengths of sequences, or the rate of learning."""

_ITERATED = {"where", "mse_loss", "lerp", "lerp_", "equal_", "smooth_l1_loss", "huber_loss", "isclose", "masked_fill"}
"""Operations on elements without the tag."""

_STRUCTURED = {
    "mm", "addmm", "bmm", "baddbmm", "cat", "nll_loss_forward", "nll_loss_backward", "gather", "scatter", "scatter_",
    "scatter_add", "scatter_add_", "index_add", "index_add_", "index_copy", "index_copy_", "topk", "sort", "addmv",
    "_softmax_backward_data", "_log_softmax_backward_data", "linalg_vector_norm", "tril", "triu", "cumsum", "sum",
    "mean", "amax", "amin", "max_pool2d_with_indices", "avg_pool2d", "gelu", "gelu_backward",
}  # fmt: skip
"""Operations whose wrapper's name has no underscore before theirs."""

_ELSEWHERE = {
    "stack": ("cat", {}),
    "embedding": ("index_select", {"weight": "self", "indices": "index"}),
    "native_layer_norm": ("native_layer_norm", {}),
    "native_batch_norm": ("native_batch_norm", {}),
}
"""Operations that CUDA does by others, with the names of their arguments there."""


def check(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Raises what PyTorch raises for operands of a device beside such of the host, unless an operation takes them. Says
    whether the device is where it computes, and not the host."""
    name = func._schema.name.partition("::")[2]
    if func in FILLS:
        return places.of(args[0]) is not None
    if name in _MAY_MIX:
        return True
    if any(t.device.type not in (*places.ACCELERATORS, "cpu") for _, t in _tensors(func, args, kwargs)):
        return True  # such as meta: PyTorch has its own word there
    is_on_device = places.of(args[0]) is not None if isinstance(args[0], torch.Tensor) else False
    if name in WRITES_BY_INDEX and (args[2].dim() == 0 or (places.of(args[2]) is not None) == is_on_device):
        return is_on_device
    if name in _MAY_INDEX:
        if is_on_device:
            return True
        raise RuntimeError("indices should be either on cpu or on the same device as the indexed tensor (cpu)")
    raise error(func, args, kwargs)


def put(replaced: Replacements) -> None:
    """Lets the functions by which programs fill by indices refuse mixed devices: the operations do not; see FILLS."""
    for owner, name in ((torch.Tensor, "index_fill_"), (torch.Tensor, "index_fill"), (torch, "index_fill")):
        original = getattr(owner, name)
        replaced.put(owner, name, overridable(_refusing(original, getattr(aten, name).int_Scalar), original))


def _refusing(fill: Callable[..., Any], func: Any) -> Callable[..., Any]:
    @functools.wraps(fill)
    def call(*args: Any, **kwargs: Any) -> Any:
        tensors = [t for _, t in _tensors(func, args, kwargs)]
        if len({places.of(t) for t in tensors if t.dim() > 0}) > 1:
            raise error(func, args, kwargs)
        return fill(*args, **kwargs)

    return call


def error(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Exception:
    """Returns PyTorch's error for operands on several devices."""
    name = func._schema.name.partition("::")[2]
    operands = [(argument, _device(t), t) for argument, t in _tensors(func, args, kwargs)]
    if name == "masked_fill" or name == "masked_fill_":
        mask, this = operands[1][1], operands[0][1]
        return RuntimeError(
            f"expected self and mask to be on the same device, but got mask on {mask} and self on {this}"
        )
    if name in ("convolution", "_convolution"):
        return RuntimeError(
            f"Input type ({_type(args[0])}) and weight type ({_type(args[1])}) should be the same"
            if places.of(args[0]) is not places.of(args[1])
            else f"Input type ({_type(args[0])}) and bias type ({_type(args[2])}) should be the same"
        )
    if (
        (torch.Tag.pointwise in func.tags and name != "equal")
        or name in _ITERATED | WRITES_BY_INDEX
        or name.startswith("_foreach")
    ):
        first = next((d for _, d, _ in operands if d != HOST), HOST)
        other = next((d for _, d, _ in operands if d != first), HOST)
        found = f"{first} and {other}"
        return RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {found}!")
    return _unlike(func, name, [(argument, device) for argument, device, _ in operands])


def _unlike(func: Any, name: str, operands: list[tuple[str, torch.device]]) -> Exception:
    """Names the first operand that is not where the first one is."""
    called, renamed = _ELSEWHERE.get(name, (name, {}))
    common = operands[0][1]
    argument, device = next(((a, d) for a, d in operands if d != common), operands[0])
    if name == "embedding":  # CUDA selects rows
        common, device, argument = operands[0][1], operands[1][1], "indices"
    argument = renamed.get(argument, argument)
    overload = "" if func._overloadname == "default" else func._overloadname
    if called in _STRUCTURED:
        wrapper = f"wrapper_CUDA_{called}" + (f"_{overload}" if overload and overload != "default" else "")
    else:
        wrapper = f"wrapper_CUDA_{overload}_{called}"
    return RuntimeError(
        f"Expected all tensors to be on the same device, but got {argument} is on {device}, different from other "
        f"tensors on {common} (when checking argument in method {wrapper})"
    )


def _tensors(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors of a call with the names of their arguments."""
    names = [a.name for a in func._schema.arguments]
    for argument, value in [*zip(names, args, strict=False), *kwargs.items()]:
        for t in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(t, torch.Tensor):
                yield argument, t


def _device(tensor: torch.Tensor) -> torch.device:
    where = places.of(tensor)
    return HOST if where is None else where.device


def _type(tensor: torch.Tensor) -> str:
    return str(tensor.type())
