"""The fused attentions of CUDA that keep heads behind rows, and of sequences that are packed one behind the other.

Tensors have the shape (batch, rows, heads, depth), and those of packed sequences (rows, heads, depth): the sequence
number i has the rows from cum_seq[i] to cum_seq[i + 1].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchemu.frontends.torch.device.fused import added, no_dropout
from torchemu.frontends.torch.device.places import HOST
from torchemu.frontends.torch.device.timing import is_without_elements

aten = torch.ops.aten

_forward = aten._scaled_dot_product_flash_attention_for_cpu.default
_backward = aten._scaled_dot_product_flash_attention_for_cpu_backward.default

_numbers = torch._C.TensorBase.tolist  # for which no host waits: torch.Tensor's is the program's

_ALIGNED = 32
"""Rows of which the memory-efficient kernel's logarithms of sums are a multiple."""


class _Band(NamedTuple):
    """Keys that a query sees: as many before and after the one at its own place, None for all.

    Attributes:
        before, after: numbers of keys.
        from_last: the last query's own key is the last key; else the first one's is the first.
    """

    before: int | None = None
    after: int | None = None
    from_last: bool = True

    def own(self, rows: int, keys: int) -> int:
        """Returns the first query's own key."""
        return keys - rows if self.from_last else 0

    def hides(self, rows: int, keys: int) -> Tensor | None:
        """Returns which keys are hidden from which queries, or None if none is."""
        if self.before is None and self.after is None:
            return None
        apart = torch.arange(keys) - torch.arange(rows).unsqueeze(1) - self.own(rows, keys)
        hidden = torch.zeros(rows, keys, dtype=torch.bool)
        if self.before is not None:
            hidden |= apart < -self.before
        if self.after is not None:
            hidden |= apart > self.after
        return hidden

    def seen(self, rows: int, keys: int) -> int:
        """Returns how many pairs of a query and a key that it sees there are."""
        own, total = self.own(rows, keys), 0
        if self.before is None and self.after is None:
            return rows * keys
        for row in range(own, own + rows):
            first = 0 if self.before is None else max(0, row - self.before)
            last = keys if self.after is None else min(keys, row + self.after + 1)
            total += max(0, last - first)
        return total


class _Part(NamedTuple):
    """Rows of queries and of keys, from and to, that attend to each other."""

    rows: slice
    keys: slice

    def lengths(self) -> tuple[int, int]:
        return self.rows.stop - self.rows.start, self.keys.stop - self.keys.start


def _parts(query: Tensor, key: Tensor, cum_q: Any, cum_k: Any, used: Any = None) -> list[_Part]:
    if cum_q is None:
        return [_Part(slice(0, query.shape[1]), slice(0, key.shape[1]))]
    starts, ends = _numbers(cum_k)[:-1], _numbers(cum_k)[1:]
    if used is not None:
        ends = [min(end, start + n) for start, end, n in zip(starts, ends, _numbers(used), strict=True)]
    q = _numbers(cum_q)
    return [_Part(slice(a, b), slice(c, max(c, d))) for a, b, c, d in zip(q, q[1:], starts, ends, strict=False)]


