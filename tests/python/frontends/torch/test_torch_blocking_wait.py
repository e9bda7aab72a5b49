"""Waits that block the host for operations of devices, as NCCL's do when they are told how long."""

import os
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

import torchemu

real = torchemu.distributed(world_size=3, torch="real", virtual_clock=True)

SECOND = timedelta(seconds=1)
LATE = "caught collective operation timeout: after 1000 ms.*joined it"


def joined():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    return rank


def reducing():
    """A tensor that is being reduced, the operation, and when it began."""
    x = torch.full((1 << 20,), joined() + 1.0, device="cuda")
    work = dist.all_reduce(x, async_op=True)
    return x, work, time.monotonic()


@real
def test_a_wait_with_a_timeout_ends_with_the_operation():
    x, work, start = reducing()
    work.wait(SECOND)
    assert work.is_completed() and start < time.monotonic() < start + 1
    assert x.eq(6).all()


@real
def test_without_one_the_host_goes_on():
    _, work, start = reducing()
    work.wait()
    assert time.monotonic() == start and not torch.cuda.current_stream().query()


@pytest.mark.parametrize("late", [0, 2])
@real
def test_an_operation_that_takes_longer_ends_with_an_error_where_it_is_waited_for(late):
    rank = joined()
    x = torch.ones(4, device="cuda")
    start = time.monotonic()
    if rank == late:
        time.sleep(3)
        return
    work = dist.all_reduce(x, async_op=True)
    with pytest.raises(dist.DistBackendError, match=LATE):
        work.wait(SECOND)
    assert 1 <= time.monotonic() - start < 1.1
    time.sleep(3 - (time.monotonic() - start))
    assert x.tolist() == [1, 1, 1, 1] and x.sum().item() == 4


@real
def test_a_message_that_nobody_sends():
    if joined() == 1:
        work = dist.irecv(torch.ones(4, device="cuda"), src=0)
        with pytest.raises(dist.DistBackendError, match="operation timeout: after 1000 ms"):
            work.wait(SECOND)


@real
def test_the_environment_makes_all_waits_block():
    os.environ["TORCH_NCCL_BLOCKING_WAIT"] = "1"
    rank = joined()
    x = torch.full((1 << 20,), rank + 1.0, device="cuda")
    dist.all_reduce(x)
    assert torch.cuda.current_stream().query()
    assert x.eq(6).all()


@real
def test_a_barrier_that_lasts_too_long_has_nccls_error():
    if joined() == 0:
        with pytest.raises(dist.DistBackendError, match="Timed out waiting 1000ms"):
            dist.barrier(async_op=True).wait(SECOND)
        with pytest.raises(dist.DistBackendError, match=r"aborted on rank 0\. Original reason"):
            dist.all_reduce(torch.ones(1, device="cuda"))


@pytest.mark.parametrize("said", ["abc", "-1", ""])
@real
def test_the_environment_has_to_say_yes_or_no(said):
    os.environ["TORCH_NCCL_BLOCKING_WAIT"] = said
    with pytest.raises(RuntimeError, match="Invalid value for environment variable: TORCH_NCCL_BLOCKING_WAIT"):
        joined()
