"""DistributedDataParallel: training as on the joined batch, the same bits on all ranks, buckets, overlap, misuse."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from nn_cases import refused
from ranks import failures, on_ranks

import torchemu as torch
import torchemu.distributed as dist
import torchemu.nn.functional as F  # noqa: N812 (its usual name)
from torchemu import nn, optim
from torchemu.frontends.numpy.nn.parallel._buckets import assigned
from torchemu.nn.parallel import DistributedDataParallel as DDP  # noqa: N817 (its usual name)

EIGHT = "name: eight\nsystem: {sips: {count: 8}}\n"
BATCH = 3  # samples a rank
MIB = 1 << 20


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world(EIGHT)


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    layers = [nn.Linear(4, 6), nn.LayerNorm(6), nn.GELU(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 3)]
    return nn.Sequential(*layers).double()


def batch(step: int, ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """The samples of all ranks."""
    rng = np.random.default_rng([5, step])
    return rng.standard_normal((8 * BATCH, 4))[: ranks * BATCH], rng.integers(0, 3, 8 * BATCH)[: ranks * BATCH]


def trained(model: Any, samples: Callable[[int], tuple[np.ndarray, np.ndarray]], steps: int = 4) -> list[Any]:
    """The parameters after some steps of Adam."""
    optimizer = optim.Adam(model.parameters(), lr=0.05)
    for step in range(steps):
        x, y = (torch.tensor(a) for a in samples(step))
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return [np.array(p.detach()) for p in model.parameters()]


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
@pytest.mark.parametrize("options", [{}, {"gradient_as_bucket_view": True}, {"find_unused_parameters": True}, {"bucket_cap_mb": 1e-4}, {"static_graph": True}])  # fmt: skip # noqa: E501
def test_as_on_the_joined_batch(ranks: int, options: dict[str, Any]) -> None:
    def program(rank: int) -> list[Any]:
        dist.init_process_group("nccl")
        model = DDP(network(seed=rank), **options)  # rank 0's parameters count

        def own(step: int) -> tuple[np.ndarray, np.ndarray]:
            x, y = batch(step, ranks)
            return x[rank::ranks], y[rank::ranks]

        return trained(model, own)

    results = on_ranks(ranks, program)
    alone = trained(network(seed=0).cuda(), lambda step: batch(step, ranks))
    for rank, params in enumerate(results):
        for i, (p, want) in enumerate(zip(params, alone, strict=True)):
            assert p.tobytes() == results[0][i].tobytes(), f"rank {rank}, parameter {i}"
            np.testing.assert_allclose(p, want, rtol=1e-12, atol=1e-13, err_msg=f"parameter {i}")


def test_a_group_of_some_ranks() -> None:
    def program(rank: int) -> float:
        dist.init_process_group("nccl")
        groups = [dist.new_group([0, 2]), dist.new_group([1, 3])]
        model = DDP(nn.Linear(1, 1, bias=False), process_group=groups[rank % 2])
        model(torch.full((1, 1), float(rank))).sum().backward()
        return model.module.weight.grad.item()

    assert on_ranks(4, program) == [1, 2, 1, 2]


# -- what is in step


class Counting(nn.Module):
    """A parameter, a buffer that each forward pass counts up, and one of integers."""

    def __init__(self, start: int) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.full((2,), float(start)))
        self.register_buffer("count", torch.full((1,), float(start)))
        self.register_buffer("number", torch.full((3,), start), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        return (self.w * x).sum()


@pytest.mark.parametrize("broadcast_buffers", [True, False])
def test_parameters_and_buffers_begin_as_rank_0s(broadcast_buffers: bool) -> None:
    def program(rank: int) -> list[Any]:
        dist.init_process_group("nccl")
        model = DDP(Counting(rank + 1), broadcast_buffers=broadcast_buffers)
        begin = [model.module.w.tolist(), model.module.count.item(), model.module.number.tolist()]
        model.module.count.fill_(10 * rank)
        model(torch.ones(2)).backward()
        return [*begin, model.module.count.item()]

    counts = [1, 1, 1] if broadcast_buffers else [1, 11, 21]
    assert on_ranks(3, program) == [[[1, 1], 1, [1, 1, 1], count] for count in counts]


def test_without_a_beginning_in_step() -> None:
    def program(rank: int) -> list[float]:
        dist.init_process_group("nccl")
        return DDP(Counting(rank), init_sync=False).module.w.tolist()

    assert on_ranks(2, program) == [[0, 0], [1, 1]]


def test_ignored_parameters() -> None:
    def program(rank: int) -> list[float]:
        dist.init_process_group("nccl")
        module = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
        for p in module.parameters():
            nn.init.constant_(p, rank + 1.0)
        module._ddp_params_and_buffers_to_ignore = ["1.weight"]
        model = DDP(module)
        model(torch.ones(1, 1)).sum().backward()
        return [module[0].weight.item(), module[1].weight.item(), *[p.grad.item() for p in module.parameters()]]

    # the first weight is rank 0's; its gradient is the mean of the second weights, whose own is not averaged
    assert on_ranks(2, program) == [[1, 1, 1.5, 1], [1, 2, 1.5, 1]]


def test_sums_of_passes_that_are_not_in_step() -> None:
    def program(rank: int) -> list[float]:
        dist.init_process_group("nccl")
        model, seen = DDP(nn.Linear(1, 1, bias=False)), []

        def backward(value: float) -> None:
            model(torch.full((1, 1), value)).sum().backward()
            seen.append(model.module.weight.grad.item())

        with model.no_sync():
            assert not model.require_backward_grad_sync
            backward(rank + 1.0)
            backward(10.0)
        backward(100.0)
        backward(0.0)
        return seen

    # the second pass in step averages what it finds: the gradients that the first has left
    assert on_ranks(2, program) == [[1, 11, 111.5, 111.5], [2, 12, 111.5, 111.5]]


def test_several_forward_passes_for_one_backward() -> None:
    def program(rank: int) -> float:
        dist.init_process_group("nccl")
        model = DDP(nn.Linear(1, 1, bias=False))
        (model(torch.full((1, 1), rank + 1.0)) + model(torch.full((1, 1), 10.0))).sum().backward()
        with torch.no_grad():
            model(torch.ones(1, 1))
        return model.module.weight.grad.item()

    assert on_ranks(2, program) == [11.5, 11.5]


# -- parameters that are not used


class Branches(nn.Module):
    """Two layers, of which a pass may use one."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.never = (nn.Linear(1, 1, bias=False) for _ in range(3))

    def forward(self, x: torch.Tensor, which: str) -> Any:
        return {name: getattr(self, name)(x) for name in which}


