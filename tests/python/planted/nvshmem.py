"""Programs on symmetric memory in the styles of users, each with an oracle of its own, right and with planted defects.

Each ends with check(found, wanted) of lists. Defects whose name begins with "silent" end in a deadlock, which names the
lines that wait, the others in a report of the checker.
"""

from __future__ import annotations

BEGIN = """
import torch, torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import torch.distributed._symmetric_memory._nvshmem_triton as nvshmem
import triton, triton.language as tl
from torch.distributed._symmetric_memory._nvshmem_triton import requires_nvshmem
dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
right, left = (rank + 1) % world, (rank - 1) % world
torch.cuda.set_device(rank % torch.cuda.device_count())
symm_mem.set_backend("NVSHMEM")
group, name, ops = dist.group.WORLD, dist.group.WORLD.group_name, torch.ops.symm_mem
def met(*shape, dtype=torch.float32, fill=-1):
    t = symm_mem.empty(*shape, dtype=dtype, device="cuda").fill_(fill)
    return t, symm_mem.rendezvous(t, group)
def value(r, *shape, seed=0):
    return torch.randint(-9, 9, shape, generator=torch.Generator().manual_seed(97 * seed + r)).float()
def check(found, wanted):
    found, wanted = found.cpu().tolist(), wanted.tolist()  #! *
    assert found == wanted, f"rank {rank}: {found}, not {wanted}"
"""

