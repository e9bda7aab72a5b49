"""Times that programs take a host, too small for its GPU to matter: a user's file, which runs on GPUs and on torchemu.

On a machine with H200s, to record what h200_hosts.csv has:

    torchrun --nproc-per-node 2 benches/fidelity/hosts.py --record benches/fidelity/h200_hosts.csv

Beside it, what the preset of that machine predicts:

    torchemu run --torch real --no-data --topology h200_8 --nproc-per-node 2 benches/fidelity/hosts.py
"""

from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.nn.functional as F  # noqa: N812 (as programs have it)
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from training import time_programs

RECORDED = Path(__file__).with_name("h200_hosts.csv")
TIMES = 50
"""Of what is timed in a step."""

Step = Callable[[], object]


def repeated(call: Step) -> Step:
    """Returns a step of many calls."""

    def step() -> None:
        for _ in range(TIMES):
            call()

    return step


def there_and_back(call: Callable[[], torch.Tensor]) -> Step:
    """Returns a step of many calls, each of which autograd goes back through."""
    return repeated(lambda: call().sum().backward())


def plain_add() -> Step:
    x = torch.randn(64, 64)
    return repeated(lambda: x + x)


def plain_product() -> Step:
    x = torch.randn(64, 64)
    return repeated(lambda: x @ x)


def trained_add() -> Step:
    x, y = torch.randn(64, 64, requires_grad=True), torch.randn(64, 64)
    return repeated(lambda: x + y)


def trained_chain() -> Step:
    """Eight operations, there and back."""
    x = torch.randn(64, 64, requires_grad=True)

    def call() -> torch.Tensor:
        y = x
        for _ in range(8):
            y = y * x
        return y

    return there_and_back(call)


def mesh() -> DeviceMesh:
    return init_device_mesh("cuda", (dist.get_world_size(),))


def spread(placement: Placement) -> torch.Tensor:
    """Returns a DTensor."""
    return distribute_tensor(torch.randn(64, 64), mesh(), [placement])


def dtensor_add() -> Step:
    x = spread(Shard(0))
    return repeated(lambda: x + x)


def dtensor_product() -> Step:
    x, y = spread(Shard(0)), spread(Replicate())
    return repeated(lambda: x @ y)


def dtensor_view() -> Step:
    x = spread(Shard(0))
    return repeated(lambda: x.view(64, 8, 8))


def dtensor_trained_add() -> Step:
    x, y = spread(Shard(0)).requires_grad_(), spread(Shard(0))
    return repeated(lambda: x + y)


def dtensor_chain() -> Step:
    """Eight operations, there and back."""
    x = spread(Shard(0)).requires_grad_()

    def call() -> torch.Tensor:
        y = x
        for _ in range(8):
            y = y * x
        return y

    return repeated(lambda: call().sum().full_tensor().backward())


def dtensor_from_local() -> Step:
    at, x = mesh(), torch.randn(64, 64)
    return repeated(lambda: DTensor.from_local(x, at, [Shard(0)], run_check=False).to_local())


def dtensor_reduced() -> Step:
    at, x = mesh(), torch.randn(64, 64)
    y = DTensor.from_local(x, at, [Partial()], run_check=False)
    return repeated(lambda: y.redistribute(at, [Replicate()]))


def dtensor_gathered() -> Step:
    at, x = mesh(), spread(Shard(0))
    return repeated(lambda: x.redistribute(at, [Replicate()]))


def reduced() -> Step:
    x = torch.randn(64, 64)
    return repeated(lambda: dist.all_reduce(x))


def reduced_later() -> Step:
    x = torch.randn(64, 64)
    return repeated(lambda: dist.all_reduce(x, async_op=True).wait())


def gathered() -> Step:
    x, y = torch.randn(64, 64), torch.randn(64 * dist.get_world_size(), 64)
    return repeated(lambda: dist.all_gather_into_tensor(y, x))


def functional_reduced() -> Step:
    x, at = torch.randn(64, 64), mesh()
    return repeated(lambda: funcol.wait_tensor(funcol.all_reduce(x, "sum", at)))


def mlp(layers: int = 10) -> nn.Module:
    return nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)) for _ in range(layers)))


def forward(model: nn.Module) -> Step:
    x = torch.randn(8, 64)
    return lambda: model(x)


def trained(model: nn.Module) -> Step:
    x = torch.randn(8, 64)
    return lambda: model(x).sum().backward()


def forward_mlp() -> Step:
    return forward(mlp())


def trained_mlp() -> Step:
    return trained(mlp())


