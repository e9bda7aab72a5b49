"""Functional collectives: their results against NumPy, when they make a stream wait, and how groups are named."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR, failures, on_ranks

import torchemu as torch
import torchemu.distributed as dist
import torchemu.distributed._functional_collectives as funcol
from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.distributed._functional_collectives import AsyncCollectiveTensor
from torchemu.errors import DeadlockError

pytestmark = pytest.mark.shows("PyTorch: functional collectives")

WORLD_SIZES = [1, 2, 3, 8, 64]
SHAPE = (4, 6, 2)


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world(SIXTY_FOUR)


def given(rank: int, *shape: int) -> np.ndarray:
    """What a rank gives: small integers, so that every order of additions has the same sum."""
    return np.random.default_rng(rank).integers(-50, 50, shape).astype(np.float32)


def on_group(world_size: int, fn: Callable[[int], torch.Tensor]) -> list[np.ndarray]:
    """The arrays of the tensors that fn(rank) returns on each rank of a world with a default group."""

    def program(rank: int) -> np.ndarray:
        dist.init_process_group("nccl")
        output = fn(rank)
        assert isinstance(output, torch.Tensor)
        return np.array(output.tolist(), dtype=np.float32).reshape(output.shape)

    return on_ranks(world_size, program)


def check(outputs: list[np.ndarray], expected: list[np.ndarray]) -> None:
    """Compares the ranks' results bit for bit."""
    for rank, (output, right) in enumerate(zip(outputs, expected, strict=True)):
        assert output.shape == right.shape, f"rank {rank}"
        assert output.tobytes() == right.astype(np.float32).tobytes(), f"rank {rank}"


