"""torch.distributed.pipelining: a pipeline trains as the whole model does."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu import nn
from torchemu.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleLoopedBFS,
)
from torchemu.distributed.pipelining.microbatch import TensorChunkSpec, merge_chunks, split_args_kwargs_into_chunks
from torchemu.distributed.pipelining.schedules import get_schedule_class
from torchemu.frontends.numpy.distributed.pipelining import _orders

SINGLE = [ScheduleGPipe, Schedule1F1B]
MULTI = [ScheduleInterleaved1F1B, ScheduleLoopedBFS]


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world("sips8")


def layers(count: int) -> list[Any]:
    torch.manual_seed(2)
    return [nn.Sequential(nn.Linear(3, 3), nn.Tanh()) for _ in range(count)]


def data(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    numbers = np.random.default_rng(rows).standard_normal((2, rows, 3)).astype(np.float32)
    return torch.from_numpy(numbers[0]), torch.from_numpy(numbers[1])


def mean(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (output - target).square().mean()


def total(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (output - target).square().sum()


def whole(count: int, rows: int, loss_fn: Any) -> tuple[list[list[Any]], Any, float]:
    parts, (inputs, targets) = layers(count), data(rows)
    output = nn.Sequential(*parts)(inputs)
    loss = loss_fn(output, targets)
    loss.backward()
    return [[p.grad.tolist() for p in part.parameters()] for part in parts], output.tolist(), loss.item()


def piped(rank: int, make: Any, ranks: int, per_rank: int, count: int, rows: int, loss_fn: Any) -> Any:
    dist.init_process_group("nccl")
    stages = per_rank * ranks
    parts, (inputs, targets) = layers(stages), data(rows)
    mine = list(range(rank, stages, ranks))
    made = [PipelineStage(parts[i], i, stages, torch.device("cuda", rank)) for i in mine]
    schedule = make(made if make in MULTI else made[0], count, loss_fn=loss_fn, scale_grads=loss_fn is mean)
    losses: list[Any] = []
    given = (inputs,) if rank == 0 else ()
    last = {"target": targets, "losses": losses} if rank == ranks - 1 else {}
    output = schedule.step(*given, **last)
    grads = {i: [p.grad.tolist() for p in parts[i].parameters()] for i in mine}
    return grads, None if output is None else output.tolist(), [loss.item() for loss in losses]


def agrees(make: Any, ranks: int, per_rank: int, count: int, loss_fn: Any) -> None:
    rows = 2 * count
    wanted, output, loss = whole(ranks * per_rank, rows, loss_fn)
    found = on_ranks(ranks, piped, make, ranks, per_rank, count, rows, loss_fn)
    for grads, _, _ in found:
        for index, mine in grads.items():
            for one, other in zip(mine, wanted[index], strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    assert [result for _, result, _ in found[:-1]] == [None] * (ranks - 1)
    np.testing.assert_allclose(found[-1][1], output, rtol=1e-5)
    losses = found[-1][2]
    assert len(losses) == count
    np.testing.assert_allclose(np.mean(losses) if loss_fn is mean else np.sum(losses), loss, rtol=1e-5)


@pytest.mark.parametrize("make", SINGLE)
@pytest.mark.parametrize(("ranks", "count"), [(1, 1), (1, 3), (2, 2), (3, 5), (4, 8), (8, 8)])
@pytest.mark.parametrize("loss_fn", [mean, total])
def test_one_stage_a_rank(make: Any, ranks: int, count: int, loss_fn: Any) -> None:
    agrees(make, ranks, 1, count, loss_fn)


@pytest.mark.parametrize("make", MULTI)
@pytest.mark.parametrize(
    ("ranks", "per_rank", "count"), [(1, 3, 2), (2, 2, 2), (2, 2, 4), (2, 3, 8), (3, 2, 9), (4, 2, 3), (4, 3, 8)]
)
def test_several_stages_a_rank(make: Any, ranks: int, per_rank: int, count: int) -> None:
    agrees(make, ranks, per_rank, count, mean)


def order_of(name: str, ranks: int, per_rank: int, rank: int, count: int) -> list[tuple[str, int, int]]:
    stages = list(range(rank, ranks * per_rank, ranks))
    if name == "1F1B":
        return _orders.one_forward_one_backward(rank, ranks, count)
    if name == "interleaved":
        return _orders.interleaved(stages, ranks, rank, count)
    return _orders.forward_then_backward(stages, count)


@pytest.mark.parametrize("per_rank", [1, 2, 3])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["gpipe", "1F1B", "interleaved"])
def test_orders_can_be_followed(name: str, ranks: int, per_rank: int) -> None:
    """Each pass once, on the rank of its stage; and none waits for one that waits for it, with any number of
    microbatches that is a multiple of the ranks."""
    if name == "1F1B" and per_rank > 1:
        return
    for count in (ranks, 2 * ranks, 3 * ranks):
        stages = ranks * per_rank
        todo = [order_of(name, ranks, per_rank, rank, count) for rank in range(ranks)]
        wanted = {(kind, stage, mb) for kind in "FB" for stage in range(stages) for mb in range(count)}
        assert sorted(action for order in todo for action in order) == sorted(wanted)
        assert all(stage % ranks == rank for rank, order in enumerate(todo) for _, stage, _ in order)
        done: set[tuple[str, int, int]] = set()
        while any(todo):
            ready = [order for order in todo if order and needs(order[0], stages) <= done]
            assert ready, (count, [order[:1] for order in todo])
            for order in ready:
                done.add(order.pop(0))


def needs(action: tuple[str, int, int], stages: int) -> set[tuple[str, int, int]]:
    kind, stage, number = action
    if kind == "F":
        return {("F", stage - 1, number)} if stage else set()
    return {("F", stage, number), ("B", stage + 1, number)} if stage + 1 < stages else {("F", stage, number)}


def test_1f1b_keeps_few_microbatches() -> None:
    """Of a stage no more are under way than there are stages from it on."""
    for stages in range(1, 6):
        for stage in range(stages):
            under_way, most = 0, 0
            for kind, _, _ in _orders.one_forward_one_backward(stage, stages, 12):
                under_way += 1 if kind == "F" else -1
                most = max(most, under_way)
            assert (most, under_way) == (stages - stage, 0)


def test_evaluation_and_its_losses() -> None:
    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        part, (inputs, targets) = layers(2)[rank], data(6)
        stage = PipelineStage(part, rank, 2, torch.device("cuda", rank))
        schedule = Schedule1F1B(stage, 3, loss_fn=mean)
        losses: list[Any] = []
        output = schedule.eval(inputs) if rank == 0 else schedule.eval(target=targets, losses=losses)
        with torch.no_grad(), pytest.raises(RuntimeError, match="Please call eval"):
            schedule.step()
        forward_only = ScheduleGPipe(stage, 2)
        again = forward_only.step(inputs) if rank == 0 else forward_only.step()
        grads = [p.grad for p in part.parameters()]
        return [None if t is None else t.tolist() for t in (output, again)], len(losses), grads

    first, last = on_ranks(2, program)
    _, wanted, _ = whole(2, 6, mean)
    assert first == ([None, None], 0, [None, None])
    np.testing.assert_allclose(last[0], [wanted, wanted], rtol=1e-5)
    assert last[1:] == (3, [None, None])


class Twice(nn.Module):
    """Gives two tensors to the next stage, one of which has no gradient, and takes a keyword."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(2.0))

    def forward(self, x: torch.Tensor, places: Any = None, scale: Any = None) -> Any:
        if places is None:
            return x * self.weight, x.long()
        return x * self.weight * scale + places


