"""Losses of margins and distributions, CTC, bags of embeddings, bilinear layers, and noise: against their "
"definitions."""

from __future__ import annotations

import itertools
import math
from typing import Any

import gradients
import numpy as np
import pytest
from conftest import OpenWorld
from nn_cases import refused

import torchemu as torch
import torchemu.nn.functional as F  # noqa: N812 (its usual name)
from torchemu import nn


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


def normal(*shape: int) -> np.ndarray:
    return np.asarray(np.random.default_rng([4, *shape]).standard_normal(shape))


def integers(high: int, *shape: int) -> np.ndarray:
    return np.random.default_rng([5, *shape]).integers(0, high, shape)


def t(array: Any) -> torch.Tensor:
    return torch.from_numpy(np.array(array))


def close(got: Any, want: Any) -> None:
    assert tuple(got.shape) == np.shape(want)
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-10, atol=1e-12)


def reduced(losses: Any, how: str) -> Any:
    return {"none": np.array, "mean": np.mean, "sum": np.sum}[how](losses)


# -- margins


@pytest.mark.parametrize("how", ["none", "mean", "sum"])
@pytest.mark.parametrize(("p", "margin"), [(1, 1.0), (2, 0.3)])
def test_multi_margin(how: str, p: int, margin: float) -> None:
    x, target, weight = normal(4, 5), integers(5, 4), np.arange(1.0, 6)
    losses = [
        sum(weight[k] * max(0, margin - row[k] + row[i]) ** p for i in range(5) if i != k) / 5
        for row, k in zip(x, target, strict=True)
    ]
    close(F.multi_margin_loss(t(x), t(target), p, margin, t(weight), reduction=how), reduced(losses, how))
    close(nn.MultiMarginLoss(p, margin, t(weight), reduction=how)(t(x), t(target)), reduced(losses, how))
    close(F.multi_margin_loss(t(x[0]), t(target[0]), p, margin, t(weight)), losses[0])
    gradients.check(lambda x: F.multi_margin_loss(x, t(target), p, margin, t(weight), reduction=how), x)


@pytest.mark.parametrize("how", ["none", "mean", "sum"])
def test_multilabel_margin(how: str) -> None:
    x, target = normal(3, 5), np.array([[1, 3, -1, 2, 0], [-1, 0, 0, 0, 0], [0, 1, 2, 3, 4]])
    losses = []
    for row, labels in zip(x, target, strict=True):
        chosen = list(itertools.takewhile(lambda k: k >= 0, labels))
        others = [i for i in range(5) if i not in chosen]
        losses.append(sum(max(0, 1 - row[k] + row[i]) for k in chosen for i in others) / 5)
    close(F.multilabel_margin_loss(t(x), t(target), reduction=how), reduced(losses, how))
    close(nn.MultiLabelMarginLoss()(t(x[0]), t(target[0])), losses[0])
    gradients.check(lambda x: F.multilabel_margin_loss(x, t(target), reduction=how), x)


def test_multilabel_soft_margin() -> None:
    x, target, weight = normal(3, 4), integers(2, 3, 4).astype(float), np.arange(1.0, 5)
    sigmoid = 1 / (1 + np.exp(-x))
    losses = (-weight * (target * np.log(sigmoid) + (1 - target) * np.log(1 - sigmoid))).mean(1)
    close(F.multilabel_soft_margin_loss(t(x), t(target), t(weight), reduction="none"), losses)
    close(nn.MultiLabelSoftMarginLoss(t(weight))(t(x), t(target)), losses.mean())
    gradients.check(lambda x: F.multilabel_soft_margin_loss(x, t(target)), x)


@pytest.mark.parametrize("swap", [False, True])
def test_triplets_with_a_distance(swap: bool) -> None:
    a, b, c = normal(6, 3), normal(6, 3) + 0.5, normal(6, 3) - 1
    distance = lambda x, y: abs(x - y).sum(-1)  # noqa: E731
    far = np.minimum(distance(a, c), distance(b, c)) if swap else distance(a, c)
    want = np.maximum(distance(a, b) - far + 2, 0)
    options: Any = {"distance_function": distance, "margin": 2.0, "swap": swap, "reduction": "none"}
    close(F.triplet_margin_with_distance_loss(t(a), t(b), t(c), **options), want)
    close(nn.TripletMarginWithDistanceLoss(**options)(t(a), t(b), t(c)), want)
    plain = F.triplet_margin_with_distance_loss(t(a), t(b), t(c), swap=swap)
    close(plain, F.triplet_margin_loss(t(a), t(b), t(c), swap=swap).numpy())


