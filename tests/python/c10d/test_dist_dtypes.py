"""Every reduction of every dtype by every collective, and every world size from 1 to 64, against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from collective_cases import CASES as COLLECTIVES
from collective_cases import Arrays, blank
from conftest import NUMPY, OpenWorld, same
from ranks import SIXTY_FOUR, on_ranks

import torchemu as torch
import torchemu.distributed as dist

INTEGERS = [name for name in NUMPY if "int" in name]
FLOATS = [name for name in NUMPY if "float" in name]
PARTS = {"complex64": "float32", "complex128": "float64"}
OPS = {
    **{name: ["sum", "product", "min", "max", "avg", "band", "bor", "bxor"] for name in INTEGERS},
    **{name: ["sum", "product", "min", "max", "avg"] for name in FLOATS},
    "bool": ["sum", "product", "min", "max", "band", "bor", "bxor"],
    **{name: ["sum", "avg"] for name in PARTS},
}
UFUNCS = {
    "sum": np.add, "avg": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum,
    "band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor,
}  # fmt: skip
WIDTH = 3
"""Elements that each rank ends with after a reduce_scatter."""


def given(name: str, op: str, ranks: int) -> np.ndarray:
    """A row for each rank. Whatever the order, floats lose nothing: at most four ranks have something to add or to
    multiply with at each place. Integers wrap. Complex numbers have such parts."""
    if name in PARTS:
        real, imag = given(PARTS[name], op, ranks), given(PARTS[name], op, ranks)[:, ::-1]
        return np.stack([real, imag], -1).view(NUMPY[name])[..., 0]
    rng = np.random.default_rng([ranks, *name.encode(), *op.encode()])
    kind, shape = np.dtype(NUMPY[name]), (ranks, WIDTH * ranks)
    if name == "bool":
        return rng.random(shape) < (0.5 if op in ("bxor", "min", "max") else 1 / ranks if op == "bor" else 0.9)
    if name in INTEGERS:
        return np.frombuffer(rng.bytes(kind.itemsize * WIDTH * ranks * ranks), kind).reshape(shape).copy()
    if op in ("min", "max"):
        return rng.integers(-8, 9, shape).astype(kind)
    few = rng.permuted(np.arange(ranks)[:, np.newaxis].repeat(shape[1], 1), axis=0) < 4
    some = rng.choice([-1.0, 1.0], shape) if op != "product" else rng.choice([-2.0, 0.5, 2.0], shape)
    return np.where(few, some, 1.0 if op == "product" else 0.0).astype(kind)


def reduced(rows: np.ndarray, name: str, op: str) -> np.ndarray:
    """Returns NumPy's result: in the type itself, or exactly and then rounded once; of complex numbers part by part."""
    if name in PARTS:
        return reduced(np.ascontiguousarray(rows).view(NUMPY[PARTS[name]]), PARTS[name], op).view(rows.dtype)
    if name == "bool":
        ufunc = {"sum": np.logical_or, "product": np.logical_and}.get(op, UFUNCS[op])
        return ufunc.reduce(rows, axis=0)
    if name in INTEGERS:
        total = UFUNCS[op].reduce(rows, axis=0, dtype=rows.dtype)
        if op != "avg":
            return total
        return np.array([abs(int(x)) // len(rows) * (1 if x >= 0 else -1) for x in total], rows.dtype)
    exact = UFUNCS[op].reduce(rows.astype(np.float64), axis=0)
    if op == "avg":
        exact = exact.astype(np.float64 if name == "float64" else np.float32)
        exact = exact / exact.dtype.type(len(rows))
    return exact.astype(rows.dtype)


def all_reduce(t: torch.Tensor, op: str, rank: int, n: int) -> torch.Tensor:
    dist.all_reduce(t, op)
    return t


def reduce(t: torch.Tensor, op: str, rank: int, n: int) -> torch.Tensor:
    dist.reduce(t, n // 2, op)
    return t


def reduce_scatter(t: torch.Tensor, op: str, rank: int, n: int) -> torch.Tensor:
    out = blank((WIDTH,), t)
    dist.reduce_scatter(out, [t[WIDTH * r : WIDTH * (r + 1)] for r in range(n)], op)
    return out


def reduce_scatter_tensor(t: torch.Tensor, op: str, rank: int, n: int) -> torch.Tensor:
    out = blank((WIDTH,), t)
    dist.reduce_scatter_tensor(out, t, op)
    return out


def ends_of(call: Callable[..., torch.Tensor], rows: np.ndarray, total: np.ndarray, rank: int) -> np.ndarray:
    """Returns what a rank must end with; in a reduce, ranks but for the root keep what they have."""
    if call is all_reduce or (call is reduce and rank == len(rows) // 2):
        return total
    return rows[rank] if call is reduce else total[WIDTH * rank : WIDTH * (rank + 1)]


@pytest.mark.parametrize("ranks", [2, 5, pytest.param(16, marks=pytest.mark.slow)])
@pytest.mark.parametrize("call", [all_reduce, reduce, reduce_scatter, reduce_scatter_tensor], ids=lambda f: f.__name__)
def test_every_op_of_every_dtype(open_world: OpenWorld, call: Callable[..., torch.Tensor], ranks: int) -> None:
    open_world(SIXTY_FOUR)
    cases = {(name, op): given(name, op, ranks) for name in OPS for op in OPS[name]}
    assert len(cases) == 8 * 8 + 6 * 5 + 7 + 2 * 2  # of integers, floats, bool and complex numbers

    def program(rank: int) -> Arrays:
        dist.init_process_group()
        tensors = (call(torch.from_numpy(rows[rank].copy()), op, rank, ranks) for (_, op), rows in cases.items())
        return [np.array(t.numpy()) for t in tensors]

    ends = on_ranks(ranks, program)
    for i, ((name, op), rows) in enumerate(cases.items()):
        total = reduced(rows, name, op)
        for rank in range(ranks):
            assert same(ends[rank][i], ends_of(call, rows, total, rank)), f"{op} of {name} on rank {rank}"


SWEPT = [
    "all_reduce total",
    "all_reduce greatest",
    "broadcast",
    "reduce",
    "all_gather of uneven shares",
    "all_gather_into_tensor one after another",
    "gather",
    "scatter",
    "reduce_scatter_tensor of what is stacked",
    "all_to_all_single by splits",
]


@pytest.mark.parametrize("ranks", [*range(1, 10), *(pytest.param(n, marks=pytest.mark.slow) for n in range(10, 65))])
def test_every_world_size(open_world: OpenWorld, ranks: int) -> None:
    open_world(SIXTY_FOUR)
    starts = {name: [COLLECTIVES[name].given(r, ranks) for r in range(ranks)] for name in SWEPT}

    def program(rank: int) -> list[Arrays]:
        dist.init_process_group()
        group = dist.group.WORLD
        tensors = ([torch.from_numpy(a.copy()) for a in starts[name][rank]] for name in SWEPT)
        ends = [COLLECTIVES[name].call(group, start) for name, start in zip(SWEPT, tensors, strict=True)]
        return [[np.array(t.numpy()) for t in end] for end in ends]

    ends = on_ranks(ranks, program)
    for i, name in enumerate(SWEPT):
        want = COLLECTIVES[name].want(starts[name])
        for rank in range(ranks):
            assert len(ends[rank][i]) == len(want[rank]) and all(map(same, ends[rank][i], want[rank])), (name, rank)
