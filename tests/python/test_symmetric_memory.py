"""Symmetric memory, against NumPy; what its use costs, against messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR, failures, on_ranks

import torchemu as torch
import torchemu.distributed as dist
import torchemu.distributed._symmetric_memory as symm_mem
from torchemu import ops
from torchemu._C._distributed_c10d import _SymmetricMemory
from torchemu._waiting import host_time, reach
from torchemu.errors import DeadlockError

MILLISECOND = 10**9
SIZES = [1, 2, 3, 8, 64]
FLOATS = [torch.float32, torch.bfloat16, torch.float16]


def symmetric(values: Any, dtype: Any = None) -> tuple[torch.Tensor, _SymmetricMemory]:
    """A symmetric tensor with these elements, and its handle."""
    given = torch.tensor(values, dtype=dtype)
    t = symm_mem.empty(given.shape, dtype=given.dtype)
    t.copy_(given)
    return t, symm_mem.rendezvous(t, "0")


def numbers(rank: int, *shape: int) -> np.ndarray:
    """Small whole numbers, other ones on each rank: their sums are exact in every order."""
    return np.random.default_rng(rank).integers(-3, 4, shape).astype(np.float32)


def on_group(n: int, fn: Callable[..., Any], *args: Any) -> list[Any]:
    """fn on the ranks of a default group."""

    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        return fn(rank, *args)

    return on_ranks(n, program)


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world(SIXTY_FOUR)


# -- the peers' memory


@pytest.mark.parametrize("n", SIZES)
def test_every_rank_reads_and_writes_its_neighbours_memory(n: int) -> None:
    def program(rank: int) -> None:
        t, hdl = symmetric(numbers(rank, 3, 5))
        right, left = (rank + 1) % n, (rank - 1) % n
        hdl.barrier()
        theirs = hdl.get_buffer(right, (3, 5), torch.float32)
        np.testing.assert_array_equal(theirs.clone().numpy(), numbers(right, 3, 5))
        np.testing.assert_array_equal((theirs * 2 + t).numpy(), numbers(right, 3, 5) * 2 + numbers(rank, 3, 5))
        hdl.barrier()
        theirs[1].copy_(torch.full((5,), float(rank)))
        theirs[2] += 1
        hdl.barrier()
        want = numbers(rank, 3, 5)
        want[1], want[2] = left, want[2] + 1
        np.testing.assert_array_equal(t.numpy(), want)

    on_group(n, program)


def test_views_of_other_types_and_places() -> None:
    def program(rank: int) -> None:
        t, hdl = symmetric(np.arange(8) + 10 * rank, torch.int32)
        hdl.barrier()
        peer = 1 - rank
        want = (np.arange(8) + 10 * peer).astype(np.int32)
        np.testing.assert_array_equal(hdl.get_buffer(peer, (2, 2), torch.int32, 3).numpy(), want[3:7].reshape(2, 2))
        np.testing.assert_array_equal(hdl.get_buffer(peer, [4], torch.int64).numpy(), want.view(np.int64))
        np.testing.assert_array_equal(hdl.get_remote_tensor(peer, (8,), torch.int32).numpy(), want)
        assert hdl.get_buffer(peer, (0,), torch.int32, 8).numel() == 0
        out = torch.zeros(3, dtype=torch.int32)
        symm_mem.get(out, hdl, peer, offset=5)
        np.testing.assert_array_equal(out.numpy(), want[5:])
        for sizes, offset, bytes_ in (((9,), 0, 36), ((8,), 1, 36), ((2, 5), 0, 40)):
            with pytest.raises(RuntimeError, match=rf"get_buffer: the requested size \({bytes_} bytes\) exceeds .*32"):
                hdl.get_buffer(peer, sizes, torch.int32, offset)
        for wrong in (-1, 2):
            with pytest.raises(RuntimeError, match=f"there is no rank {wrong}"):
                hdl.get_buffer(wrong, (1,), torch.int32)
        assert symm_mem.is_symm_mem_tensor(t) and symm_mem.is_symm_mem_tensor(hdl.get_buffer(peer, (1,), torch.int32))
        assert not symm_mem.is_symm_mem_tensor(out)

    on_group(2, program)


def test_what_a_handle_says() -> None:
    def program(rank: int) -> tuple[list[int], list[int]]:
        t, hdl = symmetric(np.zeros((4, 4)), torch.float32)
        assert (hdl.rank, hdl.world_size, hdl.buffer_size, hdl.signal_pad_size) == (rank, 3, 64, 9216)
        assert hdl.multicast_ptr == 0 and hdl.device == t.device
        assert not _SymmetricMemory.has_multicast_support("cuda", 0)
        assert hdl.buffer_ptrs[rank] == t.data_ptr()
        assert symm_mem.rendezvous(t[1:], "0") is hdl is symm_mem.rendezvous(t, dist.group.WORLD)
        hdl.get_signal_pad((rank + 1) % 3, (2,), torch.uint32, 5).fill_(rank)
        hdl.barrier()
        pad = hdl.get_signal_pad(rank)
        assert pad.numel() * pad.itemsize == 9216
        assert pad[4:8].tolist() == [0, (rank - 1) % 3, (rank - 1) % 3, 0]
        with pytest.raises(RuntimeError, match=r"get_signal_pad: the requested size \(9220 bytes\) exceeds"):
            hdl.get_signal_pad(0, (2305,))
        return hdl.buffer_ptrs, hdl.signal_pad_ptrs

    first, *others = on_group(3, program)
    assert all(other == first for other in others)
    assert len({*first[0], *first[1]}) == 6


def test_groups_of_some_ranks() -> None:
    def program(rank: int) -> None:
        pairs = [dist.new_group([0, 2]), dist.new_group([1, 3])]
        mine = pairs[rank % 2]
        t = symm_mem.empty(2, dtype=torch.float32).fill_(rank)
        hdl = symm_mem.rendezvous(t, mine)
        hdl.barrier()
        assert (hdl.rank, hdl.world_size) == (rank // 2, 2)
        assert hdl.get_buffer(1 - hdl.rank, (2,), torch.float32).tolist() == [(rank + 2) % 4] * 2
        total = ops.symm_mem.one_shot_all_reduce(t, "sum", mine.group_name)
        assert total.tolist() == [rank + (rank + 2) % 4] * 2

    on_group(4, program)


# -- order


def test_signals_hand_elements_on() -> None:
    """Each rank waits for its left neighbour's signal, adds to what came and hands it on."""

    def program(rank: int) -> float:
        t, hdl = symmetric([0.0])
        if rank:
            hdl.wait_signal(rank - 1)
        if rank < 4:
            hdl.get_buffer(rank + 1, (1,), torch.float32).copy_(t + rank + 1)
            hdl.put_signal(rank + 1)
        return float(t.item())

    assert on_group(5, program) == [0, 1, 3, 6, 10]


