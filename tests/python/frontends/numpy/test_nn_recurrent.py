"""Recurrent networks and decoders: against loops in NumPy, gradients against central differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from nn_gradients import check

import torchemu as torch
from torchemu import nn

RNG = np.random.default_rng


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


def normal(seed: int, *shape: int) -> np.ndarray:
    return RNG([seed, *shape]).standard_normal(shape)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def step(kind: str, fed: np.ndarray, kept: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n = h.shape[-1]
    parts = [slice(i * n, (i + 1) * n) for i in range(fed.shape[-1] // n)]
    if kind == "RNN":
        return np.tanh(fed + kept), c
    if kind == "LSTM":
        i, f, g, o = ((fed + kept)[:, part] for part in parts)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    r, z = (sigmoid((fed + kept)[:, part]) for part in parts[:2])
    new = np.tanh(fed[:, parts[2]] + r * kept[:, parts[2]])
    return (1 - z) * new + z * h, c


def run(net: Any, x: np.ndarray, h0: np.ndarray, c0: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All outputs, and the last states, of sequences (L, N, features)."""
    weights = {name: p.detach().numpy() for name, p in net.named_parameters()}
    directions = 2 if net.bidirectional else 1
    last_h, last_c = [], []
    for layer in range(net.num_layers):
        outputs = []
        for direction in range(directions):
            name = f"l{layer}{'_reverse' * direction}"
            h, c = h0[layer * directions + direction], c0[layer * directions + direction]
            found = []
            for element in x[::-1] if direction else x:
                fed = element @ weights[f"weight_ih_{name}"].T + weights.get(f"bias_ih_{name}", 0)
                kept = h @ weights[f"weight_hh_{name}"].T + weights.get(f"bias_hh_{name}", 0)
                h, c = step(type(net).__name__, fed, kept, h, c)
                found.append(h)
            outputs.append(np.stack(found[::-1] if direction else found))
            last_h.append(h)
            last_c.append(c)
        x = np.concatenate(outputs, -1)
    return x, np.stack(last_h), np.stack(last_c)


