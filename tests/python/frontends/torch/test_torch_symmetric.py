"""Symmetric memory on the installed PyTorch: real data, in buffers of all ranks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric

import torchemu

pytestmark = pytest.mark.shows("PyTorch: symmetric memory")


def started():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    return rank, dist.get_world_size(), dist.group.WORLD


def value(rank, shape, seed=0):
    return torch.randint(-8, 8, shape, generator=torch.Generator().manual_seed(100 * seed + rank)).float()


@pytest.mark.shows("programs: tests in pytest")
@torchemu.distributed(world_size=4, torch="real")
def test_a_rank_reads_what_its_peers_have_written():
    rank, world, group = started()
    buffer = symmetric.empty((world, 5), dtype=torch.float32, device="cuda")
    handle = symmetric.rendezvous(buffer, group)
    assert (handle.rank, handle.world_size, handle.buffer_size) == (rank, world, world * 20)
    for step in range(3):
        for peer in range(world):  # a row of each peer's buffer is this rank's
            row = handle.get_buffer(peer, (5,), torch.float32, storage_offset=5 * rank)
            assert row.device == buffer.device
            row.copy_(value(rank, (5,), seed=10 * step + peer).cuda())
        handle.barrier()
        expected = torch.stack([value(peer, (5,), seed=10 * step + rank) for peer in range(world)])
        assert torch.equal(buffer.cpu(), expected)
        handle.barrier()


@torchemu.distributed(world_size=1, torch="real")
def test_memory_is_zero_at_first():
    started()
    for n in (1, 7, 64, 1 << 16):
        used = torch.full((n,), 7.0, device="cuda")
        del used
        assert torch.equal(symmetric.empty(n, device="cuda").cpu(), torch.zeros(n))


@torchemu.distributed(world_size=2, torch="real")
def test_words_are_set():
    rank, _, group = started()
    handle = symmetric.rendezvous(symmetric.empty(4, device="cuda"), group)
    pad = handle.get_signal_pad(rank)
    assert handle.memset32(pad, 3, 2**32 - 1, 2) is pad and handle.stream_write_value32(pad, 5, 7) is pad
    assert pad[:7].tolist() == [0, 0, 0, 2**32 - 1, 2**32 - 1, 7, 0]
    for wrong, said in (
        ((pad.view(torch.int32), 0, 1), "input must be a flat, contiguous uint32 tensor"),
        ((pad, 0, -1), "val must be in the range"),
        ((pad, pad.numel(), 1), "exceeded the numel of the input"),
        ((pad, -1, 1), "offset must be 0 or more"),
    ):
        with pytest.raises(RuntimeError, match=said):
            handle.stream_write_value32(*wrong)


@torchemu.distributed(world_size=3, torch="real")
def test_signals_order_a_ring_and_take_time():
    rank, world, group = started()
    handle = symmetric.rendezvous(symmetric.empty(4, dtype=torch.int32, device="cuda"), group)
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for turn in range(world):
        if turn == rank:
            following = (rank + 1) % world
            handle.get_buffer(following, (4,), torch.int32).fill_(7 * rank)
            handle.put_signal(following, channel=2)
        if turn == (rank - 1) % world:
            handle.wait_signal(turn, channel=2)
            assert handle.get_buffer(rank, (4,), torch.int32).tolist() == [7 * turn] * 4
    last.record()
    last.synchronize()
    assert first.elapsed_time(last) > 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@torchemu.distributed(world_size=4, torch="real")
def test_all_reduces(dtype):
    rank, world, group = started()
    everybody = torch.stack([value(r, (3, 4)) for r in range(world)]).to(dtype)
    buffer, out = symmetric.empty(3, 4, dtype=dtype, device="cuda"), torch.empty(3, 4, dtype=dtype, device="cuda")
    symmetric.rendezvous(buffer, group)
    buffer.copy_(everybody[rank])
    expected, name = everybody.sum(0), group.group_name
    assert torch.equal(torch.ops.symm_mem.one_shot_all_reduce(buffer, "sum", name).cpu(), expected)
    torch.ops.symm_mem.one_shot_all_reduce_out(buffer, "sum", name, out)
    assert torch.equal(out.cpu(), expected)
    assert torch.equal(buffer.cpu(), everybody[rank])
    torch.ops.symm_mem.two_shot_all_reduce_(buffer, "sum", name)
    assert torch.equal(buffer.cpu(), expected)


@torchemu.distributed(world_size=2, torch="real")
def test_all_reduces_are_the_algorithms_of_their_names():
    """On links alone: one shot sends all to everybody, two shots a part and then the sums of parts."""
    _, _, group = started()
    buffer, took = symmetric.empty(1 << 20, device="cuda").fill_(1), {}
    for operation in (torch.ops.symm_mem.one_shot_all_reduce, torch.ops.symm_mem.two_shot_all_reduce_):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        dist.barrier()
        start.record()
        operation(buffer, "sum", group.group_name)
        end.record()
        torch.cuda.synchronize()
        took[operation] = start.elapsed_time(end)
    assert 0 < min(took.values()) < max(took.values())


@torchemu.distributed(world_size=2, torch="real")
def test_what_all_reduces_refuse():
    _, _, group = started()
    t = symmetric.empty(2, 2, device="cuda")
    whole = symmetric.empty(2, dtype=torch.int32, device="cuda")
    one_shot, name = torch.ops.symm_mem.one_shot_all_reduce, group.group_name
    for call, kind, text in (
        (lambda: one_shot(torch.ones(2, device="cuda"), "sum", name), RuntimeError, "allocated with empty_strided_p2p"),
        (lambda: one_shot(t, "max", name), RuntimeError, "one_shot_all_reduce: only sum is supported for now"),
        (lambda: one_shot(t.t(), "sum", name), RuntimeError, "one_shot_all_reduce: input must be contiguous"),
        (lambda: one_shot(whole, "sum", name), NotImplementedError, "not implemented for 'int32'"),
        (
            lambda: torch.ops.symm_mem.one_shot_all_reduce_out(t, "sum", name, t[0]),
            RuntimeError,
            "input/output size mismatch",
        ),
    ):
        with pytest.raises(kind, match=text):
            call()


def elapsed(call):
    """Returns how long a call takes on the stream, in microseconds."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return 1e3 * start.elapsed_time(end)


