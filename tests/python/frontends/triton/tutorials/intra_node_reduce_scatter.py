"""Scatters by copies of streams, meets in a barrier of compare-and-swap, and adds up in a fixed order."""

import os

import torch
import triton
import triton.language as tl
import triton_dist
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, atomic_cas, tid
from triton_dist.utils import (
    finalize_distributed,
    initialize_distributed,
    nvshmem_barrier_all_on_stream,
    nvshmem_create_tensors,
)


@triton_dist.jit
def barrier_all(words, WORLD: tl.constexpr, rank):
    thread = tid(0)
    if thread < WORLD:
        place = dl.symm_at(words, thread) + rank
        while atomic_cas(place, 0, 1, "sys", "release") != 0:
            pass
        while atomic_cas(words + thread, 1, 0, "sys", "acquire") != 1:
            pass
    __syncthreads()


@triton_dist.jit
def add_up(scattered, out, M, N, rank, WORLD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(scattered, shape=[WORLD * M, N], strides=[N, 1], block_shape=[BM, BN])
    target = tl.make_tensor_descriptor(out, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = source.load([((rank + 1) % WORLD) * M + i, j])
    for step in range(1, WORLD):
        total += source.load([((rank + 1 + step) % WORLD) * M + i, j])
    target.store([i, j], total)


RANK, LOCAL, WORLD = (int(os.environ[n]) for n in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))
initialize_distributed()
M, N = 64, 128
PER = M // WORLD
x = torch.randn(M, N).to(torch.bfloat16).cuda()
peers = nvshmem_create_tensors((M, N), torch.bfloat16, RANK, WORLD)
words = nvshmem_create_tensors((WORLD,), torch.int32, RANK, WORLD)
words[LOCAL].fill_(0)
nvshmem_barrier_all_on_stream()
for _ in range(3):
    out = torch.zeros(PER, N, dtype=torch.bfloat16).cuda()
    for step in range(1, WORLD + 1):
        peer = (RANK + step) % WORLD
        peers[peer][RANK * PER : (RANK + 1) * PER].copy_(x[peer * PER : (peer + 1) * PER])
    barrier_all[(1,)](words[LOCAL], WORLD, RANK)
    add_up[(triton.cdiv(PER, 16), triton.cdiv(N, 64))](peers[LOCAL], out, PER, N, RANK, WORLD, 16, 64)
    nvshmem_barrier_all_on_stream()
    every = [torch.empty_like(x) for _ in range(WORLD)]
    torch.distributed.all_gather(every, x)
    mine = [e[RANK * PER : (RANK + 1) * PER] for e in every]
    want = mine[(RANK + 1) % WORLD].clone()
    for step in range(1, WORLD):
        want = want + mine[(RANK + 1 + step) % WORLD]
    torch.testing.assert_close(out, want, atol=0, rtol=0)
    summed = torch.zeros(PER, N, dtype=torch.bfloat16).cuda()
    torch.distributed.reduce_scatter_tensor(summed, x)
    torch.testing.assert_close(out, summed, atol=6e-2, rtol=6e-2)
print(f"RANK {RANK}: pass!")
finalize_distributed()
