"""torch.nn.Module: members, conversions and copies; and parameters."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from conftest import OpenWorld, same
from nn_cases import Pair, refused

import torchemu as torch
from torchemu import nn

pytestmark = pytest.mark.shows("PyTorch: modules and optimizers")


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


class TestAttributes:
    def test_become_members(self) -> None:
        m = nn.Module()
        m.p, m.m, m.x = nn.Parameter(torch.ones(2)), nn.ReLU(), torch.ones(3)
        m.register_buffer("b", torch.ones(1))
        assert (list(m._parameters), list(m._modules), list(m._buffers)) == (["p"], ["m"], ["b"])
        assert "x" in vars(m) and not {"p", "m", "b"} & set(vars(m))
        assert isinstance(m.p, nn.Parameter) and m.p is m._parameters["p"]
        assert {"p", "m", "b", "x"} <= set(dir(m))

    def test_a_member_may_become_one_of_another_kind(self) -> None:
        m = nn.Module()
        m.register_buffer("a", torch.ones(1), persistent=False)
        assert "a" not in vars(m) and m._non_persistent_buffers_set == {"a"}
        m.a = nn.ReLU()
        assert not m._buffers and not m._non_persistent_buffers_set and list(m._modules) == ["a"]
        m.a = nn.Parameter(torch.ones(1))
        assert not m._modules and list(m._parameters) == ["a"]
        m.a = None
        assert m.a is None and m._parameters == {"a": None} and list(m.parameters()) == []

    def test_a_buffer_stays_one(self) -> None:
        m = Pair()
        m.scratch = torch.zeros(3)
        m.count = torch.ones(2)
        assert list(m._buffers) == ["count", "scratch"] and "scratch" not in m.state_dict()

    def test_deleted(self) -> None:
        m = Pair()
        for name in ("first", "scratch", "count"):
            delattr(m, name)
            assert not hasattr(m, name)
        del m.second.weight
        assert list(m.parameters()) == [] and m._non_persistent_buffers_set == set()
        assert refused(lambda: delattr(m, "first")) == ("AttributeError", "'Pair' object has no attribute 'first'")

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (lambda: nn.Parameter(torch.ones(1)), "cannot assign parameters before Module.__init__() call"),
            (nn.ReLU, "cannot assign module before Module.__init__() call"),
        ],
    )
    def test_before_init(self, value: Callable[[], Any], text: str) -> None:
        assert refused(lambda: Pair(value())) == ("AttributeError", text)

    def test_a_tensor_before_init_is_an_attribute(self) -> None:
        assert Pair(torch.ones(1)).early.item() == 1

    def test_misuse(self) -> None:
        m = Pair()
        m.p = nn.Parameter(torch.ones(2))
        wanted = [
            (lambda: setattr(m, "p", 3), "TypeError", "cannot assign 'int' as parameter 'p' (torch.nn.Parameter or None expected)"),  # noqa: E501
            (lambda: setattr(m, "p", torch.ones(1)), "TypeError", "cannot assign 'torch.FloatTensor' as parameter 'p' (torch.nn.Parameter or None expected)"),  # noqa: E501
            (lambda: setattr(m, "first", 3), "TypeError", "cannot assign 'int' as child module 'first' (torch.nn.Module or None expected)"),  # noqa: E501
            (lambda: setattr(m, "count", 3), "TypeError", "cannot assign 'int' as buffer 'count' (torch.Tensor or None expected)"),  # noqa: E501
            (lambda: m.register_buffer(3, None), "TypeError", "buffer name should be a string. Got int"),  # type: ignore[arg-type]
            (lambda: m.register_buffer("a.b", None), "KeyError", 'buffer name can\'t contain "."'),
            (lambda: m.register_buffer("", None), "KeyError", 'buffer name can\'t be empty string ""'),
            (lambda: m.register_buffer("p", None), "KeyError", "attribute 'p' already exists"),
            (lambda: m.register_buffer("z", 3), "TypeError", "cannot assign 'int' object to buffer 'z' (torch Tensor or None required)"),  # type: ignore[arg-type]  # noqa: E501
            (lambda: m.register_parameter("z", torch.ones(3)), "TypeError", "cannot assign 'torch.FloatTensor' object to parameter 'z' (torch.nn.Parameter or None required)"),  # type: ignore[arg-type]  # noqa: E501
            (lambda: m.register_parameter("count", None), "KeyError", "attribute 'count' already exists"),
            (lambda: m.add_module("z", 3), "TypeError", "int is not a Module subclass"),  # type: ignore[arg-type]
            (lambda: m.add_module(3, nn.ReLU()), "TypeError", "module name should be a string. Got int"),  # type: ignore[arg-type]
            (lambda: m.add_module("p", nn.ReLU()), "KeyError", "attribute 'p' already exists"),
            (lambda: m.add_module("a.b", nn.ReLU()), "KeyError", 'module name can\'t contain ".", got: a.b'),
            (lambda: m.add_module("", nn.ReLU()), "KeyError", 'module name can\'t be empty string ""'),
            (lambda: m.nothing, "AttributeError", "'Pair' object has no attribute 'nothing'"),
            (lambda: nn.Module(3), "TypeError", "Module.__init__() takes 1 positional argument but 2 were given"),
            (lambda: nn.Module(a=3), "TypeError", "Module.__init__() got an unexpected keyword argument 'a'"),
            (lambda: nn.Module()(3), "NotImplementedError", 'Module [Module] is missing the required "forward" function'),  # noqa: E501
            (lambda: m.train(3), "ValueError", "training mode is expected to be boolean"),  # type: ignore[arg-type]
            (lambda: nn.Parameter(torch.ones(2, dtype=torch.int64)), "RuntimeError", "Only Tensors of floating point dtype can require gradients"),  # noqa: E501
            (lambda: nn.Parameter([1.0]), "AttributeError", "'list' object has no attribute 'detach'"),  # type: ignore[arg-type]
        ]  # fmt: skip
        for call, kind, text in wanted:
            assert refused(call) == (kind, text)

    def test_a_calculated_tensor_is_no_parameter(self) -> None:
        m, p = nn.Module(), nn.Parameter(torch.ones(2))
        calculated = p * 2
        calculated.__class__ = nn.Parameter
        kind, text = refused(lambda: m.register_parameter("p", calculated))  # type: ignore[arg-type]
        assert kind == "ValueError" and text.startswith("Cannot assign non-leaf Tensor to parameter 'p'. Model")


class TestAll:
    def test_each_once(self) -> None:
        shared = nn.Linear(1, 1)
        m = nn.ModuleList([shared, nn.Sequential(shared, nn.ReLU()), shared])
        m.tied = shared.weight
        assert [n for n, _ in m.named_modules()] == ["", "0", "1", "1.1"]
        assert [n for n, _ in m.named_modules(remove_duplicate=False)] == ["", "0", "1", "1.0", "1.1", "2"]
        assert len(list(m.modules())) == 4 and len(list(m.modules(remove_duplicate=False))) == 6
        assert [n for n, _ in m.named_children()] == ["0", "1"] and list(m.children()) == [shared, m[1]]
        assert [n for n, _ in m.named_parameters()] == ["tied", "0.bias"]
        every = ["tied", "0.weight", "0.bias", "1.0.weight", "1.0.bias", "2.weight", "2.bias"]
        assert [n for n, _ in m.named_parameters(remove_duplicate=False)] == every
        assert [n for n, _ in m.named_parameters("x", recurse=False)] == ["x.tied"]
        assert list(m.modules()) == [m, shared, m[1], m[1][1]]

    def test_none_is_none(self) -> None:
        m = nn.Module()
        m.add_module("nothing", None)
        m.register_parameter("p", None)
        m.register_buffer("b", None)
        assert [*m.children(), *m.parameters(), *m.buffers()] == [] and m.state_dict() == {}
        assert m.nothing is m.p is m.b is None
        assert repr(m) == "Module(\n  (nothing): None\n)"

    def test_buffers(self) -> None:
        m = nn.Sequential(Pair())
        assert [n for n, _ in m.named_buffers("m")] == ["m.0.count", "m.0.scratch"]
        assert list(m.buffers()) == [m[0].count, m[0].scratch]

    def test_apply_and_modes(self) -> None:
        m, seen = nn.Sequential(Pair(), nn.Dropout()), []
        assert m.apply(lambda each: seen.append(type(each).__name__)) is m
        assert seen == ["Linear", "Linear", "Pair", "Dropout", "Sequential"]
        assert all(each.training for each in m.modules())
        assert m.eval() is m and not any(each.training for each in m.modules())
        m[0].train()
        assert [each.training for each in m.modules()] == [False, True, True, True, False]

    def test_requires_grad(self) -> None:
        m = Pair()
        assert m.requires_grad_(False) is m and not any(p.requires_grad for p in m.parameters())
        m.first.requires_grad_()
        assert [p.requires_grad for p in m.parameters()] == [True, True, False]

    @pytest.mark.parametrize("to_none", [True, False])
    def test_zero_grad(self, to_none: bool) -> None:
        m = Pair()
        m(torch.ones(4, 2)).sum().backward()
        before = m.first.weight.grad
        assert before is not None and before.abs().sum().item() > 0
        m.zero_grad(to_none)
        for p in m.parameters():
            assert p.grad is None if to_none else p.grad is not None and not p.grad.any().item()
        assert to_none or m.first.weight.grad is before


class TestConversions:
    def test_parameters_stay_the_same_objects(self) -> None:
        m = Pair()
        m.register_buffer("number", torch.ones(1, dtype=torch.int64))
        before = list(m.parameters())
        for convert, kind in [
            (m.half, "float16"),
            (m.double, "float64"),
            (m.bfloat16, "bfloat16"),
            (m.float, "float32"),
            (lambda: m.to(torch.float64), "float64"),
            (lambda: m.to(torch.ones(1, dtype=torch.float16)), "float16"),
            (lambda: m.to("cpu", torch.float32), "float32"),
            (lambda: m.to(dtype=torch.float64, device="cpu"), "float64"),
        ]:
            assert convert() is m
            assert {str(p.dtype) for p in m.parameters()} == {f"torch.{kind}"} == {str(m.count.dtype)}
            assert m.number.dtype == torch.int64
        assert all(a is b for a, b in zip(before, m.parameters(), strict=True))
        assert all(p.requires_grad and p.is_leaf for p in m.parameters())

    def test_gradients_too(self) -> None:
        m = nn.Linear(1, 1)
        m(torch.ones(1, 1)).sum().backward()
        grad = m.weight.grad
        m.double()
        assert m.weight.grad is grad and grad is not None and grad.dtype == torch.float64 and grad.item() == 1

    def test_devices(self) -> None:
        m = Pair()
        where = m.first.weight
        assert m.cuda() is m and m.first.weight is where and {p.is_cuda for p in m.parameters()} == {True}
        assert m.count.is_cuda and m(torch.ones(1, 2, device="cuda")).is_cuda
        assert not m.cpu().first.weight.is_cuda
        assert m.to(0).first.weight.device.index == 0

    def test_misuse(self) -> None:
        m = Pair()
        assert refused(lambda: m.to(torch.int64)) == (
            "TypeError",
            "nn.Module.to only accepts floating point dtypes, but got desired dtype=torch.int64",
        )
        assert refused(lambda: m.to("cpu", 3, 4, 5, 6)) == (
            "TypeError",
            "to() takes from 0 to 4 positional arguments but 5 were given",
        )
        assert refused(lambda: m.to(0, "cpu"))[1].startswith("to() received an invalid combination of arguments")
        assert m.to() is m


class TestCopies:
    def test_deep(self) -> None:
        m = Pair()
        m.second.weight.requires_grad_(False)
        m.first.weight.tensor_model_parallel = True  # type: ignore[attr-defined]
        m.tied = m.first.weight
        other = copy.deepcopy(m)
        assert other.tied is other.first.weight is not m.first.weight
        assert same(other.first.weight.detach().numpy(), m.first.weight.detach().numpy())
        assert [p.requires_grad for p in other.parameters()] == [True, True, False]
        assert not hasattr(other.first.weight, "tensor_model_parallel"), "as in PyTorch"
        with torch.no_grad():
            other.first.weight.zero_()
        assert m.first.weight.any().item()

    def test_pickled(self) -> None:
        m = Pair()
        m.first.weight.tensor_model_parallel = True  # type: ignore[attr-defined]
        other = pickle.loads(pickle.dumps(m))
        assert repr(other) == repr(m) and list(other.state_dict()) == list(m.state_dict())
        weight = other.first.weight
        assert type(weight) is nn.Parameter and weight.requires_grad and weight.tensor_model_parallel
        assert same(weight.detach().numpy(), m.first.weight.detach().numpy())


class TestParameters:
    def test_memory_is_shared(self) -> None:
        data = torch.zeros(3)
        p = nn.Parameter(data)
        data[0] = 1
        assert p.tolist() == [1, 0, 0] and p.requires_grad and p.is_leaf and isinstance(p, torch.Tensor)
        assert type(p + 1) is type(p.data) is type(p.detach()) is torch.Tensor
        assert nn.Parameter().shape == (0,) and not nn.Parameter(data, requires_grad=False).requires_grad
        with torch.no_grad():
            assert nn.Parameter(data).requires_grad

    def test_text(self) -> None:
        assert repr(nn.Parameter(torch.zeros(2))) == "Parameter containing:\ntensor([0., 0.], requires_grad=True)"

    def test_data_may_be_replaced(self) -> None:
        p = nn.Parameter(torch.zeros(2))
        p.main_grad = torch.ones(2)  # type: ignore[attr-defined]
        p.data = torch.ones(3)
        assert p.shape == (3,) and p.is_leaf and p.requires_grad and p.main_grad.shape == (2,)  # type: ignore[attr-defined]