def parallel(model: nn.Module) -> nn.Module:
    for block in model:
        parallelize_module(block, mesh(), {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return model


def forward_tensor_parallel() -> Step:
    return forward(parallel(mlp()))


def trained_tensor_parallel() -> Step:
    return trained(parallel(mlp()))


def sharded(model: nn.Module) -> nn.Module:
    for block in model:
        fully_shard(block)
    return fully_shard(model)


def forward_fsdp2() -> Step:
    return forward(sharded(mlp()))


def trained_fsdp2() -> Step:
    return trained(sharded(mlp()))


def trained_fsdp2_wide() -> Step:
    """Twice as many parameters in each block."""
    model = nn.Sequential(*(mlp(2) for _ in range(10)))
    return trained(sharded(model))


def trained_mlp_wide() -> Step:
    return trained(nn.Sequential(*(mlp(2) for _ in range(10))))


def trained_fsdp1() -> Step:
    model = nn.ModuleList([Wrapped() for _ in range(10)])
    return trained(FullyShardedDataParallel(nn.Sequential(*model), auto_wrap_policy=ModuleWrapPolicy({Wrapped})))


class Wrapped(nn.Module):
    """A block that FSDP wraps."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(64, 64), nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.relu(self.up(x)))


def trained_ddp() -> Step:
    return trained(DistributedDataParallel(mlp()))


def stepped(model: nn.Module, **how: object) -> Step:
    """Returns the steps of an optimizer."""
    optimizer = torch.optim.AdamW(model.parameters(), **how)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    return optimizer.step


def adam_listed() -> Step:
    return stepped(mlp())


def adam_fused() -> Step:
    return stepped(mlp(), fused=True)


def adam_single() -> Step:
    return stepped(mlp(), foreach=False)


def adam_listed_dtensor() -> Step:
    return stepped(sharded(mlp()))


def adam_fused_dtensor() -> Step:
    return stepped(sharded(mlp()), fused=True)


def adam_single_dtensor() -> Step:
    return stepped(sharded(mlp()), foreach=False)


def clipped() -> Step:
    return clip(mlp())


def clipped_dtensor() -> Step:
    return clip(sharded(mlp()))


def clip(model: nn.Module) -> Step:
    parameters = [*model.parameters()]
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    return lambda: nn.utils.clip_grad_norm_(parameters, 1.0)


def read() -> Step:
    x = torch.ones(())
    return repeated(lambda: (x + 1).item())


def waited() -> Step:
    x = torch.ones(64, 64)

    def call() -> None:
        x.add_(1)
        torch.cuda.synchronize()

    return repeated(call)


def copied_in() -> Step:
    x = torch.ones(64, device="cpu")
    return repeated(lambda: x.to("cuda"))


def copied_in_pinned() -> Step:
    x = torch.ones(64, device="cpu").pin_memory()
    return repeated(lambda: x.to("cuda", non_blocking=True))


def copied_out() -> Step:
    x = torch.ones(64)
    return repeated(lambda: (x + 1).cpu())


def recorded() -> Step:
    streams = [torch.cuda.Stream() for _ in range(2)]

    def call() -> None:
        streams[0].wait_stream(streams[1])
        streams[1].wait_stream(streams[0])

    return repeated(call)


def synced_norm() -> Step:
    layer, x = nn.SyncBatchNorm(64), torch.randn(2, 64, 8, 8)
    return repeated(lambda: layer(x))


def broadcast() -> Step:
    x = torch.randn(64, 64)
    return repeated(lambda: dist.broadcast(x, 0))


def exchanged() -> Step:
    x, y = torch.randn(64, 64), torch.randn(64, 64)
    return repeated(lambda: dist.all_to_all_single(y, x))


def passed_on() -> Step:
    """A message to the next rank, and one from the last."""
    x, y = torch.randn(64, 64), torch.randn(64, 64)
    rank, world = dist.get_rank(), dist.get_world_size()

    def call() -> None:
        ways = [(dist.isend, x, (rank + 1) % world), (dist.irecv, y, (rank - 1) % world)]
        for work in dist.batch_isend_irecv([dist.P2POp(*way) for way in ways]):
            work.wait()

    return repeated(call)


def told() -> Step:
    """An object that all get of all."""
    return repeated(lambda: dist.all_gather_object([None] * dist.get_world_size(), {"loss": 1.5}))


CASES = (
    plain_add, plain_product, trained_add, trained_chain, dtensor_add, dtensor_product, dtensor_view,
    dtensor_trained_add, dtensor_chain, dtensor_from_local, dtensor_reduced, dtensor_gathered, reduced, reduced_later,
    gathered, functional_reduced, forward_mlp, trained_mlp, trained_mlp_wide, forward_tensor_parallel,
    trained_tensor_parallel, forward_fsdp2, trained_fsdp2, trained_fsdp2_wide, trained_fsdp1, trained_ddp, adam_listed,
    adam_fused, adam_single, adam_listed_dtensor, adam_fused_dtensor, adam_single_dtensor, clipped, clipped_dtensor,
    read, waited, copied_in, copied_in_pinned, copied_out, recorded, synced_norm, broadcast, exchanged, passed_on, told,
)  # fmt: skip


if __name__ == "__main__":
    time_programs(__doc__, CASES, RECORDED, 23)
