"""Whole programs whose ranks drift apart, so that most of what one issues is put off: the same bits as in step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
from torchemu import nn
from torchemu.frontends.numpy._tensor.deferral import Deferrals
from torchemu.runtime.waiting import reach
from torchemu.tp import mappings

dist = torch.distributed
RANKS = 4
Pause = Callable[[], None]


def in_step() -> None:
    pass


def drifting(rank: int) -> Pause:
    """Lets another time pass on each rank, and at each call."""
    source = np.random.default_rng(rank)
    return lambda: reach(int(source.integers(1, 5_000_000_000)))


def bits(tensors: Any) -> list[bytes]:
    return [t.detach().numpy().tobytes() for t in tensors]


def data_parallel(rank: int, pause: Pause) -> list[bytes]:
    """Averaged gradients, dropout, Adam, and the loss of each step averaged for all."""
    torch.manual_seed(rank)
    net = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Dropout(0.3), nn.LayerNorm(16), nn.Linear(16, 3))
    model = net
    for p in model.parameters():
        dist.broadcast(p.detach(), 0)
    adam = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = torch.zeros(5)
    for step in range(5):
        pause()
        x, y = torch.randn(8, 6), torch.randint(0, 3, (8,))
        adam.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        pause()
        for p in model.parameters():
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        adam.step()
        losses[step] = loss.detach()
    dist.all_reduce(losses, op=dist.ReduceOp.AVG)
    return bits([losses, *model.parameters()])


def sharded(rank: int, pause: Pause) -> list[bytes]:
    """Parameters are gathered for each use, and their gradients scattered."""
    torch.manual_seed(7)
    shard = torch.randn(4, 8).chunk(RANKS)[rank].clone()
    momentum = torch.zeros_like(shard)
    for _ in range(3):
        pause()
        whole = torch.empty(4, 8)
        gathering = dist.all_gather_into_tensor(whole, shard, async_op=True)
        x = torch.full((2, 4), rank + 1.0) / 8
        gathering.wait()
        whole.requires_grad_()
        (x @ whole).tanh().square().sum().backward()
        part = torch.empty_like(shard)
        pause()
        dist.reduce_scatter_tensor(part, whole.grad)
        momentum.mul_(0.9).add_(part)
        shard -= 0.1 * momentum
    return bits([shard, momentum])


def pipeline(rank: int, pause: Pause) -> list[bytes]:
    """Activations go to the next rank and gradients back, two micro-batches at a time, on tensors of a ring's sums."""
    torch.manual_seed(rank)
    weight = torch.randn(4, 4, requires_grad=True)
    dist.all_reduce(weight.data)
    for micro in range(4):
        pause()
        x = torch.full((2, 4), micro / 4, requires_grad=True)
        if rank > 0:
            given = torch.empty(2, 4)
            dist.irecv(given, rank - 1).wait()
            x = given.requires_grad_()
        y = (x @ weight).sigmoid()
        gradient = torch.ones(2, 4)
        if rank < RANKS - 1:
            sent = dist.isend(y.detach(), rank + 1)
            pause()
            sent.wait()
            dist.irecv(gradient, rank + 1).wait()
        y.backward(gradient)
        if rank > 0:
            dist.isend(x.grad, rank - 1).wait()
    total = weight.grad.clone()
    dist.all_reduce(total)
    return bits([weight.grad, total])


def experts(rank: int, pause: Pause) -> list[bytes]:
    """Tokens are exchanged, multiplied by their expert, and brought back, in an order that is drawn."""
    torch.manual_seed(rank)
    tokens = torch.randn(RANKS * 2, 3)
    scale = torch.tensor([rank + 1.0])
    for _ in range(3):
        pause()
        order = torch.randperm(RANKS * 2)
        there, back = torch.empty_like(tokens), torch.empty_like(tokens)
        dist.all_to_all_single(there, tokens[order])
        there = there * scale + there.mean(0)
        pause()
        dist.all_to_all_single(back, there)
        tokens = torch.zeros_like(tokens).index_copy_(0, order, back)
        dist.all_reduce(scale, op=dist.ReduceOp.MAX)
        scale = torch.where(scale > 3, scale / 2, scale * (rank + 1))
    return bits([tokens, scale])


def tensor_parallel(rank: int, pause: Pause) -> list[bytes]:
    """Megatron's mappings around a sharded pair of layers, in bfloat16."""
    torch.tp.parallel_state.initialize_model_parallel(RANKS)
    torch.manual_seed(3)
    first, second = torch.randn(8, 16).chunk(RANKS, 1)[rank], torch.randn(16, 8).chunk(RANKS, 0)[rank]
    first, second = (w.bfloat16().contiguous().requires_grad_() for w in (first, second))
    x = torch.randn(4, 8).bfloat16().requires_grad_()
    for _ in range(2):
        pause()
        h = nn.functional.gelu(mappings.copy_to_tensor_model_parallel_region(x) @ first)
        y = mappings.reduce_from_tensor_model_parallel_region(h @ second)
        pause()
        y.float().square().mean().backward()
    return bits([x.grad.float(), first.grad.float(), second.grad.float()])


@pytest.mark.parametrize("schedule", [("fifo", 0), ("random", 6), ("pct", 2)], ids=str)
@pytest.mark.parametrize("program", [data_parallel, sharded, pipeline, experts, tensor_parallel])
def test_ranks_that_drift_apart_get_the_same_bits(
    program: Callable[[int, Pause], list[bytes]],
    schedule: tuple[str, int],
    open_world: OpenWorld,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    added = []
    add = Deferrals.add
    monkeypatch.setattr(Deferrals, "add", lambda self, name, *args: added.append(name) or add(self, name, *args))

    def ranks(drift: bool) -> list[Any]:
        world = open_world()
        world.schedule, world.seed = schedule

        def rank(r: int) -> list[bytes]:
            dist.init_process_group("nccl")
            return program(r, drifting(r) if drift else in_step)

        return on_ranks(RANKS, rank)

    apart = ranks(drift=True)
    assert len(added) > 10, "hardly anything was put off"
    assert apart == ranks(drift=False)
