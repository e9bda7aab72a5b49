"""Sends tokens to the ranks of their experts and back, perhaps as float8 with scales."""

import os

import torch
import triton
import triton.language as tl
import triton_dist
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import __syncthreads, tid
from triton_dist.utils import (
    finalize_distributed,
    initialize_distributed,
    nvshmem_barrier_all_on_stream,
    nvshmem_create_tensor,
)


@triton.autotune(configs=[triton.Config({"BLOCK": 128}, num_warps=8)], key=[])
@triton_dist.jit(do_not_specialize=["rank", "call"])
def exchange(
    send,
    send_offsets,
    buffer,
    scales,
    splits,
    signals,
    received,
    received_scales,
    received_splits,
    rank,
    call,
    WORLD: tl.constexpr,
    PER: tl.constexpr,
    MOST: tl.constexpr,
    HIDDEN: tl.constexpr,
    GROUPS: tl.constexpr,
    FP8: tl.constexpr,
    BLOCK: tl.constexpr,
):
    peer = tl.program_id(0)
    thread = tid(0)
    width: tl.constexpr = HIDDEN // BLOCK
    parity = call % 2
    experts = tl.arange(0, PER)
    counts = tl.load(splits + peer * PER + experts)
    first = tl.load(send_offsets + peer)
    rows = tl.sum(counts, 0)
    columns = tl.arange(0, BLOCK)
    for row in range(rows):
        for part in tl.static_range(width):
            x = tl.load(send + (first + row) * HIDDEN + part * BLOCK + columns).to(tl.float32)
            place = (peer * MOST + row) * HIDDEN + part * BLOCK + columns
            if FP8:
                scale = tl.max(tl.abs(x), 0) / 448.0
                scale = tl.where(scale == 0.0, 1.0, scale)
                tl.store(buffer + place, (x / scale).to(tl.float8e4nv))
                tl.store(scales + (peer * MOST + row) * width + part, scale)
            else:
                tl.store(buffer + place, x.to(buffer.dtype.element_ty))
    __syncthreads()
    slot = parity * WORLD + rank
    size: tl.constexpr = buffer.dtype.element_ty.primitive_bitwidth // 8
    libshmem_device.putmem_nbi_block(
        received + slot * MOST * HIDDEN, buffer + peer * MOST * HIDDEN, rows * HIDDEN * size, peer
    )
    libshmem_device.putmem_nbi_block(received_splits + slot * PER, splits + peer * PER, PER * 4, peer)
    if FP8:
        libshmem_device.putmem_signal_nbi_block(
            received_scales + slot * MOST * width,
            scales + peer * MOST * width,
            rows * width * 4,
            signals + 2 * WORLD + rank,
            call,
            libshmem_device.NVSHMEM_SIGNAL_SET,
            peer,
        )
    libshmem_device.fence()
    __syncthreads()
    if thread == 0:
        libshmem_device.signal_op(signals + rank, call, libshmem_device.NVSHMEM_SIGNAL_SET, peer)
        libshmem_device.signal_wait_until(signals + peer, libshmem_device.NVSHMEM_CMP_GE, call)
        if FP8:
            libshmem_device.signal_wait_until(signals + 2 * WORLD + peer, libshmem_device.NVSHMEM_CMP_GE, call)
    __syncthreads()


RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
FP8 = os.environ.get("FP8") == "1"
M, HIDDEN, GROUPS, TOPK = 8, 256, 4 * WORLD, 2
PER = GROUPS // WORLD
MOST = M * TOPK
initialize_distributed()
kind = torch.float8_e4m3fn if FP8 else torch.float32
received = nvshmem_create_tensor((2, WORLD, MOST, HIDDEN), kind)
received_scales = nvshmem_create_tensor((2, WORLD, MOST, HIDDEN // 128), torch.float32)
received_splits = nvshmem_create_tensor((2, WORLD, PER), torch.int32)
signals = nvshmem_create_tensor((3 * WORLD,), torch.int64)
buffers = [nvshmem_create_tensor((WORLD, MOST, HIDDEN), kind) for _ in range(2)]
scales = [nvshmem_create_tensor((WORLD, MOST, HIDDEN // 128), torch.float32) for _ in range(2)]
symmetric_splits = [nvshmem_create_tensor((GROUPS,), torch.int32) for _ in range(2)]
signals.fill_(0)
nvshmem_barrier_all_on_stream()
call = 0


def all_to_all(tokens, splits):
    global call
    call += 1
    mine = symmetric_splits[call % 2]
    mine.copy_(splits)
    starts = torch.zeros(WORLD, dtype=torch.int32).cuda()
    rows = splits.cpu().view(WORLD, PER).sum(1)
    starts.copy_(torch.cumsum(rows, 0).to(torch.int32) - rows.to(torch.int32))
    exchange[(WORLD,)](
        tokens,
        starts,
        buffers[call % 2],
        scales[call % 2],
        mine,
        signals,
        received,
        received_scales,
        received_splits,
        RANK,
        call,
        WORLD=WORLD,
        PER=PER,
        MOST=MOST,
        HIDDEN=HIDDEN,
        GROUPS=GROUPS,
        FP8=FP8,
    )
    parity = call % 2
    got, counts = [], []
    all_splits = received_splits[parity].cpu()
    for peer in range(WORLD):
        n = int(all_splits[peer].sum())
        counts.append(n)
        rows = received[parity, peer, :n].to(torch.float32)
        if FP8:
            rows = (
                rows.view(n, HIDDEN // 128, 128) * received_scales[parity, peer, :n].view(n, HIDDEN // 128, 1)
            ).view(n, HIDDEN)
        got.append(rows)
    return torch.cat(got), counts


for turn in range(3):
    tokens = torch.randn(M, HIDDEN).cuda()
    experts = torch.stack([torch.randperm(GROUPS)[:TOPK] for _ in range(M)]).view(-1)
    order = torch.argsort(experts, stable=True)
    splits = torch.tensor([experts.tolist().count(g) for g in range(GROUPS)], dtype=torch.int32).cuda()
    packed = tokens.cpu()[order // TOPK].cuda()
    got, counts = all_to_all(packed, splits)
    back_splits = torch.zeros(GROUPS, dtype=torch.int32)
    for peer in range(WORLD):
        back_splits[peer * PER] = counts[peer]
    back, _ = all_to_all(got, back_splits.cuda())
    want = packed
    if FP8:

        def round_trip(x):
            parts = x.cpu().view(-1, HIDDEN // 128, 128)
            scale = parts.abs().amax(-1, keepdim=True) / 448
            return ((parts / scale).to(torch.float8_e4m3fn).to(torch.float32) * scale).view(-1, HIDDEN)

        want = round_trip(round_trip(packed)).cuda()
    torch.testing.assert_close(back, want, atol=1e-5, rtol=1e-5)
    if RANK == 0:
        print(f"✅ Round-{turn} combine check passed!")
finalize_distributed()
