"""torch.compile: what it returns behaves as what it was given, under the names that PyTorch gives its state."""

from __future__ import annotations

import copy

import pytest
from conftest import OpenWorld

import torchemu as torch
import torchemu._dynamo
import torchemu._inductor.config
from torchemu import nn
from torchemu._dynamo import OptimizedModule


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


def test_modules() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5))
    compiled = torch.compile(net, mode="max-autotune", fullgraph=True, dynamic=False)
    assert isinstance(compiled, OptimizedModule)
    assert isinstance(compiled, nn.Module)
    assert compiled._orig_mod is net
    assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert list(net.state_dict()) == ["0.weight", "0.bias"]
    assert compiled.eval() is compiled
    assert not net.training and not net[1].training and not compiled.training
    assert compiled(torch.ones(1, 2)).tolist() == net(torch.ones(1, 2)).tolist()
    net.kept = 3
    compiled.given = 4
    assert (compiled.kept, net.given, len(compiled), hasattr(compiled, "weight")) == (3, 4, 2, False)
    compiled.load_state_dict(compiled.state_dict())
    other = copy.deepcopy(compiled)
    assert other._orig_mod is not net
    assert other._orig_mod[0].weight.tolist() == net[0].weight.tolist()
    assert repr(compiled).startswith("OptimizedModule(\n  (_orig_mod): Sequential(\n    (0): Linear(in_features=2")


def test_gradients_go_to_the_module() -> None:
    net = nn.Linear(2, 1)
    compiled = torch.compile(net)
    optimizer = torch.optim.SGD(compiled.parameters(), lr=1.0)
    before = net.weight.tolist()
    compiled(torch.tensor([[1.0, 2.0]])).sum().backward()
    optimizer.step()
    assert net.weight.tolist()[0] == pytest.approx([before[0][0] - 1, before[0][1] - 2])


def test_what_is_left_as_it_is() -> None:
    net = nn.Linear(2, 1)
    assert torch.compile(net, disable=True) is net
    net.compile(mode="default")
    assert list(net.state_dict()) == ["weight", "bias"]

    @torch.compile(dynamic=True)
    def twice(x: float) -> float:
        return 2 * x

    @torch.compiler.disable
    def thrice(x: float) -> float:
        return 3 * x

    @torch.compiler.disable(recursive=False)
    def four_times(x: float) -> float:
        return 4 * x

    assert (twice(1), thrice(1), four_times(1), twice.__name__) == (2, 3, 4, "twice")
    torch._dynamo.config.suppress_errors = True  # type: ignore[attr-defined]
    torch._inductor.config.coordinate_descent_tuning = True  # type: ignore[attr-defined]
    torch._dynamo.reset()
    with torch.compiler.set_stance("force_eager"):
        assert not torch.compiler.is_compiling()
