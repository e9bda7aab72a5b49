"""Memory that devices have in use, beside what PyTorch says on H200s."""

import gc

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

import torchemu

MEBIBYTE = 1 << 20


def in_use():
    torch.cuda.synchronize()
    gc.collect()
    return torch.cuda.memory_allocated() / MEBIBYTE


@pytest.mark.slow
@torchemu.distributed(world_size=2, torch="real")
def test_fully_shard_gives_back_what_it_gathers():
    """Two H200s have 65 MiB more in use once they have multiplied matrices: cuBLAS's workspaces."""
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024)).cuda()
    assert in_use() == 8.0078125
    for layer in (model[0], model[2], model):
        fully_shard(layer)
    assert in_use() == 4.00390625
    x = torch.ones(4, 1024, device="cuda")
    for _ in range(3):
        y = model(x)
        assert in_use() == 4.05078125
        y.sum().backward()
        del y
        assert in_use() == 8.0234375
        model.zero_grad()
        assert in_use() == 4.01953125


def begin(sent):
    """Begins on a rank. Returns the store on rank 0: rank 1 sends a message of a mebibyte for each of some numbers, and
    gets None, when its key "go on" has been set."""
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        return store
    store.get("go on")
    for number in sent:
        dist.send(torch.full((MEBIBYTE // 4,), float(number), device="cuda"), 0)
    return None


@torchemu.distributed(world_size=2, torch="real")
def test_what_only_waits_to_be_computed_takes_no_memory():
    """Rank 0 goes on while messages lack their sender, and drops what it has made of each: a device's allocator would
    give the memory to the next one."""
    store = begin(range(8))
    if store is None:
        return
    torch.cuda.synchronize()
    before, capacity = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[1]
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.set_per_process_memory_fraction((before + 2.5 * MEBIBYTE) / capacity)
    sums = []
    for i in range(8):
        got = torch.empty(MEBIBYTE // 4, device="cuda")
        dist.irecv(got, 1).wait()
        doubled = got * 2
        sums.append(doubled.sum())
        del got, doubled
        assert torch.cuda.memory_allocated() == before + 512 * (i + 1)
    assert torch.cuda.max_memory_allocated() == before + 2 * MEBIBYTE + 512 * 8
    store.set("go on", "")
    assert torch.stack(sums).tolist() == [2.0 * i * MEBIBYTE / 4 for i in range(8)]
    assert torch.cuda.memory_allocated() == before + 512 * 8


@torchemu.distributed(world_size=2, torch="real")
def test_what_the_program_has_keeps_its_memory_while_it_waits():
    """Views, what autograd has saved, and what a list has, of messages that lack their sender."""
    store = begin([3])
    if store is None:
        return
    weight = torch.ones(MEBIBYTE // 4, device="cuda", requires_grad=True)
    before = torch.cuda.memory_allocated()
    got = torch.empty(MEBIBYTE // 4, device="cuda")
    work = dist.irecv(got, 1)
    work.wait()
    view, product = got[5:], got * weight
    del got
    assert torch.cuda.memory_allocated() == before + 2 * MEBIBYTE
    loss = product.sum()
    del product, view
    assert torch.cuda.memory_allocated() == before + MEBIBYTE + 512  # the backward pass needs what came
    store.set("go on", "")
    loss.backward()
    assert weight.grad.eq(3).all() and loss.item() == 3 * MEBIBYTE / 4


def sharded(model):
    first, *between, last = model
    parts = FullyShardedDataParallel(first), *between, FullyShardedDataParallel(last)
    return FullyShardedDataParallel(nn.Sequential(*parts))


@torchemu.distributed(world_size=2, torch="real")
def test_a_step_leaves_no_garbage_on_devices():
    """A step gives back what it has used as it ends, and not when Python looks for what refers to itself; what it then
    gathers into the same addresses has no order with what used them before."""
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    model = sharded(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).cuda())
    x, seen = torch.ones(256, 64, device="cuda"), []
    gc.disable()
    try:
        for _ in range(4):
            nn.functional.mse_loss(model(x).sum(), torch.tensor(0.0).cuda()).backward()
            model.zero_grad(set_to_none=True)
            seen.append(torch.cuda.memory_allocated())
    finally:
        gc.enable()
    assert seen[1:] == seen[1:2] * 3


@torchemu.distributed(world_size=1, torch="real")
def test_memory_that_is_given_back_is_no_more_what_it_was():
    """A storage gets other memory then, whose uses nothing has to order, although the address may be the same."""
    side = torch.cuda.Stream()
    for size in (64, 4096, 1 << 20):
        x = torch.ones(size, device="cuda")
        y = 2 * x
        x.untyped_storage().resize_(0)
        with torch.cuda.stream(side):
            x.untyped_storage().resize_(4 * size)
            x.fill_(3.0)
        torch.cuda.current_stream().wait_stream(side)
        assert (y.sum() + x.sum()).item() == 5.0 * size
