"""torch.optim.lr_scheduler: learning rates against closed forms, epoch by epoch."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
from conftest import OpenWorld
from nn_cases import refused

import torchemu as torch
from torchemu import nn, optim
from torchemu.optim import lr_scheduler


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


def optimizer_of(*rates: float) -> optim.Optimizer:
    return optim.SGD([{"params": [nn.Parameter(torch.ones(1))], "lr": rate} for rate in rates])


Schedule = Callable[[optim.Optimizer], Any]
CASES: dict[str, tuple[Schedule, Callable[[int], float]]] = {
    "lambda": (lambda o: lr_scheduler.LambdaLR(o, lambda e: 1 / (e + 1)), lambda e: 1 / (e + 1)),
    "multiplicative": (lambda o: lr_scheduler.MultiplicativeLR(o, lambda e: 0.5), lambda e: 0.5**e),
    "step": (lambda o: lr_scheduler.StepLR(o, 3, 0.1), lambda e: 0.1 ** (e // 3)),
    "milestones": (
        lambda o: lr_scheduler.MultiStepLR(o, [2, 5, 5, 7], 0.5),
        lambda e: 0.5 ** sum(e >= m for m in (2, 5, 5, 7)),
    ),
    "exponential": (lambda o: lr_scheduler.ExponentialLR(o, 0.9), lambda e: 0.9**e),
    "constant": (lambda o: lr_scheduler.ConstantLR(o, 0.25, 4), lambda e: 0.25 if e < 4 else 1.0),
    "linear": (
        lambda o: lr_scheduler.LinearLR(o, 0.2, 0.8, 5),
        lambda e: 0.2 + 0.6 * min(e, 5) / 5,
    ),
    "cosine": (lambda o: lr_scheduler.CosineAnnealingLR(o, 4), lambda e: (1 + math.cos(math.pi * e / 4)) / 2),
    "warm up": (
        lambda o: lr_scheduler.SequentialLR(
            o, [lr_scheduler.LinearLR(o, 0.25, 1.0, 3), lr_scheduler.ExponentialLR(o, 0.5)], [3]
        ),
        lambda e: 0.25 + 0.25 * e if e < 3 else 0.5 ** (e - 3),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rates(name: str) -> None:
    make, closed_form = CASES[name]
    optimizer = optimizer_of(1.0, 0.3)
    scheduler = make(optimizer)
    for epoch in range(12):
        want = [base * closed_form(epoch) for base in (1.0, 0.3)]
        assert [g["lr"] for g in optimizer.param_groups] == pytest.approx(want, rel=1e-12, abs=1e-15), f"epoch {epoch}"
        assert scheduler.get_last_lr() == [g["lr"] for g in optimizer.param_groups]
        optimizer.step()
        scheduler.step()


def test_a_lowest_rate() -> None:
    optimizer = optimizer_of(1.0)
    scheduler = lr_scheduler.CosineAnnealingLR(optimizer, 3, eta_min=0.2)
    for epoch in range(7):
        want = 0.2 + 0.8 * (1 + math.cos(math.pi * epoch / 3)) / 2
        assert scheduler.get_last_lr() == pytest.approx([want], rel=1e-12)
        optimizer.step()
        scheduler.step()


@pytest.mark.parametrize("name", CASES)
def test_goes_on_from_a_state(name: str) -> None:
    make, _ = CASES[name]
    whole, first, second = (optimizer_of(1.0, 0.3) for _ in range(3))
    straight, before = make(whole), make(first)
    for _ in range(3):
        for optimizer, scheduler in ((whole, straight), (first, before)):
            optimizer.step()
            scheduler.step()
    after = make(second)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    after.load_state_dict(copy.deepcopy(before.state_dict()))
    for _ in range(5):
        for optimizer, scheduler in ((whole, straight), (second, after)):
            optimizer.step()
            scheduler.step()
        assert after.get_last_lr() == straight.get_last_lr()
        assert [g["lr"] for g in second.param_groups] == [g["lr"] for g in whole.param_groups]


def test_a_given_epoch() -> None:
    optimizer = optimizer_of(1.0)
    scheduler = lr_scheduler.StepLR(optimizer, 2, 0.5)
    optimizer.step()
    scheduler.step(7)
    assert scheduler.last_epoch == 7 and scheduler.get_last_lr() == [0.125]


def test_beginning_in_the_middle() -> None:
    optimizer = optimizer_of(1.0)
    assert refused(lambda: lr_scheduler.StepLR(optimizer, 2, last_epoch=3))[0] == "KeyError"
    optimizer.param_groups[0]["initial_lr"] = 1.0
    scheduler = lr_scheduler.LambdaLR(optimizer, lambda e: e / 10, last_epoch=3)
    assert scheduler.get_last_lr() == [0.4] and scheduler.base_lrs == [1.0]


def test_functions_of_each_group() -> None:
    optimizer = optimizer_of(1.0, 1.0)
    scheduler = lr_scheduler.LambdaLR(optimizer, [lambda e: 1.0, lambda e: 2.0 + e])
    assert scheduler.get_last_lr() == [1, 2] and scheduler.state_dict()["lr_lambdas"] == [None, None]


def test_warnings() -> None:
    optimizer = optimizer_of(1.0)
    scheduler = lr_scheduler.StepLR(optimizer, 2)
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        scheduler.step()
    with pytest.warns(UserWarning, match=r"please use `get_last_lr\(\)`"):
        scheduler.get_lr()


def test_misuse() -> None:
    optimizer = optimizer_of(1.0, 2.0)
    wanted: list[tuple[Callable[[], Any], str, str]] = [
        (lambda: lr_scheduler.StepLR(3, 2), "TypeError", "int is not an Optimizer"),  # type: ignore[arg-type]
        (lambda: lr_scheduler.LambdaLR(optimizer, [len]), "ValueError", "Expected 2 lr_lambdas, but got 1"),
        (lambda: lr_scheduler.ConstantLR(optimizer, 2.0), "ValueError", "Constant multiplicative factor expected to be between 0 and 1."),  # noqa: E501
        (lambda: lr_scheduler.LinearLR(optimizer, 0), "ValueError", "Starting multiplicative factor expected to be greater than 0 and less or equal to 1."),  # noqa: E501
    ]  # fmt: skip
    for call, kind, text in wanted:
        assert refused(call) == (kind, text)
    assert refused(lambda: lr_scheduler.SequentialLR(optimizer, [], []))[0] == "ValueError"
