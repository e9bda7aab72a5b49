"""Times of programs that spread over GPUs in many ways: a user's file, which runs unmodified on GPUs and on torchemu.

On a machine with H200s, to record what h200_parallel.csv has:

    torchrun --nproc-per-node 2 benches/fidelity/parallel.py --record benches/fidelity/h200_parallel.csv

Beside it, what the preset of that machine predicts:

    torchemu run --torch real --no-data --topology h200_8 --nproc-per-node 2 benches/fidelity/parallel.py
"""

import contextlib
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812 (as programs have it)
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel
from training import Block, ResNet50, Transformer, texts, time_programs, trained

RECORDED = Path(__file__).with_name("h200_parallel.csv")
Step = Callable[[], object]


def adam(model: nn.Module, **how: object) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-5, **how)


def gpt(layers: int = 12, width: int = 1024) -> nn.Module:
    return Transformer(width, width // 64, layers, 50304, 1024, gated=False)


def ddp_accumulates() -> Step:
    """DDP that reduces gradients with the last of four batches."""
    model, batch = DistributedDataParallel(gpt()), texts(4, 1024, 50304)
    optimizer = adam(model, fused=True)

    def step() -> None:
        for number in range(4):
            with contextlib.nullcontext() if number == 3 else model.no_sync(), torch.autocast("cuda", torch.bfloat16):
                model(*batch).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def ddp_scaled() -> Step:
    """DDP of float16 with a scaler, and gradients whose norm is bounded."""
    model, batch = DistributedDataParallel(gpt(), gradient_as_bucket_view=True), texts(8, 1024, 50304)
    optimizer, scaler = adam(model), torch.amp.GradScaler("cuda")

    def step() -> None:
        with torch.autocast("cuda", torch.float16):
            loss = model(*batch)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

    return step


def ddp_float32() -> Step:
    """DDP of float32, whose gradients take about as long as the products."""
    model = DistributedDataParallel(gpt(6, 2048))
    return trained(model, texts(2, 512, 50304), adam(model, fused=True))


def zero() -> Step:
    """An optimizer of which each rank has a part."""
    model = DistributedDataParallel(gpt(24))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-5)
    return trained(model, texts(8, 1024, 50304), optimizer, torch.bfloat16)


def llama(width: int = 2048, layers: int = 12) -> nn.Module:
    return Transformer(width, width // 128, layers, 32000, 2048, gated=True)


def fsdp() -> Step:
    """FSDP 1."""
    policy = MixedPrecision(torch.bfloat16, torch.bfloat16, torch.bfloat16)
    model = FullyShardedDataParallel(
        llama(), auto_wrap_policy=ModuleWrapPolicy({Block}), mixed_precision=policy, use_orig_params=True
    )
    return trained(model, texts(4, 2048, 32000), adam(model, fused=True))


def fsdp2(model: nn.Module, **how: object) -> nn.Module:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, mp_policy=policy, **how)
    return fully_shard(model, mp_policy=policy, **how)


def fsdp2_narrow() -> Step:
    """FSDP 2 whose collectives take longer than its products."""
    model = fsdp2(llama())
    return trained(model, texts(1, 1024, 32000), adam(model, fused=True))


def fsdp2_checkpointed() -> Step:
    """FSDP 2 that calculates its blocks again going backwards."""
    model = llama()
    apply_activation_checkpointing(model, check_fn=lambda module: isinstance(module, Block))
    model = fsdp2(model)
    return trained(model, texts(8, 2048, 32000), adam(model, fused=True))


def fsdp2_kept() -> Step:
    """FSDP 2 that keeps parameters whole from the one direction to the other."""
    model = fsdp2(llama(), reshard_after_forward=False)
    return trained(model, texts(4, 2048, 32000), adam(model))


