"""NAdam, RAdam, Adamax, ASGD, Rprop, Adafactor, Muon and LBFGS against their formulas; averages of models; cycles."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from nn_cases import refused

import torchemu as torch
from torchemu import nn, optim
from torchemu.optim import lr_scheduler, swa_utils


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


GRADS = [np.random.default_rng(i).standard_normal((3, 4)) for i in range(9)]
START = np.linspace(-1, 1, 12).reshape(3, 4)


def gradient(t: int, p: Any, maximize: bool = False, weight_decay: float = 0, **_: Any) -> Any:
    """That of step t, from 1."""
    return (-GRADS[t - 1] if maximize else GRADS[t - 1]) + weight_decay * p


STEPS = range(1, len(GRADS) + 1)


def nadam(p: Any, lr: float = 2e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, **more: Any) -> Any:
    m = v = np.zeros_like(p)
    product, (b1, b2), decay = 1.0, betas, more.get("momentum_decay", 4e-3)
    decoupled = more.pop("weight_decay", 0) if more.get("decoupled_weight_decay") else 0
    for t in STEPS:
        g = gradient(t, p, **more)
        p = p * (1 - lr * decoupled)
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        mu, following = (b1 * (1 - 0.96 ** (at * decay) / 2) for at in (t, t + 1))
        product = float(np.float32(product * mu))
        mixed = (1 - mu) / (1 - product) * g + following / (1 - product * following) * m
        p = p - lr * mixed / (np.sqrt(v / (1 - b2**t)) + eps)
    return p


def radam(p: Any, lr: float = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, **more: Any) -> Any:
    m = v = np.zeros_like(p)
    b1, b2 = betas
    rho = 2 / (1 - b2) - 1
    decoupled = more.pop("weight_decay", 0) if more.get("decoupled_weight_decay") else 0
    for t in STEPS:
        g = gradient(t, p, **more)
        p = p * (1 - lr * decoupled)
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        change = m / (1 - b1**t)
        at = rho - 2 * t * b2**t / (1 - b2**t)
        if at > 5:
            change *= math.sqrt((at - 4) * (at - 2) * rho / ((rho - 4) * (rho - 2) * at))
            change *= math.sqrt(1 - b2**t) / (np.sqrt(v) + eps)
        p = p - lr * change
    return p


def adamax(p: Any, lr: float = 2e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, **more: Any) -> Any:
    m = u = np.zeros_like(p)
    b1, b2 = betas
    for t in STEPS:
        g = gradient(t, p, **more)
        m, u = b1 * m + (1 - b1) * g, np.maximum(b2 * u, abs(g) + eps)
        p = p - lr / (1 - b1**t) * m / u
    return p


def asgd(p: Any, lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, **more: Any) -> Any:
    eta = lr
    for t in STEPS:
        g = gradient(t, p, **more)
        p = p * (1 - lambd * eta) - eta * g
        eta = float(np.float32(lr / (1 + lambd * lr * t) ** alpha))
    return p


def rprop(p: Any, lr: float = 1e-2, etas: Any = (0.5, 1.2), step_sizes: Any = (1e-6, 50), **more: Any) -> Any:
    p, sizes, before = p.copy(), np.full_like(p, lr), np.zeros_like(p)
    for t in STEPS:
        grad = gradient(t, p, **more)
        for at in np.ndindex(p.shape):
            g, turn = grad[at], grad[at] * before[at]
            if turn:
                sizes[at] = min(max(sizes[at] * etas[int(turn > 0)], step_sizes[0]), step_sizes[1])
            before[at] = 0 if turn < 0 else g
            p[at] -= np.sign(before[at]) * sizes[at]
    return p


def adafactor(p: Any, lr: float = 1e-2, d: float = 1.0, eps: Any = (None, 1e-3), **more: Any) -> Any:
    rms = lambda x: math.sqrt(np.mean(x * x))  # noqa: E731
    rows, columns, decay = np.zeros((3, 1)), np.zeros((1, 4)), more.pop("weight_decay", 0)
    least = eps[0] or np.finfo(float).eps
    for t in STEPS:
        g = gradient(t, p, **more)
        newest, size = t ** more.get("beta2_decay", -0.8), max(eps[1], rms(p)) * min(lr, t**-0.5)
        p = p * (1 - lr * decay)
        rows = rows + newest * ((g * g).mean(1, keepdims=True) - rows)
        columns = columns + newest * ((g * g).mean(0, keepdims=True) - columns)
        change = g / np.sqrt(np.maximum(rows * columns / max(rows.mean(), least), least**2))
        p = p - size / max(1, rms(change) / d) * change
    return p


CASES: list[tuple[Any, Callable[..., Any], dict[str, Any]]] = [
    (optim.NAdam, nadam, {}),
    (optim.NAdam, nadam, {"weight_decay": 0.1, "maximize": True, "betas": (0.8, 0.9), "momentum_decay": 0.1}),
    (optim.NAdam, nadam, {"weight_decay": 0.1, "decoupled_weight_decay": True, "lr": 0.3}),
    (optim.RAdam, radam, {}),
    (optim.RAdam, radam, {"weight_decay": 0.1, "maximize": True, "betas": (0.8, 0.9)}),
    (optim.RAdam, radam, {"weight_decay": 0.1, "decoupled_weight_decay": True, "lr": 0.3}),
    (optim.Adamax, adamax, {}),
    (optim.Adamax, adamax, {"weight_decay": 0.1, "maximize": True, "betas": (0.5, 0.6), "lr": 0.3}),
    (optim.ASGD, asgd, {}),
    (optim.ASGD, asgd, {"lambd": 0.3, "alpha": 0.5, "weight_decay": 0.1, "maximize": True, "lr": 0.25}),
    (optim.Rprop, rprop, {}),
    (optim.Rprop, rprop, {"lr": 0.5, "etas": (0.3, 2.0), "step_sizes": (0.2, 1.5), "maximize": True}),
    (optim.Adafactor, adafactor, {}),
    (optim.Adafactor, adafactor, {"lr": 1, "d": 2.0, "eps": (1e-3, 0.6), "weight_decay": 0.1, "maximize": True}),
    (optim.Adafactor, adafactor, {"beta2_decay": -0.3}),
]


def trained(kind: Any, options: dict[str, Any], stop: int = -1, dtype: Any = torch.float64) -> np.ndarray:
    p = nn.Parameter(torch.from_numpy(START.copy()).to(dtype))
    optimizer = kind([p], **options)
    for number, grad in enumerate(GRADS):
        if number == stop:
            state = copy.deepcopy(optimizer.state_dict())
            optimizer = kind([p], lr=9.0)
            optimizer.load_state_dict(state)
        p.grad = torch.from_numpy(grad).to(dtype)
        optimizer.step()
    return np.asarray(p.detach().double().numpy())


@pytest.mark.parametrize(("kind", "formula", "options"), CASES)
def test_steps(kind: Any, formula: Any, options: dict[str, Any]) -> None:
    wanted = formula(START, **options)
    np.testing.assert_allclose(trained(kind, options), wanted, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(trained(kind, options, stop=4), wanted, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(trained(kind, options, dtype=torch.float32), wanted, rtol=1e-3, atol=1e-4)


def test_averages_of_asgd() -> None:
    p = nn.Parameter(torch.zeros(1))
    optimizer, seen = optim.ASGD([p], lr=0.5, lambd=0, t0=2), []
    for t in range(1, 8):
        p.grad = torch.full((1,), float(t))
        optimizer.step()
        seen.append(p.item())
        # the weight of step t is set at the end of step t-1
        want = seen[-1] if t <= 4 else np.mean(seen[3:])
        assert optimizer.state[p]["ax"].item() == pytest.approx(want)


def test_adafactor_of_vectors_and_stacks() -> None:
    vector = nn.Parameter(torch.ones(3, dtype=torch.float64))
    vector.grad = torch.tensor([1.0, -2.0, 0.0], dtype=torch.float64)
    optim.Adafactor([vector]).step()
    change = np.array([1, -1, 0.0])
    np.testing.assert_allclose(vector.detach().numpy(), 1 - 0.01 * change, rtol=1e-12)
    stack = nn.Parameter(torch.from_numpy(np.stack([START, START])))
    stack.grad = torch.from_numpy(np.stack(GRADS[:2]))
    optimizer = optim.Adafactor([stack])
    optimizer.step()
    state = optimizer.state[stack]
    assert (tuple(state["row_var"].shape), tuple(state["col_var"].shape)) == ((2, 3, 1), (2, 1, 4))
    np.testing.assert_allclose(state["row_var"].numpy(), (np.stack(GRADS[:2]) ** 2).mean(2, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("shape", [(4, 4), (8, 3), (3, 8), (1, 5)])
@pytest.mark.parametrize("adjust", [None, "match_rms_adamw"])
def test_muon_steps_along_the_orthogonal_factor(shape: tuple[int, int], adjust: str | None) -> None:
    grad = np.random.default_rng([1, *shape]).standard_normal(shape)
    p = nn.Parameter(torch.ones(shape))
    p.grad = torch.from_numpy(grad).float()
    optim.Muon([p], lr=0.5, weight_decay=0.1, adjust_lr_fn=adjust).step()
    rows, columns = shape
    rate = 0.5 * (math.sqrt(max(1, rows / columns)) if adjust is None else 0.2 * math.sqrt(max(shape)))
    change = (0.95 - p.detach().double().numpy()) / rate
    u, _, v = np.linalg.svd(grad, full_matrices=False)
    sizes = np.diag(u.T @ change @ v.T)
    assert (sizes > 0.6).all() and (sizes < 1.3).all()  # what the iteration leaves of singular values, in bfloat16
    np.testing.assert_allclose(change, u @ np.diag(sizes) @ v, atol=0.06)


def test_muon_remembers() -> None:
    p = nn.Parameter(torch.ones(2, 2))
    optimizer = optim.Muon([p], momentum=0.75, nesterov=False)
    wanted = np.zeros((2, 2))
    for grad in (np.eye(2), np.ones((2, 2))):
        p.grad = torch.from_numpy(grad).float()
        optimizer.step()
        wanted = 0.75 * wanted + 0.25 * grad
    np.testing.assert_allclose(optimizer.state[p]["momentum_buffer"].numpy(), wanted, rtol=1e-6)


# -- LBFGS


def descend(x: nn.Parameter, loss: Callable[[Any], Any], steps: int, **options: Any) -> tuple[list[float], int]:
    optimizer, count = optim.LBFGS([x], **options), 0

    def closure() -> Any:
        nonlocal count
        count += 1
        optimizer.zero_grad()
        value = loss(x)
        value.backward()
        return value

    return [float(optimizer.step(closure)) for _ in range(steps)], count


def rosenbrock(x: Any) -> Any:
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


def test_lbfgs_solves() -> None:
    x = nn.Parameter(torch.tensor([-1.5, 2.0], dtype=torch.float64))
    losses, _ = descend(x, rosenbrock, 6, line_search_fn="strong_wolfe")
    assert losses == sorted(losses, reverse=True) and rosenbrock(x).item() < 1e-9
    np.testing.assert_allclose(x.detach().numpy(), [1, 1], atol=1e-4)
    root = np.random.default_rng(3).standard_normal((6, 6))
    matrix, b = torch.from_numpy(root @ root.T + np.eye(6)), torch.from_numpy(np.arange(6.0))
    for options in ({"line_search_fn": "strong_wolfe"}, {"lr": 0.5, "max_iter": 100}):
        x = nn.Parameter(torch.zeros(6, dtype=torch.float64))
        descend(x, lambda x: x @ (matrix @ x) / 2 - b @ x, 2, **options)
        np.testing.assert_allclose(x.detach().numpy(), np.linalg.solve(matrix.numpy(), b.numpy()), atol=1e-3)


def test_lbfgs_first_steps() -> None:
    x = nn.Parameter(torch.tensor([3.0, -1.0], dtype=torch.float64))
    descend(x, lambda x: (x * x).sum(), 1, lr=0.5, max_iter=1)
    np.testing.assert_allclose(x.detach().numpy(), np.array([3, -1]) - np.array([6, -2]) / 8 * 0.5)
    # in one dimension the second step is the secant's
    x = nn.Parameter(torch.tensor([2.0], dtype=torch.float64))
    _, count = descend(x, lambda x: (x**4).sum(), 1, max_iter=2, max_eval=9)
    a, b = 2.0, 1.0
    secant = b - 4 * b**3 * (a - b) / (4 * a**3 - 4 * b**3)
    np.testing.assert_allclose(x.detach().numpy(), [secant], rtol=1e-12)
    assert count == 2


def test_lbfgs_ends() -> None:
    x = nn.Parameter(torch.zeros(2))
    assert descend(x, lambda x: (x * x).sum(), 2) == ([0, 0], 2)  # the gradient is 0
    x = nn.Parameter(torch.tensor([-1.5, 2.0], dtype=torch.float64))
    assert descend(x, rosenbrock, 1, lr=1e-4, max_iter=50, max_eval=5)[1] == 5
    used, unused = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(2))
    optimizer = optim.LBFGS([unused, used], lr=0.5)

    def closure() -> Any:
        optimizer.zero_grad()
        value = (used * used).sum()
        value.backward()
        return value

    optimizer.step(closure)
    assert unused.tolist() == [1, 1] and abs(used.item()) < 1e-3


def test_numbers_that_cannot_be() -> None:
    p = [nn.Parameter(torch.ones(2))]
    m = [nn.Parameter(torch.ones(2, 2))]
    for call, text in (
        (lambda: optim.NAdam(p, momentum_decay=-1), "Invalid momentum_decay value: -1"),
        (lambda: optim.RAdam(p, betas=(2, 0)), "Invalid beta parameter at index 0: 2"),
        (lambda: optim.Adamax(p, eps=-1), "Invalid epsilon value: -1"),
        (lambda: optim.Rprop(p, etas=(2, 1)), "Invalid eta values: 2, 1"),
        (lambda: optim.ASGD(p, weight_decay=-1), "Invalid weight_decay value: -1"),
        (lambda: optim.Adafactor(p, d=0), "Clipping threshold d should be >= 1 but is: 0"),
        (lambda: optim.Adafactor(p, lr=-1), "Learning rate should be >= 0 but is: -1"),
        (lambda: optim.Adafactor(p, beta2_decay=1), "beta2_decay should be <= 0 but is: 1"),
        (lambda: optim.Adafactor(p, eps=(-1, 1)), "epsilon1 should be >= 0 but is: -1"),
        (lambda: optim.Adafactor(p, eps=(1, -1)), "epsilon2 should be >= 0 but is: -1"),
        (lambda: optim.Muon(m, momentum=-1), "momentum should be >= 0 but is: -1"),
        (lambda: optim.Muon(m, adjust_lr_fn="q"), "Adjust learning rate function q is not supported"),
        (
            lambda: optim.Muon(p),
            "Muon only supports 2D parameters whereas we found a parameter with size: torch.Size([2])",
        ),
        (
            lambda: optim.LBFGS([{"params": p}, {"params": m}]),
            "LBFGS doesn't support per-parameter options (parameter groups)",
        ),
        (lambda: swa_utils.get_ema_avg_fn(2), "Invalid decay value 2 provided. Please provide a value in [0,1] range."),
        (lambda: lr_scheduler.CyclicLR(optim.SGD(p), 0.1, 1, mode="x"), "mode is invalid and scale_fn is None"),
        (
            lambda: swa_utils.SWALR(optim.SGD(p), 0.1, anneal_strategy="q"),
            "anneal_strategy must by one of 'cos' or 'linear', instead got q",
        ),
        (lambda: swa_utils.SWALR(optim.SGD(p), 0.1, -1), "anneal_epochs must be equal or greater than 0, got -1"),
        (
            lambda: swa_utils.SWALR(optim.SGD(p), [0.1, 0.2]),
            "swa_lr must have the same length as optimizer.param_groups. swa_lr has 2 values, param_groups has 1.",
        ),
    ):
        assert refused(call) == ("ValueError", text)
    assert refused(lambda: optim.LBFGS(p, line_search_fn="x").step(lambda: 1))[1] == "only 'strong_wolfe' is supported"
    assert refused(lambda: optim.LBFGS(p).step())[0] == "TypeError"
    assert refused(lambda: swa_utils.AveragedModel(nn.Linear(1, 1), avg_fn=max, multi_avg_fn=max)) == (
        "AssertionError",
        "Only one of avg_fn and multi_avg_fn should be provided",
    )
    assert refused(lambda: lr_scheduler.CyclicLR(3, 0.1, 1.0)) == ("TypeError", "int is not an Optimizer")


# -- averages of models


def averages(buffers: bool = False, **options: Any) -> tuple[list[float], list[float], int]:
    """Of a weight that is 0, 1, 4, 9, and of a running mean that is 1, 2, 3, 4."""
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).double()
    averaged = swa_utils.AveragedModel(model, use_buffers=buffers, **options)
    with torch.no_grad():
        for i in range(4):
            model[0].weight.fill_(i * i)
            model[1].running_mean.fill_(i + 1)
            averaged.update_parameters(model)
    found = averaged.module
    return found[0].weight.flatten().tolist(), found[1].running_mean.tolist(), int(averaged.n_averaged)


@pytest.mark.parametrize(
    ("options", "weight"),
    [
        ({}, 3.5),
        ({"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()}, 3.5),
        ({"avg_fn": swa_utils.get_swa_avg_fn()}, 3.5),
        ({"avg_fn": swa_utils.get_ema_avg_fn(0.9)}, 1.341),
        ({"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.9)}, 1.341),
        ({"avg_fn": lambda mine, theirs, n: mine + theirs * n}, 0 + 1 * 1 + 4 * 2 + 9 * 3),
    ],
)
def test_averages(options: dict[str, Any], weight: float) -> None:
    weights, means, count = averages(**options)
    assert weights == pytest.approx([weight] * 4) and means == [4, 4] and count == 4
    if not options:
        assert averages(buffers=True) == ([3.5] * 4, [2.5, 2.5], 4)


def test_the_model_is_copied() -> None:
    model = nn.Linear(1, 1)
    averaged = swa_utils.AveragedModel(model)
    assert list(averaged.state_dict()) == ["n_averaged", "module.weight", "module.bias"]
    assert torch.equal(averaged(torch.ones(2, 1)), model(torch.ones(2, 1)))
    averaged.module.weight.data.fill_(7)
    assert model.weight.item() != 7


def test_normalizations_learn_anew() -> None:
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout()).eval()
    batches = [(torch.full((3, 2), float(i)), i) for i in range(4)]
    swa_utils.update_bn(batches, model)
    layer = model[0]
    assert layer.running_mean.tolist() == [1.5, 1.5] and int(layer.num_batches_tracked) == 4
    assert (layer.momentum, model.training, layer.training) == (0.1, False, False)


# -- schedules


def rates(make: Callable[[Any], Any], steps: int, **options: Any) -> tuple[list[float], list[float]]:
    """Learning rates and momenta."""
    optimizer = optim.SGD([nn.Parameter(torch.ones(1))], lr=0.5, **options)
    schedule, lrs, momenta = make(optimizer), [], []
    for _ in range(steps):
        lrs.append(optimizer.param_groups[0]["lr"])
        momenta.append(optimizer.param_groups[0]["momentum"])
        optimizer.step()
        schedule.step()
    return lrs, momenta


def test_cycles() -> None:
    up_and_down = [0, 0.25, 0.5, 0.75, 1, 0.75, 0.5, 0.25] * 2
    lrs, momenta = rates(lambda o: lr_scheduler.CyclicLR(o, 0.1, 1.1, 4), 16, momentum=0.5)
    assert lrs == pytest.approx([0.1 + x for x in up_and_down])
    assert momenta == pytest.approx([0.9 - 0.1 * x for x in up_and_down])
    halves = lambda o: lr_scheduler.CyclicLR(o, 0, 1, 1, 2, mode="triangular2", cycle_momentum=False)  # noqa: E731
    assert rates(halves, 7)[0] == pytest.approx([0, 1, 0.5, 0, 0.5, 0.25, 0])
    falls = lambda o: lr_scheduler.CyclicLR(o, 0, 1, 2, mode="exp_range", gamma=0.9, cycle_momentum=False)  # noqa: E731
    assert rates(falls, 8)[0] == pytest.approx([x * 0.9**i for i, x in enumerate([0, 0.5, 1, 0.5] * 2)])
    given = lambda o: lr_scheduler.CyclicLR(  # noqa: E731
        o, 0, 1, 1, scale_fn=lambda x: x, scale_mode="iterations", cycle_momentum=False
    )
    assert rates(given, 6)[0] == pytest.approx([0, 1, 0, 3, 0, 5])


def test_a_cycle_goes_on_from_a_state() -> None:
    optimizer = optim.SGD([nn.Parameter(torch.ones(1))], lr=0.5)
    make = lambda: lr_scheduler.CyclicLR(optimizer, 0.1, 1.1, 4, cycle_momentum=False)  # noqa: E731
    first = make()
    for _ in range(3):
        optimizer.step()
        first.step()
    second = make()
    second.load_state_dict(first.state_dict())
    second.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(1.1)


@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_annealing(strategy: str) -> None:
    lrs, _ = rates(lambda o: swa_utils.SWALR(o, 0.1, 4, strategy), 7)
    shares = [min(1, t / 4) for t in range(7)]
    shares = [(1 - math.cos(math.pi * s)) / 2 for s in shares] if strategy == "cos" else shares
    assert lrs == pytest.approx([0.5 + (0.1 - 0.5) * s for s in shares])
    assert rates(lambda o: swa_utils.SWALR(o, 0.1, 0, strategy), 3)[0] == pytest.approx([0.1] * 3)
