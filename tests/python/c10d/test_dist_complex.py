"""Collectives of complex numbers: every one, over every world size from 1 to 64, against NumPy; that they are those of
the parts; and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from complex_numbers import COMPLEX, PARTS, SEED, noise
from conftest import NUMPY, OpenWorld, same
from flight import SIZE, entries
from ranks import SIXTY_FOUR, failures, on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu.distributed import P2POp, ReduceOp
from torchemu.errors import MismatchError
from torchemu.runtime.waiting import host_time

Arrays = list[np.ndarray]
ROWS = 3


def whole(kind: str, rank: int, n: int) -> np.ndarray:
    """A rank's rows for each rank: small integers in both parts, so that every sum is exact in any order."""
    rng = np.random.default_rng([SEED, rank, n])
    parts = rng.integers(-1000, 1000, (n * ROWS, 2, 2)).astype(NUMPY[PARTS[kind]])
    return np.ascontiguousarray(parts.view(NUMPY[kind])[..., 0])


def uneven(n: int) -> list[int]:
    """Rows of the ranks: some none."""
    return [r % 3 for r in range(n)]


def moved(t: torch.Tensor, rank: int, n: int) -> list[torch.Tensor]:
    """Returns what a rank ends with where nothing is combined."""
    root = n // 2
    given = [t[ROWS * r : ROWS * (r + 1)] for r in range(n)]
    sent = t.clone()
    dist.broadcast(sent, root)
    gathered = [torch.empty_like(given[0][:k]) for k in uneven(n)]
    dist.all_gather(gathered, given[0][: uneven(n)[rank]])
    together = torch.empty_like(t)
    dist.all_gather_into_tensor(together, given[0])
    at_root = [torch.zeros_like(given[0]) for _ in range(n)]
    dist.gather(given[1 % n], at_root if rank == root else None, root)
    part = torch.empty_like(given[0])
    dist.scatter(part, given if rank == root else None, root)
    exchanged = [torch.empty_like(given[0]) for _ in range(n)]
    dist.all_to_all(exchanged, given)
    rows = [r % 2 + rank % 2 for r in range(n)]
    split = torch.empty(sum(rows), 2, dtype=t.dtype)
    dist.all_to_all_single(split, t[: sum(rows)], rows, rows)
    works = dist.batch_isend_irecv([
        P2POp(dist.isend, given[0], (rank + 1) % n),
        P2POp(dist.irecv, ring := torch.empty_like(given[0]), (rank - 1) % n),
    ])  # fmt: skip
    [work.wait() for work in works]
    return [sent, torch.cat(gathered), together, torch.cat(at_root), part, torch.cat(exchanged), split, ring]


def where_moved(starts: Arrays, rank: int) -> Arrays:
    """The same by NumPy."""
    n = len(starts)
    root = n // 2
    blocks = [[s[ROWS * r : ROWS * (r + 1)] for r in range(n)] for s in starts]
    empty = np.zeros_like(starts[0])
    split = []
    for r in range(n):
        at = sum(d % 2 + r % 2 for d in range(rank))
        split.append(starts[r][at : at + rank % 2 + r % 2])
    return [
        starts[root],
        np.concatenate([blocks[r][0][: uneven(n)[r]] for r in range(n)]),
        np.concatenate([b[0] for b in blocks]),
        np.concatenate([b[1 % n] for b in blocks]) if rank == root else empty,
        blocks[root][rank],
        np.concatenate([b[rank] for b in blocks]),
        np.concatenate(split),
        blocks[(rank - 1) % n][0],
    ]


