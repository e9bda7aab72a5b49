"""Decoders that look at what encoders return, and the two together."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import full
from torchemu.frontends.numpy._tensor.gathering import triu
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn import init
from torchemu.frontends.numpy.nn.modules.attention import TransformerEncoder, TransformerEncoderLayer, _Layer, _Stack
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.modules.normalization import LayerNorm

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer"]


class TransformerDecoderLayer(_Layer):
    """Attention to itself, attention to an encoder's result and two linear layers, each with a residual connection and
    a LayerNorm.

    Args:
        d_model, nhead, dim_feedforward, dropout, activation: those of TransformerEncoderLayer.
        layer_norm_eps, batch_first, norm_first, bias, device, dtype: those of TransformerEncoderLayer.
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """tgt's shape; memory is the encoder's result, the masks are those of MultiheadAttention."""

        def own(x: Tensor) -> Tensor:
            options = {"attn_mask": tgt_mask, "key_padding_mask": tgt_key_padding_mask, "is_causal": tgt_is_causal}
            return self.self_attn(x, x, x, need_weights=False, **options)[0]

        def other(x: Tensor) -> Tensor:
            options = {"attn_mask": memory_mask, "key_padding_mask": memory_key_padding_mask}
            return self.multihead_attn(x, memory, memory, need_weights=False, is_causal=memory_is_causal, **options)[0]

        return self._through(tgt, own, other)


class TransformerDecoder(_Stack):
    """Copies of a layer, one after the other.

    Args:
        decoder_layer: the layer.
        num_layers: how many copies.
        norm: what comes behind the last; None: nothing.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """tgt's shape; the arguments are those of the layer."""
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return self._through(tgt, memory, *masks, bool(tgt_is_causal), memory_is_causal)


class Transformer(Module):
    """An encoder and a decoder.

    Args:
        d_model, nhead: the features and the heads of the attention.
        num_encoder_layers, num_decoder_layers: how many.
        dim_feedforward, dropout, activation: those of the layers.
        custom_encoder, custom_decoder: to be used in the place of the usual ones.
        layer_norm_eps, batch_first, norm_first, bias, device, dtype: those of the layers.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made = {"bias": bias, "device": device, "dtype": dtype}
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)
        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*layer, **made), num_encoder_layers, LayerNorm(d_model, layer_norm_eps, **made)
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*layer, **made), num_decoder_layers, LayerNorm(d_model, layer_norm_eps, **made)
        )
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """What the decoder makes of tgt and what the encoder makes of src; the masks are those of MultiheadAttention.

        Raises:
            RuntimeError: the features are not d_model, or the batches differ.
        """
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src._shape[batch] != tgt._shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src._shape[-1] != self.d_model or tgt._shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        padding = (tgt_key_padding_mask, memory_key_padding_mask)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, *padding, tgt_is_causal, memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """What lets each of so many elements look at those up to itself: -∞ for the others."""
        return triu(full((sz, sz), -math.inf, device=device, dtype=dtype), 1)
