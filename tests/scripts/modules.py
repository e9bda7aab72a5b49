# torchrun --nproc-per-node 2 modules.py
"""A transformer block of modules: how it looks, what its state is, hooks, copies; training with each optimizer."""

import copy

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.before, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.between = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.mlp(self.between(x))


class Model(nn.Module):
    def __init__(self, words=7, width=8, heads=2, depth=2):
        super().__init__()
        self.embedding = nn.Embedding(words, width, padding_idx=0)
        self.register_buffer("positions", torch.arange(16), persistent=False)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        self.steps += 1
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def with_weights(model):
    """The same weights everywhere."""
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.from_numpy(rng.normal(0, 0.3, tuple(parameter.shape))))
    return model


def describe(model):
    print(model.embedding, model.blocks[0].mlp, model.blocks[0].attention, model.head)
    print(sum(p.numel() for p in model.parameters()), "parameters")
    for name, value in model.state_dict().items():
        print(name, tuple(value.shape), value.dtype)
    print([name for name, _ in model.named_buffers()], [name for name, _ in model.named_children()])


def watch(model):
    calls = []
    block = model.blocks[0]
    handles = [
        block.register_forward_pre_hook(lambda module, args: calls.append(("before", tuple(args[0].shape)))),
        block.register_forward_hook(lambda module, args, result: calls.append(("after", tuple(result.shape)))),
    ]
    model(torch.tensor([[1, 2, 3]]))
    for handle in handles:
        handle.remove()
    model(torch.tensor([[1, 2, 3]]))
    print(calls, model.steps.item())


def refuse(model):
    for call in (
        lambda: setattr(model, "head", 3),
        lambda: model.register_buffer("head", None),
        lambda: model.get_submodule("blocks.5"),
        lambda: model.load_state_dict({"steps": torch.zeros(()), "more": 1, "norm.weight": torch.ones(3)}),
        lambda: model.head.weight.add_(1),
        lambda: model(torch.tensor([[9]])),
    ):
        try:
            call()
        except Exception as error:
            print(type(error).__name__, str(error)[:160])


def train(model, optimizer, schedule):
    rng = np.random.default_rng(1)
    tokens = torch.from_numpy(rng.integers(1, 7, (4, 6)))
    for step in range(8):
        optimizer.zero_grad()
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), label_smoothing=0.1)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        print(f"step {step}: loss {loss.item():.4f}, norm {norm.item():.4f}, rate {schedule.get_last_lr()[0]:.5f}")


def main():
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        torch.set_default_dtype(torch.float64)
        model = with_weights(Model())
        describe(model)
        watch(model)
        refuse(model)
        for kind, options in (
            (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
            (torch.optim.Adam, {"lr": 0.01, "amsgrad": True}),
            (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
        ):
            other = copy.deepcopy(model)
            optimizer = kind(other.parameters(), **options)
            print(optimizer)
            train(other, optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8))
            state = optimizer.state_dict()["state"][3]
            print({name: value.double().norm().item().__format__(".6f") for name, value in sorted(state.items())})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