def test_signals_of_channels_and_of_several_rounds() -> None:
    def program(rank: int) -> list[float]:
        t, hdl = symmetric([0.0])
        seen = []
        peer = 1 - rank
        for round_ in range(4):
            if rank == 0:
                hdl.get_buffer(1, (1,), torch.float32).fill_(round_)
                hdl.put_signal(1, channel=round_)
                hdl.wait_signal(1, channel=0)
            else:
                hdl.wait_signal(peer, channel=round_)
                seen.append(t.item())
                hdl.put_signal(0)
        return seen

    assert on_group(2, program) == [[], [0, 1, 2, 3]]


def test_a_barrier_is_of_the_stream() -> None:
    """The host goes on when all have called it; the device is held up until it has ended."""

    def program(rank: int) -> tuple[int, int]:
        _, hdl = symmetric([0.0])
        start = host_time()
        if rank == 1:
            reach(MILLISECOND)
        hdl.barrier()
        called = host_time() - start
        torch.ahbm.synchronize()
        return called, host_time() - start

    for called, ended in on_group(2, program):
        assert MILLISECOND <= called < ended


def test_barriers_of_channels_have_their_own_order() -> None:
    """Rank 0 passes channel 1 first, rank 1 channel 0: neither meets the other's, and each is there later."""

    def program(rank: int) -> None:
        _, hdl = symmetric([0.0])
        with pytest.raises(RuntimeError, match=f"barrier .channel {1 - rank}. timed out after 1 ms"):
            hdl.barrier(channel=1 - rank, timeout_ms=1)
        hdl.barrier(channel=rank, timeout_ms=1)

    on_group(2, program)


