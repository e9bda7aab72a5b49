"""MultiheadAttention and the encoder that is made of it: against NumPy head by head, with masks; gradients; misuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from nn_cases import refused
from nn_gradients import check

import torchemu as torch
from torchemu import nn

RNG = np.random.default_rng
WIDTH, HEADS, L, S, N = 6, 3, 4, 5, 2


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")
    torch.manual_seed(0)


def normal(seed: int, *shape: int) -> np.ndarray:
    return RNG([seed, *shape]).standard_normal(shape)


def attention(**options: Any) -> nn.MultiheadAttention:
    """One whose parameters are all random."""
    m = nn.MultiheadAttention(WIDTH, HEADS, dtype=torch.float64, **options)
    for i, p in enumerate(m.parameters()):
        p.data = torch.from_numpy(normal(100 + i, *p.shape) / 2)
    return m


def weights_of(m: nn.MultiheadAttention) -> dict[str, Any]:
    state = {name: p.detach().numpy() for name, p in m.named_parameters()}
    if "in_proj_weight" in state:
        parts = np.split(state["in_proj_weight"], 3)
    else:
        parts = [state[f"{which}_proj_weight"] for which in "qkv"]
    biases = np.split(state["in_proj_bias"], 3) if "in_proj_bias" in state else [0.0] * 3
    return {
        "in": list(zip(parts, biases, strict=True)),
        "out": (state["out_proj.weight"], state.get("out_proj.bias", 0.0)),
    }


def oracle(
    m: nn.MultiheadAttention,
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    mask: Any = None,
    padding: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Batch first; mask (heads·batch or 1, L, S) and padding (batch, S) are what is added."""
    about = weights_of(m)
    q, k, v = (x @ w.T + b for x, (w, b) in zip((query, key, value), about["in"], strict=True))
    size, batch = WIDTH // HEADS, query.shape[0]
    found = np.zeros(query.shape[:2] + (WIDTH,))  # noqa: RUF005
    weights = np.zeros((batch, HEADS, query.shape[1], key.shape[1]))
    for n in range(batch):
        for h in range(HEADS):
            own = slice(h * size, (h + 1) * size)
            for i in range(query.shape[1]):
                scores = np.array([q[n, i, own] @ k[n, j, own] / math.sqrt(size) for j in range(key.shape[1])])
                if mask is not None:
                    scores = scores + mask[(n * HEADS + h) % len(mask), i]
                if padding is not None:
                    scores = scores + padding[n]
                e = np.exp(scores - scores.max())
                weights[n, h, i] = e / e.sum()
                found[n, i, own] = sum(w * v[n, j, own] for j, w in enumerate(weights[n, h, i]))
    w, b = about["out"]
    return found @ w.T + b, weights


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("dims", [{}, {"kdim": 3, "vdim": 5}])
def test_with_gradients(bias: bool, need_weights: bool, dims: dict[str, int]) -> None:
    m = attention(bias=bias, batch_first=True, **dims)
    arrays = [normal(1, N, L, WIDTH), normal(2, N, S, m.kdim), normal(3, N, S, m.vdim)]
    check(lambda *qkv: m(*qkv, need_weights=need_weights)[0], lambda *qkv: oracle(m, *qkv)[0], arrays)


def test_of_itself() -> None:
    m = attention(batch_first=True)
    x = normal(1, N, L, WIDTH)
    check(lambda t: m(t, t, t, need_weights=False)[0], lambda a: oracle(m, a, a, a)[0], [x])
    check(lambda t: m(t, t, t)[1], lambda a: oracle(m, a, a, a)[1].mean(1), [x])
    check(lambda t: m(t, t, t, average_attn_weights=False)[1], lambda a: oracle(m, a, a, a)[1], [x])


def test_layouts() -> None:
    m = attention()
    x, y = normal(1, L, N, WIDTH), normal(2, S, N, WIDTH)
    want, weights = oracle(m, x.swapaxes(0, 1), y.swapaxes(0, 1), y.swapaxes(0, 1))
    got, found = m(*(torch.from_numpy(a) for a in (x, y, y)))
    np.testing.assert_allclose(got.detach().numpy(), want.swapaxes(0, 1), rtol=1e-11)
    np.testing.assert_allclose(found.detach().numpy(), weights.mean(1), rtol=1e-11)
    alone, found = m(*(torch.from_numpy(a[:, 0].copy()) for a in (x, y, y)))
    np.testing.assert_allclose(alone.detach().numpy(), want[0], rtol=1e-11)
    assert found.shape == (L, S)