def test_unused_parameters_are_found() -> None:
    def program(rank: int) -> list[Any]:
        dist.init_process_group("nccl")
        model = DDP(Branches(), find_unused_parameters=True)
        found = []
        for which in ("a", "ab" if rank == 0 else "a", "b"):
            model.zero_grad()
            sum(model(torch.full((1, 1), rank + 1.0), which).values()).backward()
            found.append([None if p.grad is None else p.grad.item() for p in model.parameters()])
        return found

    wanted = [[1.5, None, None], [1.5, 0.5, None], [None, 1.5, None]]
    assert on_ranks(2, program) == [wanted, wanted]


@dataclasses.dataclass
class Output:
    """What a forward pass returns."""

    losses: list[torch.Tensor]


def test_outputs_are_found_in_structures() -> None:
    class Structured(Branches):
        def forward(self, x: torch.Tensor, which: str) -> Any:
            return Output([{"loss": loss} for loss in super().forward(x, which).values()])  # type: ignore[misc]

    def program(rank: int) -> float:
        dist.init_process_group("nccl")
        model = DDP(Structured(), find_unused_parameters=True)
        model(torch.full((1, 1), rank + 1.0), "a").losses[0]["loss"].sum().backward()
        return model.module.a.weight.grad.item()

    assert on_ranks(2, program) == [1.5, 1.5]


def test_unused_parameters_that_are_not_looked_for() -> None:
    def program(rank: int) -> tuple[Any, tuple[str, str]]:
        dist.init_process_group("nccl")
        model = DDP(Branches())
        model(torch.ones(1, 1), "a")["a"].backward()
        gradients = [p.grad is None for p in model.parameters()]
        return gradients, refused(lambda: model(torch.ones(1, 1), "a"))

    for rank, (without, (kind, text)) in enumerate(on_ranks(2, program)):
        assert without == [False, True, True] and kind == "RuntimeError"
        assert text.startswith(
            "Expected to have finished reduction in the prior iteration before starting a new one. This error "
            "indicates that your module has parameters that were not used in producing loss. You can enable unused "
            "parameter detection by passing the keyword argument `find_unused_parameters=True` to "
            "`torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all `forward` function outputs"
        )
        assert f"\nParameter indices which did not receive grad for rank {rank}: 1 2\n" in text


