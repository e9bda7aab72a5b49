"""MultiheadAttention, and the encoder's layer that is made of it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from torchemu import dtypes
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import empty, zeros
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn import init
from torchemu.frontends.numpy.nn.modules.container import ModuleList
from torchemu.frontends.numpy.nn.modules.dropout import Dropout
from torchemu.frontends.numpy.nn.modules.linear import Linear
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.modules.normalization import LayerNorm
from torchemu.frontends.numpy.nn.parameter import Parameter
from torchemu.unsupported import unsupported

__all__ = ["MultiheadAttention", "TransformerEncoder", "TransformerEncoderLayer"]


class NonDynamicallyQuantizableLinear(Linear):
    """The last layer of MultiheadAttention."""


class MultiheadAttention(Module):
    """Attention by several heads, each with a part of the features, between two linear layers.

    Args:
        embed_dim: the features of queries and results.
        num_heads: of which each has embed_dim/num_heads features.
        dropout: the probability that a weight is left out in training.
        bias: whether the linear layers have biases.
        add_bias_kv, add_zero_attn: not supported.
        kdim, vdim: the features of keys and values; None: embed_dim.
        batch_first: batches are the first dimension, and not the second.
        device, dtype: of the parameters.

    Attributes:
        in_proj_weight: (3·embed_dim, embed_dim): that of queries, keys and values; None where kdim or vdim differ.
        q_proj_weight, k_proj_weight, v_proj_weight: the three, where they differ; else None.
        in_proj_bias: (3·embed_dim), or None.
        out_proj: the last linear layer.

    Raises:
        AssertionError: the heads do not divide the features. NotImplementedError: add_bias_kv or add_zero_attn.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if add_bias_kv or add_zero_attn:
            raise unsupported("torch.nn.MultiheadAttention(add_bias_kv, add_zero_attn)", "join them to key and value")
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.dropout, self.batch_first = dropout, batch_first
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        for name, columns in self._shapes().items():
            rows = 3 * embed_dim if name == "in_proj_weight" else embed_dim
            made = Parameter(empty(rows, columns, device=device, dtype=dtype)) if columns else None
            self.register_parameter(name, made)
        biases = Parameter(empty(3 * embed_dim, device=device, dtype=dtype)) if bias else None
        self.register_parameter("in_proj_bias", biases)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self._reset_parameters()

    def _shapes(self) -> dict[str, int]:
        """The columns of each weight; 0: there is none."""
        same = self._qkv_same_embed_dim
        separate = {"q_proj_weight": self.embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        return {
            "in_proj_weight": self.embed_dim if same else 0,
            **{name: 0 if same else columns for name, columns in separate.items()},
        }

    def _reset_parameters(self) -> None:
        for name, columns in self._shapes().items():
            if columns:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """What each query finds, and the weights with which.

        Args:
            query: (L, N, E); (N, L, E) with batch_first; or (L, E).
            key, value: (S, N, …), (N, S, …) or (S, …).
            key_padding_mask: (N, S) or (S): of bool, which keys nobody may look at; of floats, what is added.
            need_weights: return the weights, too; without, they are never in memory.
            attn_mask: (L, S) or (N·heads, L, S): of bool, which keys a query may not look at; of floats, what is added.
            average_attn_weights: the mean of the weights over the heads, and not each.
            is_causal: says of attn_mask that it lets queries look at keys up to their own number only.

        Returns:
            The results, of query's shape; and the weights, (N, L, S), (N, heads, L, S) or without N; or None.

        Raises:
            RuntimeError: is_causal without attn_mask. AssertionError: the shapes do not fit.
        """
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        batched = query.dim() == 3
        distinct = [query] if query is key is value else [query, key, value]
        if not batched:
            distinct = [t.unsqueeze(0) for t in distinct]
        elif not self.batch_first:
            distinct = [t.transpose(0, 1) for t in distinct]
        q, k, v = (self._heads(t) for t in self._projected(distinct))
        mask = self._mask(q, k, attn_mask, key_padding_mask)
        found, weights = self._attend(q, k, v, mask, need_weights)
        result = self.out_proj(found.permute(2, 0, 1, 3).flatten(2))  # (L, N, E)
        if weights is not None and average_attn_weights:
            weights = weights.mean(dim=1)
        if not batched:
            return result.squeeze(1), None if weights is None else weights.squeeze(0)
        return result.transpose(0, 1) if self.batch_first else result, weights

    def _projected(self, distinct: list[Tensor]) -> list[Tensor]:
        """Queries, keys and values, from one tensor or three.

        Raises:
            AssertionError: the shapes do not fit.
        """
        query, key, value = distinct * 3 if len(distinct) == 1 else distinct
        if query.shape[-1] != self.embed_dim:
            raise AssertionError(f"was expecting embedding dimension of {self.embed_dim}, but got {query.shape[-1]}")
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
        if len(distinct) == 1 and self._qkv_same_embed_dim:
            return list(F.linear(query, self.in_proj_weight, self.in_proj_bias).chunk(3, dim=-1))
        separate = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        weights = list(self.in_proj_weight.chunk(3)) if self._qkv_same_embed_dim else separate
        biases = [None] * 3 if self.in_proj_bias is None else list(self.in_proj_bias.chunk(3))
        return [F.linear(t, w, b) for t, w, b in zip((query, key, value), weights, biases, strict=True)]

    def _heads(self, t: Tensor) -> Tensor:
        """(N, L, E) → (N, heads, L, E/heads)."""
        return t.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)

    def _mask(self, q: Tensor, k: Tensor, attn_mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
        """What is added to the scores, (…, L, S)."""
        added = None
        if attn_mask is not None:
            added = _additive(attn_mask, q)
            if added.dim() == 3:
                added = added.unflatten(0, (q.shape[0], self.num_heads))
        if padding is not None:
            each = _additive(padding, q)
            each = each.view(-1, 1, 1, k.shape[2])
            added = each if added is None else added + each
        return added

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        p = self.dropout if self.training else 0.0
        if not need_weights:
            return F.scaled_dot_product_attention(q, k, v, mask, dropout_p=p), None
        scores = (q * math.sqrt(1 / self.head_dim)) @ k.transpose(-1, -2)
        weights = F.dropout(F.softmax(scores if mask is None else scores + mask, dim=-1), p)
        return weights @ v, weights


def _additive(mask: Tensor, like: Tensor) -> Tensor:
    """A mask as what is added to scores."""
    if mask.dtype is not dtypes.bool_:
        return mask
    return zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill_(mask, -math.inf)


class _Layer(Module):
    """Attentions and two linear layers, each with a residual connection and a LayerNorm.

    The parts are made, and so draw their parameters, in the order in which state_dict names them.
    """

    _attentions: tuple[str, ...]
    """What they are called."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made = {"bias": bias, "device": device, "dtype": dtype}
        for name in self._attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **made))
        self.linear1 = Linear(d_model, dim_feedforward, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **made)
        self.norm_first = norm_first
        numbers = range(1, len(self._attentions) + 2)
        for number in numbers:
            setattr(self, f"norm{number}", LayerNorm(d_model, layer_norm_eps, **made))
        for number in numbers:
            setattr(self, f"dropout{number}", Dropout(dropout))
        self.activation = _activation(activation)

    def _through(self, x: Tensor, *attentions: Callable[[Tensor], Tensor]) -> Tensor:
        for number, part in enumerate((*attentions, self._fed), 1):
            norm, dropout = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
            x = x + dropout(part(norm(x))) if self.norm_first else norm(x + dropout(part(x)))
        return x

    def _fed(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


def _activation(given: str | Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    if callable(given):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    return F.relu if given == "relu" else F.gelu


class TransformerEncoderLayer(_Layer):
    """Attention and two linear layers, each with a residual connection and a LayerNorm.

    Args:
        d_model: the features.
        nhead: the heads of the attention.
        dim_feedforward: the features between the linear layers.
        dropout: the probability of all dropout.
        activation: between the linear layers: "relu", "gelu" or a function.
        layer_norm_eps: of the LayerNorms.
        batch_first: as of MultiheadAttention.
        norm_first: normalize before attention and linear layers, and not behind.
        bias: whether linear layers and LayerNorms have biases.
        device, dtype: of the parameters.
    """

    _attentions = ("self_attn",)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The same shape; the masks are those of MultiheadAttention."""

        def attended(x: Tensor) -> Tensor:
            options = {"attn_mask": src_mask, "key_padding_mask": src_key_padding_mask, "is_causal": is_causal}
            return self.self_attn(x, x, x, need_weights=False, **options)[0]

        return self._through(src, attended)


class _Stack(Module):
    """Copies of a layer, one after the other.

    Args:
        layer: the layer.
        num_layers: how many copies.
        norm: what comes behind the last; None: nothing.
    """

    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def _through(self, x: Tensor, *others: Any) -> Tensor:
        for layer in self.layers:
            x = layer(x, *others)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """Copies of a layer, one after the other.

    Args:
        encoder_layer: the layer.
        num_layers: how many copies.
        norm: what comes behind the last; None: nothing.
        enable_nested_tensor, mask_check: mean nothing here.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """The same shape; the masks are those of MultiheadAttention."""
        return self._through(src, mask, src_key_padding_mask, bool(is_causal))
