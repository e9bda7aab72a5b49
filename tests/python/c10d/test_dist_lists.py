"""Lists with a tensor for each rank, wherever these tensors lie: some are parts of one, in order or not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist

RANKS, SIZE = 4, 3


def _rows(matrix: torch.Tensor) -> list[torch.Tensor]:
    return [matrix[i] for i in range(RANKS)]


ARRANGEMENTS: dict[str, Callable[[], list[torch.Tensor]]] = {
    "apart": lambda: [torch.zeros(SIZE) for _ in range(RANKS)],
    "parts of one": lambda: list(torch.zeros(RANKS * SIZE).split(SIZE)),
    "parts in the middle of one": lambda: list(torch.zeros(RANKS * SIZE + 5)[2:-3].split(SIZE)),
    "parts of the begin of one": lambda: list(torch.zeros(2 * RANKS * SIZE)[: RANKS * SIZE].split(SIZE)),
    "parts of one of another dtype": lambda: list(
        torch.zeros(RANKS * SIZE, dtype=torch.int32).view(torch.float32).split(SIZE)
    ),
    "one of them of another class": lambda: [
        torch.nn.Parameter(t, requires_grad=False) if i == 1 else t
        for i, t in enumerate(torch.zeros(RANKS * SIZE).split(SIZE))
    ],
    "rows": lambda: _rows(torch.zeros(RANKS, SIZE)),
    "matrices of one row": lambda: list(torch.zeros(RANKS, SIZE).split(1)),
    "columns": lambda: _rows(torch.zeros(SIZE, RANKS).t()),
    "in reverse": lambda: list(torch.zeros(RANKS * SIZE).split(SIZE))[::-1],
    "with gaps": lambda: [row[:SIZE] for row in _rows(torch.zeros(RANKS, SIZE + 1))],
    "one of them apart": lambda: [*torch.zeros((RANKS - 1) * SIZE).split(SIZE), torch.zeros(SIZE)],
    "each with gaps": lambda: [row[::2] for row in _rows(torch.zeros(RANKS, 2 * SIZE))],
}


def value(src: int, dst: int) -> np.ndarray:
    """Returns what one rank has for another."""
    return 100 * src + 10 * dst + np.arange(SIZE, dtype=np.float32)


def filled(tensors: list[torch.Tensor], rank: int) -> list[torch.Tensor]:
    """With what a rank has for each."""
    for dst, t in enumerate(tensors):
        t.copy_(torch.from_numpy(value(rank, dst)).reshape(t.shape))
    return tensors


def exchanged(rank: int, arrangement: Callable[[], list[torch.Tensor]]) -> dict[str, list[np.ndarray]]:
    """All collectives that take lists, with lists in that arrangement."""
    own, got = torch.from_numpy(value(rank, 0)), torch.zeros(arrangement()[0].shape)
    gathered, collected, exchange = arrangement(), arrangement(), arrangement()
    dist.all_gather(gathered, own.reshape(gathered[0].shape))
    dist.gather(own.reshape(collected[0].shape), collected if rank == 2 else None, dst=2)
    dist.all_to_all(exchange, filled(arrangement(), rank))
    ends = {"all_gather": gathered, "gather": collected, "all_to_all": exchange}
    result = {name: [np.array(t.numpy()).reshape(SIZE) for t in list_] for name, list_ in ends.items()}
    dist.scatter(got, filled(arrangement(), rank) if rank == 1 else None, src=1)
    result["scatter"] = [np.array(got.numpy()).reshape(SIZE)]
    dist.reduce_scatter(got, filled(arrangement(), rank))
    result["reduce_scatter"] = [np.array(got.numpy()).reshape(SIZE)]
    return result


@pytest.mark.parametrize("name", ARRANGEMENTS)
def test_where_the_tensors_lie_does_not_matter(open_world: OpenWorld, name: str) -> None:
    open_world("default")

    def program(rank: int) -> dict[str, list[np.ndarray]]:
        dist.init_process_group("gloo")
        return exchanged(rank, ARRANGEMENTS[name])

    everyone = range(RANKS)
    for rank, got in enumerate(on_ranks(RANKS, program)):
        want = {
            "all_gather": [value(src, 0) for src in everyone],
            "gather": [value(src, 0) if rank == 2 else np.zeros(SIZE) for src in everyone],
            "all_to_all": [value(src, rank) for src in everyone],
            "scatter": [value(1, rank)],
            "reduce_scatter": [np.sum([value(src, rank) for src in everyone], axis=0)],
        }
        for collective, arrays in want.items():
            np.testing.assert_array_equal(got[collective], arrays, f"{collective} on rank {rank}")


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
def test_gloo_wants_equal_shapes_and_not_only_as_many_elements(open_world: OpenWorld, backend: str) -> None:
    open_world("default")
    calls: list[Callable[[torch.Tensor, list[torch.Tensor]], object]] = [
        lambda flat, square: dist.all_gather(square, flat),
        lambda flat, square: dist.gather(flat, square if dist.get_rank() == 1 else None, dst=1),
        lambda flat, square: dist.scatter(flat, square if dist.get_rank() == 1 else None, src=1),
        lambda flat, square: dist.reduce_scatter(flat, square),
    ]

    def program(rank: int, call: Callable[[torch.Tensor, list[torch.Tensor]], object]) -> None:
        dist.init_process_group(backend)
        call(torch.zeros(4), [torch.zeros(2, 2) for _ in range(RANKS)])

    for call in calls:
        if backend == "nccl":
            on_ranks(RANKS, program, call)
            continue
        with pytest.raises(Exception, match=r"invalid tensor size at index 0 \(expected \(4\), got \(2, 2\)\)"):
            on_ranks(RANKS, program, call)


def test_gloo_does_not_gather_complex_numbers(open_world: OpenWorld) -> None:
    open_world("default")

    def program(rank: int, backend: str) -> list[complex]:
        dist.init_process_group(backend)
        gathered = [torch.zeros(1, dtype=torch.complex64) for _ in range(RANKS)] if rank == 0 else None
        dist.gather(torch.tensor([rank * 1j]), gathered)
        return [t.item() for t in gathered or ()]

    assert on_ranks(RANKS, program, "nccl")[0] == [r * 1j for r in range(RANKS)]
    with pytest.raises(Exception, match="Invalid scalar type"):
        on_ranks(RANKS, program, "gloo")


def test_parts_of_one_tensor_must_have_the_sizes_that_ranks_give(open_world: OpenWorld) -> None:
    open_world("default")
    sizes = [2, 1, 3, 2]  # rank 0's list has as many elements as all ranks give together

    def program(rank: int) -> None:
        dist.init_process_group("gloo")
        n = sizes[rank]
        dist.all_gather(list(torch.zeros(RANKS * n).split(n)), torch.zeros(n))

    with pytest.raises(
        Exception, match="rank 0 calls all_gather of float32 with 2 elements for rank 1's block"
    ) as error:
        on_ranks(RANKS, program)
    assert "rank 1 calls all_gather of float32 with 1 element for it" in str(error.value)
