"""Methods of PyTorch's ProcessGroupNCCL that programs call, beside collectives."""

import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ErrorType

import torchemu

real = torchemu.distributed(world_size=2, torch="real", virtual_clock=True)


@real
def test_what_they_answer():
    """Groups answer as on an H200, but for what NCCL alone can do: no group shrinks, and tensors are PyTorch's."""
    dist.init_process_group("nccl")
    backend = dist.group.WORLD._get_backend(torch.device("cuda"))
    assert backend.get_error() is ErrorType.SUCCESS
    kind = dist.ProcessGroupNCCL
    assert kind.get_build_nccl_version() == kind.get_runtime_nccl_version() == tuple(torch.cuda.nccl.version())
    policies = kind.NCCL_CTA_POLICY_DEFAULT, kind.NCCL_CTA_POLICY_EFFICIENCY, kind.NCCL_CTA_POLICY_ZERO
    assert policies == (0, 1, 2)
    assert not backend.supports_shrinking and not backend.supports_tensor_alloc(torch.device("cuda"))


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
