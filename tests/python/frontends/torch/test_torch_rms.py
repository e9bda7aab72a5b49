"""RMSNorm of DTensors on devices, which CUDA does as one operation, against that of whole tensors."""

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import torchemu


@pytest.mark.parametrize("sharded", [0, 1, 2])
@pytest.mark.parametrize("has_weight", [False, True])
@torchemu.distributed(world_size=2, torch="real")
def test_rms_norm_of_dtensors(sharded, has_weight):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    mesh = init_device_mesh("cuda", (2,))
    torch.manual_seed(3)
    x = torch.randn(4, 6, 8, device="cuda", requires_grad=True)
    weight = torch.rand(6, 8, device="cuda", requires_grad=True) if has_weight else None
    torch.nn.functional.rms_norm(x, (6, 8), weight).square().sum().backward()
    parted = distribute_tensor(x.detach(), mesh, [Shard(sharded)]).requires_grad_()
    same = distribute_tensor(weight.detach(), mesh, [Replicate()]).requires_grad_() if has_weight else None
    torch.nn.functional.rms_norm(parted, (6, 8), same).square().sum().backward()
    torch.testing.assert_close(parted.grad.full_tensor(), x.grad)
    if has_weight:
        torch.testing.assert_close(same.grad.full_tensor(), weight.grad)


@torchemu.distributed(world_size=2, torch="real")
def test_what_is_normalized_may_need_no_gradient():
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    mesh = init_device_mesh("cuda", (2,))
    torch.manual_seed(3)
    x, weight = torch.randn(4, 6, 8, device="cuda"), torch.rand(8, device="cuda", requires_grad=True)
    torch.nn.functional.rms_norm(x, (8,), weight).square().sum().backward()
    same = distribute_tensor(weight.detach(), mesh, [Replicate()]).requires_grad_()
    parted = distribute_tensor(x, mesh, [Shard(1)])
    torch.nn.functional.rms_norm(parted, (8,), same).square().sum().backward()
    torch.testing.assert_close(same.grad.full_tensor(), weight.grad)
