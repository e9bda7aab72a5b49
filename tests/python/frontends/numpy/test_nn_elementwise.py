"""Activations and losses element by element: against NumPy, gradients against central differences."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from nn_gradients import check

import torchemu as torch
import torchemu.nn.functional as F  # noqa: N812 (its usual name)
from torchemu import nn

RNG = np.random.default_rng


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


def normal(seed: int, *shape: int) -> np.ndarray:
    return 3 * RNG([seed, *shape]).standard_normal(shape)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


SELU = 1.6732632423543772, 1.0507009873554805
ACTIVATIONS: dict[
    str, tuple[Any, Any, Any]
] = {  # a function of tensors, one of arrays, and a module that does the same
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.3), lambda x: np.where(x > 0, x, 0.3 * x), nn.LeakyReLU(0.3)),
    "elu": (lambda x: F.elu(x, 0.7), lambda x: np.where(x > 0, x, 0.7 * (np.exp(x) - 1)), nn.ELU(0.7)),
    "celu": (lambda x: F.celu(x, 0.7), lambda x: np.where(x > 0, x, 0.7 * (np.exp(x / 0.7) - 1)), nn.CELU(0.7)),
    "selu": (F.selu, lambda x: SELU[1] * np.where(x > 0, x, SELU[0] * (np.exp(x) - 1)), nn.SELU()),
    "hardtanh": (lambda x: F.hardtanh(x, -2, 1.5), lambda x: np.clip(x, -2, 1.5), nn.Hardtanh(-2, 1.5)),
    "relu6": (F.relu6, lambda x: np.clip(x, 0, 6), nn.ReLU6()),
    "hardsigmoid": (F.hardsigmoid, lambda x: np.clip((x + 3) / 6, 0, 1), nn.Hardsigmoid()),
    "hardswish": (F.hardswish, lambda x: x * np.clip((x + 3) / 6, 0, 1), nn.Hardswish()),
    "logsigmoid": (F.logsigmoid, lambda x: np.log(sigmoid(x)), nn.LogSigmoid()),
    "mish": (F.mish, lambda x: x * np.tanh(np.log(1 + np.exp(x))), nn.Mish()),
    "softsign": (F.softsign, lambda x: x / (1 + np.abs(x)), nn.Softsign()),
    "tanhshrink": (F.tanhshrink, lambda x: x - np.tanh(x), nn.Tanhshrink()),
    "hardshrink": (F.hardshrink, lambda x: x * (np.abs(x) > 0.5), nn.Hardshrink()),
    "softshrink": (F.softshrink, lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0), nn.Softshrink()),
    "threshold": (lambda x: F.threshold(x, 0.2, -4.0), lambda x: np.where(x > 0.2, x, -4), nn.Threshold(0.2, -4.0)),
    "softmin": (lambda x: F.softmin(x, -1), lambda x: softmax(-x), nn.Softmin(-1)),
    "glu": (F.glu, lambda x: x[..., : x.shape[-1] // 2] * sigmoid(x[..., x.shape[-1] // 2 :]), nn.GLU()),
}


@pytest.mark.parametrize("shape", [(3, 4), (2,), (0, 2), (2, 2, 2)])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str, shape: tuple[int, ...]) -> None:
    function, oracle, module = ACTIVATIONS[name]
    x = normal(1, *shape)
    check(function, oracle, [x])
    np.testing.assert_allclose(module(torch.from_numpy(x)).numpy(), oracle(x), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ["leaky_relu", "elu", "hardtanh", "mish", "threshold"])
def test_activations_of_short_floats_and_of_extremes(name: str) -> None:
    function, oracle, _ = ACTIVATIONS[name]
    x = torch.tensor([-300.0, -1.5, -0.0, 0.0, 1e-20, 2.0, 80.0], dtype=torch.bfloat16)
    got = function(x)
    with np.errstate(over="ignore"):
        wanted = oracle(x.double().numpy())
    assert got.dtype is torch.bfloat16
    np.testing.assert_allclose(got.double().numpy(), wanted, rtol=2**-8, atol=1e-30)


@pytest.mark.parametrize(
    "module", [nn.LeakyReLU(inplace=True), nn.ELU(inplace=True), nn.Hardswish(True), nn.ReLU6(True)]
)
def test_activations_in_place(module: nn.Module) -> None:
    x = torch.from_numpy(normal(2, 5))
    module.inplace = False
    wanted = module(x).tolist()
    module.inplace = True
    assert module(x) is x
    assert x.tolist() == wanted


@pytest.mark.parametrize("count", [1, 3])
def test_a_slope_that_is_learnt(count: int) -> None:
    check(
        F.prelu,
        lambda x, w: np.where(x > 0, x, x * w.reshape(1, -1, 1)),
        [normal(3, 2, 3, 2), normal(4, count)],
    )
    with pytest.raises(RuntimeError, match="Mismatch of parameter numbers and input channel size"):
        F.prelu(torch.ones(2, 4), torch.ones(3))


# -- losses


def entropy(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    return -(t * np.log(x) + (1 - t) * np.log(1 - x))


def rounded(d: np.ndarray, edge: float) -> np.ndarray:
    return np.where(np.abs(d) < edge, d * d / 2 / edge, np.abs(d) - edge / 2)


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).sum(1, keepdims=True))


X, Y, PROBABILITIES, SIGNS = normal(5, 4, 3), normal(6, 4, 3), sigmoid(normal(7, 4, 3)), np.array([1, -1, -1, 1])
WEIGHT, POSITIVE = np.abs(normal(8, 4, 3)), np.abs(normal(9, 3))
T = torch.tensor


def constant(x: np.ndarray) -> Any:
    return lambda: torch.from_numpy(np.asarray(x, np.float64))


LOSSES: dict[str, tuple[Any, Any, list[np.ndarray]]] = {
    "bce": (F.binary_cross_entropy, lambda x, t: entropy(x, t).mean(), [sigmoid(X / 3), PROBABILITIES]),
    "bce with weights": (
        lambda x, t: F.binary_cross_entropy(x, t, constant(WEIGHT)(), reduction="sum"),
        lambda x, t: (WEIGHT * entropy(x, t)).sum(),
        [sigmoid(X / 3), PROBABILITIES],
    ),
    "logits": (F.binary_cross_entropy_with_logits, lambda x, t: entropy(sigmoid(x), t).mean(), [X, PROBABILITIES]),
    "positive weights": (
        lambda x: F.binary_cross_entropy_with_logits(
            x, constant(PROBABILITIES)(), constant(WEIGHT)(), reduction="none", pos_weight=constant(POSITIVE)()
        ),
        lambda x: -WEIGHT * (
            POSITIVE * PROBABILITIES * np.log(sigmoid(x)) + (1 - PROBABILITIES) * np.log(1 - sigmoid(x))
        ),
        [X],
    ),
    "divergence": (
        lambda x: F.kl_div(x, constant(softmax(Y))(), reduction="batchmean"),
        lambda x: (softmax(Y) * (np.log(softmax(Y)) - x)).sum() / 4,
        [X],
    ),
    "divergence of logarithms": (
        lambda x, t: F.kl_div(x, t, reduction="sum", log_target=True),
        lambda x, t: (np.exp(t) * (t - x)).sum(),
        [X, Y],
    ),
    "smooth_l1": (lambda x, t: F.smooth_l1_loss(x, t, beta=0.7), lambda x, t: rounded(x - t, 0.7).mean(), [X, Y]),
    "smooth_l1 as l1": (lambda x, t: F.smooth_l1_loss(x, t, beta=0.0), lambda x, t: np.abs(x - t).mean(), [X, Y]),
    "huber": (
        lambda x, t: F.huber_loss(x, t, "none", 0.7), lambda x, t: 0.7 * rounded(x - t, 0.7), [X, Y]
    ),
    "normalize": (F.normalize, unit, [X]),
    "cosine": (F.cosine_similarity, lambda x, y: (unit(x) * unit(y)).sum(1), [X, Y]),
    "distance": (
        F.pairwise_distance, lambda x, y: np.sqrt(((x - y + 1e-6) ** 2).sum(1)), [X, Y]
    ),
    "ranking": (
        lambda x, y: F.margin_ranking_loss(x, y, T(SIGNS), 0.3, reduction="none"),
        lambda x, y: np.maximum(-SIGNS * (x - y) + 0.3, 0),
        [X[:, 0], Y[:, 0]],
    ),
    "hinge": (
        lambda x: F.hinge_embedding_loss(x, T(SIGNS)),
        lambda x: np.where(SIGNS == 1, x, np.maximum(1 - x, 0)).mean(),
        [X[:, 0]],
    ),
    "cosine loss": (
        lambda x, y: F.cosine_embedding_loss(x, y, T(SIGNS), 0.1, reduction="sum"),
        lambda x, y: np.where(
            SIGNS == 1, 1 - (unit(x) * unit(y)).sum(1), np.maximum((unit(x) * unit(y)).sum(1) - 0.1, 0)
        ).sum(),
        [X, Y],
    ),
    "triplets": (
        lambda a, p, n: F.triplet_margin_loss(a, p, n, swap=True, reduction="none"),
        lambda a, p, n: np.maximum(
            np.linalg.norm(a - p + 1e-6, axis=1)
            - np.minimum(np.linalg.norm(a - n + 1e-6, axis=1), np.linalg.norm(p - n + 1e-6, axis=1)) + 1, 0
        ),
        [X, Y, normal(10, 4, 3)],
    ),
    "soft margin": (
        lambda x: F.soft_margin_loss(x, T(SIGNS)), lambda x: np.log1p(np.exp(-SIGNS * x)).mean(), [X[:, 0]]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name: str) -> None:
    function, oracle, arrays = LOSSES[name]
    check(function, oracle, arrays)


def test_losses_at_the_ends() -> None:
    """Logarithms of zero are -100, and logits of any size neither overflow nor lose their sign."""
    assert F.binary_cross_entropy(T([0.0, 1.0]), T([1.0, 1.0]), reduction="none").tolist() == [100, 0]
    logits = F.binary_cross_entropy_with_logits(T([1e4, -1e4, 0.0]), T([0.0, 0.0, 1.0]), reduction="none")
    np.testing.assert_allclose(logits.numpy(), [1e4, 0, np.log(2)], rtol=1e-6)
    assert F.normalize(torch.zeros(2, 2)).tolist() == [[0, 0], [0, 0]]


def test_losses_as_modules() -> None:
    x, t, p = torch.from_numpy(X), torch.from_numpy(Y), torch.from_numpy(PROBABILITIES)
    pairs = [
        (nn.BCELoss(reduction="sum")(p, p), F.binary_cross_entropy(p, p, reduction="sum")),
        (nn.BCEWithLogitsLoss(pos_weight=p)(x, p), F.binary_cross_entropy_with_logits(x, p, pos_weight=p)),
        (nn.KLDivLoss(reduction="batchmean", log_target=True)(x, t), F.kl_div(x, t, None, None, "batchmean", True)),
        (nn.SmoothL1Loss(beta=0.3)(x, t), F.smooth_l1_loss(x, t, beta=0.3)),
        (nn.HuberLoss("sum", 0.3)(x, t), F.huber_loss(x, t, "sum", 0.3)),
        (nn.CosineSimilarity(0)(x, t), F.cosine_similarity(x, t, 0)),
        (nn.PairwiseDistance(1.0)(x, t), F.pairwise_distance(x, t, 1.0)),
        (nn.TripletMarginLoss(2.0)(x, t, p), F.triplet_margin_loss(x, t, p, 2.0)),
        (nn.MarginRankingLoss(0.5)(x, t, p), F.margin_ranking_loss(x, t, p, 0.5)),
        (nn.HingeEmbeddingLoss(0.5)(x, p), F.hinge_embedding_loss(x, p, 0.5)),
        (nn.CosineEmbeddingLoss(0.5)(x, t, T(SIGNS)), F.cosine_embedding_loss(x, t, T(SIGNS), 0.5)),
        (nn.SoftMarginLoss()(x, p), F.soft_margin_loss(x, p)),
    ]
    for got, wanted in pairs:
        np.testing.assert_array_equal(got.numpy(), wanted.numpy())


def test_misuse() -> None:
    x = torch.ones(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind, text, call in (
            (ValueError, "different to the input size", lambda: F.binary_cross_entropy(x, x[0])),
            (ValueError, "must be the same as input size", lambda: F.binary_cross_entropy_with_logits(x, x[0])),
            (RuntimeError, "between 0 and 1", lambda: F.binary_cross_entropy(x * 2, x)),
            (RuntimeError, "non-positive values for delta", lambda: F.huber_loss(x, x, delta=0)),
            (RuntimeError, "negative values for beta", lambda: F.smooth_l1_loss(x, x, beta=-1)),
            (ValueError, "margin must be greater than 0", lambda: F.triplet_margin_loss(x, x, x, margin=0)),
            (RuntimeError, "Halving dimension must be even", lambda: F.glu(x)),
            (ValueError, "min_val cannot be greater", lambda: F.hardtanh(x, 1, -1)),
            (RuntimeError, "alpha cannot be 0", lambda: F.celu(x, 0)),
            (RuntimeError, "lambda must be greater or equal to 0", lambda: F.softshrink(x, -1)),
            (TypeError, "must be Tensor, not float", lambda: F.leaky_relu(1.0)),
            (NotImplementedError, "leaky_relu", lambda: F.leaky_relu(x.long())),
            (ValueError, "dropout probability", lambda: F.dropout2d(x, 2.0)),
        ):
            with pytest.raises(kind, match=text):
                call()


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_whole_channels_are_dropped(ndim: int) -> None:
    torch.manual_seed(3)
    x = torch.ones(4, 8, *[3] * ndim)
    module = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)[ndim - 1](0.25)
    found = module(x).flatten(2)
    assert {tuple(row) for row in found.flatten(0, 1).tolist()} == {(0.0,) * 3**ndim, (found.max().item(),) * 3**ndim}
    assert found.max().item() == pytest.approx(1 / 0.75, rel=1e-6)
    assert module.eval()(x) is x
