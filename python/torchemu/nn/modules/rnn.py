"""Recurrent networks: RNN, LSTM and GRU. Each step is made of products and operations on single elements."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from torchemu._tensor.core import Tensor
from torchemu._tensor.creation import empty, zeros
from torchemu._tensor.joining import cat, stack
from torchemu.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.nn import init
from torchemu.nn.modules.module import Module
from torchemu.nn.parameter import Parameter

__all__ = ["GRU", "LSTM", "RNN"]

States = tuple[Tensor, ...]


class _Recurrent(Module):
    """What recurrent networks have in common.

    Args:
        input_size, hidden_size: the features of an element of a sequence, and of a state.
        num_layers: how many, each fed with the states of the one before.
        bias: whether there are biases.
        batch_first: (N, L, …) and not (L, N, …); states are (layers, N, hidden_size) all the same.
        dropout: the probability of dropping an output of a layer but the last, in training.
        bidirectional: whether there are as many layers for the other direction.
        device, dtype: of the parameters.

    Attributes:
        weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, …: of each layer, those of the other direction with
            _reverse; at first uniform in ±1/√hidden_size.
    """

    _gates = 1
    _states = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, float(dropout), bidirectional
        for layer, suffix in self._each():
            width = input_size if layer == 0 else hidden_size * (1 + bidirectional)
            rows = self._gates * hidden_size
            shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, width), "weight_hh": (rows, hidden_size)}
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}
            for name, shape in shapes.items():
                made = Parameter(empty(shape, device=device, dtype=dtype))
                self.register_parameter(f"{name}_l{layer}{suffix}", made)
        self.reset_parameters()

    def _each(self) -> Iterator[tuple[int, str]]:
        """The layers and directions."""
        for layer in range(self.num_layers):
            yield from ((layer, suffix) for suffix in ("", "_reverse")[: 1 + self.bidirectional])

    def reset_parameters(self) -> None:
        """Draws new parameters."""
        edge = 1 / math.sqrt(self.hidden_size)
        for p in self.parameters():
            init.uniform_(p, -edge, edge)

    def flatten_parameters(self) -> None:
        """Does nothing: where parameters are makes no difference."""

    def extra_repr(self) -> str:
        """The sizes and what is not as usual."""
        usual = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        others = [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *others])

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Any]:  # noqa: A002
        """The last layer's states for each element of the sequences, and the last states of all layers.

        Args:
            input: (L, N, input_size), or (L, input_size).
            hx: the first states, (layers, N, hidden_size); of LSTM a pair; None: zeros.

        Raises:
            RuntimeError: sizes that do not fit.
        """
        if input.dim() not in (2, 3):
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        if input._shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input._shape[-1]}"
            )
        alone = input.dim() == 2
        x = input.unsqueeze(1) if alone else input.transpose(0, 1) if self.batch_first else input
        output, last = self._through_layers(x, self._first_states(x, hx, alone))
        if alone:
            return output.squeeze(1), self._given([t.squeeze(1) for t in last])
        return output.transpose(0, 1) if self.batch_first else output, self._given(last)

    def _given(self, states: list[Tensor]) -> Any:
        return tuple(states) if self._states > 1 else states[0]

    def _first_states(self, x: Tensor, hx: Any, alone: bool) -> list[Tensor]:
        shape = (self.num_layers * (1 + self.bidirectional), x._shape[1], self.hidden_size)
        if hx is None:
            return [zeros(shape, dtype=x.dtype, device=x.device) for _ in range(self._states)]
        states = list(hx) if self._states > 1 else [hx]
        states = [t.unsqueeze(1) if alone else t for t in states]
        for number, t in enumerate(states):
            if t._shape != shape:
                raise RuntimeError(f"Expected hidden[{number}] size {shape}, got {list(t._shape)}")
        return states

    def _through_layers(self, x: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        last: list[States] = []
        outputs: list[Tensor] = []
        for number, (layer, suffix) in enumerate(self._each()):
            if suffix == "":
                x = cat(outputs, -1) if len(outputs) > 1 else outputs[0] if outputs else x
                if layer and self.dropout:
                    x = F.dropout(x, self.dropout, self.training)
                outputs = []
            output, state = self._one_direction(x, tuple(t[number] for t in states), f"l{layer}{suffix}")
            outputs.append(output)
            last.append(state)
        result = cat(outputs, -1) if len(outputs) > 1 else outputs[0]
        return result, [stack(each) for each in zip(*last, strict=True)]

    def _one_direction(self, x: Tensor, state: States, name: str) -> tuple[Tensor, States]:
        """The states of one layer for each element; those of the other direction from the last to the first."""
        weight, bias = getattr(self, f"weight_hh_{name}"), getattr(self, f"bias_hh_{name}", None)
        fed = F.linear(x, getattr(self, f"weight_ih_{name}"), getattr(self, f"bias_ih_{name}", None))
        elements = range(len(x))
        found: list[Tensor] = []
        for at in reversed(elements) if name.endswith("_reverse") else elements:
            state = self._step(fed[at], F.linear(state[0], weight, bias), state)
            found.append(state[0])
        return stack(found[::-1] if name.endswith("_reverse") else found), state

    def _step(self, fed: Tensor, kept: Tensor, state: States) -> States:
        """The state after an element.

        Args:
            fed, kept: the products of the element and of the state before, (N, gates·hidden_size).
            state: that.
        """
        raise NotImplementedError


class RNN(_Recurrent):
    """h becomes tanh(W·x + U·h), or relu of it.

    Args:
        args, options: those of recurrent networks; nonlinearity: "tanh" or "relu".
    """

    def __init__(self, *args: Any, nonlinearity: str = "tanh", **options: Any) -> None:
        if len(args) > 3 and isinstance(args[3], str):  # PyTorch has it behind num_layers
            nonlinearity, args = args[3], (*args[:3], *args[4:])
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(*args, **options)
        self.nonlinearity = nonlinearity

    def _step(self, fed: Tensor, kept: Tensor, state: States) -> States:
        total = fed + kept
        return (F.tanh(total) if self.nonlinearity == "tanh" else F.relu(total),)


class LSTM(_Recurrent):
    """c becomes σ(f)·c + σ(i)·tanh(g), and h σ(o)·tanh(c), with i, f, g and o the parts of W·x + U·h."""

    _gates = 4
    _states = 2

    def _step(self, fed: Tensor, kept: Tensor, state: States) -> States:
        i, f, g, o = (fed + kept).chunk(4, 1)
        c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c


class GRU(_Recurrent):
    """h becomes (1 - z)·n + z·h, with r and z the sigmoids of parts of W·x + U·h, and n = tanh(Wₙ·x + r·(Uₙ·h))."""

    _gates = 3

    def _step(self, fed: Tensor, kept: Tensor, state: States) -> States:
        of_r, of_z, of_n = zip(fed.chunk(3, 1), kept.chunk(3, 1), strict=True)
        r, z = (of_r[0] + of_r[1]).sigmoid(), (of_z[0] + of_z[1]).sigmoid()
        n = (of_n[0] + r * of_n[1]).tanh()
        return (n + z * (state[0] - n),)
