"""Collectives compared with NumPy, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import NUMPY, OpenWorld, same

import torchemu as torch
from torchemu.distributed import ReduceOp

dist = torch.distributed

ALGORITHMS = ["ring", "halving_doubling", "double_binary_tree", "one_shot", "hierarchical"]
INTEGERS = [n for n in NUMPY if "int" in n]
FLOATS = [n for n in NUMPY if "float" in n]
PARTS = {"complex64": "float32", "complex128": "float64"}
ARITHMETIC = ["sum", "prod", "min", "max"]
BITWISE = ["band", "bor", "bxor"]
CASES = [
    *((d, op) for d in ["bool", *INTEGERS, *FLOATS] for op in ARITHMETIC),
    *((d, "avg") for d in [*INTEGERS, *FLOATS]),
    *((d, op) for d in PARTS for op in ["sum", "avg"]),
    *((d, op) for d in ["bool", *INTEGERS] for op in BITWISE),
]
UFUNCS: dict[str, Any] = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "avg": np.add,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
}
N = 37  # odd, and no multiple of any world size below


def inputs(name: str, op: str, ranks: int, n: int = N) -> np.ndarray:
    """A row of elements for each rank. Every partial result of a float type is exact; integers wrap."""
    if name in PARTS:
        return inputs(PARTS[name], op, ranks, 2 * n).view(NUMPY[name])
    rng = np.random.default_rng(len(name) + 10 * len(op) + 100 * ranks)
    kind = np.dtype(NUMPY[name])
    if name == "bool":
        return rng.integers(0, 2, (ranks, n)).astype(bool)
    if name in INTEGERS:
        return np.frombuffer(rng.bytes(ranks * n * kind.itemsize), kind).reshape(ranks, n).copy()
    if op == "prod":
        return rng.choice([-1.0, 1.0, 2.0, 0.5], (ranks, n), p=[0.4, 0.4, 0.1, 0.1]).astype(kind)
    return rng.integers(-1 if op in ("sum", "avg") else -8, 2 if op in ("sum", "avg") else 9, (ranks, n)).astype(kind)


def reduced(rows: np.ndarray, name: str, op: str) -> np.ndarray:
    """Returns what all_reduce must give, calculated by NumPy in the type itself, or exactly for floats."""
    kind = np.dtype(NUMPY[name])
    if name in PARTS:
        return reduced(rows.view(NUMPY[PARTS[name]]), PARTS[name], op).view(kind)
    if name == "bool" and op in ("sum", "prod"):
        return (np.any if op == "sum" else np.all)(rows, axis=0)
    if name not in FLOATS:
        total = UFUNCS[op].reduce(rows, axis=0, dtype=kind)
        return truncated_quotient(total, len(rows)) if op == "avg" else total
    exact = UFUNCS[op].reduce(rows.astype(np.float64), axis=0)
    if op == "avg":
        wide = np.float64 if name == "float64" else np.float32
        exact = exact.astype(wide) / wide(len(rows))  # one division, then one rounding
    return exact.astype(kind)


def truncated_quotient(total: np.ndarray, n: int) -> np.ndarray:
    quotients = [abs(int(x)) // n * (1 if x >= 0 else -1) for x in total]
    return np.array(quotients, dtype=total.dtype)


def on_each_rank(ranks: int, fn: Callable[[int], np.ndarray]) -> list[np.ndarray]:
    """Spawns the function and returns what it gave on each rank."""
    results: dict[int, np.ndarray] = {}

    def worker(rank: int) -> None:
        results[rank] = np.array(fn(rank))

    torch.multiprocessing.spawn(worker, nprocs=ranks)
    return [results[r] for r in range(ranks)]


@pytest.mark.parametrize(("name", "op"), CASES)
def test_all_reduce(open_world: OpenWorld, name: str, op: str) -> None:
    open_world("sips8", "defaults: {algorithm: ring}\n")
    dist.init_process_group()
    rows = inputs(name, op, 8)

    def rank(r: int) -> np.ndarray:
        t = torch.from_numpy(rows[r].copy())
        assert dist.all_reduce(t, op=op) is None
        return t.numpy()

    want = reduced(rows, name, op)
    for got in on_each_rank(8, rank):
        assert same(got, want)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", ["int8", "float16", "bool"])
@pytest.mark.parametrize("n", [0, 1, 3, 1000])
def test_all_reduce_in_every_algorithm_and_size(open_world: OpenWorld, algorithm: str, name: str, n: int) -> None:
    open_world("nodes2x8", f"defaults: {{algorithm: {algorithm}}}\n")
    dist.init_process_group()
    rows = inputs(name, "sum", 16, n)

    def rank(r: int) -> np.ndarray:
        t = torch.from_numpy(rows[r].copy())
        dist.all_reduce(t, ReduceOp.SUM)
        return t.numpy()

    for got in on_each_rank(16, rank):
        assert same(got, reduced(rows, name, "sum"))


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("n", [0, 1, N])
def test_all_gather(open_world: OpenWorld, name: str, n: int) -> None:
    open_world()
    dist.init_process_group()
    rows = inputs(name, "max", 4, n)

    def rank(r: int) -> np.ndarray:
        out = torch.zeros(4, n, dtype=name)
        dist.all_gather_into_tensor(out, torch.from_numpy(rows[r].copy()))
        return out.numpy()

    for got in on_each_rank(4, rank):
        assert same(got, rows)


@pytest.mark.parametrize(("name", "op"), CASES)
def test_reduce_scatter(open_world: OpenWorld, name: str, op: str) -> None:
    open_world()
    dist.init_process_group()
    rows = inputs(name, op, 4, 4 * 5)
    blocks = reduced(rows, name, op).reshape(4, 5)

    def rank(r: int) -> np.ndarray:
        out = torch.zeros(5, dtype=name)
        source = torch.from_numpy(rows[r].copy())
        dist.reduce_scatter_tensor(out, source, op)
        assert same(source.numpy(), rows[r])
        return out.numpy()

    for got, want in zip(on_each_rank(4, rank), blocks, strict=True):
        assert same(got, want)


def test_all_gather_leaves_its_input(open_world: OpenWorld) -> None:
    open_world("sips2")
    dist.init_process_group()

    def rank(r: int) -> np.ndarray:
        mine, out = torch.full((3,), r, dtype="i8"), torch.zeros(6, dtype="i8")
        dist.all_gather_into_tensor(out, mine)
        mine.fill_(9)  # queued behind the collective, which has the old elements
        assert mine.tolist() == [9, 9, 9]
        return out.numpy()

    for got in on_each_rank(2, rank):
        assert got.tolist() == [0, 0, 0, 1, 1, 1]


def test_all_gather_into_the_tensor_that_holds_the_input(open_world: OpenWorld) -> None:
    open_world()
    dist.init_process_group()

    def rank(r: int) -> np.ndarray:
        out = torch.zeros(4, 3)
        out[r] = r + 1
        dist.all_gather_into_tensor(out, out[r])
        return out.numpy()

    for got in on_each_rank(4, rank):
        assert got.tolist() == [[i] * 3 for i in (1, 2, 3, 4)]


def test_views_that_are_not_contiguous(open_world: OpenWorld) -> None:
    open_world("sips2")
    dist.init_process_group()

    def rank(r: int) -> np.ndarray:
        t = torch.arange(12).view(3, 4)
        dist.all_reduce(t[:, ::2])
        column = torch.from_numpy(t.numpy().T[1])
        dist.all_reduce(column)
        column.wait()  # t does not know of it
        return t.numpy()

    want = np.arange(12).reshape(3, 4)
    want[:, ::2] *= 2
    want[:, 1] *= 2
    for got in on_each_rank(2, rank):
        assert got.tolist() == want.tolist()


def test_names_of_ops(open_world: OpenWorld) -> None:
    open_world("sips2")
    dist.init_process_group()

    def rank(r: int) -> np.ndarray:
        t = torch.tensor([r + 2])
        for op in ("SUM", ReduceOp.MAX, "Product", "mean", ReduceOp.AVG, "bor"):
            dist.all_reduce(t, op)
        return t.numpy()

    for got in on_each_rank(2, rank):  # 2+3 → 5 → 25 → 25 → 25
        assert got.tolist() == [25]


def test_rounding_is_that_of_the_algorithm(open_world: OpenWorld) -> None:
    """1 + 2048 rounds to 2048 in float16: the order of the additions shows, and float32 partial sums hide it."""
    rows = np.array([[1.0], [2048.0], [1.0], [1.0]], np.float16)

    def total(ccl: str) -> set[float]:
        open_world("default", ccl)
        dist.init_process_group()

        def rank(r: int) -> np.ndarray:
            t = torch.from_numpy(rows[r].copy())
            dist.all_reduce(t)
            return t.numpy()

        return {float(got[0]) for got in on_each_rank(4, rank)}

    # every order of rounded additions of the four numbers gives one of these
    assert total("defaults: {algorithm: ring}\n") <= {2048.0, 2050.0}
    assert total("defaults: {algorithm: ring, accumulate: f32}\n") == {2052.0}  # 2051 is halfway; even is 2052
    assert total("defaults: {algorithm: double_binary_tree, accumulate: f32}\n") == {2052.0}


# -- Work


def test_async_op_returns_a_work(open_world: OpenWorld) -> None:
    open_world("sips2")
    dist.init_process_group()

    def rank(r: int) -> np.ndarray:
        t = torch.ones(1000)
        work = dist.all_reduce(t, async_op=True)
        gathered, mine = torch.zeros(2), torch.full((1,), float(r))
        other = dist.all_gather_into_tensor(gathered, mine, async_op=True)
        third = dist.reduce_scatter_tensor(torch.zeros(1), torch.zeros(2), async_op=True)
        assert not work.is_completed()
        assert work.wait() is True and work.is_completed()
        assert other.wait(timeout=None) and third.wait() and third.is_completed()
        assert gathered.tolist() == [0, 1]
        return t.numpy()

    for got in on_each_rank(2, rank):
        assert (got == 2).all()


def test_a_work_may_be_forgotten(open_world: OpenWorld) -> None:
    world = open_world("sips2")
    dist.init_process_group()
    torch.multiprocessing.spawn(lambda r: dist.all_reduce(torch.ones(10), async_op=True) and None, nprocs=2)
    assert [c["collective"] for c in world.collectives()] == ["all_reduce"]


def test_the_log(open_world: OpenWorld) -> None:
    world = open_world("sips2", "defaults: {algorithm: ring}\n")
    dist.init_process_group()

    def rank(r: int) -> None:
        dist.all_reduce(torch.zeros(100, dtype="f64"))
        dist.reduce_scatter_tensor(torch.zeros(50), torch.zeros(100))

    torch.multiprocessing.spawn(rank, nprocs=2)
    first, second = world.collectives()
    assert (first["collective"], first["algorithm"], first["ranks"], first["bytes"]) == ("all_reduce", "ring", 2, 800)
    assert (second["collective"], second["bytes"]) == ("reduce_scatter_tensor", 400)
    assert first["end"] > first["start"] >= 0
    assert first["busbw"] == pytest.approx(first["algbw"])
    assert second["busbw"] == pytest.approx(second["algbw"] / 2)
    assert world.collectives(1) == [second]
    assert world.collectives(99) == []


# -- a single worker with shards


def sharded(open_world: OpenWorld, world_size: int, **policy: Any) -> torch.DPPolicy:
    open_world("default", f"defaults: {{world_size: {world_size}}}\n")
    dist.init_process_group()
    return torch.DPPolicy(**policy)


@pytest.mark.parametrize("pes", range(1, 9))
def test_columns_on_some_pes(open_world: OpenWorld, pes: int) -> None:
    world_size = pes if pes != 4 else 3  # 4 is the number of SIPs
    dp = sharded(open_world, world_size, pe="column_wise", num_cubes=1, num_pes=world_size)
    rows = inputs("int16", "sum", world_size)
    t = torch.zeros(1, world_size * N, dtype="i16", dp=dp)
    t.copy_(torch.from_numpy(rows.reshape(1, -1)))
    dist.all_reduce(t)
    assert same(t.numpy(), np.tile(rows.sum(axis=0, dtype=np.int16), world_size)[np.newaxis])


def test_rows_on_pes(open_world: OpenWorld) -> None:
    dp = sharded(open_world, 8, pe="row_wise", num_cubes=1)
    array = np.arange(16 * 3).reshape(16, 3)
    t = torch.zeros(16, 3, dtype="i64", dp=dp).copy_(torch.from_numpy(array))
    dist.all_reduce(t, "max")
    assert same(t.numpy(), np.tile(array[-2:], (8, 1)))


def test_columns_on_cubes_and_rows_on_pes(open_world: OpenWorld) -> None:
    dp = sharded(open_world, 6, cube="column_wise", pe="row_wise", num_cubes=2, num_pes=3)
    array = np.arange(6 * 8).reshape(6, 8)
    t = torch.zeros(6, 8, dtype="i64", dp=dp).copy_(torch.from_numpy(array))
    dist.all_reduce(t)
    total = array.reshape(3, 2, 2, 4).sum(axis=(0, 2))
    assert same(t.numpy(), np.tile(total, (3, 2)))


def test_replicas(open_world: OpenWorld) -> None:
    dp = sharded(open_world, 8, cube="replicate", pe="replicate", num_cubes=1)
    t = torch.zeros(1, 5, dp=dp)
    t.fill_(3)
    dist.all_reduce(t)
    assert t.tolist() == [[24] * 5]


def test_replicas_on_cubes_of_columns(open_world: OpenWorld) -> None:
    dp = sharded(open_world, 16, cube="replicate", pe="column_wise", num_cubes=2)
    t = torch.zeros(1, 8, dp=dp).copy_(torch.arange(8))
    dist.all_reduce(t)
    assert t.tolist() == [[56] * 8]  # two replicas of 0 + 1 + … + 7


def test_gather_of_shards(open_world: OpenWorld) -> None:
    dp = sharded(open_world, 2, pe="column_wise", num_cubes=1, num_pes=2)
    mine = torch.zeros(1, 4, dp=dp).copy_(torch.arange(4))
    out = torch.zeros(1, 8, dp=dp)
    dist.all_gather_into_tensor(out, mine)
    assert out.tolist() == [[0, 1, 2, 3, 0, 1, 2, 3]]
    with pytest.raises(NotImplementedError, match=r"reduce_scatter_tensor"):
        dist.reduce_scatter_tensor(mine, out)


def test_empty_shards(open_world: OpenWorld) -> None:
    dp = sharded(open_world, 8, pe="column_wise", num_cubes=1)
    t = torch.zeros(1, 0, dp=dp)
    dist.all_reduce(t)
    assert t.numpy().shape == (1, 0)


def test_shards_that_are_not_the_world_size(open_world: OpenWorld) -> None:
    dp = sharded(open_world, 8, pe="column_wise", num_cubes=1, num_pes=7)
    with pytest.raises(ValueError, match=r"the tensor has 7 shards but the world size is 8"):
        dist.all_reduce(torch.zeros(1, 14, dp=dp))
    with pytest.raises(ValueError, match=r"the tensor has 1 shards? but the world size is 8"):
        dist.all_reduce(torch.zeros(1, 14))
    with pytest.raises(ValueError, match=r"shards differ in shape: shard 7 is \[1 1\], shard 0 is \[1 2\]"):
        dist.all_reduce(torch.zeros(1, 15, dp=torch.DPPolicy(pe="column_wise", num_cubes=1)))


def test_views_have_no_policy(open_world: OpenWorld) -> None:
    dp = sharded(open_world, 8, pe="column_wise", num_cubes=1)
    t = torch.zeros(1, 8, dp=dp)
    with pytest.raises(ValueError, match=r"1 shards? but the world size is 8"):
        dist.all_reduce(t[:, :])


def test_world_size_that_no_sip_holds(open_world: OpenWorld) -> None:
    open_world("default", "defaults: {world_size: 129}\n")
    with pytest.raises(ValueError, match=r"world size 129 does not fit.*SIPs \(4\).*has 128"):
        dist.init_process_group()
    assert not dist.is_initialized()


def test_places_in_code_that_the_program_makes_as_it_goes(
    open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codes that are gone give their places in memory to others, and none its line."""
    monkeypatch.setattr("torchemu.runtime.world._SITES", 7)

    def worker(rank: int) -> None:
        for line in range(30 + (rank == 0)):
            exec(compile("\n" * line + "dist.all_reduce(t)", "made", "exec"), {"dist": dist, "t": torch.ones(2)})
        dist.barrier()

    open_world()
    dist.init_process_group(backend="ahbm")
    with pytest.raises(torch.multiprocessing.SpawnException, match=r"calls all_reduce.* at made:31 in <module>"):
        torch.multiprocessing.spawn(worker, nprocs=4)
