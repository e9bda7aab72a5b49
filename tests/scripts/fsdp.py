# torchrun --nproc-per-node 3 fsdp.py
"""FullyShardedDataParallel, as in tutorials: units by policies, clipped gradients, checkpoints of whole parameters."""

import functools

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import nn
from torch.distributed.fsdp import FullStateDictConfig, ShardingStrategy, StateDictType
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP  # noqa: N817 (its usual name)
from torch.distributed.fsdp.wrap import ModuleWrapPolicy, size_based_auto_wrap_policy

HOST = torch.device("cpu")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.second = nn.Linear(16, 16)
        self.last = nn.Linear(16, 4)

    def forward(self, x):
        x = torch.relu(self.second(torch.relu(self.first(x))))
        return F.log_softmax(self.last(x), dim=1)


def say(*what):
    if dist.get_rank() == 0:
        print(*what)


def epoch(model, optimizer, generator):
    model.train()
    totals = torch.zeros(2)
    for _ in range(3):
        inputs = torch.randn(6, 8, generator=generator)
        targets = inputs.sum(1).clamp(-2, 1).long() + 2
        optimizer.zero_grad()
        loss = F.nll_loss(model(inputs), targets, reduction="sum")
        loss.backward()
        norm = model.clip_grad_norm_(2.0)
        optimizer.step()
        totals += torch.tensor([loss.item(), len(inputs)])
    dist.all_reduce(totals)
    say(f"loss {totals[0] / totals[1]:.4f} norm {norm:.3f}")


def trained(name, **settings):
    torch.manual_seed(0)
    model = FSDP(Net(), device_id=HOST, **settings)
    say(f"-- {name}")
    say(model)
    say([(key, tuple(p.shape)) for key, p in model.named_parameters()])
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(2):
        epoch(model, optimizer, generator)
        scheduler.step()
    return model, optimizer


def saved(model, optimizer, **settings):
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(rank0_only=True)):
        say({key: f"{value.abs().sum().item():.3f}" for key, value in model.state_dict().items()})
    state, moments = model.state_dict(), FSDP.optim_state_dict(model, optimizer)
    say(
        {
            key: (tuple(value["exp_avg_sq"].shape), value["step"].item())
            for key, value in sorted(moments["state"].items())
        }
    )
    if settings.get("use_orig_params"):
        return
    again = FSDP(Net(), device_id=HOST, **settings)
    say(again.load_state_dict(state))
    other = torch.optim.AdamW(again.parameters(), lr=0.02)
    other.load_state_dict(FSDP.optim_state_dict_to_load(again, other, moments))
    generators = [torch.Generator().manual_seed(7) for _ in range(2)]
    epoch(model, optimizer, generators[0])
    other.param_groups[0]["lr"] = optimizer.param_groups[0]["lr"]
    epoch(again, other, generators[1])
    inputs = torch.ones(1, 8)
    same = torch.tensor([float(torch.equal(model(inputs), again(inputs)))])
    dist.all_reduce(same)
    say("the same on", int(same.item()), "ranks")


def accumulated(model):
    model.zero_grad()
    with model.no_sync():
        model(torch.ones(2, 8)).sum().backward()
    model(torch.full((2, 8), 0.5 + dist.get_rank())).sum().backward()
    sizes = torch.stack([p.grad.abs().sum() for p in model.parameters() if p.grad is not None]).sum()
    dist.all_reduce(sizes)
    say(f"accumulated {sizes.item():.2f}")
    with FSDP.summon_full_params(model):
        say([(key, tuple(p.shape)) for key, p in model.named_parameters()])


def main():
    dist.init_process_group("gloo")
    by_size = functools.partial(size_based_auto_wrap_policy, min_num_params=100)
    for name, settings in (
        ("one unit", {}),
        ("by size", {"auto_wrap_policy": by_size}),
        ("originals", {"auto_wrap_policy": ModuleWrapPolicy({nn.Linear}), "use_orig_params": True}),
        ("gradients only", {"auto_wrap_policy": by_size, "sharding_strategy": ShardingStrategy.SHARD_GRAD_OP}),
    ):
        model, optimizer = trained(name, **settings)
        saved(model, optimizer, **settings)
        accumulated(model)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
