"""Sequences of several lengths: padded, packed, and through recurrent networks; against loops over each of them."""

from __future__ import annotations

from typing import Any

import gradients
import numpy as np
import pytest
from conftest import OpenWorld
from nn_cases import refused

import torchemu as torch
from torchemu import nn
from torchemu.nn.utils import rnn

LENGTHS = [[3, 1, 2], [1], [2, 2], [5, 4, 4, 1], [1, 6]]


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


def arrays(lengths: list[int], *shape: int) -> list[np.ndarray]:
    return [np.random.default_rng([i, n]).standard_normal((n, *shape)) for i, n in enumerate(lengths)]


def tensors(found: list[np.ndarray]) -> list[torch.Tensor]:
    return [torch.from_numpy(a.copy()) for a in found]


@pytest.mark.parametrize("lengths", [*LENGTHS, [0, 2], [0]])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("shape", [(), (2,), (2, 0)])
def test_padding(lengths: list[int], side: str, shape: tuple[int, ...]) -> None:
    given = arrays(lengths, *shape)
    longest = max(lengths)
    want = np.full((len(lengths), longest, *shape), -7.0)
    for row, a in zip(want, given, strict=True):
        row[longest - len(a) :] = a if side == "left" else row[longest - len(a) :]
        if side == "right":
            row[: len(a)] = a
    rows = rnn.pad_sequence(tensors(given), True, -7, side)
    columns = rnn.pad_sequence(tensors(given), padding_value=-7, padding_side=side)
    assert np.array_equal(rows.numpy(), want) and np.array_equal(columns.numpy(), np.swapaxes(want, 0, 1))
    assert columns.is_contiguous() and rows.dtype is torch.float64
    if side == "right":
        again = rnn.unpad_sequence(rows, torch.tensor(lengths), batch_first=True)
        assert all(np.array_equal(t.numpy(), a) for t, a in zip(again, given, strict=True))


def test_padding_other_dtypes_and_rows() -> None:
    padded = rnn.pad_sequence([torch.tensor([1, 2]), torch.tensor([3.7])], True, 2.9)
    assert padded.tolist() == [[1, 2], [3, 2]] and padded.dtype is torch.int64
    assert rnn.pad_sequence(torch.arange(6).view(2, 3)).tolist() == [[0, 3], [1, 4], [2, 5]]
    for side in ("left", "right"):
        gradients.check(lambda *xs, side=side: rnn.pad_sequence(xs, padding_side=side), *arrays([3, 1, 2], 2))
        gradients.check(lambda *xs, side=side: rnn.pad_sequence(xs, True, 1.0, side), *arrays([3, 1, 2]))


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("batch_first", [False, True])
def test_packing(lengths: list[int], batch_first: bool) -> None:
    given = arrays(lengths, 2)
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    steps = [[given[i][t] for i in order if t < lengths[i]] for t in range(max(lengths))]
    padded = rnn.pad_sequence(tensors(given), batch_first)
    packed = rnn.pack_padded_sequence(padded, torch.tensor(lengths), batch_first, enforce_sorted=False)
    assert np.array_equal(packed.data.numpy(), [row for step in steps for row in step])
    assert packed.batch_sizes.tolist() == [len(step) for step in steps]
    assert packed.sorted_indices is not None and packed.sorted_indices.tolist() == order
    again, found = rnn.pad_packed_sequence(packed, batch_first)
    assert torch.equal(again, padded) and found.tolist() == lengths
    longer, _ = rnn.pad_packed_sequence(packed, True, 9.0, max(lengths) + 1)
    for row, a in zip(longer.numpy(), given, strict=True):
        assert np.array_equal(row[: len(a)], a) and (row[len(a) :] == 9).all()
    for t, a in zip(rnn.unpack_sequence(rnn.pack_sequence(tensors(given), False)), given, strict=True):
        assert np.array_equal(t.numpy(), a)
    gradients.check(lambda *xs: rnn.pad_packed_sequence(rnn.pack_sequence(list(xs), False))[0], *arrays(lengths, 1))