# -- buckets


def test_assignment() -> None:
    """By hand: the limits are 8 and 16 bytes; the kinds do not mix."""
    half, single = torch.float16, torch.float32
    params = [
        torch.empty(n, dtype=kind, device="cpu")
        for n, kind in [(1, single), (2, half), (1, single), (1, half), (4, single), (9, half), (1, single)]
    ]
    assert assigned(params, range(7), (8, 16)) == [[0, 2], [4], [1, 3, 5], [6]]
    assert assigned(params, [6, 5, 4, 3, 2, 1, 0], (8, 16)) == [[5], [6, 4], [3, 1], [2, 0]]
    assert assigned(params, [], (8, 16)) == []


def test_buckets_follow_the_gradients_from_the_second_pass_on(world: torch.World) -> None:
    def program(rank: int) -> list[Any]:
        dist.init_process_group("nccl")
        model = DDP(nn.Sequential(*[nn.Linear(512, 512) for _ in range(5)]), bucket_cap_mb=2)
        found = []
        for _ in range(3):
            model(torch.ones(2, 512)).sum().backward()
            found.append([bucket.numbers for bucket in model.reducer.buckets])
        return found

    first = [[7, 8, 9], [3, 4, 5, 6], [0, 1, 2]]
    later = [[9, 8, 7, 6], [5, 4, 3, 2], [1, 0]]
    assert on_ranks(2, program) == [[first, later, later]] * 2
    sizes = [c["bytes"] // 4 for c in world.collectives() if c["collective"] == "all_reduce"]
    weight, bias = 512 * 512, 512
    assert sizes[: len(first)] == [weight + 2 * bias, 2 * weight + 2 * bias, 2 * weight + bias]
    assert sizes[len(first) :] == [2 * weight + 2 * bias, 2 * weight + 2 * bias, weight + bias] * 2


def test_the_first_bucket_is_small() -> None:
    def program(rank: int) -> list[Any]:
        dist.init_process_group("nccl")
        model = DDP(nn.Sequential(*[nn.Linear(512, 512) for _ in range(3)]))
        model(torch.ones(2, 512)).sum().backward()
        model(torch.ones(2, 512))
        return [bucket.numbers for bucket in model.reducer.buckets]

    assert on_ranks(1, program) == [[[5, 4], [3, 2, 1, 0]]]


SLOW = """
name: slow
system: {sips: {count: 2, link: {bandwidth: 10, latency: 500}}}
sip: {cube_mesh: {w: 1, h: 1}}
cube: {pe_layout: {pe_per_corner: 1, corners: [nw]}}
pe: {matrix: {f32_tflops: 0.25}, vector: {f32_tflops: 0.125}}
"""
"""Two SIPs that take longer to multiply than to send."""


def test_reductions_overlap_with_the_backward_pass(open_world: OpenWorld) -> None:
    """The pass takes less than it takes alone and the reductions one after the other."""
    slow = open_world(SLOW)

    def program(rank: int) -> list[float]:
        dist.init_process_group("nccl")
        model = DDP(nn.Sequential(*[nn.Linear(512, 512) for _ in range(6)]), bucket_cap_mb=1)

        def backward() -> float:
            loss = model(torch.ones(128, 512)).sum()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            loss.backward()
            end.record()
            end.synchronize()
            model.zero_grad()
            return begin.elapsed_time(end)

        with model.no_sync():
            alone = backward()
        return [alone, backward()]

    (alone, together), _ = on_ranks(2, program)
    reductions = [c for c in slow.collectives() if c["collective"] == "all_reduce"]
    taken = sum(c["end"] - c["start"] for c in reductions) / 1e9
    assert len(reductions) == 7 and 0.2 < taken < alone
    assert together < alone + 0.4 * taken


def test_views_of_buckets_cost_fewer_copies(world: torch.World) -> None:
    def program(rank: int, as_views: bool) -> Any:
        dist.init_process_group("nccl")
        model = DDP(nn.Linear(3, 2), gradient_as_bucket_view=as_views)
        model(torch.ones(1, 3)).sum().backward()
        weight, bias = model.module.weight.grad, model.module.bias.grad
        return weight._base is bias._base is not None and (bias.data_ptr() - weight.data_ptr()) // 4

    assert on_ranks(2, lambda rank: program(rank, True)) == [6, 6]
    assert on_ranks(2, lambda rank: program(rank, False)) == [False, False]


# -- as a module


def test_as_a_module() -> None:
    def program(rank: int) -> None:
        dist.init_process_group("nccl")
        model = DDP(nn.Linear(1, 1), device_ids=[torch.cuda.current_device()])
        assert list(model.state_dict()) == ["module.weight", "module.bias"]
        assert repr(model).startswith("DistributedDataParallel(\n  (module): Linear(in_features=1")
        assert not model.eval().module.training
        assert model(torch.ones(1, 1, device="cpu")).is_cuda, "arguments are moved to the device"
        model.load_state_dict(model.state_dict())

    on_ranks(2, program)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_are_in_step_too(copied: Callable[[Any], Any]) -> None:
    def program(rank: int) -> list[float]:
        dist.init_process_group("nccl")
        model = DDP(nn.Linear(1, 1, bias=False))
        other = copied(model)
        for each in (model, other):
            each(torch.full((1, 1), rank + 1.0)).sum().backward()
        assert other.module.weight is not model.module.weight
        return [each.module.weight.grad.item() for each in (model, other)]

    assert on_ranks(2, program) == [[1.5, 1.5]] * 2


def test_misuse() -> None:
    def program(rank: int) -> list[tuple[str, str]]:
        linear = nn.Linear(2, 2)
        outside = refused(lambda: DDP(linear))
        dist.init_process_group("nccl")
        return [
            outside,
            refused(lambda: DDP(nn.ReLU())),
            refused(lambda: DDP(nn.Linear(2, 2, device="cpu"), device_ids=[0])),
            refused(lambda: DDP(linear, device_ids=[0, 1])),
            refused(lambda: DDP(linear, no_such_option=1)),
            refused(lambda: DDP(linear, mixed_precision=object())),
        ]

    for results in on_ranks(2, program):
        kinds, texts = zip(*results, strict=True)
        assert kinds == (
            "ValueError",
            "RuntimeError",
            "ValueError",
            "ValueError",
            "TypeError",
            "NotImplementedError",
        )
        assert texts[0].startswith("Default process group has not been initialized")
        assert texts[1] == (
            "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
        )
        assert texts[2] == (
            "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device "  # noqa: E501
            "GPU modules or CPU modules, but got device_ids [0], output_device None, and module parameters "
            "{device(type='cpu')}."
        )


def test_other_modules_on_other_ranks() -> None:
    def other_count(rank: int) -> None:
        dist.init_process_group("nccl")
        DDP(nn.Sequential(*[nn.Linear(2, 2) for _ in range(rank + 1)]))

    errors = failures(2, other_count)
    assert [str(errors[rank]) for rank in (0, 1)] == [
        "DDP expects same model across all ranks, but Rank 0 has 2 params, while rank 1 has inconsistent 4 params.",
        "DDP expects same model across all ranks, but Rank 1 has 4 params, while rank 0 has inconsistent 2 params.",
    ]

    def other_shape(rank: int) -> None:
        dist.init_process_group("nccl")
        DDP(nn.Linear(2, 2 + rank))

    assert str(failures(2, other_shape)[1]) == (
        "[1]: params[0] in this process with sizes [3, 2] appears not to match sizes of the same param in process 0."
    )

    def other_dimensions(rank: int) -> None:
        dist.init_process_group("nccl")
        DDP(nn.ParameterList([torch.ones((2,) * (rank + 1))]))

    assert "params[0] in this process with sizes [2, 2]" in str(failures(2, other_dimensions)[1])


def test_a_parameter_that_is_ready_twice() -> None:
    def program(rank: int) -> tuple[str, str]:
        dist.init_process_group("nccl")
        output = DDP(Branches())(torch.ones(1, 1), "ab")
        output["a"].backward(retain_graph=True)
        return refused(lambda: output["a"].backward())

    for kind, text in on_ranks(2, program):
        assert kind == "RuntimeError" and text.startswith("Expected to mark a variable ready only once. This error is")
        assert text.endswith("Parameter at index 0 with name a.weight has been marked as ready twice.")
