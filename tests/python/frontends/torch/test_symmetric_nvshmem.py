"""NVSHMEM's operators of the installed PyTorch's symmetric memory, against plain collectives and lists of Python's."""

import os

import pytest
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric
from sampling import sampled

import torchemu

pytestmark = pytest.mark.shows("PyTorch: symmetric memory")
ops = torch.ops.symm_mem


def started(backend="NVSHMEM"):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    symmetric.set_backend(backend)
    return rank, dist.get_world_size(), dist.group.WORLD.group_name


def met(shape, dtype=torch.float32, fill=-1, group=None):
    """Returns a tensor in symmetric memory of the ranks, with its handle."""
    tensor = symmetric.empty(shape, dtype=dtype, device="cuda").fill_(fill)
    return tensor, symmetric.rendezvous(tensor, group or dist.group.WORLD)


def drawn(high, n, seed):
    return torch.randint(high, (n,), generator=torch.Generator().manual_seed(seed)).tolist()


@torchemu.distributed(world_size=2, torch="real")
def test_what_programs_ask_first():
    assert symmetric.is_nvshmem_available() and symmetric.get_backend("cuda") == "CUDA"
    assert symmetric.get_backend("cpu") is None
    for name in ("NVSHMEM", "NCCL", "CUDA"):
        symmetric.set_backend(name)
        assert symmetric.get_backend(torch.device("cuda", 0)) == name
    with pytest.raises(RuntimeError, match="no backend 'MPI' of symmetric memory: CUDA, NVSHMEM, NCCL"):
        symmetric.set_backend("MPI")
    dist.init_process_group("nccl")
    symmetric.empty(1, device="cuda")
    with pytest.raises(RuntimeError, match="allocated by the backend 'CUDA', which cannot be changed to 'NVSHMEM'"):
        symmetric.set_backend("NVSHMEM")
    symmetric.set_backend("CUDA")


@torchemu.distributed(world_size=2, torch="real")
def test_a_variable_chooses_the_backend():
    os.environ["TORCH_SYMMMEM"] = "NVSHMEM"
    dist.init_process_group("nccl")
    assert symmetric.get_backend("cuda") == "NVSHMEM"
    tensor, _ = met(3, fill=dist.get_rank())
    dist.barrier()
    ops.nvshmem_get(tensor, 1) if dist.get_rank() == 0 else None
    assert tensor.tolist() == [1.0] * 3


@pytest.mark.parametrize("n", [0, 1, 5, 4099])
@torchemu.distributed(world_size=3, torch="real")
def test_puts_and_gets_go_round_a_ring(n):
    rank, world, _ = started()
    left, right = (rank - 1) % world, (rank + 1) % world
    tensor, _ = met(max(n, 1), fill=rank)
    part = tensor[:n]
    dist.barrier()
    if rank == 0:
        ops.nvshmem_put(part, 1)
    dist.barrier()
    assert part.tolist() == [0 if rank < 2 else 2] * n
    tensor.fill_(10 * rank)
    dist.barrier()
    ops.nvshmem_get(part, right) if rank == 1 else None
    dist.barrier()
    assert part.tolist() == [20 if rank == 1 else 10 * rank] * n
    assert left != right


@torchemu.distributed(world_size=2, torch="real")
def test_parts_are_put_to_the_beginning():
    """Bytes land as they did on two H100s."""
    rank, _, _ = started()
    tensor, handle = met(6, fill=10 * rank)
    tensor[3:].copy_(torch.arange(3.0) + 100 * (rank + 1))
    dist.barrier()
    if rank == 0:
        ops.nvshmem_put(tensor[3:], 1)
    dist.barrier()
    assert tensor.tolist() == [[0, 0, 0, 100, 101, 102], [100, 101, 102, 200, 201, 202]][rank]
    dist.barrier()
    if rank == 0:
        ops.nvshmem_get(tensor[3:5], 1)
        ops.nvshmem_put_with_signal(tensor[5:], handle.get_signal_pad(0), 1, 1)
    else:
        ops.nvshmem_wait_for_signal(handle.get_signal_pad(1), 1, 0)
    assert tensor.tolist() == [[0, 0, 0, 100, 101, 102], [100, 101, 102, 200, 201, 102]][rank]
    dist.barrier()


