"""Weights that are calculated from others: parametrizations, and the hooks that came before them."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from nn_cases import refused

import torchemu as torch
from torchemu import nn
from torchemu.nn.utils import parametrizations, parametrize

pytestmark = pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated:FutureWarning")


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


class Symmetric(nn.Module):
    calls = 0

    def forward(self, x: Any) -> Any:
        type(self).calls += 1
        return x.triu() + x.triu(1).T

    def right_inverse(self, x: Any) -> Any:
        return x.triu()


class Doubled(nn.Module):
    def forward(self, x: Any) -> Any:
        return 2 * x


def test_a_parameter_is_calculated() -> None:
    net = nn.Linear(3, 3)
    before = net.weight.detach().clone()
    assert parametrize.register_parametrization(net, "weight", Symmetric()) is net
    assert torch.equal(net.weight, before.triu() + before.triu(1).T) and isinstance(net, nn.Linear)
    assert type(net).__name__ == "ParametrizedLinear" and parametrize.type_before_parametrizations(net) is nn.Linear
    assert [n for n, _ in net.named_parameters()] == ["bias", "parametrizations.weight.original"]
    assert parametrize.is_parametrized(net, "weight") and not parametrize.is_parametrized(net, "bias")
    assert "(parametrizations): ModuleDict(" in repr(net)
    net(torch.ones(1, 3)).sum().backward()
    original = net.parametrizations.weight.original
    assert original.grad is not None and not original.grad.tril(-1).any() and original.grad.triu(1).any()
    net.weight = torch.arange(9.0).view(3, 3)
    assert net.weight.tolist() == [[0, 1, 2], [1, 4, 5], [2, 5, 8]]


def test_one_after_another_and_back() -> None:
    net = nn.Linear(2, 2)
    parametrize.register_parametrization(net, "weight", Symmetric())
    parametrize.register_parametrization(net, "weight", Doubled())
    original = net.parametrizations.weight.original.detach().clone()
    want = 2 * (original.triu() + original.triu(1).T)
    assert torch.equal(net.weight, want)
    twin = copy.deepcopy(net)
    twin.parametrizations.weight.original.data.fill_(1)
    assert torch.equal(net.weight, want) and twin.weight.tolist() == [[2, 2], [2, 2]]
    again = nn.Linear(2, 2)
    for module in (Symmetric(), Doubled()):
        parametrize.register_parametrization(again, "weight", module)
    again.load_state_dict(net.state_dict())
    assert torch.equal(again.weight, want)
    parametrize.remove_parametrizations(net, "weight")
    assert type(net) is nn.Linear and torch.equal(net.weight, want) and isinstance(net.weight, nn.Parameter)
    parametrize.remove_parametrizations(again, "weight", leave_parametrized=False)
    assert torch.equal(again.weight, original)
    with pytest.raises(RuntimeError, match=r"only supported through state_dict\(\)"):
        pickle.dumps(twin)


def test_calculated_once_in_a_block() -> None:
    net = nn.Linear(2, 2)
    parametrize.register_parametrization(net, "weight", Symmetric())
    before = Symmetric.calls
    with parametrize.cached():
        first = net.weight
        assert net.weight is first and Symmetric.calls == before + 1
    assert net.weight is not first and Symmetric.calls == before + 2


def test_buffers_and_transfer() -> None:
    net = nn.BatchNorm1d(2)
    parametrize.register_parametrization(net, "running_var", Doubled())
    assert net.running_var.tolist() == [2, 2] and "parametrizations.running_var.original" in dict(net.named_buffers())
    source, target = nn.Linear(2, 2), nn.Linear(2, 2)
    parametrize.register_parametrization(source, "weight", Symmetric())
    parametrize.transfer_parametrizations_and_params(source, target)
    assert torch.equal(target.weight, source.weight) and parametrize.is_parametrized(target, "weight")
    source.parametrizations.weight.original.data.zero_()
    assert target.weight.any()


def test_what_cannot_be() -> None:
    class Row(nn.Module):
        def forward(self, x: Any) -> Any:
            return x[0]

    net = nn.Linear(2, 2)
    kind, text = refused(lambda: parametrize.register_parametrization(net, "nothing", Row()))
    assert kind == "ValueError" and "does not have a parameter, a buffer, or a parametrized element" in text
    kind, text = refused(lambda: parametrize.register_parametrization(net, "weight", Row()))
    assert kind == "ValueError" and text.startswith(
        "Registering a parametrization may not change the shape of the tensor"
    )
    assert isinstance(net.weight, nn.Parameter) and type(net) is nn.Linear
    kind, text = refused(lambda: parametrize.remove_parametrizations(net, "weight"))
    assert kind == "ValueError" and text.endswith("does not have a parametrization on weight")
    parametrize.register_parametrization(net, "weight", Row(), unsafe=True)
    assert net.weight.shape == (2,)
    parametrize.register_parametrization(net, "bias", Doubled())
    with pytest.raises(RuntimeError, match="parametrization Doubled does not implement right_inverse"):
        net.bias = torch.ones(2)
    assert refused(lambda: parametrizations.orthogonal(net))[0] == "NotImplementedError"


# -- lengths and directions, and norms of 1


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1, None])
def test_weight_norm(old: bool, dim: int | None) -> None:
    net = nn.Conv1d(2, 3, 4)
    before, x = net.weight.detach().clone(), torch.randn(1, 2, 6)
    want = net(x)
    (nn.utils.weight_norm if old else parametrizations.weight_norm)(net, dim=dim)
    names = (
        ("weight_g", "weight_v") if old else ("parametrizations.weight.original0", "parametrizations.weight.original1")
    )
    g, v = (dict(net.named_parameters())[name] for name in names)
    shape = () if dim in (None, -1) else tuple(n if at == dim else 1 for at, n in enumerate(before.shape))
    assert tuple(g.shape) == shape and torch.equal(v, before) and torch.allclose(net(x), want)
    axes = tuple(a for a in range(3) if a != dim) if shape else None
    np.testing.assert_allclose(
        g.detach().numpy(), np.sqrt((before.numpy() ** 2).sum(axes, keepdims=bool(shape))), rtol=1e-5
    )
    with torch.no_grad():
        g.mul_(3)
        v.mul_(7)
    assert torch.allclose(net(x) - net.bias[:, None], 3 * (want - net.bias[:, None]), atol=1e-5)
    net(x).sum().backward()
    assert g.grad is not None and v.grad is not None and torch.allclose((v.grad * v).sum(), torch.zeros(()), atol=1e-3)
    (nn.utils.remove_weight_norm if old else lambda net: parametrize.remove_parametrizations(net, "weight"))(net)
    assert torch.allclose(net.weight, 3 * before) and {n for n, _ in net.named_parameters()} == {"weight", "bias"}


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(
    ("kind", "sizes"), [(nn.Linear, (4, 3)), (nn.Conv2d, (2, 3, 2)), (nn.ConvTranspose1d, (2, 3, 2))]
)
def test_spectral_norm(old: bool, kind: Any, sizes: tuple[int, ...]) -> None:
    net = kind(*sizes)
    weight = net.weight.detach().clone()
    first = weight.transpose(0, 1) if isinstance(net, nn.ConvTranspose1d) else weight
    largest = np.linalg.svd(first.reshape(first.shape[0], -1).numpy(), compute_uv=False)[0]
    (nn.utils.spectral_norm if old else parametrizations.spectral_norm)(net, n_power_iterations=60)
    x = torch.ones(2, 4) if isinstance(net, nn.Linear) else torch.ones(1, 2, *[5] * (weight.dim() - 2))
    net(x).sum().backward()
    np.testing.assert_allclose(net.weight.detach().numpy(), weight.numpy() / largest, rtol=1e-4, atol=1e-6)
    net.eval()
    assert torch.equal(net(x), net(x))
    names = {"weight_orig"} if old else {"parametrizations.weight.original"}
    assert {n for n, _ in net.named_parameters()} == names | {"bias"}
    assert all(p.grad is not None for p in net.parameters())
    (nn.utils.remove_spectral_norm if old else lambda net: parametrize.remove_parametrizations(net, "weight"))(net)
    np.testing.assert_allclose(net.weight.detach().numpy(), weight.numpy() / largest, rtol=1e-4, atol=1e-6)


def test_hooks_that_cannot_be() -> None:
    net = nn.Linear(2, 2)
    for remove, name in (
        (nn.utils.remove_weight_norm, "weight_norm"),
        (nn.utils.remove_spectral_norm, "spectral_norm"),
    ):
        text = f"{name} of 'weight' not found in Linear(in_features=2, out_features=2, bias=True)"
        assert refused(lambda remove=remove: remove(net)) == ("ValueError", text)
    nn.utils.weight_norm(net)
    assert refused(lambda: nn.utils.weight_norm(net))[0] == "RuntimeError"
    text = "Expected n_power_iterations to be positive, but got n_power_iterations=0"
    assert refused(lambda: nn.utils.spectral_norm(nn.Linear(1, 1), n_power_iterations=0)) == ("ValueError", text)
    assert nn.utils.skip_init(nn.Linear, 2, 3).weight.shape == (3, 2)
    with pytest.warns(FutureWarning, match="clip_grad_norm is now deprecated"):
        assert nn.utils.clip_grad_norm(net.parameters(), 1.0).item() == 0
