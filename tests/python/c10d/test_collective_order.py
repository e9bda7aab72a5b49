"""The bits of a reduction: its algorithm's order of operands, calculated here by NumPy from what the algorithm is.

Inputs are such that nearly every other order gives other bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from conftest import NUMPY, OpenWorld, same
from ranks import SIXTY_FOUR, on_ranks

import torchemu as torch
import torchemu.distributed as dist

SMALL_WORLDS, LARGE_WORLDS = [1, 2, 3, 6, 8, 13], [33, 64]
KINDS = ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float32", "float64"]
OPS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "sum": np.add, "avg": np.add, "product": np.multiply, "max": np.maximum,
}  # fmt: skip

AT_A_SWITCH = """
system:
  sips: {count: 64, connect: switch}
  switch: {in_network: {multicast: true, reduce: [sum, min, max]}}
"""

Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]
Order = Callable[[np.ndarray, Combine, int], np.ndarray]
"""The reduction of the rows of one part of the vector, the i-th of so many as there are ranks."""


def wide(kind: str) -> type:
    """The type that a step calculates in."""
    return np.float64 if kind == "float64" else np.float32


def folded(rows: np.ndarray, combine: Combine, order: Sequence[int]) -> np.ndarray:
    """One after another."""
    total = rows[order[0]]
    for i in order[1:]:
        total = combine(total, rows[i])
    return total


def in_order_of_ranks(rows: np.ndarray, combine: Combine, i: int) -> np.ndarray:
    """Whoever reduces a part has got it from everybody, and takes the ranks as they come."""
    return folded(rows, combine, range(len(rows)))


def round_the_ring(rows: np.ndarray, combine: Combine, i: int) -> np.ndarray:
    """Part i goes from rank i+1 on, by all ranks, and ends at rank i."""
    n = len(rows)
    return folded(rows, combine, [(i + 1 + k) % n for k in range(n)])


def by_halves(rows: np.ndarray, combine: Combine, i: int) -> np.ndarray:
    """Of 2^k ranks, in the order of their reversed bits, each exchanges with the one half the rest away; of other
    numbers, each with the one at that distance round a circle."""
    n = len(rows)
    bits = (n - 1).bit_length()
    if 1 << bits != n:
        return round_the_circle(rows, combine, i)
    values = [rows[int(format(m, f"0{bits}b")[::-1], 2)] if bits else rows[0] for m in range(n)]
    for round_number in range(bits):
        away = n >> (round_number + 1)
        values = [combine(values[m], values[m ^ away]) for m in range(n)]
    return values[i]


def backwards_from_before(rows: np.ndarray, combine: Combine, i: int) -> np.ndarray:
    """Rank i takes the others' values into its own: from the rank before it on, backwards."""
    total = rows[i]
    for k in range(1, len(rows)):
        total = combine(rows[(i - k) % len(rows)], total)
    return total


def round_the_circle(rows: np.ndarray, combine: Combine, i: int) -> np.ndarray:
    """Bruck's all-gather backwards: in the round of distance d those up to d before i take what those d before have."""
    n = len(rows)
    values = list(rows)
    for round_number in reversed(range((n - 1).bit_length())):
        away = 1 << round_number
        before = list(values)
        for k in range(min(away, n - away)):
            to = (i - k) % n
            values[to] = combine(before[to], before[(to - away) % n])
    return values[i]


def up_the_tree(rows: np.ndarray, combine: Combine) -> np.ndarray:
    """Ranks in order are an in-order binary tree whose left subtrees are perfect: own, then left, then right."""
    n = len(rows)
    root = (1 << (n.bit_length() - 1)) - 1
    total = rows[root]
    for subtree in (rows[:root], rows[root + 1 :]):
        if len(subtree):
            total = combine(total, up_the_tree(subtree, combine))
    return total


