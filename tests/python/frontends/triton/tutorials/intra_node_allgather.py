"""Gathers by copies of streams, and by puts with signals."""

import os

import torch
import triton.language as tl
import triton_dist
from cuda.bindings import driver as cuda
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import __syncthreads, tid
from triton_dist.utils import (
    CUDA_CHECK,
    NVSHMEM_SIGNAL_DTYPE,
    dist_print,
    finalize_distributed,
    initialize_distributed,
    nvshmem_barrier_all_on_stream,
    nvshmem_create_tensor,
    nvshmem_create_tensors,
    nvshmem_free_tensor_sync,
)

RANK, LOCAL, WORLD = (int(os.environ[n]) for n in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))
group = initialize_distributed()
M, N = int(os.environ.get("M", "64")), int(os.environ.get("N", "96"))
PER = M // WORLD


def copy_engine(buffers, signals, stream):
    own = buffers[LOCAL]
    for step in range(1, WORLD):
        src = (LOCAL + step) % WORLD
        own[src * PER : (src + 1) * PER].copy_(buffers[src][src * PER : (src + 1) * PER])
        (err,) = cuda.cuStreamWriteValue64(
            stream.cuda_stream, signals[src].data_ptr(), 1, cuda.CUstreamWriteValue_flags.CU_STREAM_WRITE_VALUE_DEFAULT
        )
        CUDA_CHECK(err)


@triton_dist.jit
def put(buffer, nbytes, signals, WORLD: tl.constexpr, rank):
    pid = tl.program_id(0)
    peer = (rank + pid + 1) % WORLD
    place = tl.cast(buffer, tl.pointer_type(tl.int8)) + rank * nbytes
    libshmem_device.putmem_signal_block(
        place, place, nbytes, signals + rank, 1, libshmem_device.NVSHMEM_SIGNAL_SET, peer
    )


@triton_dist.jit
def wait_all(signals, WORLD: tl.constexpr):
    thread = tid(0)
    if thread < WORLD:
        libshmem_device.signal_wait_until(signals + thread, libshmem_device.NVSHMEM_CMP_EQ, 1)
    __syncthreads()


x = torch.randn(PER, N, dtype=torch.float16).cuda()
golden = torch.empty(M, N, dtype=torch.float16).cuda()
torch.distributed.all_gather_into_tensor(golden, x, group=group)
for kind in ("CpEngine", "NVSHMEM"):
    buffers = nvshmem_create_tensors((M, N), torch.float16, RANK, WORLD)
    signals = nvshmem_create_tensor((WORLD,), NVSHMEM_SIGNAL_DTYPE)
    signals.fill_(0)
    buffers[LOCAL].fill_(-1)
    buffers[LOCAL][LOCAL * PER : (LOCAL + 1) * PER].copy_(x)
    stream = torch.cuda.current_stream()
    nvshmem_barrier_all_on_stream(stream)
    if kind == "CpEngine":
        signals[LOCAL : LOCAL + 1].fill_(1)
        copy_engine(buffers, signals, stream)
    else:
        put[(WORLD,)](buffers[LOCAL], PER * N * 2, signals, WORLD, RANK)
        wait_all[(1,)](signals, WORLD)
    nvshmem_barrier_all_on_stream(stream)
    torch.testing.assert_close(buffers[LOCAL], golden, atol=0, rtol=0)
    dist_print(f"Rank {RANK} {kind} Signal:\n", signals.cpu().tolist(), allowed_ranks="all", need_sync=True)
    dist_print(f"Rank {RANK} Pass!✅", allowed_ranks="all", need_sync=True)
    nvshmem_free_tensor_sync(buffers[LOCAL])
finalize_distributed()