@pytest.mark.parametrize("n", [1, 1000, 1 << 20])
@torchemu.distributed(world_size=2, torch="real")
def test_an_access_takes_what_a_message_takes(n):
    """A copy from a peer and one to it are as long as a message the same way; arithmetic is a message and a kernel."""
    rank, _, group = started()
    t, local, out = (
        symmetric.empty(n, device="cuda").fill_(2),
        torch.ones(n, device="cuda"),
        torch.empty(n, device="cuda"),
    )
    theirs = symmetric.rendezvous(t, group).get_buffer(1 - rank, (n,), torch.float32)
    torch.cuda.synchronize()
    dist.barrier()
    if rank:
        dist.send(t, 0)
        dist.recv(t, 0)
        return
    get, put = elapsed(lambda: local.copy_(theirs)), elapsed(lambda: theirs.copy_(local))
    assert (get, put) == (elapsed(lambda: dist.recv(t, 1)), elapsed(lambda: dist.send(t, 1)))
    kernel, both = elapsed(lambda: torch.mul(local, 2, out=out)), elapsed(lambda: torch.mul(theirs, 2, out=out))
    assert get < both <= get + kernel and torch.equal(out, 2 * theirs)
    there_and_back = elapsed(lambda: (local.copy_(theirs), theirs.copy_(local)))
    assert elapsed(lambda: theirs.fill_(1)) <= put < there_and_back <= elapsed(lambda: theirs.add_(1))


@pytest.mark.slow
def test_a_copy_is_alike_where_the_process_has_run_device_programs():
    """Values of another dtype and shape, and the time, in a process that has loaded mori and in one that has not."""
    program = f"import sys; import {__name__} as tests; tests.copies(); {{}}tests.copies()"
    outputs = []
    for before in ("", "import torchemu.frontends.mori.face; "):
        command = [sys.executable, "-c", program.format(before)]
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    first, second = outputs[0].splitlines()
    assert first == second and outputs[1] == outputs[0]


@torchemu.distributed(world_size=2, torch="real")
def copies():
    rank, _, group = started()
    t = symmetric.empty(3, device="cuda").fill_(rank + 1)
    theirs = symmetric.rendezvous(t, group).get_buffer(1 - rank, (3,), torch.float32)
    torch.cuda.synchronize()
    dist.barrier()
    if rank == 0:
        out = torch.zeros(2, 3, dtype=torch.float64, device="cuda")
        print(elapsed(lambda: out.copy_(theirs)), out.tolist())