PROGRAMS: dict[str, str] = {
    "a ring of puts with signals": """
tensor, handle = met(33, fill=0)
pad, own = handle.get_signal_pad(rank), value(rank, 33).cuda()
dist.barrier()
if rank == 0:
    tensor.copy_(own)
if rank > 0:
    ops.nvshmem_wait_for_signal(pad, 1, left)  #- no wait  #! silent rank
    tensor.add_(own)  #! no wait
if rank < world - 1:
    ops.nvshmem_put_with_signal(tensor, pad, 1, right)  #- silent rank  #! no wait
check(tensor, sum(value(r, 33) for r in range(rank + 1)))
""",
    "gets of a neighbour's parameters": """
weights, _ = met(17, fill=0)
weights.copy_(value(rank, 17).cuda())  #! no barrier
dist.barrier()  #- no barrier
ops.nvshmem_get(weights[:8], right) if rank % 2 == 0 else None  #! no barrier
torch.cuda.synchronize()
dist.barrier()
mine = value(rank, 17)
if rank % 2 == 0:
    mine[:8] = value(right, 17)[:8]
check(weights, mine)
""",
    "experts, dispatched and combined": """
experts, most = 2, 64
n = world * experts
splits = [[(3 * r + 5 * i) % 4 for i in range(n)] for r in range(world)]
tokens, _ = met(most, 4)
routed, _ = met(world * most, 4)
home, _ = met(most, 4)
counts, _ = met(n, dtype=torch.int64)
where, _ = met(2, n, dtype=torch.int64)
back, _ = met(2, n, dtype=torch.int64)
for step in range(2):
    rows = value(rank, most, 4, seed=step)
    counts.copy_(torch.tensor(splits[rank]))
    tokens.copy_(rows)
    ops.all_to_all_vdev_2d(tokens, routed, counts, where, name, major_align=8)  #! cleared early
    tokens.zero_()  #+ cleared early  #! cleared early
    for e in range(experts):
        lo = where[1, e * world].item()
        hi = where[1, (e + 1) * world - 1].item() + where[0, (e + 1) * world - 1].item()
        routed[lo:hi].mul_(rank * experts + e + 1)
    if step == 1 and rank == 2: continue  #+ silent rank
    ops.all_to_all_vdev_2d_offset(routed, home, where, back, name)  #! used again early, silent rank
    routed.mul_(0)  #+ used again early  #! used again early
    scale = torch.cat([torch.full((k,), i + 1.0) for i, k in enumerate(splits[rank])])
    check(home[: len(scale)], rows[: len(scale)] * scale[:, None])
    dist.barrier()
""",
    "rows of uneven splits": """
most = 40
given, _ = met(most, 3)
out, _ = met(world * most, 3)
splits, _ = met(world, dtype=torch.int64)
table, _ = met(2, world, dtype=torch.int64)
sizes = [[(r * i) % 3 * 4 for i in range(world)] for r in range(world)]
splits.copy_(torch.tensor(sizes[rank]))
given.copy_(value(rank, most, 3))
dist.barrier()
if rank == 1: ops.all_to_all_vdev(given, out, splits, table, name)  #+ silent ranks  #! silent ranks
ops.all_to_all_vdev(given, out, splits, table, name)  #! refilled early, silent ranks
given.fill_(0)  #+ refilled early  #! refilled early
theirs = [sizes[r][rank] for r in range(world)]
wanted = torch.empty(sum(theirs), 3, device="cuda")
dist.all_to_all_single(wanted, value(rank, most, 3)[: sum(sizes[rank])].cuda(), theirs, sizes[rank])
check(out[: sum(theirs)], wanted)
""",
    "broadcast of weights, then of a step": """
weights, _ = met(21, fill=0)
for step in range(3):
    root = step % world
    if rank == root:
        weights.copy_(value(root, 21, seed=step))  #! no barrier
    ops.nvshmem_broadcast(weights, root, name)  #! no barrier
    check(weights, value(root, 21, seed=step))  #! no barrier
    dist.barrier()  #- no barrier
""",
    "a transpose by all-to-all": """
rows, _ = met(world * 5)
columns, _ = met(world * 5)
for step in range(2):
    rows.copy_(value(rank, world * 5, seed=step))
    dist.barrier()  #- no barrier
    ops.nvshmem_all_to_all(rows, columns, name)  #! no barrier
    wanted = torch.cat([value(r, world * 5, seed=step).chunk(world)[rank] for r in range(world)])
    check(columns * 1, wanted)  #! no barrier
""",
    "a ring in a kernel": """
@requires_nvshmem
@triton.jit
def turn(inbox, outbox, words, n, step, B: tl.constexpr):
    i = tl.arange(0, B)
    peer = (nvshmem.my_pe() + 1) % nvshmem.n_pes()
    nvshmem.put(inbox, outbox, n, peer)  #! no fence, no wait
    nvshmem.fence()  #- no fence
    nvshmem.signal_op(words, step, 9, peer)  #- silent ranks
    nvshmem.signal_wait_until(words, 0, step)  #- no wait  #! silent ranks
    tl.store(outbox + i, tl.load(inbox + i, mask=i < n), mask=i < n)  #! no fence, no wait

inbox, _ = met(50)
outbox, _ = met(50)
words, _ = met(1, dtype=torch.int64, fill=0)
outbox.copy_(value(rank, 50))
dist.barrier()
for step in range(1, world + 1):
    turn[(1,)](inbox, outbox, words, 50, step, B=64)
    check(outbox, value((rank - step) % world, 50))
    dist.barrier()
""",
    "puts with signals in a kernel": """
@requires_nvshmem
@triton.jit
def gather(slots, x, words, out, n, W: tl.constexpr, B: tl.constexpr):
    me = nvshmem.my_pe()
    for peer in range(W):
        nvshmem.putmem_signal_block(slots + me * n, x, n * 4, words + me, 1, 9, peer)  #! other word
    i = tl.arange(0, B)
    for r in range(W):
        nvshmem.signal_wait_until(words + r, 0, 1)  #- other word, silent ranks
        nvshmem.signal_wait_until(words + (r + 1) % W, 0, 1)  #+ other word
        nvshmem.signal_wait_until(words + r, 0, 2)  #+ silent ranks  #! silent ranks
        tl.store(out + r * n + i, tl.load(slots + r * n + i, mask=i < n), mask=i < n)  #! other word

n = 19
slots, _ = met(world * n)
x, _ = met(n)
words, _ = met(world, dtype=torch.int64, fill=0)
x.copy_(value(rank, n))
out = torch.zeros(world * n).cuda()
dist.barrier()
gather[(1,)](slots, x, words, out, n, world, B=32)
check(out, torch.cat([value(r, n) for r in range(world)]))
""",
    "one-shot all-reduce in a kernel": """
@requires_nvshmem
@triton.jit
def one_shot(slots, x, words, out, n, call, W: tl.constexpr, B: tl.constexpr):
    me = nvshmem.my_pe()
    block, i = tl.program_id(0), tl.program_id(0) * B + tl.arange(0, B)
    size = tl.minimum(B, n - block * B)
    for peer in range(W):
        to = slots + me * n + block * B
        nvshmem.putmem_signal_block(to, x + block * B, size * 4, words + block * W + me, call, 9, peer)  #! one row
    total = tl.zeros([B], tl.float32)
    for r in range(W):
        nvshmem.signal_wait_until(words + block * W + r, 5, call)
        total += tl.load(slots + r * n + i, mask=i < n, other=0.0)  #! one row
    tl.store(out + i, total, mask=i < n)

n, blocks = 100, 4
slots, _ = met(2, world, n)
x, _ = met(n)
words, _ = met(2, blocks * world, dtype=torch.int64, fill=0)
out = torch.zeros(n).cuda()
dist.barrier()
for call in range(1, 4):
    x.copy_(value(rank, n, seed=call))
    row = call % 2
    row = 0  #+ one row
    one_shot[(blocks,)](slots[row], x, words[row], out, n, call, world, B=32)
    if row == 1:
        dist.barrier()
    check(out, sum(value(r, n, seed=call) for r in range(world)))
""",
    "reduce and broadcast in kernels": """
@requires_nvshmem
@triton.jit
def both(total, x, out, n, root, B: tl.constexpr):
    nvshmem.reduce(0, total, x, n, "max")  #! silent rank
    nvshmem.broadcast(0, out, total, n, root)  #! silent rank
    i = tl.arange(0, B)
    tl.store(x + i, tl.load(out + i, mask=i < n) * 2, mask=i < n)  #! no barrier

x, _ = met(13)
total, _ = met(13)
out, _ = met(13)
for step in range(2):
    x.copy_(value(rank, 13, seed=step))
    dist.barrier()
    both[(1,)](total, x, out, 13, step, B=16, launch_cooperative_grid=True)
    if rank != 1: both[(1,)](total, x, out, 13, step, B=16, launch_cooperative_grid=True)  #+ silent rank
    check(x, 2 * torch.stack([value(r, 13, seed=step) for r in range(world)]).amax(0))
    dist.barrier()
""",
    "a flag that a put sets": """
@requires_nvshmem
@triton.jit
def produce(data, x, flag, one, n, peer):
    nvshmem.put(data, x, n, peer)  #! no fence
    nvshmem.fence()  #- no fence
    nvshmem.put(flag, one, 1, peer)  #- silent rank

@requires_nvshmem
@triton.jit
def consume(data, flag, out, n, B: tl.constexpr):
    nvshmem.wait_until(flag, 0, 7)  #! silent rank
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(data + i, mask=i < n) + 1, mask=i < n)  #! no fence

data, _ = met(31)
x, _ = met(31)
flag, _ = met(1, dtype=torch.int32, fill=0)
one, _ = met(1, dtype=torch.int32, fill=7)
x.copy_(value(rank, 31))
out = torch.zeros(31).cuda()
dist.barrier()
if rank % 2 == 0 and right > rank:
    produce[(1,)](data, x, flag, one, 31, right)
elif rank % 2:
    consume[(1,)](data, flag, out, 31, B=32)
    check(out, value(left, 31) + 1)
torch.cuda.synchronize()
""",
    "a product that waits for its rows": """
@requires_nvshmem
@triton.jit
def send(whole, x, words, nbytes, W: tl.constexpr):
    me, peer = nvshmem.my_pe(), tl.program_id(0)
    nvshmem.putmem_signal_block(whole + me * (nbytes // 4), x, nbytes, words + me, 1, 9, peer)  #! no wait

@requires_nvshmem
@triton.jit
def product(whole, weight, words, out, K: tl.constexpr, N: tl.constexpr, M: tl.constexpr):
    part = tl.program_id(0)
    nvshmem.signal_wait_until(words + part, 0, 1)  #- no wait  #! silent ranks
    m, k, n = part * M + tl.arange(0, M), tl.arange(0, K), tl.arange(0, N)
    a = tl.load(whole + m[:, None] * K + k[None, :])  #! no wait
    b = tl.load(weight + k[:, None] * N + n[None, :])
    tl.store(out + m[:, None] * N + n[None, :], tl.dot(a, b, input_precision="ieee"))

M, K, N = 16, 16, 16
whole, _ = met(world * M, K)
x, _ = met(M, K)
words, _ = met(world, dtype=torch.int64, fill=0)
x.copy_(value(rank, M, K))
weight, out = value(9, K, N).cuda(), torch.zeros(world * M, N).cuda()
dist.barrier()
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    send[(world,)](whole, x, words, M * K * 4, world)  #- silent ranks
product[(world,)](whole, weight, words, out, K, N, M)
torch.cuda.current_stream().wait_stream(side)
check(out, torch.cat([value(r, M, K) for r in range(world)]) @ value(9, K, N))
""",
    "halos of a stencil": """
@requires_nvshmem
@triton.jit
def halo(field, words, n, nbytes, step, W: tl.constexpr):
    me = nvshmem.my_pe()
    before, after = (me + W - 1) % W, (me + 1) % W
    nvshmem.putmem_signal_block(field, field + n, nbytes, words, step, 9, after)  #! no barrier
    nvshmem.putmem_signal_block(field + n + 1, field + 1, nbytes, words + 1, step, 9, before)  #! no barrier
    nvshmem.signal_wait_until(words, 5, step)
    nvshmem.signal_wait_until(words + 1, 5, step)

@triton.jit
def smooth(field, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    inner = tl.load(field + i, mask=i < n) + tl.load(field + i + 2, mask=i < n)  #! no barrier
    tl.store(out + i, inner, mask=i < n)

n = 12
field, _ = met(n + 2, fill=0)
words, _ = met(2, dtype=torch.int64, fill=0)
out = torch.zeros(n).cuda()
everything = torch.cat([value(r, n) for r in range(world)])
field[1 : n + 1].copy_(value(rank, n))
dist.barrier()
for step in range(1, 4):
    halo[(1,)](field, words, n, 4, step, world)
    smooth[(1,)](field, out, n, B=16)
    field[1 : n + 1].copy_(out)
    everything = everything.roll(1) + everything.roll(-1)
    check(out, everything.chunk(world)[rank])
    dist.barrier()  #- no barrier
""",
    "a reduce-scatter by gets": """
x, handle = met(world * 6)
part = torch.zeros(6).cuda()
x.copy_(value(rank, world * 6))  #! no barrier
handle.barrier()  #- no barrier
for peer in range(world):
    part += handle.get_buffer(peer, (6,), torch.float32, 6 * rank)  #! no barrier
handle.barrier()
check(part, sum(value(r, world * 6).chunk(world)[rank] for r in range(world)))
""",
    "a pipeline of stages": """
micro = 3
inbox, handle = met(micro, 10)
pad = handle.get_signal_pad(rank).view(torch.int64)
dist.barrier()
for m in range(micro):
    if rank:
        ops.nvshmem_wait_for_signal(pad[m : m + 1], 1, left)  #- no wait  #! silent stage
    else:
        inbox[m].copy_(value(0, 10, seed=m))
    inbox[m].mul_(2)  #! no wait
    if rank + 1 < world:
        ops.nvshmem_put_with_signal(inbox[m], pad[m : m + 1], 1, right)  #- silent stage  #! no wait
check(inbox, torch.stack([value(0, 10, seed=m) for m in range(micro)]) * 2 ** (rank + 1))
""",
    "a subgroup's exchange": """
pairs = [dist.new_group([i, i + 1]) for i in range(0, world, 2)]
pair = pairs[rank // 2]
other = rank + 1 - 2 * (rank % 2)
box = symm_mem.empty(11, device="cuda").fill_(0)
handle = symm_mem.rendezvous(box, pair)
dist.barrier()
handle.get_buffer(other % 2, (11,), torch.float32).copy_(value(rank, 11).cuda())  #! no barrier
handle.barrier()  #- no barrier
check(box + 0, value(other, 11))  #! no barrier
""",
}
