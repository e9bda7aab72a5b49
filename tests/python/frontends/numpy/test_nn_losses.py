"""Losses, dropout, padding and activations: results against NumPy, gradients against central differences, misuse."""

from __future__ import annotations

import itertools
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
    scores: np.ndarray,
    target: np.ndarray,
    weight: Any = None,
    *,
    ignored: int = -100,
    reduction: str = "mean",
    smoothing: float = 0.0,
) -> np.ndarray:
    losses, divisor = {}, 0.0
    for index in np.ndindex(target.shape):
        chosen = int(target[index])
        logs = log_softmax(row_of(scores, index))
        weights = np.ones(len(logs)) if weight is None else weight
        if chosen == ignored:
            losses[index] = 0.0
            continue
        even = -math.fsum(weights * logs) / len(logs)
        losses[index] = (1 - smoothing) * -logs[chosen] * weights[chosen] + smoothing * even
        divisor += weights[chosen]
    return reduced(losses, target.shape, reduction, divisor)


def of_probabilities(
    scores: np.ndarray, target: np.ndarray, weight: Any = None, *, reduction: str = "mean", smoothing: float = 0.0
) -> np.ndarray:
    shape = scores.shape[:1] + scores.shape[2:] if scores.ndim > 1 else ()
    losses = {}
    for index in np.ndindex(shape):
        logs, wanted = log_softmax(row_of(scores, index)), row_of(target, index)
        weights = np.ones(len(logs)) if weight is None else weight
        losses[index] = -math.fsum(weights * logs * (wanted * (1 - smoothing) + smoothing / len(logs)))
    return reduced(losses, shape, reduction, math.prod(shape))


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
    @pytest.mark.parametrize("smoothing", [0.0, 0.3])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_with_gradients(self, shape: tuple[int, ...], reduction: str, smoothing: float, weighted: bool) -> None:
        classes = shape[0] if len(shape) == 1 else shape[1]
        weight = np.linspace(0.5, 2, classes) if weighted else None
        given = None if weight is None else torch.from_numpy(weight)
        for ignored in (None, -100, 1):
            if ignored is not None and len(shape) == 1:
                continue  # nothing would be left
            check(
                lambda x, t: F.cross_entropy(
                    x, t, given, ignore_index=-100 if ignored is None else ignored, reduction=reduction,  # noqa: B023
                    label_smoothing=smoothing,
                ),
                lambda x, t: cross_entropy(
                    x, t, weight, ignored=-100 if ignored is None else ignored, reduction=reduction, smoothing=smoothing  # noqa: B023
                ),
                [normal(1, *shape) * 3, targets_of(shape, 2, ignored if classes > 1 else None)],
            )  # fmt: skip

    @pytest.mark.parametrize("reduction", REDUCTIONS)
    @pytest.mark.parametrize("shape", SHAPES)
    def test_probabilities(self, shape: tuple[int, ...], reduction: str) -> None:
        classes = shape[0] if len(shape) == 1 else shape[1]
        wanted = RNG(3).random(shape)
        for weight, smoothing in itertools.product((None, np.linspace(0.5, 2, classes)), (0.0, 0.2)):
            given = None if weight is None else torch.from_numpy(weight)
            check(
                lambda x, t: F.cross_entropy(x, t, given, reduction=reduction, label_smoothing=smoothing),  # noqa: B023
                lambda x, t: of_probabilities(x, t, weight, reduction=reduction, smoothing=smoothing),  # noqa: B023
                [normal(1, *shape), wanted],
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
        weight = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)
        m = nn.CrossEntropyLoss(weight, ignore_index=-1, label_smoothing=0.1)
        want = cross_entropy(x.numpy(), t.numpy(), weight.numpy(), ignored=-1, smoothing=0.1)
        assert m(x, t).item() == pytest.approx(want, rel=1e-12) and list(m.state_dict()) == ["weight"]
        nll = nn.NLLLoss(weight, ignore_index=-1, reduction="sum")
        assert nll(F.log_softmax(x, 1), t).item() == pytest.approx(
            cross_entropy(x.numpy(), t.numpy(), weight.numpy(), ignored=-1, reduction="sum"), rel=1e-12
        )

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
            (lambda: F.cross_entropy(z, classes, label_smoothing=2.0), "RuntimeError", "label_smoothing must be between 0.0 and 1.0. Got: 2"),  # noqa: E501
            (lambda: F.cross_entropy(z, classes, torch.ones(2)), "RuntimeError", "weight tensor should be defined either for all 3 classes or no classes but got weight tensor of shape: [2]"),  # noqa: E501
            (lambda: F.cross_entropy(z, classes, torch.ones(3).double()), "RuntimeError", "expected scalar type Float but found Double"),  # noqa: E501
            (lambda: F.cross_entropy(z, z.long()), "RuntimeError", "Expected floating point type for target with class probabilities, got Long"),  # noqa: E501
            (lambda: F.cross_entropy(z, z, ignore_index=2), "RuntimeError", "ignore_index is not supported for floating point target"),  # noqa: E501
            (lambda: F.cross_entropy(torch.ones(2, 3, 4, 5), torch.ones(2, 4, 6).long()), "RuntimeError", "size mismatch (got input: [2, 3, 4, 5] , target: [2, 4, 6]"),  # noqa: E501
            (lambda: F.nll_loss(z[0], classes), "ValueError", "For 1D input, 1D target must have size 1, but got target size: 4"),  # noqa: E501
        ]  # fmt: skip
        for call, kind, text in wanted:
            assert refused(call) == (kind, text)

    def test_the_old_names_of_reductions(self) -> None:
        z, t = torch.ones(2, 3), torch.tensor([0, 1])
        with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
            assert F.nll_loss(z, t, size_average=False).item() == -2
        with pytest.warns(UserWarning, match="please use reduction='none' instead"):
            assert F.nll_loss(z, t, reduce=False).tolist() == [-1, -1]
        with pytest.warns(UserWarning, match="please use reduction='mean' instead"):
            assert nn.MSELoss(True).reduction == "mean"


