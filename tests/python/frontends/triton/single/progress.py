"""A kernel that doubles what a side stream copies from the peers' symmetric memory, block by block: the stream sets a
word for each, for which the kernel waits in PTX. --relaxed leaves out that the wait acquires, which is a mistake.
"""

import argparse

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric
import triton
import triton.language as tl


@triton.jit
def wait_for(word, expected: tl.constexpr, sem: tl.constexpr):
    tl.inline_asm_elementwise(
        f"""{{
            .reg .u32 %v; .reg .pred %p;
            look:
                ld.global.{sem}.sys.u32 %v, [$1];
                setp.eq.u32 %p, %v, {expected};
                @!%p bra look;
            bar.sync 0;
        }}""",
        "=r,l",
        [word],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


@triton.jit
def double(out, x, words, n, world: tl.constexpr, B: tl.constexpr, SEM: tl.constexpr):
    for peer in tl.static_range(world):
        wait_for(words + peer, 1, SEM)
        for start in range(tl.program_id(0) * B, n, tl.num_programs(0) * B):
            i = start + tl.arange(0, B)
            tl.store(out + peer * n + i, tl.load(x + peer * n + i, mask=i < n) * 2, mask=i < n)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--relaxed", action="store_true")
    sem = "relaxed" if parser.parse_args().relaxed else "acquire"
    dist.init_process_group("nccl")
    rank, world, n = dist.get_rank(), dist.get_world_size(), 1000
    torch.cuda.set_device(rank)
    t = symmetric.empty(n, device="cuda")
    handle = symmetric.rendezvous(t, dist.group.WORLD)
    t.copy_(torch.arange(n, device="cuda") + rank)
    handle.barrier()
    whole = torch.zeros(world, n, device="cuda")
    out, words = torch.zeros_like(whole), torch.zeros(world, dtype=torch.uint32, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    double[(2,)](out, whole, words, n, world, B=256, SEM=sem, num_warps=4)
    with torch.cuda.stream(side):
        for step in range(world):
            peer = (rank + step) % world
            whole[peer].copy_(handle.get_buffer(peer, (n,), torch.float32))
            handle.stream_write_value32(words, peer, 1)
    torch.cuda.current_stream().wait_stream(side)
    handle.barrier()
    want = 2.0 * (torch.arange(n) + torch.arange(world)[:, None])
    print("ok" if torch.equal(out.cpu(), want) and words.tolist() == [1] * world else "wrong")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
