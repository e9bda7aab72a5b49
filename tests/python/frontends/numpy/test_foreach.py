"""torch._foreach_…: what they do with lists is what methods do with each tensor."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import OpenWorld
from nn_cases import refused

import torchemu as torch
from torchemu.frontends.numpy._tensor import foreach


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


def first() -> list[torch.Tensor]:
    return [torch.tensor([0.25, 0.5]), torch.tensor([[0.75]]), torch.zeros(0)]


def second() -> list[torch.Tensor]:
    return [torch.tensor([2.0, 3.0]), torch.tensor([[5.0]]), torch.zeros(0)]


OPERANDS: dict[str, Any] = {
    **dict.fromkeys(("add", "sub", "mul", "div", "clamp_min", "clamp_max", "pow"), (second, 3.0, [1.0, 2.0, 4.0])),
    "lerp": (0.25,),
}


@pytest.mark.parametrize("name", sorted(n.removeprefix("_foreach_") for n in foreach.functions()))
def test_each(name: str) -> None:
    base = name.rstrip("_")
    if base in ("norm", "zero", "copy", "maximum", "minimum", "addcmul", "addcdiv"):
        return  # below
    function = getattr(torch, f"_foreach_{name}")
    for operand in OPERANDS.get(base, (None,)):
        given = operand() if callable(operand) else operand
        lists = (first(), *([second(), given] if base == "lerp" else [] if given is None else [given]))
        rows = zip(*[x if isinstance(x, list) else [x] * 3 for x in lists], strict=True)
        wanted = [getattr(row[0].clone(), base)(*row[1:]) for row in rows]
        found = function(*lists)
        assert found is lists[0] if name.endswith("_") else isinstance(found, tuple)
        assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_others() -> None:
    assert [t.tolist() for t in torch._foreach_norm(second(), 1)] == [5, 5, 0]
    assert torch._foreach_norm(second())[0].item() == pytest.approx(13**0.5)
    for found in (
        torch._foreach_addcmul(first(), second(), second(), value=2),
        torch._foreach_addcmul(first(), second(), second(), [2.0, 2.0, 2.0]),
    ):
        assert [t.tolist() for t in found] == [[8.25, 18.5], [[50.75]], []]
    target = first()
    assert torch._foreach_addcdiv_(target, second(), second(), scalars=[1.0, 2.0, 3.0]) is target
    assert [t.tolist() for t in target] == [[1.25, 1.5], [[2.75]], []]
    assert [t.tolist() for t in torch._foreach_maximum(first(), 0.375)] == [[0.375, 0.5], [[0.75]], []]
    assert torch.equal(torch._foreach_minimum(first(), second())[1], first()[1])
    assert torch.equal(torch._foreach_add(first(), second(), alpha=2)[0], torch.tensor([4.25, 6.5]))
    torch._foreach_copy_(target, second())
    assert all(torch.equal(a, b) for a, b in zip(target, second(), strict=True))
    torch._foreach_zero_(target)
    assert not target[0].any() and target[0].shape == (2,)


def test_refusals_and_gradients() -> None:
    text = "Tensor lists must have the same number of tensors, got 3 and 2"
    assert refused(lambda: torch._foreach_add(first(), second()[:2])) == ("RuntimeError", text)
    assert refused(lambda: torch._foreach_add([], 1.0))[1] == "Tensor list must have at least one tensor."
    with pytest.raises(AttributeError):
        torch._foreach_no_such  # noqa: B018
    x = torch.ones(2, requires_grad=True)
    torch._foreach_mul([x, x], [2.0, 3.0])[1].sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3, 3]
    with torch.autograd.profiler.record_function("part"):
        pass
