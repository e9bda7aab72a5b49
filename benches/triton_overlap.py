"""Times products of which parts are communicated while others are computed, beside PyTorch's product and collective.

    torchemu run --nnodes 2 --nproc-per-node 8 --topology h800_2x8 benches/triton_overlap.py 256 1024 4096

For each number of rows M it prints the microseconds of a call, on rank 0: of AG+GEMM, M×K elements in parts on all
ranks times K×N, and of GEMM+RS, M×N times N×K, of which each rank gets its part of the sum. Both are compared with the
unfused form. With --csv FILE rank 0 writes the table there.
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
import triton
import triton.language as tl
import triton_dist
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem
from triton_dist.language.extra.language_extra import __syncthreads, atomic_add, tid
from triton_dist.profiler_utils import perf_func
from triton_dist.utils import (
    finalize_distributed,
    initialize_distributed,
    nvshmem_barrier_all_on_stream,
    nvshmem_create_tensor,
)

K, N = 512, 512
CHUNKS = 8
"""Programs that add up a rank's part."""

LINE = "{:>6} {:>12} {:>12} {:>12} {:>12}"
HEADING = ("M", "AG+GEMM", "unfused", "GEMM+RS", "unfused")


@triton_dist.jit
def gather(x, whole, words, nbytes, call, LOCAL: tl.constexpr):
    """Puts the rank's part to its like on the other nodes, and what has come from there, or is its own, to its node."""
    rank, pid = dl.rank(), tl.program_id(0)
    node, local = rank // LOCAL, rank % LOCAL
    target_node, target = pid // LOCAL, pid % LOCAL
    if target == local:
        if target_node == node:
            shmem.putmem_signal_block(
                whole + rank * nbytes // 2, x, nbytes, words + rank, call, shmem.NVSHMEM_SIGNAL_SET, rank
            )
        else:
            shmem.putmem_signal_nbi_block(
                whole + rank * nbytes // 2, x, nbytes, words + rank, call, shmem.NVSHMEM_SIGNAL_SET, pid
            )
    else:
        owner = target_node * LOCAL + local
        part = whole + owner * nbytes // 2
        if target_node == node:
            part = x
        else:
            shmem.signal_wait_until(words + owner, shmem.NVSHMEM_CMP_EQ, call)
            __syncthreads()
        shmem.putmem_signal_block(
            whole + owner * nbytes // 2,
            part,
            nbytes,
            words + owner,
            call,
            shmem.NVSHMEM_SIGNAL_SET,
            node * LOCAL + target,
        )


