"""Kernels among collectives: what they write is reduced, gathered and sent, and they read what comes back."""

import torch
import torch.distributed as dist
import triton
import triton.language as tl
from torch.nn.parallel import DistributedDataParallel


@triton.jit
def scale_kernel(x, out, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


def launch(x, factor):
    out = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), factor, BLOCK=256)
    return out


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return launch(x.contiguous(), factor)

    @staticmethod
    def backward(ctx, dy):
        return launch(dy.contiguous(), ctx.factor), None


dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(rank)
x = torch.full((1000,), float(rank + 1), device="cuda")
y = launch(x, 2.0)
dist.all_reduce(y)
z = launch(y, 0.5)
assert torch.equal(z, torch.full_like(z, world * (world + 1) / 2)), z
work = dist.all_gather_into_tensor(gathered := torch.empty(world * 1000, device="cuda"), launch(x, 3.0), async_op=True)
beside = launch(x, 5.0)
work.wait()
assert torch.equal(launch(gathered, 1.0).view(world, 1000)[:, 0], 3 * torch.arange(1, world + 1, device="cuda").float())
assert torch.equal(beside, 5 * x)
if rank == 0:
    dist.send(launch(x, 7.0), 1)
elif rank == 1:
    got = torch.empty(1000, device="cuda")
    dist.recv(got, 0)
    assert torch.equal(launch(got, 1.0), torch.full_like(got, 7.0))


def gradients(scale):
    torch.manual_seed(3)
    model = DistributedDataParallel(torch.nn.Linear(8, 8).cuda(), device_ids=[rank])
    torch.manual_seed(rank)
    for _ in range(2):
        loss = scale(model(torch.randn(4, 8, device="cuda")), 3.0).square().mean()
        loss.backward()
    return [p.grad.clone() for p in model.parameters()]


for have, want in zip(gradients(Scale.apply), gradients(lambda t, f: t * f), strict=True):
    torch.testing.assert_close(have, want)
dist.destroy_process_group()
print("ok")
