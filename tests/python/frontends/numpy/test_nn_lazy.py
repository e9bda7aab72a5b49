"""Modules that learn their sizes from the first input, and convolutions with other edges than zeros."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from nn_cases import refused
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
import torchemu.nn.functional as F  # noqa: N812 (its usual name)
from torchemu import nn
from torchemu.nn.parallel import DistributedDataParallel
from torchemu.nn.parameter import is_lazy


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


CASES: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = [
    ("Linear", (3,), {}, (2, 5)),
    ("Linear", (3,), {"bias": False, "dtype": "float64"}, (4,)),
    ("Conv1d", (4, 3), {"stride": 2}, (2, 6, 7)),
    ("Conv2d", (4, (3, 1), 1, 1), {"groups": 2}, (1, 6, 5, 5)),
    ("Conv3d", (4, 2), {"bias": False}, (3, 3, 3, 3)),
    ("ConvTranspose1d", (4, 3, 2), {"output_padding": 1}, (2, 6, 7)),
    ("ConvTranspose2d", (4, 3), {"groups": 2}, (1, 6, 5, 5)),
    ("ConvTranspose3d", (4, 2), {}, (1, 6, 2, 2, 2)),
    ("BatchNorm1d", (), {}, (4, 6)),
    ("BatchNorm2d", (1e-3, 0.2), {"affine": False}, (4, 6, 2, 2)),
    ("BatchNorm3d", (), {"track_running_stats": False}, (4, 6, 2, 2, 2)),
    ("InstanceNorm1d", (), {}, (4, 6, 3)),
    ("InstanceNorm2d", (), {"track_running_stats": False}, (6, 3, 3)),
]


@pytest.mark.parametrize(("kind", "args", "options", "shape"), CASES)
def test_sizes_come_from_the_first_input(
    kind: str, args: tuple[Any, ...], options: dict[str, Any], shape: tuple[int, ...]
) -> None:
    options = {key: getattr(torch, value) if key == "dtype" else value for key, value in options.items()}
    lazy, eager = getattr(nn, f"Lazy{kind}"), getattr(nn, kind)
    net = lazy(*args, **options)
    assert isinstance(net, eager) and repr(net).startswith(f"Lazy{kind}(")
    lazies = [m for m in [*net.parameters(), *net.buffers()] if is_lazy(m)]
    assert bool(lazies) == net.has_uninitialized_params() and not any(m._shape[0] for m in lazies)
    alone = not kind.startswith("Batch") and len(shape) == int(kind[-2] if kind != "Linear" else 9) + 1
    channels = shape[-1] if kind == "Linear" else shape[0] if alone else shape[1]
    dtype = options.get("dtype", torch.float32)
    x = torch.from_numpy(np.random.default_rng(1).standard_normal(shape)).to(dtype)
    torch.manual_seed(3)
    got = net(x)
    torch.manual_seed(3)
    sizes = {"affine": True, "track_running_stats": True, **options} if "Norm" in kind else options
    twin = eager(channels, *args, **sizes)
    assert type(net) is eager and repr(net) == repr(twin) and not net._forward_pre_hooks
    assert torch.equal(got, twin(x)) and got.dtype is dtype
    assert list(net.state_dict()) == list(twin.state_dict())
    for name, value in net.state_dict().items():
        assert torch.equal(value, twin.state_dict()[name])
    assert all(type(p) is nn.Parameter for p in net.parameters())


def test_training_learns() -> None:
    net = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)  # before the sizes are known
    x = torch.arange(12.0).view(4, 3) / 10
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = ((net(x) - x.sum(1, keepdim=True)) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_states() -> None:
    source = nn.Linear(5, 3)
    net = nn.LazyLinear(3)
    assert list(net.state_dict()) == ["weight", "bias"] and is_lazy(net.state_dict()["weight"])
    twin = copy.deepcopy(net)
    again = pickle.loads(pickle.dumps(net.weight))
    net.load_state_dict(source.state_dict())
    assert not net.has_uninitialized_params() and torch.equal(net(torch.eye(5)), source(torch.eye(5)))
    assert type(net) is nn.Linear and net.in_features == 5
    assert is_lazy(twin.weight) and is_lazy(again) and isinstance(again, nn.UninitializedParameter)
    made = nn.UninitializedParameter(requires_grad=False, dtype=torch.float64)
    made.materialize((2, 3))
    assert (
        type(made) is nn.Parameter and made.shape == (2, 3) and made.dtype is torch.float64 and not made.requires_grad
    )
    buffer = nn.UninitializedBuffer()
    buffer.materialize((2,))
    assert type(buffer) is torch.Tensor and buffer.shape == (2,)


def test_what_is_not_known_yet() -> None:
    weight = nn.LazyLinear(3).weight
    assert repr(weight) == "<UninitializedParameter>"
    kind, text = refused(lambda: weight.shape)
    assert kind == "RuntimeError" and text.startswith("Can't access the shape of an uninitialized parameter or buffer.")
    assert refused(lambda: weight.numel())[0] == "ValueError"
    text = "Expected 3D (unbatched) or 4D (batched) input to LazyConv2d, but got input of size: torch.Size([2, 2])"
    assert refused(lambda: nn.LazyConv2d(4, 3)(torch.ones(2, 2))) == ("RuntimeError", text)
    text = "in_channels must be divisible by groups"
    assert refused(lambda: nn.LazyConv1d(4, 3, groups=2)(torch.ones(1, 3, 5))) == ("ValueError", text)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_other_edges_of_convolutions(mode: str) -> None:
    x = torch.from_numpy(np.random.default_rng(2).standard_normal((2, 4, 6, 5))).float()
    net = nn.Conv2d(4, 2, 3, padding=(1, 2), groups=2, padding_mode=mode)
    want = F.conv2d(F.pad(x, (2, 2, 1, 1), mode), net.weight, net.bias, groups=2)
    assert torch.equal(net(x), want) and repr(net).endswith(f"padding=(1, 2), groups=2, padding_mode={mode})")
    same = nn.Conv1d(6, 2, 4, padding="same", padding_mode=mode)
    assert torch.equal(same(x[0]), F.conv1d(F.pad(x[0], (1, 2), mode), same.weight, same.bias))
    kind, text = refused(lambda: nn.ConvTranspose2d(1, 1, 1, padding_mode=mode))
    assert kind == "ValueError" and text == 'Only "zeros" padding mode is supported for ConvTranspose2d'


def test_running_means_of_instances() -> None:
    rng = np.random.default_rng(4)
    net = nn.InstanceNorm1d(2, momentum=0.25, affine=True, track_running_stats=True, dtype=torch.float64)
    mean, var = np.zeros(2), np.ones(2)
    for _ in range(3):
        x = rng.standard_normal((4, 2, 5)) + 3
        found = net(torch.from_numpy(x)).detach().numpy()
        mean = 0.75 * mean + 0.25 * x.mean(2).mean(0)
        var = 0.75 * var + 0.25 * x.var(2, ddof=1).mean(0)
        centered = x - x.mean(2, keepdims=True)
        np.testing.assert_allclose(found, centered / np.sqrt(x.var(2, keepdims=True) + 1e-5), rtol=1e-10)
    np.testing.assert_allclose(net.running_mean.numpy(), mean, rtol=1e-12)
    np.testing.assert_allclose(net.running_var.numpy(), var, rtol=1e-12)
    want = (x - mean[:, None]) / np.sqrt(var[:, None] + 1e-5)
    np.testing.assert_allclose(net.eval()(torch.from_numpy(x)).detach().numpy(), want, rtol=1e-10)
    assert refused(lambda: F.instance_norm(torch.ones(1, 2, 3), use_input_stats=False))[0] == "RuntimeError"


def test_lazy_modules_are_not_for_several_ranks() -> None:
    def program(rank: int) -> tuple[str, str]:
        dist.init_process_group("nccl", rank=rank, world_size=2)
        refusal = refused(lambda: DistributedDataParallel(nn.LazyLinear(1)))
        dist.destroy_process_group()
        return refusal

    for kind, text in on_ranks(2, program):
        assert kind == "RuntimeError" and text.startswith("Modules with uninitialized parameters can't be used with")
