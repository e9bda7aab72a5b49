"""Tensors on devices that are pickled, or saved, while their data is under way."""

import io
import pickle

import pytest
import torch
import torch.distributed as dist

import torchemu

real = torchemu.distributed(world_size=3, torch="real")


def pickled(value):
    return pickle.loads(pickle.dumps(value))


def saved(value, **options):
    file = io.BytesIO()
    torch.save(value, file, **options)
    file.seek(0)
    return torch.load(file)


COPIES = {
    "pickled": pickled,
    "pickled parameter": lambda tensor: pickled(torch.nn.Parameter(tensor)).detach(),
    "pickled typed storage": lambda tensor: torch.tensor([]).to(tensor).set_(pickled(torch.storage.TypedStorage(
        wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype, _internal=True
    ))),
    "saved": saved,
    "saved in the old format": lambda tensor: saved(tensor, _use_new_zipfile_serialization=False),
}  # fmt: skip


@pytest.mark.parametrize("copy", COPIES)
@real
def test_copies_have_what_the_device_is_about_to_write(copy):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    for last in range(3):  # whose broadcast completes the others'
        dist.barrier(device_ids=[rank])
        if rank == last:
            dist.recv(torch.zeros(1, device="cuda"), src=(last + 1) % 3)
        elif rank == (last + 1) % 3:
            dist.send(torch.zeros(1, device="cuda"), dst=last)
        tensor = torch.arange(4.0, device="cuda") + rank
        dist.broadcast(tensor, 2)
        tensor.mul_(2)
        assert COPIES[copy](tensor).tolist() == [4, 6, 8, 10]


@real
def test_objects_with_tensors_are_gathered_after_all_that_was_called_before():
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    torch.manual_seed(dist.get_rank())
    model = torch.nn.Linear(4, 2, device="cuda")
    torch.nn.parallel.DistributedDataParallel(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    models = [None] * 3
    dist.all_gather_object(models, model)
    for other in models:
        for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
            assert mine.tolist() == theirs.tolist()
