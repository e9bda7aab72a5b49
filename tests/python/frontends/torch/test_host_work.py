"""Time that PyTorch takes hosts beside launches, which take nothing here: what is counted by hand."""

import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="no PyTorch is installed here")
import torch.distributed as dist  # noqa: E402
from torch.distributed._functional_collectives import all_reduce, wait_tensor  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard  # noqa: E402
from torch.distributed.fsdp.wrap import ModuleWrapPolicy  # noqa: E402
from torch.distributed.tensor import DTensor, Shard, distribute_tensor  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import torchemu  # noqa: E402

nn = torch.nn

DTENSOR, BACKWARD, FUNCTIONAL, FSDP, PARAMETER, STEPPED = 5, 700, 11_000, 130_000, 900_000, 19
"""The microseconds that host_work.yaml has."""

TOPOLOGY = str(Path(__file__).with_name("host_work.yaml"))
there = torchemu.distributed(world_size=2, torch="real", topology=TOPOLOGY, virtual_clock=True)


def joined():
    """Makes a group, and lets what follows begin on a device that has nothing to do."""
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    torch.set_default_device("cuda")
    return init_device_mesh("cuda", (2,))


def host_us(step):
    """Returns the microseconds that a host takes to issue a step."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    step()
    torch.cuda.Event().record()  # nothing waits to be issued any more
    took = time.perf_counter() - start
    torch.cuda.synchronize()
    return round(took * 1e6)


@there
def test_each_dtensor_that_an_operation_is_given():
    x = distribute_tensor(torch.ones(4, 4), joined(), [Shard(0)])
    assert host_us(lambda: x + x) == 2 * DTENSOR
    assert host_us(lambda: x * 2) == DTENSOR
    assert host_us(lambda: x.view(2, 2, 4)) == DTENSOR
    assert host_us(lambda: torch._foreach_mul_([x, x, x], [x, x, x])) == 6 * DTENSOR
    assert host_us(lambda: x.to_local() + 1) == 0


class Counting(TorchDispatchMode):
    """Counts operations of DTensors, and these."""

    operations = operands = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(issubclass(kind, DTensor) for kind in types):
            self.operations += 1
            self.operands += sum(isinstance(x, DTensor) for x in args)
        return func(*args, **(kwargs or {}))


@there
def test_operations_of_dtensors_in_a_backward_pass():
    x = distribute_tensor(torch.ones(4, 4), joined(), [Shard(0)]).requires_grad_()

    def passed():
        (x * x * x).backward(ones)

    ones = torch.ones_like(x).detach()
    counted = Counting()
    y = x * x * x
    with counted:
        y.backward(ones)
    x.grad = None
    took = host_us(passed)
    assert took == 4 * DTENSOR + counted.operands * DTENSOR + counted.operations * BACKWARD
    assert counted.operations >= 4  # two factors have two gradients each


@there
def test_functional_collectives():
    mesh, x = joined(), torch.ones(4)
    assert host_us(lambda: wait_tensor(all_reduce(x, "sum", mesh))) == FUNCTIONAL
    assert host_us(lambda: dist.all_reduce(x)) == 0


def blocks():
    return nn.Sequential(*(nn.Linear(4, 4) for _ in range(3)))


@there
def test_hooks_of_fsdp2():
    joined()
    model = blocks()
    for block in model:
        fully_shard(block)
    fully_shard(model)
    model(torch.ones(2, 4)).sum().backward()  # what is done once is done
    took = host_us(lambda: model(torch.ones(2, 4)))
    assert took == 3 * (2 * FSDP + 2 * PARAMETER)  # before and after each block, whose weight and bias are gathered
    out = model(torch.ones(2, 4)).sum()
    took = host_us(out.backward)
    assert took == 3 * (2 * FSDP + 4 * PARAMETER)  # gathered again, and their gradients reduced


class Twice(nn.Module):
    """A module with two results, each of which has a hook."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        return self.inner(x), self.inner(x + 1)


@there
def test_a_module_with_two_results_is_gathered_once():
    joined()
    model = fully_shard(Twice())
    sum(model(torch.ones(2, 4))).sum().backward()
    out = sum(model(torch.ones(2, 4))).sum()
    took = host_us(out.backward)
    assert took == FSDP + 2 * PARAMETER + FSDP + 2 * PARAMETER  # before and after


@there
def test_hooks_of_fsdp1():
    joined()
    model = FullyShardedDataParallel(blocks(), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}))
    model(torch.ones(2, 4)).sum().backward()
    took = host_us(lambda: model(torch.ones(2, 4)).sum().backward())
    assert took == 3 * 4 * FSDP  # each block is gathered twice, and its parameters are freed as often


@there
def test_each_parameter_that_an_optimizer_steps():
    joined()
    layers = blocks()
    layers[0].requires_grad_(False)
    for kind, how in (
        (torch.optim.SGD, {}),
        (torch.optim.SGD, {"momentum": 0.9}),
        (torch.optim.AdamW, {"fused": True}),
    ):
        optimizer = kind(layers.parameters(), **how)
        layers(torch.ones(2, 4)).sum().backward()
        assert host_us(optimizer.step) == 4 * STEPPED
        optimizer.zero_grad()
        assert host_us(optimizer.step) == 0


@torchemu.distributed(world_size=2, torch="real", topology="sips2", virtual_clock=True)
def test_other_topologies_take_nothing():
    x = distribute_tensor(torch.ones(4, 4), joined(), [Shard(0)])
    assert host_us(lambda: x + x) == 4  # its launch