@pytest.mark.parametrize("world_size", WORLD_SIZES)
class TestAgainstNumPy:
    @pytest.mark.parametrize(
        ("op", "reduce"), [("sum", np.add.reduce), ("max", np.maximum.reduce), ("MIN", np.minimum.reduce)]
    )
    def test_all_reduce(self, world_size: int, op: str, reduce: Callable[[Any], np.ndarray]) -> None:
        def call(rank: int) -> torch.Tensor:
            t = torch.tensor(given(rank, *SHAPE))
            output = funcol.all_reduce(t, op, dist.group.WORLD)
            assert t.tolist() == given(rank, *SHAPE).tolist(), "the argument stays as it is"
            return output

        expected = reduce([given(r, *SHAPE) for r in range(world_size)])
        check(on_group(world_size, call), [expected] * world_size)

    def test_broadcast(self, world_size: int) -> None:
        src = world_size - 1
        outputs = on_group(world_size, lambda r: funcol.broadcast(torch.tensor(given(r, 5)), src, dist.group.WORLD))
        check(outputs, [given(src, 5)] * world_size)

    @pytest.mark.parametrize("dim", [0, 1, 2, -1])
    def test_all_gather_tensor(self, world_size: int, dim: int) -> None:
        def call(rank: int) -> torch.Tensor:
            return funcol.all_gather_tensor(torch.tensor(given(rank, *SHAPE)), dim, dist.group.WORLD)

        expected = np.concatenate([given(r, *SHAPE) for r in range(world_size)], axis=dim)
        check(on_group(world_size, call), [expected] * world_size)

    def test_all_gather_of_numbers(self, world_size: int) -> None:
        outputs = on_group(world_size, lambda r: funcol.all_gather_tensor(torch.tensor(1.5 * r), 0, dist.group.WORLD))
        check(outputs, [1.5 * np.arange(world_size)] * world_size)

    @pytest.mark.parametrize("dim", [0, 1])
    def test_reduce_scatter_tensor(self, world_size: int, dim: int) -> None:
        shape = [4, 6]
        shape[dim] *= world_size

        def call(rank: int) -> torch.Tensor:
            return funcol.reduce_scatter_tensor(torch.tensor(given(rank, *shape)), "sum", dim, dist.group.WORLD)

        total = np.add.reduce([given(r, *shape) for r in range(world_size)])
        check(on_group(world_size, call), np.split(total, world_size, axis=dim))

    def test_all_to_all_of_equal_parts(self, world_size: int) -> None:
        rows = 2 * world_size

        def call(rank: int) -> torch.Tensor:
            return funcol.all_to_all_single(torch.tensor(given(rank, rows, 3)), None, None, dist.group.WORLD)

        parts = [np.split(given(r, rows, 3), world_size) for r in range(world_size)]
        check(on_group(world_size, call), [np.concatenate([p[r] for p in parts]) for r in range(world_size)])

    def test_all_to_all_of_unequal_parts(self, world_size: int) -> None:
        def sizes(rank: int) -> list[int]:
            return [(rank + other) % 3 for other in range(world_size)]

        def call(rank: int) -> torch.Tensor:
            t = torch.tensor(given(rank, sum(sizes(rank)), 2))
            return funcol.all_to_all_single(t, sizes(rank), sizes(rank), dist.group.WORLD)

        parts = [np.split(given(r, sum(sizes(r)), 2), np.cumsum(sizes(r))[:-1]) for r in range(world_size)]
        check(on_group(world_size, call), [np.concatenate([p[r] for p in parts]) for r in range(world_size)])

    def test_permute_tensor(self, world_size: int) -> None:
        src_dst = [(3 * r + 1) % world_size if math.gcd(3, world_size) == 1 else world_size - 1 - r for r in range(world_size)]  # noqa: E501  # fmt: skip

        def call(rank: int) -> torch.Tensor:
            return funcol.permute_tensor(torch.tensor(given(rank, 2, 3)), src_dst, dist.group.WORLD)

        check(on_group(world_size, call), [given(src_dst.index(r), 2, 3) for r in range(world_size)])

    def test_several_in_one_go(self, world_size: int) -> None:
        shapes = [(world_size, 2), (3 * world_size,), (2, 2 * world_size)]
        dims = [0, 0, 1]

        def call(rank: int) -> torch.Tensor:
            tensors = [torch.tensor(given(rank + 100 * i, *shape)) for i, shape in enumerate(shapes)]
            group = dist.group.WORLD
            summed = funcol.all_reduce_coalesced(tensors, "sum", group)
            gathered = funcol.all_gather_into_tensor_coalesced(tensors, group)
            scattered = funcol.reduce_scatter_tensor_coalesced(tensors, "sum", dims, group)
            assert all(isinstance(t, AsyncCollectiveTensor) for t in [*summed, *gathered, *scattered])
            return torch.cat([t.reshape(-1) for t in [*summed, *gathered, *scattered]])

        inputs = [[given(r + 100 * i, *shape) for r in range(world_size)] for i, shape in enumerate(shapes)]
        totals = [np.add.reduce(arrays) for arrays in inputs]
        gathered = [np.concatenate(arrays) for arrays in inputs]
        expected = []
        for r in range(world_size):
            scattered = [np.split(t, world_size, axis=dim)[r] for t, dim in zip(totals, dims, strict=True)]
            expected.append(np.concatenate([a.reshape(-1) for a in [*totals, *gathered, *scattered]]))
        check(on_group(world_size, call), expected)


