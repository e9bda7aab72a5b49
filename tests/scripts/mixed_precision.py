# torchrun --nproc-per-node 2 mixed_precision.py
"""autocast and GradScaler: a convolutional and an attending network, in bfloat16, with checkpoints and clipping."""

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817
from torch.utils.checkpoint import checkpoint


def wave(*shape, step=0.37):
    count = 1
    for n in shape:
        count *= n
    return (torch.arange(float(count)) * step).sin().reshape(shape)


def deterministic(module):
    with torch.no_grad():
        for number, p in enumerate(module.parameters()):
            p.copy_(wave(*p.shape, step=0.61 + number) * (0.5 if p.dim() > 1 else 0.1))
    return module


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.second, self.last = nn.Conv2d(4, 6, 3, stride=2), nn.Linear(6, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.first(x))), 2)
        x = F.adaptive_avg_pool2d(self.second(x), 1).flatten(1)
        return self.last(x)


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.norm = nn.Embedding(11, 8), nn.LayerNorm(8)
        self.join, self.up, self.down = nn.Linear(8, 24), nn.Linear(8, 16), nn.Linear(16, 8)
        self.last = nn.Linear(8, 5)

    def block(self, x):
        q, k, v = self.join(self.norm(x)).chunk(3, -1)
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.down(F.gelu(self.up(x)))

    def forward(self, x):
        return self.last(checkpoint(self.block, self.words(x), use_reentrant=False).mean(1))


def train(name, module, batches, **scaling):
    model = DDP(deterministic(module))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    scaler = torch.amp.GradScaler("cpu", **scaling)
    for number, x in enumerate(batches):
        target = (torch.arange(len(x)) + number + dist.get_rank()) % 5
        with torch.autocast("cpu", dtype=torch.bfloat16):
            scores = model(x)
            loss = F.cross_entropy(scores, target)
        scaler.scale(loss if number != 2 else loss * float("inf")).backward()
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        total = loss.detach().clone()
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print(
                name, number, scores.dtype, loss.dtype, f"{total.item() / 2:.2f} {norm.item():.1f}", scaler.get_scale()
            )
    if dist.get_rank() == 0:
        print({p.dtype for p in model.parameters()}, scaler.state_dict())


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    train("images", Images(), [wave(6, 1, 8, 8, step=0.2 + i + rank) for i in range(6)], growth_interval=2)
    numbers = torch.arange(24).reshape(4, 6)
    train("words", Words(), [(numbers * (i + 2) + rank) % 11 for i in range(6)], init_scale=8.0)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
