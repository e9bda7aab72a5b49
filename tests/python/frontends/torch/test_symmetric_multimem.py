"""Operators of the installed PyTorch's symmetric memory that its ranks' switch does, and those that it need not."""

import os
import subprocess
import sys

import pytest
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric

import torchemu

pytestmark = pytest.mark.shows("PyTorch: symmetric memory")
ops = torch.ops.symm_mem


def started():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    return dist.get_rank(), dist.get_world_size(), dist.group.WORLD.group_name


def value(rank, shape, seed=0):
    return torch.randint(-8, 8, shape, generator=torch.Generator().manual_seed(100 * seed + rank)).float()


def met(tensor):
    kept = symmetric.empty(tensor.shape, dtype=tensor.dtype, device="cuda").copy_(tensor)
    return kept, symmetric.rendezvous(kept, dist.group.WORLD)


@pytest.mark.parametrize("topology, has", [("default", False), ("h200_8", False), ("h200_8_nvls", True)])
def test_multicast_is_the_topologys(topology, has):
    asked = torchemu.distributed(world_size=2, topology=topology, torch="real")(says_whether_there_is_multicast)
    asked(has)


def says_whether_there_is_multicast(has):
    _, _, name = started()
    tensor, handle = met(torch.ones(4))
    device_type = torch._C._autograd.DeviceType.CUDA
    assert torch._C._distributed_c10d._SymmetricMemory.has_multicast_support(device_type, 0) is has
    assert bool(handle.multicast_ptr) is has
    if has:
        return
    out = torch.zeros(4, device="cuda")
    for call, text in (
        (lambda: ops.multimem_all_reduce_(tensor, "sum", name), "multimem_all_reduce_: multicast support is required"),
        (lambda: ops.multimem_one_shot_all_reduce(tensor, "sum", name), "requires multicast support.*in_network"),
        (lambda: ops.multimem_one_shot_all_reduce_out(tensor, "sum", name, out), "requires multicast support"),
        (lambda: ops.multimem_one_shot_reduce_out(tensor, "sum", 0, name, out), "requires multicast support"),
        (lambda: ops.multimem_all_gather_out(out[:2], name, tensor), "output must have multicast support"),
        (lambda: ops.tile_reduce(tensor.view(2, 2), tensor.view(2, 2), 0, name), "requires multicast support"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()


ON_TWO_NODES = """
import os, torch, torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric
dist.init_process_group("nccl")
rank, node = dist.get_rank(), dist.get_rank() // 2
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
near = [dist.new_group([0, 1]), dist.new_group([2, 3])][node]
whole, part = (symmetric.empty(4, device="cuda").fill_(rank) for _ in range(2))
assert symmetric.rendezvous(whole, dist.group.WORLD).multicast_ptr == 0
assert symmetric.rendezvous(part, near).multicast_ptr
torch.ops.symm_mem.multimem_all_reduce_(part, "sum", near.group_name)
assert part.tolist() == [4.0 * node + 1] * 4
try:
    torch.ops.symm_mem.multimem_all_reduce_(whole, "sum", dist.group.WORLD.group_name)
except RuntimeError as error:
    print(error)
"""
TOPOLOGY = """
system:
  nodes: {count: 2}
  sips: {count: 4, connect: switch}
  switch: {in_network: {multicast: true, reduce: [sum]}}
  network: {nic: {bandwidth: 50, latency: 750}, forwarding: cut_through}
"""


def test_a_switch_is_one_nodes(tmp_path):
    for name, text in (("program.py", ON_TWO_NODES), ("two.yaml", TOPOLOGY)):
        (tmp_path / name).write_text(text)
    nodes = ("--nnodes", "2", "--nproc-per-node", "2", "--topology", "two.yaml")
    line = [sys.executable, "-m", "torchemu", "run", "--torch", "real", *nodes, "program.py"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("The ranks have no switch in common that multicasts and adds up") == 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("n", [2, 30, 4098])
@torchemu.distributed(world_size=4, topology="h200_8_nvls", torch="real")
def test_the_switch_adds_up(n, dtype):
    rank, world, name = started()
    everybody = torch.stack([value(r, (n,)) for r in range(world)]).to(dtype)
    wanted, zeros = everybody.sum(0), torch.zeros(n, dtype=dtype)
    tensor, _ = met(everybody[rank])
    assert torch.equal(ops.multimem_one_shot_all_reduce(tensor, "sum", name).cpu(), wanted)
    out = torch.zeros_like(tensor)
    assert ops.multimem_one_shot_all_reduce_out(tensor, "sum", name, out) is not None
    assert torch.equal(out.cpu(), wanted)
    for root in (0, 3):
        out.zero_()
        ops.multimem_one_shot_reduce_out(tensor, "sum", root, name, out)
        assert torch.equal(out.cpu(), wanted if rank == root else zeros)
    assert torch.equal(tensor.cpu(), everybody[rank])
    ops.multimem_all_reduce_(tensor, "sum", name)
    assert torch.equal(tensor.cpu(), wanted)


@pytest.mark.parametrize("shape", [(2,), (1, 6), (5, 2, 2)])
@torchemu.distributed(world_size=3, topology="h200_8_nvls", torch="real")
def test_the_switch_gathers(shape):
    rank, world, name = started()
    out, _ = met(torch.zeros(world * shape[0], *shape[1:]))
    ops.multimem_all_gather_out(value(rank, shape).cuda(), name, out)
    assert torch.equal(out.cpu(), torch.cat([value(peer, shape) for peer in range(world)]))


@torchemu.distributed(world_size=4, topology="h200_8_nvls", torch="real")
def test_tiles_are_added_up_on_their_roots():
    rank, world, name = started()
    whole = [value(r, (8, 6)) for r in range(world)]
    tensor, _ = met(whole[rank])
    out, _ = met(torch.full((8, 6), -1.0))
    total, rows, columns = sum(whole), slice(3, 8), slice(2, 5)
    ops.tile_reduce(tensor[rows, columns], out[rows, columns], 2, name)
    wanted = torch.full((8, 6), -1.0)
    if rank == 2:
        wanted[rows, columns] = total[rows, columns]
    assert torch.equal(out.cpu(), wanted)
    quarters = [(slice(4 * i, 4 * i + 4), slice(3 * j, 3 * j + 3)) for i in range(2) for j in range(2)]
    own, _ = met(torch.full((4, 3), -1.0))
    roots = [2, 0, 3, 1]
    ops.multi_root_tile_reduce([tensor[quarter] for quarter in quarters], own, roots, name)
    assert torch.equal(own.cpu(), total[quarters[roots.index(rank)]])
    own.fill_(-1)
    ops.multi_root_tile_reduce([tensor[quarters[1]]], own, [3], name, "sum")
    assert torch.equal(own.cpu(), total[quarters[1]] if rank == 3 else torch.full((4, 3), -1.0))
    for call, text in (
        (lambda: ops.tile_reduce(tensor, out, 0, name, "max"), "only sum is supported for now, not 'max'"),
        (lambda: ops.tile_reduce(tensor, out, 4, name), "root must be a rank of the group, 0 to 3, not 4"),
        (lambda: ops.tile_reduce(tensor, own, 0, name), "tiles must be 2D, and of one shape and dtype"),
        (lambda: ops.multi_root_tile_reduce([tensor, tensor], out, [1, 1], name), "each of in_tiles has a root"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()


@torchemu.distributed(world_size=8, topology="h200_8_nvls", torch="real")
def test_in_the_switch_large_sums_take_less():
    _, _, name = started()
    tensor, _ = met(torch.ones(1 << 20))
    took = {}
    for operation in (ops.multimem_all_reduce_, ops.two_shot_all_reduce_, ops.one_shot_all_reduce):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        dist.barrier()
        start.record()
        operation(tensor, "sum", name)
        end.record()
        torch.cuda.synchronize()
        took[operation] = start.elapsed_time(end)
    assert 0 < took[ops.multimem_all_reduce_] < took[ops.two_shot_all_reduce_] < took[ops.one_shot_all_reduce]


@torchemu.distributed(world_size=2, topology="h200_8_nvls", torch="real")
def test_what_the_switch_refuses():
    _, _, name = started()
    tensor, _ = met(torch.ones(5, dtype=torch.bfloat16))
    whole, _ = met(torch.ones(6, dtype=torch.int32))
    plain = torch.ones(4, device="cuda")
    for call, kind, text in (
        (lambda: ops.multimem_all_reduce_(tensor, "sum", name), RuntimeError, "input size must be at least 4-byte al"),
        (lambda: ops.multimem_all_reduce_(tensor[1:], "sum", name), RuntimeError, r"input ptr \+ offset must be at"),
        (lambda: ops.multimem_all_reduce_(tensor, "max", name), RuntimeError, "only sum is supported for now"),
        (lambda: ops.multimem_all_reduce_(plain, "sum", name), RuntimeError, "allocated with empty_strided_p2p"),
        (lambda: ops.multimem_all_reduce_(whole, "sum", name), NotImplementedError, "not implemented for 'int32'"),
        (lambda: ops.multimem_one_shot_reduce_out(tensor, "sum", 2, name, tensor), RuntimeError, "root must be a rank"),
        (lambda: ops.multimem_all_gather_out(plain, name, plain), RuntimeError, "output must be allocated with"),
        (lambda: ops.multimem_all_gather_out(plain.int(), name, whole), RuntimeError, "must be equal to input.sizes"),
    ):
        with pytest.raises(kind, match=text):
            call()


@pytest.mark.parametrize("n", [1, 7, 500])
@torchemu.distributed(world_size=4, torch="real")
def test_sums_of_copies(n):
    rank, world, name = started()
    everybody = torch.stack([value(r, (n,)) for r in range(world)])
    buffer, _ = met(torch.zeros(512))
    local = everybody[rank].cuda()
    assert torch.equal(ops.one_shot_all_reduce_copy(buffer, local, "sum", name).cpu(), everybody.sum(0))
    dist.barrier()
    out = torch.zeros(n, device="cuda")
    ops.one_shot_all_reduce_copy_out(buffer, 2 * local, "sum", name, out)
    assert torch.equal(out.cpu(), 2 * everybody.sum(0)) and torch.equal(local.cpu(), everybody[rank])
    with pytest.raises(RuntimeError, match="local input size must be smaller than symm buffer size"):
        ops.one_shot_all_reduce_copy(buffer[:3], torch.ones(4, device="cuda"), "sum", name)


@torchemu.distributed(world_size=4, torch="real")
def test_parts_of_sums():
    rank, world, name = started()
    flat = torch.stack([value(r, (world * 6,)) for r in range(world)])
    tensor, _ = met(flat[rank])
    part = torch.zeros(6, device="cuda")
    ops.reduce_scatter_out(tensor, name, False, part)
    assert torch.equal(part.cpu(), flat.sum(0).chunk(world)[rank])
    table = torch.stack([value(r, (3, world * 2), 1) for r in range(world)])
    tensor, _ = met(table[rank])
    columns = torch.zeros(3, 2, device="cuda")
    ops.reduce_scatter_out(tensor, name, True, columns)
    assert torch.equal(columns.cpu(), table.sum(0).chunk(world, 1)[rank])
    for call, text in (
        (lambda: ops.reduce_scatter_out(tensor, name, False, part), "expected 1D input and output, not 2D and 1D"),
        (lambda: ops.reduce_scatter_out(tensor, name, True, tensor), "expected output last dim size to be"),
        (lambda: ops.reduce_scatter_out(part, name, False, part), "allocated with empty_strided_p2p"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()


@torchemu.distributed(world_size=2, torch="real")
def test_words_are_set_by_operators():
    rank, _, _ = started()
    _, handle = met(torch.zeros(4))
    pad = handle.get_signal_pad(rank)
    ops.memset32_(pad, 2, 7, 3)
    ops.stream_write_value32_(pad, 0, 2**32 - 1)
    assert pad[:6].tolist() == [2**32 - 1, 0, 7, 7, 7, 0]
    with pytest.raises(RuntimeError, match="exceeded the numel of the input"):
        ops.memset32_(pad, pad.numel(), 7, 1)


@torchemu.distributed(world_size=2, torch="real")
def test_tensors_of_all_ranks_and_of_pools():
    rank, world, name = started()
    with torch.cuda.use_mem_pool(symmetric.get_mem_pool(torch.device("cuda", rank))):
        tensor = torch.full((4,), 1.0 + rank, device="cuda")
        assert torch.arange(3).device.type == "cpu"
    handle = symmetric.rendezvous(tensor, dist.group.WORLD)
    handle.barrier()
    remote = ops.get_remote_tensors(tensor[1:], name)
    assert [t.tolist() for t in remote] == [[1.0] * 3, [2.0] * 3]
    assert ops.one_shot_all_reduce(tensor, "sum", name).tolist() == [3.0] * 4
    with pytest.raises(RuntimeError, match="allocated with empty_strided_p2p"):
        ops.one_shot_all_reduce(torch.ones(4, device="cuda"), "sum", name)
    for call, text in (
        (lambda: ops._async_input_mm(tensor.view(2, 2), tensor.view(2, 2), tensor, 0), "fused_all_gather_matmul"),
    ):
        with pytest.raises(NotImplementedError, match=text):
            call()
    assert world == 2


@torchemu.distributed(world_size=2, torch="real")
def test_pads_have_the_size_that_a_program_sets():
    started()
    assert symmetric.get_signal_pad_size() == 9216
    symmetric.set_signal_pad_size(1 << 15)
    _, handle = met(torch.zeros(4))
    assert handle.get_signal_pad(0).nbytes == 1 << 15 == handle.signal_pad_size


def test_every_operator_of_pytorchs_has_an_answer():
    from torchemu.frontends.torch.symmetric import _KERNELS

    defined = {s.name.partition("::")[2] for s in torch._C._jit_get_all_schemas() if s.name.startswith("symm_mem::")}
    newer = {name for name in _KERNELS if not hasattr(ops, name)}
    assert defined == {*_KERNELS} - newer
    assert not (newer and HAS_BLOCKS)


HAS_BLOCKS = hasattr(symmetric, "all_to_all_nd")
newer = pytest.mark.skipif(not HAS_BLOCKS, reason="PyTorch before 2.14")


@newer
@torchemu.distributed(world_size=4, torch="real")
def test_blocks_of_all_ranks_matrices():
    symmetric.set_backend("NCCL")
    rank, world, name = started()
    everybody = [value(r, (6, 8), seed=5) for r in range(world)]
    tensor, handle = met(everybody[rank])
    assert symmetric.is_symm_mem_tensor(tensor) and not symmetric.is_symm_mem_tensor(tensor + 1)

    out = torch.zeros(world, 6, 2, device="cuda")
    symmetric.all_to_all_nd(tensor, out, 1, 0, group=name)
    assert torch.equal(out.cpu(), torch.stack([m[:, 2 * rank : 2 * rank + 2] for m in everybody]))
    turned, _ = met(everybody[rank].t())
    out = torch.zeros(2, world * 6, device="cuda")
    symmetric.all_to_all_nd(turned, out, 0, 1, group=name)
    assert torch.equal(out.cpu(), torch.cat([m.t()[2 * rank : 2 * rank + 2] for m in everybody], 1))

    whole, owned = sum(everybody), torch.zeros(6, 2, device="cuda")
    symmetric.reduce_scatter_offset(tensor, [owned], name, dim=1)
    assert torch.equal(owned.cpu(), whole[:, 2 * rank : 2 * rank + 2])
    ends, roots = [1, 1, 4, 6], [3, 1, 1, 0]
    mine = [whole[a:b] for a, b, root in zip([0, *ends], ends, roots, strict=False) if root == rank]
    owned = [torch.zeros_like(block, device="cuda") for block in mine]
    symmetric.reduce_scatter_offset(tensor, owned, name, dim=0, offsets=ends, dst_ranks=roots)
    assert all(map(torch.equal, [block.cpu() for block in owned], mine))

    handle.barrier()
    peer, got = (rank + 1) % world, torch.zeros(3, device="cuda")
    symmetric.get(got, handle, peer, offset=5)
    assert torch.equal(got.cpu(), everybody[peer].flatten()[5:8])
    for call, error, text in (
        (lambda: symmetric.get(got, handle, world), ValueError, "invalid peer"),
        (lambda: symmetric.get(got, handle, peer, 46), ValueError, "exceeds symmetric allocation"),
        (lambda: symmetric.all_to_all_nd(tensor, out, 0, 0, group=name), RuntimeError, r"must be \(1, 0\) or \(0, 1\)"),
        (lambda: symmetric.all_to_all_nd(tensor, out, 0, 1, group=name), RuntimeError, "ranks divide number 0 evenly"),
        (lambda: symmetric.all_to_all_nd(tensor, out[:1], 1, 0, group=name), RuntimeError, "of the shape"),
        (lambda: symmetric.all_to_all_nd(out, tensor, 1, 0, group=name), RuntimeError, "set_backend.'NCCL'"),
        (lambda: symmetric.reduce_scatter_offset(tensor, [], name, dim=1), RuntimeError, "of the blocks that"),
        (lambda: symmetric.reduce_scatter_offset(tensor, [], name, dim=0), RuntimeError, "pass offsets"),
        (lambda: symmetric.reduce_scatter_offset(tensor, [], name, dim=1, offsets=[9]), RuntimeError, "larger than 8"),
        (lambda: symmetric.reduce_scatter_offset(tensor, [], name, dim=1, red_op="avg"), RuntimeError, "for sums"),
        (lambda: ops.memcpy_to_multicast_(tensor, got, 0, name), NotImplementedError, "multimem_all_gather_out"),
    ):
        with pytest.raises(error, match=text):
            call()


@newer
@torchemu.distributed(world_size=4, topology="h200_8_nvls", torch="real")
def test_the_switch_gathers_by_copies():
    rank, world, name = started()
    everybody = torch.cat([value(r, (2, 4), seed=6) for r in range(world)])
    gathered = ops._low_contention_all_gather_ce_multicast(value(rank, (2, 4), seed=6).cuda(), name)
    assert torch.equal(gathered.cpu(), everybody) and symmetric.is_symm_mem_tensor(gathered)
    out, _ = met(torch.zeros(world))
    ops._low_contention_all_gather_ce_multicast_out(torch.tensor(rank + 1.0, device="cuda"), name, out)
    assert out.tolist() == [1, 2, 3, 4]
