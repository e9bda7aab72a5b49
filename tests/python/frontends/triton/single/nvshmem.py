"""Every function for kernels of torch.distributed._symmetric_memory._nvshmem_triton, against lists of Python's.

--int gives kernels addresses as numbers, and --wrong NAME calls a function as it is not to be called.
"""

import argparse

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric
import torch.distributed._symmetric_memory._nvshmem_triton as nvshmem
import triton
import triton.language as tl
from torch.distributed._symmetric_memory._nvshmem_triton import requires_nvshmem
from triton.language import core

SET, ADD, EQ, NE, GT, LE, LT, GE = 9, 10, 0, 1, 2, 3, 4, 5


@requires_nvshmem
@triton.jit
def numbers(out):
    tl.store(out, nvshmem.my_pe())
    tl.store(out + 1, nvshmem.n_pes())


@requires_nvshmem
@triton.jit
def put(dest, source, n, pe):
    nvshmem.put(dest, source, n, pe)
    nvshmem.quiet()


@requires_nvshmem
@triton.jit
def get(dest, source, n, pe):
    nvshmem.get(dest, source, n, pe)


@requires_nvshmem
@triton.jit
def get_later(dest, source, n, pe):
    nvshmem.get_nbi(dest, source, n, pe)
    nvshmem.quiet()


@requires_nvshmem
@triton.jit
def put_signal(dest, source, nbytes, word, value, op, pe):
    nvshmem.putmem_signal_block(dest, source, nbytes, word, value, op, pe)


@requires_nvshmem
@triton.jit
def signal(word, value, op, pe):
    nvshmem.signal_op(word, value, op, pe)
    nvshmem.quiet()


@requires_nvshmem
@triton.jit
def wait_for(word, comparison, value):
    nvshmem.signal_wait_until(word, comparison, value)


@requires_nvshmem
@triton.jit
def wait_for_word(word, comparison, value):
    nvshmem.wait_until(word, comparison, value)


@requires_nvshmem
@triton.jit
def put_then_word(dest, source, n, word, one, pe):
    nvshmem.put(dest, source, n, pe)
    nvshmem.fence()
    nvshmem.put(word, one, 1, pe)


@requires_nvshmem
@triton.jit
def exchange(dest, source, n):
    nvshmem.alltoall(0, dest, source, n)


@requires_nvshmem
@triton.jit
def broadcast(dest, source, n, root):
    nvshmem.broadcast(0, dest, source, n, root)


@requires_nvshmem
@triton.jit
def reduce(dest, source, n, operation: tl.constexpr):
    nvshmem.reduce(0, dest, source, n, operation)


@requires_nvshmem
@triton.jit
def shift(inbox, outbox, n, B: tl.constexpr):
    right = (nvshmem.my_pe() + 1) % nvshmem.n_pes()
    i = tl.arange(0, B)
    nvshmem.sync_all()
    nvshmem.put(inbox, outbox, n, right)
    nvshmem.barrier_all()
    tl.store(outbox + i, tl.load(inbox + i, mask=i < n) * 2, mask=i < n)


@triton.jit
def bare(out):
    tl.store(out, nvshmem.n_pes())


@core.extern
def unknown(_semantic=None):
    return core.extern_elementwise("", "", [], {(): ("__nv_mystery", core.dtype("int32"))}, is_pure=True)


@triton.jit
def mysterious(out):
    tl.store(out, unknown())


def met(n, fill, dtype=torch.float32):
    tensor = symmetric.empty(n, dtype=dtype, device="cuda").fill_(fill)
    symmetric.rendezvous(tensor, dist.group.WORLD)
    return tensor


def expect(what, found, wanted):
    found = found.tolist()
    assert found == wanted, f"{what} on rank {dist.get_rank()}: {found}, not {wanted}"


def one_sided(rank, world, given):
    right, left = (rank + 1) % world, (rank - 1) % world
    for n in (0, 1, 5):
        source, dest = met(5, rank), met(5, -1)
        dist.barrier()
        put[(1,)](given(dest), given(source), n, right) if not isinstance(given(dest), int) else None
        dist.barrier()
        if not isinstance(given(dest), int):
            expect("put", dest, [float(left)] * n + [-1.0] * (5 - n))
        for name, kernel in (("get", get), ("get_nbi", get_later)):
            dest.fill_(-2)
            kernel[(1,)](dest, source, n, right)
            expect(name, dest, [float(right)] * n + [-2.0] * (5 - n))
        dist.barrier()


