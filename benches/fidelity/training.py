"""Times of training steps: a user's program, which runs unmodified on GPUs and on torchemu.

On a machine with H200s, to record what h200_training.csv has (a line for each number of GPUs):

    torchrun --nproc-per-node 2 benches/fidelity/training.py --record benches/fidelity/h200_training.csv

Beside it, what the preset of that machine predicts:

    torchemu run --torch real --no-data --topology h200_8 --nproc-per-node 2 benches/fidelity/training.py
"""

import argparse
import csv
import gc
import itertools
import os
import statistics
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812 (as programs have it)
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

RECORDED = Path(__file__).with_name("h200_training.csv")


class Block(nn.Module):
    """A transformer's layer: GPT-2's, or Llama's with gated products, RMSNorm and rotary positions."""

    def __init__(self, width, heads, gated):
        super().__init__()
        self.depth, self.gated = width // heads, gated
        norm, hidden = (nn.RMSNorm, width * 8 // 3 // 256 * 256) if gated else (nn.LayerNorm, 4 * width)
        self.norm, self.norm2 = norm(width), norm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=not gated) for _ in range(4))
        self.up, self.down = nn.Linear(width, hidden, bias=not gated), nn.Linear(hidden, width, bias=not gated)
        if gated:
            self.gate = nn.Linear(width, hidden, bias=False)

    def forward(self, x, cos, sin):
        y = self.norm(x)
        q, k, v = (f(y).unflatten(-1, (-1, self.depth)).transpose(1, 2) for f in (self.q, self.k, self.v))
        if self.gated:
            q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(z.transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y) if self.gated else F.gelu(self.up(y)))


def rotated(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos.to(x.dtype) + torch.cat((-b, a), -1) * sin.to(x.dtype)


class Transformer(nn.Module):
    """A language model."""

    def __init__(self, width, heads, layers, words, length, gated):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, gated) for _ in range(layers))
        self.norm = (nn.RMSNorm if gated else nn.LayerNorm)(width)
        self.head = nn.Linear(width, words, bias=False)
        angles = torch.arange(length)[:, None] / 1e4 ** (torch.arange(0, width // heads, 2) / (width // heads))
        self.register_buffer("cos", torch.cat((angles.cos(), angles.cos()), -1))
        self.register_buffer("sin", torch.cat((angles.sin(), angles.sin()), -1))

    def forward(self, tokens, labels):
        length = tokens.shape[1]
        x = self.words(tokens) + self.places(torch.arange(length, device=tokens.device))
        for block in self.blocks:
            x = block(x, self.cos[:length], self.sin[:length])
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), labels.flatten())


