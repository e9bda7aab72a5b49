"""Functional collectives that write into a tensor of the program's: torch.ops._c10d_functional's with `out`."""

import pytest
import torch
import torch.distributed as dist

import torchemu

operators = torch.ops._c10d_functional


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
@pytest.mark.parametrize("shape", [(0,), (1,), (3, 2), (513, 7)])
@torchemu.distributed(world_size=3, torch="real")
def test_gathered_into_a_tensor(backend, shape):
    dist.init_process_group(backend)
    device = "cuda" if backend == "nccl" else "cpu"
    bring = [torch.arange(torch.Size(shape).numel(), dtype=torch.float64).reshape(shape) * 10 + r for r in range(3)]
    out = torch.full((3 * shape[0], *shape[1:]), -1.0, dtype=torch.float64, device=device)
    given = bring[dist.get_rank()].to(device)
    issued = operators.all_gather_into_tensor_out(given, 3, dist.group.WORLD.group_name, out=out)
    waited = operators.wait_tensor(issued)
    assert waited.data_ptr() == out.data_ptr() and torch.equal(out.cpu(), torch.cat(bring))
    assert torch._C._distributed_c10d._get_work_registry_size() == 0


@torchemu.distributed(world_size=2, torch="real")
def test_rows_with_gaps_are_gathered():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    out = torch.zeros(4, 3)
    whole = torch.arange(12.0).reshape(3, 4) + 100 * rank
    issued = operators.all_gather_into_tensor_out(whole.t()[:2], 2, dist.group.WORLD.group_name, out=out)
    assert operators.wait_tensor(issued).tolist() == [
        [column + 4.0 * row + 100 * r for row in range(3)] for r in range(2) for column in range(2)
    ]
