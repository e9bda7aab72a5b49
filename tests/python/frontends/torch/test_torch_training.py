"""Parallel training with the installed PyTorch: as on one rank."""

import pytest
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.functional import mse_loss
from torch.nn.parallel._functions import _get_stream

import torchemu

WORLD = 4
STEPS = 3

real = torchemu.distributed(world_size=WORLD, torch="real")


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4))


def batch(step):
    generator = torch.Generator().manual_seed(100 + step)
    return torch.randn(WORLD * 2, 6, generator=generator), torch.randn(WORLD * 2, 4, generator=generator)


def alone():
    """The losses of one rank that has all data."""
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    return [step(net, optimizer, *batch(number)) for number in range(STEPS)]


def step(net, optimizer, x, y):
    loss = mse_loss(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def together(net):
    """The same of ranks that have a part of the data each."""
    rank = dist.get_rank()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for number in range(STEPS):
        x, y = (t.chunk(WORLD)[rank] for t in batch(number))
        loss = step(net, optimizer, x, y)
        dist.all_reduce(loss, dist.ReduceOp.AVG)
        losses.append(loss)
    return losses


@pytest.mark.shows("PyTorch: DistributedDataParallel")
@real
def test_ddp():
    dist.init_process_group("gloo")
    torch.testing.assert_close(together(nn.parallel.DistributedDataParallel(model())), alone())


@pytest.mark.shows("PyTorch: FSDP2")
@real
def test_fully_shard():
    from torch.distributed.fsdp import fully_shard

    dist.init_process_group("gloo")
    net = model()
    for layer in (net[0], net[2]):
        fully_shard(layer)
    torch.testing.assert_close(together(fully_shard(net)), alone())


@pytest.mark.shows("PyTorch: tensor parallelism by DTensor")
@real
def test_tensor_parallel():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (WORLD,))
    net = parallelize_module(model(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    torch.testing.assert_close([step(net, optimizer, *batch(number)) for number in range(STEPS)], alone())


@pytest.mark.shows("PyTorch: pipelines")
@real
def test_pipeline():
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    layers = [nn.Linear(5, 5) for _ in range(WORLD)]
    stage = PipelineStage(layers[rank], rank, WORLD, torch.device("cpu"))
    schedule = Schedule1F1B(stage, 4, loss_fn=mse_loss)
    x, y = torch.randn(8, 5), torch.randn(8, 5)
    losses = []
    schedule.step(*([x] if rank == 0 else []), target=y if rank == WORLD - 1 else None, losses=losses)
    whole = nn.Sequential(*layers)
    mse_loss(whole(x), y).backward()
    if rank == WORLD - 1:
        torch.testing.assert_close(torch.stack(losses).mean(), mse_loss(whole(x), y))


@pytest.mark.shows("PyTorch: torch.distributed.checkpoint")
@real
def test_a_checkpoint_that_other_ranks_load(tmp_path_factory):
    import tempfile

    from torch.distributed import checkpoint
    from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh

    dist.init_process_group("gloo")
    folder = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder)
    mesh = init_device_mesh("cpu", (WORLD,))
    values = torch.arange(64.0).reshape(8, 8)
    checkpoint.save({"a": distribute_tensor(values, mesh, [Shard(0)])}, checkpoint_id=folder[0])
    loaded = {"a": distribute_tensor(torch.zeros(8, 8), mesh, [Shard(1)])}
    checkpoint.load(loaded, checkpoint_id=folder[0])
    assert torch.equal(loaded["a"].full_tensor(), values)


@pytest.mark.shows("PyTorch: SyncBatchNorm")
@real
def test_synchronized_batch_norm():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    torch.manual_seed(0)
    whole = torch.randn(WORLD * 3, 5, 2)
    plain, weights = nn.BatchNorm1d(5), torch.rand(WORLD * 3, 5, 2)
    layer = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(5)).cuda()
    x = whole.clone().requires_grad_()
    (plain(x) * weights).sum().backward()
    part = whole.chunk(WORLD)[rank].cuda().requires_grad_()
    out = layer(part)
    (out * weights.chunk(WORLD)[rank].cuda()).sum().backward()
    torch.testing.assert_close(out.cpu(), plain(whole).chunk(WORLD)[rank], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(part.grad.cpu(), x.grad.chunk(WORLD)[rank], atol=1e-5, rtol=1e-4)
    dist.all_reduce(layer.weight.grad)
    torch.testing.assert_close(layer.weight.grad.cpu(), plain.weight.grad, atol=1e-4, rtol=1e-4)


@torchemu.distributed(world_size=2, torch="real")
def test_streams_that_ddp_copies_inputs_on_are_of_one_rank():
    """PyTorch keeps them for the whole process, by devices; ranks of several nodes have devices of the same number."""
    dist.init_process_group("nccl")
    stream, ids = _get_stream(torch.device("cuda:0")), [None, None]
    assert stream is _get_stream(torch.device("cuda:0"))
    dist.all_gather_object(ids, id(stream))
    assert ids[0] != ids[1]
