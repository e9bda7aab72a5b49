"""Groups that programs make of a store and register backends with, as torch.distributed's second API does."""

import os
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from torch.distributed import ProcessGroup

import torchemu

real = torchemu.distributed(world_size=2, torch="real")
dist2 = pytest.importorskip("torch.distributed._dist2")
MINUTE = timedelta(minutes=1)


def made(backend, device="cpu"):
    return dist2.new_group(backend=backend, timeout=MINUTE, device=device), int(os.environ["RANK"])


@real
def test_collectives_of_gloo():
    group, rank = made("gloo")
    mine, other = torch.full((2,), rank + 1.0), torch.zeros(2)
    group.allreduce(total := mine.clone(), timeout=MINUTE).wait()
    group.reduce_scatter(other, [mine, 10 * mine], op=dist2.ReduceOp.SUM, timeout=MINUTE).wait()
    gathered = [torch.zeros(2) for _ in range(2)] if rank == 1 else []
    group.gather(gathered, mine, root=1, timeout=MINUTE).wait()
    group.barrier(timeout=MINUTE).wait()
    assert total.tolist() == [3, 3] and other.tolist() == ([3, 3] if rank == 0 else [30, 30])
    assert [t.tolist() for t in gathered] == ([[1, 1], [2, 2]] if rank == 1 else [])
    group.shutdown()


@real
def test_devices_have_the_backends_that_are_registered_for_them():
    rank = int(os.environ["RANK"])
    stores = [dist.PrefixStore(name, dist.FileStore("registered", 2)) for name in ("gloo", "nccl")]
    group = ProcessGroup(stores[0], rank, 2)
    gloo, nccl = dist.ProcessGroupGloo(stores[0], rank, 2), dist.ProcessGroupNCCL(stores[1], rank, 2)
    group._register_backend(torch.device("cpu"), ProcessGroup.BackendType.GLOO, gloo)
    with pytest.raises(RuntimeError, match="No backend type associated with device type cuda"):
        group._get_backend(torch.device("cuda"))
    group._register_backend(torch.device("cuda"), ProcessGroup.BackendType.NCCL, nccl)
    assert group._get_backend("cpu") is gloo and group._get_backend("cuda") is nccl
    on_host, on_device = torch.ones(2), torch.ones(3, device="cuda")
    # Each backend has an order of its own: ranks may call them in different ones.
    first, second = (on_host, on_device) if rank == 0 else (on_device, on_host)
    works = [group.allreduce([t]) for t in (first, second)]
    for work in works:
        work.wait()
    assert on_host.tolist() == [2, 2] and on_device.tolist() == [2, 2, 2]


@real
def test_groups_that_are_split_and_merged_have_timeouts_of_their_own():
    group, rank = made("nccl", "cuda")
    parts = [group.split_group([r], timeout=timedelta(seconds=30), group_name=f"part {r}") for r in range(2)]
    assert [part is not None for part in parts] == [rank == 0, rank == 1]
    mine = parts[rank]
    assert (mine.size(), mine.group_name) == (1, f"part {rank}")
    merged = mine.merge_remote_group(group.get_group_store(), 2, 2 * MINUTE, "both")
    limits = [g._get_backend("cuda").options._timeout for g in (group, mine, merged)]
    assert limits == [MINUTE, timedelta(seconds=30), 2 * MINUTE]
    assert (merged.size(), merged.group_name) == (2, "both")
    merged.allreduce(total := torch.ones(2, device="cuda") * (rank + 1)).wait()
    assert total.tolist() == [3, 3]


@real
def test_other_backends_stay_pytorchs():
    group = ProcessGroup(dist.HashStore(), 0, 1)
    from torch._C._distributed_c10d import FakeProcessGroup

    fake = FakeProcessGroup._create_internal(0, 1)
    group._register_backend(torch.device("cpu"), ProcessGroup.BackendType.CUSTOM, fake)
    group._set_default_backend(ProcessGroup.BackendType.CUSTOM)
    group.allreduce([torch.ones(2)]).wait()
    assert group._get_backend(torch.device("cpu")) is fake


class Alone(ProcessGroup):
    """A program's group of one rank, none of c10d's."""

    def allreduce(self, tensors, opts):
        return self._done(tensors)

    def allgather(self, outs, tensors, opts):
        for out, tensor in zip(outs[0], tensors, strict=True):
            out.copy_(tensor)
        return self._done(outs)

    def broadcast(self, tensors, opts):
        return self._done(tensors)

    def getSize(self):  # noqa: N802 (C++ calls it so)
        return 1

    def getBackendName(self):  # noqa: N802
        return "alone"

    @staticmethod
    def _done(result):
        future = torch.futures.Future()
        future.set_result(result)
        return torch._C._distributed_c10d._create_work_from_future(future)


@torchemu.distributed(world_size=1, torch="real")
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_ddp_takes_a_group_that_only_the_program_knows(device):
    """Its gradients are the model's, and its record has the group's own name of a backend."""
    model = torch.nn.Linear(2, 2).to(device)
    x = torch.ones(3, 2, device=device)
    model(x).square().sum().backward()
    wanted = model.weight.grad.clone()
    model.zero_grad()
    ddp = torch.nn.parallel.DistributedDataParallel(model, process_group=Alone(0, 1))
    ddp(x).square().sum().backward()
    torch.testing.assert_close(model.weight.grad, wanted)
    assert ddp._get_ddp_logging_data()["backend_name"] == "alone"
