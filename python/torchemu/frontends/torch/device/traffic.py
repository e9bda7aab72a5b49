"""Memory that kernels go through, elements that they take, and how they go: what the roofline is told of an operation
that is no product.

Most operations read their operands and write their results. Some touch only the part of an operand that indices name,
or write one that they do not read. CUDA's pointwise kernels are vectorized only where all operands lie alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torchemu.frontends.torch.device import deferral, scans, softmaxes
from torchemu.frontends.torch.device.ground import context, go
from torchemu.runtime.device_properties import processors

_STRIDED = torch.strided

Counted = tuple[int, int, str]
"""Bytes that a kernel moves, elements that it takes, and its way through memory."""

Counter = Callable[[Sequence[Any], Tensor, int], Counted]
"""A function that counts a kernel, by its arguments, its result and the bytes of all operands."""

ALIKE, STRIDED, TRANSPOSED, SHORT, EVAL = "vector", "strided", "transposed", "short", "eval"
CHANNELS, CHANNELS_LAST = "channels", "channels_last"
SERIAL, SERIAL_FAR, SHARED = "serial", "serial_far", "shared"
"""Ways of kernels, as topologies name them: with vectorized accesses to memory, without, and in another order; with
short rows; by statistics that are given; of images channel by channel, and with the channels last; step by step through
a dimension, of what caches hold and of more, and with threads that share a row."""

_OF_ROWS = ("native_layer_norm", "native_layer_norm_backward", "_fused_rms_norm", "_fused_rms_norm_backward")
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
    part = PARTS.get(name)
    if part is not None:
        return lambda args, out, nbytes: (*part(args, out), ALIKE)
    if name in OVERWRITES:
        return lambda args, out, nbytes: (out.nbytes, out.numel(), ALIKE)
    if name in COPIES:
        return lambda args, out, nbytes: (nbytes + out.nbytes, out.numel(), way(args[0], out))
    if name in _SOFTMAXES:
        return _softmax
    if name in _SOFTMAX_GRADIENTS:
        return _softmax_gradient
    if name == "sum":
        return _summed
    if name.removesuffix("_") in _SCANS:
        return _scanned
    times = AGAIN.get(name)
    if times is not None:
        return lambda args, out, nbytes: whole(args, out, nbytes + times * args[0].nbytes)
    return whole


_SOFTMAXES = ("_softmax", "_log_softmax")
_SOFTMAX_GRADIENTS = ("_softmax_backward_data", "_log_softmax_backward_data")

_SHORT = 1024
"""The most elements of a row that softmax has in registers."""


def _softmax(args: Sequence[Any], out: Tensor, nbytes: int) -> Counted:
    """Counts a softmax."""
    row = out.shape[args[1]] if out.dim() else 1
    as_rows = nbytes + out.nbytes, out.numel(), SHORT if row <= _SHORT else ALIKE
    return _by_columns(out, args[1], nbytes, is_backward=False) or as_rows


def _softmax_gradient(args: Sequence[Any], out: Tensor, nbytes: int) -> Counted:
    """Counts the gradient by what a softmax is of."""
    return _by_columns(out, args[2], nbytes, is_backward=True) or whole(args, out, nbytes)


def _by_columns(out: Tensor, dim: int, nbytes: int, is_backward: bool) -> Counted | None:
    """Counts a softmax along a dimension after which there are elements; None where there are none."""
    dims = out.dim()
    if not dims or dim % dims == dims - 1 or not out.numel():
        return None
    columns = softmaxes.columns_of(out.shape, dim, out.itemsize)
    if columns.inner == 1:
        return None
    steps = columns.steps(processors(context().world), is_backward)
    alone = SERIAL_FAR if softmaxes.is_far(out.nbytes) else SERIAL
    return nbytes + out.nbytes, steps * _STEP, SHARED if columns.threads[0] > 1 else alone


_SCANS = ("cumsum", "cumprod", "logcumsumexp")

_STEP = 1024
"""Elements that a step or stage of a scan or softmax counts as, however many it has: it takes as long as it waits."""


def _scanned(args: Sequence[Any], out: Tensor, nbytes: int) -> Counted:
    """Counts a scan. Threads share a row along the last dimension; along others each has a column for itself."""
    dims, elements = out.dim(), out.numel()
    if not elements or not dims or elements == (length := out.shape[args[1]]):
        return whole(args, out, nbytes)
    if args[1] % dims == dims - 1:
        steps = scans.stages(elements // length, length, out.nbytes, processors(context().world))
        return nbytes + out.nbytes, steps * _STEP, SHARED
    return nbytes + out.nbytes, length * _STEP, SERIAL_FAR if scans.is_far(out.nbytes) else SERIAL


def _summed(args: Sequence[Any], out: Tensor, nbytes: int) -> Counted:
    """Counts a sum. Kernels that count bools read them one by one."""
    read, elements, as_usual = whole(args, out, nbytes)
    return read, elements, STRIDED if args[0].dtype is torch.bool else as_usual


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


def counted_several(name: str, args: Sequence[Any], changed: Sequence[int], nbytes: int, results: int) -> Counted:
    """Returns what a kernel takes that has several results, or none.

    Args:
        changed: the places of operands that it writes.
        nbytes: of all operands.
        results: bytes of what is new.
    """
    elements = sum(t.numel() for t in deferral.tensors(args[0])) if args else 0
    if name == "nll_loss_forward":
        return 2 * args[1].nbytes + results, args[1].numel(), ALIKE
    if name == "native_batch_norm" and not args[5]:
        return nbytes + size(args[0]), _by_channels(args[0], True), EVAL
    if name in _BATCH_NORMS:
        images = args[name != "native_batch_norm"]
        way = CHANNELS_LAST if _is_last(images) else CHANNELS
        return nbytes + results, elements if way is CHANNELS_LAST else _by_channels(images, False), way
    if results:
        return nbytes + results, elements, _by_rows(args) if name in _OF_ROWS else ALIKE
    written = [sum(map(size, deferral.tensors(args[at]))) for at in changed if at < len(args)]
    if name in OVERWRITES:
        nbytes -= written[0]
    return nbytes + sum(written), elements, ALIKE


def _by_rows(args: Sequence[Any]) -> str:
    """Returns the way of a normalization of rows: by the width that its first list says."""
    shape = next(a for a in args if a.__class__ in (list, tuple))
    return SHORT if math.prod(shape) <= _SHORT else ALIKE


def _by_channels(images: Tensor, given: bool) -> int:
    """Returns the elements that normalization by channels takes.

    Args:
        given: the statistics are.
    """
    if given and _is_last(images):
        return images.numel()
    plane = math.prod(images.shape[2:])
    found: int = go.BatchNormElements(context().world.handle, *images.shape[:2], plane, given)
    return found


def _is_last(images: Tensor) -> bool:
    """Says whether the channels of an element lie side by side."""
    return images.dim() < 3 or (images.stride(1) == 1 and images.shape[1] > 1)


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


def _in_memory(indices: Any) -> int:
    """Returns the bytes that indices take in memory, each once, where they are expanded."""
    if isinstance(indices, (list, tuple)):
        return sum(_in_memory(i) for i in indices)
    if not isinstance(indices, Tensor):
        return 0
    return math.prod(n for n, step in zip(indices.shape, indices.stride(), strict=True) if step) * indices.itemsize


def _read(of: int, by: int) -> Callable[[Sequence[Any], Tensor], tuple[int, int]]:
    """Counts operations that read what is picked of one operand, by another one's indices."""

    def count(args: Sequence[Any], out: Tensor) -> tuple[int, int]:
        return min(args[of].nbytes, out.nbytes) + out.nbytes + _in_memory(args[by]), out.numel()

    return count