@triton_dist.jit
def consume(a, b, c, words, M, N, K, call, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The product: a tile begins when the part of a that it needs is there; the rank's own part is first."""
    rank, world = dl.rank(), dl.num_ranks()
    tiles_n = tl.cdiv(N, BN)
    per = M // world // BM
    pid = tl.program_id(0)
    order = pid // tiles_n
    owner = (rank + order // per) % world
    row = owner * (M // world) + (order % per) * BM
    token = dl.wait(words + owner, 1, "gpu", "acquire", waitValue=call)
    a = dl.consume_token(a, token)
    rows, columns, inner = row + tl.arange(0, BM), (pid % tiles_n) * BN + tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    p = a + rows[:, None] * K + inner[None, :]
    q = b + inner[:, None] * N + columns[None, :]
    for _ in range(0, K, BK):
        total = tl.dot(tl.load(p), tl.load(q), total)
        p += BK
        q += BK * N
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty))


@triton_dist.jit
def produce(a, b, c, counters, done, M, N, K, call, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The product: who ends a rank's last tile sets its word. Those of the other nodes are first."""
    rank, world = dl.rank(), dl.num_ranks()
    tiles_n = tl.cdiv(N, BN)
    per = M // world // BM
    pid = tl.program_id(0)
    order = pid // tiles_n
    owner = (rank + world // 2 + order // per) % world
    row = owner * (M // world) + (order % per) * BM
    rows, columns, inner = row + tl.arange(0, BM), (pid % tiles_n) * BN + tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    p = a + rows[:, None] * K + inner[None, :]
    q = b + inner[:, None] * N + columns[None, :]
    for _ in range(0, K, BK):
        total = tl.dot(tl.load(p), tl.load(q), total)
        p += BK
        q += BK * N
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty))
    __syncthreads()
    thread = tid(0)
    if thread == 0:
        if atomic_add(counters + owner, 1, "gpu", "acq_rel") == per * tiles_n * call - 1:
            dl.notify(done + owner, rank, signal=call, sig_op="set", comm_scope="gpu")


@triton_dist.jit
def scatter(c, slots, done, arrived, nbytes, call, LOCAL: tl.constexpr):
    """Puts the parts of all ranks, when they are done, to those of the node that add them up for their nodes' likes."""
    rank, pid = dl.rank(), tl.program_id(0)
    dl.wait(done + pid, 1, "gpu", "acquire", waitValue=call)
    __syncthreads()
    node, local = rank // LOCAL, rank % LOCAL
    shmem.putmem_signal_block(
        slots + (pid // LOCAL * LOCAL + local) * nbytes // 2,
        c + pid * nbytes // 2,
        nbytes,
        arrived + pid // LOCAL,
        1,
        shmem.NVSHMEM_SIGNAL_ADD,
        node * LOCAL + pid % LOCAL,
    )


@triton_dist.jit
def add_up(
    slots, sums, far, out, arrived, come, n, call, LOCAL: tl.constexpr, NODES: tl.constexpr, BLOCK: tl.constexpr
):
    """Adds up a chunk of what the node has for each other node, and puts it there; then the rank's own, with theirs."""
    rank, chunk = dl.rank(), tl.program_id(0)
    node, local = rank // LOCAL, rank % LOCAL
    i = chunk * BLOCK + tl.arange(0, BLOCK)
    for step in range(1, NODES + 1):
        other = (node + step) % NODES
        shmem.signal_wait_until(arrived + other, shmem.NVSHMEM_CMP_GE, LOCAL * call)
        __syncthreads()
        total = tl.zeros((BLOCK,), tl.float32)
        for l in range(LOCAL):  # noqa: E741 (the rank in its node)
            total += tl.load(slots + (other * LOCAL + l) * n + i, mask=i < n, other=0.0).to(tl.float32)
        if other != node:
            tl.store(sums + other * n + i, total.to(sums.dtype.element_ty), mask=i < n)
            __syncthreads()
            shmem.putmem_signal_nbi_block(
                far + node * n + chunk * BLOCK,
                sums + other * n + chunk * BLOCK,
                tl.minimum(BLOCK, n - chunk * BLOCK) * 2,
                come + node * tl.num_programs(0) + chunk,
                call,
                shmem.NVSHMEM_SIGNAL_SET,
                other * LOCAL + local,
            )
        else:
            for step_far in range(1, NODES):
                source = (node + step_far) % NODES
                shmem.signal_wait_until(come + source * tl.num_programs(0) + chunk, shmem.NVSHMEM_CMP_GE, call)
                __syncthreads()
                total += tl.load(far + source * n + i, mask=i < n, other=0.0).to(tl.float32)
            tl.store(out + i, total.to(out.dtype.element_ty), mask=i < n)


class Gathered:
    """AG+GEMM of M rows. What ranks put to each other alternates between two places."""

    def __init__(self, m: int) -> None:
        self.m, self.part = m, m // WORLD
        self.whole = [nvshmem_create_tensor((m, K), torch.float16) for _ in range(2)]
        self.words = [nvshmem_create_tensor((WORLD,), torch.int64) for _ in range(2)]
        for words in self.words:
            words.fill_(0)
        self.x = nvshmem_create_tensor((self.part, K), torch.float16)
        self.x.copy_((torch.randn(self.part, K) / 8).to(torch.float16).cuda())
        self.w = (torch.randn(K, N) / 8).to(torch.float16).cuda()
        self.side, self.call = torch.cuda.Stream(), 0
        nvshmem_barrier_all_on_stream()

    def fused(self) -> torch.Tensor:
        """The overlapped form."""
        self.call += 1
        whole, words = self.whole[self.call % 2], self.words[self.call % 2]
        out = torch.empty(self.m, N, dtype=torch.float16, device="cuda")
        stream = torch.cuda.current_stream()
        self.side.wait_stream(stream)
        with torch.cuda.stream(self.side):
            gather[(WORLD,)](self.x, whole, words, self.part * K * 2, self.call, LOCAL)
        bm = min(128, self.part)
        grid = (self.m // bm * (N // 128),)
        consume[grid](whole, self.w, out, words, self.m, N, K, self.call, bm, 128, 256, num_warps=8)
        stream.wait_stream(self.side)
        return out

    def unfused(self) -> torch.Tensor:
        """PyTorch's collective, and its product."""
        whole = torch.empty(self.m, K, dtype=torch.float16, device="cuda")
        dist.all_gather_into_tensor(whole, self.x)
        return whole @ self.w


class Reduced:
    """GEMM+RS of M rows."""

    def __init__(self, m: int) -> None:
        self.m, self.n = m, m // WORLD * K
        self.a = (torch.randn(m, N) / 8).to(torch.float16).cuda()
        self.b = (torch.randn(N, K) / 8).to(torch.float16).cuda()
        self.c = nvshmem_create_tensor((m, K), torch.float16)
        self.slots, self.sums, self.far, self.arrived, self.come = [
            [nvshmem_create_tensor(shape, kind) for _ in range(2)]
            for shape, kind in (
                ((WORLD, self.n), torch.float16),
                ((NODES, self.n), torch.float16),
                ((NODES, self.n), torch.float16),
                ((NODES,), torch.int64),
                ((NODES * CHUNKS,), torch.int64),
            )
        ]
        self.done = nvshmem_create_tensor((WORLD,), torch.int64)
        for words in (*self.arrived, *self.come, self.done):
            words.fill_(0)
        self.counters = torch.zeros(WORLD, dtype=torch.int32).cuda()
        self.side, self.call = torch.cuda.Stream(), 0
        nvshmem_barrier_all_on_stream()

    def fused(self) -> torch.Tensor:
        """The overlapped form."""
        self.call += 1
        slots, sums, far, arrived, come = (
            pair[self.call % 2] for pair in (self.slots, self.sums, self.far, self.arrived, self.come)
        )
        turn = (self.call + 1) // 2
        out = torch.empty(self.m // WORLD, K, dtype=torch.float16, device="cuda")
        stream = torch.cuda.current_stream()
        self.side.wait_stream(stream)
        part = self.m // WORLD
        bm = min(128, part)
        grid = (self.m // bm * (K // 128),)
        produce[grid](
            self.a, self.b, self.c, self.counters, self.done, self.m, K, N, self.call, bm, 128, 256, num_warps=8
        )
        with torch.cuda.stream(self.side):
            scatter[(WORLD,)](self.c, slots, self.done, arrived, self.n * 2, self.call, LOCAL)
            block = triton.next_power_of_2(triton.cdiv(self.n, CHUNKS))
            add_up[(CHUNKS,)](slots, sums, far, out, arrived, come, self.n, turn, LOCAL, NODES, block, num_warps=32)
        stream.wait_stream(self.side)
        return out

    def unfused(self) -> torch.Tensor:
        """PyTorch's product, and its collective."""
        out = torch.empty(self.m // WORLD, K, dtype=torch.float16, device="cuda")
        dist.reduce_scatter_tensor(out, self.a @ self.b)
        return out


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int, nargs="+", help="M: a power of 2, and 16 times the ranks at least")
    parser.add_argument("--csv", help="a file for the table")
    args = parser.parse_args()
    lines = [HEADING]
    for m in args.rows:
        times = []
        for form in (Gathered(m), Reduced(m)):
            fused, fused_ms = perf_func(form.fused, iters=1, warmup_iters=1)
            plain, plain_ms = perf_func(form.unfused, iters=1, warmup_iters=1)
            torch.testing.assert_close(fused, plain, atol=2e-2, rtol=2e-2)
            times += [f"{1000 * fused_ms:.1f}", f"{1000 * plain_ms:.1f}"]
        lines.append((str(m), *times))
    if int(os.environ["RANK"]) == 0:
        print("\n".join(LINE.format(*line) for line in lines))
        if args.csv:
            with open(args.csv, "w") as file:
                file.writelines(",".join(line) + "\n" for line in lines)


if __name__ == "__main__":
    WORLD, LOCAL = int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_WORLD_SIZE"])
    NODES = WORLD // LOCAL
    initialize_distributed()
    main()
    finalize_distributed()