@pytest.mark.parametrize(
    "options", [{}, {"num_layers": 2, "bidirectional": True}, {"num_layers": 3, "bias": False}], ids=str
)
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_sequences(kind: str, options: dict[str, Any]) -> None:
    torch.manual_seed(1)
    net = getattr(nn, kind)(3, 2, **options).double()
    states = net.num_layers * (2 if net.bidirectional else 1)
    x, h0, c0 = normal(1, 4, 2, 3), normal(2, states, 2, 2), normal(3, states, 2, 2)

    def call(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        output, last = net(x, (h, c) if kind == "LSTM" else h)
        last = last if kind == "LSTM" else (last, c)
        return torch.cat([t.reshape(-1) for t in (output, *last)])

    def oracle(*arrays: np.ndarray) -> np.ndarray:
        output, h, c = run(net, *arrays)
        return np.concatenate([t.reshape(-1) for t in (output, h, c if kind == "LSTM" else arrays[2])])

    check(call, oracle, [x, h0, c0])
    none = np.zeros((states, 2, 2))
    np.testing.assert_allclose(net(torch.from_numpy(x))[0].detach().numpy(), run(net, x, none, none)[0], rtol=1e-12)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_layouts(kind: str) -> None:
    torch.manual_seed(1)
    net, other = getattr(nn, kind)(3, 2, 2), getattr(nn, kind)(3, 2, 2, batch_first=True)
    other.load_state_dict(net.state_dict())
    x = torch.tensor(normal(1, 4, 2, 3)).float()
    output, last = net(x)
    turned, same = other(x.transpose(0, 1))
    alone, state = net(x[:, 0])
    first, kept, single = (t[0] if kind == "LSTM" else t for t in (last, same, state))
    assert turned.transpose(0, 1).tolist() == output.tolist()
    assert kept.tolist() == first.tolist()
    np.testing.assert_allclose(alone.detach().numpy(), output[:, 0].detach().numpy(), rtol=1e-6)
    assert single.shape == (2, 2)
    assert len(net(x[:1])[0]) == 1


def test_dropout_is_between_layers_only() -> None:
    net = nn.LSTM(3, 2, 2, dropout=1.0)
    x = torch.tensor(normal(1, 4, 2, 3)).float()
    assert net(x)[0].tolist() == net(x * 9)[0].tolist()
    assert net.eval()(x)[0].tolist() != net(x * 9)[0].tolist()


def test_misuse() -> None:
    x = torch.ones(4, 2, 3)
    for kind, text, call in (
        (ValueError, "hidden_size must be greater than zero", lambda: nn.LSTM(3, 0)),
        (ValueError, "num_layers must be greater than zero", lambda: nn.GRU(3, 1, 0)),
        (ValueError, "dropout should be a number in range", lambda: nn.GRU(3, 1, dropout=2.0)),
        (ValueError, "Unknown nonlinearity 'sine'", lambda: nn.RNN(3, 1, nonlinearity="sine")),
        (ValueError, "Expected input to be 2D or 3D, got 1D", lambda: nn.RNN(3, 1)(x[0, 0])),
        (RuntimeError, "Expected 4, got 3", lambda: nn.GRU(4, 1)(x)),
        (RuntimeError, "Expected sequence length to be larger than 0", lambda: nn.LSTM(3, 1)(x[:0])),
        (RuntimeError, r"Expected hidden\[1\] size \(1, 2, 1\), got \[1, 1, 1\]",
         lambda: nn.LSTM(3, 1)(x, (torch.ones(1, 2, 1), torch.ones(1, 1, 1)))),
        (RuntimeError, "batch number of src and tgt must be equal", lambda: nn.Transformer(3, 1, 1, 1)(x, x[:, :1])),
        (RuntimeError, "must be equal to d_model", lambda: nn.Transformer(4, 1, 1, 1)(x, x)),
    ):  # fmt: skip
        with pytest.raises(kind, match=text):
            call()


# -- decoders


def attended(net: Any, x: np.ndarray, memory: np.ndarray, mask: Any = 0.0) -> np.ndarray:
    """One head; (L, E)."""
    weights, bias = np.split(net.in_proj_weight.detach().numpy(), 3), np.split(net.in_proj_bias.detach().numpy(), 3)
    q, k, v = (t @ w.T + b for t, w, b in zip((x, memory, memory), weights, bias, strict=True))
    scores = q @ k.T / np.sqrt(q.shape[-1]) + mask
    e = np.exp(scores - scores.max(-1, keepdims=True))
    found = e / e.sum(-1, keepdims=True) @ v
    return found @ net.out_proj.weight.detach().numpy().T + net.out_proj.bias.detach().numpy()


def normalized(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def linear(net: Any, x: np.ndarray) -> np.ndarray:
    return x @ net.weight.detach().numpy().T + net.bias.detach().numpy()


@pytest.mark.parametrize("first", [False, True])
def test_decoders(first: bool) -> None:
    torch.manual_seed(1)
    net = nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 1, 6, 0.0, norm_first=first), 2).double()
    mask = nn.Transformer.generate_square_subsequent_mask(3).double()

    def oracle(x: np.ndarray, memory: np.ndarray) -> np.ndarray:
        for layer in net.layers:
            for part in (
                lambda t, layer=layer: attended(layer.self_attn, t, t, mask.numpy()),
                lambda t, layer=layer: attended(layer.multihead_attn, t, memory),
                lambda t, layer=layer: linear(layer.linear2, np.maximum(linear(layer.linear1, t), 0)),
            ):
                x = x + part(normalized(x)) if first else normalized(x + part(x))
        return x

    check(lambda x, memory: net(x, memory, tgt_mask=mask), oracle, [normal(1, 3, 4), normal(2, 5, 4)])


def test_an_encoder_and_a_decoder() -> None:
    torch.manual_seed(1)
    net = nn.Transformer(4, 2, 1, 1, 6, batch_first=True).eval()
    src, tgt = torch.tensor(normal(1, 2, 5, 4)).float(), torch.tensor(normal(2, 2, 3, 4)).float()
    mask = net.generate_square_subsequent_mask(3)
    assert mask.tolist() == [[0, -np.inf, -np.inf], [0, 0, -np.inf], [0, 0, 0]]
    wanted = net.decoder(tgt, net.encoder(src), tgt_mask=mask)
    assert net(src, tgt, tgt_mask=mask).tolist() == wanted.tolist()
    assert net(src, tgt, tgt_mask=mask)[:, :2].allclose(net(src, tgt[:, :2], tgt_mask=mask[:2, :2]), atol=1e-6)