def signals(rank, world, given):
    right, left = (rank + 1) % world, (rank - 1) % world
    source, dest, word = met(3, rank), met(3, -1), met(2, 0, torch.int64)
    dist.barrier()
    put_signal[(1,)](given(dest), given(source), 12, given(word), 4, SET, right)
    wait_for[(1,)](given(word), EQ, 4)
    expect("putmem_signal", dest, [float(left)] * 3)
    dist.barrier()
    put_signal[(1,)](given(dest), given(source), 12, given(word), 3, ADD, left)
    wait_for[(1,)](given(word), GE, 7)
    expect("putmem_signal, which adds", dest, [float(right)] * 3)
    expect("words", word, [7, 0])
    dist.barrier()
    signal[(1,)](given(word), 9, SET, right)
    wait_for[(1,)](given(word), GT, 7)
    dist.barrier()
    for comparison, value in ((NE, 8), (LE, 9), (LT, 10)):
        wait_for[(1,)](given(word), comparison, value)
    for operation in (ADD, 0, 5):  # seen on two H100s: each of 128 threads adds, and all numbers but 9 add
        added = met(1, 100, torch.int64)
        dist.barrier()
        signal[(1,)](given(added), 3, operation, right)
        dist.barrier()
        expect("signal_op", added, [100 + 3 * 128])
    flag, one = met(1, 0, torch.int32), met(1, 6, torch.int32)
    dist.barrier()
    if not isinstance(given(dest), int):
        source.fill_(100 + rank)
        put_then_word[(1,)](dest, source, 3, flag, one, right)
        wait_for_word[(1,)](flag, EQ, 6)
        expect("put before a fence", dest, [100.0 + left] * 3)
    dist.barrier()


def collectives(rank, world):
    for n in (1, 3):
        source, dest = met(n * world, 0), met(n * world, -1)
        source.copy_(torch.arange(n * world) + 100.0 * rank)
        dist.barrier()
        exchange[(1,)](dest, source, n, launch_cooperative_grid=True)
        expect("alltoall", dest, [100.0 * peer + rank * n + i for peer in range(world) for i in range(n)])
        dist.barrier()
        broadcast[(1,)](dest, source, n, world - 1, launch_cooperative_grid=True)
        expect("broadcast", dest[:n], [100.0 * (world - 1) + i for i in range(n)])
        dist.barrier()
        shift[(1,)](dest, source, n, B=4, launch_cooperative_grid=True)
        expect("put before barrier_all", source[:n], [200.0 * ((rank - 1) % world) + 2 * i for i in range(n)])
        dist.barrier()


def reductions(rank, world):
    rows = [[(3 * r + 5 * i) % 7 - 3 for i in range(5)] for r in range(world)]
    for dtype in (torch.int8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64):
        source, dest = met(5, 0, dtype), met(5, 0, dtype)
        source.copy_(torch.tensor(rows[rank]))
        dist.barrier()
        for operation, combine in (("sum", sum), ("max", max), ("min", min), ("prod", product)):
            reduce[(1,)](dest, source, 5, operation, launch_cooperative_grid=True)
            expect(
                f"reduce by {operation}", dest.double(), [float(combine(column)) for column in zip(*rows, strict=True)]
            )
        reduce[(1,)](source, source, 5, "sum", launch_cooperative_grid=True)
        expect("reduce in place", source.double(), [float(sum(column)) for column in zip(*rows, strict=True)])


def product(values):
    result = 1
    for value in values:
        result *= value
    return result


def wrong(name, rank, world):
    tensor, plain = met(4, 0), torch.zeros(4, device="cuda")
    dist.barrier()
    if name == "peer":
        put[(1,)](tensor, tensor, 4, world)
    elif name == "beyond":
        put[(1,)](tensor, tensor, 400, (rank + 1) % world)
    elif name == "plain":
        put[(1,)](plain, tensor, 4, (rank + 1) % world)
    elif name == "library":
        bare[(1,)](plain)
    elif name == "symbol":
        mysterious[(1,)](plain)
    elif name == "silent":
        wait_for[(1,)](met(1, 0, torch.int64), EQ, 1 + rank)
    torch.cuda.synchronize()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--int", action="store_true")
    parser.add_argument("--wrong")
    options = parser.parse_args()
    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(rank % torch.cuda.device_count())
    assert symmetric.is_nvshmem_available()
    if options.wrong == "backend":
        numbers[(1,)](torch.zeros(2, dtype=torch.int32, device="cuda"))
    symmetric.set_backend("NVSHMEM")
    if options.wrong:
        wrong(options.wrong, rank, world)
        return
    found = torch.zeros(2, dtype=torch.int32, device="cuda")
    numbers[(1,)](found)
    expect("my_pe, n_pes", found, [rank, world])
    given = (lambda tensor: tensor.data_ptr()) if options.int else (lambda tensor: tensor)
    one_sided(rank, world, given)
    signals(rank, world, given)
    collectives(rank, world)
    reductions(rank, world)
    assert nvshmem.NvshmemKernelRegistry.has("put")
    print("ok")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
