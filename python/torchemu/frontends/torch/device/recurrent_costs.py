"""Kernels of LSTM, GRU and RNN, and of their gradients, as the core has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torchemu.frontends.torch.device.ground import go
from torchemu.frontends.torch.device.kernel_costs import DTYPES, Kernels, listed

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
"""PyTorch's functions, and how many rows of weights they have for each element of a state."""


def kernels(gates: int, args: Sequence[Any], backward: bool) -> Kernels:
    """Returns names of kernels, the bytes that they move, their operations, and their units; none for elements that are
    no floats of 16 or 32 bits, for no elements, and where the topology says nothing of recurrent layers.

    Args:
        gates: as in GATES.
        args: of the function: inputs, states, weights, and options; or packed inputs, numbers of sequences by steps,
            states, weights, and options.
        backward: of the gradients.
    """
    given, is_packed = args[0], isinstance(args[3], (list, tuple))
    weights, _, layers, _, _, is_bidirectional = args[2 + is_packed : 8 + is_packed]
    dtype = DTYPES.get(_computed_in(given.dtype))
    if dtype is None or not given.numel() or not weights:
        return ()
    steps = len(args[1]) if is_packed else given.shape[1 if args[8] else 0]
    width, state = weights[0].shape[0] // gates, weights[1].shape[1]
    said = {
        "DType": dtype, "Rounded": torch.backends.cudnn.allow_tf32, "Gates": gates, "Steps": steps,
        "Rows": given.numel() // given.shape[-1], "Inner": given.shape[-1], "Width": width,
        "Projected": state if state != width else 0, "Layers": layers, "Directions": 2 if is_bidirectional else 1,
        "Packed": is_packed, "Backward": backward,
    }  # fmt: skip
    name = "_cudnn_rnn_backward" if backward else "_cudnn_rnn"
    return listed(go.RecurrentCosts, name, said)


def _computed_in(dtype: torch.dtype) -> torch.dtype:
    """Returns in which dtype CUDA computes a network of floats."""
    return torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else dtype
