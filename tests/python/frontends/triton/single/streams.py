"""A kernel that waits for words which other streams write: by stream operations, by copies, and by PyTorch's own."""

import sys

import torch
import triton.language as tl
import triton_dist
import triton_dist.language as dl
from cuda.bindings import driver
from triton_dist.utils import initialize_distributed, nvshmem_barrier_all_on_stream, nvshmem_create_tensors


@triton_dist.jit
def consumer(words, source, out, SIZE: tl.constexpr):
    pid = tl.program_id(0)
    token = dl.wait(words + pid, 1, "gpu", "acquire")
    i = pid * SIZE + tl.arange(0, SIZE)
    tl.store(out + i, tl.load(dl.consume_token(source, token) + i) + 1)


group = initialize_distributed()
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
SIZE = 64
buffers = nvshmem_create_tensors((world * SIZE,), torch.float32, rank, world)
words = nvshmem_create_tensors((world,), torch.int64, rank, world)
mine = buffers[rank]
mine.fill_(0)
words[rank].fill_(0)
own = mine[rank * SIZE : (rank + 1) * SIZE]
own.copy_(torch.arange(SIZE, device="cuda") + 100.0 * rank)
nvshmem_barrier_all_on_stream()
out = torch.empty(world * SIZE, device="cuda")
copies = torch.cuda.Stream()
copies.wait_stream(torch.cuda.current_stream())
consumer[(world,)](words[rank], mine, out, SIZE=SIZE)  # it is on the device first, and waits for what comes after it
with torch.cuda.stream(copies):
    for step in range(world):
        peer = (rank + step) % world
        part = slice(peer * SIZE, (peer + 1) * SIZE)
        if peer != rank:
            mine[part].copy_(buffers[peer][part])
        if step % 2 and "--fill" in sys.argv:
            words[rank][peer : peer + 1].fill_(1)
        else:
            address = words[rank].data_ptr() + 8 * peer
            (error,) = driver.cuStreamWriteValue64(copies.cuda_stream, address, 1, 0)
            assert error == driver.CUresult.CUDA_SUCCESS
doubled = out * 2  # of what the kernel writes when the copies have come
nvshmem_barrier_all_on_stream()
expected = torch.cat([torch.arange(SIZE) + 100.0 * r for r in range(world)]) + 1
assert torch.equal(out.cpu(), expected) and torch.equal(doubled.cpu(), 2 * expected)
if "--race" in sys.argv:
    with torch.cuda.stream(copies):
        consumer[(world,)](words[rank], mine, out, SIZE=SIZE)
    consumer[(world,)](words[rank], mine, out, SIZE=SIZE)
    torch.cuda.synchronize()
print("ok")