def _of_heads(tensor: Tensor, rows: slice, heads: int) -> Tensor:
    """Returns rows as the host's kernel takes them, with heads that share keys one by one."""
    part = tensor[:, rows].transpose(1, 2)
    return part if part.shape[1] == heads else part.repeat_interleave(heads // part.shape[1], 1)


def _mask(band: _Band, part: _Part, bias: Tensor | None, query: Tensor) -> Tensor | None:
    hidden = band.hides(*part.lengths())
    if bias is None:
        return None if hidden is None else added(~hidden, query)
    bias = bias.to(query.dtype)
    return bias if hidden is None else bias.masked_fill(hidden, float("-inf"))


def _attended(
    query: Tensor, key: Tensor, value: Tensor, parts: list[_Part], band: _Band, scale: Any, bias: Any = None
) -> tuple[Tensor, list[Tensor]]:
    """Returns the attention, and the logarithms of sums (batch, heads, rows) of each part."""
    heads, out = query.shape[2], torch.zeros_like(query, memory_format=torch.contiguous_format)
    sums = []
    for part in parts:
        rows, keys = part.lengths()
        if not rows or not keys:
            sums.append(torch.zeros(query.shape[0], heads, rows, device=HOST))
            continue
        taken = [_of_heads(t, s, heads) for t, s in ((query, part.rows), (key, part.keys), (value, part.keys))]
        made, logsumexp = _forward(*taken, 0.0, False, attn_mask=_mask(band, part, bias, query), scale=scale)
        out[:, part.rows] = made.transpose(1, 2)
        sums.append(logsumexp)
    return out, sums


def _gradients(
    grad: Tensor, operands: Sequence[Tensor], sums: list[Tensor], parts: list[_Part], band: _Band, scale: Any,
    bias: Any = None,
) -> list[Tensor]:  # fmt: skip
    """Returns the gradients of query, key and value.

    Args:
        operands: query, key, value and the result.
    """
    query, key, value, out = operands
    heads = query.shape[2]
    made = [torch.zeros_like(t, memory_format=torch.contiguous_format) for t in (query, key, value)]
    for part, logsumexp in zip(parts, sums, strict=True):
        if not all(part.lengths()):
            continue
        taken = [_of_heads(t, s, heads) for t, s in ((query, part.rows), (key, part.keys), (value, part.keys))]
        given, result = (t[:, part.rows].transpose(1, 2) for t in (grad, out))
        mask = _mask(band, part, bias, query)
        found = _backward(given, *taken, result, logsumexp.contiguous(), 0.0, False, attn_mask=mask, scale=scale)
        for whole, rows, piece in zip(made, (part.rows, part.keys, part.keys), found, strict=True):
            shared = piece.unflatten(1, (whole.shape[2], heads // whole.shape[2])).sum(2)
            whole[:, rows] = shared.transpose(1, 2)
    return made


# the kernels of FlashAttention


def _flash_band(is_causal: bool, left: Any, right: Any) -> _Band:
    before = None if left is None or left < 0 else left
    after = 0 if is_causal else None if right is None or right < 0 else right
    return _Band(before, after)


def _batched(packed: bool, *tensors: Tensor) -> list[Tensor]:
    return [t.unsqueeze(0) if packed else t for t in tensors]


def _flash(
    query: Tensor, key: Tensor, value: Tensor, cum_q: Any, cum_k: Any, max_q: int, max_k: int, dropout_p: float,
    is_causal: bool, return_debug_mask: bool, *, scale: Any = None, window_size_left: Any = None,
    window_size_right: Any = None, seqused_k: Any = None, alibi_slopes: Any = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    no_dropout(dropout_p)
    if query.dtype not in (torch.float16, torch.bfloat16):
        raise RuntimeError("FlashAttention only support fp16 and bf16 data type")
    if alibi_slopes is not None:
        raise NotImplementedError("_flash_attention_forward: a simulated device's has no alibi_slopes")
    packed = cum_q is not None
    q, k, v = _batched(packed, query, key, value)
    band = _flash_band(is_causal, window_size_left, window_size_right)
    out, sums = _attended(q, k, v, _parts(q, k, cum_q, cum_k, seqused_k), band, scale)
    if packed:
        logsumexp = torch.zeros(query.shape[1], query.shape[0], device=HOST)
        for part, piece in zip(_parts(q, k, cum_q, cum_k), sums, strict=True):
            logsumexp[:, part.rows] = piece[0]
    else:
        logsumexp = sums[0]
    state = torch.zeros(2, dtype=torch.uint64, device=HOST)
    return out[0] if packed else out, logsumexp, state, torch.empty(0, device=HOST), torch.empty(0, device=HOST)


def _flash_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor, cum_q: Any, cum_k: Any,
    max_q: int, max_k: int, dropout_p: float, is_causal: bool, state: Any, unused: Any, *, scale: Any = None,
    window_size_left: Any = None, window_size_right: Any = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    packed = cum_q is not None
    given, *operands = _batched(packed, grad, query, key, value, out)
    parts = _parts(operands[0], operands[1], cum_q, cum_k)
    sums = [logsumexp[None, :, part.rows] for part in parts] if packed else [logsumexp]
    band = _flash_band(is_causal, window_size_left, window_size_right)
    made = _gradients(given, operands, sums, parts, band, scale)
    return tuple(t[0] if packed else t for t in made)


# those that are efficient with memory


def _efficient_band(mask_type: int, window: Any) -> _Band:
    """Returns what a mask's type means: 0 for all keys, 1 for none after the own one, 2 for that from the last one."""
    if not mask_type:
        return _Band()
    return _Band(window - 1 if window else None, 0, mask_type == 2)


def _efficient(
    query: Tensor, key: Tensor, value: Tensor, bias: Any, cum_q: Any, cum_k: Any, max_q: Any, max_k: Any,
    dropout_p: float, mask_type: int, compute_log_sumexp: bool = False, *, scale: Any = None, seqlen_k: Any = None,
    window_size: Any = None,
) -> tuple[Any, ...]:  # fmt: skip
    no_dropout(dropout_p)
    if bias is not None and cum_q is not None:
        raise NotImplementedError("_efficient_attention_forward: a simulated device's has no bias of packed sequences")
    parts = _parts(query, key, cum_q, cum_k, seqlen_k)
    out, sums = _attended(query, key, value, parts, _efficient_band(mask_type, window_size), scale, bias)
    longest_q = query.shape[1] if cum_q is None else max_q
    longest_k = key.shape[1] if cum_k is None else max_k
    rows = -(-longest_q // _ALIGNED) * _ALIGNED if compute_log_sumexp else 0
    batch = query.shape[0] if cum_q is None else len(parts)
    logsumexp = torch.full((batch, query.shape[2], rows), float("inf"), device=HOST)
    for i, piece in enumerate(sums) if rows else ():
        logsumexp[slice(None) if cum_q is None else slice(i, i + 1), :, : piece.shape[2]] = piece
    numbers = [torch.zeros((), dtype=torch.int64, device=HOST) for _ in range(2)]
    return out, logsumexp, *numbers, longest_q, longest_k


def _efficient_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, bias: Any, out: Tensor, cum_q: Any, cum_k: Any,
    max_q: int, max_k: int, logsumexp: Tensor, dropout_p: float, seed: Any, offset: Any, mask_type: int,
    bias_requires_grad: bool, *, scale: Any = None, num_splits_key: Any = None, window_size: Any = None,
    shared_storage_dqdkdv: bool = False,
) -> tuple[Tensor, ...]:  # fmt: skip
    if bias_requires_grad:
        raise NotImplementedError("_efficient_attention_backward: a simulated device's gives a bias no gradient")
    parts = _parts(query, key, cum_q, cum_k)
    lengths = [part.lengths()[0] for part in parts]
    sums = [logsumexp[..., : lengths[0]]] if cum_q is None else list(_each(logsumexp, lengths))
    band = _efficient_band(mask_type, window_size)
    made = _gradients(grad, (query, key, value, out), sums, parts, band, scale, bias)
    return *made, torch.empty(0, device=HOST)


def _each(logsumexp: Tensor, lengths: list[int]) -> Iterator[Tensor]:
    for i, rows in enumerate(lengths):
        yield logsumexp[i : i + 1, :, :rows]


# what they take


def _lengths(ends: Tensor | None, longest: int, rows: int) -> list[int]:
    """Returns the lengths of sequences; without data as many rows as there are in sequences of the longest one's."""
    if ends is None:
        return [rows]
    if not is_without_elements(ends):
        return [b - a for a, b in pairwise(_numbers(ends))]
    return [max(0, min(longest, rows - i * longest)) for i in range(ends.shape[0] - 1)]


def _counted(tensors: Sequence[Tensor], ends: Sequence[Any], longest: Sequence[int], band: _Band) -> int:
    """Returns the operations of a forward pass with query, key and value."""
    query, key, value = tensors
    rows, keys = (_lengths(e, m, t.shape[-3]) for e, m, t in zip(ends, longest, (query, key), strict=True))
    seen = sum(map(band.seen, rows, keys))
    batch = query.shape[0] if ends[0] is None else 1
    return 2 * batch * query.shape[-2] * seen * (query.shape[-1] + value.shape[-1])


def _flash_operations(*args: Any, out_val: Any = None, scale: Any = None, **kwargs: Any) -> int:
    band = _flash_band(args[8], kwargs.get("window_size_left"), kwargs.get("window_size_right"))
    return _counted(args[:3], args[3:5], args[5:7], band)


def _flash_backward_operations(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
    band = _flash_band(args[11], kwargs.get("window_size_left"), kwargs.get("window_size_right"))
    return 5 * _counted(args[1:4], args[6:8], args[8:10], band) // 2


def _efficient_operations(*args: Any, out_val: Any = None, window_size: Any = None, **kwargs: Any) -> int:
    return _counted(args[:3], args[4:6], args[6:8], _efficient_band(args[9], window_size))


def _efficient_backward_operations(*args: Any, out_val: Any = None, window_size: Any = None, **kwargs: Any) -> int:
    return 5 * _counted(args[1:4], args[6:8], args[8:10], _efficient_band(args[14], window_size)) // 2


def _or_shapes(operation: Any, compute: Callable[..., Any]) -> Callable[..., Any]:
    """Has PyTorch say what an operation gives, where operands have no elements."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return (operation if is_without_elements(args[0]) else compute)(*args, **kwargs)

    return call


_OPERATIONS: dict[Any, tuple[Callable[..., Any], Callable[..., int]]] = {
    aten._flash_attention_forward.default: (_flash, _flash_operations),
    aten._flash_attention_backward.default: (_flash_backward, _flash_backward_operations),
    aten._efficient_attention_forward.default: (_efficient, _efficient_operations),
    aten._efficient_attention_backward.default: (_efficient_backward, _efficient_backward_operations),
}

KERNELS = {operation: _or_shapes(operation, compute) for operation, (compute, _) in _OPERATIONS.items()}
"""Functions that compute them, by operation."""

FORMULAS = {operation: formula for operation, (_, formula) in _OPERATIONS.items()}
"""Their operations, by their arguments."""
