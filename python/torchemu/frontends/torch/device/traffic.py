"""Memory that kernels go through, elements that they take, and how they go: what the roofline is told of an operation
that is no product.

Most operations read their operands and write their results. Some touch only the part of an operand that indices name,
or write one that they do not read. CUDA's pointwise kernels are vectorized only where all operands lie alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torchemu.frontends.torch.device import (
    classes,
    deferral,
    indexed,
    listed,
    normalized,
    ranked,
    reduced,
    scaled,
    scans,
)
from torchemu.frontends.torch.device.ground import context, go
from torchemu.frontends.torch.device.ways import (
    ALIKE,
    CHANNELS,
    CHANNELS_LAST,
    EVAL,
    SERIAL,
    SERIAL_FAR,
    SHARED,
    STEP,
    STRIDED,
    TRANSPOSED,
    Counted,
    Counter,
    processors,
)

_STRIDED = torch.strided

_BATCH_NORMS = ("native_batch_norm", "native_batch_norm_backward")

OVERWRITES = frozenset({
    "fill_", "zero_", "normal_", "uniform_", "random_", "exponential_", "geometric_", "log_normal_", "cauchy_",
    "_foreach_zero_", "_foreach_copy_",
})  # fmt: skip
"""Operations that write their first operand, and do not read it."""

AGAIN = {
    "masked_fill": 2, "masked_scatter": 2, "mse_loss": 2, "l1_loss": 2, "smooth_l1_loss": 2, "huber_loss": 2,
    "mse_loss_backward": 1, "smooth_l1_loss_backward": 1, "huber_loss_backward": 1,
}  # fmt: skip
"""Operations of several kernels: how often these read or write as much as the first operand has, beside operands and
result. They work on a copy, add up a tensor of losses, or fill one with zeros first."""

COPIES = frozenset({"clone", "_to_copy"})
"""Operations whose results have the elements of an operand, perhaps in another order or of another dtype."""


def counter(name: str) -> Counter:
    """Returns what counts an operation with one result, by its name."""
    part = indexed.PARTS.get(name)
    if part is not None:
        return lambda args, out, nbytes: part(args, out)
    if name in OVERWRITES:
        return lambda args, out, nbytes: (out.nbytes, out.numel(), ALIKE)
    if name in COPIES:
        return lambda args, out, nbytes: (nbytes + out.nbytes, out.numel(), way(args[0], out))
    own = _OWN.get(name.removesuffix("_"))
    if own is not None:
        return own
    times = AGAIN.get(name)
    if times is not None:
        return lambda args, out, nbytes: whole(args, out, nbytes + times * args[0].nbytes)
    return whole


def _scanned(args: Sequence[Any], out: Tensor, nbytes: int) -> Counted:
    """Counts a scan. Threads share a row along the last dimension; along others each has a column for itself."""
    dims, elements = out.dim(), out.numel()
    if not elements or not dims or elements == (length := out.shape[args[1]]):
        return whole(args, out, nbytes)
    if args[1] % dims == dims - 1:
        steps = scans.stages(elements // length, length, out.nbytes, processors())
        return nbytes + out.nbytes, steps * STEP, SHARED
    return nbytes + out.nbytes, length * STEP, SERIAL_FAR if scans.is_far(out.nbytes) else SERIAL


_OWN: dict[str, Counter] = {
    **dict.fromkeys(("cumsum", "cumprod", "logcumsumexp"), _scanned),
    **classes.ONE, **scaled.ONE, **reduced.ONE, "median": ranked.median_of_all, "multinomial": ranked.drawn,
}  # fmt: skip
"""Functions that count operations with rules of their own, by their names."""


def whole(args: Sequence[Any], out: Tensor, nbytes: int) -> Counted:
    """Counts an operation that reads its operands and writes its result."""
    written, elements, first = out.nbytes, out.numel(), args[0] if args else None
    if isinstance(first, Tensor):
        size = first.numel()
        if size > elements:
            return nbytes + written, size, ALIKE
        is_vectorized = first.layout is not _STRIDED or first.is_contiguous() or first.stride() == out.stride()
    else:
        is_vectorized = all(t.is_contiguous() for t in deferral.tensors(first))
    is_vectorized = is_vectorized and not (written and nbytes % written)
    return nbytes + written, elements, ALIKE if is_vectorized else STRIDED


_SEVERAL = {**indexed.SEVERAL, **ranked.SEVERAL, **reduced.TWO, **classes.SEVERAL, **normalized.SEVERAL}


def counted_several(op: Any, args: Sequence[Any], kwargs: dict[str, Any], nbytes: int, results: int) -> Counted:
    """Returns what a kernel takes that has several results, or none.

    Args:
        op: the operation.
        nbytes: of all operands.
        results: bytes of what is new.
    """
    name, own = op.name, _SEVERAL.get(op.name)
    if own is not None:
        return own(args, kwargs, nbytes + results)
    elements = sum(t.numel() for t in deferral.tensors(args[0])) if args else 0
    if name == "native_batch_norm" and not args[5]:
        return nbytes + size(args[0]), _by_channels(args[0], True), EVAL
    if name in _BATCH_NORMS:
        images = args[name != "native_batch_norm"]
        way = CHANNELS_LAST if scaled.is_last(images) else CHANNELS
        return nbytes + results, elements if way is CHANNELS_LAST else _by_channels(images, False), way
    if results:
        moved = nbytes + results
    else:
        written = [sum(map(size, deferral.tensors(args[at]))) for at in op.changes if at < len(args)]
        moved = nbytes + sum(written) - (written[0] if name in OVERWRITES else 0)
    return listed.counted(name, args, moved) if listed.is_of_lists(name) else (moved, elements, ALIKE)


def _by_channels(images: Tensor, given: bool) -> int:
    """Returns the elements that normalization by channels takes.

    Args:
        given: the statistics are.
    """
    if given and scaled.is_last(images):
        return images.numel()
    plane = math.prod(images.shape[2:])
    found: int = go.BatchNormElements(context().world.handle, *images.shape[:2], plane, given)
    return found


def size(tensor: Tensor) -> int:
    """Returns the bytes of a tensor; 0 of a sparse one, whose parts are tensors."""
    return int(tensor.nbytes) if tensor.layout is _STRIDED else 0


def copied(source: Tensor, out: Tensor) -> Counted:
    """Returns what a copy on a device takes."""
    is_dense = source.layout is _STRIDED and out.layout is _STRIDED
    return size(source) + size(out), out.numel(), way(source, out) if is_dense else ALIKE


def way(source: Tensor, out: Tensor) -> str:
    """Returns how a copy goes through memory."""
    if source.size() != out.size():  # broadcast; parameters of lazy modules have no shape
        return STRIDED
    if source.stride() != out.stride() and not (source.is_contiguous() and out.is_contiguous()):
        inner = source.stride()[-1:] == out.stride()[-1:]
        return STRIDED if inner or _is_row(source) else TRANSPOSED
    if source.dtype is out.dtype or (source.dtype is torch.float32 and out.dtype.itemsize == 2):
        return ALIKE
    return STRIDED


def _is_row(tensor: Tensor) -> bool:
    """Says whether a tensor's last dimension has one element for each, or one for all: nothing is transposed by it."""
    return tensor.shape[-1:] == (1,) or tensor.stride()[-1:] == (0,)