@pytest.mark.parametrize("need_weights", [True, False])
def test_masks(need_weights: bool) -> None:
    m = attention(batch_first=True)
    arrays = [normal(1, N, L, WIDTH), normal(2, N, S, WIDTH), normal(3, N, S, WIDTH)]
    hidden = RNG(4).random((L, S)) < 0.3
    hidden[:, 0] = False
    unused = np.zeros((N, S), bool)
    unused[1, 3:] = True
    each = normal(5, N * HEADS, L, S)
    minus = {True: -math.inf, False: 0.0}
    cases: list[tuple[dict[str, Any], Any, Any]] = [
        ({"attn_mask": hidden}, np.vectorize(minus.get)(hidden)[None], None),
        ({"key_padding_mask": unused}, None, np.vectorize(minus.get)(unused)),
        ({"attn_mask": each}, each, None),
        ({"attn_mask": each, "key_padding_mask": unused}, each, np.vectorize(minus.get)(unused)),
    ]
    for masks, mask, padding in cases:
        given = {name: torch.from_numpy(a) for name, a in masks.items()}
        check(
            lambda *qkv, given=given: m(*qkv, need_weights=need_weights, **given)[0],
            lambda *qkv, mask=mask, padding=padding: oracle(m, *qkv, mask, padding)[0],
            arrays,
        )


def test_the_same_parameters_as_pytorch() -> None:
    """Names, shapes, and the first numbers of seed 1 in PyTorch 2.11."""
    torch.manual_seed(1)
    m = nn.MultiheadAttention(4, 2)
    assert {k: tuple(v.shape) for k, v in m.state_dict().items()} == {
        "in_proj_weight": (12, 4),
        "in_proj_bias": (12,),
        "out_proj.weight": (4, 4),
        "out_proj.bias": (4,),
    }
    assert not m.in_proj_bias.any().item() and not m.out_proj.bias.any().item()
    other = nn.MultiheadAttention(4, 2, kdim=3, vdim=5, bias=False)
    assert list(other.state_dict()) == ["q_proj_weight", "k_proj_weight", "v_proj_weight", "out_proj.weight"]


def test_an_encoder() -> None:
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 8, activation="gelu", norm_first=True, batch_first=True).double()
    m = nn.TransformerEncoder(layer, 2, nn.LayerNorm(WIDTH).double()).eval()
    assert len(m.state_dict()) == 2 * 12 + 2 and m.layers[0] is not m.layers[1]
    causal = torch.from_numpy(np.triu(np.full((L, L), -np.inf), 1))
    x = torch.from_numpy(normal(1, N, L, WIDTH)).requires_grad_()
    y = m(x, mask=causal, is_causal=True)
    y[:, 1].sum().backward()
    assert x.grad is not None and not x.grad[:, 2:].any().item() and x.grad[:, :2].abs().min().item() > 0


@pytest.mark.parametrize("norm_first", [True, False])
def test_a_layer_of_the_encoder(norm_first: bool) -> None:
    m = nn.TransformerEncoderLayer(WIDTH, HEADS, 8, dropout=0.0, norm_first=norm_first).double()

    def norm(x: np.ndarray) -> np.ndarray:
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def attend(x: np.ndarray) -> np.ndarray:
        a = x.swapaxes(0, 1)
        return oracle(m.self_attn, a, a, a)[0].swapaxes(0, 1)

    def feed(x: np.ndarray) -> np.ndarray:
        w, b, v, c = (p.detach().numpy() for p in (*m.linear1.parameters(), *m.linear2.parameters()))
        return np.maximum(x @ w.T + b, 0) @ v.T + c

    def whole(x: np.ndarray) -> np.ndarray:
        if norm_first:
            x = x + attend(norm(x))
            return x + feed(norm(x))
        x = norm(x + attend(x))
        return norm(x + feed(x))

    check(m, whole, [normal(1, L, N, WIDTH)])


def test_dropout_is_for_training() -> None:
    m = attention(dropout=0.5)
    x = torch.from_numpy(normal(1, L, WIDTH))
    m.eval()
    assert m(x, x, x)[0].tolist() == m(x, x, x)[0].tolist()
    m.train()
    assert m(x, x, x)[0].tolist() != m(x, x, x)[0].tolist()


def test_misuse() -> None:
    m, x = nn.MultiheadAttention(4, 2), torch.ones(3, 4)
    wanted: list[tuple[Any, str, str]] = [
        (lambda: m(x, x, x, is_causal=True), "RuntimeError", "Need attn_mask if specifying the is_causal hint."),
        (lambda: m(x[:, :3], x, x), "AssertionError", "was expecting embedding dimension of 4, but got 3"),
        (lambda: nn.MultiheadAttention(4, 3), "AssertionError", "embed_dim must be divisible by num_heads"),
        (lambda: nn.TransformerEncoderLayer(4, 2, activation="x"), "RuntimeError", "activation should be relu/gelu, not x"),  # noqa: E501
    ]  # fmt: skip
    for call, kind, text in wanted:
        assert refused(call) == (kind, text)
    assert refused(lambda: m(x, x, x[:2]))[0] == "AssertionError"
    assert refused(lambda: nn.MultiheadAttention(4, 2, add_zero_attn=True))[0] == "NotImplementedError"