@torchemu.distributed(world_size=2, torch="real")
def test_experts_of_nothing_get_room():
    """Tables and rows as they were seen on two H100s, by default and with an alignment."""
    rank, _, name = started()
    given, out = met(8)[0], met(64)[0]
    splits, table = met(4, torch.int64)[0], met((2, 4), torch.int64)[0]
    splits.copy_(torch.tensor([[0, 2, 0, 1], [0, 1, 0, 0]][rank]))
    given.copy_(torch.arange(8.0) + 10 * rank)
    dist.barrier()
    ops.all_to_all_vdev_2d(given, out, splits, table, name)
    assert table.tolist() == [[[0, 0, 2, 1], [0, 0, 1, 3]], [[0, 0, 1, 0], [0, 0, 1, 2]]][rank]
    assert out[:5].tolist() == [[-1, 0, 1, 10, -1], [-1, 2, -1, -1, -1]][rank]
    dist.barrier()
    ops.all_to_all_vdev_2d(given, out, splits, table, name, major_align=4)
    assert table.tolist() == [[[0, 0, 2, 1], [0, 0, 4, 6]], [[0, 0, 1, 0], [0, 0, 4, 5]]][rank]
    assert out[:8].tolist() == [[-1, 0, 1, 10, 0, 1, 10, -1], [-1, 2, -1, -1, 2, -1, -1, -1]][rank]


@torchemu.distributed(world_size=4, torch="real")
def test_signals_hand_on_what_a_rank_has_put():
    rank, world, _ = started()
    tensor, handle = met(7, fill=0)
    pad = handle.get_signal_pad(rank)
    dist.barrier()
    for turn in range(2):
        if rank == 0:
            tensor.copy_(torch.arange(7.0) + 100 * turn)
        else:
            ops.nvshmem_wait_for_signal(pad, 41 + turn, rank - 1)
        if rank + 1 < world:
            ops.nvshmem_put_with_signal(tensor, pad, 41 + turn, rank + 1)
        assert tensor.tolist() == [100.0 * turn + i for i in range(7)]
        dist.barrier()


@pytest.mark.parametrize("n", [1, 3, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8], ids=str)
@torchemu.distributed(world_size=4, torch="real")
def test_broadcast_and_all_to_all(dtype, n):
    rank, world, name = started()
    tensor, _ = met(n, dtype, rank)
    dist.barrier()
    for root in (0, 3):
        ops.nvshmem_broadcast(tensor, root, name)
        assert tensor.tolist() == [0] * n  # the first root's
        dist.barrier()
    given, _ = met(world * n, dtype, 0)
    out, _ = met(world * n, dtype, 9)
    given.copy_(torch.arange(world).repeat_interleave(n).to(dtype) + 4 * rank)
    dist.barrier()
    assert ops.nvshmem_all_to_all(given, out, name) is not None
    assert out.tolist() == [4 * peer + rank for peer in range(world) for _ in range(n)]


def splits_of(kind, rank, n):
    """Returns rows for each of n parts, on a rank."""
    return {
        "none": [0] * n,
        "one": [1] * n,
        "uneven": drawn(7, n, 10 + rank),
        "to_one": [5 * (i == 1) for i in range(n)],
        "from_one": [3 + i % 2 if rank == 2 else 0 for i in range(n)],
    }[kind]


KINDS = ("none", "one", "uneven", "to_one", "from_one")


@pytest.mark.parametrize("columns", [(), (3,)])
@pytest.mark.parametrize("kind", KINDS)
@torchemu.distributed(world_size=4, torch="real")
def test_all_to_all_by_splits(kind, columns):
    rank, world, name = started()
    most = 64
    given, _ = met((most, *columns))
    out, _ = met((most * 2, *columns))
    splits, _ = met(world, torch.int64)
    table, _ = met((2, world), torch.int64)
    mine = splits_of(kind, rank, world)
    splits.copy_(torch.tensor(mine))
    rows = torch.arange(most * max(1, *columns, 1), dtype=torch.float32).view(most, *columns) + 1000 * rank
    given.copy_(rows)
    dist.barrier()
    ops.all_to_all_vdev(given, out, splits, table, name)
    theirs = [splits_of(kind, peer, world)[rank] for peer in range(world)]
    wanted = torch.empty((sum(theirs), *columns), device="cuda")
    dist.all_to_all_single(wanted, rows[: sum(mine)].cuda(), theirs, mine)
    assert splits.tolist() == mine and table[0].tolist() == theirs
    assert table[1].tolist() == [sum(theirs[:i]) for i in range(world)]
    assert torch.equal(out[: sum(theirs)].cpu(), wanted.cpu()) and (out[sum(theirs) :] == -1).all()


