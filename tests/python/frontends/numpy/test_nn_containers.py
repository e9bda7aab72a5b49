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
            "Embedding(3, 4, padding_idx=0)": nn.Embedding(3, 4, padding_idx=-3),
            "LayerNorm((3,), eps=1e-05, elementwise_affine=True)": nn.LayerNorm(3),
            "LayerNorm((2, 3), eps=1e-05, elementwise_affine=False)": nn.LayerNorm((2, 3), elementwise_affine=False),
            "RMSNorm((3,), eps=None, elementwise_affine=True)": nn.RMSNorm(3),
            "Dropout(p=0.5, inplace=False)": nn.Dropout(),
            "GELU(approximate='none')": nn.GELU(),
            "GELU(approximate='tanh')": nn.GELU("tanh"),
            "SiLU()": nn.SiLU(),
            "ReLU(inplace=True)": nn.ReLU(True),
            "Softmax(dim=-1)": nn.Softmax(-1),
            "LogSoftmax(dim=1)": nn.LogSoftmax(1),
            "CrossEntropyLoss()": nn.CrossEntropyLoss(),
            "MSELoss()": nn.MSELoss(),
            "NLLLoss()": nn.NLLLoss(),
            "Identity()": nn.Identity(3, x=2),
            "Tanh()": nn.Tanh(),
            "Sigmoid()": nn.Sigmoid(),
            "Linear(in_features=2, out_features=3, bias=False)": nn.Linear(2, 3, bias=False),
            "Flatten(start_dim=1, end_dim=-1)": nn.Flatten(),
            "Sequential()": nn.Sequential(),
            "ModuleList()": nn.ModuleList(),
        }
        for text, module in wanted.items():
            assert repr(module) == text

    def test_nested(self) -> None:
        inner = nn.ModuleDict({"a": nn.Linear(2, 3)})
        m = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU(), inner])
        assert repr(m) == (
            "ModuleList(\n"
            "  (0-1): 2 x Linear(in_features=2, out_features=2, bias=True)\n"
            "  (2): ReLU()\n"
            "  (3): ModuleDict(\n"
            "    (a): Linear(in_features=2, out_features=3, bias=True)\n"
            "  )\n"
            ")"
        )

    def test_of_parameters(self) -> None:
        listed = nn.ParameterList([torch.ones(2), 3])
        assert repr(listed) == (
            "ParameterList(\n    (0): Parameter containing: [torch.float32 of size 2]\n    (1): Object of type: int\n)"
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
        assert list(m + nn.Sequential(b)) == [a, b, c, b]
        m[1] = nn.SiLU()
        assert isinstance(m[1], nn.SiLU)
        del m[0]
        assert list(m._modules) == ["0", "1"] and m.pop(-1) is c
        m.insert(0, a).extend([b])
        assert [type(each).__name__ for each in m] == ["Linear", "SiLU", "ReLU"]
        named = nn.Sequential(OrderedDict(first=a, then=b))
        assert named.first is a and list(named._modules) == ["first", "then"]
        assert "0" not in dir(m)

    def test_lists(self) -> None:
        a, b, c = nn.ReLU(), nn.SiLU(), nn.Tanh()
        m = nn.ModuleList([a])
        m += [b]
        m.insert(1, c)
        assert list(m) == [a, c, b] and list(m[::2]) == [a, b] and type(m[:1]) is nn.ModuleList
        assert m.pop(1) is c and list(m + [c]) == [a, b, c] and list(m._modules) == ["0", "1"]  # noqa: RUF005
        del m[:]
        assert len(m) == 0

    def test_dictionaries(self) -> None:
        a, b = nn.ReLU(), nn.SiLU()
        m = nn.ModuleDict({"a": a})
        m.update([("b", b)])
        assert (list(m), list(m.keys()), list(m.values()), m["b"], "a" in m, len(m)) == (
            ["a", "b"],
            ["a", "b"],
            [a, b],
            b,
            True,
            2,
        )
        assert m.pop("a") is a and dict(m.items()) == {"b": b}
        m.clear()
        assert len(m) == 0

    def test_parameters(self) -> None:
        listed = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(1))])
        listed += [torch.ones(3)]
        assert [p.shape[0] for p in listed] == [2, 1, 3] and len(list(listed.parameters())) == 3
        assert (
            isinstance(listed[-1], nn.Parameter)
            and len(listed[1:]) == 2
            and list(listed.state_dict()) == ["0", "1", "2"]
        )
        named = nn.ParameterDict({"x": torch.ones(2)})
        named["y"] = torch.zeros(1)
        assert [n for n, _ in named.named_parameters()] == ["x", "y"] and "x" in named and len(named) == 2
        del named["x"]
        assert list(named.keys()) == ["y"] and [v.item() for v in named.values()] == [0]

    def test_misuse(self) -> None:
        m = nn.Sequential(nn.ReLU())
        wanted: list[tuple[Callable[[], Any], str, str]] = [
            (lambda: m[1], "IndexError", "index 1 is out of range"),
            (lambda: m[-2], "IndexError", "index -2 is out of range"),
            (lambda: nn.Sequential(3), "TypeError", "int is not a Module subclass"),
            (lambda: m + [nn.ReLU()], "ValueError", "add operator supports only objects of Sequential class, but <class 'list'> is given."),  # noqa: E501, RUF005
            (lambda: nn.ModuleList().extend(3), "TypeError", "ModuleList.extend should be called with an iterable, but got int"),  # type: ignore[arg-type]  # noqa: E501
            (lambda: nn.ModuleDict([(1, 2, 3)]), "ValueError", "ModuleDict update sequence element #0 has length 3; 2 is required"),  # noqa: E501
            (lambda: nn.ModuleDict(3), "TypeError", "ModuleDict.update should be called with an iterable of key/value pairs, but got int"),  # noqa: E501
            (lambda: nn.ParameterList(torch.ones(2)), "TypeError", "ParameterList.extend should be called with an iterable, but got Tensor"),  # noqa: E501
            (lambda: nn.ParameterDict()["x"], "KeyError", "x"),
        ]  # fmt: skip
        for call, kind, text in wanted:
            assert refused(call) == (kind, text)
