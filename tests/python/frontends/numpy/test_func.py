"""torch.func, torch.nn.utils.stateless and torch.jit: modules as functions, functions of functions, and no compiler."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from nn_cases import refused

import torchemu as torch
from torchemu import func, jit, nn
from torchemu.func import functional_call


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


def test_other_parameters() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    own = {name: p.clone() for name, p in net.state_dict().items()}
    x = torch.arange(8.0).view(4, 2)
    others = {name: torch.full_like(p, 0.5) for name, p in net.named_parameters()}
    twin = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    twin.load_state_dict({**own, **others})
    means = torch.zeros(3)
    got = functional_call(net, ({**others}, {"1.running_mean": means}), (x,))
    assert torch.equal(got, twin(x))
    assert means.any()  # the buffer that is given is the one that is written into
    for name, value in net.state_dict().items():
        assert torch.equal(value, own[name]) or "num_batches" in name or "running_var" in name
    with pytest.raises(TypeError, match="unexpected keyword argument 'a'"):
        functional_call(net[0], {}, x, {"a": 1})
    assert torch.equal(functional_call(net[0], {"no_such_name": x}, x), net[0](x))


def test_gradients_by_other_parameters() -> None:
    net, x = nn.Linear(2, 1), torch.arange(6.0).view(3, 2)
    weight = torch.tensor([[1.0, 2.0]], requires_grad=True)
    functional_call(net, {"weight": weight}, x).sum().backward()
    assert weight.grad is not None and weight.grad.tolist() == [[6, 9]] and net.weight.grad is None


def test_tied_names() -> None:
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    net[1].weight = net[0].weight
    x, w = torch.eye(2), torch.full((2, 2), 2.0)
    assert functional_call(net, {"0.weight": w}, x).tolist() == (w @ w).tolist()
    loose = functional_call(net, {"0.weight": w}, x, tie_weights=False)
    assert torch.allclose(loose, (x @ w.T) @ net[1].weight.T)
    kind, text = refused(lambda: functional_call(net, {"0.weight": w, "1.weight": w.clone()}, x))
    assert kind == "ValueError" and "which are tied" in text


def test_names_that_cannot_be() -> None:
    net, x, w = nn.Linear(2, 1), torch.ones(1, 2), {"weight": torch.ones(1, 2)}
    text = "Error(s) in reparametrizing for Linear:\n\tMissing key(s): 'bias'."
    assert refused(lambda: functional_call(net, w, x, strict=True)) == ("RuntimeError", text)
    text = "['weight'] appeared in multiple dictionaries; behavior of functional call is ambiguous"
    assert refused(lambda: functional_call(net, (w, w), x)) == ("ValueError", text)
    assert refused(lambda: functional_call(net, 3, x))[0] == "ValueError"


def test_states_of_several_modules() -> None:
    nets = [nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1)) for _ in range(3)]
    params, buffers = func.stack_module_state(nets)
    assert params["0.weight"].shape == (3, 1, 2) and params["0.weight"].requires_grad
    assert torch.equal(params["0.weight"][1], nets[1][0].weight) and buffers["1.running_var"].shape == (3, 1)
    assert refused(lambda: func.stack_module_state([]))[0] == "RuntimeError"
    assert refused(lambda: func.stack_module_state([nets[0], nn.Linear(1, 1)]))[0] == "RuntimeError"
    assert refused(lambda: func.stack_module_state([nets[0], nets[1].eval()]))[0] == "RuntimeError"


# -- derivatives, of x³


X = np.array([1.0, -2.0, 0.5])


def cube(x: Any) -> Any:
    return x**3


def test_gradients() -> None:
    x = torch.from_numpy(X.copy())
    assert np.allclose(func.grad(lambda x: cube(x).sum())(x).numpy(), 3 * X**2)
    assert np.allclose(func.grad(lambda x: func.grad(lambda y: cube(y).sum())(x).sum())(x).numpy(), 6 * X)
    grads, value = func.grad_and_value(lambda a, b: (a * b["k"]).sum(), argnums=(0, 1))(x, {"k": x + 1})
    assert np.allclose(grads[0].numpy(), X + 1) and np.allclose(grads[1]["k"].numpy(), X)
    assert value.item() == pytest.approx((X * (X + 1)).sum()) and not value.requires_grad
    found, aux = func.grad(lambda x: (x.sum(), "more"), has_aux=True)(x)
    assert found.tolist() == [1, 1, 1] and aux == "more" and not x.requires_grad
    outer = x.clone().requires_grad_()
    func.grad(lambda x: cube(x).sum())(outer).sum().backward()
    assert outer.grad is not None and np.allclose(outer.grad.numpy(), 6 * X)
    assert refused(lambda: func.grad(cube)(x))[0] == "RuntimeError"


def test_jacobians() -> None:
    x = torch.from_numpy(X.copy())
    value, product = func.vjp(cube, x)
    assert np.allclose(value.numpy(), X**3)
    for v in (X, X + 1):
        assert np.allclose(product(torch.from_numpy(v))[0].numpy(), 3 * X**2 * v)
    assert np.allclose(func.jacrev(cube)(x).numpy(), np.diag(3 * X**2))
    outer = func.jacrev(lambda a, b: a[:, None] * b, argnums=(0, 1))(x, x + 1)
    assert np.allclose(outer[0].numpy(), np.einsum("ik,j->ijk", np.eye(3), X + 1))
    assert np.allclose(outer[1].numpy(), np.einsum("i,jk->ijk", X, np.eye(3)))
    assert np.allclose(func.hessian(lambda x: cube(x).sum())(x).numpy(), np.diag(6 * X))
    for name in ("vmap", "jvp", "jacfwd"):
        assert refused(lambda name=name: getattr(func, name)(cube))[0] == "NotImplementedError"


def test_nothing_is_compiled() -> None:
    @jit.script
    def double(x: Any) -> Any:
        return x * 2

    @jit.ignore
    def one() -> int:
        return 1

    @jit.ignore(drop=True)
    def two() -> int:
        return 2

    net = nn.Linear(1, 1)
    assert (double(3), one(), two(), jit.is_scripting(), jit.is_tracing()) == (6, 1, 2, False, False)
    assert jit.script(net) is net and jit.trace(net, torch.ones(1)) is net and isinstance(net, jit.ScriptModule)
    assert refused(lambda: jit.freeze(net))[0] == "RuntimeError" and jit.freeze(net.eval()) is net
    assert refused(lambda: jit.load("x"))[0] == "NotImplementedError"
    with jit.optimized_execution(False), jit.fuser("fuser1"):
        assert jit.export(one)() == jit.unused(one)() == 1


def test_what_does_not_depend_on_the_arguments() -> None:
    x = torch.tensor([1.0, 2.0])
    assert func.grad(lambda x: torch.ones(()))(x).tolist() == [0.0, 0.0]
    assert func.jacrev(lambda x: torch.ones(3))(x).tolist() == [[0.0, 0.0]] * 3
    assert [t.tolist() for t in func.vjp(lambda x: torch.ones(2), x)[1](torch.ones(2))] == [[0.0, 0.0]]
    results, product = func.vjp(lambda x: (x * 3, torch.ones(2)), x)
    assert [t.tolist() for t in results] == [[3.0, 6.0], [1.0, 1.0]]
    assert product((x, x))[0].tolist() == [3.0, 6.0]


def test_jacobians_of_trees() -> None:
    x = torch.tensor([1.0, 2.0])
    got = func.jacrev(lambda x: {"a": x * x, "b": (x.sum(),)})(x)
    assert got["a"].tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert got["b"][0].tolist() == [1.0, 1.0]
    both = func.jacrev(lambda d, y: {"o": d["a"] * y}, (0, 1))({"a": x}, torch.tensor([5.0, 7.0]))
    assert both["o"][0]["a"].tolist() == [[5.0, 0.0], [0.0, 7.0]]
    assert both["o"][1].tolist() == [[1.0, 0.0], [0.0, 2.0]]


@pytest.mark.parametrize("function", [func.grad, func.jacrev])
def test_arguments_that_are_not_there_or_no_tensors(function: Any) -> None:
    for number in (1, -2, (0, 1)):
        with pytest.raises(RuntimeError, match="but only 1 positional inputs"):
            function(lambda x: x.sum(), number)(torch.ones(2))
    with pytest.raises(ValueError, match="must be Tensor, got <class 'float'>"):
        function(lambda x: x)(1.0)
    with pytest.raises(ValueError, match="must be Tensor, got <class 'int'>"):
        function(lambda x: x[0].sum())([torch.ones(2), 3])