@torchemu.distributed(world_size=4, torch="real")
def test_products_with_collectives():
    rank, world, group = started()
    rows, weights = [value(r, (2, 6)) for r in range(world)], [value(9, (6, 3)), value(8, (6, 1))]
    gathered, products = torch.ops.symm_mem.fused_all_gather_matmul(
        rows[rank].cuda(), [w.cuda() for w in weights], 0, group.group_name
    )
    assert torch.equal(gathered.cpu(), torch.cat(rows))
    for product, weight in zip(products, weights, strict=True):
        assert torch.equal(product.cpu(), torch.cat(rows) @ weight)
    a, b = [value(r, (8, 2), 1) for r in range(world)], [value(r, (2, 3), 2) for r in range(world)]
    mine = torch.ops.symm_mem.fused_matmul_reduce_scatter(a[rank].cuda(), b[rank].cuda(), "sum", 0, group.group_name)
    assert torch.equal(mine.cpu(), sum(x @ y for x, y in zip(a, b, strict=True)).chunk(world)[rank])


@torchemu.distributed(world_size=2, torch="real")
def test_products_of_scaled_numbers_with_collectives():
    rank, world, group = started()
    a = [value(r, (16, 32), 3).to(torch.float8_e4m3fn) for r in range(world)]
    b = value(9, (16, 32), 3).to(torch.float8_e4m3fn)
    two, half = torch.full((), 2.0, device="cuda"), torch.full((), 0.5, device="cuda")
    whole, (product,) = torch.ops.symm_mem.fused_all_gather_scaled_matmul(
        a[rank].cuda(), [b.cuda().t()], two, [half], 0, group.group_name, [None], [None], [torch.bfloat16], [False]
    )
    wanted = (torch.cat(a).float() @ b.float().t()).bfloat16()
    assert torch.equal(whole.cpu().float(), torch.cat(a).float()) and torch.equal(product.cpu(), wanted)
    reduced = torch.ops.symm_mem.fused_scaled_matmul_reduce_scatter(
        a[rank].cuda(), b.cuda().t(), two, half, "sum", 0, 0, group.group_name, [16, 16], None, None, torch.bfloat16
    )
    total = sum((x.float() @ b.float().t()).bfloat16().float() for x in a)
    torch.testing.assert_close(reduced.cpu().float(), total.chunk(world)[rank], rtol=0.01, atol=0)


@torchemu.distributed(world_size=4, torch="real")
def test_products_on_two_streams_are_exchanged_as_they_come():
    """PyTorch's own pipeline, from a private function: it keeps its second stream for the whole process."""
    rank, world, group = started()
    a, b = [value(r, (8, 2), 1) for r in range(world)], [value(r, (2, 3), 2) for r in range(world)]
    parts, factor = a[rank].cuda().chunk(world), b[rank].cuda()
    found = torch.empty(8, 3, device="cuda")
    symmetric._pipelined_produce_and_all2all(
        lambda peer, out: torch.mm(parts[peer], factor, out=out), found, group.group_name
    )
    expected = torch.cat([a[r].chunk(world)[rank] @ b[r] for r in range(world)])
    assert torch.equal(found.cpu(), expected)


@torchemu.distributed(world_size=2, torch="real")
def test_memory_under_a_number_is_the_same_again():
    rank, _, _ = started()
    groups = [dist.new_group([r]) for r in range(2)]  # the one that is named where the memory is allocated

    def allocated(*size, number=7):
        device, name = torch.device("cuda", rank), groups[rank].group_name
        stride = torch.empty(size).stride()
        return symmetric._SymmetricMemory.empty_strided_p2p(size, stride, torch.float32, device, name, number)

    tensor = allocated(4, 2)
    tensor.fill_(rank)
    place, other = tensor.data_ptr(), allocated(8, number=8)
    assert other.data_ptr() != place
    with pytest.raises(RuntimeError, match=r"with alloc_id == 7 because a previous allocation .* is still active"):
        allocated(4, 2)
    del tensor
    with pytest.raises(RuntimeError, match=r"requested allocation size \(36\) is different .* alloc_id 32"):
        allocated(9)
    again = allocated(2, 4)
    assert again.data_ptr() == place and (again == rank).all()
    handle = symmetric._SymmetricMemory.rendezvous(again)
    assert (handle.rank, handle.world_size) == (0, 1)
    assert symmetric._SymmetricMemory.rendezvous(again) is handle


