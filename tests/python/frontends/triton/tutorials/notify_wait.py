"""Producers store items into a peer's queue and notify it; consumers wait for them."""

import os

import torch
import triton.language as tl
import triton_dist
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import __syncthreads
from triton_dist.utils import (
    dist_print,
    finalize_distributed,
    initialize_distributed,
    nvshmem_barrier_all_on_stream,
    nvshmem_create_tensor,
    nvshmem_free_tensor_sync,
)

ITEMS, SIZE = int(os.environ.get("ITEMS", "100")), 128
ROUNDS = int(os.environ.get("ROUNDS", "3"))
SLOTS, PRODUCERS, CONSUMERS = 32, 16, 4


@triton_dist.jit
def exchange(
    source,
    queue,
    words,
    output,
    n,
    SIZE: tl.constexpr,
    SLOTS: tl.constexpr,
    PRODUCERS: tl.constexpr,
    CONSUMERS: tl.constexpr,
):
    pid = tl.program_id(0)
    rank = dl.rank()
    right = (rank + 1) % dl.num_ranks()
    offsets = tl.arange(0, SIZE)
    if pid < PRODUCERS:
        remote_queue = dl.symm_at(queue, right)
        remote_words = dl.symm_at(words, right)
        for i in range(pid, n, PRODUCERS):
            slot = i % SLOTS
            phase = i // SLOTS
            token = dl.wait(remote_words + slot, 1, "sys", "acquire", waitValue=2 * phase)
            place = dl.consume_token(remote_queue, token)
            value = tl.load(source + i * SIZE + offsets)
            tl.store(place + slot * SIZE + offsets, value)
            __syncthreads()
            libshmem_device.fence()
            dl.notify(words + slot, right, signal=2 * phase + 1, sig_op="set", comm_scope="intra_node")
    else:
        for i in range(pid - PRODUCERS, n, CONSUMERS):
            slot = i % SLOTS
            phase = i // SLOTS
            token = dl.wait(words + slot, 1, "gpu", "acquire", waitValue=2 * phase + 1)
            place = dl.consume_token(queue, token)
            value = tl.load(place + slot * SIZE + offsets)
            tl.store(output + i * SIZE + offsets, value)
            __syncthreads()
            dl.notify(words + slot, rank, signal=2 * phase + 2, sig_op="set", comm_scope="gpu")


RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
group = initialize_distributed()
queue = nvshmem_create_tensor((SLOTS, SIZE), torch.float32)
words = nvshmem_create_tensor((SLOTS,), torch.int64)
for _ in range(ROUNDS):
    words.fill_(0)
    nvshmem_barrier_all_on_stream()
    source = torch.randn(ITEMS, SIZE).cuda()
    output = torch.zeros(ITEMS, SIZE).cuda()
    exchange[(PRODUCERS + CONSUMERS,)](
        source, queue, words, output, ITEMS, SIZE, SLOTS, PRODUCERS, CONSUMERS, num_warps=4
    )
    gathered = [torch.empty_like(source) for _ in range(WORLD)]
    torch.distributed.all_gather(gathered, source)
    golden = gathered[(RANK - 1) % WORLD]
    nvshmem_barrier_all_on_stream()
    torch.testing.assert_close(output, golden, atol=0, rtol=0)
dist_print(f"rank{RANK} Passed✅!", allowed_ranks="all", need_sync=True)
nvshmem_free_tensor_sync(queue)
finalize_distributed()