# -- distributions


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("log_input", [False, True])
def test_poisson(log_input: bool, full: bool) -> None:
    x, counts = np.abs(normal(3, 4)) + 0.1, integers(5, 3, 4).astype(float)
    want = np.exp(x) - counts * x if log_input else x - counts * np.log(x + 1e-8)
    for at in np.argwhere(counts > 1) if full else ():
        n = counts[tuple(at)]
        want[tuple(at)] += n * math.log(n) - n + 0.5 * math.log(2 * math.pi * n)
    close(F.poisson_nll_loss(t(x), t(counts), log_input, full, reduction="none"), want)
    close(nn.PoissonNLLLoss(log_input, full)(t(x), t(counts)), want.mean())
    gradients.check(lambda x: F.poisson_nll_loss(x, t(counts), log_input, full), x)


def test_gaussian() -> None:
    x, target, var = normal(3, 4), normal(3, 4) + 1, np.abs(normal(3, 1)) + 0.1
    want = 0.5 * (np.log(var) + (x - target) ** 2 / var)
    close(F.gaussian_nll_loss(t(x), t(target), t(var), reduction="none"), want)
    close(F.gaussian_nll_loss(t(x), t(target), t(var[:, 0]), full=True), (want + 0.5 * math.log(2 * math.pi)).mean())
    close(nn.GaussianNLLLoss(reduction="sum")(t(x), t(target), t(var)), want.sum())
    close(F.gaussian_nll_loss(t(x), t(target), 2.0), (0.5 * (math.log(2) + (x - target) ** 2 / 2)).mean())
    gradients.check(lambda x, v: F.gaussian_nll_loss(x, t(target), v), x, var)
    tiny = torch.tensor([1e-9, 1.0], dtype=torch.float64, requires_grad=True)
    loss = F.gaussian_nll_loss(torch.ones(2).double(), torch.zeros(2).double(), tiny, eps=0.5, reduction="sum")
    loss.backward()
    close(loss, 0.5 * (math.log(0.5) + 1 / 0.5) + 0.5)
    assert tiny.grad is not None
    close(tiny.grad, [0.5 * (1 / 0.5 - 1 / 0.25), 0])  # as if it were eps
    assert refused(lambda: F.gaussian_nll_loss(t(x), t(x), t(-var))) == ("ValueError", "var has negative entry/entries")
    assert refused(lambda: F.gaussian_nll_loss(t(x), t(x), t(var[:2]))) == ("ValueError", "var is of incorrect size")


# -- CTC


def by_all_paths(logs: np.ndarray, labels: tuple[int, ...], blank: int) -> float:
    """Sums over every sequence of classes that becomes the labels when repetitions and then blanks are taken out."""
    total = 0.0
    for path in itertools.product(range(logs.shape[1]), repeat=len(logs)):
        kept = [k for k, _ in itertools.groupby(path)]
        if tuple(k for k in kept if k != blank) == labels:
            total += math.exp(sum(logs[t, k] for t, k in enumerate(path)))
    return -math.log(total) if total else math.inf


CASES: list[tuple[tuple[int, ...], int]] = [
    ((1, 2), 5),
    ((1, 1), 4),
    ((2, 2, 1), 5),
    ((), 3),
    ((1,), 1),
    ((1, 1), 2),  # it takes three
]


