"""Programs with kernels of torchemu.language, right and with planted defects; see test_planted.py for the marks."""

from __future__ import annotations

BEGIN = """
import torch, torch.distributed as dist
import torchemu, torchemu.language as tl
dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
right, left = (rank + 1) % world, (rank - 1) % world
"""

PROGRAMS: dict[str, str] = {
    "gather by puts with signals": """
@torchemu.kernel
def gather(out, x, n):
    me, world, call = tl.rank(), tl.world_size(), tl.call_number()
    slots = tl.workspace("slots", world * n)
    words = tl.workspace("words", world, torchemu.int64)
    tl.sync()  #- no sync
    for peer in range(world):
        tl.put_signal_nbi(slots.on(peer) + me * n, x, n, words.on(peer) + me)  #! *
    for r in range(world):
        tl.wait(words + r, tl.GE, call)  #- no wait, old count, other word
        tl.wait(words + r, tl.GE, call - 1)  #+ old count
        tl.wait(words + (r - 1) % world, tl.GE, call)  #+ other word
        tl.store(out + r * n, tl.load(slots + r * n, n))  #! *

x, out = torch.ones(16), torch.zeros(16 * world)
for _ in range(3):
    gather[1](out, x, 16)
print(out.sum())
""",
    "ring all-reduce": """
@torchemu.kernel
def ring(x, part):
    me, world, call = tl.rank(), tl.world_size(), tl.call_number()
    right = (me + 1) % world
    inbox = tl.workspace("inbox", world * part)
    words = tl.workspace("words", 2 * world, torchemu.int64)
    for s in range(world - 1):
        send, take = (me - s) % world * part, (me - s - 1) % world * part
        tl.put_signal(inbox.on(right) + s * part, x + send, part, words.on(right) + s)  #! no wait, no drain
        tl.wait(words + s, tl.GE, call)  #- no wait
        t = tl.load(inbox + s * part, part)  #! no wait
        tl.store(x + take, tl.load(x + take, part) + t)  #! no drain, no wait, no second wait
        tl.drain()  #- no drain
    for s in range(world - 1):
        send = (me + 1 - s) % world * part
        tl.put_signal(x.on(right) + send, x + send, part, words.on(right) + world + s)  #! *
        tl.wait(words + world + s, tl.GE, call)  #- no second wait

x = tl.symmetric_empty(8 * world)
x.fill_(rank)
dist.barrier()
for _ in range(2):
    ring[1](x, 8)
torch.cuda.synchronize()
dist.barrier()
print(x.sum())
""",
    "two buffers with credits": """
@torchemu.kernel
def stream(out, x, n, rounds):
    me = tl.rank()
    slots = tl.workspace("slots", 2 * n)
    full, free = tl.workspace("full", 2, torchemu.int64), tl.workspace("free", 2, torchemu.int64)
    if me == 0:
        for i in range(rounds):
            b = i % 2
            if i >= 2:
                tl.wait(free + b, tl.GE, i // 2)  #- no credit, credit short
                tl.wait(free + b, tl.GE, i // 2 - 1)  #+ credit short
            tl.put_signal(slots.on(1) + b * n, x + i * n, n, full.on(1) + b)  #! *
    if me == 1:
        for i in range(rounds):
            b = i % 2
            tl.wait(full + b, tl.GE, i // 2 + 1)  #- no wait  #! no credit, credit short
            t = tl.load(slots + b * n, n)  #! no credit, credit short, early credit, no wait
            tl.store(out + i * n, t)
            tl.drain()  #- early credit
            tl.signal(free.on(0) + b)

x, out = torch.ones(160), torch.zeros(160)
stream[1](out, x, 16, 10)
print(out.sum())
""",
    "flag for equality and acknowledgement": """
@torchemu.kernel
def pingpong(out, x, n, rounds):
    me = tl.rank()
    box = tl.workspace("box", n)
    flag, ack = tl.workspace("flag", 1, torchemu.int64), tl.workspace("ack", 1, torchemu.int64)
    for i in range(1, rounds + 1):
        if me == 0:
            tl.put(box.on(1), x, n)  #! no acknowledgement, one value, no fence
            value = i
            value = 1  #+ one value
            tl.fence()  #- no fence
            tl.signal(flag.on(1), value, "set")
            tl.wait(ack, tl.EQ, i)  #- no acknowledgement  #! one value
        if me == 1:
            value = i
            value = 1  #+ one value
            tl.wait(flag, tl.EQ, value)  #- no acknowledgement
            tl.wait(flag, tl.GE, value)  #+ no acknowledgement
            tl.store(out, tl.load(box, n))  #! no acknowledgement, one value, no fence
            tl.drain()
            tl.signal(ack.on(0), i, "set")  #! one value

x, out = torch.ones(16), torch.zeros(16)
pingpong[1](out, x, 16, 4)
print(out.sum())
""",
    "signal before its data": """
@torchemu.kernel
def push(out, x, n):
    me, world = tl.rank(), tl.world_size()
    right = (me + 1) % world
    box, word = tl.workspace("box", n), tl.workspace("word", 1, torchemu.int64)
    tl.signal(word.on(right))  #+ signal first
    tl.put(box.on(right), x, n)  #! signal first, no fence
    tl.fence()  #- no fence
    tl.signal(word.on(right))  #- signal first
    tl.wait(word, tl.GE, 1)
    tl.store(out, tl.load(box, n))  #! signal first, no fence

x, out = torch.ones(16), torch.zeros(16)
push[1](out, x, 16)
print(out.sum())
""",
    "stores of tiles to a peer": """
@torchemu.kernel
def push(out, x, n):
    me, world = tl.rank(), tl.world_size()
    right = (me + 1) % world
    box, word = tl.workspace("box", n), tl.workspace("word", 1, torchemu.int64)
    tl.store(box.on(right), tl.load(x, n) * 2)  #! not drained, no fence
    tl.drain()  #- not drained
    tl.fence()
    tl.signal(word.on(right))
    tl.wait(word, tl.GE, 1)
    tl.store(out, tl.load(box, n))  #! not drained, no fence

x, out = torch.ones(16), torch.zeros(16)
push[1](out, x, 16)
print(out.sum())
""",
    "told by a third rank": """
@torchemu.kernel
def relay(out, x, n):
    me = tl.rank()
    box, word = tl.workspace("box", n), tl.workspace("word", 1, torchemu.int64)
    if me == 0:
        tl.put(box.on(1), x, n)  #! no quiet, only a fence
        tl.quiet()  #- no quiet, only a fence
        tl.fence()  #+ only a fence
        tl.signal(word.on(2))
    if me == 2:
        tl.wait(word, tl.GE, 1)
        tl.store(out, tl.load(box.on(1), n))  #! no quiet, only a fence

x, out = torch.ones(16), torch.zeros(16)
relay[1](out, x, 16)
print(out.sum())
""",
    "halo of a stencil": """
@torchemu.kernel
def exchange(u, n):
    me, world = tl.rank(), tl.world_size()
    right, left = (me + 1) % world, (me - 1) % world
    tl.barrier()  #- no barrier before
    m = 1
    m = 2  #+ one too many
    tl.put(u.on(right), u + n, m)  #! no barrier before, no barrier after, one too many
    tl.put(u.on(left) + n + 1, u + 1, 1)  #! no barrier before, no barrier after, one too many
    tl.barrier()  #- no barrier after

@torchemu.kernel
def step(u, n):
    a = tl.load(u, n)  #! no barrier before, no barrier after
    b = tl.load(u + 2, n)  #! no barrier before, no barrier after
    tl.store(u + 1, (a + b) * 0.5)

u = tl.symmetric_empty(34)
u.fill_(rank)  #! no barrier before
for _ in range(3):
    exchange[1](u, 32)
    step[1](u, 32)
torch.cuda.synchronize()
dist.barrier()
print(u.sum())
""",
    "pipes without interlock": """
@torchemu.kernel(interlock=False)
def scale(out, x, n):
    t = tl.load(x, n)  #! load to vector
    tl.set_flag("load", "vector")  #- load to vector
    tl.wait_flag("load", "vector")  #- load to vector
    y = t * 2  #! load to vector, vector to store
    tl.set_flag("vector", "store")  #- vector to store
    tl.wait_flag("vector", "store")  #- vector to store
    tl.store(out, y)  #! vector to store

x, out = torch.ones(1000), torch.zeros(1000)
scale[1](out, x, 1000)
print(out.sum())
""",
    "two programs of a rank": """
@torchemu.kernel
def relay(out, x, n):
    box, word = tl.workspace("box", n), tl.workspace("word", 1, torchemu.int64)
    if tl.program_id() == 0:
        tl.store(box, tl.load(x, n) * 2)  #! no drain, no wait
        tl.drain()  #- no drain
        tl.signal(word)
    else:
        tl.wait(word, tl.GE, tl.call_number())  #- no wait
        tl.store(out, tl.load(box, n))  #! no drain, no wait

x, out = torch.ones(16), torch.zeros(16)
relay[2](out, x, 16)
relay[2](out, x, 16)
print(out.sum())
""",
    "parts of programs": """
@torchemu.kernel
def add(out, x, n, tile):
    pid = tl.program_id()
    lo = pid * tile
    m = min(tile, n - lo)
    m = min(tile + 1, n - lo)  #+ one too many
    t = tl.load(x + lo, m) + 1
    tl.store(out + lo, t)  #! one too many

x, out = torch.ones(1000), torch.zeros(1000)
add[4](out, x, 1000, 250)
print(out.sum())
""",
    "sum by atomic additions": """
@torchemu.kernel
def reduce(out, x, n):
    me, world = tl.rank(), tl.world_size()
    total, count = tl.workspace("total", n), tl.workspace("count", 1, torchemu.int64)
    tl.put_reduce(total.on(0), x, n)  #- stored  #! one short, no wait
    tl.put(total.on(0), x, n)  #+ stored  #! stored
    tl.fence()
    tl.signal(count.on(0))
    if me == 0:
        need = world
        need = world - 1  #+ one short
        tl.wait(count, tl.GE, need)  #- no wait  #! one short
        tl.store(out, tl.load(total, n))  #! one short, no wait

x, out = torch.ones(16), torch.zeros(16)
reduce[1](out, x, 16)
print(out.sum())
""",
    "a late reader of a count": """
@torchemu.kernel
def reduce(out, x, n):
    me, world = tl.rank(), tl.world_size()
    total, count = tl.workspace("total", world * n), tl.workspace("count", 1, torchemu.int64)
    idle = tl.workspace("idle", 1, torchemu.int64)
    tl.put_signal(total.on(0) + me * n, x, n, count.on(0))
    if me == 0:
        for _ in range(200):
            tl.test(idle, tl.EQ, 1)
        need = world
        need = world - 1  #+ one short
        tl.wait(count, tl.GE, need)  #! one short
        tl.store(out, tl.load(total, world * n))  #! one short

x, out = torch.ones(16), torch.zeros(16 * world)
reduce[1](out, x, 16)
print(out.sum())
""",
    "gather by gets": """
@torchemu.kernel
def pull(out, x, n):
    me, world = tl.rank(), tl.world_size()
    box = tl.workspace("box", n)
    tl.store(box, tl.load(x, n))  #! no drain, no sync, no second sync
    tl.drain()  #- no drain
    tl.sync()  #- no sync
    for r in range(world):
        tl.get(out + r * n, box.on(r), n)  #! no drain, no sync, no second sync
    tl.sync()  #- no second sync

x, out = torch.ones(16), torch.zeros(16 * world)
for _ in range(2):
    pull[1](out, x, 16)
print(out.sum())
""",
    "gets that are not waited for": """
@torchemu.kernel
def pull(out, box, n):
    me, world = tl.rank(), tl.world_size()
    tmp = tl.workspace("tmp", world * n)
    for r in range(world):
        tl.get_nbi(tmp + r * n, box.on(r), n)  #! no quiet
    tl.quiet()  #- no quiet
    tl.store(out, tl.load(tmp, world * n))  #! no quiet

box, out = tl.symmetric_empty(16), torch.zeros(16 * world)
box.fill_(rank)
dist.barrier()
pull[1](out, box, 16)
print(out.sum())
""",
    "copies by an engine": """
@torchemu.kernel
def push(out, x, n):
    me, world = tl.rank(), tl.world_size()
    slots, words = tl.workspace("slots", world * n), tl.workspace("words", world, torchemu.int64)
    copies = [tl.copy_async(slots.on(r) + me * n, x, n) for r in range(world)]  #! no event, other event
    for r in range(world):
        copies[r].wait()  #- no event, other event
        copies[0].wait() if r == 0 else None  #+ other event
        tl.signal(words.on(r) + me)
    for r in range(world):
        tl.wait(words + r, tl.GE, 1)
    tl.store(out, tl.load(slots, world * n))  #! no event, other event

x, out = torch.ones(16), torch.zeros(16 * world)
push[1](out, x, 16)
print(out.sum())
""",
    "source changed under a put": """
@torchemu.kernel
def push(out, x, n):
    me, world = tl.rank(), tl.world_size()
    right = (me + 1) % world
    slots, word = tl.workspace("slots", 4 * n), tl.workspace("word", 1, torchemu.int64)
    stage = tl.workspace("stage", n)
    for i in range(4):
        tl.store(stage, tl.load(x, n) + i)  #! no quiet, no drain
        tl.drain()  #- no drain
        tl.put_signal_nbi(slots.on(right) + i * n, stage, n, word.on(right))  #! no quiet, no drain
        tl.quiet()  #- no quiet
    tl.wait(word, tl.GE, 4)
    tl.store(out, tl.load(slots, 4 * n))

x, out = torch.ones(16), torch.zeros(64)
push[1](out, x, 16)
print(out.sum())
""",
    "queue between ranks": """
@torchemu.kernel
def through(out, x, n):
    me, world = tl.rank(), tl.world_size()
    q = tl.queue("q", 0, 1, 2, n)
    tmp = tl.workspace("tmp", n)
    if me == 0:
        for i in range(5):
            tl.send(q, x + i * n, n)
    if me == 1:
        for i in range(5):
            tl.recv(q, tmp, n)  #! no drain
            tl.store(out + i * n, tl.load(tmp, n))  #! no drain
            tl.drain()  #- no drain

x, out = torch.ones(80), torch.zeros(80)
through[1](out, x, 16)
print(out.sum())
""",
    "broadcast down a tree": """
@torchemu.kernel
def tree(x, n):
    me, world = tl.rank(), tl.world_size()
    word = tl.workspace("word", 1, torchemu.int64)
    if me > 0:
        tl.wait(word, tl.GE, tl.call_number())  #- no wait
    for child in (2 * me + 1, 2 * me + 2):
        if child < world:
            tl.put(x.on(child), x, n)  #! no wait
            tl.fence()
            tl.signal(word.on(child))

x = tl.symmetric_empty(16)
if rank == 0:
    x.fill_(3)
tree[1](x, 16)
print(x.sum())  #! no wait
""",
    "wrong peer": """
@torchemu.kernel
def neighbours(out, x, n):
    me, world = tl.rank(), tl.world_size()
    right, left = (me + 1) % world, (me - 1) % world
    slots, words = tl.workspace("slots", world * n), tl.workspace("words", world, torchemu.int64)
    tl.put_signal(slots.on(right) + me * n, x, n, words.on(right) + me)
    tl.put_signal(slots.on(left) + me * n, x, n, words.on(left) + me)  #! other slot
    tl.wait(words + left, tl.GE, 1)
    r = left
    r = right  #+ other slot
    tl.store(out, tl.load(slots + r * n, n))  #! other slot

x, out = torch.ones(16), torch.zeros(16)
neighbours[1](out, x, 16)
print(out.sum())
""",
    "all to all with counts": """
@torchemu.kernel
def exchange(out, x, counts, n):
    me, world, call = tl.rank(), tl.world_size(), tl.call_number()
    slots = tl.workspace("slots", world * n)
    sizes, words = tl.workspace("sizes", world, torchemu.int64), tl.workspace("words", world, torchemu.int64)
    tl.sync()  #- no sync
    many = [int(c) for c in counts_of(counts, world)]
    for peer in range(world):
        tl.put(sizes.on(peer) + me, counts + peer, 1)  #! no sync, size after
        tl.fence()
        tl.put_signal(slots.on(peer) + me * n, x + peer * n, many[peer], words.on(peer) + me)  #! no sync
    at = 0
    for r in range(world):
        early = counts_of(sizes + r, 1)  #+ size after  #! size after
        tl.wait(words + r, tl.GE, call)
        m = int(counts_of(sizes + r, 1)[0])
        if m:
            tl.store(out + at, tl.load(slots + r * n, m))  #! no sync
        at += m

def counts_of(p, n):
    t = tl.load(p, n)  #! size after, no sync
    tl.drain()
    return t.numpy()

counts = torch.tensor([(rank + i) % 4 for i in range(world)], dtype=torch.int64)
x, out = torch.ones(8 * world), torch.zeros(8 * world)
for _ in range(2):
    exchange[1](out, x, counts, 8)
print(out.sum())
""",
    "lock": """
@torchemu.kernel
def count(total, lock, scratch):
    for _ in range(3):
        while tl.atomic_cas(lock.on(0), 0, 1) != 0: pass  #- no lock
        t = tl.load(total.on(0), 1) + 1  #! no lock, not drained
        tl.store(total.on(0), t)  #! no lock, not drained
        tl.drain()  #- not drained
        tl.quiet()  #- not drained
        tl.atomic_exchange(lock.on(0), 0)

total, lock = tl.symmetric_empty(1), tl.symmetric_empty(1, dtype=torch.int64)
count[1](total, lock, 0)
torch.cuda.synchronize()
dist.barrier()
if rank == 0:
    assert total.item() == 3 * world
""",
    "tickets": """
@torchemu.kernel
def take(out, ticket, done, n):
    me, world = tl.rank(), tl.world_size()
    i = tl.atomic_add(ticket.on(0), 1)  #- not atomic
    i = tl.fetch(ticket.on(0))  #+ not atomic
    tl.signal(ticket.on(0))  #+ not atomic
    tl.store(out.on(0) + i * n, tl.full(n, float(me)))  #! not atomic, no wait
    tl.drain()
    tl.fence()
    tl.signal(done.on(0))
    if me == 0:
        tl.wait(done, tl.GE, world)  #- no wait
        tl.load(out, world * n)  #! no wait

out = tl.symmetric_empty(16 * world)
ticket, done = tl.symmetric_empty(1, dtype=torch.int64), tl.symmetric_empty(1, dtype=torch.int64)
take[1](out, ticket, done, 16)
torch.cuda.synchronize()
""",
    "launches apart by a barrier of hosts": """
@torchemu.kernel
def give(box, x, n):
    tl.put(box.on((tl.rank() + 1) % tl.world_size()), x, n)  #! no barrier, no second barrier, no synchronize

@torchemu.kernel
def take(out, box, n):
    tl.store(out, tl.load(box, n))  #! no barrier, no second barrier, no synchronize

box, x, out = tl.symmetric_empty(16), torch.ones(16), torch.zeros(16)
store = dist.distributed_c10d._get_default_store()
for i in range(3):
    give[1](box, x, 16)
    torch.cuda.synchronize()  #- no synchronize
    store.set(f"given {i} {rank}", "1")  #- no barrier
    store.get(f"given {i} {left}")  #- no barrier
    take[1](out, box, 16)
    torch.cuda.synchronize()
    store.set(f"taken {i} {rank}", "1")  #- no second barrier
    store.get(f"taken {i} {right}")  #- no second barrier
print(out.sum())
""",
    "host fills symmetric memory": """
@torchemu.kernel
def add(box, x, n):
    tl.put_reduce(box.on((tl.rank() + 1) % tl.world_size()), x, n)  #! no barrier, no second barrier

box, x = tl.symmetric_empty(16), torch.ones(16)
box.fill_(rank)  #! no barrier
dist.barrier()  #- no barrier
add[1](box, x, 16)
torch.cuda.synchronize()
dist.barrier()  #- no second barrier
print(box.sum())  #! no second barrier
""",
    "own barrier": """
@torchemu.kernel
def rounds(box, words, n, times):
    me, world = tl.rank(), tl.world_size()
    right = (me + 1) % world
    for i in range(times):
        tl.put(box.on(right), box + n, n)  #! one use, no barrier
        tl.fence()
        for peer in range(world):
            tl.signal(words.on(peer) + me)
        for r in range(world):
            need = 2 * i + 1
            need = 1  #+ one use
            tl.wait(words + r, tl.GE, need)  #- no barrier
        tl.store(box + n, tl.load(box, n) + 1)  #! one use, no barrier
        tl.drain()
        for peer in range(world):
            tl.signal(words.on(peer) + me)
        for r in range(world):
            need = 2 * i + 2
            need = 1  #+ one use
            tl.wait(words + r, tl.GE, need)  #- no barrier

box, words = tl.symmetric_empty(32), tl.symmetric_empty(world, dtype=torch.int64)
rounds[1](box, words, 16, 3)
torch.cuda.synchronize()
dist.barrier()
print(box.sum())
""",
    "chain of sums": """
@torchemu.kernel
def scan(x, n):
    me, world = tl.rank(), tl.world_size()
    box, word = tl.workspace("box", n), tl.workspace("word", 1, torchemu.int64)
    t = tl.load(x, n)
    if me:
        tl.wait(word, tl.GE, 1)  #- no wait
        t = t + tl.load(box, n)  #! no wait, not drained
    if me + 1 < world:
        tl.store(box.on(me + 1), t)  #! no wait, not drained
        tl.drain()  #- not drained
        tl.fence()
        tl.signal(word.on(me + 1))
    tl.store(x, t)

x = torch.ones(16)
scan[1](x, 16)
print(x.sum())
""",
    "beyond a window": """
@torchemu.kernel
def give(box, x, n):
    m = n
    m = n + 1  #+ beyond
    tl.put(box.on((tl.rank() + 1) % tl.world_size()), x, m)  #! beyond

box, x = tl.symmetric_empty(16), torch.ones(32)
give[1](box, x, 16)
torch.cuda.synchronize()
""",
    "one counter, two senders, two rounds": """
@torchemu.kernel
def meet(slots, count, go, n):
    me = tl.rank()
    if me in (1, 2):
        for i in range(2):
            tl.put_signal(slots.on(0) + ((me - 1) * 2 + i) * n, slots + 4 * n, n, count.on(0))
            tl.wait(go, tl.GE, i + 1)  #- no word back
    if me == 0:
        for i in range(2):
            tl.wait(count, tl.GE, 2 * (i + 1))  #! no word back
            a = tl.load(slots + i * n, n)  #! no word back
            b = tl.load(slots + (2 + i) * n, n)  #! no word back
            tl.drain()
            tl.signal(go.on(1))
            tl.signal(go.on(2))

slots = tl.symmetric_empty(80)
count, go = tl.symmetric_empty(1, dtype=torch.int64), tl.symmetric_empty(1, dtype=torch.int64)
meet[1](slots, count, go, 16)
torch.cuda.synchronize()
""",
    "reduce-scatter by reducing stores": """
@torchemu.kernel
def scatter(out, x, n):
    me, world, call = tl.rank(), tl.world_size(), tl.call_number()
    total, words = tl.workspace("total", n), tl.workspace("words", world, torchemu.int64)
    for k in range(world):
        peer = (me + k) % world
        tl.store_reduce(total.on(peer), tl.load(x + peer * n, n))  #! not drained, no wait
    tl.drain()  #- not drained
    tl.fence()
    for peer in range(world):
        tl.signal(words.on(peer) + me)
    for r in range(world):
        tl.wait(words + r, tl.GE, call)  #- no wait
    tl.store(out, tl.load(total, n))  #! not drained, no wait

x, out = torch.ones(16 * world), torch.zeros(16)
scatter[1](out, x, 16)
print(out.sum())
""",
    "polling": """
@torchemu.kernel
def poll(out, x, n):
    me, world = tl.rank(), tl.world_size()
    right = (me + 1) % world
    box, word = tl.workspace("box", n), tl.workspace("word", 1, torchemu.int64)
    tl.put_signal_nbi(box.on(right), x, n, word.on(right))  #! no poll, plain poll
    while not tl.test(word, tl.NE, 0): pass  #- no poll
    tl.store(out, tl.load(box, n))  #! no poll

x, out = torch.ones(16), torch.zeros(16)
poll[1](out, x, 16)
print(out.sum())
""",
    "two programs send, one of them tells": """
@torchemu.kernel
def push(out, x, n):
    me, world, pid = tl.rank(), tl.world_size(), tl.program_id()
    right = (me + 1) % world
    box = tl.workspace("box", 2 * n)
    done, word = tl.workspace("done", 1, torchemu.int64), tl.workspace("word", 1, torchemu.int64)
    tl.put(box.on(right) + pid * n, x + pid * n, n)  #! only a fence, no wait for the other
    tl.quiet()  #- only a fence
    tl.fence()  #+ only a fence
    if pid == 1:
        tl.signal(done)
    else:
        tl.wait(done, tl.GE, 1)  #- no wait for the other
        tl.signal(word.on(right))
        tl.wait(word, tl.GE, 1)
        tl.store(out, tl.load(box, 2 * n))  #! only a fence, no wait for the other

x, out = torch.ones(32), torch.zeros(32)
push[2](out, x, 16)
print(out.sum())
""",
    "word cleared for the next round": """
@torchemu.kernel
def rounds(out, x, n, times):
    me, world = tl.rank(), tl.world_size()
    right, left = (me + 1) % world, (me - 1) % world
    box = tl.workspace("box", n)
    word, ready = tl.workspace("word", 1, torchemu.int64), tl.workspace("ready", 1, torchemu.int64)
    for i in range(times):
        tl.put_signal(box.on(right), x, n, word.on(right), 1, "set")  #! cleared late, not cleared
        tl.wait(word, tl.EQ, 1)
        tl.store(out, tl.load(box, n))  #! not cleared
        tl.drain()
        tl.signal(word, 0, "set")  #- cleared late, not cleared
        tl.quiet()
        tl.signal(ready.on(left))
        tl.signal(word, 0, "set")  #+ cleared late  #! cleared late
        tl.wait(ready, tl.GE, i + 1)

x, out = torch.ones(16), torch.zeros(16)
rounds[1](out, x, 16, 3)
print(out.sum())
""",
    "gather into a symmetric result": """
@torchemu.kernel
def gather(out, x, n):
    me, world = tl.rank(), tl.world_size()
    for peer in range(world):
        tl.put(out.on(peer) + me * n, x, n)  #! no barrier, one to the left
    tl.barrier()  #- no barrier

@torchemu.kernel
def use(y, out, n):
    tl.store(y, tl.load(out, n) * 2)  #! no barrier

out, x, y = tl.symmetric_empty(16 * world), torch.ones(16), torch.zeros(16 * world)
gather[1](out, x, 16)
use[1](y, out, 16 * world)
torch.cuda.synchronize()
""",
    "scratch memory that wraps": """
@torchemu.kernel
def temps(out, x, n, times):
    me, world = tl.rank(), tl.world_size()
    right = (me + 1) % world
    word = tl.workspace("w", 1, torchemu.int64)
    for i in range(times):
        tl.put_signal_nbi(out.on(right) + i * n, tl.load(x, n) + i, n, word.on(right))  #! no wait
    tl.wait(word, tl.GE, times)  #- no wait
    for i in range(times):
        tl.load(out + i * n, n)  #! no wait

n = 20000
out, x = tl.symmetric_empty(40 * n), torch.ones(n)
temps[1](out, x, n, 40)
torch.cuda.synchronize()
""",
    "two producers, a word each": """
@torchemu.kernel
def k(out, x, n):
    me, call = tl.rank(), tl.call_number()
    slots, words = tl.workspace("slots", 2 * n), tl.workspace("words", 2, torchemu.int64)
    tl.sync()
    if me in (1, 2):
        w = words.on(0) + (me - 1)
        w = words.on(0)  #+ one word
        tl.put_signal_nbi(slots.on(0) + (me - 1) * n, x, n, w)  #! *
    if me == 0:
        tl.wait(words, tl.GE, call)  #! one word
        tl.wait(words + 1, tl.GE, call)  #- one word
        tl.store(out, tl.load(slots, n) + tl.load(slots + n, n))  #! *
x, out = torch.ones(16), torch.zeros(16)
for _ in range(2): k[1](out, x, 16)
print(out.sum())
""",
    "buffers by the parity of calls": """
@torchemu.kernel
def k(out, x, n):
    me, call, world = tl.rank(), tl.call_number(), tl.world_size()
    right = (me + 1) % world
    slots, words = tl.workspace("slots", 2 * n), tl.workspace("words", 2, torchemu.int64)
    acks = tl.workspace("acks", 2, torchemu.int64)
    b = call % 2
    b = 0  #+ one buffer
    before = (call - 1) // 2
    before = (call - 1) // 2 - 1  #+ ack of the one before
    tl.wait(acks + b, tl.GE, before)  #- no ack
    tl.put_signal_nbi(slots.on(right) + b * n, x, n, words.on(right) + b)  #! *
    value = (call + 1) // 2
    tl.wait(words + b, tl.GE, value)  #! one buffer
    tl.store(out, tl.load(slots + b * n, n))  #! *
    tl.drain()
    tl.signal(acks.on((me - 1) % world) + b)
x, out = torch.ones(16), torch.zeros(16)
for _ in range(6): k[1](out, x, 16)
print(out.sum())
""",
    "programs of a rank meet": """
@torchemu.kernel
def k(out, x, n):
    pid, np = tl.program_id(), tl.num_programs()
    parts = tl.workspace("parts", np * n)
    tl.store(parts + pid * n, tl.load(x + pid * n, n))  #! *
    tl.sync_programs()  #- no meeting
    tl.drain()  #+ no meeting
    other = (pid + 1) % np
    tl.store(out + pid * n, tl.load(parts + other * n, n))  #! *
x, out = torch.ones(64), torch.zeros(64)
for _ in range(2): k[4](out, x, 16)
print(out.sum())
""",
    "a meeting of all, not of halves": """
@torchemu.kernel
def k(out, x, n):
    me, world = tl.rank(), tl.world_size()
    box = tl.workspace("box", world * n)
    tl.sync()
    for p in range(world): tl.put_nbi(box.on(p) + me * n, x, n)  #! *
    tl.quiet()  #- no quiet
    tl.sync()  #- half
    tl.sync((0, 1) if me < 2 else (2, 3))  #+ half
    tl.store(out, tl.load(box, n * world))  #! *
x, out = torch.ones(16), torch.zeros(16 * world)
for _ in range(2): k[1](out, x, 16)
print(out.sum())
""",
    "a peer's fill": """
@torchemu.kernel
def own(box, n):
    tl.store(box, tl.full(n, tl.rank(), box.dtype))  #! *
@torchemu.kernel
def pull(out, box, n):
    for p in range(tl.world_size()):
        tl.get(out + p * n, box.on(p), n)  #! *
box, out = tl.symmetric_empty(16), torch.zeros(16 * world)
own[1](box, 16)
dist.barrier()  #- no barrier
pull[1](out, box, 16)
torch.cuda.synchronize()
dist.barrier()
print(out.sum())
""",
    "reduce-scatter ring with credits": """
@torchemu.kernel
def rs(out, x, n):
    me, w = tl.rank(), tl.world_size()
    right, left = (me + 1) % w, (me - 1) % w
    box = tl.workspace("box", n)
    full, free = tl.workspace("full", 1, torchemu.int64), tl.workspace("free", 1, torchemu.int64)
    tmp = tl.workspace("tmp", n)
    base = (tl.call_number() - 1) * (w - 1)
    for s in range(w - 1):
        c = (me - s - 1) % w
        if s == 0:
            tl.store(tmp, tl.load(x + c * n, n))  #! no first drain
            tl.drain()  #- no first drain
        if base + s >= 1:
            tl.wait(free, tl.GE, base + s)  #- no credit
        tl.put_signal(box.on(right), tmp, n, full.on(right))  #! *
        tl.wait(full, tl.GE, base + s + 1)  #- no wait
        c = (me - s - 2) % w
        t = tl.load(box, n) + tl.load(x + c * n, n)  #! no drain, no wait
        dst = tmp if s < w - 2 else out
        tl.store(dst, t)  #! no drain
        tl.drain()  #- no drain
        tl.signal(free.on(left))
n = 17
for step in range(3):
    x, out = (torch.arange(n * world) + 100.0 * rank) + step, torch.zeros(n)
    rs[1](out, x, n)
    want = [sum(rank * n + i + 100 * r + step for r in range(world)) for i in range(n)]
    assert out.tolist() == want, (rank, out, want)
""",
    "tournament barrier": """
def up(words, phase):
    me, w = tl.rank(), tl.world_size()
    d, i = 1, 0
    while d < w:
        if me % (2 * d) == 0:
            if me + d < w: tl.wait(words + i, tl.GE, phase)  #- no wait up
        elif me % (2 * d) == d:
            tl.signal(words.on(me - d) + i)
        d, i = 2 * d, i + 1
    for p in range(1, w):
        if me == 0: tl.signal(words.on(p) + 7)
    if me: tl.wait(words + 7, tl.GE, phase)  #- no wait down
@torchemu.kernel
def k(x, out, n):
    me, w, c = tl.rank(), tl.world_size(), tl.call_number()
    words, box = tl.workspace("words", 8, torchemu.int64), tl.workspace("box", n)
    tl.store(box, tl.load(x, n) + c)  #! *
    tl.drain()  #- no drain
    up(words, 2 * c - 1)
    for r in range(w): tl.get(out + r * n, box.on(r), n)  #! *
    up(words, 2 * c)
n = 7
for step in range(3):
    x, out = (torch.arange(n) + 100.0 * rank), torch.zeros(n * world)
    k[1](x, out, n)
    for r in range(world): assert out[r * n:(r + 1) * n].tolist() == [i + 100 * r + step + 1 for i in range(n)]
""",
    "queue with head and tail counters": """
@torchemu.kernel
def pc(out, x, n, items, S):
    me, w = tl.rank(), tl.world_size()
    ring = tl.workspace("ring", w * S * n)
    head, tail = tl.workspace("head", w, torchemu.int64), tl.workspace("tail", w, torchemu.int64)
    if me:
        for i in range(items):
            room = i - S + 1
            room = i - S  #+ one too many
            if room > 0: tl.wait(tail, tl.GE, room)  #- no room
            slot = i % S
            slot = i % (S + 1)  #+ slot beyond
            tl.put(ring.on(0) + (me * S + slot) * n, x + i * n, n)  #! *
            tl.fence()  #- no fence
            tl.signal(head.on(0) + me, i + 1, "set")  #! no fence
    else:
        for i in range(items):
            for r in range(1, w):
                tl.wait(head + r, tl.GE, i + 1)  #- no wait
                t = tl.load(ring + (r * S + i % S) * n, n)  #! no drain, no fence, no room, no wait, one too many
                tl.store(out + (r * items + i) * n, t)
                tl.drain()  #- no drain
                tl.fence()
                tl.signal(tail.on(r), i + 1, "set")
n, items, S = 6, 9, 3
x, out = torch.arange(n * items) + 100.0 * rank, torch.zeros(world * items * n)
pc[1](out, x, n, items, S)
if rank == 0:
    for r in range(1, world):
        assert out[r * items * n:(r + 1) * items * n].tolist() == [i + 100 * r for i in range(n * items)]
""",
    "grid of programs and a flag for each": """
@torchemu.kernel
def k(out, x, n, tile):
    me, w, call = tl.rank(), tl.world_size(), tl.call_number()
    pid, P = tl.program_id(), tl.num_programs()
    box, words = tl.workspace("box", w * n), tl.workspace("words", w * P, torchemu.int64)
    tl.sync()  #- no sync
    lo = pid * tile
    m = max(0, min(tile, n - lo))
    m = max(0, min(tile + 1, n - lo))  #+ one too many
    for p in range(w):
        if m: tl.put(box.on(p) + me * n + lo, x + lo, m)  #! *
        tl.fence()
        tl.signal(words.on(p) + me * P + pid)
    for r in range(w):
        own = pid
        own = 0  #+ flag of program 0
        tl.wait(words + r * P + own, tl.GE, call)  #- no wait
        if m: tl.store(out + r * n + lo, tl.load(box + r * n + lo, m))  #! *
n, tile = 29, 8
for step in range(2):
    x, out = (torch.arange(n) + 100.0 * rank) + step, torch.zeros(world * n)
    k[4](out, x, n, tile)
    for r in range(world): assert out[r * n:(r + 1) * n].tolist() == [i + 100 * r + step for i in range(n)]
""",
    "multicast by a loop and acknowledgements": """
@torchemu.kernel
def k(out, x, n, R):
    me, w = tl.rank(), tl.world_size()
    box = tl.workspace("box", n)
    full, ack = tl.workspace("full", 1, torchemu.int64), tl.workspace("ack", w, torchemu.int64)
    for r in range(1, R + 1):
        root = r % w
        if me == root:
            for p in range(w):
                if p != root: tl.put_signal(box.on(p), x, n, full.on(p))  #! *
            tl.store(out + (r - 1) * n, tl.load(x, n))
            for p in range(w):
                if p != root: tl.wait(ack + p, tl.GE, r)  #- no acknowledgements
            for p in range(w):
                if p != root: tl.signal(full.on(p))
        else:
            got = 2 * sum(1 for q in range(1, r) if q % w != me)
            tl.wait(full, tl.GE, got + 1)  #- no wait  #! no acknowledgements
            tl.store(out + (r - 1) * n, tl.load(box, n))  #! no acknowledgements, no drain, no wait
            tl.drain()  #- no drain
            tl.signal(ack.on(root) + me, r, "set")  #! no acknowledgements
            tl.wait(full, tl.GE, got + 2)  #- next too early
n, R = 6, 7
x, out = (torch.arange(n) + 100.0 * rank), torch.zeros(R * n)
k[1](out, x, n, R)
for r in range(1, R + 1): assert out[(r - 1) * n:r * n].tolist() == [i + 100 * (r % world) for i in range(n)], (rank, r)
""",
    "two-shot all-reduce": """
@torchemu.kernel
def two_shot(out, x, n):
    me, w, call = tl.rank(), tl.world_size(), tl.call_number()
    inbox = tl.workspace("inbox", w * n, torchemu.float32)
    final = tl.workspace("final", w * n, torchemu.float32)
    got, done = tl.workspace("got", w, torchemu.int64), tl.workspace("done", w, torchemu.int64)
    for k in range(w):
        p = (me + k) % w
        tl.put_signal_nbi(inbox.on(p) + me * n, x + p * n, n, got.on(p) + me)  #! *
    total = None
    for r in range(w):
        tl.wait(got + r, tl.GE, call)  #- no first wait
        t = tl.load(inbox + r * n, n)  #! no first wait
        total = t if total is None else total + t
    tl.store(final + me * n, total)  #! no drain, no second wait, slot of peer
    tl.drain()  #- no drain
    for k in range(1, w):
        p = (me + k) % w
        slot = me
        slot = p  #+ slot of peer
        tl.put_signal_nbi(final.on(p) + slot * n, final + me * n, n, done.on(p) + me)  #! *
    for r in range(w):
        if r != me:
            tl.wait(done + r, tl.GE, call)  #- no second wait
    tl.store(out, tl.load(final, w * n))  #! no second wait, slot of peer, no drain
n = 5
for step in range(3):
    x, out = torch.arange(n * world) * (rank + 1.0) + step, torch.zeros(n * world)
    two_shot[1](out, x, n)
    want = [sum(i * (r + 1) + step for r in range(world)) for i in range(n * world)]
    assert out.tolist() == want, (rank, out.tolist(), want)
""",
    "recursive doubling": """
@torchemu.kernel
def rd(out, x, n):
    me, w, call = tl.rank(), tl.world_size(), tl.call_number()
    box = tl.workspace("box", 8 * n, torchemu.float32)
    word = tl.workspace("word", 8, torchemu.int64)
    stage = tl.workspace("stage", 8 * n, torchemu.float32)
    par = call % 2
    par = 0  #+ no parity
    acc = tl.load(x, n)
    d, i = 1, 0
    while d < w:
        p = me ^ d
        at = (par * 4 + i) * n
        tl.store(stage + at, acc)  #! no drain, no parity
        tl.drain()  #- no drain
        tl.put_signal_nbi(box.on(p) + at, stage + at, n, word.on(p) + par * 4 + i)  #! *
        want = (call + 1) // 2
        want = call  #+ no parity
        idx = i
        idx = 0  #+ word of the first round
        tl.wait(word + par * 4 + idx, tl.GE, want)  #- no wait
        acc = acc + tl.load(box + at, n)  #! no wait, word of the first round, no parity
        d, i = d * 2, i + 1
    tl.store(out, acc)
n = 7
for step in range(5):
    x, out = torch.arange(n) * (rank + 1.0) + step, torch.zeros(n)
    rd[1](out, x, n)
    want = [sum(i * (r + 1) + step for r in range(world)) for i in range(n)]
    assert out.tolist() == want, (rank, out.tolist(), want)
""",
    "all-to-all dispatch and combine": """
@torchemu.kernel
def dispatch(box, counts, words, x, splits, cap, h):
    me, w, call = tl.rank(), tl.world_size(), tl.call_number()
    s = tl.load(splits, w).numpy()
    start = 0
    for p in range(w):
        m = int(s[p])
        if m:
            tl.put_nbi(box.on(p) + me * cap * h, x + start * h, m * h)  #! no fence, no wait
        tl.put_nbi(counts.on(p) + me, splits + p, 1)  #! no fence, no wait
        tl.fence()  #- no fence
        tl.signal(words.on(p) + me, call, "set")  #! no fence
        start += m
@torchemu.kernel
def combine(back, box, counts, words, done, cap, h):
    me, w, call = tl.rank(), tl.world_size(), tl.call_number()
    for p in range(w):
        tl.wait(words + p, tl.GE, call)  #- no wait
        m = int(tl.load(counts + p, 1).numpy()[0])  #! no wait, no fence
        if m:
            t = tl.load(box + p * cap * h, m * h) * 2  #! no wait, no fence
            tl.store(box + p * cap * h, t)  #! no drain, no wait, no fence
            tl.drain()  #- no drain
            tl.put_nbi(back.on(p) + me * cap * h, box + p * cap * h, m * h)  #! no drain, no quiet
    tl.quiet()  #- no quiet
    for p in range(w): tl.signal(done.on(p), 1)
    tl.wait(done, tl.GE, w * call)
@torchemu.kernel
def gather(out, back, splits, cap, h):
    w = tl.world_size()
    s = tl.load(splits, w).numpy()
    start = 0
    for p in range(w):
        m = int(s[p])
        if m: tl.store(out + start * h, tl.load(back + p * cap * h, m * h))  #! no quiet
        start += m
h, cap = 4, 6
box, back = tl.symmetric_empty(world * cap * h), tl.symmetric_empty(world * cap * h)
counts, words = tl.symmetric_empty(world, dtype=torch.int32), tl.symmetric_empty(world, dtype=torch.int64)
done = tl.symmetric_empty(1, dtype=torch.int64)
for step in range(2):
    splits = torch.tensor([(rank + p + step) % 4 for p in range(world)], dtype=torch.int32)
    total = int(splits.sum())
    x, out = torch.arange(total * h) + 100.0 * rank, torch.zeros(total * h)
    dispatch[1](box, counts, words, x, splits, cap, h)
    combine[1](back, box, counts, words, done, cap, h)
    gather[1](out, back, splits, cap, h)
    assert out.tolist() == [2 * (i + 100.0 * rank) for i in range(total * h)], (rank, out)
    dist.barrier()
""",
    "reducing puts to an owner": """
@torchemu.kernel
def red(out, x, n):
    me, w, call = tl.rank(), tl.world_size(), tl.call_number()
    acc = tl.workspace("acc", n, torchemu.float32)
    word = tl.workspace("word", 1, torchemu.int64)
    tl.store(acc, tl.zeros(n, torchemu.float32))  #! no sync after clear, no quiet, no wait
    tl.drain()
    tl.sync()  #- no sync after clear
    for k in range(w):
        p = (me + k) % w
        tl.put_reduce(acc.on(p), x + p * n, n)  #! *
    tl.quiet()  #- no quiet
    for p in range(w): tl.signal(word.on(p))  #! no quiet
    tl.wait(word, tl.GE, w * call)  #- no wait
    tl.store(out, tl.load(acc, n))  #! no quiet, no wait, no sync after clear
    tl.barrier()
for step in range(2):
    x, out = torch.arange(4 * world) + 1.0 * rank + step, torch.zeros(4)
    red[1](out, x, 4)
    assert out.tolist() == [sum(rank * 4 + i + r + step for r in range(world)) for i in range(4)], (rank, out)
""",
    "hierarchy of two groups": """
@torchemu.kernel
def hier(out, x, n):
    me, w, call = tl.rank(), tl.world_size(), tl.call_number()
    half = w // 2
    node = me // half
    mates = tuple(range(node * half, (node + 1) * half))
    twin = (me + half) % w
    a = tl.workspace("a", half * n, torchemu.float32)
    b = tl.workspace("b", 2 * n, torchemu.float32)
    word = tl.workspace("w", 1, torchemu.int64)
    s = tl.workspace("s", n, torchemu.float32)
    tl.sync()  #- no entry
    for m in mates: tl.put_nbi(a.on(m) + (me % half) * n, x, n)  #! *
    tl.barrier(mates)  #- no node barrier
    total = tl.load(a, n)  #! no node barrier, no entry
    for i in range(1, half): total = total + tl.load(a + i * n, n)  #! no node barrier, no entry
    tl.store(s, total)  #! no drain
    tl.drain()  #- no drain
    tl.put_signal_nbi(b.on(twin), s, n, word.on(twin))  #! *
    tl.wait(word, tl.GE, call)  #- no twin wait
    tl.store(out, total + tl.load(b, n))  #! no twin wait, no entry
n = 5
for step in range(3):
    x, out = torch.arange(n) * (rank + 1.0) + step, torch.zeros(n)
    hier[1](out, x, n)
    assert out.tolist() == [sum(i * (r + 1) + step for r in range(world)) for i in range(n)], (rank, out)
""",
    "copies by an engine into two buffers": """
@torchemu.kernel
def cp(out, x, n, tiles):
    me, w = tl.rank(), tl.world_size()
    bufs = tl.workspace("bufs", 2 * n, torchemu.float32)
    e = tl.copy_async(bufs, x, n)  #! no wait, waits for the next
    for i in range(tiles):
        nxt = None
        if i + 1 < tiles: nxt = tl.copy_async(bufs + ((i + 1) % 2) * n, x + (i + 1) * n, n)  #! *
        cur = e
        cur = nxt or e  #+ waits for the next
        cur.wait()  #- no wait
        tl.store(out + i * n, tl.load(bufs + (i % 2) * n, n) + 1)  #! no wait, waits for the next, reuse
        tl.drain()  #- reuse
        e = nxt
x, out = torch.arange(40) + 1.0 * rank, torch.zeros(40)
cp[1](out, x, 8, 5)
assert out.tolist() == [i + 1.0 + rank for i in range(40)]
""",
    "double tree, chunks in a pipeline": """
@torchemu.kernel
def tree(x, out, n, chunks):
    me, w, call = tl.rank(), tl.world_size(), tl.call_number()
    for t in range(2):
        v = (me + t) % w
        def real(u): return (u - t) % w
        parent = (v - 1) // 2 if v else None
        kids = [c for c in (2 * v + 1, 2 * v + 2) if c < w]
        up = tl.workspace(f"up{t}", 2 * chunks * n)
        ups = tl.workspace(f"ups{t}", 2, torchemu.int64)
        down = tl.workspace(f"down{t}", chunks * n)
        downs = tl.workspace(f"downs{t}", 1, torchemu.int64)
        stage = tl.workspace(f"stage{t}", chunks * n)
        for c in range(chunks):
            tl.fence()  #- no chunk fence
            at = (t * chunks + c) * n
            acc = tl.load(x + at, n)
            for k, kid in enumerate(kids):
                need = (call - 1) * chunks + c + 1
                need = (call - 1) * chunks + c  #+ one short
                tl.wait(ups + k, tl.GE, need)  #- no wait up  #! no chunk fence
                acc = acc + tl.load(up + (k * chunks + c) * n, n)  #! no wait up, one short, no chunk fence
            tl.store(stage + c * n, acc)  #! no drain
            tl.drain()  #- no drain
            if parent is not None:
                k = (v - 1) % 2
                k = 0  #+ sibling's slot
                to = real(parent)
                tl.put_signal_nbi(up.on(to) + (k * chunks + c) * n, stage + c * n, n, ups.on(to) + k)  #! *
            else:
                for kid in kids:
                    tl.put_signal_nbi(down.on(real(kid)) + c * n, stage + c * n, n, downs.on(real(kid)))  #! *
                tl.store(out + at, acc)
        if parent is not None:
            for c in range(chunks):
                tl.wait(downs, tl.GE, (call - 1) * chunks + c + 1)  #- no wait down  #! no chunk fence
                tl.fence()  #- no chunk fence
                for kid in kids:
                    tl.put_signal_nbi(down.on(real(kid)) + c * n, down + c * n, n, downs.on(real(kid)))  #! *
                tl.store(out + (t * chunks + c) * n, tl.load(down + c * n, n))  #! no wait down, no chunk fence
    tl.barrier()

n, chunks = 4, 3
for step in range(3):
    x, out = torch.arange(2 * n * chunks) + 10.0 * rank + step, torch.zeros(2 * n * chunks)
    tree[1](x, out, n, chunks)
    assert out.tolist() == [sum(i + 10.0 * r + step for r in range(world)) for i in range(2 * n * chunks)], (rank, out)
""",
    "experts with counts inside signals, two buffers": """
@torchemu.kernel
def dispatch(box, words, x, splits, cap, h, b, call):
    me, w = tl.rank(), tl.world_size()
    s = tl.load(splits, w).numpy()
    other = 1 - b
    for p in range(w):
        tl.atomic_exchange(words + other * w + p, 0)  #- counts not cleared
    tl.barrier()
    start = 0
    for p in range(w):
        m = int(s[p])
        if m: tl.put_nbi(box.on(p) + (b * w + me) * cap * h, x + start * h, m * h)  #! *
        tl.fence()  #- no fence
        tl.signal(words.on(p) + b * w + me, -m - 1, "set")
        start += m
@torchemu.kernel
def receive(out, counts, box, words, cap, h, b):
    me, w = tl.rank(), tl.world_size()
    at = 0
    for p in range(w):
        q = p
        tl.wait(words + b * w + q, tl.NE, 0)  #- no wait
        m = -tl.fetch(words + b * w + p) - 1  #- no wait
        m = 2  #+ no wait
        tl.store(counts + p, tl.full(1, float(m)))
        if m: tl.store(out + at * h, tl.load(box + (b * w + p) * cap * h, m * h))  #! *
        at += m

h, cap = 4, 4
box, words = tl.symmetric_empty(2 * world * cap * h), tl.symmetric_empty(2 * world, dtype=torch.int64)
for step in range(4):
    size = [[(r + p) % 4 for p in range(world)] for r in range(world)]
    splits = torch.tensor(size[rank], dtype=torch.int32)
    x = torch.arange(sum(size[rank]) * h) + 1000.0 * rank + step
    got = sum(size[r][rank] for r in range(world))
    out, counts = torch.zeros(got * h + h * world * cap), torch.zeros(world)
    b = step % 2
    b = 0  #+ one buffer
    dispatch[1](box, words, x, splits, cap, h, b, step)
    receive[1](out, counts, box, words, cap, h, b)
    assert counts.tolist() == [float(size[r][rank]) for r in range(world)], (rank, counts)
    parts = [(r, sum(size[r][:rank]) * h, size[r][rank] * h) for r in range(world)]
    want = [i + 1000.0 * r + step for r, lo, m in parts for i in range(lo, lo + m)]
    assert out.tolist()[: got * h] == want
""",
    "product whose tiles are added up at their owners": """
@torchemu.kernel
def scattered(out, a, b, m, k, n, tiles):
    me, w, call, pid, progs = tl.rank(), tl.world_size(), tl.call_number(), tl.program_id(), tl.num_programs()
    part = tl.workspace("part", 2 * tiles * m * n)
    count = tl.workspace("count", 2 * tiles, torchemu.int64)
    par = call % 2
    half = par * tiles * m * n
    for t in range(pid, w * tiles, progs):
        owner, c = (me + 1 + t // tiles) % w, t % tiles
        y = tl.dot(tl.load(a + (owner * tiles + c) * m * k, (m, k)), tl.load(b, (k, n)))
        to = part.on(owner) + half + c * m * n
        tl.store_reduce(to, y)  #- plain store  #! *
        tl.store(to, tl.load(to, (m, n)) + y)  #+ plain store  #! *
        tl.drain()  #- no drain
        tl.fence()
        tl.signal(count.on(owner) + par * tiles + c)
    for c in range(pid, tiles, progs):
        need = w * ((call + 1) // 2)
        need = w * ((call + 1) // 2) - 1  #+ one short
        tl.wait(count + par * tiles + c, tl.GE, need)  #- no wait  #! one short
        tl.store(out + c * m * n, tl.load(part + half + c * m * n, m * n))  #! *
        other = half
        tl.drain()
        tl.store(part + other + c * m * n, tl.zeros(m * n))  #! no wait, one short, no drain
    tl.drain()
    tl.sync_programs()

m, k, n, tiles = 4, 4, 4, 2
for step in range(4):
    a = torch.ones(world * tiles * m, k) * (rank + step + 1.0)
    b, out = torch.ones(k, n), torch.zeros(tiles * m, n)
    scattered[3](out, a, b, m, k, n, tiles)
    dist.barrier()
    torch.cuda.synchronize()
    want = [float(sum(k * (r + step + 1) for r in range(world)))] * (tiles * m * n)
    assert out.reshape(-1).tolist() == want, (rank, step, out)
    dist.barrier()
""",
    "both ways around a ring": """
@torchemu.kernel
def ring2(out, x, n):
    me, w, call = tl.rank(), tl.world_size(), tl.call_number()
    for way, pid in ((1, 0), (-1, 1)):
        if tl.program_id() != pid: continue
        to, half = (me + way) % w, n // 2
        off = 0 if way == 1 else half
        off = 0  #+ one half
        half_slots = tl.workspace("slots", 2 * w * (n // 2))
        words = tl.workspace("words", 2 * w, torchemu.int64)
        base = pid * w
        tl.store(out + me * n + off, tl.load(x + off, half))  #! one half
        tl.drain()
        for s in range(w - 1):
            c = (me - way * s) % w
            tl.put(out.on(to) + c * n + off, out + c * n + off, half)  #! *
            tl.fence()  #- no fence
            tl.signal(words.on(to) + base + s)
            k = s
            tl.wait(words + base + s, tl.GE, call)  #- no wait

n = 8
out = tl.symmetric_empty(world * n)
for step in range(2):
    x = torch.arange(n) + 10.0 * rank + step
    ring2[2](out, x, n)
    want = [i + 10.0 * r + step for r in range(world) for i in range(n)]
    assert out.tolist() == want, (rank, out)  #! no fence, no wait
    dist.barrier()
""",
    "broadcast down a chain with a window of credits": """
@torchemu.kernel
def chain(out, x, n, chunks, depth):
    me, w, call = tl.rank(), tl.world_size(), tl.call_number()
    ring = tl.workspace("ring", depth * n)
    full, free = tl.workspace("full", 1, torchemu.int64), tl.workspace("free", 1, torchemu.int64)
    before = (call - 1) * chunks
    for c in range(chunks):
        k = before + c
        src = x + c * n
        if me:
            tl.wait(full, tl.GE, k + 1)  #- no wait
            src = ring + k % depth * n
        if me + 1 < w:
            need = k - depth + 1
            need = k - depth  #+ one credit too many
            if need > 0: tl.wait(free, tl.GE, need)  #- no credit  #! one credit too many
            tl.put(ring.on(me + 1) + k % depth * n, src, n)  #! *
            tl.fence()  #- no fence
            tl.signal(full.on(me + 1))
        if me:
            tl.store(out + c * n, tl.load(src, n))  #! *
            tl.drain()  #- early credit
            if me + 1 < w: tl.quiet()
            tl.signal(free.on(me - 1))

for step in range(3):
    x, out = torch.arange(30) + 1.0 * step, torch.zeros(30)
    chain[1](out, x, 5, 6, 2)
    if rank: assert out.tolist() == x.tolist(), (rank, out)
""",
    "fetch loop, calls counted": """
@torchemu.kernel
def poll(out, x, n, call):
    me, world = tl.rank(), tl.world_size()
    right = (me + 1) % world
    box, word = tl.workspace("box", n), tl.workspace("word", 1, torchemu.int64)
    tl.sync()
    tl.put_signal_nbi(box.on(right), x, n, word.on(right))  #! *
    need = call
    need = 1  #+ not reset
    while tl.fetch(word) < need: pass  #! not reset  #- no poll
    tl.store(out, tl.load(box, n))  #! *
x, out = torch.ones(16), torch.zeros(16)
for call in range(1, 4): poll[1](out, x, 16, call)
print(out.sum())
""",
    "fetch loop with a name": """
@torchemu.kernel
def poll(out, x, n, call):
    me, world = tl.rank(), tl.world_size()
    right = (me + 1) % world
    box, word = tl.workspace("box", n), tl.workspace("word", 1, torchemu.int64)
    tl.sync()
    tl.put_signal_nbi(box.on(right), x, n, word.on(right))  #! *
    need = call
    need = 1  #+ not reset
    seen = tl.fetch(word)  #! not reset
    while seen < need: seen = tl.fetch(word)  #! not reset
    tl.store(out, tl.load(box, n))  #! *
x, out = torch.ones(16), torch.zeros(16)
for call in range(1, 4): poll[1](out, x, 16, call)
print(out.sum())
""",
    "fetch loop over senders": """
@torchemu.kernel
def poll(out, x, n, call):
    me, world = tl.rank(), tl.world_size()
    box, word = tl.workspace("box", world * n), tl.workspace("word", world, torchemu.int64)
    tl.sync()
    for p in range(world): tl.put_signal_nbi(box.on(p) + me * n, x, n, word.on(p) + me, call, "set")  #! *
    need = call
    need = 1  #+ not reset
    while any(tl.fetch(word + r) < need for r in range(world)): pass  #! not reset
    for r in range(world): tl.store(out + r * n, tl.load(box + r * n, n))  #! *
x, out = torch.ones(16), torch.zeros(16 * world)
for call in range(1, 4): poll[1](out, x, 16, call)
print(out.sum())
""",
    "if and break": """
@torchemu.kernel
def poll(out, x, n, call):
    me, world = tl.rank(), tl.world_size()
    right = (me + 1) % world
    box, word = tl.workspace("box", n), tl.workspace("word", 1, torchemu.int64)
    tl.sync()
    tl.put_signal_nbi(box.on(right), x, n, word.on(right))  #! *
    need = call
    need = 1  #+ not reset
    while True:
        if tl.fetch(word) >= need: break  #! not reset
    tl.store(out, tl.load(box, n))  #! *
x, out = torch.ones(16), torch.zeros(16)
for call in range(1, 4): poll[1](out, x, 16, call)
print(out.sum())
""",
    "queue by head that is fetched": """
@torchemu.kernel
def pc(out, x, n, items):
    me = tl.rank()
    ring = tl.workspace("ring", items * n)
    head = tl.workspace("head", 1, torchemu.int64)
    if me == 1:
        for i in range(items):
            tl.put(ring.on(0) + i * n, x + i * n, n)
            tl.fence()
            tl.signal(head.on(0), i + 1, "set")
    if me == 0:
        got = 0
        while got < items:
            h = tl.fetch(head)
            if h > got:
                for i in range(got, h): tl.store(out + i * n, tl.load(ring + i * n, n))
                got = h
x, out = torch.arange(64) + 100.0 * rank, torch.zeros(64)
pc[1](out, x, 8, 8)
if rank == 0: assert out.tolist() == [100.0 + i for i in range(64)]
""",
    "a count that programs keep": """
@torchemu.kernel
def k(total, out):
    me = tl.rank()
    tl.atomic_add(total.on(0), 1)  #- fetch and signal
    tl.signal(total.on(0), tl.fetch(total.on(0)) + 1, "set")  #+ fetch and signal  #! fetch and signal
    tl.quiet()
    tl.sync()
total, out = tl.symmetric_empty(1, dtype=torch.int64), torch.zeros(1)
k[1](total, out)
torch.cuda.synchronize()
dist.barrier()
if rank == 0: print(total.item())
""",
    "a count of programs of a rank": """
@torchemu.kernel
def k(total, out):
    tl.atomic_add(total, 1)  #- fetch and exchange
    tl.atomic_exchange(total, tl.fetch(total) + 1)  #+ fetch and exchange  #! fetch and exchange
    tl.sync_programs()
total, out = tl.symmetric_empty(1, dtype=torch.int64), torch.zeros(1)
k[4](total, out)
torch.cuda.synchronize()
print(total.item())
""",
    "turns": """
@torchemu.kernel
def k(turn, total, out):
    me = tl.rank()
    while tl.fetch(turn.on(0)) != me: pass  #- no turn
    tl.store(total.on(0), tl.load(total.on(0), 1) + 1)  #! no turn
    tl.drain(); tl.quiet()
    tl.signal(turn.on(0), tl.fetch(turn.on(0)) + 1, "set")
turn, total, out = tl.symmetric_empty(1, dtype=torch.int64), tl.symmetric_empty(1), torch.zeros(1)
k[1](turn, total, out)
torch.cuda.synchronize()
dist.barrier()
if rank == 0: assert total.item() == world
""",
    "peer's word is fetched": """
@torchemu.kernel
def k(out, x, n, call):
    me, world = tl.rank(), tl.world_size()
    right = (me + 1) % world
    box, word = tl.workspace("box", n), tl.workspace("word", 1, torchemu.int64)
    tl.sync()
    tl.store(box, tl.load(x, n) + call)  #! *
    tl.drain()
    tl.signal(word, call, "set")
    need = call
    need = 1  #+ not reset
    while tl.fetch(word.on(right)) < need: pass  #- no poll  #! not reset
    tl.get(out, box.on(right), n)  #! *
x, out = torch.ones(16), torch.zeros(16)
for call in range(1, 4): k[1](out, x, 16, call)
print(out.sum())
""",
    "data that is waited for by exchange": """
@torchemu.kernel
def k(out, x, n, call):
    me, world = tl.rank(), tl.world_size()
    right, left = (me + 1) % world, (me - 1) % world
    box, word = tl.workspace("box", n), tl.workspace("word", 1, torchemu.int64)
    free = tl.workspace("free", 1, torchemu.int64)
    while call > 1 and tl.atomic_exchange(free, 0) != 1: pass  #- no credit
    tl.put_signal_nbi(box.on(right), x, n, word.on(right), 1, "set")  #! *
    while tl.atomic_cas(word, 1, 0) != 1: pass  #- not cleared
    while tl.atomic_cas(word, 1, 1) != 1: pass  #+ not cleared  #! not cleared
    tl.store(out, tl.load(box, n))  #! *
    tl.drain()
    tl.signal(free.on(left), 1, "set")
x, out = torch.ones(16), torch.zeros(16)
for call in range(1, 4): k[1](out, x, 16, call)
print(out.sum())
""",
    "a meeting that is given no memory": """
@torchemu.kernel
def push(box, x, n):
    me, w = tl.rank(), tl.world_size()
    for k in range(w): tl.put(box.on((me + k) % w) + me * n, x, n)  #! *
@torchemu.kernel
def meet(): tl.barrier()

n = 4096
box = tl.symmetric_empty(n * world)
for step in range(3):
    x = torch.full((n,), 10.0 * step + rank)
    push[1](box, x, n)
    meet[1]()  #- no first meeting
    found = box.tolist()[::n]  #! *
    meet[1]()  #- no second meeting
    assert found == [10.0 * step + r for r in range(world)], found
""",
}
