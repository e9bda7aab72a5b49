"""All-reduces by Triton's kernels on PyTorch's symmetric memory: blocks meet by words in the ranks' signal pads, which
instructions of PTX change.

--relaxed leaves out that a wait acquires, --early the barrier at the end: both are mistakes. --tensors gives kernels
tensors of the peers' buffers instead of a table of addresses, and --half lets half of the ranks do it.
"""

import argparse

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric
import triton
import triton.language as tl


@triton.jit
def threads():
    x, y, z, nx, ny = tl.inline_asm_elementwise(
        """
        mov.u32 $0, %tid.x;   mov.u32 $1, %tid.y;   mov.u32 $2, %tid.z;
        mov.u32 $3, %ntid.x;  mov.u32 $4, %ntid.y;
        """,
        "=r,=r,=r,=r,=r",
        [],
        dtype=(tl.uint32, tl.uint32, tl.uint32, tl.uint32, tl.uint32),
        is_pure=True,
        pack=1,
    )
    return z * ny * nx + y * nx + x


@triton.jit
def meet_in_block():
    tl.inline_asm_elementwise("bar.sync 0; mov.u32 $0, 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def tell(words, sem: tl.constexpr):
    tl.inline_asm_elementwise(
        f"""{{
            .reg .u32 %old; .reg .pred %p;
            again:
                atom.global.{sem}.sys.cas.b32 %old, [$1], 0, 1;
                setp.eq.u32 %p, %old, 0;
                @!%p bra again;
        }}""",
        "=r,l", [words], dtype=tl.int32, is_pure=False, pack=1,
    )  # fmt: skip


@triton.jit
def hear(words, sem: tl.constexpr):
    tl.inline_asm_elementwise(
        f"""{{
            .reg .u32 %old; .reg .pred %p;
            again:
                atom.global.{sem}.sys.cas.b32 %old, [$1], 1, 0;
                setp.eq.u32 %p, %old, 1;
                @!%p bra again;
        }}""",
        "=r,l", [words], dtype=tl.int32, is_pure=False, pack=1,
    )  # fmt: skip


@triton.jit
def meet(pads, rank: tl.constexpr, world: tl.constexpr, told: tl.constexpr, heard: tl.constexpr):
    block, peers = tl.program_id(0), tl.arange(0, world)
    pads = pads.to(tl.pointer_type(tl.uint64))
    theirs = tl.load(pads + peers).to(tl.pointer_type(tl.uint32)) + block * world + rank
    own = tl.load(pads + rank).to(tl.pointer_type(tl.uint32)) + block * world + peers
    if threads() < world:
        tell(theirs, told)
        hear(own, heard)


@triton.jit
def one_shot(
    out, buffers, pads, n,
    rank: tl.constexpr, world: tl.constexpr, B: tl.constexpr, FIRST: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip
    meet(pads, rank, world, "relaxed", FIRST)
    meet_in_block()
    buffers = buffers.to(tl.pointer_type(tl.uint64))
    for start in range(tl.program_id(0) * B, n, tl.num_programs(0) * B):
        i = start + tl.arange(0, B)
        total = tl.zeros([B], tl.float32)
        for peer in tl.static_range(world):
            x = tl.load(buffers + peer).to(tl.pointer_type(tl.bfloat16))
            total += tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
        tl.store(out + i, total.to(tl.bfloat16), mask=i < n)
    meet_in_block()
    if LAST:
        meet(pads, rank, world, "release", "relaxed")


@triton.jit
def of_tensors(out, tensors, pads, n, rank: tl.constexpr, world: tl.constexpr, B: tl.constexpr):
    meet(pads, rank, world, "relaxed", "acquire")
    meet_in_block()
    for start in range(tl.program_id(0) * B, n, tl.num_programs(0) * B):
        i = start + tl.arange(0, B)
        total = tl.zeros([B], tl.float32)
        for peer in tl.static_range(world):
            total += tl.load(tensors[peer] + i, mask=i < n, other=0.0).to(tl.float32)
        tl.store(out + i, total.to(tl.bfloat16), mask=i < n)
    meet_in_block()
    meet(pads, rank, world, "release", "relaxed")


@triton.jit
def two_shot(buffers, pads, n, rank: tl.constexpr, world: tl.constexpr, B: tl.constexpr):
    meet(pads, rank, world, "relaxed", "acquire")
    meet_in_block()
    buffers = buffers.to(tl.pointer_type(tl.uint64))
    for start in range((tl.program_id(0) * world + rank) * B, n, tl.num_programs(0) * world * B):
        i = start + tl.arange(0, B)
        total = tl.zeros([B], tl.float32)
        for peer in tl.static_range(world):
            x = tl.load(buffers + peer).to(tl.pointer_type(tl.bfloat16))
            total += tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
        for peer in tl.static_range(world):
            x = tl.load(buffers + peer).to(tl.pointer_type(tl.bfloat16))
            tl.store(x + i, total.to(tl.bfloat16), mask=i < n)
    meet_in_block()
    meet(pads, rank, world, "release", "acquire")


def main():
    parser = argparse.ArgumentParser()
    for flag in ("--relaxed", "--early", "--tensors", "--half"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args()
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    group = dist.group.WORLD
    if options.half:
        odd = [dist.new_group(range(first, dist.get_world_size(), 2)) for first in (0, 1)]
        group = odd[dist.get_rank() % 2]
    n = 5000
    t = symmetric.empty(n, dtype=torch.bfloat16, device="cuda")
    handle = symmetric.rendezvous(t, group)
    rank, world, right = handle.rank, handle.world_size, True
    for step in range(3):
        ranks = dist.get_process_group_ranks(group)
        want = sum(torch.arange(n).remainder(7) * (r + 1 + step) for r in ranks).to(torch.bfloat16)
        t.copy_((torch.arange(n, device="cuda").remainder(7) * (dist.get_rank() + 1 + step)).to(torch.bfloat16))
        out = torch.empty_like(t)
        common = {"rank": rank, "world": world, "B": 512, "num_warps": 4}
        if options.tensors:
            tensors = tuple(handle.get_buffer(peer, (n,), torch.bfloat16) for peer in range(world))
            of_tensors[(3,)](out, tensors, handle.signal_pad_ptrs_dev, n, **common)
        else:
            how = {"FIRST": "relaxed" if options.relaxed else "acquire", "LAST": not options.early}
            one_shot[(3,)](out, handle.buffer_ptrs_dev, handle.signal_pad_ptrs_dev, n, **common, **how)
        right = right and torch.equal(out.cpu(), want)
        if options.early:
            continue
        two_shot[(2,)](handle.buffer_ptrs_dev, handle.signal_pad_ptrs_dev, n, **common)
        right = right and torch.equal(t.cpu(), want)
    print("ok" if right else "wrong")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