@pytest.mark.parametrize("blank", [0, 2])
def test_ctc(blank: int) -> None:
    scores = normal(5, len(CASES), 3)
    logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    labels = [tuple((k + (k <= blank and blank == 2) * -1) if blank == 2 else k for k in case) for case, _ in CASES]
    times, counts = [n for _, n in CASES], [len(case) for case in labels]
    want = np.array(
        [by_all_paths(logs[:n, i], case, blank) for i, (case, n) in enumerate(zip(labels, times, strict=True))]
    )
    padded = np.full((len(CASES), 3), 1 if blank == 0 else 0)
    for row, case in zip(padded, labels, strict=True):
        row[: len(case)] = case
    together = t([k for case in labels for k in case])
    for targets in (t(padded), together):
        got = F.ctc_loss(t(logs), targets, times, counts, blank, "none")
        close(got, want)
        close(F.ctc_loss(t(logs), targets, t(times), t(counts), blank, "sum", True), want[np.isfinite(want)].sum())
    means = np.where(np.isfinite(want), want, 0) / np.maximum(counts, 1)
    close(nn.CTCLoss(blank, zero_infinity=True)(t(logs), t(padded), times, counts), means.mean())
    close(F.ctc_loss(t(logs[:, 0]), t(padded[0]), torch.tensor(5), torch.tensor(2), blank, "none"), want[0])
    gradients.check(
        lambda x: F.ctc_loss(x.log_softmax(-1), t(padded), times, counts, blank, "sum", zero_infinity=True), scores
    )


def test_losses_that_cannot_be() -> None:
    x, log = torch.ones(4, 5), torch.ones(6, 3, 4)
    labels = torch.ones(3, 4).long()
    for call, text in (
        (lambda: F.multi_margin_loss(x, torch.ones(3).long()), "inconsistent target size, expected 4 but got [3]"),
        (lambda: F.multilabel_margin_loss(x, x[:3].long()), "inconsistent target size, expected [4, 5] but got [3, 5]"),
        (lambda: F.ctc_loss(log, labels, (6, 5), (2, 3, 1)), "input_lengths must be of size batch_size"),
        (lambda: F.ctc_loss(log, labels, (7, 5, 4), (2, 3, 1)), "Expected input_lengths to have value at most 6, but"),
        (
            lambda: F.ctc_loss(log, labels, (6, 5, 4), (2, 3, 5)),
            "Expected tensor to have size at least 5 at dimension 1",
        ),
        (lambda: F.ctc_loss(log, labels, (6, 5, 4), (2, 3, 1), 9), "blank must be in label range"),
        (lambda: F.ctc_loss(log, labels[0], (6, 5, 4), (2, 3, 1)), "Expected targets of size 6, the sum of target"),
        (lambda: F.ctc_loss(log, labels * 4, (6, 5, 4), (2, 3, 1)), "Expected targets from 0 to 3, but got [[4"),
    ):
        kind, said = refused(call)
        assert kind == "RuntimeError" and said.startswith(text), said
    for call, text in (
        (lambda: F.multi_margin_loss(x, torch.ones(4).long(), p=3), "only p == 1 and p == 2 supported"),
        (
            lambda: nn.MultiMarginLoss(weight=x),
            "MultiMarginLoss: expected weight to be None or 1D tensor, got 2D instead",
        ),
        (lambda: F.triplet_margin_with_distance_loss(x, x, x, margin=-1.0), "margin must be greater than 0, got -1.0"),
    ):
        assert refused(call) == ("ValueError", text)


# -- bags


OFFSETS = [0, 2, 2, 5]


def bags(rows: np.ndarray, padding: int | None) -> list[list[int]]:
    ends = [*OFFSETS[1:], len(rows)]
    return [[i for i in range(a, b) if rows[i] != padding] for a, b in zip(OFFSETS, ends, strict=True)]


@pytest.mark.parametrize("padding", [None, 1])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode: str, padding: int | None) -> None:
    table, rows, weights = normal(4, 3), np.array([1, 3, 0, 1, 3, 2, 1]), np.arange(1.0, 8)
    how: Any = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    want = [how(table[rows[bag]], axis=0) if bag else np.zeros(3) for bag in bags(rows, padding)]
    options: Any = {"mode": mode, "padding_idx": padding}
    close(F.embedding_bag(t(rows), t(table), t(OFFSETS), **options), want)
    close(F.embedding_bag(t(rows), t(table), t([*OFFSETS, 7]), include_last_offset=True, **options), want)
    gradients.check(lambda table: F.embedding_bag(t(rows), table, t(OFFSETS), **options), table)
    grid = rows[:6].reshape(2, 3)
    layer = nn.EmbeddingBag.from_pretrained(t(table), **options)
    close(layer(t(grid)), F.embedding_bag(t(rows[:6]), t(table), t([0, 3]), **options).numpy())
    if mode == "sum":
        weighed = [sum((weights[i] * table[rows[i]] for i in bag), np.zeros(3)) for bag in bags(rows, padding)]
        close(F.embedding_bag(t(rows), t(table), t(OFFSETS), per_sample_weights=t(weights), **options), weighed)
        gradients.check(
            lambda table, w: F.embedding_bag(t(rows), table, t(OFFSETS), per_sample_weights=w, **options),
            table,
            weights,
        )


