"""Methods of PyTorch's ProcessGroupNCCL that programs call, beside collectives."""

import os
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ErrorType, OpType, WorkResult

import torchemu

real = torchemu.distributed(world_size=2, torch="real", virtual_clock=True)


@real
def test_what_they_answer():
    """Groups answer as on an H200, but for what NCCL alone can do: tensors are PyTorch's."""
    dist.init_process_group("nccl")
    backend = dist.group.WORLD._get_backend(torch.device("cuda"))
    assert backend.get_error() is ErrorType.SUCCESS
    kind = dist.ProcessGroupNCCL
    assert kind.get_build_nccl_version() == kind.get_runtime_nccl_version() == tuple(torch.cuda.nccl.version())
    policies = kind.NCCL_CTA_POLICY_DEFAULT, kind.NCCL_CTA_POLICY_EFFICIENCY, kind.NCCL_CTA_POLICY_ZERO
    assert policies == (0, 1, 2)
    assert backend.supports_shrinking and not backend.supports_tensor_alloc(torch.device("cuda"))


@pytest.mark.parametrize("extended", [False, True])
def test_the_next_operation_may_have_more_time(extended):
    @real
    def program():
        dist.init_process_group("nccl", timeout=timedelta(seconds=1))
        x = torch.ones(2, device="cuda")
        if extended:
            dist.distributed_c10d._add_ephemeral_timeout_for_all_pgs(timedelta(seconds=2))
        for number in range(2):
            if dist.get_rank() == 1:
                time.sleep(2)
            dist.all_reduce(x)
            assert x.tolist() == [2 << number] * 2

    with pytest.raises(dist.DistBackendError, match=rf"after 1000 ms.*\(collective #{int(extended)} of group 0\)"):
        program()


@real
def test_more_time_ends_with_the_first_operation_that_had_it():
    dist.init_process_group("nccl", timeout=timedelta(seconds=10))
    backend = dist.group.WORLD._get_backend(torch.device("cuda"))
    x = torch.ones(2, device="cuda")

    def has(*seconds):
        works = [dist.all_reduce(x, async_op=True) for _ in seconds]
        found = [backend._verify_work_timeout(w, timedelta(seconds=s)) for w, s in zip(works, seconds, strict=True)]
        torch.cuda.synchronize()
        return all(found)

    assert has(10)
    dist.distributed_c10d._add_ephemeral_timeout_for_all_pgs(timedelta(seconds=5))
    assert has(15, 15)
    assert has(10)


@real
def test_groups_have_numbers_and_are_connected_when_they_are_used():
    """Groups say of themselves what they do on an H200."""
    dist.init_process_group("nccl")
    cuda = torch.device("cuda")
    backend = dist.group.WORLD._get_backend(cuda)
    assert backend.uid == 0 and not backend._is_initialized()
    assert dist.new_group()._get_backend(cuda).uid == 1
    work = dist.all_reduce(torch.ones(2, device=cuda), async_op=True)
    assert backend._is_initialized()
    assert work._get_sequence_number() == 1 and WorkResult(work.get_future_result().wait()) == WorkResult.SUCCESS
    assert backend.comm_split_count() == 0
    dist.destroy_process_group()
    with pytest.raises(dist.DistBackendError, match="NCCL communicator was aborted on rank"):
        backend.allreduce([torch.ones(2, device=cuda)])


@real
def test_groups_of_one_that_is_bound_to_a_device_are_split_off():
    rank = int(os.environ["LOCAL_RANK"])
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    backend = dist.group.WORLD._get_backend(torch.device("cuda"))
    assert backend._is_initialized() and backend.comm_split_count() == 0
    dist.new_group([0])
    assert backend.comm_split_count() == 1


