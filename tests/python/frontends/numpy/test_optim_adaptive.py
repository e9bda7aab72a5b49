"""RMSprop, Adagrad and Adadelta against their formulas; schedules that rise, start again, end, or wait for progress."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld

import torchemu as torch
from torchemu import nn, optim
from torchemu.optim import lr_scheduler

RNG = np.random.default_rng


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


GRADS = [RNG(i).standard_normal(5) for i in range(7)]


def trained(kind: Any, options: dict[str, Any], dtype: Any = torch.float64) -> tuple[np.ndarray, Any]:
    p = nn.Parameter(torch.linspace(-1, 1, 5).to(dtype))
    optimizer = kind([p], **options)
    for grad in GRADS:
        p.grad = torch.from_numpy(grad).to(dtype)
        optimizer.step()
    return p.detach().double().numpy(), optimizer


def rmsprop(p: Any, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, **more: Any) -> Any:
    v = mean = step = np.zeros(5)
    for grad in GRADS:
        g = (-grad if more.get("maximize") else grad) + more.get("weight_decay", 0) * p
        v, mean = alpha * v + (1 - alpha) * g**2, alpha * mean + (1 - alpha) * g
        root = np.sqrt(v - mean**2 if more.get("centered") else v) + eps
        step = more.get("momentum", 0) * step + g / root
        p = p - lr * step
    return p


def adagrad(p: Any, lr: float = 1e-2, lr_decay: float = 0, eps: float = 1e-10, **more: Any) -> Any:
    total = np.full(5, float(more.get("initial_accumulator_value", 0)))
    for t, grad in enumerate(GRADS):
        g = (-grad if more.get("maximize") else grad) + more.get("weight_decay", 0) * p
        total = total + g**2
        p = p - lr / (1 + t * lr_decay) * g / (np.sqrt(total) + eps)
    return p


def adadelta(p: Any, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, **more: Any) -> Any:
    v = u = np.zeros(5)
    for grad in GRADS:
        g = (-grad if more.get("maximize") else grad) + more.get("weight_decay", 0) * p
        v = rho * v + (1 - rho) * g**2
        d = np.sqrt(u + eps) / np.sqrt(v + eps) * g
        u = rho * u + (1 - rho) * d**2
        p = p - lr * d
    return p


CASES: list[tuple[Any, Any, dict[str, Any]]] = [
    (optim.RMSprop, rmsprop, {}),
    (optim.RMSprop, rmsprop, {"momentum": 0.9, "weight_decay": 0.1, "lr": 0.3}),
    (optim.RMSprop, rmsprop, {"centered": True, "momentum": 0.5, "alpha": 0.8, "maximize": True}),
    (optim.Adagrad, adagrad, {}),
    (optim.Adagrad, adagrad, {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.3}),
    (optim.Adagrad, adagrad, {"maximize": True, "lr": 2.0}),
    (optim.Adadelta, adadelta, {}),
    (optim.Adadelta, adadelta, {"rho": 0.7, "weight_decay": 0.1, "maximize": True, "lr": 3.0}),
]


@pytest.mark.parametrize(("kind", "formula", "options"), CASES)
def test_steps(kind: Any, formula: Any, options: dict[str, Any]) -> None:
    wanted = formula(np.linspace(-1, 1, 5), **options)
    np.testing.assert_allclose(trained(kind, options)[0], wanted, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(trained(kind, options, torch.bfloat16)[0], wanted, rtol=0.1, atol=0.1)


@pytest.mark.parametrize(("kind", "formula", "options"), CASES)
def test_going_on_from_a_state(kind: Any, formula: Any, options: dict[str, Any]) -> None:
    p = nn.Parameter(torch.linspace(-1, 1, 5).double())
    optimizer = kind([p], **options)
    for number, grad in enumerate(GRADS):
        if number == 3:
            state = copy.deepcopy(optimizer.state_dict())
            optimizer = kind([p], lr=9.0)
            optimizer.load_state_dict(state)
        p.grad = torch.from_numpy(grad)
        optimizer.step()
    wanted = formula(np.linspace(-1, 1, 5), **options)
    np.testing.assert_allclose(p.detach().numpy(), wanted, rtol=1e-12, atol=1e-14)


def test_numbers_that_cannot_be() -> None:
    p = [nn.Parameter(torch.ones(1))]
    for kind, options, text in (
        (optim.RMSprop, {"lr": -1}, "Invalid learning rate: -1"),
        (optim.RMSprop, {"alpha": -1}, "Invalid alpha value: -1"),
        (optim.RMSprop, {"momentum": -1}, "Invalid momentum value: -1"),
        (optim.Adagrad, {"lr_decay": -1}, "Invalid lr_decay value: -1"),
        (optim.Adagrad, {"eps": -1}, "Invalid epsilon value: -1"),
        (optim.Adadelta, {"rho": 2}, "Invalid rho value: 2"),
    ):
        with pytest.raises(ValueError, match=text):
            kind(p, **options)


# -- schedules


def optimizer_of(**options: Any) -> optim.Optimizer:
    groups = [{"params": [nn.Parameter(torch.ones(1))], "lr": 0.1 * (i + 1)} for i in range(2)]
    return optim.SGD(groups, lr=0.1, **options)


def rates(optimizer: optim.Optimizer, schedule: Any, steps: int) -> list[list[float]]:
    found = []
    for _ in range(steps):
        found.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        schedule.step()
    return found


def cosine(a: float, b: float, share: float) -> float:
    return b + (a - b) * (1 + math.cos(math.pi * share)) / 2


@pytest.mark.parametrize("three", [False, True])
@pytest.mark.parametrize("way", ["cos", "linear"])
def test_one_cycle(way: str, three: bool) -> None:
    def between(a: float, b: float, share: float) -> float:
        return cosine(a, b, share) if way == "cos" else a + (b - a) * share

    optimizer = optimizer_of(momentum=0.9)
    schedule = lr_scheduler.OneCycleLR(
        optimizer, [0.5, 0.7], epochs=5, steps_per_epoch=4, pct_start=0.25, anneal_strategy=way, three_phase=three,
        div_factor=10.0, final_div_factor=100.0,
    )  # fmt: skip
    momenta = []
    optimizer.register_step_pre_hook(lambda o, *_: momenta.append(o.param_groups[0]["momentum"]))
    found = rates(optimizer, schedule, 20)
    for i, highest in enumerate((0.5, 0.7)):
        low = highest / 10
        for at in range(20):
            if at <= 4:
                wanted = between(low, highest, at / 4)
            elif three and at <= 8:
                wanted = between(highest, low, (at - 4) / 4)
            else:
                start, first = (8, low) if three else (4, highest)
                wanted = between(first, low / 100, (at - start) / (19 - start))
            assert found[at][i] == pytest.approx(wanted, rel=1e-9), at
    assert momenta[0] == pytest.approx(0.95)
    assert momenta[4] == pytest.approx(0.85)
    with pytest.raises(ValueError, match=r"Tried to step 21 times\. The specified number of total steps is 20"):
        schedule.step()


def test_cosines_that_start_again() -> None:
    optimizer = optimizer_of()
    found = rates(optimizer, lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2, 2, 0.01), 14)
    ats = [(0, 2), (1, 2), (0, 4), (1, 4), (2, 4), (3, 4), *[(i, 8) for i in range(8)]]
    for rate, (at, period) in zip(found, ats, strict=True):
        assert rate == pytest.approx([cosine(0.1, 0.01, at / period), cosine(0.2, 0.01, at / period)])


def test_a_power_of_what_is_left() -> None:
    optimizer = optimizer_of()
    found = rates(optimizer, lr_scheduler.PolynomialLR(optimizer, 4, 2.0), 6)
    wanted = [(1 - min(i, 4) / 4) ** 2 for i in range(6)]
    assert [first for first, _ in found] == pytest.approx([0.1 * share for share in wanted])


def test_schedules_at_once() -> None:
    optimizer = optimizer_of()
    chained = lr_scheduler.ChainedScheduler(
        [lr_scheduler.ConstantLR(optimizer, 0.1, 3), lr_scheduler.ExponentialLR(optimizer, 0.9)]
    )
    wanted = [0.1 * 0.9**i * (0.1 if i < 3 else 1) for i in range(5)]
    assert [first for first, _ in rates(optimizer, chained, 5)] == pytest.approx(wanted)
    with pytest.raises(ValueError, match="belong to the same optimizer"):
        lr_scheduler.ChainedScheduler([lr_scheduler.ConstantLR(optimizer_of()), lr_scheduler.ConstantLR(optimizer)])


def test_waiting_for_progress() -> None:
    """Two epochs that are not a tenth better halve the rates; for one epoch afterwards it looks at nothing."""
    optimizer = optimizer_of()
    schedule = lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=0.5, patience=1, cooldown=1, min_lr=[0.01, 0.06], threshold=0.1
    )
    figures = [5.0, 4.0, 3.9, 3.8, 3.8, 3.8, 3.8, 3.0, float("nan"), float("inf"), 2.9, 2.9, 2.9]
    found = []
    for figure in figures:
        schedule.step(torch.tensor(figure))
        found.append([group["lr"] for group in optimizer.param_groups])
    assert [first for first, _ in found] == [0.1] * 3 + [0.05] * 3 + [0.025] * 3 + [0.0125] * 3 + [0.01]
    assert found[-1][1] == 0.06
    assert schedule.best == 3.0
    other = lr_scheduler.ReduceLROnPlateau(optimizer_of(), "max", patience=0, threshold_mode="abs")
    other.load_state_dict(schedule.state_dict())
    assert other.state_dict() == schedule.state_dict()


def test_schedules_that_cannot_be() -> None:
    for make, text in (
        (lambda: lr_scheduler.OneCycleLR(optimizer_of(momentum=0.9), 0.5), "You must define either total_steps"),
        (lambda: lr_scheduler.OneCycleLR(optimizer_of(), 0.5, -1), "Expected positive integer total_steps, but got -1"),
        (lambda: lr_scheduler.OneCycleLR(optimizer_of(), [0.5], 5), "max_lr must have the same length"),
        (
            lambda: lr_scheduler.OneCycleLR(optim.Adagrad([nn.Parameter(torch.ones(1))]), 0.5, 5),
            "support momentum",
        ),
        (lambda: lr_scheduler.CosineAnnealingWarmRestarts(optimizer_of(), 0), "Expected positive integer T_0"),
        (lambda: lr_scheduler.ReduceLROnPlateau(optimizer_of(), factor=1.0), "Factor should be < 1.0"),
        (lambda: lr_scheduler.ReduceLROnPlateau(optimizer_of(), "least"), "mode least is unknown!"),
        (lambda: lr_scheduler.ReduceLROnPlateau(optimizer_of(), min_lr=[1]), "expected 2 min_lrs, got 1"),
    ):
        with pytest.raises(ValueError, match=text):
            make()
