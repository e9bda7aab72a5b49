"""Symmetric memory, against NumPy; what its use costs, against messages."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR, failures
from symmetric import SIZES, numbers, on_group, symmetric

import torchemu as torch
import torchemu.distributed as dist
import torchemu.distributed._symmetric_memory as symm_mem
from torchemu import ops
from torchemu.errors import DeadlockError
from torchemu.runtime.waiting import host_time, reach

pytestmark = pytest.mark.shows("PyTorch: symmetric memory")

MILLISECOND = 10**9


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
        for sizes, offset, bytes_ in (((9,), 0, 36), ((8,), 1, 36), ((2, 5), 0, 40)):
            with pytest.raises(RuntimeError, match=rf"get_buffer: the requested size \({bytes_} bytes\) exceeds .*32"):
                hdl.get_buffer(peer, sizes, torch.int32, offset)
        for wrong in (-1, 2):
            with pytest.raises(RuntimeError, match=f"there is no rank {wrong}"):
                hdl.get_buffer(wrong, (1,), torch.int32)
        assert symm_mem.is_symm_mem_tensor(t) and symm_mem.is_symm_mem_tensor(hdl.get_buffer(peer, (1,), torch.int32))
        assert not symm_mem.is_symm_mem_tensor(torch.zeros(3))

    on_group(2, program)


def test_what_a_handle_says() -> None:
    def program(rank: int) -> tuple[list[int], list[int]]:
        t, hdl = symmetric(np.zeros((4, 4)), torch.float32)
        assert (hdl.rank, hdl.world_size, hdl.buffer_size, hdl.signal_pad_size) == (rank, 3, 64, 9216)
        assert hdl.multicast_ptr == 0 and hdl.device == t.device
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


def test_memory_that_nobody_uses_any_more_is_free() -> None:
    kept: list[Any] = []

    def program(rank: int) -> None:
        for _ in range(3):
            t, hdl = symmetric(np.zeros(1000), torch.float32)
            hdl.barrier()
            hdl.get_buffer((rank + 1) % 2, (1000,), torch.float32).sum()
            hdl.barrier()
            kept.append(weakref.ref(t._storage))
        del t, hdl

    on_group(2, program)
    gc.collect()
    assert len(kept) == 6 and not any(storage() for storage in kept)


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


@pytest.mark.parametrize("seed", range(8))
def test_order_does_not_depend_on_who_runs_when(open_world: OpenWorld, seed: int) -> None:
    """A ring of partial sums, written into neighbours' memory between barriers, under random schedules of ranks."""
    n = 6
    world = open_world(SIXTY_FOUR)
    world.schedule, world.seed = "random", seed

    def program(rank: int) -> list[float]:
        t, hdl = symmetric([float(rank), 0.0])
        right = hdl.get_buffer((rank + 1) % n, (2,), torch.float32)
        hdl.barrier()
        total = t[:1].clone()
        for _ in range(n - 1):
            right[1:].copy_(t[:1])
            hdl.barrier()
            t[:1].copy_(t[1:])
            total += t[:1]
            hdl.barrier()
        dist.all_reduce(t)
        hdl.barrier()
        return [*total.tolist(), *hdl.get_buffer(0, (1,), torch.float32).tolist()]

    assert on_group(n, program) == [[15, 15]] * n


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


@pytest.mark.parametrize("signals", [False, True])
def test_order_does_not_wait_for_what_the_stream_does_not(signals: bool) -> None:
    """Rank 1 joins a collective that rank 0's stream does not wait for only after the two have met."""

    def program(rank: int) -> list[float]:
        t, handle = symmetric([rank + 1.0] * 3)

        def meet() -> None:
            if not signals:
                handle.barrier()
            elif rank == 0:
                handle.put_signal(1)
            else:
                handle.wait_signal(0)

        handle.barrier()
        if rank == 0:
            work = dist.all_reduce(t, async_op=True)
            meet()
            work.wait()
        else:
            meet()
            dist.all_reduce(t)
        handle.barrier()
        assert handle.get_buffer(1 - rank, (3,), torch.float32).tolist() == [3.0] * 3
        return t.tolist()

    assert on_group(2, program) == [[3.0] * 3] * 2


def test_a_barrier_waits_for_what_the_stream_waits_for() -> None:
    """As on a device: rank 0's stream gets to the barrier only when rank 1 has joined."""

    def program(rank: int) -> None:
        t, handle = symmetric([1.0])
        if rank == 0:
            dist.all_reduce(t)
        handle.barrier()
        dist.all_reduce(t)

    def main(rank: int) -> None:
        dist.init_process_group("nccl")
        program(rank)

    text = str(failures(2, main)[0])
    assert "rank 0 waits for all_reduce of 1 float32 element" in text and "rank 1 has not joined it" in text


def test_what_reads_or_writes_symmetric_memory_is_not_put_off() -> None:
    """Rank 0 multiplies its memory with a sum that rank 1 joins later, and by then rank 1 has written there."""

    def program(rank: int) -> Any:
        t, handle = symmetric([rank + 1.0] * 2)
        total = torch.tensor([rank + 10.0] * 2)
        if rank == 1:
            handle.wait_signal(0)
            handle.get_buffer(0, (2,), torch.float32).fill_(7)
            dist.all_reduce(total)
            return None
        main, side = torch.cuda.current_stream(), torch.cuda.Stream()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            dist.all_reduce(total)
            product = t * total
        handle.put_signal(1)
        main.wait_stream(side)
        t.add_(total)
        return product.tolist(), t.tolist()

    assert on_group(2, program)[0] == ([21.0] * 2, [28.0] * 2)


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

    def launch(_context: Any, name: str, nbytes: int, *_: Any) -> None:
        kernels.append((name, nbytes))

    def program(rank: int) -> None:
        _, hdl = symmetric(np.zeros(100), torch.float32)
        theirs, local, out = hdl.get_buffer(1, (100,), torch.float32), torch.zeros(100), torch.empty(100)
        hdl.barrier()
        if rank == 0:
            monkeypatch.setattr("torchemu.frontends.numpy._tensor.kernels.launch", launch)
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
        with pytest.raises(RuntimeError, match="Could not resolve the process group registered under the name none"):
            symm_mem.rendezvous(t, "none")
        uneven = symm_mem.empty(1 + rank)
        with pytest.raises(RuntimeError, match="rank 1 has memory of 8 bytes and rank 0 of 4"):
            symm_mem.rendezvous(uneven, "0")

    on_group(2, program)