def _written(by: int, source: int) -> Callable[[Sequence[Any], Tensor], tuple[int, int]]:
    """Counts operations that write elements of their first operand, by indices, from a source or one value for all."""

    def count(args: Sequence[Any], out: Tensor) -> tuple[int, int]:
        elements = _places(args[0], args[by])
        given = args[source] if len(args) > source else None
        values = min(_in_memory(given), elements * out.itemsize)
        return 2 * elements * out.itemsize + values + _in_memory(args[by]), elements

    return count


def _places(of: Tensor, indices: Any) -> int:
    """Returns how many elements of a tensor indices name: rows for indices of some dimensions, else one for each."""
    if not isinstance(indices, (list, tuple)):
        return int(indices.numel())
    given = [i for i in indices if i is not None]
    if any(i.dtype is torch.bool for i in given):
        return of.numel()
    indexed = math.prod(n for n, i in zip(of.shape, indices, strict=False) if i is not None)
    return max(i.numel() for i in given) * (of.numel() // indexed if indexed else 0)


def _rows(passes: int) -> Callable[[Sequence[Any], Tensor], tuple[int, int]]:
    """Counts operations that write rows of their first operand: a dimension, indices, and a source or one value.

    Args:
        passes: how often they read or write as much as the rows have.
    """

    def count(args: Sequence[Any], out: Tensor) -> tuple[int, int]:
        given, along = args[3], out.shape[args[1]] if out.dim() else 1
        one = out.numel() // along if along else 0
        elements = given.numel() if isinstance(given, Tensor) and given.dim() else args[2].numel() * one
        return passes * elements * out.itemsize + _in_memory(args[2]), elements

    return count


def _copied(count: Callable[[Sequence[Any], Tensor], tuple[int, int]]) -> Callable[..., tuple[int, int]]:
    """Counts an operation that does to a copy what another one does in place."""

    def more(args: Sequence[Any], out: Tensor) -> tuple[int, int]:
        nbytes, elements = count(args, out)
        return nbytes + 2 * out.nbytes, elements

    return more


def _of_classes(args: Sequence[Any], out: Tensor) -> tuple[int, int]:
    """Counts the gradient of a loss that looks at one class of each row; the others' are zeros."""
    return out.nbytes + 2 * args[2].nbytes, args[2].numel()


_SORTED = 3072
"""Indices of an embedding beyond which those of its gradient are sorted, so that each row is written once."""

_SORTING = 5_300_000
"""Elements that sorting them counts as, however many they are: about ten kernels, 95 us."""

_UNSORTED = 0.45
"""Elements that one of a gradient counts as whose indices are not sorted."""


def _of_table(args: Sequence[Any], out: Tensor) -> tuple[int, int]:
    """Counts the gradient of an embedding's table, which is filled with zeros before. How many rows are written that
    differ is taken from draws that are all as likely, for without data nobody knows it."""
    given, rows = args[1].numel(), out.shape[0]
    nbytes = args[0].nbytes + _in_memory(args[1]) + out.nbytes
    if given <= _SORTED:
        return nbytes, int(_UNSORTED * args[0].numel())
    distinct = round(rows * -math.expm1(-given / rows)) if rows else 0
    return nbytes, _SORTING + distinct * (out.numel() // rows if rows else 0)


_PLACED = {
    "scatter": _written(2, 3), "scatter_add": _written(2, 3), "scatter_reduce": _written(2, 3),
    "index_put": _written(1, 2), "index_add": _rows(3), "index_reduce": _rows(3), "index_copy": _rows(2),
    "index_fill": _rows(1),
}  # fmt: skip

PARTS: dict[str, Callable[[Sequence[Any], Tensor], tuple[int, int]]] = {
    "gather": _read(0, 2), "index_select": _read(0, 2), "take": _read(0, 1), "embedding": _read(0, 1),
    "index": _read(0, 1), "_unsafe_index": _read(0, 1), "embedding_dense_backward": _of_table,
    "nll_loss_backward": _of_classes,
    **{f"{name}_": count for name, count in _PLACED.items()}, "_index_put_impl_": _written(1, 2),
    **{name: _copied(count) for name, count in _PLACED.items()},
}  # fmt: skip
"""Bytes and elements of operations that touch a part of an operand, from their arguments and their result."""
