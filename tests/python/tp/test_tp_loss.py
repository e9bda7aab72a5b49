"""vocab_parallel_cross_entropy against a loss and a gradient in NumPy, over the whole vocabulary."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR
from tp_ranks import DEGREES, on_ranks, on_tensor_parallel_ranks

import torchemu as torch
from torchemu import runtime, tp

VOCABULARY, SEED = 48, 77


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world(SIXTY_FOUR)


def oracle(logits: np.ndarray, target: np.ndarray, spread: float, own: slice) -> tuple[np.ndarray, np.ndarray]:
    """The loss of each token and its gradient, for a rank that has some of the logits: the target has the probability
    1 - spread, and each token of those an equal share of spread besides."""
    top = logits.max(axis=-1, keepdims=True)
    log_p = logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
    wanted = np.zeros_like(logits)
    wanted[..., own] = spread / len(range(*own.indices(logits.shape[-1])))
    places = target[..., None]
    np.put_along_axis(wanted, places, np.take_along_axis(wanted, places, -1) + 1 - spread, -1)
    return -(wanted * log_p).sum(axis=-1), np.exp(log_p) - wanted


@pytest.mark.parametrize("n", DEGREES)
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.75])
@pytest.mark.parametrize(("name", "slack"), [("float64", 1e-13), ("float32", 2e-5), ("bfloat16", 2e-2)])
def test_loss_and_gradient(n: int, smoothing: float, name: str, slack: float) -> None:
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    kind = {"float64": np.float64, "float32": np.float32, "bfloat16": ml_dtypes.bfloat16}[name]
    logits = (20 * rng.standard_normal((5, 3, VOCABULARY))).astype(kind)
    target, grad = rng.integers(0, VOCABULARY, (5, 3)), rng.standard_normal((5, 3))
    size = VOCABULARY // n
    spread = smoothing * size / (size - 1)
    wide = "float64" if name == "float64" else "float32"

    def rank(r: int) -> tuple[np.ndarray, np.ndarray]:
        mine = torch.from_numpy(logits[..., r * size : (r + 1) * size].copy()).to(f"ahbm:{r}").requires_grad_()
        loss = tp.vocab_parallel_cross_entropy(mine, torch.tensor(target), label_smoothing=smoothing)
        assert (loss.dtype, loss.shape) == (getattr(torch, wide), (5, 3))
        loss.backward(torch.tensor(grad, dtype=loss.dtype))
        assert mine.grad is not None and mine.grad.dtype is mine.dtype
        return loss.detach().double().numpy(), mine.grad.double().numpy()

    ranks = on_tensor_parallel_ranks(n, rank)
    for r, (loss, slope) in enumerate(ranks):
        own = slice(r * size, (r + 1) * size)
        want, gradient = oracle(logits.astype(np.float64), target, spread, own)
        # losses are differences of numbers up to 100, in float32 at least
        np.testing.assert_allclose(loss, want, rtol=1e-12 if wide == "float64" else 1e-5, atol=min(slack, 1e-4))
        np.testing.assert_allclose(slope, gradient[..., own] * grad[..., None], rtol=slack, atol=slack * 1e-2)
    if not smoothing:
        assert len({loss.tobytes() for loss, _ in ranks}) == 1


def test_extreme_logits() -> None:
    """Exponentials that no float has: the loss is a difference of logits."""

    def rank(r: int) -> tuple[list[float], list[list[float]]]:
        whole = torch.tensor([[1e4, -1e4, 0, 5e3], [-1e4, -1e4, -1e4, -1e4]])
        logits = whole[:, 2 * r : 2 * r + 2].clone().requires_grad_()
        loss = tp.vocab_parallel_cross_entropy(logits, torch.tensor([1, 3]))
        loss.sum().backward()
        assert logits.grad is not None
        return loss.tolist(), logits.grad.tolist()

    (loss, first), (same, second) = on_tensor_parallel_ranks(2, rank)
    assert loss == same == [2e4, pytest.approx(np.log(4), rel=1e-6)]
    assert first == [[1, -1], [0.25, 0.25]] and second == [[0, 0], [0.25, -0.75]]


def test_three_collectives_forward_and_none_backward() -> None:
    world = runtime.current_world()

    def rank(r: int) -> tuple[int, int]:
        logits = torch.ones(4, 2, requires_grad=True)
        loss = tp.vocab_parallel_cross_entropy(logits, torch.tensor([0, 1, 2, 3]), 0.1)
        loss.tolist()
        forward = len(world.collectives())
        loss.sum().backward()
        assert logits.grad is not None
        logits.grad.tolist()
        return forward, len(world.collectives())

    assert on_tensor_parallel_ranks(2, rank) == [(3, 3)] * 2


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda x, y: tp.vocab_parallel_cross_entropy(x, y, 1.0), AssertionError, "label_smoothing"),
        (lambda x, y: tp.vocab_parallel_cross_entropy(x, y, -0.1), AssertionError, "not -0.1"),
        (lambda x, y: tp.vocab_parallel_cross_entropy(x, y[:2]), RuntimeError, "targets of shape [4], not [2]"),
    ],
)
def test_what_does_not_fit(call: Any, kind: type[Exception], text: str) -> None:
    def rank(r: int) -> str:
        with pytest.raises(kind) as caught:
            call(torch.ones(4, 2), torch.tensor([0, 1, 2, 3]))
        return str(caught.value)

    assert all(text in message for message in on_tensor_parallel_ranks(2, rank))


def test_before_initialization() -> None:
    def rank(r: int) -> None:
        with pytest.raises(AssertionError, match="tensor model parallel group is not initialized"):
            tp.vocab_parallel_cross_entropy(torch.ones(4, 2), torch.tensor([0, 1, 2, 3]))

    on_ranks(2, rank)