def test_several_tensors_between_stages_and_keywords() -> None:
    """y = 4·x·scale + ⌊x⌋; of the sum of y the first weight's gradient is that of 2·x·scale."""

    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        module = Twice().to(f"cuda:{rank}")
        stage = PipelineStage(module, rank, 2, torch.device("cuda", rank))
        schedule = ScheduleGPipe(stage, 2, loss_fn=lambda y, target: y.sum(), scale_grads=False)
        if rank == 0:
            schedule.step(torch.tensor([1.5, 2.5, 3.5, 4.5]))
            return module.weight.grad.item()
        scale = torch.tensor([1.0, 2.0, 3.0, 4.0])
        return schedule.step(target=torch.zeros(4), scale=scale).tolist(), module.weight.grad.item()

    first, (output, second) = on_ranks(2, program)
    assert output == [4 * 1.5 + 1, 8 * 2.5 + 2, 12 * 3.5 + 3, 16 * 4.5 + 4]
    assert first == second == 2 * (1.5 + 2 * 2.5 + 3 * 3.5 + 4 * 4.5)


def test_parts_and_wholes() -> None:
    t = torch.arange(10.0).view(2, 5)
    specs = TensorChunkSpec.from_tuple((1, 0))
    args, kwargs = split_args_kwargs_into_chunks((t, t), {"k": [t, 3]}, 2, specs, {"k": TensorChunkSpec(1)})
    assert [tuple(a.shape) for pair in args for a in pair] == [(2, 3), (1, 5), (2, 2), (1, 5)]
    assert [tuple(k["k"][0].shape) for k in kwargs] == [(2, 3), (2, 2)] and kwargs[1]["k"][1] == 3
    assert merge_chunks([a for a, _ in args], TensorChunkSpec(1)).tolist() == t.tolist()
    assert merge_chunks([(b, torch.tensor(1.0)) for _, b in args])[0].tolist() == t.tolist()
    with pytest.raises(ValueError, match="1 entries for 2 arguments"):
        split_args_kwargs_into_chunks((t, t), None, 2, TensorChunkSpec.from_tuple((1,)))


