"""The collectives of torch.ops.symm_mem, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR
from symmetric import SIZES, numbers, on_group, symmetric

import torchemu as torch
import torchemu.distributed._symmetric_memory as symm_mem
from torchemu import ops

FLOATS = [torch.float32, torch.bfloat16, torch.float16]


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world(SIXTY_FOUR)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", FLOATS, ids=str)
def test_all_reduces(n: int, kind: Any) -> None:
    want = sum(numbers(r, 4, 3) for r in range(n))

    def program(rank: int) -> None:
        own = numbers(rank, 4, 3)
        t, _ = symmetric(own, kind)
        one = ops.symm_mem.one_shot_all_reduce(t, "sum", "0")
        np.testing.assert_array_equal(one.float().numpy(), want)
        np.testing.assert_array_equal(t.float().numpy(), own)
        local = torch.tensor(own[:2], dtype=kind)
        two = ops.symm_mem.one_shot_all_reduce_copy(t, local, "sum", "0")
        np.testing.assert_array_equal(two.float().numpy(), want[:2])
        out = torch.empty(4, 3, dtype=kind)
        assert ops.symm_mem.two_shot_all_reduce_out.default(t, "sum", "0", out) is out
        np.testing.assert_array_equal(out.float().numpy(), want)
        assert ops.symm_mem.two_shot_all_reduce_(t, "sum", "0") is t
        np.testing.assert_array_equal(t.float().numpy(), want)

    on_group(n, program)


@pytest.mark.parametrize("n", SIZES)
def test_parts(n: int) -> None:
    everybody = [numbers(r, 2 * n, 3 * n) for r in range(n)]
    total = sum(everybody)

    def program(rank: int) -> None:
        t, _ = symmetric(everybody[rank])
        rows, columns = torch.empty(2, 3 * n), torch.empty(2 * n, 3)
        ops.symm_mem.reduce_scatter_out(t, "0", False, rows)
        np.testing.assert_array_equal(rows.numpy(), total[2 * rank : 2 * rank + 2])
        ops.symm_mem.reduce_scatter_out(t, "0", True, columns)
        np.testing.assert_array_equal(columns.numpy(), total[:, 3 * rank : 3 * rank + 3])
        part = ops.symm_mem._low_contention_reduce_scatter(t, "sum", "0")
        np.testing.assert_array_equal(part.numpy(), total[2 * rank : 2 * rank + 2])
        whole = ops.symm_mem._low_contention_all_gather(t, "0")
        np.testing.assert_array_equal(whole.numpy(), np.concatenate(everybody))
        for peer, theirs in enumerate(ops.symm_mem.get_remote_tensors(t, "0")):
            np.testing.assert_array_equal(theirs.numpy(), everybody[peer])

    on_group(n, program)


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_tiles(n: int) -> None:
    total = sum(numbers(r, 6, 6) for r in range(n))

    def program(rank: int) -> None:
        t, hdl = symmetric(numbers(rank, 6, 6))
        out = torch.zeros(3, 3)
        ops.symm_mem.tile_reduce(t[:3, 3:], out, n - 1, "0")
        np.testing.assert_array_equal(out.numpy(), total[:3, 3:] if rank == n - 1 else np.zeros((3, 3)))
        tiles = [t[:3, :3], t[3:, 3:]]
        ops.symm_mem.multi_root_tile_reduce(tiles, out, [0, n - 1], "0")
        if n > 1 and rank == 0:
            np.testing.assert_array_equal(out.numpy(), total[:3, :3])
        if rank == n - 1:
            np.testing.assert_array_equal(out.numpy(), total[3:, 3:])
        with pytest.raises(RuntimeError, match=rf"root must be in \[0, world_size\), not {n}"):
            ops.symm_mem.tile_reduce(t, t, n, "0")
        hdl.barrier()

    on_group(n, program)


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_with_products(n: int) -> None:
    shards = [numbers(r, 2, 4) for r in range(n)]
    b, c = numbers(100, 4, 5), numbers(101, 4, n)

    def program(rank: int) -> None:
        a, both = ops.symm_mem.fused_all_gather_matmul(
            torch.tensor(shards[rank]), [torch.tensor(b), torch.tensor(c)], 0, "0"
        )
        np.testing.assert_array_equal(a.numpy(), np.concatenate(shards))
        np.testing.assert_array_equal(both[0].numpy(), np.concatenate(shards) @ b)
        np.testing.assert_array_equal(both[1].numpy(), np.concatenate(shards) @ c)
        part = ops.symm_mem.fused_matmul_reduce_scatter(torch.tensor(shards[rank]), torch.tensor(c), "sum", 1, "0")
        np.testing.assert_array_equal(part.numpy(), sum(s @ c for s in shards)[:, rank : rank + 1])

    on_group(n, program)


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_exchange_of_sizes_on_the_device(n: int) -> None:
    counts = np.random.default_rng(n).integers(0, 4, (n, n))
    rows = [[[100.0 * s + 10 * d + i] * 2 for d in range(n) for i in range(counts[s, d])] for s in range(n)]

    def program(rank: int) -> None:
        given = torch.tensor(rows[rank]).reshape(-1, 2)
        out = torch.full((4 * n, 2), -1.0)
        about = torch.zeros(2, n, dtype=torch.int64)
        ops.symm_mem.all_to_all_vdev(given, out, torch.tensor(counts[rank]), about, "0")
        taken = counts[:, rank]
        want = [[100.0 * s + 10 * rank + i] * 2 for s in range(n) for i in range(taken[s])]
        np.testing.assert_array_equal(out.numpy()[: len(want)], np.array(want).reshape(-1, 2))
        assert (out.numpy()[len(want) :] == -1).all()
        assert about.tolist() == [taken.tolist(), [int(taken[:s].sum()) for s in range(n)]]

    on_group(n, program)


@pytest.mark.parametrize("align", [None, 1, 3, 8])
@pytest.mark.parametrize("experts", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_exchange_with_experts(n: int, experts: int, align: int | None) -> None:
    """Row i that rank s has for expert e of rank d is 1000 s + 100 d + 10 e + i. What comes goes back again."""
    counts = np.random.default_rng([n, experts]).integers(0, 4, (n, n, experts))
    counts[:, 0, 0] = 0  # nothing for one expert
    room = 4 * n * experts + 9 * experts

    def rows(s: int, d: int, e: int) -> list[float]:
        return [1000.0 * s + 100 * d + 10 * e + i for i in range(counts[s, d, e])]

    def program(rank: int) -> None:
        given = [row for d in range(n) for e in range(experts) for row in rows(rank, d, e)]
        out = torch.full((room, 1), -1.0)
        about = torch.zeros(2, n * experts, dtype=torch.int64)
        splits = torch.tensor(counts[rank].reshape(-1))
        ops.symm_mem.all_to_all_vdev_2d(torch.tensor(given).reshape(-1, 1), out, splits, about, "0", align)
        want, sizes, starts, step = np.full(room, -1.0), [], [], align or 1
        begin = 0
        for e in range(experts):
            at = begin
            for block in (rows(s, rank, e) for s in range(n)):
                sizes.append(len(block))
                starts.append(at)
                want[at : at + len(block)] = block
                at += len(block)
            begin = max(-(-at // step) * step, begin + step)  # never without rows
        np.testing.assert_array_equal(out.flatten().numpy(), want)
        assert about.tolist() == [sizes, starts]
        back, told = torch.full((len(given) + 1, 1), -2.0), torch.zeros(2, n * experts, dtype=torch.int64)
        ops.symm_mem.all_to_all_vdev_2d_offset(out, back, about, told, "0")
        assert back.flatten().tolist() == [*given, -2.0]
        counted = counts[rank].reshape(-1)
        assert told.tolist() == [counted.tolist(), (np.cumsum(counted) - counted).tolist()]

    on_group(n, program)


def test_misuse_of_exchanges() -> None:
    def program(rank: int) -> None:
        two, about = torch.tensor([1, 1]), torch.zeros(2, 2, dtype=torch.int64)
        for exchange in (ops.symm_mem.all_to_all_vdev, ops.symm_mem.all_to_all_vdev_2d):
            with pytest.raises(RuntimeError, match="out has 1 rows, but 2 come"):
                exchange(torch.ones(2, 1), torch.ones(1, 1), two, about, "0")
            with pytest.raises(RuntimeError, match="the input has 1 rows, but 2 are to be sent"):
                exchange(torch.ones(1, 1), torch.ones(2, 1), two, about, "0")
        with pytest.raises(RuntimeError, match="3 splits are not for 2 ranks"):
            ops.symm_mem.all_to_all_vdev_2d(torch.ones(2, 1), torch.ones(2, 1), torch.tensor([1, 1, 0]), about, "0")
        for align in (0, -1):
            with pytest.raises(RuntimeError, match="major_align must be positive"):
                ops.symm_mem.all_to_all_vdev_2d(torch.ones(2, 1), torch.ones(2, 1), two, about, "0", align)
        back = ops.symm_mem.all_to_all_vdev_2d_offset
        with pytest.raises(RuntimeError, match="in_splits_offsets must be 2D with 2 rows"):
            back(torch.ones(2, 1), torch.ones(2, 1), two, about, "0")
        with pytest.raises(RuntimeError, match="the input has 2 rows, but 1 are sent from 2 on"):
            back(torch.ones(2, 1), torch.ones(2, 1), torch.tensor([[1, 1], [0, 2]]), about, "0")

    on_group(2, program)


def test_words() -> None:
    def program(rank: int) -> None:
        t = torch.zeros(6, dtype=torch.uint32)
        ops.symm_mem.memset32_(t, 1, 7, 3)
        ops.symm_mem.stream_write_value32_(t, 5, 2**32 - 1)
        assert t.tolist() == [0, 7, 7, 7, 0, 2**32 - 1]
        for args, text in {
            (-1, 1): "offset must be greater than or equal to 0",
            (6, 1): "offset",
            (0, -1): "val must be in the range",
            (0, 2**32): "val must be in the range",
        }.items():
            with pytest.raises(RuntimeError, match=f"symm_mem::stream_write_value32_: {text}"):
                ops.symm_mem.stream_write_value32_(t, *args)
        with pytest.raises(RuntimeError, match=r"count must be a positive integer \(got 0\)"):
            ops.symm_mem.memset32_(t, 0, 1, 0)
        with pytest.raises(RuntimeError, match="must be a flat, contiguous uint32 tensor"):
            ops.symm_mem.memset32_(t.view(2, 3), 0, 1, 1)

    on_group(1, program)


def test_misuse_of_collectives() -> None:
    def program(rank: int) -> None:
        t, _ = symmetric(np.zeros((2, 2)), torch.float32)
        whole, _ = symmetric([1, 2], torch.int32)
        cases: list[tuple[Callable[[], Any], type[Exception], str]] = [
            (lambda: one_shot(torch.ones(2), "sum", "0"), RuntimeError, "must be allocated with empty_strided_p2p"),
            (lambda: one_shot(t, "max", "0"), RuntimeError, "one_shot_all_reduce: only sum is supported for now"),
            (lambda: one_shot(t.t(), "sum", "0"), RuntimeError, "one_shot_all_reduce: input must be contiguous"),
            (lambda: one_shot(whole, "sum", "0"), NotImplementedError, "not implemented for 'Int'"),
            (
                lambda: ops.symm_mem.one_shot_all_reduce_out(t, "sum", "0", t[0]),
                RuntimeError,
                "input/output size mismatch",
            ),
            (lambda: ops.symm_mem.multimem_all_reduce_(t, "sum", "0"), RuntimeError, "multicast support is required"),
            (lambda: ops.symm_mem.multimem_all_gather_out(t, "0", t), RuntimeError, "must have multicast support"),
            (lambda: ops.symm_mem.nvshmem_put(t, 0), NotImplementedError, "there is no NVSHMEM"),
            (lambda: symm_mem.get_mem_pool("cpu"), RuntimeError, "does not support device type cpu"),
        ]
        for call, kind, text in cases:
            with pytest.raises(kind, match=text):
                call()

    one_shot = ops.symm_mem.one_shot_all_reduce
    on_group(2, program)