def by_parts(order: Order) -> Callable[[np.ndarray, Combine], np.ndarray]:
    """A part of the vector for each rank, each in an order of its own."""

    def whole(rows: np.ndarray, combine: Combine) -> np.ndarray:
        parts = np.array_split(rows, len(rows), axis=1)
        return np.concatenate([order(part, combine, i) for i, part in enumerate(parts)])

    return whole


def both_ways(rows: np.ndarray, combine: Combine) -> np.ndarray:
    """2·n parts: the first n go round the ring one way, the others the other way."""
    n = len(rows)
    parts = np.array_split(rows, 2 * n, axis=1)
    up = [round_the_ring(part, combine, i) for i, part in enumerate(parts[:n])]
    down = [round_the_ring(part[::-1], combine, i) for i, part in enumerate(parts[n:])]
    return np.concatenate(up + down)


def two_trees(rows: np.ndarray, combine: Combine) -> np.ndarray:
    """A half up one tree, the other up one whose ranks are shifted by one."""
    first, second = np.array_split(rows, 2, axis=1)
    return np.concatenate([up_the_tree(first, combine), up_the_tree(np.roll(second, 1, axis=0), combine)])


ALL_REDUCE: dict[str, Callable[[np.ndarray, Combine], np.ndarray]] = {
    "one_shot": lambda rows, combine: in_order_of_ranks(rows, combine, 0),
    "two_shot": by_parts(in_order_of_ranks),
    "two_shot_staggered": by_parts(backwards_from_before),
    "ring": by_parts(round_the_ring),
    "bidirectional_ring": both_ways,
    "halving_doubling": by_parts(by_halves),
    "double_binary_tree": two_trees,
}


def given(kind: str, op: str, ranks: int, n: int) -> np.ndarray:
    """A row for each rank, whose reduction loses bits; products stay within the type's range."""
    rng = np.random.default_rng([ranks, n, len(kind), len(op)])
    if op == "product":
        return np.exp2(rng.normal(0, 0.3, (ranks, n))).astype(NUMPY[kind])
    return (rng.normal(0, 1, (ranks, n)) * np.exp2(rng.integers(-3, 3, (ranks, n)))).astype(NUMPY[kind])


def rounded(kind: str, op: str) -> Combine:
    """A step: in float32, or float64, then rounded once."""
    return lambda a, b: OPS[op](a.astype(wide(kind)), b.astype(wide(kind))).astype(NUMPY[kind])


def finished(total: np.ndarray, kind: str, op: str, ranks: int) -> np.ndarray:
    """A mean is divided once, at the end."""
    if op == "avg":
        total = total.astype(wide(kind)) / wide(kind)(ranks)
    return total.astype(NUMPY[kind])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("algorithm", ALL_REDUCE)
@pytest.mark.parametrize("worlds", [SMALL_WORLDS, pytest.param(LARGE_WORLDS, marks=pytest.mark.slow)])
def test_all_reduce(open_world: OpenWorld, algorithm: str, kind: str, worlds: list[int]) -> None:
    open_world(SIXTY_FOUR, f"defaults: {{algorithm: {algorithm}}}\n")
    for ranks in worlds:
        rows = {op: given(kind, op, ranks, 2 * ranks * 3 + 1) for op in OPS}

        def program(rank: int, rows: dict[str, np.ndarray] = rows) -> list[np.ndarray]:
            dist.init_process_group()
            tensors = [torch.from_numpy(rows[op][rank].copy()) for op in OPS]
            for op, t in zip(OPS, tensors, strict=True):
                dist.all_reduce(t, op)
            return [np.array(t.numpy()) for t in tensors]

        want = [
            finished(ALL_REDUCE[algorithm](rows[op], rounded(kind, op)), kind, op, ranks) for op in OPS
        ]  # fmt: skip
        for rank, got in enumerate(on_ranks(ranks, program)):
            for op, a, b in zip(OPS, got, want, strict=True):
                assert same(a, b), f"{op} on rank {rank} of {ranks}"


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float8_e5m2"])
@pytest.mark.parametrize("algorithm", ALL_REDUCE)
def test_all_reduce_with_float32_between_steps(open_world: OpenWorld, algorithm: str, kind: str) -> None:
    open_world(SIXTY_FOUR, f"defaults: {{algorithm: {algorithm}, accumulate: f32}}\n")
    for ranks in (2, 5, 16, 64):
        rows = given(kind, "avg", ranks, 2 * ranks * 3)

        def program(rank: int, rows: np.ndarray = rows) -> np.ndarray:
            dist.init_process_group()
            t = torch.from_numpy(rows[rank].copy())
            dist.all_reduce(t, "avg")
            return np.array(t.numpy())

        total = ALL_REDUCE[algorithm](rows.astype(np.float32), np.add)
        for got in on_ranks(ranks, program):
            assert same(got, finished(total, kind, "avg", ranks))


