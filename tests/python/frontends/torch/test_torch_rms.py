"""RMSNorm on devices, which CUDA does as one operation: of DTensors against that of whole tensors, and of these against
the host's, which PyTorch takes apart."""

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


def results(x, weight):
    """Returns what a norm gives, with its gradients, those of the gradients, and derivatives forwards."""
    norm = torch.nn.functional.rms_norm
    out = norm(x, (8,), weight)
    first = torch.autograd.grad(out.square().sum(), (x, weight), create_graph=True)
    second = torch.autograd.grad(sum(grad.square().sum() for grad in first), (x, weight))
    plain = norm(x, (8,), weight).sum()
    forwards = torch.func.jvp(lambda x: norm(x, (8,), weight), (x,), (x.detach() + 1,))[1]
    rows = torch.func.vmap(lambda x: norm(x, (8,), weight))(x)
    return [out, *first, *second, *torch.autograd.grad(plain, (x, weight)), forwards, rows]


@pytest.mark.filterwarnings("ignore:.torch.jit.script:FutureWarning")
@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # PyTorch's own, for derivatives forwards
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@torchemu.distributed(world_size=1, torch="real")
def test_results_and_derivatives_are_those_of_the_host(dtype):
    torch.manual_seed(5)
    hosts = [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in ((4, 8), (8,))]
    devices = [t.detach().cuda().requires_grad_() for t in hosts]
    for found, wanted in zip(results(*devices), results(*hosts), strict=True):
        assert found.is_cuda
        torch.testing.assert_close(found.cpu(), wanted)


@torchemu.distributed(world_size=1, torch="real")
def test_a_norm_takes_the_time_of_one_operation():
    x, weight = torch.ones(1024, 1024, device="cuda"), torch.ones(1024, device="cuda")

    def took(function):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record()
        function()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end)

    norm, multiplied = took(lambda: torch.nn.functional.rms_norm(x, (1024,), weight)), took(lambda: x * weight)
    assert multiplied <= norm < 1.1 * multiplied