def test_bags_by_frequency_and_norm() -> None:
    table = torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
    F.embedding_bag(t([[0, 0], [0, 2]]), table, mode="sum", scale_grad_by_freq=True).sum().backward()
    assert table.grad is not None and table.grad.tolist() == [[1, 1], [0, 0], [1, 1]]
    long = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    F.embedding_bag(t([[0]]), long, max_norm=1.0)
    np.testing.assert_allclose(long.numpy(), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)
    layer = nn.EmbeddingBag(5, 2, padding_idx=-1, mode="sum")
    assert layer.weight[4].tolist() == [0, 0] and repr(layer) == "EmbeddingBag(5, 2, mode='sum', padding_idx=4)"
    assert layer(torch.zeros(0, dtype=torch.int64), torch.zeros(3, dtype=torch.int64)).tolist() == [[0, 0]] * 3


def test_bags_that_cannot_be() -> None:
    rows, table = torch.zeros(2, 4, dtype=torch.int64), torch.ones(6, 3)
    for call, kind, text in (
        (lambda: F.embedding_bag(rows, table, t([0])), "ValueError", "if input is 2D, then offsets has to be None"),
        (lambda: F.embedding_bag(rows[0], table), "ValueError", "offsets has to be a 1D Tensor but got None"),
        (lambda: F.embedding_bag(rows[0], table, t([1])), "RuntimeError", "offsets[0] has to be 0"),
        (
            lambda: F.embedding_bag(rows[0], table, t([0, 5])),
            "RuntimeError",
            "offsets[-1] can not be greater than input's",
        ),
        (lambda: F.embedding_bag(rows, table, mode="x"), "ValueError", "mode has to be one of sum, mean or max"),
        (lambda: F.embedding_bag(rows + 6, table), "IndexError", "index out of range in self"),
        (
            lambda: F.embedding_bag(rows, table, per_sample_weights=table),
            "NotImplementedError",
            "embedding_bag: per_sample",
        ),
        (
            lambda: F.embedding_bag(rows, table, sparse=True),
            "NotImplementedError",
            "torch.nn.functional.embedding_bag(",
        ),
        (
            lambda: F.embedding_bag(rows, table, mode="max", scale_grad_by_freq=True),
            "ValueError",
            "max mode does not support scaling the gradient by the frequency",
        ),
    ):
        found, said = refused(call)
        assert found == kind and said.startswith(text), said


# -- layers


def test_bilinear() -> None:
    a, b, w, bias = normal(2, 4, 3), normal(2, 4, 5), normal(2, 3, 5), normal(2)
    want = np.einsum("nki,oij,nkj->nko", a, w, b) + bias
    close(F.bilinear(t(a), t(b), t(w), t(bias)), want)
    gradients.check(F.bilinear, a[0], b[0], w, bias)
    layer = nn.Bilinear(3, 5, 2)
    assert all((p.abs() <= 1 / math.sqrt(3)).all() for p in layer.parameters())
    assert (
        repr(nn.Bilinear(1, 2, 3, bias=False)) == "Bilinear(in1_features=1, in2_features=2, out_features=3, bias=False)"
    )
    assert refused(lambda: nn.Bilinear(0, 1, 1)) == ("ValueError", "in1_features must be > 0, but got 0")
    assert refused(lambda: F.bilinear(t(a), t(b), t(w[:, :2])))[0] == "RuntimeError"
    assert refused(lambda: F.bilinear(t(a), t(b[:1]), t(w)))[0] == "RuntimeError"


