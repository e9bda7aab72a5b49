"""Modules that hold others, and what modules look like as text."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
from conftest import OpenWorld, same
from nn_cases import refused

import torchemu as torch
from torchemu import nn


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


class TestTexts:
    def test_of_layers(self) -> None:
        wanted = {
            "Embedding(3, 4)": nn.Embedding(3, 4),
            "LayerNorm((3,), eps=1e-05, elementwise_affine=True)": nn.LayerNorm(3),
            "LayerNorm((2, 3), eps=1e-05, elementwise_affine=False)": nn.LayerNorm((2, 3), elementwise_affine=False),
            "Dropout(p=0.5, inplace=False)": nn.Dropout(),
            "GELU(approximate='none')": nn.GELU(),
            "GELU(approximate='tanh')": nn.GELU("tanh"),
            "ReLU(inplace=True)": nn.ReLU(True),
            "CrossEntropyLoss()": nn.CrossEntropyLoss(),
            "MSELoss()": nn.MSELoss(),
            "NLLLoss()": nn.NLLLoss(),
            "Tanh()": nn.Tanh(),
            "Linear(in_features=2, out_features=3, bias=False)": nn.Linear(2, 3, bias=False),
            "Sequential()": nn.Sequential(),
            "ModuleList()": nn.ModuleList(),
        }
        for text, module in wanted.items():
            assert repr(module) == text

    def test_nested(self) -> None:
        inner = nn.Sequential(nn.Linear(2, 3))
        m = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU(), inner])
        assert repr(m) == (
            "ModuleList(\n"
            "  (0-1): 2 x Linear(in_features=2, out_features=2, bias=True)\n"
            "  (2): ReLU()\n"
            "  (3): Sequential(\n"
            "    (0): Linear(in_features=2, out_features=3, bias=True)\n"
            "  )\n"
            ")"
        )

    def test_several_lines(self) -> None:
        class Described(nn.Module):
            def extra_repr(self) -> str:
                return "one\ntwo"

        m = Described()
        m.child = nn.ReLU()
        assert repr(m) == "Described(\n  one\n  two\n  (child): ReLU()\n)"


class TestContainers:
    def test_sequential(self) -> None:
        a, b, c = nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)
        m = nn.Sequential(a, b).append(c)
        x = torch.ones(4, 2)
        assert same(m(x).detach().numpy(), c(b(a(x))).detach().numpy())
        assert (len(m), m[0], m[-1], list(m)) == (3, a, c, [a, b, c])
        assert type(m[1:]) is nn.Sequential and list(m[1:]) == [b, c] and list(m[1:]._modules) == ["1", "2"]
        named = nn.Sequential(OrderedDict(first=a, then=b))
        assert named.first is a and list(named._modules) == ["first", "then"]

    def test_lists(self) -> None:
        a, b, c = nn.ReLU(), nn.GELU(), nn.Tanh()
        m = nn.ModuleList([a])
        m.extend([b]).append(c)
        assert list(m) == [a, b, c] and list(m[::2]) == [a, c] and type(m[:1]) is nn.ModuleList
        assert len(m) == 3 and list(m._modules) == ["0", "1", "2"]

    def test_misuse(self) -> None:
        m = nn.Sequential(nn.ReLU())
        wanted: list[tuple[Callable[[], Any], str, str]] = [
            (lambda: m[1], "IndexError", "index 1 is out of range"),
            (lambda: m[-2], "IndexError", "index -2 is out of range"),
            (lambda: nn.Sequential(3), "TypeError", "int is not a Module subclass"),
            (lambda: nn.ModuleList().extend(3), "TypeError", "ModuleList.extend should be called with an iterable, but got int"),  # type: ignore[arg-type]  # noqa: E501
        ]  # fmt: skip
        for call, kind, text in wanted:
            assert refused(call) == (kind, text)
