"""Programs of hosts and streams, right and with planted defects, which run with either torch; see test_planted.py."""

from __future__ import annotations

BEGIN = """
import torch, torch.distributed as dist
dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
right, left = (rank + 1) % world, (rank - 1) % world
torch.cuda.set_device(rank)
d = torch.device("cuda", rank)
cur, s = torch.cuda.current_stream(), torch.cuda.Stream()
import triton, triton.language as tl
@triton.jit
def double(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.load(x + i) * 2)  #! written before a kernel, read after a kernel, written after a kernel, freed
@triton.jit
def produce(x, y, flag, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.load(x + i) * 2)  #! relaxed for a kernel, relaxed for an operation
    tl.debug_barrier()
    tl.atomic_xchg(flag, 1, sem="release", scope="gpu")
@triton.jit
def consume(y, z, flag, N: tl.constexpr, SEM: tl.constexpr):
    while tl.atomic_cas(flag, 1, 1, sem=SEM, scope="gpu") != 1:
        pass
    tl.debug_barrier()
    i = tl.arange(0, N)
    tl.store(z + i, tl.load(y + i) + 1)  #! relaxed for a kernel
@triton.jit
def await_flag(flag, SEM: tl.constexpr):
    while tl.atomic_cas(flag, 1, 1, sem=SEM, scope="gpu") != 1:
        pass
"""