@pytest.mark.parametrize("size", [1, 3, 4, 9])
def test_local_response_norm(size: int) -> None:
    x = normal(2, 5, 3)
    want = np.zeros_like(x)
    for n, c, i in np.ndindex(*x.shape):
        near = x[n, max(0, c - size // 2) : c + (size - 1) // 2 + 1, i]
        want[n, c, i] = x[n, c, i] / (2 + 0.5 * (near**2).sum() / size) ** 0.6
    close(nn.LocalResponseNorm(size, 0.5, 0.6, 2)(t(x)), want)
    gradients.check(lambda x: F.local_response_norm(x, size, 0.5, 0.6, 2), x)


def test_in_place_functions() -> None:
    for name, args in (("relu", ()), ("celu", (0.5,)), ("elu", ()), ("hardtanh", (-0.2, 0.3)), ("leaky_relu", ())):
        x = t(normal(7))
        want = getattr(F, name)(x, *args)
        assert getattr(F, f"{name}_")(x, *args) is x and torch.equal(x, want)
    x = t([1.0, -1.0])
    assert F.threshold_(x, 0.0, 5.0) is x and x.tolist() == [1, 5]


# -- noise


def test_alpha_dropout() -> None:
    torch.manual_seed(1)
    floor, p = -1.0507009873554805 * 1.6732632423543772, 0.3
    scale = ((1 - p) * (1 + p * floor**2)) ** -0.5
    x = torch.from_numpy(normal(4, 6, 5))
    for function, whole in ((F.alpha_dropout, False), (F.feature_alpha_dropout, True)):
        got = function(x, p, training=True).numpy()
        dropped = np.isclose(got, scale * (floor - p * floor))
        np.testing.assert_allclose(got[~dropped], (scale * (x.numpy() - p * floor))[~dropped], rtol=1e-6)
        assert 0 < dropped.sum() < dropped.size
        if whole:
            assert (dropped.all(-1) | ~dropped.any(-1)).all()
        assert function(x, p) is x and not function(x, 1.0, training=True).any()
    assert (
        nn.AlphaDropout(0.3).eval()(x) is x
        and repr(nn.FeatureAlphaDropout(0.2)) == "FeatureAlphaDropout(p=0.2, inplace=False)"
    )
    text = "dropout probability has to be between 0 and 1, but got 2"
    assert refused(lambda: F.alpha_dropout(x, 2, True)) == ("ValueError", text)


def test_rrelu() -> None:
    x = torch.linspace(-2, 2, 41, dtype=torch.float64)
    close(F.rrelu(x, 0.1, 0.3), np.where(x.numpy() > 0, x.numpy(), 0.2 * x.numpy()))
    got = nn.RReLU(0.1, 0.3)(x)
    slopes = got.numpy()[:20] / x.numpy()[:20]
    assert torch.equal(got[21:], x[21:]) and (slopes >= 0.1).all() and (slopes < 0.3).all() and len(set(slopes)) == 20
    given = x.clone()
    assert F.rrelu_(given, 0.1, 0.3) is given and not torch.equal(given, x)


def test_gumbel_softmax() -> None:
    logits = torch.tensor([[0.0, math.log(3), -math.inf]]).repeat(4000, 1)
    torch.manual_seed(3)
    hard = F.gumbel_softmax(logits, hard=True)
    assert ((hard == 0) | (hard == 1)).all() and (hard.sum(1) == 1).all() and not hard[:, 2].any()
    count = int(hard[:, 1].sum())
    assert abs(count - 3000) < 5 * math.sqrt(4000 * 0.75 * 0.25)  # five standard deviations
    torch.manual_seed(7)
    x = torch.from_numpy(normal(3, 4)).requires_grad_()
    soft = F.gumbel_softmax(x, tau=0.5)
    torch.manual_seed(7)
    again = F.gumbel_softmax(x, tau=0.5, hard=True)
    assert torch.equal(again.argmax(1), soft.argmax(1))
    np.testing.assert_allclose(soft.sum(1).detach().numpy(), 1)
    weights = torch.from_numpy(normal(4, 3).T.copy())
    found = [torch.autograd.grad((each * weights).sum(), x, retain_graph=True)[0] for each in (soft, again)]
    assert torch.allclose(*found)
