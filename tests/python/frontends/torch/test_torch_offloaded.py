"""FSDP2's parameters offloaded to the host: those that a program has moved to a device are refused, as PyTorch does."""

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard
from torch.distributed.tensor import distribute_tensor

import torchemu

of_pinned = pytest.mark.parametrize("pinned", [True, False])
pair = torchemu.distributed(world_size=2, torch="real")


def sharded(pinned, weights):
    """Returns two layers whose weights are given, each of them sharded and offloaded."""
    dist.init_process_group("cpu:gloo,cuda:nccl")
    torch.cuda.set_device(dist.get_rank())
    layers = nn.Sequential(*[nn.Linear(4, 4, bias=False) for _ in weights])
    for layer, weight in zip(layers, weights, strict=True):
        layer.weight = nn.Parameter(weight.clone())
        fully_shard(layer, offload_policy=CPUOffloadPolicy(pin_memory=pinned))
    return fully_shard(layers, offload_policy=CPUOffloadPolicy(pin_memory=pinned))


WEIGHTS = [torch.arange(16.0).reshape(4, 4), torch.eye(4) * 2]


@of_pinned
@pair
def test_parameters_that_are_on_a_device(pinned):
    model = sharded(pinned, WEIGHTS).to("cuda")
    with pytest.raises(RuntimeError, match="materialized on CPU when enabling CPU offloading") as raised:
        model(torch.ones(2, 4, device="cuda"))
    device = f"device(type='cuda', index={dist.get_rank()})"
    assert f"Found following parameters on non-CPU device: [('0.weight', {device})]" in str(raised.value)


@of_pinned
@pair
def test_a_state_of_a_device(pinned):
    model = sharded(pinned, WEIGHTS)
    state = {
        name: distribute_tensor(torch.ones(4, 4, device="cuda"), of.device_mesh, of.placements)
        for name, of in model.named_parameters()
    }
    model.load_state_dict(state, assign=True)
    with pytest.raises(RuntimeError, match="non-CPU device"):
        model(torch.ones(2, 4, device="cuda"))


@of_pinned
@pair
def test_parameters_that_are_on_the_host(pinned):
    model = sharded(pinned, WEIGHTS)
    out = model(torch.ones(1, 4, device="cuda"))
    assert out.tolist() == [[2.0 * sum(row) for row in WEIGHTS[0].tolist()]]
    out.sum().backward()
    for parameter in model.parameters():
        assert parameter.device.type == parameter.grad.device.type == "cpu"
    expected = torch.full((4, 4), 2.0), WEIGHTS[0].sum(1).expand(4, 4)
    rows = slice(2 * dist.get_rank(), 2 * dist.get_rank() + 2)
    for parameter, want in zip(model.parameters(), expected, strict=True):
        assert torch.equal(parameter.grad.to_local(), want[rows])
