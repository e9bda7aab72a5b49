"""Tensors of devices that are saved, copied, sent as objects and moved: each rank prints where what it gets is, how
much memory it has in use, and the picoseconds that it took, which are the same in runs with data and without."""

import copy
import gc
import io
import os
import pickle

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer


def saved(given, **options):
    file = io.BytesIO()
    torch.save(given, file, _use_new_zipfile_serialization=options.pop("zipped", True))
    file.seek(0)
    return torch.load(file, **options)


def broadcast(given):
    objects = [given, {"nested": given}] if dist.get_rank() == 0 else [None, None]
    dist.broadcast_object_list(objects, 0)
    return objects


def broadcast_by_the_device(given):
    objects = [given] if dist.get_rank() == 0 else [None]
    dist.broadcast_object_list(objects, 0, device=torch.device("cuda"))
    return objects


def gathered(given):
    objects = [None] * dist.get_world_size()
    dist.all_gather_object(objects, given)
    return objects


def trained(model, optimizer, where="cuda"):
    model(torch.ones(2, 8, device=where)).sum().backward()
    optimizer.step()
    return model.weight, model.weight.grad, optimizer.state_dict()["state"]


def offloaded(given):
    model = fully_shard(nn.Linear(8, 8), offload_policy=CPUOffloadPolicy())
    return trained(model, torch.optim.Adam(model.parameters()))


def moved(given):
    """A module that moves keeps its parameters, which the optimizer knows."""
    model = nn.Linear(8, 8)
    optimizer, weight = torch.optim.Adam(model.parameters()), model.weight
    found = [trained(model, optimizer, "cpu")]
    for where in ("cuda", "cpu", "cuda"):
        assert model.to(where).weight is weight
        optimizer.zero_grad() if where == "cpu" else None
        found.append((weight, weight.grad))
    return found


def restored(given):
    model = nn.Linear(8, 8).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    trained(model, optimizer)
    other = torch.optim.Adam(model.parameters())
    other.load_state_dict(saved(optimizer.state_dict()))
    model.load_state_dict(saved(model.state_dict(), map_location="cpu"))
    return trained(model, other)


def consolidated(given):
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 8).cuda())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
    model(torch.ones(2, 8, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.consolidate_state_dict(0)
    return optimizer.state_dict() if dist.get_rank() == 0 else None


ACTIONS = {
    "pickled": lambda given: pickle.loads(pickle.dumps(given)),
    "pickled view": lambda given: pickle.loads(pickle.dumps(given[:, 1])),
    "pickled parameter": lambda given: pickle.loads(pickle.dumps(nn.Parameter(given))),
    "saved": saved,
    "saved in the old format": lambda given: saved(given, zipped=False),
    "loaded on the host": lambda given: saved(given, map_location="cpu"),
    "loaded elsewhere": lambda given: saved(given, map_location="cuda:1"),
    "loaded by a function": lambda given: saved(given, map_location=lambda storage, where: storage.cuda(1)),
    "copied": lambda given: copy.deepcopy([given, given[0]]),
    "storage": lambda given: torch.empty(0, device="cuda").set_(given.untyped_storage().clone(), 0, (6,)),
    "resized": lambda given: given.clone().resize_(1024),
    "broadcast": broadcast,
    "broadcast by the device": broadcast_by_the_device,
    "gathered": gathered,
    "offloaded": offloaded,
    "moved": moved,
    "restored": restored,
    "consolidated": consolidated,
}


def described(value):
    if isinstance(value, torch.Tensor):
        return str(value.device), tuple(value.shape), value.stride(), value.dtype, value.requires_grad
    if isinstance(value, dict):
        return {name: described(v) for name, v in value.items()}
    return [described(v) for v in value] if isinstance(value, (list, tuple)) else value


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for name, action in ACTIONS.items():
        given = torch.arange(6.0, device="cuda").view(2, 3)
        dist.barrier()
        start.record()
        found = action(given)
        end.record()
        end.synchronize()
        gc.collect()  # what refers to itself is freed whenever Python looks for it
        took, memory = start.elapsed_time(end) * 1e9, torch.cuda.memory_allocated()
        print(f"{dist.get_rank()}: {name}: {described(found)}, {memory} bytes, {took:.0f} ps", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
