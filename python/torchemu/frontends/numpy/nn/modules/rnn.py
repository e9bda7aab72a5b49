"""Recurrent networks: RNN, LSTM and GRU, and their cells. Each step is made of products and operations on single
elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import empty, zeros
from torchemu.frontends.numpy._tensor.joining import cat, stack
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn import init
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.parameter import Parameter
from torchemu.frontends.numpy.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

States = tuple[Tensor, ...]
Step = Callable[[Tensor, Tensor, States], States]
"""The state after an element, from the products of the element and of the state before, (N, gates·hidden_size), and
that state."""


def _rnn_tanh(fed: Tensor, kept: Tensor, state: States) -> States:
    return (F.tanh(fed + kept),)


def _rnn_relu(fed: Tensor, kept: Tensor, state: States) -> States:
    return (F.relu(fed + kept),)


def _lstm(fed: Tensor, kept: Tensor, state: States) -> States:
    i, f, g, o = (fed + kept).chunk(4, 1)
    c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru(fed: Tensor, kept: Tensor, state: States) -> States:
    of_r, of_z, of_n = zip(fed.chunk(3, 1), kept.chunk(3, 1), strict=True)
    r, z = (of_r[0] + of_r[1]).sigmoid(), (of_z[0] + of_z[1]).sigmoid()
    n = (of_n[0] + r * of_n[1]).tanh()
    return (n + z * (state[0] - n),)


_MODES: dict[str, tuple[Step, int, int]] = {  # the step, its gates, and how many tensors a state is
    "RNN_TANH": (_rnn_tanh, 1, 1),
    "RNN_RELU": (_rnn_relu, 1, 1),
    "LSTM": (_lstm, 4, 2),
    "GRU": (_gru, 3, 1),
}


def _set_weights(module: Module, shapes: dict[str, tuple[int, ...]], device: Any, dtype: Any) -> None:
    for name, shape in shapes.items():
        module.register_parameter(name, Parameter(empty(shape, device=device, dtype=dtype)))


def _draw(module: Module, hidden_size: int) -> None:
    edge = 1 / math.sqrt(hidden_size) if hidden_size > 0 else 0
    for p in module.parameters():
        init.uniform_(p, -edge, edge)


class RNNBase(Module):
    """What recurrent networks have in common.

    Args:
        mode: "RNN_TANH", "RNN_RELU", "LSTM", or "GRU".
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

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_sizes(mode, hidden_size, num_layers, dropout, proj_size)
        self._step, gates, self._states = _MODES[mode]
        self.mode, self.proj_size = mode, proj_size
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, float(dropout), bidirectional
        rows, out = gates * hidden_size, proj_size or hidden_size
        for layer, suffix in self._each():
            width = input_size if layer == 0 else out * (1 + bidirectional)
            shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, width), "weight_hh": (rows, out)}
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}
            shapes |= {"weight_hr": (out, hidden_size)} if proj_size else {}
            _set_weights(self, {f"{name}_l{layer}{suffix}": shape for name, shape in shapes.items()}, device, dtype)
        self.reset_parameters()

    def _each(self) -> Iterator[tuple[int, str]]:
        """The layers and directions."""
        for layer in range(self.num_layers):
            yield from ((layer, suffix) for suffix in ("", "_reverse")[: 1 + self.bidirectional])

    def reset_parameters(self) -> None:
        """Draws new parameters."""
        _draw(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Does nothing: where parameters are makes no difference."""

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters, layer by layer."""
        ends = [f"_l{layer}{suffix}" for layer, suffix in self._each()]
        return [[p for name, p in self.named_parameters() if name[name.rindex("_l") :] == end] for end in ends]

    def extra_repr(self) -> str:
        """The sizes and what is not as usual."""
        usual = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0}
        usual["bidirectional"] = False
        others = [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *others])

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:  # noqa: A002
        """The last layer's states for each element of the sequences, and the last states of all layers.

        Args:
            input: (L, N, input_size), or (L, input_size); or sequences that are packed, whose states are packed too.
            hx: the first states, (layers, N, hidden_size); of LSTM a pair; None: zeros.

        Raises:
            RuntimeError: sizes that do not fit.
        """
        if isinstance(input, PackedSequence):
            return self._of_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        if input._shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input._shape[-1]}"
            )
        alone = input.dim() == 2
        x = input.unsqueeze(1) if alone else input.transpose(0, 1) if self.batch_first else input
        output, last = self._through_layers(x, None, self._first_states(x, x._shape[1], hx, alone))
        if alone:
            return output.squeeze(1), self._given([t.squeeze(1) for t in last])
        return output.transpose(0, 1) if self.batch_first else output, self._given(last)

    def _of_packed(self, x: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        sizes = x.batch_sizes.tolist()
        states = self._first_states(x.data, sizes[0], hx, False)
        if hx is not None and x.sorted_indices is not None:
            states = [t.index_select(1, x.sorted_indices) for t in states]
        data, last = self._through_layers(x.data, sizes, states)
        if x.unsorted_indices is not None:
            last = [t.index_select(1, x.unsorted_indices) for t in last]
        return PackedSequence(data, x.batch_sizes, x.sorted_indices, x.unsorted_indices), self._given(last)

    def _given(self, states: list[Tensor]) -> Any:
        return tuple(states) if self._states > 1 else states[0]

    def _first_states(self, x: Tensor, sequences: int, hx: Any, alone: bool) -> list[Tensor]:
        layers = self.num_layers * (1 + self.bidirectional)
        shapes = [(layers, sequences, self.proj_size or self.hidden_size), (layers, sequences, self.hidden_size)]
        if hx is None:
            return [zeros(shape, dtype=x.dtype, device=x.device) for shape in shapes[: self._states]]
        states = list(hx) if self._states > 1 else [hx]
        states = [t.unsqueeze(1) if alone else t for t in states]
        for number, (t, shape) in enumerate(zip(states, shapes, strict=False)):
            if t._shape != shape:
                raise RuntimeError(f"Expected hidden[{number}] size {shape}, got {list(t._shape)}")
        return states

    def _through_layers(
        self, x: Tensor, sizes: Sequence[int] | None, states: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """sizes: how many sequences have an element at each place, of packed ones."""
        if not len(x):
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        last: list[States] = []
        outputs: list[Tensor] = []
        for number, (layer, suffix) in enumerate(self._each()):
            if suffix == "":
                x = cat(outputs, -1) if len(outputs) > 1 else outputs[0] if outputs else x
                if layer and self.dropout:
                    x = F.dropout(x, self.dropout, self.training)
                outputs = []
            first = tuple(t[number] for t in states)
            found, state = self._one_direction(x, sizes, first, f"l{layer}{suffix}")
            outputs.append(stack(found) if sizes is None else cat(found))
            last.append(state)
        result = cat(outputs, -1) if len(outputs) > 1 else outputs[0]
        return result, [stack(each) for each in zip(*last, strict=True)]

    def _one_direction(
        self, x: Tensor, sizes: Sequence[int] | None, first: States, name: str
    ) -> tuple[list[Tensor], States]:
        """The states of one layer for each element; those of the other direction from the last to the first."""
        fed = F.linear(x, getattr(self, f"weight_ih_{name}"), getattr(self, f"bias_ih_{name}", None))
        elements = list(fed.unbind() if sizes is None else fed.split(sizes))
        backwards = name.endswith("_reverse")
        found: list[Tensor] = []
        ended: list[States] = []  # of sequences that are shorter, the shortest first
        state = tuple(t[: len(elements[-1])] for t in first) if backwards and sizes is not None else first
        for element in reversed(elements) if backwards else elements:
            if len(element) < len(state[0]):
                ended.append(tuple(t[len(element) :] for t in state))
                state = tuple(t[: len(element)] for t in state)
            elif len(element) > len(state[0]):
                begun = [t[len(s) : len(element)] for s, t in zip(state, first, strict=True)]
                state = tuple(cat(pair) for pair in zip(state, begun, strict=True))
            state = self._after(element, state, name)
            found.append(state[0])
        if ended:
            state = tuple(cat(parts) for parts in zip(state, *reversed(ended), strict=True))
        return found[::-1] if backwards else found, state

    def _after(self, fed: Tensor, state: States, name: str) -> States:
        """The state after an element."""
        kept = F.linear(state[0], getattr(self, f"weight_hh_{name}"), getattr(self, f"bias_hh_{name}", None))
        state = self._step(fed, kept, state)
        if self.proj_size:
            return F.linear(state[0], getattr(self, f"weight_hr_{name}")), *state[1:]
        return state


def _check_sizes(mode: str, hidden_size: int, num_layers: int, dropout: float, proj_size: int) -> None:
    """Raises:
    ValueError: what cannot be.
    """
    if mode not in _MODES:
        raise ValueError("Unrecognized RNN mode: " + mode)
    if hidden_size <= 0:
        raise ValueError("hidden_size must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size and mode != "LSTM":
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


class RNN(RNNBase):
    """h becomes tanh(W·x + U·h), or relu of it.

    Args:
        args, kwargs: those of recurrent networks; nonlinearity: "tanh" or "relu", behind num_layers.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if len(args) > 3:
            self.nonlinearity, args = args[3], (*args[:3], *args[4:])
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{self.nonlinearity.upper()}", *args, **kwargs)


class LSTM(RNNBase):
    """c becomes σ(f)·c + σ(i)·tanh(g), and h σ(o)·tanh(c), with i, f, g and o the parts of W·x + U·h; with proj_size h
    is multiplied by weight_hr, and that long."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """h becomes (1 - z)·n + z·h, with r and z the sigmoids of parts of W·x + U·h, and n = tanh(Wₙ·x + r·(Uₙ·h))."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)


# -- step by step


class RNNCellBase(Module):
    """What the cells of recurrent networks have in common: one step of one layer.

    Args:
        input_size, hidden_size: the features of an element, and of a state.
        bias: whether there are biases.
        num_chunks: how many times hidden_size rows the weights have.
        device, dtype: of the parameters.

    Attributes:
        weight_ih, weight_hh, bias_ih, bias_hh: at first uniform in ±1/√hidden_size.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        _set_weights(self, {"weight_ih": (rows, input_size), "weight_hh": (rows, hidden_size)}, device, dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new parameters."""
        _draw(self, self.hidden_size)

    def extra_repr(self) -> str:
        """The sizes and what is not as usual."""
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else f", bias={self.bias}")

    def _stepped(self, x: Tensor, hx: Any, mode: str) -> States:
        """The state after an element, which may be without a batch."""
        step, _, count = _MODES[mode]
        if x.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected input to be 1D or 2D, got {x.dim()}D instead")
        alone = x.dim() == 1
        x = x.unsqueeze(0) if alone else x
        if x._shape[1] != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {x._shape[1]} expected {self.input_size}")
        if hx is None:
            state: States = (zeros(x._shape[0], self.hidden_size, dtype=x.dtype, device=x.device),) * count
        else:
            given = tuple(hx) if count > 1 else (hx,)
            state = tuple(t.unsqueeze(0) if alone else t for t in given)
        for number, t in enumerate(state):
            if t._shape[0] != x._shape[0]:
                raise RuntimeError(
                    f"Input batch size {x._shape[0]} doesn't match hidden{number} batch size {t._shape[0]}"
                )
            if t._shape[1] != self.hidden_size:
                raise RuntimeError(
                    f"hidden{number} has inconsistent hidden_size: got {t._shape[1]}, expected {self.hidden_size}"
                )
        fed = F.linear(x, self.weight_ih, self.bias_ih)
        state = step(fed, F.linear(state[0], self.weight_hh, self.bias_hh), state)
        return tuple(t.squeeze(0) for t in state) if alone else state


class RNNCell(RNNCellBase):
    """A step of RNN.

    Args:
        input_size, hidden_size, bias, device, dtype: those of cells.
        nonlinearity: "tanh" or "relu".
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def extra_repr(self) -> str:
        """The sizes and what is not as usual."""
        return super().extra_repr() + ("" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}")

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:  # noqa: A002
        """(N, input_size) and the state (N, hidden_size), None being zeros → the next state.

        Raises:
            RuntimeError: sizes that do not fit, or no such nonlinearity. ValueError: too many dimensions.
        """
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._stepped(input, hx, f"RNN_{self.nonlinearity.upper()}")[0]


class LSTMCell(RNNCellBase):
    """A step of LSTM."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: Any = None) -> States:  # noqa: A002
        """(N, input_size) and a pair of (N, hidden_size), None being zeros → the next pair.

        Raises:
            as RNNCell.
        """
        return self._stepped(input, hx, "LSTM")


class GRUCell(RNNCellBase):
    """A step of GRU."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:  # noqa: A002
        """(N, input_size) and the state (N, hidden_size), None being zeros → the next state.

        Raises:
            as RNNCell.
        """
        return self._stepped(input, hx, "GRU")[0]
