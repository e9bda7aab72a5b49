"""Multiplies what is gathered between nodes meanwhile: tiles wait for their parts, which another stream copies."""

import os

import torch
import triton
import triton.language as tl
import triton_dist
import triton_dist.language as dl
from cuda.bindings import driver as cuda
from triton_dist.language.extra import libshmem_device
from triton_dist.utils import (
    CUDA_CHECK,
    dist_print,
    finalize_distributed,
    initialize_distributed,
    nvshmem_barrier_all_on_stream,
    nvshmem_create_tensors,
)


@triton_dist.jit(do_not_specialize=["call"])
def send(whole, words, nbytes, call, LOCAL: tl.constexpr, NODES: tl.constexpr):
    """Puts the rank's part to its likes on the other nodes."""
    rank = dl.rank()
    node = (rank // LOCAL + 1 + tl.program_id(0)) % NODES
    part = tl.cast(whole, tl.pointer_type(tl.int8)) + rank * nbytes
    libshmem_device.putmem_signal_nbi_block(
        part, part, nbytes, words + rank, call, libshmem_device.NVSHMEM_SIGNAL_SET, node * LOCAL + rank % LOCAL
    )


@triton_dist.jit(do_not_specialize=["call"])
def multiply(a, b, c, words, M, N, K, call, LOCAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rank, world = dl.rank(), dl.num_ranks()
    columns_of_tiles = tl.cdiv(N, BN)
    rows_of_tiles = tl.cdiv(M, BM)
    pid = tl.program_id(0)
    row = (pid // columns_of_tiles + rank * (rows_of_tiles // world)) % rows_of_tiles
    column = pid % columns_of_tiles
    owner = row * BM // (M // world)
    token = dl.wait(words + owner, 1, "gpu", "acquire", waitValue=call)
    a = dl.consume_token(a, token)
    inner = tl.arange(0, BK)
    p = a + (row * BM + tl.arange(0, BM))[:, None] * K + inner[None, :]
    q = b + inner[:, None] * N + (column * BN + tl.arange(0, BN))[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(tl.cdiv(K, BK)):
        x = tl.load(p, mask=inner[None, :] < K - k * BK, other=0.0)
        y = tl.load(q, mask=inner[:, None] < K - k * BK, other=0.0)
        total = tl.dot(x, y, total)
        p += BK
        q += BK * N
    at = c + (row * BM + tl.arange(0, BM))[:, None] * N + (column * BN + tl.arange(0, BN))[None, :]
    tl.store(at, total.to(c.dtype.element_ty))


RANK, LOCAL, WORLD, NEAR = (int(os.environ[n]) for n in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"))
NODES, NODE = WORLD // NEAR, RANK // NEAR
EQ = cuda.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ
DEFAULT = cuda.CUstreamWriteValue_flags.CU_STREAM_WRITE_VALUE_DEFAULT
initialize_distributed()
if NODES < 2:
    dist_print("Skip: it needs two nodes at least")
    finalize_distributed()
    raise SystemExit(0)
M, N, K = 32 * WORLD, 64, 48
PER = M // WORLD
wholes = [nvshmem_create_tensors((M, K), torch.float16, RANK, NEAR) for _ in range(2)]
signals = [nvshmem_create_tensors((WORLD,), torch.int64, RANK, NEAR) for _ in range(2)]
for words in signals:
    words[LOCAL].fill_(0)
nvshmem_barrier_all_on_stream()
side = torch.cuda.Stream()


def gather(x, whole, words, call):
    """Brings all parts, in the order in which the product wants them: the node's, then those of the others."""
    own, mine = whole[LOCAL], words[LOCAL]

    def pull(owner, source):
        CUDA_CHECK(cuda.cuStreamWaitValue64(side.cuda_stream, words[source][owner].data_ptr(), call, EQ))
        part = slice(owner * PER, (owner + 1) * PER)
        own[part].copy_(whole[source][part])
        CUDA_CHECK(cuda.cuStreamWriteValue64(side.cuda_stream, mine[owner].data_ptr(), call, DEFAULT))

    own[RANK * PER : (RANK + 1) * PER].copy_(x)
    CUDA_CHECK(cuda.cuStreamWriteValue64(side.cuda_stream, mine[RANK].data_ptr(), call, DEFAULT))
    send[(NODES - 1,)](own, mine, PER * K * 2, call, NEAR, NODES)
    for node in [(NODE + step) % NODES for step in range(NODES)]:
        for source in [(LOCAL + step) % NEAR for step in range(1, NEAR)]:
            pull(node * NEAR + source, source)


def allgather_gemm(x, w, call):
    whole, words = wholes[call % 2], signals[call % 2]
    out = torch.empty(M, N, dtype=torch.float16).cuda()
    current = torch.cuda.current_stream()
    side.wait_stream(current)
    with torch.cuda.stream(side):
        gather(x, whole, words, call)
    grid = (triton.cdiv(M, 32) * triton.cdiv(N, 32),)
    multiply[grid](whole[LOCAL], w, out, words[LOCAL], M, N, K, call, NEAR, 32, 32, 32)
    current.wait_stream(side)
    nvshmem_barrier_all_on_stream(current)
    return out


for call in range(1, 4):
    x = (torch.randn(PER, K) / 8).to(torch.float16).cuda()
    w = (torch.randn(K, N) / 8).to(torch.float16).cuda()
    got = allgather_gemm(x, w, call)
    whole = torch.empty(M, K, dtype=torch.float16).cuda()
    torch.distributed.all_gather_into_tensor(whole, x)
    torch.testing.assert_close(got, whole @ w, atol=1e-3, rtol=1e-3)
print(f"RANK {RANK}: pass!")
finalize_distributed()
