"""Modules that calculate their activations again, alone and in units of FullyShardedDataParallel."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu import nn
from torchemu.distributed.fsdp import FullyShardedDataParallel
from torchemu.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from torchemu.distributed.fsdp.wrap import ModuleWrapPolicy
from torchemu.frontends.numpy.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    ActivationWrapper,
    CheckpointImpl,
    CheckpointWrapper,
    apply_activation_checkpointing,
    checkpoint_wrapper,
    offload_wrapper,
)


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world("sips8")


class Counted(nn.Linear):
    """Counts its forward passes."""

    passes = 0

    def forward(self, x: torch.Tensor, *, scale: Any = 1) -> torch.Tensor:  # type: ignore[override]
        type(self).passes += 1
        return super().forward(x) * scale


def net() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(Counted(3, 4), nn.Tanh(), Counted(4, 2))


def gradients(model: Any, x: torch.Tensor) -> list[Any]:
    model(x).square().sum().backward()
    return [p.grad.tolist() for p in model.parameters()]


def inputs(rank: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(rank).standard_normal((5, 3)).astype(np.float32))


@pytest.mark.parametrize("impl", list(CheckpointImpl))
def test_gradients_are_those_of_the_module(impl: CheckpointImpl) -> None:
    wanted = gradients(net(), inputs().requires_grad_())
    model = net()
    apply_activation_checkpointing(
        model, functools.partial(checkpoint_wrapper, checkpoint_impl=impl), lambda m: isinstance(m, nn.Linear)
    )
    assert [type(part) for part in model] == [CheckpointWrapper, nn.Tanh, CheckpointWrapper]
    Counted.passes = 0
    assert gradients(model, inputs().requires_grad_()) == wanted
    assert Counted.passes == 4


@pytest.mark.parametrize("impl", list(CheckpointImpl))
def test_keywords(impl: CheckpointImpl) -> None:
    plain, scale = Counted(3, 4), torch.tensor(2.0, requires_grad=True)
    wrapped = checkpoint_wrapper(plain, impl)
    wrapped(inputs(), scale=scale).sum().backward()
    np.testing.assert_allclose(scale.grad.item(), plain(inputs()).sum().item(), rtol=1e-5)  # type: ignore[union-attr]


def test_names_and_states_say_nothing_of_it() -> None:
    plain, wrapped = net(), net()
    apply_activation_checkpointing(wrapped, check_fn=lambda m: isinstance(m, nn.Linear))
    assert list(wrapped.state_dict()) == list(plain.state_dict())
    assert str(wrapped.load_state_dict(plain.state_dict())) == "<All keys matched successfully>"
    assert [name for name, _ in wrapped[0].named_parameters()] == ["weight", "bias"]
    assert wrapped[0].in_features == 3
    assert checkpoint_wrapper(plain)[1] is plain[1]
    with pytest.raises(ValueError, match="Subclasses should implement"):
        ActivationWrapper(plain)(inputs())


def test_a_function_of_ones_own_and_offloading() -> None:
    asked: list[Any] = []

    def call(module: Any, *args: Any, mark: int) -> Any:
        asked.append(mark)
        return module(*args)

    checkpoint_wrapper(net(), checkpoint_fn=call, mark=7)(inputs())
    assert asked == [7]
    assert gradients(offload_wrapper(net()), inputs()) == gradients(net(), inputs())


@pytest.mark.parametrize("order", ["inside", "outside"])
@pytest.mark.parametrize("as_originals", [False, True])
def test_in_and_around_units(order: str, as_originals: bool) -> None:
    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        policy = ModuleWrapPolicy({Counted if order == "outside" else CheckpointWrapper})
        model = net()
        wrap = functools.partial(apply_activation_checkpointing, check_fn=lambda m: isinstance(m, Counted))
        if order == "inside":
            wrap(model)
        model = FullyShardedDataParallel(model, auto_wrap_policy=policy, use_orig_params=as_originals)
        if order == "outside":
            apply_activation_checkpointing(model, check_fn=lambda m: isinstance(m, FullyShardedDataParallel))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(2):
            optimizer.zero_grad()
            model(inputs(rank)).square().mean().backward()
            optimizer.step()
        states = FullyShardedDataParallel.optim_state_dict(model, optimizer)["state"]
        return {name: t.tolist() for name, t in model.state_dict().items()}, sorted(states)

    plain = net()
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        sum(plain(inputs(rank)).square().mean() / 3 for rank in range(3)).backward()  # type: ignore[union-attr]
        optimizer.step()
    for found, states in on_ranks(3, program):
        assert list(found) == list(plain.state_dict())
        assert states == sorted(found)
        for name, p in plain.named_parameters():
            np.testing.assert_allclose(found[name], p.tolist(), rtol=1e-4, atol=1e-6)


def test_a_gradient_of_one_rank_that_is_not_finite() -> None:
    """No rank makes the step, and all make the scale smaller."""

    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        model = FullyShardedDataParallel(nn.Linear(2, 2, bias=False))
        scaler = ShardedGradScaler(init_scale=4.0)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        scales = []
        for bad in (False, True):
            before = [p.tolist() for p in model.parameters()]
            optimizer.zero_grad()
            scaler.scale(model(torch.ones(1, 2)).sum()).backward()
            if bad and rank == 1:
                next(iter(model.parameters())).grad[0] = float("inf")
            scaler.step(optimizer)
            scaler.update()
            moved = before != [p.tolist() for p in model.parameters()]
            scales.append((moved, scaler.get_scale()))
        return scales

    assert on_ranks(2, program) == [[(True, 4.0), (False, 2.0)]] * 2