def dispatched(splits, align):
    """Returns what each rank gets of (rank, part, row), by expert and rank, and where: an oracle of lists.

    Args:
        splits: by rank, of parts for rank 0's experts, rank 1's, and so on.
    """
    world, experts = len(splits), len(splits[0]) // len(splits)
    found = []
    for to in range(world):
        at, parts = 0, []
        for expert in range(experts):
            first = at
            for source in range(world):
                part = to * experts + expert
                parts.append((at, [(source, part, row) for row in range(splits[source][part])]))
                at += splits[source][part]
            at = first + max(-(-(at - first) // align) * align, align)
        found.append(parts)
    return found


@pytest.mark.parametrize("align", sampled([None, 5, 1, 8], 4))
@pytest.mark.parametrize("kind", KINDS)
@torchemu.distributed(world_size=4, torch="real")
def test_dispatch_to_experts_and_back(kind, align):
    rank, world, name = started()
    experts, most = 3, 128
    n = world * experts
    splits = [splits_of(kind, r, n) for r in range(world)]
    given, _ = met((most, 2))
    out, _ = met((4 * most, 2))
    back, _ = met((most, 2))
    in_splits, _ = met(n, torch.int64)
    table, _ = met((2, n), torch.int64)
    home, _ = met((2, n), torch.int64)
    in_splits.copy_(torch.tensor(splits[rank]))
    value = {}
    for part in range(n):
        for row in range(splits[rank][part]):
            value[part, row] = len(value)
    given.copy_(torch.arange(2.0 * most).view(most, 2) + 1000 * rank)
    dist.barrier()
    ops.all_to_all_vdev_2d(given, out, in_splits, table, name, major_align=align)
    parts = dispatched(splits, align or 1)[rank]
    assert table[0].tolist() == [len(rows) for _, rows in parts]
    assert table[1].tolist() == [start for start, _ in parts]
    starts = [[sum(s[:part]) for part in range(n)] for s in splits]
    got = out.cpu()
    for start, rows in parts:
        for i, (source, part, row) in enumerate(rows):
            place = starts[source][part] + row
            assert got[start + i].tolist() == [1000 * source + 2 * place, 1000 * source + 2 * place + 1]
    out.mul_(2)
    dist.barrier()
    ops.all_to_all_vdev_2d_offset(out, back, table, home, name)
    total = sum(splits[rank])
    assert home[0].tolist() == splits[rank] and home[1].tolist() == starts[rank]
    assert torch.equal(back[:total].cpu(), 2 * given[:total].cpu()) and (back[total:] == -1).all()


@torchemu.distributed(world_size=4, topology="nodes2x8", torch="real")
def test_a_group_of_some_ranks_exchanges():
    rank, world, _ = started()
    groups = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    group = groups[rank % 2]
    given, _ = met(6, fill=rank, group=group)
    out, _ = met(6, group=group)
    splits, _ = met(2, torch.int64, group=group)
    table, _ = met((2, 2), torch.int64, group=group)
    splits.copy_(torch.tensor([1, 3]))
    dist.barrier()
    ops.all_to_all_vdev(given, out, splits, table, group.group_name)
    n = 1 if rank < 2 else 3
    assert out.tolist() == [rank % 2] * n + [rank % 2 + 2] * n + [-1] * (6 - 2 * n)
    assert world == 4


@torchemu.distributed(world_size=16, topology="h800_2x8", torch="real")
def test_exchanges_between_nodes_take_longer():
    rank, world, name = started()
    tensor, _ = met(1 << 12, fill=rank)
    took = []
    for peer in (1, 8):
        torch.cuda.synchronize()
        dist.barrier()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        if rank == 0:
            ops.nvshmem_put(tensor, peer)
        end.record()
        torch.cuda.synchronize()
        took.append(start.elapsed_time(end))
    dist.barrier()
    assert tensor[-1].item() == (0 if rank in (1, 8) else rank)
    assert rank or 0 < took[0] < took[1]
    out, _ = met(world * 2)
    given, _ = met(world * 2, fill=rank)
    dist.barrier()
    ops.nvshmem_all_to_all(given, out, name)
    assert out.tolist() == [peer for peer in range(world) for _ in range(2)]


@pytest.mark.parametrize("n", [1, 1000, 1 << 18])
@torchemu.distributed(world_size=2, torch="real")
def test_a_put_takes_what_a_message_takes(n):
    """Beside the launch of a program: a get is the way there longer than a put."""
    rank, _, _ = started()
    tensor, _ = met(n)
    dist.barrier()
    calls = [lambda: None, lambda: dist.send(tensor, 1), lambda: ops.nvshmem_put(tensor, 1)]
    calls.append(lambda: ops.nvshmem_get(tensor, 1))
    if rank:
        dist.recv(tensor, 0)
        dist.barrier()
        return
    took = []
    for call in calls:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        took.append(1e3 * start.elapsed_time(end))
    dist.barrier()
    nothing, message, put, get = took
    assert message - nothing < put < get < message + 5


@torchemu.distributed(world_size=2, topology="h200_8_nvls", torch="real")
def test_operators_of_all_backends_on_memory_of_nvshmems():
    rank, world, name = started()
    tensor, handle = met(8)
    wait = torch.ops._c10d_functional.wait_tensor
    rows = [torch.arange(8.0) + 10 * r for r in range(world)]
    for operation in (ops.one_shot_all_reduce, ops.multimem_one_shot_all_reduce):
        tensor.copy_(rows[rank])
        assert operation(tensor, "sum", name).tolist() == sum(rows).tolist()
    for operation in (ops.two_shot_all_reduce_, ops.multimem_all_reduce_):
        tensor.copy_(rows[rank])
        operation(tensor, "sum", name)
        assert tensor.tolist() == sum(rows).tolist()
    tensor.copy_(rows[rank])
    assert wait(ops._low_contention_all_gather(tensor, name)).tolist() == torch.cat(rows).tolist()
    reduced = wait(ops._low_contention_reduce_scatter(tensor, "sum", name))
    assert reduced.tolist() == sum(rows).chunk(world)[rank].tolist()
    handle.barrier()
    assert handle.get_remote_tensor(1 - rank, (8,), torch.float32).tolist() == rows[1 - rank].tolist()
    handle.barrier()
    ops.stream_write_value32_(handle.get_signal_pad(1 - rank), 3, 9)
    handle.barrier(channel=1)
    assert handle.get_signal_pad(rank)[3].item() == 9


@torchemu.distributed(world_size=3, torch="real")
def test_graphs_do_exchanges_again():
    rank, world, name = started()
    given, out = met(world * 2)[0], met(world * 2)[0]
    splits, table = met(world, torch.int64)[0], met((2, world), torch.int64)[0]
    splits.copy_(torch.tensor([1] * world))
    graph = torch.cuda.CUDAGraph()
    dist.barrier()
    with torch.cuda.graph(graph):
        ops.all_to_all_vdev(given, out, splits, table, name)
    dist.barrier()
    for turn in range(3):
        splits.copy_(torch.tensor([turn % 2 + 1] * world))
        given.copy_(torch.arange(world * 2.0) + 100 * rank + 1000 * turn)
        dist.barrier()
        graph.replay()
        n = turn % 2 + 1
        wanted = [1000.0 * turn + 100 * peer + n * rank + i for peer in range(world) for i in range(n)]
        assert out[: n * world].tolist() == wanted and table[0].tolist() == [n] * world
        dist.barrier()


@torchemu.distributed(world_size=2, torch="real")
def test_hosts_go_on_while_splits_are_exchanged():
    rank, world, name = started()
    given, out = met(8)[0], met(16)[0]
    splits, table = met(world, torch.int64, 2)[0], met((2, world), torch.int64)[0]
    dist.barrier()
    torch.cuda.synchronize()
    event = torch.cuda.Event()
    ops.all_to_all_vdev(given, out, splits, table, name)
    event.record()
    assert not event.query()
    torch.cuda.synchronize()
    assert event.query() and table.tolist() == [[2, 2], [0, 2]] and rank < 2


@torchemu.distributed(world_size=2, torch="real")
def test_what_is_refused():
    rank, world, name = started()
    given, out = met(8)[0], met(4)[0]
    splits, table = met(world, torch.int64, 3)[0], met((2, world), torch.int64)[0]
    plain, fresh = torch.zeros(8, device="cuda"), symmetric.empty(8, device="cuda")
    for call, text in (
        (lambda: ops.nvshmem_put(plain, 1), "tensor is no symmetric memory: allocate it with symm_mem.empty"),
        (lambda: ops.nvshmem_put(fresh, 1), f"on rank {rank}: tensor has not met with the other ranks' memory"),
        (lambda: ops.nvshmem_get(given, 2), "nvshmem_get: peer must be smaller than world size: 2, of 2"),
        (lambda: ops.nvshmem_get(given[::2], 1), f"nvshmem_get on rank {rank}: tensor must be contiguous"),
        (lambda: ops.nccl_put(given, 1), r"memory of the backend 'NVSHMEM': call symm_mem.set_backend\('NCCL'\)"),
        (lambda: ops.nvshmem_broadcast(given, 2, name), "root must be smaller than group size: 2, of 2"),
        (lambda: ops.nvshmem_all_to_all(given, out, name), "as many elements of one dtype: 8 of .* and 4"),
        (lambda: ops.nvshmem_all_to_all(given[:7], given[:7], name), "7 elements, which 2 ranks do not divide"),
        (lambda: ops.nvshmem_put_with_signal(given, given[1:], 1, 1), "sigpad is the place of a word of 8 bytes"),
        (lambda: ops.all_to_all_vdev(given, out, splits.int(), table, name), "splits and offsets must be int64"),
        (lambda: ops.all_to_all_vdev(given, out, splits[:1], table, name), "must have 2 elements, one for each rank"),
        (lambda: ops.all_to_all_vdev_2d(given, out, splits, splits, name), "in_splits must be .* 2D with 2 rows"),
        (lambda: ops.all_to_all_vdev_2d(given, out, splits, table, name, 0), "major_align must be positive, not 0"),
        (lambda: ops.all_to_all_vdev_2d_offset(given, out, splits, table, name), "in_splits_offsets must be"),
        (lambda: symmetric.put_signal(given, None, 1), None),
    ):
        with pytest.raises(ValueError if text is None else RuntimeError, match=text or "unsupported backend: NVSHMEM"):
            call()


@pytest.mark.parametrize(
    "rows, text",
    [(3, "out has 4 rows on group rank [01], and what the peers send takes 6"), (5, "larger than input dim: part 1")],
)
def test_rows_that_do_not_fit_end_the_call(rows, text):
    with pytest.raises(RuntimeError, match=f"all_to_all_vdev on rank [01], called at .*, failed: .*{text}"):
        rows_that_do_not_fit(rows)


@torchemu.distributed(world_size=2, torch="real")
def rows_that_do_not_fit(rows):
    _, world, name = started()
    given, out = met(8)[0], met(4)[0]
    splits, table = met(world, torch.int64, rows)[0], met((2, world), torch.int64)[0]
    dist.barrier()
    ops.all_to_all_vdev(given, out, splits, table, name)
    torch.cuda.synchronize()


@torchemu.distributed(world_size=3, torch="real")
def test_one_sided_operations_of_nccls_backend():
    rank, world, _ = started("NCCL")
    tensor, handle = met(5, fill=rank)
    right, left = (rank + 1) % world, (rank - 1) % world
    dist.barrier()
    symmetric.put_signal(torch.full((5,), 10.0 + rank, device="cuda"), handle, right)
    symmetric.wait_signal(handle, left)
    assert tensor.tolist() == [10 + left] * 5
    dist.barrier()
    if rank == 0:
        ops.nccl_put_with_signal(tensor, 7, 1)
    if rank == 1:
        ops.nccl_wait_for_signal(tensor, 6)
        assert tensor.tolist() == [12.0] * 5
    dist.barrier()
    if rank == 2:
        ops.nccl_get(tensor, 0)
        assert tensor.tolist() == [12.0] * 5
    dist.barrier()
