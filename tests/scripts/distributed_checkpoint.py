# torchrun --nproc-per-node 3 distributed_checkpoint.py
"""torch.distributed.checkpoint: an application's state saved and loaded, before, behind and within wrappers."""

import tempfile
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful
from torch.nn.parallel import DistributedDataParallel


def say(*what):
    if dist.get_rank() == 0:
        print(*what)


class Application(Stateful):
    def __init__(self, model, optimizer, epoch=0):
        self.model, self.optimizer, self.epoch = model, optimizer, epoch

    def state_dict(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer, "epoch": self.epoch}

    def load_state_dict(self, state):
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        self.epoch = state["epoch"]


def application(seed, wrapped=True, epoch=0):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 2))
    model = DistributedDataParallel(model) if wrapped else model
    return Application(model, torch.optim.AdamW(model.parameters(), lr=0.1 / (seed + 1)), epoch)


def step(app, number):
    app.optimizer.zero_grad()
    generator = torch.Generator().manual_seed(number)
    loss = app.model(torch.randn(5, 4, generator=generator)).square().mean()
    loss.backward()
    app.optimizer.step()
    return loss.item()


def main():
    warnings.simplefilter("ignore")
    dist.init_process_group("gloo")
    names = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(names, 0)
    folder = names[0]

    first = application(0, epoch=3)
    say([f"{step(first, i):.4f}" for i in range(3)])
    dcp.save({"app": first, "extra": [1, "two"], "numbers": {"a": torch.arange(3)}}, checkpoint_id=f"{folder}/one")
    metadata = dcp.FileSystemReader(f"{folder}/one").read_metadata()
    say(sorted(metadata.state_dict_metadata))
    say(metadata.state_dict_metadata["app.model.0.weight"].size, type(metadata.state_dict_metadata["extra"]).__name__)

    for wrapped in (True, False):
        again = application(1, wrapped)
        state = {"app": again, "extra": None, "numbers": {"a": torch.zeros(3, dtype=torch.int64)}}
        dcp.load(state, checkpoint_id=f"{folder}/one")
        say(again.epoch, state["extra"], state["numbers"]["a"].tolist(), f"{again.optimizer.param_groups[0]['lr']:.3f}")
        if wrapped:
            say(
                [f"{step(each, 7):.5f}" for each in (first, again)], [f"{step(each, 8):.5f}" for each in (first, again)]
            )

    future = dcp.async_save({"t": torch.full((2,), 5.0)}, checkpoint_id=f"{folder}/two")
    future.result()
    for wanted in ({"t": torch.zeros(3)}, {"u": torch.zeros(2)}):
        try:
            dcp.load(wanted, checkpoint_id=f"{folder}/two")
        except dcp.CheckpointException as error:
            failed = sorted(error.failures)
            say(failed, [str(error.failures[rank][0]) for rank in failed][:1], type(error.failures[0][0]).__name__)
    planner = dcp.DefaultLoadPlanner(allow_partial_load=True)
    state = {"t": torch.zeros(2), "u": torch.ones(1)}
    dcp.load(state, storage_reader=dcp.FileSystemReader(f"{folder}/two"), planner=planner)
    say(state)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
