"""Notifies a stream of the tiles of a product that are done, which copies them to the ranks that add them up."""

import os

import torch
import triton
import triton.language as tl
import triton_dist
import triton_dist.language as dl
from cuda.bindings import driver as cuda
from triton_dist.language.extra.language_extra import __syncthreads, atomic_add, tid
from triton_dist.profiler_utils import perf_func
from triton_dist.utils import (
    CUDA_CHECK,
    finalize_distributed,
    initialize_distributed,
    nvshmem_barrier_all_on_stream,
    nvshmem_create_tensor,
    nvshmem_create_tensors,
)


@triton_dist.jit
def gemm(
    a, b, c, counters, words, M, N, K, call, WORLD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rank = dl.rank()
    tiles = tl.cdiv(N, BN)
    per_rank = M // WORLD // BM
    pid = tl.program_id(0)
    row = (pid // tiles + (rank + 1) * per_rank) % (M // BM)
    column = pid % tiles
    segment = row // per_rank
    rows, columns, inner = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        y = tl.load(b + (k + inner)[:, None] * N + columns[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty))
    __syncthreads()
    thread = tid(0)
    if thread == 0:
        done = atomic_add(counters + segment, 1, "gpu", "acq_rel")
        if done == per_rank * tiles * call - 1:
            dl.notify(words + segment, rank, signal=call, sig_op="set", comm_scope="gpu")


@triton_dist.jit
def add_up(slots, out, M, N, WORLD: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for r in range(WORLD):
        total += tl.load(slots + r * M * N + i, mask=i < M * N, other=0.0).to(tl.float32)
    tl.store(out + i, total.to(out.dtype.element_ty), mask=i < M * N)


RANK, LOCAL, WORLD = (int(os.environ[n]) for n in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))
initialize_distributed()
M, N, K = 32 * WORLD, 64, 64
PER = M // WORLD
a = torch.randn(M, K).to(torch.float16).cuda()
b = torch.randn(K, N).to(torch.float16).cuda()
product = nvshmem_create_tensor((M, N), torch.float16)
peers = nvshmem_create_tensors((M, N), torch.float16, RANK, WORLD)
words = nvshmem_create_tensor((WORLD,), torch.int64)
counters = torch.zeros(WORLD, dtype=torch.int32).cuda()
words.fill_(0)
nvshmem_barrier_all_on_stream()
side, call = torch.cuda.Stream(), 0


def gemm_rs():
    global call
    call += 1
    out = torch.zeros(PER, N, dtype=torch.float16).cuda()
    current = torch.cuda.current_stream()
    side.wait_stream(current)
    gemm[((M // 16) * (N // 32),)](a, b, product, counters, words, M, N, K, call, WORLD, 16, 32, 32)
    with torch.cuda.stream(side):
        for step in range(1, WORLD + 1):
            peer = (RANK + step) % WORLD
            CUDA_CHECK(
                cuda.cuStreamWaitValue64(
                    side.cuda_stream, words[peer].data_ptr(), call, cuda.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ
                )
            )
            peers[peer][RANK * PER : (RANK + 1) * PER].copy_(product[peer * PER : (peer + 1) * PER])
    current.wait_stream(side)
    nvshmem_barrier_all_on_stream(current)
    add_up[(triton.cdiv(PER * N, 256),)](peers[LOCAL], out, PER, N, WORLD, 256)
    nvshmem_barrier_all_on_stream(current)
    return out


def plain():
    out = torch.empty(PER, N, dtype=torch.float16).cuda()
    torch.distributed.reduce_scatter_tensor(out, a @ b)
    return out


mine, ms = perf_func(gemm_rs, iters=3, warmup_iters=1)
want, torch_ms = perf_func(plain, iters=3, warmup_iters=1)
torch.testing.assert_close(mine, want, atol=6e-2, rtol=6e-2)
print(f"dist-triton #{RANK}", ms)
print(f"torch #{RANK}", torch_ms)
finalize_distributed()