def combined(t: torch.Tensor, rank: int, n: int) -> list[torch.Tensor]:
    """Returns what a rank ends with where elements are added."""
    sums = [t.clone() for _ in range(6)]
    dist.all_reduce(sums[0])
    dist.all_reduce(sums[1], ReduceOp.AVG, async_op=True).wait()
    dist.all_reduce(sums[2], dist._make_nccl_premul_sum(0.5))
    dist.reduce(sums[3], n // 2)
    with dist._coalescing_manager():
        dist.all_reduce(sums[4])
        dist.all_reduce(sums[5])
    part, listed = (torch.empty_like(t[:ROWS]) for _ in range(2))
    dist.reduce_scatter_tensor(part, t)
    dist.reduce_scatter(listed, [t[ROWS * r : ROWS * (r + 1)] for r in range(n)])
    columns = torch.stack([t, t], 1).select(1, 1)  # elements with gaps between them
    dist.all_reduce(columns)
    return [*sums, part, listed, columns]


def where_combined(starts: Arrays, rank: int) -> Arrays:
    n = len(starts)
    total = np.sum(starts, axis=0, dtype=starts[0].dtype)
    parts = np.ascontiguousarray(total).view(total.real.dtype)
    mean = (parts / parts.dtype.type(n)).view(total.dtype)
    block = total[ROWS * rank : ROWS * (rank + 1)]
    reduced = total if rank == n // 2 else starts[rank]
    return [total, mean, total / 2, reduced, total, total, block, block, total]


@pytest.mark.parametrize(
    "ranks", [1, 2, 3, 8, *(pytest.param(n, marks=pytest.mark.slow) for n in (4, 5, 6, 7, 9, 16, 31, 64))]
)
def test_every_world_size(open_world: OpenWorld, ranks: int) -> None:
    open_world(SIXTY_FOUR)
    kind = COMPLEX[ranks % 2]
    starts = [whole(kind, r, ranks) for r in range(ranks)]

    def program(rank: int) -> Arrays:
        dist.init_process_group()
        t = torch.from_numpy(starts[rank].copy())
        return [np.array(x.numpy()) for x in [*moved(t, rank, ranks), *combined(t, rank, ranks)]]

    for rank, ends in enumerate(on_ranks(ranks, program)):
        want = [*where_moved(starts, rank), *where_combined(starts, rank)]
        assert len(ends) == len(want)
        for i, (got, wanted) in enumerate(zip(ends, want, strict=True)):
            assert same(got, wanted), f"result {i} on rank {rank}, seed {SEED}"


@pytest.mark.parametrize("kind", COMPLEX)
@pytest.mark.parametrize("algorithm", ["auto", "ring", "bidirectional_ring", "halving_doubling", "two_shot"])
def test_they_are_those_of_the_parts(open_world: OpenWorld, kind: str, algorithm: str) -> None:
    """In every bit, though sums round, and in time. Chunks may then begin in the middle of a number."""
    open_world("sips8", f"defaults: {{algorithm: {algorithm}}}\n")
    arrays = [noise(kind, 1001, seed=r) for r in range(8)]

    def program(rank: int) -> list[tuple[np.ndarray, int]]:
        dist.init_process_group()
        z = torch.from_numpy(arrays[rank].copy())
        parts = torch.from_numpy(arrays[rank].copy()).view(getattr(torch, PARTS[kind]))
        found = []
        for t in (z, parts):
            t.wait()
            dist.barrier()
            start = host_time()
            dist.all_reduce(t)
            t.wait()
            found.append((np.array(t.numpy()), host_time() - start))
        return found

    ends = on_ranks(8, program)
    (first, took), (parts, parts_took) = ends[0]
    assert same(first, parts.view(NUMPY[kind])) and took == parts_took > 0
    assert all(same(end[0][0], first) for end in ends)
    exact = np.sum([a.astype(np.complex128) for a in arrays], axis=0)
    bound = 8 * np.finfo(NUMPY[kind]).eps * np.sum(np.abs(arrays), axis=0)
    assert (np.abs(first - exact) <= bound).all()


OPS = [ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR]


@pytest.mark.parametrize("op", OPS, ids=str)
def test_reductions_without_a_meaning(open_world: OpenWorld, op: Any) -> None:
    open_world("sips2")
    assert not dist.supports_complex(op) and dist.supports_complex(ReduceOp.SUM) and dist.supports_complex(ReduceOp.AVG)
    assert dist.supports_complex(dist._make_nccl_premul_sum(2.0))

    def program(rank: int) -> None:
        dist.init_process_group()
        z = torch.ones(2, dtype=torch.complex64)
        calls: list[tuple[Callable[[], Any], type[Exception], str]] = [
            (lambda: dist.all_reduce(z, op), ValueError, f"all_reduce does not support {op} on complex tensors"),
            (lambda: dist.all_reduce(z, ReduceOp(op)), ValueError, f"all_reduce does not support {op} on complex"),
            (lambda: dist.all_reduce(z, op.name), ValueError, f"all_reduce does not support {op} on complex"),
            (lambda: dist.group.WORLD.allreduce([z], op), ValueError, f"all_reduce does not support {op} on complex"),
            (lambda: dist.reduce(z, 0, op), RuntimeError, f"reduce does not support {op} on complex tensors"),
            (lambda: dist.reduce_scatter(z, [z, z], op), RuntimeError, f"reduce_scatter does not support {op} on"),
            (
                lambda: dist.reduce_scatter_tensor(z[:1], z, op),
                RuntimeError,
                f"reduce_scatter does not support {op} on",
            ),
        ]
        for call, error, text in calls:
            with pytest.raises(error) as raised:
                call()
            assert str(raised.value).startswith(text)
        with pytest.warns(FutureWarning), pytest.raises(ValueError, match="all_reduce does not support"):
            dist.all_reduce_coalesced([z], op)

    on_ranks(2, program)


def test_mismatches_name_them(open_world: OpenWorld) -> None:
    open_world("sips2")

    def collective(rank: int) -> None:
        dist.init_process_group()
        dist.all_reduce(torch.ones(2 + 2 * rank, dtype=torch.float32 if rank else torch.complex64))

    def message(rank: int) -> None:
        dist.init_process_group()
        z = torch.ones(2, dtype=COMPLEX[rank])
        dist.recv(z, 0) if rank else dist.send(z, 1)

    for error in failures(2, collective).values():
        assert isinstance(error, MismatchError)
        assert "rank 0 calls all_reduce of 2 complex64 elements, op sum" in str(error)
        assert "rank 1 calls all_reduce of 4 float32 elements, op sum" in str(error)
    for error in failures(2, message).values():
        assert "send of 2 complex64 elements" in str(error) and "recv of 2 complex128 elements" in str(error)


@pytest.mark.parametrize("level", ["OFF", "DETAIL"])
def test_what_a_rank_can_see_to_be_wrong(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch, level: str) -> None:
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", level)
    open_world("sips2")

    def program(rank: int) -> list[complex]:
        dist.init_process_group("gloo")
        z, x = torch.full((2,), complex(1, rank)), torch.ones(4)
        with pytest.raises(
            RuntimeError, match=r"invalid tensor type .*expected TensorOptions\(dtype=c10::complex<float>"
        ):
            dist.all_gather_into_tensor(x, z)
        with pytest.raises(TypeError, match=r"input tensor must be the same type.*torch.complex64 and torch.float32"):
            dist.reduce_scatter_tensor(x[:1], z)
        with pytest.raises(ValueError, match=r"Found torch.complex64 and  torch.complex128"):
            dist.all_gather([z, z.to(torch.complex128)], z)
        dist.all_reduce(z)
        return z.tolist()

    assert on_ranks(2, program) == [[2 + 1j] * 2] * 2


def test_objects_that_hold_them(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> list[complex]:
        dist.init_process_group()
        found: list[Any] = [None, None]
        dist.all_gather_object(found, {"z": torch.full((2,), complex(1, rank)), "number": 1j * rank})
        return [found[1]["z"][0].item(), found[1]["number"]]

    assert on_ranks(2, program) == [[1 + 1j, 1j]] * 2


def test_the_flight_recorder_has_pytorchs_names(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SIZE, "10")
    open_world("sips2")

    def program(rank: int) -> list[Any]:
        dist.init_process_group()
        for kind in COMPLEX:
            dist.all_reduce(torch.ones(2, 3, dtype=kind))
        return [(e["input_dtypes"], e["output_dtypes"], e["input_sizes"]) for e in entries()]

    names = [(["ComplexFloat"], ["ComplexFloat"], [[2, 3]]), (["ComplexDouble"], ["ComplexDouble"], [[2, 3]])]
    assert on_ranks(2, program) == [names] * 2
