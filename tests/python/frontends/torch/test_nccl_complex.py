"""Complex numbers in groups of NCCL, which takes their parts: sums by hand, and a model in DDP against one without."""

import copy

import pytest
import torch
import torch.distributed as dist
from torch import nn

import torchemu

pair = torchemu.distributed(world_size=2, torch="real")


def joined():
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    return dist.get_rank(), dist.group.WORLD


def given(rank, n, dtype):
    return torch.tensor([complex(i + rank, 10 * rank - i) for i in range(n)], dtype=dtype, device="cuda")


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("n", [0, 1, 5])
@pair
def test_collectives_of_a_group(dtype, n):
    rank, group = joined()
    x = given(rank, n, dtype)
    work = group.allreduce([x])
    work.wait()
    assert x.tolist() == [complex(2 * i + 1, 10 - 2 * i) for i in range(n)]
    assert work.get_future().wait()[0].dtype == dtype
    x = given(rank, n, dtype)
    group.broadcast([x]).wait()
    assert x.tolist() == given(0, n, dtype).tolist()
    x = given(rank, n, dtype)
    group.reduce([x]).wait()
    if rank == 0:
        assert x.tolist() == [complex(2 * i + 1, 10 - 2 * i) for i in range(n)]


@pair
def test_products_are_none_of_parts():
    rank, group = joined()
    options = dist.AllreduceOptions()
    options.reduceOp = dist.ReduceOp.PRODUCT
    with pytest.raises(RuntimeError, match="all_reduce does not support"):
        group.allreduce([given(rank, 3, torch.complex64)], options)


class Rotated(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([[1 + 2j, 3 - 1j], [0.5j, 2.0]], dtype=torch.complex64))

    def forward(self, x):
        return (torch.fft.fft(x) @ self.weight).abs()


@pair
def test_gradients_of_complex_parameters():
    rank, _ = joined()
    whole = torch.tensor([[1.0, 2.0], [3.0, 5.0], [7.0, 11.0], [13.0, 17.0]], device="cuda")
    alone = Rotated().cuda()
    model = nn.parallel.DistributedDataParallel(copy.deepcopy(alone), device_ids=[rank])
    alone(whole).mean().backward()
    model(whole[2 * rank : 2 * rank + 2]).mean().backward()
    found, wanted = model.module.weight.grad, alone.weight.grad
    assert found.dtype == torch.complex64
    torch.testing.assert_close(found, wanted)