class Residual(nn.Module):
    """A bottleneck of ResNet-50."""

    def __init__(self, inner, width, stride):
        super().__init__()
        out = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out),
        )  # fmt: skip
        again = nn.Sequential(nn.Conv2d(inner, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        self.skip = again if stride > 1 or inner != out else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


class ResNet50(nn.Module):
    """A classifier of images."""

    def __init__(self):
        super().__init__()
        inner = 64
        layers = [nn.Conv2d(3, inner, 7, 2, 3, bias=False), nn.BatchNorm2d(inner), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for number in range(count):
                layers.append(Residual(inner, width, stride if number == 0 else 1))
                inner = 4 * width
        self.body, self.head = nn.Sequential(*layers), nn.Linear(inner, 1000)

    def forward(self, images, labels):
        return F.cross_entropy(self.head(self.body(images).mean((2, 3))), labels)


def gpt2(batch=16, length=1024):
    """GPT-2 small in DDP, by autocast, with a fused optimizer."""
    model = Transformer(768, 12, 12, 50304, 1024, gated=False)
    return DistributedDataParallel(model), texts(batch, length, 50304), torch.bfloat16, {"fused": True}


def llama(batch=8, length=2048):
    """A Llama of 1.3e9 parameters in FSDP 2."""
    model = Transformer(2048, 16, 24, 32000, 2048, gated=True)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, mp_policy=policy)
    return fully_shard(model, mp_policy=policy), texts(batch, length, 32000), None, {}


def tensor_parallel(batch=8, length=2048):
    """A Llama of 8 wide layers, each of which all GPUs share."""
    model = Transformer(4096, 32, 8, 32000, 2048, gated=True).bfloat16()
    plan = {name: ColwiseParallel() for name in ("q", "k", "v", "up", "gate")} | {
        name: RowwiseParallel(output_layouts=Replicate()) for name in ("o", "down")
    }
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    for block in model.blocks:
        parallelize_module(block, mesh, plan)
    return model, texts(batch, length, 32000), None, {"foreach": False}  # some parameters are no DTensors


def resnet(batch=128, side=224):
    """ResNet-50 in DDP, of float32, whose convolutions round."""
    images, labels = torch.randn(batch, 3, side, side), torch.randint(0, 1000, (batch,))
    return DistributedDataParallel(ResNet50()), (images, labels), None, {}


def texts(batch, length, words):
    return tuple(torch.randint(0, words, (batch, length)) for _ in range(2))


PROGRAMS = (gpt2, llama, tensor_parallel, resnet)
SMALL = 1, 64
"""A batch, and its length or side, of which a step takes the host longer than the device."""


def step_us(program, sizes, steps=8):
    """Returns the microseconds of a training step: the median of all but the first three."""
    with torch.device("cuda"):
        model, batch, autocast, how = program(*sizes)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, **how)
    return median_us(trained(model, batch, optimizer, autocast), steps)


def trained(model, batch, optimizer, autocast=None):
    """Returns a step of training, with operations of another dtype where one is to be chosen for them."""

    def step():
        with torch.autocast("cuda", autocast or torch.bfloat16, enabled=autocast is not None):
            loss = model(*batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def median_us(step, steps):
    """Returns the microseconds of a step: the median of all but the first three."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    took = []
    for _ in range(steps):
        dist.barrier()
        torch.cuda.synchronize()
        start.record()
        step()
        end.record()
        end.synchronize()
        took.append(start.elapsed_time(end) * 1e3)
    return statistics.median(took[3:])


def recorded_us(path):
    """Returns the microseconds that a file has, by the program's name and the number of GPUs."""
    with path.open(newline="") as file:
        return {(row["program"], int(row["gpus"])): float(row["us"]) for row in csv.DictReader(file)}


def compare(name, world, us, recorded):
    """Prints what is predicted beside what was measured."""
    there = recorded.get((name, world), float("nan"))
    print(f"{name:22}{world:3} GPUs: measured {there:9.0f} us, predicted {us:9.0f} us, {us / there:.2f}")


def time_programs(about, programs, file, steps):
    """Times the programs that the command names, or all, and adds the times to a file or compares them with one.

    Args:
        about: the docstring of the command.
        programs: functions that return a step each.
        file: where recorded times are.
        steps: how often each program steps.
    """
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("--record", metavar="FILE", help="add the times to a file instead of comparing them")
    parser.add_argument("--only", metavar="NAME", nargs="*", help="run these programs alone")
    options = parser.parse_args()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    world, recorded = dist.get_world_size(), {}
    if not options.record and file.exists():
        recorded = recorded_us(file)
    for program in programs:
        if options.only and program.__name__ not in options.only:
            continue
        with torch.device("cuda"):
            us = median_us(program(), steps)
        gc.collect()
        torch.cuda.empty_cache()
        if dist.get_rank() == 0 and options.record:
            with open(options.record, "a", newline="") as added:
                csv.writer(added, lineterminator="\n").writerow((program.__name__, world, f"{us:.1f}"))
        elif dist.get_rank() == 0:
            compare(program.__name__, world, us, recorded)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", metavar="FILE", help="add the times to a file instead of comparing them")
    options = parser.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    world, recorded = dist.get_world_size(), {}
    if not options.record:
        recorded = recorded_us(RECORDED)
    for program, sizes in itertools.product(PROGRAMS, ((), SMALL)):
        name = f"{program.__name__}_small" if sizes else program.__name__
        us = step_us(program, sizes)
        torch.cuda.empty_cache()
        if dist.get_rank() == 0 and options.record:
            with open(options.record, "a", newline="") as file:
                csv.writer(file, lineterminator="\n").writerow((name, world, f"{us:.0f}"))
        elif dist.get_rank() == 0:
            compare(name, world, us, recorded)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