@pytest.mark.parametrize("kind", KINDS)
def test_reductions_in_a_switch(open_world: OpenWorld, kind: str) -> None:
    """A switch reduces in the order of ranks: floats of less than four bytes in float32, which it rounds once."""
    ops = ("sum", "avg", "max")
    world = open_world(AT_A_SWITCH, "defaults: {algorithm: nvls}\n")
    for ranks in (2, 5, 16):
        rows = {op: given(kind, op, ranks, 3 * ranks) for op in ops}

        def program(rank: int, rows: dict[str, np.ndarray] = rows) -> list[np.ndarray]:
            dist.init_process_group()
            results = []
            for op in ops:
                t, block = torch.from_numpy(rows[op][rank].copy()), torch.from_numpy(rows[op][rank][:3].copy())
                dist.reduce_scatter_tensor(block, t, op)
                dist.all_reduce(t, op)
                results += [np.array(t.numpy()), np.array(block.numpy())]
            return results

        want = {
            op: finished(in_order_of_ranks(rows[op].astype(wide(kind)), OPS[op], 0), kind, op, ranks) for op in ops
        }  # fmt: skip
        for rank, got in enumerate(on_ranks(ranks, program)):
            for k, op in enumerate(ops):
                assert same(got[2 * k], want[op]), f"all_reduce by {op} on rank {rank} of {ranks}"
                assert same(got[2 * k + 1], want[op][3 * rank : 3 * rank + 3]), f"{op} on rank {rank} of {ranks}"
        assert world.collectives()[-1]["algorithm"] == "nvls"


@pytest.mark.parametrize("kind", KINDS)
def test_reduce_scatter_round_a_ring(open_world: OpenWorld, kind: str) -> None:
    world = open_world(SIXTY_FOUR, "defaults: {algorithm: ring}\n")
    for ranks in SMALL_WORLDS + LARGE_WORLDS:
        rows = given(kind, "avg", ranks, 3 * ranks)

        def program(rank: int, rows: np.ndarray = rows) -> np.ndarray:
            dist.init_process_group()
            out = torch.zeros(3, dtype=kind)
            dist.reduce_scatter_tensor(out, torch.from_numpy(rows[rank].copy()), "avg")
            return np.array(out.numpy())

        ends = on_ranks(ranks, program)
        assert world.collectives()[-1]["algorithm"] == "ring"
        whole = finished(by_parts(round_the_ring)(rows, rounded(kind, "avg")), kind, "avg", ranks)
        for got, want in zip(ends, whole.reshape(ranks, 3), strict=True):
            assert same(got, want)


def test_the_order_shows() -> None:
    """The oracles differ from each other, so that none of the tests would pass with another's bits."""
    rows = given("bfloat16", "sum", 16, 97)
    results = {name: order(rows, rounded("bfloat16", "sum")).tobytes() for name, order in ALL_REDUCE.items()}
    assert results.pop("two_shot") == results["one_shot"]
    assert len(set(results.values())) == len(results)
