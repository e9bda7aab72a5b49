"""Sharded state dicts of FSDP1 are on the devices that NCCL's groups have, or on the host where that is asked for."""

import pytest
import torch
import torch.distributed as dist
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from torch.distributed.fsdp import (
    FullyShardedDataParallel,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    StateDictType,
)

import torchemu

real = torchemu.distributed(world_size=2, torch="real")

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")


def trained():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    torch.manual_seed(0)
    model = FullyShardedDataParallel(torch.nn.Linear(4, 6, device="cuda"))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 4, device="cuda")).sum().backward()
    optimizer.step()
    return rank, model, optimizer


@pytest.mark.parametrize("to_host", [False, True])
@real
def test_shards_are_where_they_are_said_to_be(to_host):
    rank, model, optimizer = trained()
    kept = ShardedStateDictConfig(offload_to_cpu=to_host), ShardedOptimStateDictConfig(offload_to_cpu=to_host)
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT, *kept):
        state = model.state_dict()
        states = FullyShardedDataParallel.optim_state_dict(model, optimizer)["state"]
    where = "cpu" if to_host else f"cuda:{rank}"
    for sharded in (state["weight"], states["weight"]["exp_avg"]):
        places = [str(shard.placement) for shard in sharded.metadata().shards_metadata]
        assert places == [f"rank:{r}/cpu" if to_host else f"rank:{r}/cuda:{r}" for r in range(2)]
        (shard,) = sharded.local_shards()
        assert str(shard.tensor.device) == where
        assert shard.tensor.shape == (3, 4)


@real
def test_devices_of_groups():
    dist.init_process_group("nccl")
    devices = {
        name: {device.type for device in dist.new_group(backend=name)._device_types}
        for name in ("nccl", "gloo", "cpu:gloo,cuda:nccl")
    }
    assert devices == {"nccl": {"cuda"}, "gloo": {"cpu", "cuda"}, "cpu:gloo,cuda:nccl": {"cpu", "cuda"}}


@real
def test_saving_beside_the_program_wants_a_backend_for_the_host(tmp_path):
    dist.init_process_group("nccl")
    with pytest.raises(AssertionError, match="A CPU backend must be enabled for async save"):
        checkpoint.async_save({"x": torch.ones(2)}, checkpoint_id=tmp_path)


@real
@pytest.mark.parametrize("kind", AsyncCheckpointerType)
def test_a_checkpoint_is_saved_beside_a_program_that_communicates(tmp_path, kind):
    """Twice, as a training loop does; a process has a group of its own, so that the program may use the default one."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    group = dist.new_group() if kind == AsyncCheckpointerType.THREAD else None
    for step in range(2):
        states = {"x": torch.full((2,), float(step)), "step": step}
        saved = checkpoint.async_save(
            states, checkpoint_id=tmp_path / str(step), process_group=group, async_checkpointer_type=kind
        )
        total = torch.tensor([rank + 1.0])
        dist.all_reduce(total)
        assert total.item() == sum(range(1, dist.get_world_size() + 1))
        saved.result()
        found = {"x": torch.zeros(2), "step": None}
        checkpoint.load(found, checkpoint_id=tmp_path / str(step))
        assert found["x"].tolist() == [step] * 2 and found["step"] == step
