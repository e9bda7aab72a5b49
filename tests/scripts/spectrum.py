# torchrun --nproc-per-node 4 spectrum.py
"""Complex numbers: a Fourier transform in two dimensions with an exchange in between, and a filter learned from it."""

import math

import torch
import torch.distributed as dist

N = 8

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
rows = N // world


def say(*words):
    if rank == 0:
        print(*words)


def rounded(t):
    """Without the last digits, which depend on who calculates."""
    return torch.view_as_complex(torch.view_as_real(t).mul(1e3).round().div(1e3) + 0.0)


def transform(x):
    """The discrete Fourier transform of each row, by its matrix."""
    k = torch.arange(N, dtype=torch.float64)
    angles = -2 * math.pi * torch.outer(k, k) / N
    return x @ torch.polar(torch.ones_like(angles), angles)


def exchanged(x):
    """The matrix of all ranks' rows, transposed: again with some rows on each rank."""
    parts = torch.empty(world, rows, rows, dtype=x.dtype)
    given = x.reshape(rows, world, rows).permute(1, 2, 0).contiguous()
    dist.all_to_all_single(torch.view_as_real(parts), torch.view_as_real(given))
    return parts.permute(1, 0, 2).reshape(rows, N).contiguous()


# a picture of which each rank has some rows
whole = torch.arange(N * N, dtype=torch.float64).reshape(N, N).remainder(7) + 0j
mine = whole[rank * rows : (rank + 1) * rows]
spectrum = exchanged(transform(exchanged(transform(mine))))
say(spectrum.dtype, spectrum.shape, spectrum.is_complex(), spectrum.real.stride())
say(rounded(spectrum)[0])

# all of it everywhere, and what the whole transformed at once would be
everything = torch.empty(N, N, dtype=spectrum.dtype)
dist.all_gather_into_tensor(everything, spectrum)
alone = transform(transform(whole).T).T
say(torch.allclose(everything, alone), rounded(everything.diagonal())[:3])
torch.testing.assert_close(everything, alone)

# energy, by Parseval's theorem
energy = (spectrum * spectrum.conj()).sum()
dist.all_reduce(energy)
say(rounded(energy), round(float((whole.abs() ** 2).sum()) * N * N, 3))

# sums of complex numbers, and what they are refused
total = torch.tensor([complex(rank, 1), complex(1, -rank)])
dist.all_reduce(total)
say(total, total.angle().mul(1e3).round())
sums = torch.empty(1, dtype=torch.complex64)
dist.reduce_scatter_tensor(sums, torch.full((world,), complex(rank, rank + 1)))
say(sums)
for op in (dist.ReduceOp.MAX, dist.ReduceOp.PRODUCT, dist.ReduceOp.BXOR):
    try:
        dist.all_reduce(total, op)
    except ValueError as error:
        say(error)

# a message
if rank == 0:
    dist.send(torch.tensor([3 - 4j]), world - 1)
elif rank == world - 1:
    got = torch.empty(1, dtype=torch.complex64)
    dist.recv(got, 0)
    assert got.item() == 3 - 4j and got.abs().item() == 5

# a filter in the frequencies, which is to bring back a picture: each rank knows its rows, and gradients are averaged
torch.manual_seed(7)
target = torch.randn(N, dtype=torch.complex128)
given = torch.randn(world, 4, N, dtype=torch.complex128)[rank]
learned = torch.nn.Parameter(torch.ones(N, dtype=torch.complex128))
optimizer = torch.optim.Adam([learned], lr=0.2)
for step in range(60):
    optimizer.zero_grad()
    loss = (given * learned - given * target).abs().square().mean()
    loss.backward()
    dist.all_reduce(learned.grad)
    learned.grad /= world
    optimizer.step()
    if step % 20 == 0:
        say(step, round(loss.item(), 4), rounded(learned.grad)[:2].tolist())
error = (learned.detach() - target).abs().max()
say("learned" if error < 0.2 else f"off by {error}", learned.requires_grad, learned.grad.dtype)
dist.destroy_process_group()
