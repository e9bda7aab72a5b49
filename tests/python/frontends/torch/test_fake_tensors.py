"""Fake tensors on simulated devices: names of devices, gradients, and PyTorch's estimates of memory by them."""

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed._tools.mem_tracker import MemTracker
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

import torchemu

real = torchemu.distributed(world_size=2, torch="real")
CUDA = torch.device("cuda", 1)


def begin():
    dist.init_process_group("nccl")
    torch.cuda.set_device(1)  # on both ranks, and not the one that names without a number mean elsewhere


@real
def test_devices_of_fake_tensors():
    begin()
    with FakeTensorMode():
        x = torch.empty(4, 6, device="cuda")
        host = torch.empty(2)
        made = {
            "computed": x @ x.t(),
            "like it": torch.zeros_like(x),
            "new": x.new_ones(3),
            "moved": host.cuda(),
            "from data": torch.tensor([1.0, 2.0], device="cuda"),
            "random": torch.randn(3, device="cuda"),
            "chosen": torch.where(x > 0, x, 0),
            "a view": x[1:].t(),
        }
        assert {name: t.device for name, t in made.items()} == dict.fromkeys(made, CUDA)
        assert all(isinstance(t, FakeTensor) and t.is_cuda for t in made.values())
        assert [t.device.type for t in (host, x.cpu(), x.to("cpu"), torch.zeros_like(x, device="cpu"))] == ["cpu"] * 4
        assert torch.empty(2, device="cuda:0").device == torch.device("cuda", 0)
        with pytest.raises(RuntimeError, match=r"devices,? cuda:1(,| and) cpu"):
            x + torch.empty(4, 6)
    assert (x + x).device == CUDA
    assert torch.cuda.memory_allocated() == 0
    assert torch.ones(2, device="cuda").sum().item() == 2


@real
def test_gradients_are_where_parameters_are():
    begin()
    with FakeTensorMode(), torch.device("cuda"):
        model = nn.Sequential(nn.Embedding(7, 8), nn.LayerNorm(8), nn.Linear(8, 8), nn.GELU(), nn.Dropout(0.5))
        loss = nn.functional.cross_entropy(model(torch.zeros(3, dtype=torch.int64)), torch.zeros(3, dtype=torch.int64))
        loss.backward()
        assert loss.device == CUDA
        assert all(p.grad.device == CUDA and p.grad.shape == p.shape for p in model.parameters())


@real
def test_a_tensor_of_the_device_has_a_fake_one():
    begin()
    given = torch.ones(3, 3, device="cuda", requires_grad=True)
    mode = FakeTensorMode()
    fake = mode.from_tensor(given)
    with mode:
        (fake * 2).sum().backward()
    assert (fake.device, fake.grad.device, fake.grad.shape) == (CUDA, CUDA, (3, 3))
    assert given.grad is None


def named(snapshot):
    return {kind.name: n for kind, n in snapshot.items() if kind != "Total"}


def rounded(*elements):
    """Bytes of float32 tensors, each in blocks of 512 as CUDA's allocator has them."""
    return sum(-(-4 * n // 512) * 512 for n in elements)


@real
def test_an_estimate_of_memory():
    begin()
    with FakeTensorMode():
        with torch.device("cuda"):
            model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))
        optimizer = torch.optim.Adam(model.parameters())
        tracker = MemTracker()
        tracker.track_external(model, optimizer)
        with tracker:
            for _ in range(2):
                tracker.reset_mod_stats()
                model(torch.randn(8, 64, device="cuda")).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
        peak = named(tracker.get_tracker_snapshot("peak")[CUDA])
    parameters = rounded(64 * 64, 64, 32 * 64, 32)
    assert (peak["PARAM"], peak["GRAD"]) == (parameters, parameters)
    assert peak["OPT"] >= 2 * parameters
    assert torch.cuda.max_memory_allocated() == 0


@torchemu.distributed(world_size=1, torch="real")
def test_an_estimate_of_sharded_memory():
    """One process stands for four ranks, as in torchtitan."""
    dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
    mesh = dist.init_device_mesh("cuda", (4,))
    with FakeTensorMode():
        with torch.device("cuda"):
            model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
        for layer in (model[0], model[2], model):
            fully_shard(layer, mesh=mesh)
        optimizer = torch.optim.AdamW(model.parameters())
        tracker = FSDPMemTracker(model, optimizer)
        with tracker:
            model(torch.randn(8, 64, device="cuda")).sum().backward()
            optimizer.step()
        peak = named(tracker.get_tracker_snapshot("peak")[torch.device("cuda:0")])
    assert peak["SHARDED_PARAM"] == rounded(64 * 256 // 4, 256 // 4, 256 * 64 // 4, 64 // 4)
    assert peak["OPT"] + peak["UNSHARDED_PARAM"] > 0


@real
def test_ranks_have_devices_of_their_own():
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    with FakeTensorMode():
        for _ in range(3):  # the mode remembers what it has made
            assert torch.empty(5, device="cuda").device.index == dist.get_rank()
        dist.barrier()


@real
def test_estimates_of_time_are_refused_in_a_line():
    begin()
    from torch.distributed._tools.runtime_estimator import RuntimeEstimator

    with FakeTensorMode(), pytest.raises(NotImplementedError, match="no driver to ask"):
        RuntimeEstimator()("operator-level-cost-model")


@real
def test_states_of_generators_are_no_fake_tensors():
    state = torch.cuda.get_rng_state()
    with FakeTensorMode():
        assert not isinstance(torch.cuda.get_rng_state(), FakeTensor)
        torch.cuda.set_rng_state(state)


class Constant(torch.nn.Module):
    def forward(self, x):
        return torch.cat([torch.tensor([], device=x.device), x, torch.tensor([3.0, 4.0], device="cuda")])


def test_constants_of_devices_are_traced():
    """A model that makes them, as transformers' caches do, is exported, and split into a pipeline."""

    def program(rank: int) -> None:
        exported = torch.export.export(Constant(), (torch.ones(2, device="cuda"),)).module()
        result = exported(torch.full((2,), 5.0, device="cuda"))
        assert (result.device.type, result.tolist()) == ("cuda", [5.0, 5.0, 3.0, 4.0])

    torchemu.pytorch.spawn(program, nprocs=2)
