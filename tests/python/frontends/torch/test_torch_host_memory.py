"""Operations between ranks on their hosts' memory: they do not come after what the devices have to do, as on gloo's own
threads."""

import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

import torchemu

real = torchemu.distributed(world_size=2, torch="real", virtual_clock=True)


def all_reduced(group, rank):
    x = torch.tensor([rank + 1.0, 2])
    dist.all_reduce(x, group=group)
    assert x.tolist() == [3, 4]


def gathered(group, rank):
    found = [None, None]
    dist.all_gather_object(found, {"rank": rank}, group=group)
    assert found == [{"rank": 0}, {"rank": 1}]


def sent(group, rank):
    x = torch.tensor([rank + 5.0])
    dist.send(x, 1, group) if rank == 0 else dist.recv(x, 0, group)
    assert x.item() == 5


OPERATIONS = {
    "all_reduce": all_reduced,
    "all_gather_object": gathered,
    "message": sent,
    "barrier": lambda group, rank: dist.barrier(group),
    "monitored_barrier": lambda group, rank: dist.monitored_barrier(group, timedelta(seconds=1)),
}


def joined():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    return rank, dist.new_group(backend="gloo")


@pytest.mark.parametrize("operation", OPERATIONS)
@real
def test_a_device_may_wait_for_a_rank_that_waits_on_its_host(operation):
    rank, group = joined()
    x = torch.full((4,), rank + 1.0, device="cuda")
    if rank == 0:
        dist.broadcast(x, 0)
    OPERATIONS[operation](group, rank)
    if rank == 1:
        dist.broadcast(x, 0)
    assert x.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("operation", OPERATIONS)
@real
def test_they_do_not_wait_for_kernels(operation):
    rank, group = joined()
    start = time.monotonic()
    torch.cuda._sleep(1 << 30)
    OPERATIONS[operation](group, rank)
    assert not torch.cuda.current_stream().query()
    took = time.monotonic() - start
    torch.cuda.synchronize()
    assert time.monotonic() - start > 2 * took


@real
def test_what_was_copied_from_a_device_is_there():
    rank, group = joined()
    x = torch.full((1 << 16,), rank + 1.0, device="cuda")
    dist.all_reduce(x)
    x.mul_(2)
    copied = x.cpu()
    dist.all_reduce(copied, group=group)
    assert copied.eq(12).all()


@pytest.mark.parametrize("operation", [dist.barrier, lambda: dist.all_gather_object([None, None], 1)])
@real
def test_barriers_and_objects_of_nccl_come_after_kernels(operation):
    joined()
    torch.cuda._sleep(1 << 30)
    operation()
    assert torch.cuda.current_stream().query()