class TestWaiting:
    """The current stream waits at the first use, and not before; the host does not."""

    @staticmethod
    def record() -> int:
        """An event that ends when all has ended that is on the current stream."""
        return go.StreamRecord(runtime.current().stream)

    @staticmethod
    def ended(event: int) -> int:
        """When the event has ended, in picoseconds; waits for it."""
        runtime.current().wait(event)
        return go.EventTime(event)

    @pytest.mark.parametrize(
        "use",
        [
            lambda t: t + 1,
            lambda t: torch.cat([t, t]),
            lambda t: t.view(-1),
            lambda t: t[0],
            lambda t: t.add_(1),
            lambda t: torch.zeros(1 << 20).copy_(t),
            lambda t: dist.all_reduce(t),
            funcol.wait_tensor,
            lambda t: t.trigger_wait(),
        ],
    )
    def test_the_first_use(self, use: Callable[[torch.Tensor], Any]) -> None:
        def program(rank: int) -> None:
            dist.init_process_group("nccl")
            output = funcol.all_reduce(torch.ones(1 << 20), "sum", dist.group.WORLD)
            assert isinstance(output, AsyncCollectiveTensor)
            work = output._work
            assert work is not None
            assert (output.shape, output.dtype, output.numel()) == ((1 << 20,), torch.float32, 1 << 20)
            assert not output.completed, "a look at the shape is no use"
            before = self.record()
            use(output)
            assert output.completed
            after = self.record()
            assert self.ended(before) < self.ended(work._event.number) <= self.ended(after)

        on_ranks(4, program)

    def test_what_a_wait_returns(self) -> None:
        def program(rank: int) -> None:
            dist.init_process_group("nccl")
            output = funcol.all_reduce(torch.ones(3), "sum", dist.group.WORLD)
            inner = funcol.wait_tensor(output)
            assert type(inner) is torch.Tensor
            assert inner is output.elem
            assert funcol.wait_tensor(inner) is inner
            assert inner.tolist() == output.tolist() == [2.0] * 3
            assert funcol.broadcast(torch.ones(2), 0, dist.group.WORLD).wait().tolist() == [1.0, 1.0]

        on_ranks(2, program)

    def test_a_rank_waits_at_its_end_for_what_it_issued(self) -> None:
        def program(rank: int) -> None:
            dist.init_process_group("nccl")
            if rank == 0:
                funcol.all_reduce(torch.ones(3), "sum", dist.group.WORLD)
            dist.HashStore().set("the host", "goes on")

        errors = failures(2, program)
        assert {rank: type(error) for rank, error in errors.items()} == {0: DeadlockError}


class TestGroups:
    def test_ways_to_name_one(self) -> None:
        def program(rank: int) -> list[float]:
            dist.init_process_group("nccl")
            row = dist.new_subgroups(3)[0]
            with pytest.warns(FutureWarning, match=r"The combination of ranks \+ tag as process group identifier"):
                by_ranks = funcol._resolve_group_name([[0, 1, 2], [3, 4, 5]])
            with pytest.warns(FutureWarning, match="has been deprecated"):
                also = funcol._resolve_group_name(list(row.ranks))
            assert by_ranks == also == row.group_name
            names = [row, row.group_name]
            return [funcol.all_reduce(torch.full((1,), float(rank)), "sum", name).item() for name in names]

        assert on_ranks(6, program) == [[3.0] * 2] * 3 + [[12.0] * 2] * 3

    def test_misuse(self) -> None:
        def program(rank: int) -> None:
            dist.init_process_group("nccl")
            pair = dist.new_subgroups(2)[0]
            t = torch.ones(3)
            for call, kind, text in [
                (lambda: funcol.all_reduce(t, "sum", 3), ValueError, r"Unsupported group type: <class 'int'>, 3"),
                (lambda: funcol.all_reduce(t, "sum", "no such"), RuntimeError, "under the name .?no such"),
                (lambda: funcol.all_reduce(t, "sum", None), ValueError, "Unsupported group type: .*NoneType"),
                (lambda: funcol.all_reduce(t, "mul", pair), RuntimeError, "Unrecognized reduce_op: mul"),
                (lambda: funcol.reduce_scatter_tensor(t, "sum", 0, pair), AssertionError, "multiple of group_size 2"),
                (lambda: funcol.all_to_all_single(t, [1, 2], None, pair), AssertionError, "specified together"),
                (lambda: funcol.permute_tensor(t, [0, 0], pair), ValueError, r"each of the ranks 0 to 1 once, not \[0, 0\]"),  # noqa: E501
                (lambda: funcol.reduce_scatter_tensor_coalesced([t], "sum", [], pair), AssertionError, r"Length of scatter_dim \(0\) must equal length of inputs \(1\)"),  # noqa: E501
            ]:  # fmt: skip
                with pytest.raises(kind, match=text):
                    call()
            with (
                pytest.warns(FutureWarning),
                pytest.raises(ValueError, match=r"no process group of the ranks \[0, 3\]"),
            ):
                funcol.all_reduce(t, "sum", [0, 3])

        on_ranks(4, program)


def test_what_is_printed(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> str:
        dist.init_process_group()
        return repr(funcol.all_reduce(torch.ones(2, device="cpu"), "sum", dist.group.WORLD))

    assert on_ranks(2, program) == ["AsyncCollectiveTensor(tensor([2., 2.]))"] * 2