def test_timeouts() -> None:
    def program(rank: int) -> None:
        _, hdl = symmetric([0.0])
        if rank == 0:
            start = host_time()
            with pytest.raises(RuntimeError, match=r"SymmetricMemory: barrier \(channel 2\) timed out after 5 ms"):
                hdl.barrier(channel=2, timeout_ms=5)
            assert 5 * MILLISECOND <= host_time() - start < 6 * MILLISECOND
        else:
            reach(20 * MILLISECOND)
            hdl.barrier(channel=2)
        hdl.barrier(timeout_ms=50)

    on_group(2, program)


def test_a_signal_that_nobody_sends_is_a_deadlock() -> None:
    def program(rank: int) -> None:
        dist.init_process_group()
        _, hdl = symmetric([0.0])
        if rank == 1:
            hdl.wait_signal(0, channel=3)

    found = failures(2, program)
    assert set(found) == {1} and isinstance(found[1], DeadlockError)
    assert "recv from rank 0" in str(found[1]) and "signals" in str(found[1])


def test_misuse_of_channels_and_ranks() -> None:
    def program(rank: int) -> None:
        _, hdl = symmetric([0.0])
        for call in (
            hdl.barrier,
            lambda channel: hdl.put_signal(0, channel),
            lambda channel: hdl.wait_signal(0, channel),
        ):
            with pytest.raises(RuntimeError, match=r"channel for barrier.* must be greater than 0 \(got -1\)"):
                call(-1)
            with pytest.raises(RuntimeError, match=r"The maximum supported channel for .* is 1151 \(got 1152\)"):
                call(1152)
        with pytest.raises(RuntimeError, match="put_signal: there is no rank 2: the group has 2"):
            hdl.put_signal(2)

    on_group(2, program)


# -- collectives


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


# -- cost


