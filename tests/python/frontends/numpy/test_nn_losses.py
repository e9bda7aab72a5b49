"""Losses, dropout and activations: results against NumPy, gradients against central differences, misuse."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import NUMPY, OpenWorld, same
from nn_cases import refused
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
    return np.asarray(RNG([seed, *shape]).standard_normal(shape))


# -- oracles, target by target


def log_softmax(row: np.ndarray) -> np.ndarray:
    top = max(row)
    return row - top - math.log(math.fsum(math.exp(v - top) for v in row))


def reduced(losses: dict[Any, float], shape: tuple[int, ...], reduction: str, divisor: float) -> np.ndarray:
    if reduction == "none":
        result = np.zeros(shape)
        for index, loss in losses.items():
            result[index] = loss
        return result
    total = math.fsum(losses.values())
    return np.asarray(total if reduction == "sum" else total / divisor if divisor else math.nan)


def row_of(scores: np.ndarray, index: tuple[int, ...]) -> np.ndarray:
    """The scores of all classes for a target."""
    return scores[(index[0], slice(None), *index[1:])] if scores.ndim > 1 else scores


def cross_entropy(
    scores: np.ndarray, target: np.ndarray, *, ignored: int = -100, reduction: str = "mean"
) -> np.ndarray:
    losses, divisor = {}, 0.0
    for index in np.ndindex(target.shape):
        chosen = int(target[index])
        counts = chosen != ignored
        losses[index] = -log_softmax(row_of(scores, index))[chosen] if counts else 0.0
        divisor += counts
    return reduced(losses, target.shape, reduction, divisor)


SHAPES: list[tuple[int, ...]] = [(5,), (1, 1), (4, 5), (2, 3, 4), (2, 5, 3, 2)]
REDUCTIONS = ["mean", "sum", "none"]


def targets_of(shape: tuple[int, ...], seed: int, ignored: int | None = None) -> np.ndarray:
    classes = shape[0] if len(shape) == 1 else shape[1]
    targets = RNG(seed).integers(0, classes, shape[:1] + shape[2:] if len(shape) > 1 else ())
    if ignored is not None and targets.size:
        targets.reshape(-1)[::2] = ignored
        targets.reshape(-1)[-1] = 0
    return targets


class TestCrossEntropy:
    @pytest.mark.parametrize("reduction", REDUCTIONS)
    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("ignored", [-100, -1])
    def test_with_gradients(self, shape: tuple[int, ...], reduction: str, ignored: int) -> None:
        target = targets_of(shape, 3, ignored if len(shape) > 1 else None)
        check(
            lambda x, t: F.cross_entropy(x, t, ignore_index=ignored, reduction=reduction),
            lambda x, t: cross_entropy(x, t, ignored=ignored, reduction=reduction),
            [normal(1, *shape), target],
        )

    def test_huge_scores(self) -> None:
        scores = np.array([[1e4, -1e4, 0.0], [300.0, 299.0, -800.0]])
        check(F.cross_entropy, cross_entropy, [scores, np.array([0, 1])])
        loss = F.cross_entropy(torch.tensor([[math.inf, 0.0]]), torch.tensor([1]))
        assert math.isnan(loss.item())

    def test_nothing_to_average(self) -> None:
        assert math.isnan(F.cross_entropy(torch.ones(2, 3), torch.tensor([-100, -100])).item())
        assert math.isnan(F.cross_entropy(torch.ones(0, 3), torch.ones(0, dtype=torch.int64)).item())
        assert F.cross_entropy(torch.ones(2, 3), torch.tensor([-100, -100]), reduction="sum").item() == 0

    @pytest.mark.parametrize("name", ["float16", "bfloat16"])
    def test_short_floats(self, name: str) -> None:
        x = normal(1, 6, 9).astype(NUMPY[name])
        t = torch.from_numpy(x).requires_grad_()
        loss = F.cross_entropy(t, torch.from_numpy(targets_of((6, 9), 2)))
        want = float(cross_entropy(x.astype(np.float64), targets_of((6, 9), 2)))
        step = 2.0**-10 if name == "float16" else 2.0**-7
        assert str(loss.dtype) == f"torch.{name}" and abs(loss.item() - want) <= 2 * step * want
        loss.backward()
        assert t.grad is not None and t.grad.dtype == t.dtype
        one_hot = np.eye(9)[targets_of((6, 9), 2)]
        soft = np.exp(np.array([log_softmax(r) for r in x.astype(np.float64)]))
        np.testing.assert_allclose(t.grad.numpy().astype(float), (soft - one_hot) / 6, atol=2 * step / 6)

    def test_many_targets_of_a_short_float(self) -> None:
        t = torch.zeros(4096, 2, dtype=torch.float16).requires_grad_()
        F.cross_entropy(t, torch.zeros(4096, dtype=torch.int64)).backward()
        assert t.grad is not None
        assert same(t.grad.numpy(), np.tile(np.array([[-0.5, 0.5]]) / 4096, (4096, 1)).astype(np.float16))

    def test_modules(self) -> None:
        x, t = torch.from_numpy(normal(1, 4, 3)), torch.tensor([0, 2, 1, -1])
        m = nn.CrossEntropyLoss(ignore_index=-1)
        assert m(x, t).item() == pytest.approx(cross_entropy(x.numpy(), t.numpy(), ignored=-1), rel=1e-12)
        nll = nn.NLLLoss(ignore_index=-1, reduction="sum")
        want = cross_entropy(x.numpy(), t.numpy(), ignored=-1, reduction="sum")
        assert nll(F.log_softmax(x, 1), t).item() == pytest.approx(want, rel=1e-12)

    def test_misuse(self) -> None:
        z = torch.ones(4, 3)
        classes = torch.tensor([0, 1, 2, 1])
        wanted: list[tuple[Callable[[], Any], str, str]] = [
            (lambda: F.cross_entropy(z, torch.tensor([0, 1, 2, 3])), "IndexError", "Target 3 is out of bounds."),
            (lambda: F.cross_entropy(z, torch.tensor([0, 1, 2, -1])), "IndexError", "Target -1 is out of bounds."),
            (lambda: F.cross_entropy(z, torch.tensor([0, 1, 2])), "ValueError", "Expected input batch_size (4) to match target batch_size (3)."),  # noqa: E501
            (lambda: F.cross_entropy(z, torch.tensor([[0, 1, 2, 1]])), "ValueError", "Expected input batch_size (4) to match target batch_size (1)."),  # noqa: E501
            (lambda: F.cross_entropy(z, classes.float()), "RuntimeError", "expected scalar type Long but found Float"),
            (lambda: F.cross_entropy(z, classes.int()), "RuntimeError", "expected scalar type Long but found Int"),
            (lambda: F.cross_entropy(z, classes, reduction="x"), "ValueError", "x is not a valid value for reduction"),
            (lambda: F.cross_entropy(torch.ones(2, 3, 4, 5), torch.ones(2, 4, 6).long()), "RuntimeError", "Expected target size [2, 4, 5], got [2, 4, 6]"),  # noqa: E501
            (lambda: F.nll_loss(z[0], classes), "ValueError", "For 1D input, 1D target must have size 1, but got target size: 4"),  # noqa: E501
        ]  # fmt: skip
        for call, kind, text in wanted:
            assert refused(call) == (kind, text)


class TestDifferences:
    @pytest.mark.parametrize("reduction", REDUCTIONS)
    @pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3)])
    def test_with_gradients(self, shape: tuple[int, ...], reduction: str) -> None:
        reduce = {"mean": np.mean, "sum": np.sum, "none": lambda a: a}[reduction]
        arrays = [normal(1, *shape), np.asarray(normal(2, *shape) + 5)]
        check(lambda x, y: F.mse_loss(x, y, reduction=reduction), lambda x, y: reduce((x - y) ** 2), arrays)
        loss = nn.MSELoss(reduction=reduction)
        check(lambda x, y: loss(x, y), lambda x, y: reduce((x - y) ** 2), arrays)

    def test_other_sizes(self) -> None:
        with pytest.raises(ValueError, match=r"the target's size \(torch.Size\(\[3\]\)\) is not that of the input"):
            F.mse_loss(torch.ones(2, 3), torch.ones(3))
        assert refused(lambda: F.mse_loss(torch.ones(2).long(), torch.ones(2).long()))[0] == "NotImplementedError"


class TestDropout:
    def test_elements_are_zero_or_scaled(self) -> None:
        x = torch.from_numpy(normal(1, 50, 40)).requires_grad_()
        torch.manual_seed(3)
        y = F.dropout(x, 0.3)
        torch.manual_seed(3)
        kept = torch.empty(50, 40).bernoulli_(0.7).numpy().astype(bool)
        want = np.where(kept, x.detach().numpy() / 0.7, 0)
        np.testing.assert_allclose(y.detach().numpy(), want, rtol=1e-14)
        assert 0 < kept.sum() < kept.size
        y.backward(torch.from_numpy(normal(2, 50, 40)))
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), np.where(kept, normal(2, 50, 40) / 0.7, 0), rtol=1e-14)

    def test_nothing_happens_outside_of_training(self) -> None:
        x = torch.ones(3)
        assert F.dropout(x, 0.5, training=False) is x is F.dropout(x, 0.0)
        assert nn.Dropout(0.5).eval()(x) is x

    def test_everything_may_be_dropped(self) -> None:
        x = torch.tensor([1.0, -2.0, math.nan], requires_grad=True)
        y = F.dropout(x, 1.0)
        assert y.tolist()[:2] == [0, 0] and math.isnan(y.tolist()[2])
        y.sum().backward()
        assert x.grad is not None and x.grad.tolist() == [0, 0, 0]

    def test_in_place(self) -> None:
        x = torch.ones(100)
        torch.manual_seed(1)
        want = F.dropout(x.clone(), 0.5)
        torch.manual_seed(1)
        assert F.dropout(x, 0.5, inplace=True) is x and x.tolist() == want.tolist()
        leaf = torch.ones(100, requires_grad=True)
        doubled = leaf * 2
        torch.manual_seed(1)
        F.dropout(doubled, 0.5, inplace=True).sum().backward()
        assert leaf.grad is not None and leaf.grad.tolist() == (want * 2).tolist()

    def test_short_floats(self) -> None:
        torch.manual_seed(0)
        y = F.dropout(torch.ones(64, dtype=torch.float16), 0.3)
        assert set(y.tolist()) == {0.0, float(np.float16(1 / 0.7))}

    def test_what_is_dropped_keeps_its_sign_and_what_is_not_finite_becomes_nan(self) -> None:
        numbers = np.repeat([-np.inf, -3.0, -0.0, 0.0, 5e-324, 3.0, np.inf, np.nan], 50)
        torch.manual_seed(5)
        y = F.dropout(torch.from_numpy(numbers), 0.4).numpy()
        torch.manual_seed(5)
        kept = torch.empty(400, dtype=torch.float64).bernoulli_(0.6).numpy()
        with np.errstate(all="ignore"):
            want = np.array([x * (1 / 0.6) if keep else x * 0.0 for x, keep in zip(numbers, kept, strict=True)])
        np.testing.assert_array_equal(y, want)
        finite = np.isfinite(want)
        np.testing.assert_array_equal(np.signbit(y[finite]), np.signbit(want[finite]))
        assert {0.0, 1.0} == set(kept)

    def test_misuse(self) -> None:
        for call in (lambda: F.dropout(torch.ones(1), 1.5), lambda: nn.Dropout(1.5)):
            assert refused(call) == ("ValueError", "dropout probability has to be between 0 and 1, but got 1.5")
        assert refused(lambda: F.dropout(torch.ones(2).long())) == (
            "RuntimeError",
            "result type Float can't be cast to the desired output type Long",
        )


class TestActivations:
    CASES: tuple[tuple[str, Callable[..., Any], Callable[..., Any], type], ...] = (
        ("relu", F.relu, lambda x: np.maximum(x, 0), nn.ReLU),
        ("tanh", F.tanh, np.tanh, nn.Tanh),
        ("gelu", F.gelu, lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))), nn.GELU),
    )

    @pytest.mark.parametrize(("name", "function", "oracle", "kind"), CASES)
    def test_with_gradients(self, name: str, function: Any, oracle: Any, kind: Any) -> None:
        x = normal(1, 3, 5) * 2
        check(function, oracle, [x])
        check(kind(), oracle, [x])

    def test_the_approximation_of_gelu(self) -> None:
        def approximated(x: np.ndarray) -> np.ndarray:
            return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

        check(lambda x: F.gelu(x, approximate="tanh"), approximated, [normal(1, 3, 5) * 2])
        check(nn.GELU("tanh"), approximated, [normal(1, 7)])

    @pytest.mark.parametrize("axis", [0, 1, -1])
    def test_along_a_dimension(self, axis: int) -> None:
        def soft(x: np.ndarray) -> np.ndarray:
            e = np.exp(x - x.max(axis, keepdims=True))
            return e / e.sum(axis, keepdims=True)

        x = normal(1, 2, 3, 4) * 3
        check(lambda t: F.softmax(t, axis), soft, [x])
        check(lambda t: F.log_softmax(t, dim=axis), lambda a: np.log(soft(a)), [x])

    def test_with_a_dtype(self) -> None:
        x = torch.tensor([1.0, 2.0], dtype=torch.float16, requires_grad=True)
        y = F.softmax(x, dim=0, dtype=torch.float32)
        y[0].backward()
        assert y.dtype == torch.float32 and x.grad is not None and x.grad.dtype == torch.float16

    def test_an_implicit_dimension(self) -> None:
        for shape, axis in {(3,): 0, (2, 3): 1, (2, 3, 2): 0, (2, 3, 2, 2): 1}.items():
            x = torch.from_numpy(normal(1, *shape))
            with pytest.warns(UserWarning, match="Implicit dimension choice for softmax has been deprecated"):
                got = F.softmax(x)
            assert got.tolist() == F.softmax(x, dim=axis).tolist()

    @pytest.mark.parametrize("function", [F.relu, F.silu])
    def test_in_place(self, function: Any) -> None:
        x = torch.from_numpy(normal(1, 5))
        want = function(x)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert function(x, inplace=True) is x and x.tolist() == want.tolist()
        leaf = torch.from_numpy(normal(1, 5)).requires_grad_()
        function(leaf * 2, True).sum().backward()
        other = torch.from_numpy(normal(1, 5)).requires_grad_()
        function(other * 2).sum().backward()
        assert leaf.grad is not None and other.grad is not None and leaf.grad.tolist() == other.grad.tolist()