PROGRAMS: dict[str, str] = {
    "reads on a side stream": """
x = torch.ones(64, device=d)
torch.cuda.synchronize()
y = x * 3  #! no wait
s.wait_stream(cur)  #- no wait
with torch.cuda.stream(s):
    z = y + 1  #! no wait
torch.cuda.synchronize()
print(z.sum())
""",
    "events": """
x = torch.ones(64, device=d)
done = torch.cuda.Event()
s.wait_stream(cur)
with torch.cuda.stream(s):
    done.record()  #+ recorded early
    x.mul_(3)  #! recorded early, no wait
    done.record()  #- recorded early
cur.wait_event(done)  #- no wait
y = x + 1  #! recorded early, no wait
print(y.sum())
""",
    "operation, then kernel on a side stream": """
x, y = torch.ones(64, device=d), torch.zeros(64, device=d)
torch.cuda.synchronize()
x.mul_(3)  #! written before a kernel
s.wait_stream(cur)  #- written before a kernel
with torch.cuda.stream(s):
    double[(1,)](x, y, 64)
torch.cuda.synchronize()
print(y.sum())
""",
    "operations before and after a kernel on a side stream": """
x, y = torch.ones(64, device=d), torch.zeros(64, device=d)
torch.cuda.synchronize()
x.mul_(3)  #! written before a kernel
s.wait_stream(cur)  #- written before a kernel
with torch.cuda.stream(s):
    double[(1,)](x, y, 64)
cur.wait_stream(s)
x.zero_()  # which is issued before the kernel runs
torch.cuda.synchronize()
print(y.sum())
""",
    "kernel on a side stream, then operations": """
x, y = torch.ones(64, device=d), torch.zeros(64, device=d)
s.wait_stream(cur)
with torch.cuda.stream(s):
    double[(1,)](x, y, 64)
    done = s.record_event()
cur.wait_event(done)  #- read after a kernel, written after a kernel
z = y + 1  #! read after a kernel  #- written after a kernel
x.zero_()  #! written after a kernel  #- read after a kernel
torch.cuda.synchronize()
print(y.sum())
""",
    "kernels beside each other, by a flag": """
x, y, z = torch.ones(64, device=d), torch.zeros(64, device=d), torch.zeros(64, device=d)
flag = torch.zeros(1, dtype=torch.int32, device=d)
s.wait_stream(cur)
sem = "acquire"
sem = "relaxed"  #+ relaxed for a kernel
with torch.cuda.stream(s):
    consume[(1,)](y, z, flag, 64, sem)
produce[(1,)](x, y, flag, 64)
torch.cuda.synchronize()
print(z.sum())
""",
    "operation after a kernel that has waited for a flag": """
x, y = torch.ones(64, device=d), torch.zeros(64, device=d)
flag = torch.zeros(1, dtype=torch.int32, device=d)
s.wait_stream(cur)
sem = "acquire"
sem = "relaxed"  #+ relaxed for an operation
with torch.cuda.stream(s):
    await_flag[(1,)](flag, sem)
produce[(1,)](x, y, flag, 64)
with torch.cuda.stream(s):
    z = y + 1  #! relaxed for an operation
torch.cuda.synchronize()
print(z.sum())
""",
    "written while another stream reads": """
x = torch.ones(64, device=d)
s.wait_stream(cur)
with torch.cuda.stream(s):
    y = x + 1  #! no wait
cur.wait_stream(s)  #- no wait
x.zero_()  #! no wait
torch.cuda.synchronize()
print(y.sum())
""",
    "two streams write": """
x = torch.ones(64, device=d)
s.wait_stream(cur)
with torch.cuda.stream(s):
    x.add_(1)  #! no wait
cur.wait_stream(s)  #- no wait
x.mul_(2)  #! no wait
torch.cuda.synchronize()
print(x.sum())
""",
    "halves on two streams": """
x = torch.ones(64, device=d)
s.wait_stream(cur)
with torch.cuda.stream(s):
    x[:32].add_(1)  #! one too many
half = x[32:]
half = x[31:]  #+ one too many
half.mul_(2)  #! one too many
torch.cuda.synchronize()
print(x.sum())
""",
    "collective on a side stream": """
x = torch.ones(64, device=d)
x.mul_(2)  #! no wait
s.wait_stream(cur)  #- no wait
with torch.cuda.stream(s):
    dist.all_reduce(x)  #! no wait, no second wait
cur.wait_stream(s)  #- no second wait
y = x + 1  #! no second wait
print(y.sum())
""",
    "asynchronous all-reduce": """
x = torch.ones(64, device=d)
work = dist.all_reduce(x, async_op=True)  #! no wait
y = torch.ones(3, device=d) * 2
work.wait()  #- no wait
z = x * 2  #! no wait
work.wait()
print(z.sum())
""",
    "operand overwritten": """
x, out = torch.ones(64, device=d), torch.zeros(64 * world, device=d)
work = dist.all_gather_into_tensor(out, x, async_op=True)  #! no wait
y = x + 1
work.wait()  #- no wait
x.zero_()  #! no wait
work.wait()
print(out.sum())
""",
    "buffer of an isend": """
x, y = torch.ones(64, device=d), torch.zeros(64, device=d)
ops = [dist.P2POp(dist.isend, x, right), dist.P2POp(dist.irecv, y, left)]
works = dist.batch_isend_irecv(ops)  #! no wait, not received
for work in works: work.wait()  #- no wait, not received
x.add_(1)  #! no wait  #- not received
z = y + 1  #! not received  #- no wait
for work in works: work.wait()
print(y.sum())
""",
    "two works, one waited for": """
x, y = torch.ones(64, device=d), torch.ones(64, device=d)
other = dist.new_group()
a = dist.all_reduce(x, async_op=True)  #! other work
b = dist.all_reduce(y, group=other, async_op=True)
a.wait()  #- other work
b.wait()
z = x + y  #! other work
a.wait()
print(z.sum())
""",
    "work waited for on another stream": """
x = torch.ones(64, device=d)
work = dist.all_reduce(x, async_op=True)  #! other stream
with torch.cuda.stream(s):
    work.wait()
work.wait()  #- other stream
y = x + 1  #! other stream
torch.cuda.synchronize()
print(y.sum())
""",
    "pipeline of two streams": """
buffers = [torch.zeros(64, device=d) for _ in range(2)]
full = [torch.cuda.Event() for _ in range(2)]
empty = [torch.cuda.Event() for _ in range(2)]
s.wait_stream(cur)
total = torch.zeros((), device=d)
for i in range(6):
    b = i % 2
    with torch.cuda.stream(s):
        s.wait_event(empty[b]) if i > 1 else None  #- no credit
        buffers[b].fill_(i)  #! no credit, other event, no event
        full[b].record(s)
    event = full[b]
    event = full[1 - b]  #+ other event
    cur.wait_event(event)  #- no event
    total += buffers[b].sum()  #! no credit, other event, no event
    empty[b].record(cur)
print(total)
""",
    "host looks at an event": """
x = torch.ones(64, device=d)
s.wait_stream(cur)
done = torch.cuda.Event()
with torch.cuda.stream(s):
    x.mul_(2)  #! not asked
    done.record()
while not done.query(): pass  #- not asked
y = x + 1  #! not asked
torch.cuda.synchronize()
print(y.sum())
""",
    "host looks at a number": """
x = torch.ones(64, device=d)
s.wait_stream(cur)
with torch.cuda.stream(s):
    x.mul_(2)  #! no wait
cur.wait_stream(s)  #- no wait
y = x[3].item()  #! no wait
torch.cuda.synchronize()
print(y)
""",
    "stream that is waited for by the host": """
x = torch.ones(64, device=d)
s.wait_stream(cur)
with torch.cuda.stream(s):
    y = x.mul_(2)  #! other stream
s.synchronize()  #- other stream
cur.synchronize()  #+ other stream
z = x + 1  #! other stream
torch.cuda.synchronize()
print(z.sum())
""",
    "three streams in a row": """
t = torch.cuda.Stream()
x = torch.ones(64, device=d)
s.wait_stream(cur)
with torch.cuda.stream(s):
    x.add_(1)  #! no first wait
t.wait_stream(s)  #- no first wait
with torch.cuda.stream(t):
    y = x * 2  #! no first wait, no second wait
cur.wait_stream(t)  #- no second wait
z = y + 1  #! no second wait
torch.cuda.synchronize()
print(z.sum())
""",
    "rows of a matrix": """
x = torch.ones(8, 8, device=d)
s.wait_stream(cur)
with torch.cuda.stream(s):
    x[:, 0].fill_(2)  #! same column
column = x[:, 1]
column = x[:, 0]  #+ same column
y = column + 1  #! same column
torch.cuda.synchronize()
print(y.sum())
""",
    "gradients reduced on a side stream": """
grads = [torch.full((32,), float(i), device=d) for i in range(4)]
works = []
for g in grads:
    g.mul_(0.5)  #! no wait
    s.wait_stream(cur)  #- no wait
    with torch.cuda.stream(s):
        works.append(dist.all_reduce(g, async_op=True))  #! no wait, not waited
for work in works: work.wait()  #- not waited
total = sum(g.sum() for g in grads)  #! not waited
torch.cuda.synchronize()
print(total)
""",
    "ring of messages": """
send, recv = torch.full((32,), float(rank), device=d), torch.zeros(32, device=d)
total = send.clone()
for _ in range(world - 1):
    ops = [dist.P2POp(dist.isend, send, right), dist.P2POp(dist.irecv, recv, left)]
    works = dist.batch_isend_irecv(ops)  #! no wait
    for work in works: work.wait()  #- no wait
    total += recv  #! no wait
    send, recv = recv, send
print(total.sum())
""",
    "reduce-scatter, then a product": """
x, part = torch.ones(16 * world, device=d), torch.zeros(16, device=d)
work = dist.reduce_scatter_tensor(part, x, async_op=True)  #! operand changed, read early
x.add_(1)  #+ operand changed  #! operand changed
y = part * 2  #+ read early  #! read early
work.wait()
z = part * 2
x.add_(1)
print(z.sum())
""",
    "broadcast from one rank": """
x = torch.full((32,), float(rank), device=d)
work = dist.broadcast(x, 0, async_op=True)  #! overwritten
x.fill_(1)  #+ overwritten  #! overwritten
work.wait()
x.fill_(1)
print(x.sum())
""",
    "tensor freed while a side stream uses it": """
x = torch.ones(4096, device=d)
s.wait_stream(cur)
with torch.cuda.stream(s):
    y = x * 3  #! no record_stream, waited for too late
x.record_stream(s)  #- no record_stream, waited for too late
del x
z = torch.full((4096,), 7.0, device=d)  #! no record_stream, waited for too late
cur.wait_stream(s)
torch.cuda.synchronize()
print(y.sum(), z.sum())
""",
    "freed memory, the stream waited for before it is used": """
x = torch.ones(4096, device=d)
s.wait_stream(cur)
with torch.cuda.stream(s):
    y = x * 3  #! freed before the wait
del x
cur.wait_stream(s)  #- freed before the wait
z = torch.full((4096,), 7.0, device=d)  #! freed before the wait
torch.cuda.synchronize()
print(y.sum(), z.sum())
""",
    "batches made on a side stream": """
def load(i):
    with torch.cuda.stream(s):
        return torch.full((512,), float(i), device=d)  #! no record, no wait
out = []
batch = load(0)
for i in range(1, 5):
    cur.wait_stream(s)  #- no wait
    b = batch
    b.record_stream(cur)  #- no record
    batch = load(i)
    out.append((b * 2).sum())  #! no record, no wait
torch.cuda.synchronize()
print(out)
""",
    "event of an older record": """
e = torch.cuda.Event()
x = torch.ones(64, device=d)
e.record()
with torch.cuda.stream(s):
    s.wait_event(e)
    y = x + 1
cur.wait_stream(s)
x.mul_(2)  #! not recorded again
e.record()  #- not recorded again
with torch.cuda.stream(s):
    s.wait_event(e)
    z = x + 1  #! not recorded again
torch.cuda.synchronize()
print(z.sum())
""",
    "workspace of two streams": """
work = torch.empty(256, device=d)
a, b = torch.ones(256, device=d), torch.ones(256, device=d)
torch.cuda.synchronize()
torch.mul(a, 2, out=work)  #! shared
ra = work.sum()  #! shared
with torch.cuda.stream(s):
    s.wait_stream(cur)  #- shared
    torch.mul(b, 3, out=work)  #! shared
    rb = work.sum()
torch.cuda.synchronize()
print(ra, rb)
""",
}

