"""Scatters on one stream while a kernel on another adds up what has come."""

import os

import torch
import triton
import triton.language as tl
import triton_dist
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device
from triton_dist.utils import (
    finalize_distributed,
    initialize_distributed,
    nvshmem_barrier_all_on_stream,
    nvshmem_create_tensor,
)


@triton_dist.jit
def scatter(x, slots, words, nbytes, call, WORLD: tl.constexpr):
    rank = dl.rank()
    peer = (rank + 1 + tl.program_id(0)) % WORLD
    libshmem_device.putmem_block(slots + rank * nbytes, x + peer * nbytes, nbytes, peer)
    libshmem_device.fence()
    if tl.program_id(1) == 0:
        dl.notify(words + rank, peer, signal=call, sig_op="set", comm_scope="intra_node")


@triton_dist.jit
def add_up(slots, words, out, M, N, call, WORLD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rank = dl.rank()
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    target = tl.make_tensor_descriptor(out, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(WORLD):
        segment = (rank + 1 + step) % WORLD
        token = dl.wait(words + segment, 1, "sys", "acquire", waitValue=call)
        place = dl.consume_token(slots, token)
        source = tl.make_tensor_descriptor(place, shape=[WORLD * M, N], strides=[N, 1], block_shape=[BM, BN])
        total += source.load([segment * M + i, j]).to(tl.float32)
    target.store([i, j], total.to(out.dtype.element_ty))


RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
initialize_distributed()
M, N = 64, 128
PER = M // WORLD
slots = nvshmem_create_tensor((2, M, N), torch.bfloat16)
words = nvshmem_create_tensor((2, WORLD), torch.int64)
words.fill_(0)
nvshmem_barrier_all_on_stream()
side = torch.cuda.Stream()
for call in range(1, 5):
    x = torch.randn(M, N).to(torch.bfloat16).cuda()
    out = torch.zeros(PER, N, dtype=torch.bfloat16).cuda()
    here, flags = slots[call % 2], words[call % 2]
    side.wait_stream(torch.cuda.current_stream())
    add_up[(triton.cdiv(PER, 16), triton.cdiv(N, 64))](here, flags, out, PER, N, call, WORLD, 16, 64)
    with torch.cuda.stream(side):
        scatter[(WORLD, 1)](x.view(torch.int8), here.view(torch.int8), flags, PER * N * 2, call, WORLD)
    torch.cuda.current_stream().wait_stream(side)
    every = [torch.empty_like(x) for _ in range(WORLD)]
    torch.distributed.all_gather(every, x)
    want = sum(e[RANK * PER : (RANK + 1) * PER].to(torch.float32) for e in every)
    torch.testing.assert_close(out.to(torch.float32), want, atol=6e-2, rtol=6e-2)
    nvshmem_barrier_all_on_stream()
print(f"RANK {RANK}: pass!")
finalize_distributed()