class Pair(NamedTuple):
    rows: torch.Tensor
    columns: torch.Tensor


def test_parts_of_named_tuples_along_several_dimensions() -> None:
    pair = Pair(torch.arange(6.0).view(3, 2), torch.arange(12.0).view(4, 3))
    (first, *_), _ = split_args_kwargs_into_chunks((pair,), None, 3)
    assert [t.tolist() for t in first[0]] == [[[0.0, 1.0]], [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]]
    chunks = [Pair(pair.rows[i : i + 1], pair.columns[:, i : i + 1]) for i in range(3)]
    specs = TensorChunkSpec.from_tuple((0, 1))
    merged = merge_chunks(chunks, specs)
    assert type(merged) is Pair and [t.tolist() for t in merged] == [t.tolist() for t in pair]
    with pytest.raises(ValueError, match="has 2 entries for 1 outputs"):
        merge_chunks([pair.rows], specs)


def test_no_microbatch_is_empty() -> None:
    """The mean of one that is would be no number."""

    def program(rank: int) -> None:
        dist.init_process_group("gloo")
        schedule = ScheduleGPipe(PipelineStage(nn.Linear(3, 3), 0, 1, torch.device("cpu")), 4, loss_fn=mean)
        with pytest.raises(ValueError, match="Expecting 4 arg_mbs but got 3"):
            schedule.step(torch.ones(3, 3), target=torch.ones(3, 3))

    on_ranks(1, program)


def test_misuse() -> None:
    def program(rank: int) -> None:
        dist.init_process_group("nccl")
        layer, place = nn.Linear(1, 1), torch.device("cuda", rank)
        stage = PipelineStage(layer, rank, 4, place)
        for error, text, call in (
            (ValueError, "Stage index 3 is out of range of 3", lambda: PipelineStage(layer, 3, 3, place)),
            (
                RuntimeError,
                "size 2 cannot be larger than number of stages 1",
                lambda: PipelineStage(layer, 0, 1, place),
            ),
            (AssertionError, "input_args must also be", lambda: PipelineStage(layer, 0, 4, place, output_args=layer)),
            (ValueError, r"microbatches \(3\) must be greater than or equal", lambda: Schedule1F1B(stage, 3)),
            (
                ValueError,
                r"multiple of the number of rounds \(2\), but got 5",
                lambda: ScheduleInterleaved1F1B([stage], 5),
            ),
            (TypeError, "unexpected keyword argument 'x'", lambda: ScheduleLoopedBFS([stage], 5, x=1)),
            (ValueError, "Unknown schedule name 'zero'", lambda: get_schedule_class("zero")),
            (NotImplementedError, "ScheduleDualPipeV is not supported", lambda: get_schedule_class("dualpipev")),
        ):
            with pytest.raises(error, match=text):
                call()  # type: ignore[no-untyped-call]
        assert get_schedule_class("interleaved1f1b") is ScheduleInterleaved1F1B

    on_ranks(2, program)