OF_PYTORCH: dict[str, str] = {
    "copy to the host": """
x = torch.ones(64, device=d)
y = x * 2
h = torch.empty(64, pin_memory=True)
h.copy_(y, non_blocking=True)  #! no synchronize
torch.cuda.synchronize()  #- no synchronize
z = h + 1  #! no synchronize
print(z.sum())
""",
    "copy from the host": """
h = torch.ones(64).pin_memory()
x = torch.empty(64, device=d)
x.copy_(h, non_blocking=True)  #! no synchronize
cur.synchronize()  #- no synchronize
h.zero_()  #! no synchronize
print(x.sum())
""",
    "to the host, with to()": """
x = torch.ones(64, device=d)
h = (x * 2).to("cpu", non_blocking=True)  #! no synchronize
done = torch.cuda.Event()
done.record()
done.synchronize()  #- no synchronize
print(h.sum())  #! no synchronize
""",
    "pinned buffer used again": """
h, x = torch.zeros(64).pin_memory(), torch.zeros(2, 64, device=d)
for i in range(2):
    h.fill_(i)  #! no synchronize
    x[i].copy_(h, non_blocking=True)  #! no synchronize
    cur.synchronize()  #- no synchronize
print(x.sum())
""",
    "a list of what another stream writes": """
x = torch.ones(64, device=d)
s.wait_stream(cur)
with torch.cuda.stream(s):
    x.mul_(2)  #! no wait
cur.wait_stream(s)  #- no wait
y = x.tolist()  #! no wait
torch.cuda.synchronize()
print(y[0])
""",
    "memory that is not pinned": """
h, x = torch.zeros(64), torch.zeros(2, 64, device=d)
for i in range(2):
    h.fill_(i)
    x[i].copy_(h, non_blocking=True)
print(x.sum())
""",
    "input of a graph": """
g = torch.cuda.CUDAGraph()
static = torch.zeros(64, device=d)
torch.cuda.synchronize()
with torch.cuda.graph(g):
    y = static * 2
for i in range(3):
    with torch.cuda.stream(s):
        s.wait_stream(cur)  #- filled early
        static.fill_(i)  #! filled early, replayed early
    cur.wait_stream(s)  #- replayed early
    g.replay()  #! filled early, replayed early
torch.cuda.synchronize()
assert y[0].item() == 4
""",
    "output of a graph": """
g = torch.cuda.CUDAGraph()
static = torch.zeros(64, device=d)
torch.cuda.synchronize()
with torch.cuda.graph(g):
    y = static + 1
s.wait_stream(cur)
for i in range(2):
    with torch.cuda.stream(s): g.replay()  #! no wait
    cur.wait_stream(s)  #- no wait
    z = y * 2  #! no wait
    s.wait_stream(cur)
torch.cuda.synchronize()
print(z.sum())
""",
    "input of a kernel on a side stream, freed": """
y = torch.zeros(64, device=d)
for i in range(3):
    x = torch.full((64,), float(i), device=d)  #! freed
    s.wait_stream(cur)
    with torch.cuda.stream(s):
        double[(1,)](x, y, 64)
    x.record_stream(s)  #- freed
    del x
torch.cuda.synchronize()
print(y.sum())
""",
}
"""Copies that the host does not wait for: with the other torch, who looks at the host's memory waits for them."""