@torchemu.distributed(world_size=2, torch="real")
def test_errors_name_what_was_wrong():
    rank, _, group = started()
    with pytest.warns(UserWarning, match="Pointer not within any SymmetricMemory allocation"):
        assert symmetric.rendezvous(torch.empty(4, device="cuda"), group) is None
    with pytest.raises(RuntimeError, match="`group_name` is neither specified during allocation nor passed"):
        symmetric._SymmetricMemory.rendezvous(symmetric.empty(4, device="cuda"))
    with pytest.raises(RuntimeError, match="not on cpu"):
        symmetric.empty(4, device="cpu")
    handle = symmetric.rendezvous(symmetric.empty(4, device="cuda"), group)
    for wrong in (-1, 2):
        with pytest.raises(RuntimeError, match=f"get_buffer: there is no rank {wrong}: the group has 2"):
            handle.get_buffer(wrong, (4,), torch.float32)
    with pytest.raises(RuntimeError, match=r"get_buffer: the requested size \(20 bytes\) exceeds the allocated .*\(16"):
        handle.get_buffer(1, (2,), torch.float32, 3)
    with pytest.raises(RuntimeError, match=r"get_signal_pad: the requested size \(9220 bytes\) exceeds"):
        handle.get_signal_pad(0, (2305,))
    with pytest.raises(RuntimeError, match="multimem_all_reduce_: multicast support is required"):
        torch.ops.symm_mem.multimem_all_reduce_(symmetric.empty(4, device="cuda"), "sum", group.group_name)
    with pytest.raises(RuntimeError, match="rank 1 has memory of 8 bytes and rank 0 of 4"):
        symmetric.rendezvous(symmetric.empty(1 + rank, device="cuda"), group)


@torchemu.distributed(world_size=3, torch="real")
def test_what_a_handle_says():
    rank, _, group = started()
    t = symmetric.empty(4, 4, device="cuda").fill_(rank)
    handle = symmetric.rendezvous(t, group)
    assert (handle.rank, handle.world_size, handle.buffer_size, handle.signal_pad_size) == (rank, 3, 64, 9216)
    assert handle.multicast_ptr == 0 and handle.device == t.device and handle.buffer_ptrs[rank] == t.data_ptr()
    assert symmetric.rendezvous(t[1:], group.group_name) is handle is symmetric.rendezvous(t, group)
    handle.get_signal_pad((rank + 1) % 3, (2,), torch.uint32, 5).fill_(rank)
    handle.barrier()
    pad, left = handle.get_signal_pad(rank), (rank - 1) % 3
    assert pad.nbytes == 9216 and pad[4:8].tolist() == [0, left, left, 0]
    assert handle.get_buffer(left, (2, 2), torch.int64, 1).view(torch.float32).eq(left).all()
    assert handle.get_buffer(left, (0,), torch.int32, 16).numel() == 0
    known = [None] * 3
    dist.all_gather_object(known, (handle.buffer_ptrs, handle.signal_pad_ptrs))
    assert known[0] == known[1] == known[2] and len({*known[0][0], *known[0][1]}) == 6


@pytest.mark.parametrize("is_symmetric", [False, True])
@torchemu.distributed(world_size=3, torch="real")
def test_collectives_by_copies_alone(is_symmetric):
    """Their results are right after wait_tensor, as they are on a stream of their own."""
    rank, world, group = started()
    wait = torch.ops._c10d_functional.wait_tensor

    def given(shape, seed):
        made = value(rank, shape, seed).cuda()
        if not is_symmetric:
            return made
        kept = symmetric.empty(shape, device="cuda").copy_(made)
        symmetric.rendezvous(kept, group)
        return kept

    for seed in range(2):
        gathered = wait(torch.ops.symm_mem._low_contention_all_gather(given((2, 5), seed), group.group_name))
        assert torch.equal(gathered.cpu(), torch.cat([value(peer, (2, 5), seed) for peer in range(world)]))
        whole = torch.stack([value(peer, (2 * world, 5), seed) for peer in range(world)])
        for op, expected in (("sum", whole.sum(0)), ("avg", whole.mean(0))):
            part = given((2 * world, 5), seed)
            reduced = wait(torch.ops.symm_mem._low_contention_reduce_scatter(part, op, group.group_name))
            torch.testing.assert_close(reduced.cpu(), expected.chunk(world)[rank])


@torchemu.distributed(world_size=2, torch="real")
def waits_for_nobody():
    rank, _, group = started()
    handle = symmetric.rendezvous(symmetric.empty(4, device="cuda"), group)
    if rank == 0:
        handle.wait_signal(1, channel=3)


def test_a_signal_that_nobody_sends_is_named_as_one():
    with pytest.raises(RuntimeError, match=r"recv from rank 1 .*tag 3.*put_signal is a send, wait_signal a recv"):
        waits_for_nobody()
