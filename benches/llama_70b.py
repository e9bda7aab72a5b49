r"""A training step of a Llama of 70 billion parameters: FSDP2 over nodes, tensor and sequence parallel within.

    torchemu run --mirror --ccl benches/llama_70b.yaml --topology nodes2x8 --nnodes 128 --nproc-per-node 8 \
        benches/llama_70b.py
    torchrun --nnodes 128 --nproc-per-node 8 benches/llama_70b.py

The shapes are those that Meta has published for Llama 3 70B, with the vocabulary rounded up so that 1,024 ranks divide
it evenly: where some have less than others one does not stand for all. --replicas 16 on 16,384 ranks has 16 replicas
whose ranks are 128 x 8 each (HSDP). --layers 4 and the like make it small.
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn import functional


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, default in (
        *(("layers", 80), ("width", 8192), ("heads", 64), ("kv-heads", 8), ("hidden", 28672), ("vocabulary", 131072)),
        *(("sequence", 4096), ("batch", 1), ("tp", 8), ("replicas", 1), ("steps", 3)),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


class Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.depth = shape.width // shape.heads
        self.query = nn.Linear(shape.width, shape.width, bias=False)
        self.key = nn.Linear(shape.width, shape.kv_heads * self.depth, bias=False)
        self.value = nn.Linear(shape.width, shape.kv_heads * self.depth, bias=False)
        self.out = nn.Linear(shape.width, shape.width, bias=False)

    def forward(self, x):
        query, key, value = (f(x).unflatten(-1, (-1, self.depth)) for f in (self.query, self.key, self.value))
        query, key = rotated(query), rotated(key)
        groups = query.shape[2] // key.shape[2]
        key, value = (t.repeat_interleave(groups, 2) for t in (key, value))
        query, key, value = (t.transpose(1, 2) for t in (query, key, value))
        return self.out(
            functional.scaled_dot_product_attention(query, key, value, is_causal=True).transpose(1, 2).flatten(2)
        )


def rotated(x):
    """Turns pairs of elements by their positions."""
    rows, depth = x.shape[1], x.shape[3]
    speeds = 500000.0 ** -(torch.arange(0, depth, 2, device=x.device) / depth)
    turns = torch.arange(rows, device=x.device)[:, None] * speeds
    sine, cosine = turns.sin()[:, None].to(x.dtype), turns.cos()[:, None].to(x.dtype)
    even, odd = x.chunk(2, -1)
    return torch.cat((even * cosine - odd * sine, even * sine + odd * cosine), -1)


class FeedForward(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.gate = nn.Linear(shape.width, shape.hidden, bias=False)
        self.up = nn.Linear(shape.width, shape.hidden, bias=False)
        self.down = nn.Linear(shape.hidden, shape.width, bias=False)

    def forward(self, x):
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.attention_norm, self.attention = nn.RMSNorm(shape.width), Attention(shape)
        self.feed_norm, self.feed = nn.RMSNorm(shape.width), FeedForward(shape)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed(self.feed_norm(x))


class Llama(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm, self.head = nn.RMSNorm(shape.width), nn.Linear(shape.width, shape.vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def parallelize(model, mesh):
    whole = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
    parallelize_module(
        model,
        mesh,
        {
            "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
            "norm": SequenceParallel(),
            "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
        },
    )
    for layer in model.layers:
        plan = {"attention_norm": SequenceParallel(), "feed_norm": SequenceParallel()}
        plan |= {"attention": whole, "feed": whole}
        for name in ("attention.query", "attention.key", "attention.value", "feed.gate", "feed.up"):
            plan[name] = ColwiseParallel()
        for name in ("attention.out", "feed.down"):
            plan[name] = RowwiseParallel(output_layouts=Shard(1))
        parallelize_module(layer, mesh, plan)


def main():
    shape = arguments()
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    world = dist.get_world_size()
    sizes = shape.replicas, world // shape.replicas // shape.tp, shape.tp
    mesh = init_device_mesh("cuda", sizes, mesh_dim_names=("replicate", "shard", "tp"))
    data = mesh["replicate", "shard"] if shape.replicas > 1 else mesh["shard"]
    with torch.device("meta"):
        model = Llama(shape)
    if shape.tp > 1:
        parallelize(model, mesh["tp"])
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.layers:
        fully_shard(layer, mesh=data, mp_policy=policy)
    fully_shard(model, mesh=data, mp_policy=policy)
    model.to_empty(device="cuda")
    torch.manual_seed(0)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.02)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for step in range(shape.steps):
        tokens = torch.randint(shape.vocabulary, (shape.batch, shape.sequence + 1)).cuda()
        torch.cuda.synchronize()
        begun = time.process_time()
        start.record()
        logits = model(tokens[:, :-1])
        functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
        end.record()
        end.synchronize()
        if dist.get_rank() == 0:
            took, cost = start.elapsed_time(end), time.process_time() - begun
            print(f"step {step}: {took:.3f} ms on {world} devices; {cost:.1f} s of this process", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
