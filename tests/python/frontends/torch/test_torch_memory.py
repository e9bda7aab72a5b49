"""Memory that devices have in use, beside what PyTorch says on H200s."""

import gc

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

import torchemu

MEBIBYTE = 1 << 20


def in_use():
    torch.cuda.synchronize()
    gc.collect()
    return torch.cuda.memory_allocated() / MEBIBYTE


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