class TestDifferences:
    @pytest.mark.parametrize("reduction", REDUCTIONS)
    @pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3)])
    def test_with_gradients(self, shape: tuple[int, ...], reduction: str) -> None:
        reduce = {"mean": np.mean, "sum": np.sum, "none": lambda a: a}[reduction]
        arrays = [normal(1, *shape), np.asarray(normal(2, *shape) + 5)]
        check(lambda x, y: F.mse_loss(x, y, reduction=reduction), lambda x, y: reduce((x - y) ** 2), arrays)
        check(lambda x, y: F.l1_loss(x, y, reduction=reduction), lambda x, y: reduce(abs(x - y)), arrays)
        loss = nn.MSELoss(reduction=reduction)
        check(lambda x, y: loss(x, y), lambda x, y: reduce((x - y) ** 2), arrays)

    def test_weights(self) -> None:
        arrays = [normal(1, 3, 4), normal(2, 3, 4), RNG(3).random((3, 4)) + 0.1]
        check(
            lambda x, y, w: F.mse_loss(x, y, weight=w),
            lambda x, y, w: np.sum(w * (x - y) ** 2) / np.sum(w),
            arrays,
        )

    def test_other_sizes_broadcast_with_a_warning(self) -> None:
        with pytest.warns(UserWarning, match=r"Using a target size \(torch.Size\(\[3\]\)\) that is different to the"):
            check(F.mse_loss, lambda x, y: np.mean((x - y) ** 2), [normal(1, 2, 3), normal(2, 3)])
        with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="The size of tensor a"):
            F.mse_loss(torch.ones(2, 3), torch.ones(2))
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


class TestPad:
    @pytest.mark.parametrize("pad", [(1, 2), (0, 0), (-1, 3), (2, -2, 1, 0), (-1, -1, -1, 2, 3, 0), ()])
    def test_with_gradients(self, pad: tuple[int, ...]) -> None:
        def padded(x: np.ndarray) -> np.ndarray:
            widths = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)][::-1]
            widths = [(0, 0)] * (x.ndim - len(widths)) + widths
            result = np.full([n + a + b for n, (a, b) in zip(x.shape, widths, strict=True)], 7.0)
            for index in np.ndindex(result.shape):
                source = [i - a for i, (a, _) in zip(index, widths, strict=True)]
                if all(0 <= i < n for i, n in zip(source, x.shape, strict=True)):
                    result[index] = x[tuple(source)]
            return result

        check(lambda x: F.pad(x, pad, value=7.0), padded, [normal(1, 2, 3, 4)])

    def test_integers(self) -> None:
        assert F.pad(torch.ones(2, dtype=torch.int64), (1, 1), value=2.7).tolist() == [2, 1, 1, 2]

    def test_misuse(self) -> None:
        x = torch.ones(2)
        wanted: list[tuple[Callable[[], Any], str, str]] = [
            (lambda: F.pad(x, (1,)), "RuntimeError", "Padding length must be divisible by 2"),
            (lambda: F.pad(x, (1, 1, 1, 1)), "RuntimeError", "Padding length should be less than or equal to two times the input dimension but got padding length 4 and input of dimension 1"),  # noqa: E501
            (lambda: F.pad(x, (-3, 0)), "RuntimeError", "narrow(): length must be non-negative."),
            (lambda: F.pad(x, (1, 1), "x"), "NotImplementedError", "Unrecognised padding mode x"),
        ]  # fmt: skip
        for call, kind, text in wanted:
            assert refused(call) == (kind, text)
        assert refused(lambda: F.pad(x, (1, 1), "reflect"))[0] == "NotImplementedError"


class TestActivations:
    CASES: tuple[tuple[str, Callable[..., Any], Callable[..., Any], type], ...] = (
        ("relu", F.relu, lambda x: np.maximum(x, 0), nn.ReLU),
        ("silu", F.silu, lambda x: x / (1 + np.exp(-x)), nn.SiLU),
        ("tanh", F.tanh, np.tanh, nn.Tanh),
        ("sigmoid", F.sigmoid, lambda x: 1 / (1 + np.exp(-x)), nn.Sigmoid),
        ("softplus", F.softplus, lambda x: np.log1p(np.exp(x)), nn.Softplus),
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
        for function in (lambda t: F.softmax(t, axis), nn.Softmax(axis)):
            check(function, soft, [x])
        for function in (lambda t: F.log_softmax(t, dim=axis), nn.LogSoftmax(axis)):
            check(function, lambda a: np.log(soft(a)), [x])

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