@pytest.mark.parametrize("nbytes", [4, 4096, 1 << 22])
def test_an_access_costs_what_a_message_costs(open_world: OpenWorld, nbytes: int) -> None:
    """A copy from a peer and a copy to it take, alone on the fabric, just as long as sends the same way."""
    world = open_world("default")

    def program(rank: int) -> None:
        t, hdl = symmetric(np.zeros(nbytes // 4), torch.float32)
        local = torch.ones(nbytes // 4)
        theirs = hdl.get_buffer(1 - rank, t.shape, t.dtype)
        torch.ahbm.synchronize()
        dist.barrier()
        if rank == 0:
            local.copy_(theirs)
            theirs.copy_(local)
            torch.ahbm.synchronize()
        dist.barrier()
        if rank == 0:
            dist.recv(t, 1)
            dist.send(t, 1)
        else:
            dist.send(t, 0)
            dist.recv(t, 0)

    on_group(2, program)
    took = {name: [c["end"] - c["start"] for c in world.collectives() if c["collective"] == name] for name in NAMES}
    assert [*took["get"], *took["put"]] == took["send/recv"]
    assert all(c["bytes"] == nbytes for c in world.collectives() if c["collective"] in NAMES)


NAMES = ("get", "put", "send/recv")


def test_arithmetic_on_a_peers_memory_is_a_message_and_a_kernel(
    open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel is charged for the rank's own memory, the message for the peer's."""
    world = open_world("default")
    kernels: list[tuple[str, int]] = []

    def launch(name: str, nbytes: int, *_: Any) -> None:
        kernels.append((name, nbytes))

    def program(rank: int) -> None:
        _, hdl = symmetric(np.zeros(100), torch.float32)
        theirs, local, out = hdl.get_buffer(1, (100,), torch.float32), torch.zeros(100), torch.empty(100)
        hdl.barrier()
        if rank == 0:
            monkeypatch.setattr("torchemu._tensor.kernels.launch", launch)
            torch.mul(theirs, local, out=out)
            theirs[:40].add_(local[:40])
            theirs[20:30].copy_(theirs[40:50])
            torch.ahbm.synchronize()
            monkeypatch.undo()
        hdl.barrier()

    on_group(2, program)
    assert kernels == [("mul", 800), ("add", 160)]
    messages = [(c["collective"], c["bytes"]) for c in world.collectives() if c["collective"] in NAMES]
    assert messages == [("get", 400), ("get", 160), ("put", 160), ("get", 40), ("put", 40)]


# -- misuse


def test_misuse_of_empty_and_rendezvous() -> None:
    def program(rank: int) -> None:
        with pytest.raises(RuntimeError, match="SymmetricMemory does not support device type cpu"):
            symm_mem.empty(4, device="cpu")
        with pytest.raises(RuntimeError, match="is the tensor allocated from SymmetricMemory"):
            symm_mem.rendezvous(torch.ones(2), "0")
        t = symm_mem.empty((2, 3), dtype=torch.int8)
        assert (t.shape, t.dtype) == ((2, 3), torch.int8)
        with pytest.raises(TypeError, match="rendezvous: unsupported group type: <class 'int'>"):
            symm_mem.rendezvous(t, 3)  # type: ignore[arg-type]
        with pytest.raises(RuntimeError, match="Could not resolve the process group registered under the name 'none'"):
            symm_mem.rendezvous(t, "none")
        uneven = symm_mem.empty(1 + rank)
        with pytest.raises(RuntimeError, match="rank 1 has memory of 8 bytes and rank 0 of 4"):
            symm_mem.rendezvous(uneven, "0")

    on_group(2, program)


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
            (lambda: ops.symm_mem.all_to_all_vdev_2d(t), NotImplementedError, "use all_to_all_vdev"),
            (lambda: symm_mem.get_mem_pool("cuda"), NotImplementedError, "use _symmetric_memory.empty"),
        ]
        for call, kind, text in cases:
            with pytest.raises(kind, match=text):
                call()

    one_shot = ops.symm_mem.one_shot_all_reduce
    on_group(2, program)


def test_backends() -> None:
    def program(rank: int) -> None:
        assert not symm_mem.is_nvshmem_available()
        assert symm_mem.get_backend("cuda") == "CUDA" and symm_mem.get_backend("cpu") is None
        with pytest.raises(RuntimeError, match="SymmetricMemory does not find allocation backend FOO"):
            symm_mem.set_backend("FOO")
        t, hdl = symmetric([0.0, 0.0])
        with pytest.raises(ValueError, match="put_signal: unsupported backend: CUDA"):
            symm_mem.put_signal(t, hdl, 0)
        with pytest.raises(RuntimeError, match="cannot change its backend to NCCL"):
            symm_mem.set_backend("NCCL")

    on_group(1, program)


def test_put_and_signal_of_nccl() -> None:
    def program(rank: int) -> list[float]:
        symm_mem.set_backend("NCCL")
        t, hdl = symmetric([0.0, 0.0])
        if rank == 0:
            symm_mem.put_signal(torch.tensor([1.0, 2.0]), hdl, 1)
        else:
            symm_mem.wait_signal(hdl, 0)
        found: list[float] = t.tolist()
        return found

    assert on_group(2, program) == [[0, 0], [1, 2]]


def test_signal_pads_of_another_size() -> None:
    def program(rank: int) -> None:
        symm_mem.set_signal_pad_size(64)
        assert symm_mem.get_signal_pad_size() == 64
        _, hdl = symmetric([0.0])
        assert hdl.signal_pad_size == 64
        with pytest.raises(RuntimeError, match=r"The maximum supported channel .* is 7 \(got 8\)"):
            hdl.barrier(8)
        with pytest.raises(TypeError, match="-5 is no number of bytes"):
            symm_mem.set_signal_pad_size(-5)

    on_group(2, program)
