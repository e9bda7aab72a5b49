"""Backward passes: what arrives where, when and how often; what a program may ask for wrongly."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld

import torchemu as torch

pytestmark = pytest.mark.shows("PyTorch: gradients")

Tensor = torch.Tensor


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


def leaf(*shape: int) -> Tensor:
    return torch.ones(*shape, requires_grad=True)


# -- what a tensor says about itself


def test_leaves_and_results() -> None:
    x = torch.ones(2)
    assert (x.requires_grad, x.grad, x.grad_fn, x.is_leaf, x.output_nr) == (False, None, None, True, 0)
    assert x.requires_grad_() is x and x.requires_grad and x.is_leaf and x.grad_fn is None
    y = x * 2
    assert y.requires_grad and not y.is_leaf and y.grad_fn.name() == "MulBackward0"
    assert type(y.grad_fn).__name__ == "MulBackward0" and "MulBackward0" in repr(y.grad_fn)
    (node, output), number = y.grad_fn.next_functions
    assert node.name() == "torch::autograd::AccumulateGrad"
    assert node.variable is x and output == 0 and number == (None, 0)
    assert y.max(0)[0].output_nr == 0
    assert x.requires_grad_(False) is x and not x.requires_grad
    assert y.requires_grad_() is y and not y.is_leaf


def test_recording_can_be_turned_off() -> None:
    x = leaf(2)
    with torch.no_grad():
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
    with torch.inference_mode():
        assert not (x * 2).requires_grad
    with torch.set_grad_enabled(False):
        assert not x.exp().requires_grad
    assert (x * 2).requires_grad


def test_creating_functions_take_requires_grad() -> None:
    calls: list[Tensor] = [
        torch.zeros(2, requires_grad=True),
        torch.tensor([1.0], requires_grad=True),
        torch.randn(2, requires_grad=True),
        torch.full((2,), 3.0, requires_grad=True),
        torch.zeros_like(torch.ones(2), requires_grad=True),
        torch.ones(2).new_empty(2, requires_grad=True),
    ]
    assert all(t.requires_grad and t.is_leaf for t in calls)
    assert not torch.zeros_like(leaf(2)).requires_grad


def test_printing_tells() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True, device="cpu")
    assert repr(x) == "tensor([1., 2.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 4.], grad_fn=<MulBackward0>)"
    assert repr(x.detach()) == "tensor([1., 2.])"


NOT_FLOATS = "nly Tensors of floating point"
NUMPY = r"Can't call numpy\(\) on Tensor that requires grad. Use tensor.detach\(\).numpy\(\) instead."

MISUSES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "integers": (lambda: torch.ones(2, dtype=torch.int64, requires_grad=True), RuntimeError, NOT_FLOATS),
    "integers afterwards": (lambda: torch.arange(2).requires_grad_(), RuntimeError, NOT_FLOATS),
    "integers assigned": (lambda: setattr(torch.arange(2), "requires_grad", True), RuntimeError, NOT_FLOATS),
    "no leaf, though it does": (
        lambda: setattr(leaf(2) * 1, "requires_grad", True),
        RuntimeError,
        "you can only change requires_grad flags of leaf variables.$",
    ),
    "no leaf": (
        lambda: setattr(leaf(2) * 1, "requires_grad", False),
        RuntimeError,
        "you can only change requires_grad flags of leaf variables.",
    ),
    "numpy": (lambda: leaf(2).numpy(), RuntimeError, NUMPY),
    "numpy of a result": (lambda: (leaf(2) * 2).numpy(), RuntimeError, NUMPY),
    "an array": (lambda: np.asarray(leaf(2)), RuntimeError, NUMPY),
    "several elements": (
        lambda: leaf(2).backward(),
        RuntimeError,
        "grad can be implicitly created only for scalar outputs",
    ),
    "nothing recorded": (
        lambda: torch.ones(1).backward(),
        RuntimeError,
        "element 0 of tensors does not require grad and does not have a grad_fn",
    ),
    "nothing recorded of the second": (
        lambda: torch.autograd.backward([leaf(1), torch.ones(1)]),
        RuntimeError,
        "element 1 of tensors does not require grad and does not have a grad_fn",
    ),
    "another shape": (
        lambda: (leaf(2) * 1).backward(torch.ones(3)),
        RuntimeError,
        r"Mismatch in shape: grad_output\[0\] has a shape of torch.Size\(\[3\]\) and output\[0\] has a shape of",
    ),
    "no tensor as gradient": (lambda: leaf(2).backward("x"), TypeError, "gradients can be either Tensors or None"),
    "too many gradients": (
        lambda: torch.autograd.backward([leaf(1)], [None, None]),
        RuntimeError,
        "got 1 tensors and 2 gradients",
    ),
    "no inputs": (lambda: leaf(1).backward(inputs=[]), RuntimeError, "`inputs` argument to `backward"),
    "inputs that require none": (
        lambda: leaf(1).backward(inputs=torch.ones(1)),
        RuntimeError,
        "can't retain_grad on Tensor that has requires_grad=False",
    ),
    "unused": (
        lambda: torch.autograd.grad(leaf(1), leaf(1)),
        RuntimeError,
        "One of the differentiated Tensors appears to not have been used in the graph",
    ),
    "requires none": (
        lambda: torch.autograd.grad(leaf(1), torch.ones(1)),
        RuntimeError,
        "One of the differentiated Tensors does not require grad",
    ),
    "unused and not": (
        lambda: torch.autograd.grad(leaf(1), leaf(1), allow_unused=False, materialize_grads=True),
        ValueError,
        "Expected allow_unused to be True or not passed when materialize_grads=True",
    ),
    "batched": (lambda: torch.autograd.grad(leaf(1), leaf(1), is_grads_batched=True), NotImplementedError, "batch"),
    "a copy": (lambda: copy.deepcopy(leaf(1) * 1), RuntimeError, "Only Tensors created explicitly by the user"),
    "a grad of another size": (
        lambda: setattr(leaf(2, 3), "grad", torch.ones(2)),
        RuntimeError,
        r"attempting to assign a gradient of size '\[2\]' to a tensor of size '\[2, 3\]'",
    ),
    "a grad of another dtype": (
        lambda: setattr(leaf(2), "grad", torch.ones(2, dtype=torch.float64)),
        RuntimeError,
        "attempting to assign a gradient with dtype 'double' to a tensor with grad_dtype 'Float'",
    ),
    "a grad on another device": (
        lambda: setattr(leaf(2), "grad", torch.ones(2, device="cpu")),
        RuntimeError,
        "attempting to assign a gradient with device type 'cpu'",
    ),
    "a number as grad": (lambda: setattr(leaf(2), "grad", 1), TypeError, "assigned grad expected to be a Tensor"),
    "a hook": (
        lambda: torch.ones(1).register_hook(print),
        RuntimeError,
        "cannot register a hook on a tensor that doesn't require gradient",
    ),
    "a hook after": (
        lambda: (leaf(1) * 1).register_post_accumulate_grad_hook(print),
        RuntimeError,
        "post accumulate grad hooks cannot be registered on non-leaf tensors",
    ),
    "retain_grad": (lambda: torch.ones(1).retain_grad(), RuntimeError, "can't retain_grad on Tensor that has"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuses(name: str) -> None:
    call, kind, text = MISUSES[name]
    with pytest.raises(kind, match=text):
        call()


def test_numbers_may_be_looked_at() -> None:
    x = torch.tensor([2.0], requires_grad=True)
    assert (x.item(), float(x * 2), x.tolist(), x.detach().numpy()[0], x.numpy(force=True)[0]) == (2, 4, [2], 2, 2)


# -- what arrives


def test_gradients_add_up_in_the_leaves() -> None:
    x, w = leaf(3), torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for passes in (1, 2):
        ((x * w).sum() + (x * x).sum()).backward()
        assert x.grad.tolist() == [passes * n for n in (3, 4, 5)] and w.grad.tolist() == [passes] * 3
    kept = x.grad
    (2 * x).sum().backward()
    assert x.grad is kept and kept.tolist() == [8, 10, 12]
    x.grad = None
    assert x.grad is None
    x.grad = torch.ones(3)
    del x.grad
    assert x.grad is None


def test_two_leaves_never_share_the_memory_of_a_gradient() -> None:
    a, b = leaf(2), leaf(2)
    (a + b).sum().backward()
    a.grad.add_(1)
    assert a.grad.tolist() == [2, 2] and b.grad.tolist() == [1, 1]
    seed = torch.ones(2)
    c = leaf(2)
    (c * 1).backward(seed)
    (c + 0).backward(seed)
    c.grad.add_(5)
    assert seed.tolist() == [1, 1]


def test_a_diamond_runs_each_node_once_when_all_is_there() -> None:
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    order: list[str] = []
    a = x * 3
    b = a.exp()
    c = a.sin()
    for name, t in {"a": a, "b": b, "c": c}.items():
        t.register_hook(lambda g, name=name: order.append(name))
    (b * c).backward()
    assert order == ["c", "b", "a"], "later ones first"
    want = 3 * np.exp(6) * (np.sin(6) + np.cos(6))
    np.testing.assert_allclose(x.grad.item(), want, rtol=1e-12)


def test_several_roots() -> None:
    x = leaf(2)
    y = x * 2
    torch.autograd.backward([y.sum(), y, x], [None, torch.tensor([1.0, 10.0]), torch.tensor([0.5, 0.5])])
    assert x.grad.tolist() == [4.5, 22.5]


def test_results_that_are_not_followed_have_zero_gradients() -> None:
    x = torch.tensor([[3.0, 1.0], [2.0, 4.0]], requires_grad=True)
    values, _ = torch.sort(x, 1)
    first, second = values.unbind(1)
    second.sum().backward()
    assert x.grad.tolist() == [[1, 0], [0, 1]]
    assert first.requires_grad


def test_a_second_time() -> None:
    x = leaf(3)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4, 4, 4]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    z = (x + 1).sum()  # which keeps nothing
    z.backward()
    z.backward()
    assert x.grad.tolist() == [6, 6, 6]


def test_only_inputs() -> None:
    x, w = leaf(2), leaf(2)
    y = x * 2
    (y * w).sum().backward(inputs=[w, y])
    assert x.grad is None and w.grad.tolist() == [2, 2] and y.grad.tolist() == [1, 1]


def test_retain_grad() -> None:
    x = leaf(2)
    y = x * 2
    y.retain_grad()
    assert y.retains_grad and not x.retains_grad
    (y * y).sum().backward()
    assert y.grad.tolist() == [4, 4] and x.grad.tolist() == [8, 8]
    z = x * 2
    z.retain_grad()
    z.mul_(3)
    z.sum().backward()
    assert z.grad.tolist() == [1, 1], "of what it is now"
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf Tensor"):
        assert (x * 1).grad is None


def test_grad() -> None:
    x, w, u = leaf(2), torch.tensor([3.0, 4.0], requires_grad=True), leaf(1)
    y = x * w
    first, second = torch.autograd.grad(y.sum(), [w, x], retain_graph=True)
    assert (first.tolist(), second.tolist()) == ([1, 1], [3, 4])
    assert x.grad is None and w.grad is None
    (of_y,) = torch.autograd.grad((y * y).sum(), y)
    assert of_y.tolist() == [6, 8]
    got = torch.autograd.grad(y, [x, u], torch.tensor([1.0, 2.0]), allow_unused=True)
    assert got[0].tolist() == [3, 8] and got[1] is None
    z = x * w
    assert torch.autograd.grad(z, [x, u], torch.ones(2), materialize_grads=True)[1].tolist() == [0]
    assert torch.autograd.grad(x, x, torch.ones(2))[0].tolist() == [1, 1]


def test_gradients_of_gradients_are_not_here() -> None:
    x = leaf(2)
    text = r"NumPy front end has no torch.autograd.{}\(create_graph=True\): run with --torch real"
    with pytest.raises(NotImplementedError, match=text.format("grad")):
        torch.autograd.grad((x**3).sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match=text.format("backward")):
        (x**3).sum().backward(create_graph=True)


# -- long graphs, and memory


@pytest.mark.slow
def test_a_chain_of_100000_nodes() -> None:
    """Neither following nor freeing it recurses."""
    x = leaf(1)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.backward()
    assert x.grad.tolist() == [1]
    del y


def test_what_a_pass_has_used_is_free() -> None:
    x = leaf(4)
    kept: list[weakref.ref[Tensor]] = []

    def step(y: Tensor) -> Tensor:
        w = torch.full((4,), 2.0)
        kept.append(weakref.ref(w))
        return y * w

    alive: list[list[bool]] = []
    between = step(x)
    between.register_hook(lambda g: alive.append([ref() is not None for ref in kept]))
    y = step(between)
    gc.disable()
    try:
        assert all(ref() is not None for ref in kept)
        y.sum().backward()
        assert alive == [[True, False]], "the second step's is free as soon as it has run"
        assert all(ref() is None for ref in kept)
    finally:
        gc.enable()


def test_graphs_are_no_circles() -> None:
    """They are freed without the garbage collector, also where a function keeps its own result."""
    x = leaf(4)
    gc.collect()
    gc.disable()
    try:
        y = x.exp().tanh().softmax(0)
        y[0] = 1
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


def tensors_alive() -> int:
    return sum(issubclass(type(o), Tensor) for o in gc.get_objects())


def test_training_leaves_nothing_behind() -> None:
    x = torch.ones(3, 4)
    weights = [leaf(4, 5), leaf(5, 2)]

    def step() -> None:
        whole = torch.zeros(3, 5)
        whole[:, 1:] = (x @ weights[0]).tanh()[:, 1:]
        loss = (whole @ weights[1]).softmax(1)[:, 0].log().mean()
        loss.backward()
        with torch.no_grad():
            for w in weights:
                w.sub_(w.grad, alpha=0.1)
                w.grad = None

    gc.collect()
    gc.disable()
    try:
        step()
        before = tensors_alive()
        for _ in range(5):
            step()
        assert tensors_alive() == before
    finally:
        gc.enable()


# -- copies


def test_deep_copies_and_pickles_of_leaves() -> None:
    x = leaf(2)
    (x * 3).sum().backward()
    y = copy.deepcopy(x)
    assert y.requires_grad and y.is_leaf and y.grad.tolist() == [3, 3]
    y.sum().backward()
    assert y.grad.tolist() == [4, 4] and x.grad.tolist() == [3, 3]
    z = pickle.loads(pickle.dumps(x))
    assert z.requires_grad and z.is_leaf and z.grad is None


def test_files_keep_what_requires_gradients() -> None:
    x = leaf(2)
    parameter = torch.nn.Parameter(torch.ones(3))
    constant = torch.nn.Parameter(torch.arange(2), requires_grad=False)
    file = io.BytesIO()
    torch.save({"leaf": x, "result": x * 2, "p": parameter, "c": constant, "plain": torch.ones(1)}, file)
    file.seek(0)
    read = torch.load(file)
    assert {name: t.requires_grad for name, t in read.items()} == {
        "leaf": True,
        "result": True,
        "p": True,
        "c": False,
        "plain": False,
    }
    assert all(t.is_leaf for t in read.values())
    assert [type(read[name]) for name in ("leaf", "p", "c")] == [Tensor, torch.nn.Parameter, torch.nn.Parameter]


def test_other_attributes_stay() -> None:
    x = leaf(2)
    x.tensor_model_parallel = True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert copy.deepcopy(x).tensor_model_parallel