def test_sorted_sequences_have_no_order() -> None:
    packed = rnn.pack_sequence(tensors(arrays([3, 2, 2])))
    assert (packed.sorted_indices, packed.unsorted_indices, packed.batch_sizes.tolist()) == (None, None, [3, 3, 1])
    assert packed.to(torch.float32).data.dtype is torch.float32 and packed.double() is packed
    assert packed.half().data.dtype is torch.float16 and packed.cuda().is_cuda and not packed.is_cuda
    data, sizes, *_ = packed
    assert torch.equal(rnn.PackedSequence(data, sizes).data, packed.data) and len(packed) == 4
    moved = rnn.pack_sequence(tensors(arrays([1, 2])), False).cuda()
    assert moved.sorted_indices is not None and moved.sorted_indices.is_cuda and not moved.batch_sizes.is_cuda


NETS: list[tuple[Any, dict[str, Any]]] = [
    (nn.LSTM, {"num_layers": 2, "bidirectional": True}),
    (nn.LSTM, {"proj_size": 2, "bidirectional": True, "num_layers": 2}),
    (nn.GRU, {"bidirectional": True}),
    (nn.RNN, {"num_layers": 2, "bias": False}),
]


@pytest.mark.parametrize(("kind", "options"), NETS)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("given_state", [False, True])
def test_packed_through_networks(kind: Any, options: dict[str, Any], lengths: list[int], given_state: bool) -> None:
    net = kind(2, 3, dtype=torch.float64, **options)
    sequences = tensors(arrays(lengths, 2))
    layers = net.num_layers * (1 + net.bidirectional)
    widths = [net.proj_size or 3, 3][: 1 + (kind is nn.LSTM)]
    state = [torch.from_numpy(np.random.default_rng(w).normal(size=(layers, len(lengths), w))) for w in widths]

    def of(states: list[torch.Tensor]) -> Any:
        return None if not given_state else tuple(states) if len(states) > 1 else states[0]

    output, last = net(rnn.pack_sequence(sequences, enforce_sorted=False), of(state))
    lasts = last if kind is nn.LSTM else (last,)
    for i, (sequence, found) in enumerate(zip(sequences, rnn.unpack_sequence(output), strict=True)):
        want, last_alone = net(sequence, of([t[:, i] for t in state]))
        np.testing.assert_allclose(found.detach().numpy(), want.detach().numpy(), rtol=1e-12, atol=1e-12)
        for t, alone in zip(lasts, last_alone if kind is nn.LSTM else (last_alone,), strict=True):
            np.testing.assert_allclose(t[:, i].detach().numpy(), alone.detach().numpy(), rtol=1e-12, atol=1e-12)


def test_gradients_through_packed() -> None:
    net = nn.LSTM(1, 2, bidirectional=True, dtype=torch.float64)
    gradients.check(lambda *xs: net(rnn.pack_sequence(list(xs), False))[0].data, *arrays([2, 3, 1], 1))


def test_projection() -> None:
    net = nn.LSTM(2, 3, proj_size=1, dtype=torch.float64)
    assert {n: tuple(p.shape) for n, p in net.named_parameters()} == {
        "weight_ih_l0": (12, 2),
        "weight_hh_l0": (12, 1),
        "bias_ih_l0": (12,),
        "bias_hh_l0": (12,),
        "weight_hr_l0": (1, 3),
    }
    x, w = torch.ones(1, 2, dtype=torch.float64), dict(net.named_parameters())
    i, _, g, o = (x @ w["weight_ih_l0"].T + w["bias_ih_l0"] + w["bias_hh_l0"]).chunk(4, 1)
    c = i.sigmoid() * g.tanh()
    assert torch.allclose(net(x)[0], (o.sigmoid() * c.tanh()) @ w["weight_hr_l0"].T)
    assert torch.allclose(net(x)[1][1], c) and repr(net) == "LSTM(2, 3, proj_size=1)"


