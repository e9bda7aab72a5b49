"""state_dict and load_state_dict of modules."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld, same
from nn_cases import Pair, refused

import torchemu as torch
from torchemu import nn


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


class TestStateDict:
    def test_saved(self) -> None:
        m = nn.Sequential(OrderedDict(a=Pair()))
        state = m.state_dict(prefix="x.")
        assert list(state) == ["x.a.count", "x.a.first.weight", "x.a.first.bias", "x.a.second.weight"]
        assert state._metadata == {k: {"version": 1} for k in ("x", "x.a", "x.a.first", "x.a.second")}
        weight = state["x.a.first.weight"]
        assert type(weight) is torch.Tensor and not weight.requires_grad
        assert weight.data_ptr() == m.a.first.weight.data_ptr()
        assert m.state_dict(keep_vars=True)["a.first.weight"] is m.a.first.weight
        into: OrderedDict[str, Any] = OrderedDict(before=1)
        assert m.state_dict(destination=into) is into and len(into) == 5

    def test_restored(self) -> None:
        torch.manual_seed(0)
        ours, theirs = Pair(), Pair()
        before = [p.data_ptr() for p in theirs.parameters()]
        keys = theirs.load_state_dict(ours.state_dict())
        assert repr(keys) == str(keys) == "<All keys matched successfully>" and keys.missing_keys == []
        for a, b in zip(ours.state_dict().values(), theirs.state_dict().values(), strict=True):
            assert same(a.numpy(), b.numpy())
        assert [p.data_ptr() for p in theirs.parameters()] == before, "elements are copied"

    def test_other_dtypes_are_converted(self) -> None:
        m = nn.Linear(1, 1)
        m.load_state_dict({"weight": torch.tensor([[3]]), "bias": torch.tensor([0.1], dtype=torch.float64)})
        assert m.weight.dtype == torch.float32 and m.weight.item() == 3 and m.bias.item() == np.float32(0.1)

    def test_assigned(self) -> None:
        m = Pair()
        m.second.weight.requires_grad_(False)
        state = {k: v.double() for k, v in m.state_dict().items()}
        m.load_state_dict(state, assign=True)
        assert m.first.weight.dtype == torch.float64 and isinstance(m.first.weight, nn.Parameter)
        assert m.count is state["count"] and m.first.weight.data_ptr() == state["first.weight"].data_ptr()
        assert [p.requires_grad for p in m.parameters()] == [True, True, False]

    def test_strict(self) -> None:
        m = nn.Module()
        m.p, m.l = nn.Parameter(torch.ones(2)), nn.Linear(2, 2)
        m.register_buffer("b", torch.ones(2))
        state = {"p": torch.ones(3), "l.weight": 3, "q": torch.ones(1), "l.foo.x": torch.ones(1)}
        assert refused(lambda: m.load_state_dict(state)) == (
            "RuntimeError",
            'Error(s) in loading state_dict for Module:\n\tMissing key(s) in state_dict: "b", "l.bias". \n\t'
            'Unexpected key(s) in state_dict: "q", "l.foo.x". \n\t'
            "size mismatch for p: copying a param with shape torch.Size([3]) from checkpoint, the shape in current "
            'model is torch.Size([2]).\n\tWhile copying the parameter named "l.weight", expected torch.Tensor or '
            "Tensor-like object from checkpoint but received <class 'int'>",
        )
        assert refused(lambda: m.load_state_dict({"p": torch.ones(3)}, strict=False))[0] == "RuntimeError"
        keys = m.load_state_dict({"p": torch.zeros(2), "q": 1}, strict=False)
        assert keys == (["b", "l.weight", "l.bias"], ["q"]) and m.p.tolist() == [0, 0]
        assert repr(keys).startswith("_IncompatibleKeys(missing_keys=['b', ")
        assert refused(lambda: m.load_state_dict(3)) == (  # type: ignore[arg-type]
            "TypeError",
            "Expected state_dict to be dict-like, got <class 'int'>.",
        )

    def test_extra_state(self) -> None:
        class Counting(nn.Linear):
            calls = 0

            def get_extra_state(self) -> int:
                return self.calls

            def set_extra_state(self, state: int) -> None:
                self.calls = state

        ours, theirs = nn.Sequential(Counting(1, 1)), nn.Sequential(Counting(1, 1))
        ours[0].calls = 7
        state = ours.state_dict()
        assert list(state) == ["0.weight", "0.bias", "0._extra_state"]
        theirs.load_state_dict(state)
        assert theirs[0].calls == 7
        with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "0._extra_state"'):
            nn.Sequential(nn.Linear(1, 1)).load_state_dict(state)
        del state["0._extra_state"]
        with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "0._extra_state"'):
            theirs.load_state_dict(state)

    def test_an_overridden_load(self) -> None:
        class Renamed(nn.Linear):
            def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
                state_dict[prefix + "weight"] = state_dict.pop(prefix + "old")
                super()._load_from_state_dict(state_dict, prefix, *rest)

        m = nn.Sequential(Renamed(1, 1, bias=False))
        given = {"0.old": torch.tensor([[5.0]])}
        m.load_state_dict(given)
        assert m[0].weight.item() == 5 and list(given) == ["0.old"]

    def test_of_a_file(self, tmp_path: Any) -> None:
        ours, theirs = Pair(), Pair()
        torch.save(ours.state_dict(), tmp_path / "state.pt")
        theirs.load_state_dict(torch.load(tmp_path / "state.pt"))
        assert same(theirs.first.weight.detach().numpy(), ours.first.weight.detach().numpy())