OF_SYMMETRIC_MEMORY: dict[str, str] = {
    "symmetric memory, barriers": """
import torch.distributed._symmetric_memory as symmetric
mine = symmetric.empty(64, device=d)
handle = symmetric.rendezvous(mine, dist.group.WORLD)
theirs = handle.get_buffer(1 - rank, (64,), torch.float32)
mine.fill_(1)  #! no barrier before
handle.barrier()  #- no barrier before
total = mine + theirs  #! no barrier before, no barrier after
handle.barrier()  #- no barrier after
mine.fill_(2)  #! no barrier after
""",
    "symmetric memory, signals": """
import torch.distributed._symmetric_memory as symmetric
inbox = symmetric.empty(64, device=d)
handle = symmetric.rendezvous(inbox, dist.group.WORLD)
handle.get_buffer(1 - rank, (64,), torch.float32).copy_(torch.ones(64, device=d))  #! no wait
handle.put_signal(1 - rank, channel=1)
handle.wait_signal(1 - rank, channel=1)  #- no wait
y = inbox * 2  #! no wait
""",
    "symmetric memory, streams": """
import torch.distributed._symmetric_memory as symmetric
mine = symmetric.empty(64, device=d)
handle = symmetric.rendezvous(mine, dist.group.WORLD)
side = torch.cuda.Stream()
mine.fill_(rank)  #! no wait
side.wait_stream(cur)  #- no wait
with torch.cuda.stream(side):
    handle.barrier()
    total = mine + handle.get_buffer(1 - rank, (64,), torch.float32)  #! no wait
cur.wait_stream(side)
""",
    "symmetric memory, the host waits for the other stream": """
import torch.distributed._symmetric_memory as symmetric
mine = symmetric.empty(64, device=d)
handle = symmetric.rendezvous(mine, dist.group.WORLD)
side = torch.cuda.Stream()
mine.fill_(rank)
handle.barrier()
side.wait_stream(cur)
with torch.cuda.stream(side):
    handle.barrier(channel=1)
    total = handle.get_buffer(1 - rank, (64,), torch.float32) + 1  #! no wait
    handle.barrier(channel=2)
cur.wait_stream(side)  #- no wait
mine.fill_(9)  #! no wait
side.synchronize()
""",
}
"""Programs in which ranks use each other's memory: where one fails the other does, too."""