@pytest.mark.parametrize(("cell", "net"), [(nn.LSTMCell, nn.LSTM), (nn.GRUCell, nn.GRU), (nn.RNNCell, nn.RNN)])
@pytest.mark.parametrize("bias", [True, False])
def test_cells_are_steps_of_networks(cell: Any, net: Any, bias: bool) -> None:
    one, all_steps = cell(2, 3, bias, dtype=torch.float64), net(2, 3, bias=bias, dtype=torch.float64)
    for name, p in all_steps.named_parameters():
        with torch.no_grad():
            p.copy_(getattr(one, name.removesuffix("_l0")))
    x = torch.from_numpy(arrays([4], 5, 2)[0])
    wanted, state = all_steps(x)[0], None
    for element, want in zip(x, wanted, strict=True):
        state = one(element, state)
        assert torch.allclose(state[0] if cell is nn.LSTMCell else state, want)
    alone = one(x[0, 0])
    assert torch.allclose(alone[0] if cell is nn.LSTMCell else alone, wanted[0, 0])


def test_cells_say_what_is_wrong() -> None:
    assert repr(nn.LSTMCell(1, 2)) == "LSTMCell(1, 2)" and repr(nn.GRUCell(1, 2, False)) == "GRUCell(1, 2, bias=False)"
    assert repr(nn.RNNCell(1, 2, nonlinearity="relu")) == "RNNCell(1, 2, nonlinearity=relu)"
    one = torch.ones(3, 1)
    assert (nn.RNNCell(1, 2, nonlinearity="relu")(one) >= 0).all()
    for call, error in (
        (lambda: nn.LSTMCell(1, 2)(torch.ones(3, 2)), "input has inconsistent input_size: got 2 expected 1"),
        (lambda: nn.RNNCell(1, 2)(one, torch.ones(2, 2)), "Input batch size 3 doesn't match hidden0 batch size 2"),
        (lambda: nn.GRUCell(1, 2)(one, torch.ones(3, 3)), "hidden0 has inconsistent hidden_size: got 3, expected 2"),
        (lambda: nn.RNNCell(1, 2, nonlinearity="x")(one), "Unknown nonlinearity: x"),
    ):
        assert refused(call) == ("RuntimeError", error)
    text = "RNNCell: Expected input to be 1D or 2D, got 3D instead"
    assert refused(lambda: nn.RNNCell(1, 2)(torch.ones(1, 1, 1))) == ("ValueError", text)
    for kind in (nn.GRU, nn.RNN):
        text = "proj_size argument is only supported for LSTM, not RNN or GRU"
        assert refused(lambda kind=kind: kind(1, 2, proj_size=1)) == ("ValueError", text)
    assert refused(lambda: nn.LSTM(1, 2, proj_size=2))[1] == "proj_size has to be smaller than hidden_size"


def test_sequences_that_cannot_be() -> None:
    padded = torch.zeros(3, 2)
    for call, error in (
        (lambda: rnn.pad_sequence([]), "received an empty list of sequences"),
        (
            lambda: rnn.pad_sequence(3),
            "pad_sequence: Expected iterable for input sequences, but got arg of type: <class",
        ),
        (
            lambda: rnn.pad_sequence([padded], padding_side="up"),
            "Expected padding_side to be one of left or right, but",
        ),
        (lambda: rnn.pad_sequence([padded, padded[:, :1]]), "The size of tensor a (2) must match the size of tensor b"),
        (lambda: rnn.pack_padded_sequence(padded, [1]), "Expected `len(lengths)` to be equal to batch_size, but got 1"),
        (lambda: rnn.pack_padded_sequence(padded, [1, 2]), "`lengths` array must be sorted in decreasing order when"),
        (lambda: rnn.pack_padded_sequence(padded, [1, 0]), "Length of all samples has to be greater than 0, but found"),
        (lambda: rnn.pack_padded_sequence(padded, [4, 1]), "Expected `lengths` up to 3, the length of the padded"),
        (lambda: rnn.pack_padded_sequence(torch.zeros(3, 0), []), "Cannot pack empty tensors."),
    ):
        kind, text = refused(call)
        assert kind == "RuntimeError" and text.startswith(error)
    packed = rnn.pack_sequence([torch.ones(3), torch.ones(2)])
    assert refused(lambda: rnn.pad_packed_sequence(packed, total_length=2)) == (
        "ValueError",
        "Expected total_length to be at least the length of the longest sequence in input, but got total_length=2 and "
        "max sequence length being 3",
    )
    assert refused(lambda: rnn.PackedSequence(torch.ones(3)))[0] == "AssertionError"
