"""torch.optim: trajectories against the published formulas in NumPy; groups and states."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from conftest import NUMPY, OpenWorld
from nn_cases import refused

import torchemu as torch
from torchemu import nn, optim

pytestmark = pytest.mark.shows("PyTorch: modules and optimizers")

RNG = np.random.default_rng
SHAPES: list[tuple[int, ...]] = [(3,), (2, 2), (), (0,)]


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


def gradients(step: int, dtype: str = "float64") -> list[np.ndarray]:
    rng = RNG([9, step])
    return [np.asarray(rng.standard_normal(s) * (step + 1), NUMPY[dtype]) for s in SHAPES]


def starts() -> list[np.ndarray]:
    rng = RNG(8)
    return [np.asarray(rng.standard_normal(s)) for s in SHAPES]


def trained(make: Callable[[Any], optim.Optimizer], steps: int = 6) -> list[list[np.ndarray]]:
    """The parameters after each step."""
    params = [nn.Parameter(torch.from_numpy(a.copy())) for a in starts()]
    optimizer, history = make(params), []
    for step in range(steps):
        for p, g in zip(params, gradients(step), strict=True):
            p.grad = torch.from_numpy(g.copy())
        optimizer.step()
        history.append([np.array(p.detach()) for p in params])
    return history


def compare(make: Callable[[Any], optim.Optimizer], formula: Callable[..., np.ndarray]) -> None:
    """formula(p, g, state, t) is the parameter after step t; state is a dictionary of its own."""
    params, states = starts(), [{} for _ in SHAPES]  # type: list[np.ndarray], list[dict[str, Any]]
    for step, after in enumerate(trained(make)):
        for i, g in enumerate(gradients(step)):
            params[i] = formula(params[i], g, states[i], step + 1)
            np.testing.assert_allclose(after[i], params[i], rtol=1e-12, err_msg=f"step {step}, parameter {i}")


class TestSGD:
    @pytest.mark.parametrize("momentum", [0, 0.9])
    @pytest.mark.parametrize("decay", [0, 0.1])
    @pytest.mark.parametrize("maximize", [False, True])
    @pytest.mark.parametrize("more", [{}, {"dampening": 0.3}, {"nesterov": True}])
    def test_trajectory(self, momentum: float, decay: float, maximize: bool, more: dict[str, Any]) -> None:
        if more and not momentum:
            return

        def formula(p: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int) -> np.ndarray:
            g = (-g if maximize else g) + decay * p
            if momentum:
                v = state["v"] = g if t == 1 else momentum * state["v"] + (1 - more.get("dampening", 0)) * g
                g = g + momentum * v if "nesterov" in more else v
            return p - 0.05 * g

        def make(params: Any) -> optim.Optimizer:
            return optim.SGD(params, 0.05, momentum=momentum, weight_decay=decay, maximize=maximize, **more)

        compare(make, formula)

    def test_state_is_only_of_momentum(self) -> None:
        p = nn.Parameter(torch.ones(1))
        p.grad = torch.ones(1)
        plain = optim.SGD([p], lr=1)
        plain.step()
        assert p.item() == 0 and not plain.state

    def test_misuse(self) -> None:
        p = nn.Parameter(torch.ones(2))
        wanted: list[tuple[dict[str, Any], str]] = [
            ({"lr": -1}, "Invalid learning rate: -1"),
            ({"momentum": -1}, "Invalid momentum value: -1"),
            ({"weight_decay": -1}, "Invalid weight_decay value: -1"),
            ({"nesterov": True}, "Nesterov momentum requires a momentum and zero dampening"),
        ]
        for options, text in wanted:
            assert refused(lambda options=options: optim.SGD([p], **options)) == ("ValueError", text)


class TestAdam:
    @pytest.mark.parametrize("kind", [optim.Adam, optim.AdamW])
    @pytest.mark.parametrize("decay", [0, 0.1])
    @pytest.mark.parametrize("amsgrad", [False, True])
    @pytest.mark.parametrize("maximize", [False, True])
    def test_trajectory(self, kind: Any, decay: float, amsgrad: bool, maximize: bool) -> None:
        lr, (b1, b2), eps = 0.01, (0.8, 0.95), 1e-3

        def formula(p: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int) -> np.ndarray:
            g = -g if maximize else g
            if kind is optim.AdamW:
                p = p - lr * decay * p
            else:
                g = g + decay * p
            m = state["m"] = b1 * state.get("m", 0) + (1 - b1) * g
            v = state["v"] = b2 * state.get("v", 0) + (1 - b2) * g**2
            if amsgrad:
                v = state["most"] = np.maximum(state.get("most", 0), v)
            return p - lr * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)

        def make(params: Any) -> optim.Optimizer:
            return kind(params, lr, (b1, b2), eps, decay, amsgrad, maximize=maximize)

        compare(make, formula)

    def test_defaults(self) -> None:
        p = nn.Parameter(torch.ones(1))
        about = {"lr": 0.001, "betas": (0.9, 0.999), "eps": 1e-08, "amsgrad": False, "maximize": False, "foreach": None}
        about |= {"capturable": False, "differentiable": False, "fused": None}
        assert optim.Adam([p]).defaults == {**about, "weight_decay": 0, "decoupled_weight_decay": False}
        assert optim.AdamW([p]).defaults == {**about, "weight_decay": 0.01, "decoupled_weight_decay": True}

    def test_state(self) -> None:
        p = nn.Parameter(torch.ones(2))
        p.grad = torch.tensor([1.0, -2.0])
        optimizer = optim.Adam([p])
        optimizer.step()
        state = optimizer.state_dict()["state"][0]
        assert {k: v.tolist() for k, v in state.items()} == {
            "step": 1,
            "exp_avg": [np.float32(0.1), np.float32(-0.2)],
            "exp_avg_sq": [np.float32(0.001), np.float32(0.004)],
        }

    @pytest.mark.parametrize("name", ["float16", "bfloat16"])
    def test_short_floats_are_rounded_once_a_step(self, name: str) -> None:
        kind, p = NUMPY[name], nn.Parameter(torch.ones(3, dtype=name))
        optimizer = optim.Adam([p], lr=0.01)
        x, m, v = (np.full(3, c, kind) for c in (1, 0, 0))
        for step in range(1, 5):
            g = RNG(step).standard_normal(3).astype(kind)
            p.grad = torch.from_numpy(g.copy())
            optimizer.step()
            wide_m = m.astype(np.float32) + (g.astype(np.float32) - m.astype(np.float32)) * np.float32(1 - 0.9)
            wide_v = v.astype(np.float32) * np.float32(0.999) + g.astype(np.float32) ** 2 * np.float32(1 - 0.999)
            root = np.sqrt(wide_v) / math.sqrt(1 - 0.999**step) + 1e-8
            wide_x = x.astype(np.float32) - 0.01 / (1 - 0.9**step) * (wide_m / root)
            x, m, v = wide_x.astype(kind), wide_m.astype(kind), wide_v.astype(kind)
            assert p.tolist() == x.astype(float).tolist()

    def test_misuse(self) -> None:
        p = nn.Parameter(torch.ones(2))
        wanted: list[tuple[dict[str, Any], str]] = [
            ({"lr": -1}, "Invalid learning rate: -1"),
            ({"betas": (1, 2)}, "Invalid beta parameter at index 0: 1"),
            ({"betas": (0.9, 2)}, "Invalid beta parameter at index 1: 2"),
            ({"eps": -1}, "Invalid epsilon value: -1"),
            ({"weight_decay": -1}, "Invalid weight_decay value: -1"),
        ]
        for (options, text), kind in itertools.product(wanted, (optim.Adam, optim.AdamW)):
            assert refused(lambda kind=kind, options=options: kind([p], **options)) == ("ValueError", text)
        text = "AdamW.__init__() got an unexpected keyword argument 'decoupled_weight_decay'"
        assert refused(lambda: optim.AdamW([p], decoupled_weight_decay=True)) == ("TypeError", text)  # type: ignore[call-arg]


class TestOptimizer:
    def test_groups_have_options_of_their_own(self) -> None:
        a, b, c = (nn.Parameter(torch.zeros(1)) for _ in range(3))
        optimizer = optim.SGD([{"params": [a], "lr": 1.0}, {"params": b}], lr=0.5)
        optimizer.add_param_group({"params": [c], "lr": 0.25})
        for p in (a, b, c):
            p.grad = torch.ones(1)
        optimizer.step()
        assert [p.item() for p in (a, b, c)] == [-1, -0.5, -0.25]
        optimizer.param_groups[1]["lr"] = torch.tensor(2.0)
        b.grad = torch.ones(1)
        a.grad = c.grad = None
        optimizer.step()
        assert [p.item() for p in (a, b, c)] == [-1, -2.5, -0.25], "without a gradient nothing happens"

    def test_parameters_stay_leaves(self) -> None:
        p = nn.Parameter(torch.ones(2))
        (p * p).sum().backward()
        optim.AdamW([p]).step()
        assert p.is_leaf and p.requires_grad and p.grad is not None
        y = p * p
        optim.SGD([p], lr=0.1).step()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()

    def test_closures(self) -> None:
        p = nn.Parameter(torch.full((1,), 3.0))
        optimizer = optim.SGD([p], lr=0.25)

        @torch.no_grad()
        def outer() -> Any:
            return optimizer.step(closure)

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = (p**2).sum()
            loss.backward()
            return loss

        assert outer().item() == 9 and p.item() == 1.5

    @pytest.mark.parametrize("to_none", [True, False])
    def test_zero_grad(self, to_none: bool) -> None:
        p = nn.Parameter(torch.ones(2))
        p.grad = torch.ones(2)
        optim.SGD([p]).zero_grad(to_none)
        assert p.grad is None if to_none else p.grad is not None and p.grad.tolist() == [0, 0]

    def test_a_subclass_of_the_program(self) -> None:
        class Halving(optim.Optimizer):
            def __init__(self, params: Any) -> None:
                super().__init__(params, {})

            @torch.no_grad()
            def step(self, closure: Any = None) -> None:
                for group in self.param_groups:
                    for p in group["params"]:
                        p.div_(2)

        p = nn.Parameter(torch.ones(1))
        Halving([p]).step()
        assert p.item() == 0.5
        assert refused(lambda: optim.Optimizer([p], {}).step())[0] == "NotImplementedError"

    def test_a_subclass_that_keeps_its_groups_itself(self) -> None:
        class Halving(optim.Optimizer):
            def __init__(self, params: Any) -> None:
                self.param_groups, self.state, self.defaults = [{"params": list(params)}], {}, {}

            def step(self, closure: Any = None) -> None:
                for p in self.param_groups[0]["params"]:
                    p.data.div_(2)

        p = nn.Parameter(torch.ones(1))
        p.grad = torch.ones(1)
        halving = Halving([p])
        halving.step()
        halving.zero_grad()
        assert p.item() == 0.5 and p.grad is None

    def test_text(self) -> None:
        p = nn.Parameter(torch.ones(1))
        options = "    dampening: 0\n    differentiable: False\n    foreach: None\n    fused: None\n    lr: {}\n"
        options += "    maximize: False\n    momentum: 0.9\n    nesterov: False\n    weight_decay: 0\n"
        optimizer = optim.SGD([{"params": [p], "lr": 0.5}, {"params": [nn.Parameter(p.data)]}], lr=0.1, momentum=0.9)
        groups = [f"Parameter Group {i}\n{options.format(lr)}" for i, lr in enumerate((0.5, 0.1))]
        assert repr(optimizer) == "SGD (\n" + "\n".join(groups) + ")"

    def test_misuse(self) -> None:
        p, q = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
        wanted: list[tuple[Callable[[], Any], str, str]] = [
            (lambda: optim.SGD(p), "TypeError", "params argument given to the optimizer should be an iterable of Tensors or dicts, but got torch.FloatTensor"),  # noqa: E501
            (lambda: optim.SGD([]), "ValueError", "optimizer got an empty parameter list"),
            (lambda: optim.SGD([{"params": [p]}, {"params": [p]}]), "ValueError", "some parameters appear in more than one parameter group"),  # noqa: E501
            (lambda: optim.SGD([3]), "TypeError", "optimizer can only optimize Tensors, but one of the params is int"),
            (lambda: optim.SGD([p * 2]), "ValueError", "can't optimize a non-leaf Tensor"),
            (lambda: optim.SGD([{"params": {p}}]), "TypeError", "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will change between runs. Please use a list instead."),  # noqa: E501
            (lambda: optim.SGD([p]).add_param_group(3), "TypeError", "param_group must be a dict, but got <class 'int'>"),  # type: ignore[arg-type]  # noqa: E501
            (lambda: optim.SGD([{"lr": 1}]), "KeyError", "params"),
            (lambda: optim.SGD([("a", p), q]), "ValueError", "all optimizer params should be with/without names. Some param names are missing"),  # noqa: E501
        ]  # fmt: skip
        for call, kind, text in wanted:
            assert refused(call) == (kind, text)
        with pytest.warns(UserWarning, match="optimizer contains a parameter group with duplicate parameters"):
            optim.SGD([p, p])


class TestStates:
    @staticmethod
    def step(optimizer: optim.Optimizer, params: Sequence[nn.Parameter], times: int = 1) -> list[list[float]]:
        for _ in range(times):
            for i, p in enumerate(params):
                p.grad = torch.full_like(p, i + 1.0)
            optimizer.step()
        return [p.tolist() for p in params]

    @pytest.mark.parametrize("make", [lambda p: optim.AdamW(p, 0.1), lambda p: optim.SGD(p, 0.1, momentum=0.9)])
    @pytest.mark.parametrize("through", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
    def test_goes_on_from_a_state(self, make: Any, through: Any) -> None:
        params = [nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(3))]
        first = make([("a", params[0]), ("b", params[1])])
        self.step(first, params, 3)
        others = copy.deepcopy(params)
        second = make([("a", others[0]), ("b", others[1])])
        second.load_state_dict(through(first.state_dict()))
        assert self.step(first, params) == self.step(second, others)
        assert second.state_dict()["param_groups"] == first.state_dict()["param_groups"]
        assert first.param_groups[0]["param_names"] == ["a", "b"]

    def test_state_becomes_of_the_parameters_dtype(self) -> None:
        p, q = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2, dtype=torch.float64))
        first, second = optim.Adam([p]), optim.Adam([q])
        self.step(first, [p])
        second.load_state_dict(first.state_dict())
        state = second.state[q]
        assert (state["exp_avg"].dtype, state["step"].dtype) == (torch.float64, torch.float32)

    def test_numbers(self) -> None:
        a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
        optimizer = optim.SGD([{"params": [a]}, {"params": [b]}], lr=1.0, momentum=0.5)
        b.grad = torch.ones(1)
        optimizer.step()
        state = optimizer.state_dict()
        assert list(state["state"]) == [1] and [g["params"] for g in state["param_groups"]] == [[0], [1]]

    def test_copies(self) -> None:
        p = nn.Parameter(torch.ones(2))
        optimizer = optim.SGD([p], 0.1, momentum=0.9)
        self.step(optimizer, [p])
        for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
            (q,) = other.param_groups[0]["params"]
            assert q is not p and list(other.state) == [q] and repr(other) == repr(optimizer)
            assert other.state[q]["momentum_buffer"].tolist() == [1, 1]
            other.step()

    def test_misuse(self) -> None:
        p, q = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
        two = optim.SGD([{"params": [p]}, {"params": [q]}])
        assert refused(lambda: optim.SGD([p]).load_state_dict(two.state_dict())) == (
            "ValueError",
            "loaded state dict has a different number of parameter groups",
        )
        assert refused(lambda: optim.SGD([p, q]).load_state_dict(optim.SGD([p]).state_dict())) == (
            "ValueError",
            "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
        )


# -- what all optimizers share


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW])
def test_ways_that_there_are_not(kind: Any) -> None:
    p = nn.Parameter(torch.ones(2))
    text = "an optimizer with differentiable=True is not supported: no gradients go through its steps"
    assert refused(lambda: kind([p], differentiable=True)) == ("NotImplementedError", text)
    text = "`fused` and `foreach` cannot be `True` together."
    assert refused(lambda: kind([p], fused=True, foreach=True)) == ("RuntimeError", text)
    text = "`fused` does not support `differentiable`"
    assert refused(lambda: kind([p], fused=True, differentiable=True)) == ("RuntimeError", text)
