"""torch.nn.init: numbers from the rank's generator, in the intervals and with the deviations of the formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from nn_cases import refused
from ranks import on_ranks

import torchemu as torch
from torchemu import nn
from torchemu.nn import init


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


def uniform(low: float, high: float) -> Callable[[np.ndarray], np.ndarray]:
    """The distribution function."""
    return lambda x: np.clip((x - low) / (high - low), 0, 1)


def gaussian(mean: float, std: float) -> Callable[[np.ndarray], np.ndarray]:
    """The distribution function."""
    return lambda x: 0.5 * (1 + np.vectorize(math.erf)((x - mean) / std / math.sqrt(2)))


BOUND = math.sqrt(6 / 300)
CASES: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], Callable[[np.ndarray], np.ndarray]]] = {
    "uniform": (lambda t: init.uniform_(t, -2, 3), uniform(-2, 3)),
    "normal": (lambda t: init.normal_(t, 1, 2), gaussian(1, 2)),
    "xavier uniform": (lambda t: init.xavier_uniform_(t, 2), uniform(-2 * BOUND, 2 * BOUND)),
    "xavier normal": (init.xavier_normal_, gaussian(0, math.sqrt(2 / 300))),
    "kaiming uniform": (
        lambda t: init.kaiming_uniform_(t, nonlinearity="relu"),
        uniform(*[s * math.sqrt(6 / 200) for s in (-1, 1)]),
    ),
    "kaiming normal": (lambda t: init.kaiming_normal_(t, 0.5, "fan_out"), gaussian(0, math.sqrt(2 / 1.25 / 100))),
}


@pytest.mark.parametrize("name", CASES)
def test_distributions(name: str) -> None:
    """The largest distance from the distribution function is below Kolmogorov and Smirnov's bound for 1 in 10,000."""
    fill, distribution = CASES[name]
    torch.manual_seed(1)
    t = torch.empty(100, 200, dtype=torch.float64)
    assert fill(t) is t
    drawn = np.sort(t.numpy().ravel())
    steps = np.arange(drawn.size + 1) / drawn.size
    exact = distribution(drawn)
    worst = max(np.max(np.abs(exact - steps[1:])), np.max(np.abs(exact - steps[:-1])))
    assert worst < 2.23 / math.sqrt(drawn.size)


def test_constants() -> None:
    t = torch.empty(2, 3)
    assert init.constant_(t, 1.5).tolist() == [[1.5] * 3] * 2
    assert init.zeros_(t).tolist() == [[0] * 3] * 2 and init.ones_(t).tolist() == [[1] * 3] * 2


def test_parameters_stay_leaves() -> None:
    p = nn.Parameter(torch.empty(3, 4))
    for fill in (init.uniform_, init.xavier_normal_, init.kaiming_uniform_, init.zeros_):
        assert fill(p) is p and p.is_leaf and p.requires_grad


def test_the_generator_decides() -> None:
    def drawn(**options: Any) -> list[float]:
        return init.normal_(torch.empty(5), **options).tolist()

    torch.manual_seed(7)
    first = drawn()
    assert drawn() != first
    torch.manual_seed(7)
    assert drawn() == first == drawn(generator=torch.Generator().manual_seed(7))


def test_the_same_numbers_as_pytorch() -> None:
    """Seed 3, PyTorch 2.11 on a CPU."""
    torch.manual_seed(3)
    torch.manual_seed(3)
    weight = nn.Linear(2, 3).weight.detach().numpy().round(4)
    assert weight.ravel().tolist() == pytest.approx([-0.7011, -0.5578, -0.3029, -0.6690, -0.0401, -0.6221])


def test_every_rank_has_numbers_of_its_own() -> None:
    def program(rank: int) -> tuple[list[float], list[float]]:
        own = nn.Linear(3, 1, device="cpu").weight.tolist()
        torch.manual_seed(5)
        return own, nn.Linear(3, 1, device="cpu").weight.tolist()

    (first, seeded), (second, seeded_too) = on_ranks(2, program)
    assert first != second and seeded == seeded_too


def test_gains() -> None:
    wanted = {"linear": 1, "conv1d": 1, "sigmoid": 1, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75}
    for name, gain in wanted.items():
        assert init.calculate_gain(name) == gain
    assert init.calculate_gain("leaky_relu") == math.sqrt(2 / 1.0001)
    assert init.calculate_gain("leaky_relu", 0.2) == math.sqrt(2 / (1 + 0.2**2))


def test_layers_begin_as_pytorch_says() -> None:
    layer = nn.Linear(16, 400)
    for p in (layer.weight, layer.bias):
        largest = p.abs().max().item()
        assert 0.9 / 4 < largest <= 1 / 4
    norm = nn.LayerNorm(3)
    assert norm.weight.tolist() == [1] * 3 and norm.bias.tolist() == [0] * 3


def test_misuse() -> None:
    wanted: list[tuple[Callable[[], Any], str, str]] = [
        (lambda: init.calculate_gain("x"), "ValueError", "Unsupported nonlinearity x"),
        (lambda: init.calculate_gain("leaky_relu", "x"), "ValueError", "negative_slope x not a valid number"),  # type: ignore[arg-type]
        (lambda: init.xavier_uniform_(torch.empty(3)), "ValueError", "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"),  # noqa: E501
        (lambda: init.kaiming_normal_(torch.empty(3, 2), mode="x"), "ValueError", "Mode x not supported, please use one of ['fan_in', 'fan_out']"),  # noqa: E501
    ]  # fmt: skip
    for call, kind, text in wanted:
        assert refused(call) == (kind, text)


def test_warnings() -> None:
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        init.kaiming_uniform_(torch.empty(0, 2))