@real
def test_who_handles_errors_learns_of_those_of_other_ranks():
    os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "0"
    dist.init_process_group("nccl", timeout=timedelta(seconds=2))
    backend = dist.group.WORLD._get_backend(torch.device("cuda"))
    dist.barrier()
    if dist.get_rank() == 0:
        work = dist.all_reduce(torch.ones(2, device="cuda"), async_op=True)
        work.wait()
        assert WorkResult(work.get_future_result().wait()) == WorkResult.TIMEOUT
        assert backend.get_error() == ErrorType.TIMEOUT
        with pytest.raises(dist.DistBackendError, match="Original reason for failure was"):
            dist.barrier()
    else:
        time.sleep(3)
        assert backend.get_error() == ErrorType.REMOTE_ERROR


@real
def test_works_that_have_been_waited_for_are_no_longer_registered():
    dist.init_process_group("nccl")
    x, registered = torch.ones(2, device="cuda"), torch._C._distributed_c10d._get_work_registry_size
    before = registered()
    with torch.distributed._functional_collectives.allow_inflight_collective_as_graph_input_ctx():
        work = dist.all_reduce(x, async_op=True)
        assert registered() == before + 1
        work.wait()
    assert registered() == before and x.tolist() == [2, 2]


four = torchemu.distributed(world_size=4, torch="real")


@pytest.mark.parametrize("flags", [dist.distributed_c10d.SHRINK_DEFAULT, dist.distributed_c10d.SHRINK_ABORT])
@four
def test_a_shrunk_group_takes_the_place_of_the_default_one(flags):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    before = dist.group.WORLD
    dist.all_reduce(torch.ones(2, device="cuda"))
    if rank in (1, 3):
        return
    made = dist.shrink_group([3, 1], shrink_flags=flags)
    assert made is dist.group.WORLD and made is not before
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (rank // 2, 2, "nccl")
    assert (made.group_desc, dist.get_process_group_ranks(made)) == ("default:shrunken", [0, 2])
    x = torch.full((2,), float(rank), device="cuda")
    dist.all_reduce(x)
    assert x.tolist() == [2.0, 2.0]
    dist.barrier()
    dist.destroy_process_group()


@four
def test_a_shrunk_group_beside_the_default_one():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    group = dist.new_group([1, 2, 3])
    if rank in (1, 3):
        made = dist.shrink_group([1], group)
        x = torch.full((2,), float(rank), device="cuda")
        dist.broadcast(x, group=made, group_src=1)
        assert (x.tolist(), made.size(), made.rank()) == ([3.0, 3.0], 2, rank // 2)
    elif rank == 2:
        with pytest.raises(RuntimeError, match="Current rank 1 is in the exclusion list"):
            dist.shrink_group([1], group)
    dist.barrier()


@real
def test_groups_of_gloo_do_not_shrink():
    dist.init_process_group("gloo")
    with pytest.raises(TypeError, match="does not support shrinking"):
        dist.shrink_group([1])


@real
def test_a_function_hears_of_what_has_ended():
    dist.init_process_group("nccl")
    group, told, x = dist.group.WORLD, [], torch.ones(1 << 16, device="cuda")
    os.environ["TORCH_NCCL_ENABLE_TIMING"] = "0"
    with pytest.raises(dist.DistBackendError, match="TORCH_NCCL_ENABLE_TIMING"):
        group._register_on_completion_hook(told.append)
    os.environ["TORCH_NCCL_ENABLE_TIMING"] = "1"
    group._register_on_completion_hook(told.append)
    with pytest.raises(dist.DistBackendError, match="already registered"):
        group._register_on_completion_hook(told.append)
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    assert not told
    torch.cuda.synchronize()
    dist.barrier()
    assert [(w.op_type, w.seq) for w in told] == [(OpType.ALLREDUCE, 1), (OpType.BROADCAST, 2)]
    assert all(w.time_started < w.time_finished and w.active_duration > timedelta() for w in told)
    dist.destroy_process_group()
    assert len(told) == 3


@real
def test_tensors_are_pytorchs():
    dist.init_process_group("nccl")
    backend = dist.group.WORLD._get_backend(torch.device("cuda"))
    with pytest.raises(RuntimeError, match="Backend nccl does not support allocateTensor"):
        backend.allocate_tensor(4, dtype=torch.float32, device=torch.device("cuda"))
