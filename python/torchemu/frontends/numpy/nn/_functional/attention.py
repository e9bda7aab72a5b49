"""scaled_dot_product_attention, as one kernel: it writes no scores to memory; its backward calculates them again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._autograd.derivative import Joint
from torchemu.frontends.numpy._tensor.autocasting import castable
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import ones
from torchemu.frontends.numpy._tensor.dispatch import MATRIX, Inputs, Op, Outputs, _op, _op_several, broadcasting
from torchemu.frontends.numpy._tensor.reductions import softmax, wide
from torchemu.frontends.numpy.nn._functional.dropout import dropout

Array = np.ndarray


def _probabilities(q: Array, k: Array, mask: Array | None, causal: bool, scale: float) -> Array:
    """The softmax of the scores; of a query that may look at nothing, zeros."""
    scores = np.matmul(wide(q), np.swapaxes(wide(k), -1, -2)) * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + wide(mask)
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:]).astype(bool), scores, -np.inf)
    top = np.max(scores, axis=-1, keepdims=True, initial=-np.inf)
    e = np.exp(scores - np.where(np.isneginf(top), 0, top)).astype(wide(q).dtype, copy=False)
    total = np.sum(e, axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def _attention(q: Array, k: Array, v: Array, mask: Array | None, causal: bool, scale: float) -> Array:
    return np.matmul(_probabilities(q, k, mask, causal, scale), wide(v))


def _attention_backward(
    grad: Array, q: Array, k: Array, v: Array, mask: Array | None, causal: bool, scale: float
) -> tuple[Array, Array, Array, Array]:
    """The gradients of query, key, value and mask; the last is that of the scores."""
    g, p = wide(grad), _probabilities(q, k, mask, causal, scale)
    of_p = np.matmul(g, np.swapaxes(wide(v), -1, -2))
    of_scores = p * (of_p - np.sum(p * of_p, axis=-1, keepdims=True))
    of_q = np.matmul(of_scores, wide(k)) * scale
    of_k = np.matmul(np.swapaxes(of_scores, -1, -2), wide(q)) * scale
    return of_q, of_k, np.matmul(np.swapaxes(p, -1, -2), g), of_scores


def _scores(q: Tensor, k: Tensor) -> int:
    return math.prod(q._shape[:-1]) * k._shape[-2]


def _flops(outputs: Outputs, inputs: Inputs) -> int:
    """Two products for each score: with a query and with a value."""
    q, k, v = inputs[:3]
    return 2 * _scores(q, k) * (q._shape[-1] + v._shape[-1])


def _backward_flops(outputs: Outputs, inputs: Inputs) -> int:
    """The scores once more, and the gradients of scores, query, key and value."""
    _, q, k, v = inputs[:4]
    return 2 * _scores(q, k) * (3 * q._shape[-1] + 2 * v._shape[-1])


def _gradients(call: Any, grad: Tensor) -> Sequence[Any]:
    operands = (grad, call[0], call[1], call[2], call[3])
    masks = call.needs[3]
    kinds = [call.about(i).dtype for i in range(3)]
    found = _op_several(BACKWARD_WITH_MASK if masks else BACKWARD, operands, *call.params, kinds=kinds + kinds[:masks])
    return [t if needed else None for t, needed in zip((*found, None)[:4], call.needs, strict=True)]


BACKWARD_WITH_MASK, BACKWARD = (
    Op("scaled_dot_product_attention_backward", compute, _backward_flops, MATRIX)
    for compute in (_attention_backward, lambda *args: _attention_backward(*args)[:3])
)
ATTENTION = Op("scaled_dot_product_attention", _attention, _flops, MATRIX, derivative=Joint(_gradients, 0, 1, 2, 3))


@castable
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ keyᵀ·scale + mask) @ value.

    Args:
        query: (…, L, E).
        key: (…, S, E).
        value: (…, S, Ev).
        attn_mask: what broadcasts to (…, L, S): of bool, whether a query may look at a key; of floats, what is added
            to the scores.
        dropout_p: the probability that a weight is left out.
        is_causal: a query may look at keys up to its own number only.
        scale: None: 1/√E.
        enable_gqa: several heads of the query, in the dimension before L, share one of key and value.

    Returns:
        (…, L, Ev).

    Raises:
        RuntimeError: shapes or dtypes do not fit.
    """
    _check(query, key, value, attn_mask)
    if enable_gqa:
        key, value = (_repeated(t, query._shape[-3]) for t in (key, value))
    batch = [t._shape[:-2] for t in (query, key, value)]
    _check_broadcast(*[(*shape, 1, 1) for shape in batch])
    if attn_mask is not None:
        _check_broadcast((*batch[0], query._shape[-2], key._shape[-2]), attn_mask._shape)
    factor = 1 / math.sqrt(query._shape[-1]) if scale is None else float(scale)
    if dropout_p:
        return _with_dropout(query * factor, key, attn_mask, is_causal, dropout_p) @ value
    return _op(ATTENTION, (query, key, value, attn_mask), is_causal, factor)


def _check(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> None:
    dims = [t.dim() for t in (q, k, v)]
    if min(dims) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            "{} key.dim: {} and value.dim: {} instead.".format(*dims)
        )
    if not q.dtype is k.dtype is v.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{q.dtype.title} key.dtype: {k.dtype.title} and value.dtype: {v.dtype.title} instead."
        )
    if not q.dtype.is_floating_point:
        raise RuntimeError(f"expected scalar type Float but found {q.dtype.title}")
    if mask is not None and mask.dtype not in (dtypes.bool_, dtypes.float32, q.dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{mask.dtype.title} and  query.dtype: {q.dtype.title} instead."
        )
    if q._shape[-1] != k._shape[-1] or k._shape[-2] != v._shape[-2]:
        raise RuntimeError(
            "scaled_dot_product_attention: query (…, L, E), key (…, S, E) and value (…, S, Ev) do not fit: "
            f"{list(q._shape)}, {list(k._shape)} and {list(v._shape)}"
        )


def _check_broadcast(*shapes: tuple[int, ...]) -> None:
    """Raises:
    RuntimeError: they do not.
    """
    broadcasting(np.broadcast_arrays, *[np.broadcast_to(np.float32(0), shape) for shape in shapes])


def _repeated(t: Tensor, heads: int) -> Tensor:
    """Each head as often as the query has heads for it."""
    if heads % t._shape[-3]:
        raise RuntimeError("Number of heads in key and value must divide the number of heads in query")
    return t.repeat_interleave(heads // t._shape[-3], dim=-3)


def _with_dropout(q: Tensor, k: Tensor, mask: Tensor | None, causal: bool, p: float) -> Tensor:
    """The weights of the values, operation by operation."""
    scores = q @ k.transpose(-1, -2)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is dtypes.bool_ else scores + mask
    if causal:
        below = ones(scores.shape[-2:], dtype=dtypes.bool_, device=q.device).tril()
        scores = scores.masked_fill(~below, -math.inf)
    blind = (scores == -math.inf).all(-1, keepdim=True)
    return dropout(softmax(scores, -1).masked_fill(blind, 0.0), p)