def sequence_parallel() -> Step:
    """A Llama whose wide layers and norms all GPUs share, along features and along the sequence."""
    mesh, model = init_device_mesh("cuda", (dist.get_world_size(),)), llama(4096, 4).bfloat16()
    plan: dict = {"norm": SequenceParallel(), "norm2": SequenceParallel()}
    plan |= {name: ColwiseParallel(input_layouts=Shard(1)) for name in ("q", "k", "v", "up", "gate")}
    plan |= {name: RowwiseParallel(output_layouts=Shard(1)) for name in ("o", "down")}
    for block in model.blocks:
        parallelize_module(block, mesh, plan)
    ends: dict = {"norm": SequenceParallel()}
    ends["words"] = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))
    ends["places"] = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(0))
    ends["head"] = ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())
    parallelize_module(model, mesh, ends)
    return trained(model, texts(4, 2048, 32000), adam(model, foreach=False))


class Stage(nn.Module):
    """The blocks of a model that a rank has."""

    def __init__(self, layers: int, width: int, length: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, width // 128, gated=False) for _ in range(layers))
        self.turns = [torch.ones(length, 128, dtype=torch.bfloat16) for _ in range(2)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x, *self.turns)
        return x


def pipeline(kind: type, batches: int = 8) -> Step:
    rank, world = dist.get_rank(), dist.get_world_size()
    model = Stage(8 // world, 4096, 1024).bfloat16()
    stage = PipelineStage(model, rank, world, torch.device("cuda", rank))
    schedule = kind(stage, batches, loss_fn=lambda x, y: F.mse_loss(x, y))
    x, optimizer = torch.randn(batches, 1024, 4096, dtype=torch.bfloat16), adam(model)

    def step() -> None:
        if world == 1:
            schedule.step(x, target=x)
        elif rank == 0:
            schedule.step(x)
        else:
            schedule.step(**({"target": x} if rank == world - 1 else {}))
        optimizer.step()
        optimizer.zero_grad()

    return step


def pipeline_1f1b() -> Step:
    """A pipeline whose stages go forwards and backwards in turn."""
    return pipeline(Schedule1F1B)


def pipeline_gpipe() -> Step:
    """A pipeline whose stages first go forwards with all batches."""
    return pipeline(ScheduleGPipe)


class Experts(nn.Module):
    """Experts, of which each rank has some, to which tokens go and from which they come back."""

    def __init__(self, width: int, hidden: int, count: int) -> None:
        super().__init__()
        self.count, here = count, count // dist.get_world_size()
        self.up = nn.Parameter(torch.randn(here, width, hidden, dtype=torch.bfloat16))
        self.down = nn.Parameter(torch.randn(here, hidden, width, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shape, order = x.shape, torch.randperm(x.shape[0], device=x.device)
        y = exchanged(x[order]).view(dist.get_world_size(), len(self.up), -1, shape[1])
        y = y.transpose(0, 1).reshape(len(self.up), -1, shape[1])
        y = torch.bmm(F.silu(torch.bmm(y, self.up)), self.down)
        y = y.view(len(self.up), dist.get_world_size(), -1, shape[1]).transpose(0, 1).reshape(shape)
        return exchanged(y)[order.argsort()]


class Exchange(torch.autograd.Function):
    """An all-to-all with its gradient, which is another."""

    @staticmethod
    def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        dist.all_to_all_single(out, x)
        return out

    @staticmethod
    def backward(ctx: object, gradient: torch.Tensor) -> torch.Tensor:
        return Exchange.forward(ctx, gradient.contiguous())


exchanged = Exchange.apply


def experts() -> Step:
    """Layers of experts."""
    model = nn.Sequential(*(Experts(2048, 4096, 16) for _ in range(4)))
    x = torch.randn(16384, 2048, dtype=torch.bfloat16, requires_grad=True)
    return trained(lambda x: model(x).float().pow(2).mean(), (x,), adam(model, fused=True))


class Ratings(nn.Module):
    """A recommender: tables over the ranks, products over the batch."""

    def __init__(self, tables: int, rows: int, width: int) -> None:
        super().__init__()
        self.here = tables // dist.get_world_size()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(self.here))
        layers = (nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, width), nn.ReLU())
        self.dense = DistributedDataParallel(nn.Sequential(*layers))
        wide = (tables + 1) * tables // 2 + width
        layers = (nn.Linear(wide, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))
        self.top = DistributedDataParallel(nn.Sequential(*layers))

    def forward(self, numbers: torch.Tensor, words: torch.Tensor, clicked: torch.Tensor) -> torch.Tensor:
        found = torch.stack([table(words[:, k]) for k, table in enumerate(self.tables)])
        world, width = dist.get_world_size(), found.shape[-1]
        there = exchanged(found.view(self.here, world, -1, width).transpose(0, 1).contiguous())
        x = self.dense(numbers)
        all_of = torch.cat([x[:, None], there.flatten(0, 1).transpose(0, 1)], 1)
        pairs = torch.bmm(all_of, all_of.transpose(1, 2))
        row, column = torch.tril_indices(*pairs.shape[1:], -1)
        y = self.top(torch.cat([x, pairs[:, row, column]], 1))
        return F.binary_cross_entropy_with_logits(y[:, 0], clicked)


def ratings(batch: int = 16384) -> Step:
    """A recommender whose tables lie on different ranks."""
    model = Ratings(26, 200_000, 64)
    words = torch.randint(0, 200_000, (batch * dist.get_world_size(), model.here, 1))
    return trained(model, (torch.randn(batch, 13), words, torch.rand(batch)), torch.optim.SGD(model.parameters(), 0.1))


def synced_norms() -> Step:
    """ResNet-50, channels last, in bfloat16, with batch normalization over all ranks."""
    model = nn.SyncBatchNorm.convert_sync_batchnorm(ResNet50()).to(memory_format=torch.channels_last)
    images = torch.randn(128, 3, 224, 224).to(memory_format=torch.channels_last)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    return trained(model, (images, torch.randint(0, 1000, (128,))), optimizer, torch.bfloat16)


def orthogonal() -> Step:
    """Muon: gradients that products make orthogonal, each rank some of them, and all_gather."""
    rank, world = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(gpt(8))
    matrices = [p for block in model.module.blocks for p in block.parameters() if p.ndim == 2]
    matrices.sort(key=lambda matrix: matrix.shape)  # those of a group are alike
    rest = adam(model, fused=True)
    batch = texts(8, 1024, 50304)

    def update(gradient: torch.Tensor) -> torch.Tensor:
        x = gradient.bfloat16()
        x = x.T if gradient.shape[0] > gradient.shape[1] else x
        x = x / (x.norm() + 1e-7)
        for _ in range(5):
            a = x @ x.T
            x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
        return x.T if gradient.shape[0] > gradient.shape[1] else x

    def step() -> None:
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(*batch)
        loss.backward()
        with torch.no_grad():
            for first in range(0, len(matrices), world):
                group = matrices[first : first + world]
                mine = update(group[rank].grad).contiguous()
                every = [torch.empty_like(mine) for _ in group]
                dist.all_gather(every, mine)
                for matrix, change in zip(group, every, strict=True):
                    matrix.add_(change.to(matrix.dtype), alpha=-0.02)
                    matrix.grad = None
        rest.step()
        rest.zero_grad()

    return step


class Decoder(nn.Module):
    """A layer of inference whose heads and hidden features all ranks share, with keys and values."""

    def __init__(self, width: int, batch: int, length: int) -> None:
        super().__init__()
        world = dist.get_world_size()
        self.heads, self.depth = width // 128 // world, 128
        self.norm, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width // world, bias=False)
        self.o = nn.Linear(width // world, width, bias=False)
        self.up = nn.Linear(width, 2 * 11008 // world, bias=False)
        self.down = nn.Linear(11008 // world, width, bias=False)
        self.keys, self.values = (torch.zeros(batch, self.heads, length, 128, dtype=torch.bfloat16) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).view(len(x), 3, self.heads, 1, self.depth).unbind(1)
        self.keys[:, :, -1:] = k
        self.values[:, :, -1:] = v
        y = self.o(F.scaled_dot_product_attention(q, self.keys, self.values).reshape(len(x), -1))
        dist.all_reduce(y)
        x = x + y
        gate, up = self.up(self.norm2(x)).chunk(2, -1)
        y = self.down(F.silu(gate) * up)
        dist.all_reduce(y)
        return x + y


def decoding(batch: int) -> Step:
    model = nn.Sequential(*(Decoder(4096, batch, 2048) for _ in range(8))).bfloat16().requires_grad_(False)
    x = torch.randn(batch, 4096, dtype=torch.bfloat16)
    model(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(x)
    return graph.replay


def decodes_1() -> Step:
    """A token of one text, by a graph."""
    return decoding(1)


def decodes_64() -> Step:
    """A token of 64 texts, by a graph."""
    return decoding(64)


def prefills() -> Step:
    """The first tokens of a text, through wide layers that all ranks share."""
    world = dist.get_world_size()
    up = [torch.randn(8192, 28672 // world, dtype=torch.bfloat16) for _ in range(4)]
    down = [torch.randn(28672 // world, 8192, dtype=torch.bfloat16) for _ in range(4)]
    x = torch.randn(4096, 8192, dtype=torch.bfloat16)

    def step() -> None:
        y = x
        for one, other in zip(up, down, strict=True):
            z = F.silu(y @ one) @ other
            dist.all_reduce(z)
            y = y + z

    return step


def overlaps(bytes_: int) -> Step:
    """Products, and collectives on another stream beside them."""
    a, b = (torch.randn(8192, 8192, dtype=torch.bfloat16) for _ in range(2))
    world = dist.get_world_size()
    whole = torch.empty(bytes_ // 2, dtype=torch.bfloat16)
    part = torch.empty(bytes_ // 2 // world, dtype=torch.bfloat16)

    def step() -> None:
        for _ in range(4):
            works = [
                dist.all_gather_into_tensor(whole, part, async_op=True),
                dist.reduce_scatter_tensor(part, whole, async_op=True),
            ]
            for _ in range(3):
                a @ b
            for work in works:
                work.wait()

    return step


def overlaps_16m() -> Step:
    """Products beside collectives of 16 MiB."""
    return overlaps(16 << 20)


def overlaps_512m() -> Step:
    """Products beside collectives of 512 MiB."""
    return overlaps(512 << 20)


def messages() -> Step:
    """Neighbours exchange halos of images between convolutions."""
    rank, world = dist.get_rank(), dist.get_world_size()
    image = torch.randn(8, 64, 512, 1024, dtype=torch.bfloat16)
    layers = [nn.Conv2d(64, 64, 3, padding=(0, 1), dtype=torch.bfloat16).requires_grad_(False) for _ in range(8)]
    up, down = (rank - 1) % world, (rank + 1) % world

    def step() -> None:
        x = image
        for layer in layers:
            first, last = x[:, :, :1].contiguous(), x[:, :, -1:].contiguous()
            above, below = torch.empty_like(first), torch.empty_like(last)
            if world > 1:
                swaps = [(dist.isend, first, up), (dist.irecv, below, down), (dist.isend, last, down)]
                swaps.append((dist.irecv, above, up))
                for work in dist.batch_isend_irecv([dist.P2POp(*swap) for swap in swaps]):
                    work.wait()
            x = F.relu(layer(torch.cat([above, x, below], 2)))

    return step


PROGRAMS = (
    ddp_accumulates, ddp_scaled, ddp_float32, zero, fsdp, fsdp2_narrow, fsdp2_checkpointed, fsdp2_kept,
    sequence_parallel, pipeline_1f1b, pipeline_gpipe, experts, ratings, synced_norms, orthogonal, decodes_1,
    decodes_64, prefills, overlaps_16m, overlaps_512m, messages,
)  # fmt: skip


if __name__ == "__main__":
    time_programs(__doc__, PROGRAMS, RECORDED, 10)
