"""Training steps, of which rank 0 prints the picoseconds that they take on its device: timed.py PROGRAM.

The programs print no loss, so runs with and without data, and mirrored ones, are to print the same.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn import functional

WIDTH, STEPS = 64, 3


class Block(nn.Module):
    """A transformer's layer, by names as parallelize_module's plans have them."""

    def __init__(self, heads=8):
        super().__init__()
        self.heads = heads
        self.norm, self.q, self.k, self.v, self.o = nn.RMSNorm(WIDTH), *(nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.norm2, self.up, self.down = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.norm(x)
        q, k, v = (f(y).unflatten(-1, (-1, WIDTH // self.heads)).transpose(1, 2) for f in (self.q, self.k, self.v))
        z = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(z.transpose(1, 2).flatten(2))
        return x + self.down(functional.silu(self.up(self.norm2(x))))


def timed(step):
    """Prints what each of a few steps takes."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    dist.barrier()
    for number in range(STEPS):
        torch.cuda.synchronize()
        start.record()
        step(number)
        end.record()
        end.synchronize()
        if dist.get_rank() == 0:
            print(f"step {number}: {start.elapsed_time(end) * 1e9:.0f} ps", flush=True)


def train(model, make=torch.optim.AdamW):
    """Trains a model of sequences."""
    optimizer = make(model.parameters(), lr=1e-3)

    def step(number):
        generator = torch.Generator().manual_seed(number)
        x = torch.randn(2, 16, WIDTH, generator=generator).cuda()
        loss = model(x).pow(2).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    timed(step)


def ddp():
    train(nn.parallel.DistributedDataParallel(nn.Sequential(Block(), Block()).cuda(), bucket_cap_mb=0.05))


def shard(model, mesh):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    return fully_shard(model, mesh=mesh, mp_policy=policy)


def fsdp():
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    train(shard(nn.Sequential(*(Block() for _ in range(3))).cuda(), mesh))


def fsdp_views():
    """FSDP 1, which keeps views of what it has gathered, and looks whether that is still there."""
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    strategy = ShardingStrategy.SHARD_GRAD_OP
    model, policy = nn.Sequential(Block(), Block()), ModuleWrapPolicy({Block})
    train(
        FullyShardedDataParallel(
            model.cuda(), auto_wrap_policy=policy, sharding_strategy=strategy, use_orig_params=True
        )
    )


def experts():
    """A token goes to the expert on the rank that a gate chooses, as long as that has room."""
    world, room = dist.get_world_size(), 8
    gate, expert = nn.Linear(WIDTH, world, bias=False).cuda(), nn.Linear(WIDTH, WIDTH).cuda()
    optimizer = torch.optim.SGD([*gate.parameters(), *expert.parameters()], lr=0.1)

    def step(number):
        x = torch.randn(32, WIDTH, device="cuda")
        weight, chosen = gate(x).softmax(-1).topk(1)
        hot = functional.one_hot(chosen[:, 0], world)
        place = (hot.cumsum(0) * hot).sum(-1) - 1
        slot = chosen[:, 0] * room + place.clamp(max=room - 1)
        sent = torch.zeros(world * room, WIDTH, device="cuda").index_add(0, slot, x * (place < room)[:, None])
        got = torch.empty_like(sent)
        dist.all_to_all_single(got, sent.detach())
        loss = (expert(got)[slot] * weight).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    timed(step)


def split(model, mesh):
    from torch.distributed.tensor import Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

    plan = {"norm": SequenceParallel(), "norm2": SequenceParallel()}
    for name in ("q", "k", "v", "up"):
        plan[name] = ColwiseParallel(input_layouts=Shard(1))
    for name in ("o", "down"):
        plan[name] = RowwiseParallel(output_layouts=Shard(1))
    for block in model:
        parallelize_module(block, mesh, plan)
    return model


def tp():
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    train(split(nn.Sequential(Block(), Block()).cuda(), mesh))


def tp_fsdp():
    world = dist.get_world_size()
    width = min(8, world // 2)
    mesh = init_device_mesh("cuda", (world // width, width), mesh_dim_names=("dp", "tp"))
    train(shard(split(nn.Sequential(Block(), Block()).cuda(), mesh["tp"]), mesh["dp"]))


def pipeline():
    """Two stages, each of half of the ranks, which shard or replicate it."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    mesh = init_device_mesh("cuda", (2, dist.get_world_size() // 2), mesh_dim_names=("pp", "dp"))
    stage = mesh["pp"].get_local_rank()
    torch.manual_seed(stage)
    model = shard(nn.Sequential(*(Block() for _ in range(1 + stage))).cuda(), mesh["dp"])
    part = PipelineStage(model, stage, 2, torch.device("cuda"), group=mesh["pp"].get_group())
    schedule = Schedule1F1B(part, 4, loss_fn=lambda out, target: functional.mse_loss(out.float(), target))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(number):
        x = torch.ones(8, 16, WIDTH).cuda()
        schedule.step(*([x] if stage == 0 else []), **({"target": x} if stage else {}))
        optimizer.step()
        optimizer.zero_grad()

    timed(step)


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.manual_seed(0)
    globals()[sys.argv[1]]()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
