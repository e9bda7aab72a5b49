"""Kernels of Triton and Triton-distributed, right and with planted defects; see test_planted.py."""

from __future__ import annotations

BEGIN = """
import os
import torch
import triton
import triton.language as tl
import triton_dist
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem
from triton_dist.language.extra.language_extra import __syncthreads, atomic_add, atomic_cas, ld, ld_acquire
from triton_dist.language.extra.language_extra import load_v2_u32, load_v4_u32, membar, red_release, st
from triton_dist.language.extra.language_extra import st_v2_u32, st_v4_u32, tid
from triton_dist.utils import finalize_distributed, initialize_distributed
from triton_dist.utils import nvshmem_barrier_all_on_stream, nvshmem_create_tensor
initialize_distributed()
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
def sym(n): return nvshmem_create_tensor((n,), torch.float32)
def cleared(n, kind=torch.uint64): return nvshmem_create_tensor((n,), kind).fill_(0)
"""

PROGRAMS: dict[str, str] = {
    "values that are there when no sentinel is": """
@triton.jit
def arrived(p):
    t = tl.load(p, volatile=True)
    while tl.min(t, 0) == -1.0:
        t = tl.load(p, volatile=True)
    return t
@triton_dist.jit
def gather(x, box, out, N: tl.constexpr, phase, world: tl.constexpr):
    me = dl.rank()
    i = tl.arange(0, N)
    slots = 3
    slots = 2  #+ two slots
    base = box + (phase % slots) * N * world
    used = box + ((phase + slots - 1) % slots) * N * world
    v = tl.load(x + i)
    for r in range(world):
        tl.store(used + r * N + i, -1.0)  #! two slots
    for r in range(world):
        tl.store(dl.symm_at(base, r) + me * N + i, v)  #! two slots, no look
    acc = tl.zeros((N,), tl.float32)
    for r in range(world):
        t = tl.load(base + r * N + i)  #+ no look #! no look
        t = arrived(base + r * N + i)  #- no look
        acc += t
    tl.store(out + i, acc)

x, box, out = torch.ones(64).cuda(), sym(3 * 64 * world), torch.zeros(64).cuda()
box.fill_(-1)
nvshmem_barrier_all_on_stream()
for phase in range(6):
    gather[(1,)](x, box, out, 64, phase, world)
torch.cuda.synchronize()
print(out.sum())
""",
    "a plain flag after a fence": """
@triton_dist.jit
def pass_on(x, box, word, ack, out, N: tl.constexpr, R: tl.constexpr):
    me = dl.rank()
    i = tl.arange(0, N)
    for r in range(R):
        if me == 0:
            while tl.load(ack, volatile=True) < r: pass  #- no ack
            membar("sys")
            __syncthreads()
            tl.store(dl.symm_at(box, 1) + i, tl.load(x + i))  #! *
            __syncthreads()  #- no syncthreads
            membar("sys")  #- no membar
            tl.store(dl.symm_at(word, 1), 1)  #! no ack, no membar
        if me == 1:
            while tl.load(word, volatile=True) == 0: pass  #- no look
            membar("sys")
            __syncthreads()
            tl.store(out + i, tl.load(box + i))  #! *
            tl.store(word, 0)  #! no ack
            __syncthreads()
            membar("sys")
            tl.store(dl.symm_at(ack, 0), r + 1)

x, box, word, ack, out = sym(64), sym(64), cleared(1), cleared(1), torch.zeros(64).cuda()
x.fill_(1)
nvshmem_barrier_all_on_stream()
pass_on[(1,)](x, box, word, ack, out, 64, 4)
torch.cuda.synchronize()
print(out.sum())
""",
    "a word that its reader clears": """
@triton_dist.jit
def pass_on(word, ack, out, R: tl.constexpr):
    me = dl.rank()
    for r in range(R):
        if me == 0:
            while tl.atomic_add(ack, 0, sem="acquire", scope="sys") < r: pass  #- no ack
            for k in range(10): tl.store(out + k % 4, tl.atomic_add(ack + 1, 0))  #+ no ack
            tl.store(dl.symm_at(word, 1), r + 5)  #! no ack
        if me == 1:
            found = tl.load(word, volatile=True)
            while found == 0: found = tl.load(word, volatile=True)
            tl.store(out + r, found)
            tl.store(word, 0)  #! no ack
            tl.atomic_xchg(dl.symm_at(ack, 0), r + 1, sem="release", scope="sys")

word, ack, out = cleared(1), cleared(2), torch.zeros(4, dtype=torch.int64).cuda()
nvshmem_barrier_all_on_stream()
pass_on[(1,)](word, ack, out, 4)
torch.cuda.synchronize()
print(out.sum())
""",
    "stores to a peer, then notify": """
@triton_dist.jit
def shift(x, inbox, words, out, N: tl.constexpr):
    right = (dl.rank() + 1) % dl.num_ranks()
    i = tl.arange(0, N)
    tl.store(dl.symm_at(inbox, right) + i, tl.load(x + i))  #! no syncthreads, no wait, no fence
    __syncthreads()  #- no syncthreads
    scope = "intra_node"
    scope = "inter_node"  #+ no fence
    dl.notify(words, right, signal=1, sig_op="set", comm_scope=scope)  # which fences in a node
    token = dl.wait(words, 1, "sys", "acquire", waitValue=1)  #- no wait
    tl.store(out + i, tl.load(inbox + i))  #! no syncthreads, no wait, no fence

inbox, words = nvshmem_create_tensor((64,), torch.float32), nvshmem_create_tensor((1,), torch.int64)
words.fill_(0)
nvshmem_barrier_all_on_stream()
x, out = torch.ones(64).cuda(), torch.zeros(64).cuda()
shift[(1,)](x, inbox, words, out, 64)
torch.cuda.synchronize()
print(out.sum())
""",
    "put with signal": """
@triton_dist.jit
def gather(x, slots, words, out, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    for peer in range(W):
        shmem.putmem_signal_nbi_block(slots + me * N, x, N * 4, words + me, 1, shmem.NVSHMEM_SIGNAL_SET, peer)  #! *
    i = tl.arange(0, N)
    for r in range(W):
        shmem.signal_wait_until(words + r, shmem.NVSHMEM_CMP_EQ, 1)  #- no wait, other word
        shmem.signal_wait_until(words + (r + 1) % W, shmem.NVSHMEM_CMP_EQ, 1)  #+ other word
        __syncthreads()
        tl.store(out + r * N + i, tl.load(slots + r * N + i))  #! *

slots, words = nvshmem_create_tensor((64 * world,), torch.float32), nvshmem_create_tensor((world,), torch.uint64)
x, out = nvshmem_create_tensor((64,), torch.float32), torch.zeros(64 * world).cuda()
x.fill_(rank)
words.fill_(0)
nvshmem_barrier_all_on_stream()
gather[(1,)](x, slots, words, out, 64, world)
torch.cuda.synchronize()
print(out.sum())
""",
    "words not cleared by all before": """
@triton_dist.jit
def send(x, inbox, words, out, N: tl.constexpr):
    right = (dl.rank() + 1) % dl.num_ranks()
    shmem.putmem_signal_block(inbox, x, N * 4, words, 1, shmem.NVSHMEM_SIGNAL_SET, right)  #! no barrier
    shmem.signal_wait_until(words, shmem.NVSHMEM_CMP_EQ, 1)
    __syncthreads()
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(inbox + i))

inbox, words = nvshmem_create_tensor((64,), torch.float32), nvshmem_create_tensor((1,), torch.uint64)
x, out = nvshmem_create_tensor((64,), torch.float32), torch.zeros(64).cuda()
x.fill_(rank)
words.fill_(0)  #! no barrier
nvshmem_barrier_all_on_stream()  #- no barrier
send[(1,)](x, inbox, words, out, 64)
torch.cuda.synchronize()
print(out.sum())
""",
    "calls in a row, a barrier between": """
@triton_dist.jit
def send(x, inbox, words, out, k, N: tl.constexpr):
    right = (dl.rank() + 1) % dl.num_ranks()
    shmem.putmem_signal_block(inbox, x, N * 4, words, k, shmem.NVSHMEM_SIGNAL_SET, right)  #! no barrier, one value
    shmem.signal_wait_until(words, shmem.NVSHMEM_CMP_GE, k)
    __syncthreads()
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(inbox + i))  #! no barrier, one value

inbox, words = nvshmem_create_tensor((64,), torch.float32), nvshmem_create_tensor((1,), torch.uint64)
x, out = nvshmem_create_tensor((64,), torch.float32), torch.zeros(64).cuda()
x.fill_(rank)
words.fill_(0)
nvshmem_barrier_all_on_stream()
for k in range(1, 4):
    k = 1  #+ one value
    send[(1,)](x, inbox, words, out, k, 64)
    nvshmem_barrier_all_on_stream()  #- no barrier
print(out.sum())
""",
    "grid that counts its blocks": """
@triton.jit
def total(x, parts, count, out, N: tl.constexpr, BLOCKS: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    tl.store(parts + pid, tl.sum(tl.load(x + i)))  #! relaxed, other count
    __syncthreads()
    sem: tl.constexpr = "acq_rel"
    before = tl.atomic_add(count, 1, sem="acq_rel")  #- relaxed
    before = tl.atomic_add(count, 1, sem="relaxed")  #+ relaxed
    __syncthreads()
    last = BLOCKS - 1
    last = BLOCKS - 2  #+ other count
    if before == last:
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, BLOCKS))))  #! relaxed, other count

x, parts, count = torch.ones(256).cuda(), torch.zeros(4).cuda(), torch.zeros(1, dtype=torch.int32).cuda()
out = torch.zeros(1).cuda()
total[(4,)](x, parts, count, out, 64, 4)
torch.cuda.synchronize()
print(out.sum())
""",
    "blocks that overlap": """
@triton.jit
def add(x, out, n, N: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    i = pid * (N - 1) + tl.arange(0, N)  #+ step too small
    tl.store(out + i, tl.load(x + i) + 1)  #! step too small

x, out = torch.ones(256).cuda(), torch.zeros(256).cuda()
add[(4,)](x, out, 256, 64)
print(out.sum())
""",
    "sums by atomic additions": """
@triton.jit
def add(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.atomic_add(out + i, tl.load(x + i))  #- not atomic
    tl.store(out + i, tl.load(out + i) + tl.load(x + i))  #+ not atomic  #! not atomic

x, out = torch.ones(64).cuda(), torch.zeros(64).cuda()
add[(4,)](x, out, 64)
print(out.sum())
""",
    "lock among blocks": """
@triton.jit
def count(lock, total):
    while tl.atomic_cas(lock, 0, 1) == 1: pass  #- no lock
    tl.store(total, tl.load(total) + 1)  #! no lock, relaxed release
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)  #- relaxed release
    tl.atomic_xchg(lock, 0, sem="relaxed")  #+ relaxed release

lock, total = torch.zeros(1, dtype=torch.int32).cuda(), torch.zeros(1).cuda()
count[(4,)](lock, total)
torch.cuda.synchronize()
assert total.item() == 4
""",
    "kernels on two streams": """
@triton.jit
def scale(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) * 2)  #! no event

s = torch.cuda.Stream()
x, y, z = torch.ones(64).cuda(), torch.zeros(64).cuda(), torch.zeros(64).cuda()
torch.cuda.synchronize()
scale[(1,)](x, y, 64)
s.wait_stream(torch.cuda.current_stream())  #- no event
with torch.cuda.stream(s):
    scale[(1,)](y, z, 64)
torch.cuda.synchronize()
print(z.sum())
""",
    "kernel beside a tensor operation": """
@triton.jit
def scale(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) * 2)  #! no wait, no wait before

s = torch.cuda.Stream()
x, y = torch.ones(64).cuda(), torch.zeros(64).cuda()
torch.cuda.synchronize()
x.mul_(3)  #! no wait before
s.wait_stream(torch.cuda.current_stream())  #- no wait before
with torch.cuda.stream(s):
    scale[(1,)](x, y, 64)
torch.cuda.current_stream().wait_stream(s)  #- no wait
z = y + 1  #! no wait
torch.cuda.synchronize()
print(z.sum())
""",
    "ring of puts": """
@triton_dist.jit
def ring(buf, words, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    right = (me + 1) % W
    for s in range(W - 1):
        chunk = (me + W - s) % W
        at = buf + chunk * N
        shmem.putmem_signal_block(at, at, N * 4, words + s, 1, shmem.NVSHMEM_SIGNAL_ADD, right)  #! *
        shmem.signal_wait_until(words + s, shmem.NVSHMEM_CMP_GE, 1)  #- no wait
        __syncthreads()

@triton.jit
def use(buf, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(buf + i))  #! no wait

buf, words = nvshmem_create_tensor((64 * world,), torch.float32), nvshmem_create_tensor((world,), torch.uint64)
out = torch.zeros(64 * world).cuda()
buf.fill_(rank)
words.fill_(0)
nvshmem_barrier_all_on_stream()
ring[(1,)](buf, words, 64, world)
use[(1,)](buf, out, 64 * world)
torch.cuda.synchronize()
print(out.sum())
""",
    "gets after a barrier": """
@triton_dist.jit
def pull(x, slots, out, N: tl.constexpr, W: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, tl.load(x + i) + 1)  #! no barrier
    __syncthreads()
    shmem.barrier_all_block()  #- no barrier
    for r in range(W):
        shmem.getmem_nbi_block(slots + r * N, x, N * 4, r)  #! no barrier, no quiet
    shmem.quiet()  #- no quiet
    __syncthreads()
    j = tl.arange(0, N * W)
    tl.store(out + j, tl.load(slots + j))  #! no quiet

x, slots = nvshmem_create_tensor((64,), torch.float32), nvshmem_create_tensor((64 * world,), torch.float32)
out = torch.zeros(64 * world).cuda()
x.fill_(rank)
nvshmem_barrier_all_on_stream()
pull[(1,)](x, slots, out, 64, world)
torch.cuda.synchronize()
print(out.sum())
""",
    "never written": """
@triton.jit
def use(buf, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(buf + i))  #! not filled

buf, out = nvshmem_create_tensor((64,), torch.float32), torch.zeros(64).cuda()
buf.fill_(rank)  #- not filled
use[(1,)](buf, out, 64)
torch.cuda.synchronize()
print(out.sum())
""",
    "an exchange that releases, a swap that acquires": """
@triton_dist.jit
def flag(x, inbox, words, out, N: tl.constexpr):
    right = (dl.rank() + 1) % dl.num_ranks()
    i = tl.arange(0, N)
    tl.store(dl.symm_at(inbox, right) + i, tl.load(x + i))  #! *
    __syncthreads()
    release, acquire = "release", "acquire"
    release = "relaxed"  #+ no release
    acquire = "relaxed"  #+ no acquire
    tl.atomic_xchg(dl.symm_at(words, right), 1, sem=release, scope="sys")
    while tl.atomic_cas(words, 1, 0, sem=acquire, scope="sys") != 1: pass
    __syncthreads()
    tl.store(out + i, tl.load(inbox + i))  #! *

inbox, words = nvshmem_create_tensor((64,), torch.float32), nvshmem_create_tensor((1,), torch.int32)
words.fill_(0)
nvshmem_barrier_all_on_stream()
x, out = torch.ones(64).cuda(), torch.zeros(64).cuda()
flag[(1,)](x, inbox, words, out, 64)
torch.cuda.synchronize()
print(out.sum())
""",
    "words that are stored and polled": """
@triton_dist.jit
def flag(x, inbox, words, out, N: tl.constexpr):
    right = (dl.rank() + 1) % dl.num_ranks()
    i = tl.arange(0, N)
    tl.store(dl.symm_at(inbox, right) + i, tl.load(x + i))  #! no fence, no poll
    __syncthreads()  #- no fence
    if tid(0) == 0:
        membar("sys")
        red_release(dl.symm_at(words, right), 1, "sys")
        while ld_acquire(words, "sys") != 1: pass  #- no poll
    __syncthreads()
    tl.store(out + i, tl.load(inbox + i))  #! no fence, no poll

inbox, words = nvshmem_create_tensor((64,), torch.float32), nvshmem_create_tensor((1,), torch.int32)
words.fill_(0)
nvshmem_barrier_all_on_stream()
x, out = torch.ones(64).cuda(), torch.zeros(64).cuda()
flag[(1,)](x, inbox, words, out, 64)
torch.cuda.synchronize()
print(out.sum())
""",
    "two buffers by parity": """
@triton_dist.jit
def k(x, slots, full, free, out, R: tl.constexpr, N: tl.constexpr):
    me = dl.rank()
    i = tl.arange(0, N)
    for r in range(R):
        b = r % 2
        if me == 0:
            if r >= 2:
                need = r // 2
                need = r // 2 - 1  #+ credit early
                shmem.signal_wait_until(free + b, shmem.NVSHMEM_CMP_GE, need)
            shmem.putmem_signal_block(slots + b * N, x + r * N, N * 4, full + b, 1, shmem.NVSHMEM_SIGNAL_ADD, 1)  #! *
        if me == 1:
            want = r // 2 + 1
            want = 1  #+ never reset
            shmem.signal_wait_until(full + b, shmem.NVSHMEM_CMP_GE, want)
            __syncthreads()
            tl.store(out + r * N + i, tl.load(slots + b * N + i))  #! *
            __syncthreads()
            if tid(0) == 0: shmem.signal_op(free + b, 1, shmem.NVSHMEM_SIGNAL_ADD, 0)
x, slots, full, free, out = sym(64 * 6), sym(128), cleared(2), cleared(2), torch.zeros(64 * 6).cuda()
x.fill_(rank)
nvshmem_barrier_all_on_stream()
k[(1,)](x, slots, full, free, out, 6, 64)
torch.cuda.synchronize()
print(out.sum())
""",
    "a counter of all producers": """
@triton_dist.jit
def k(x, slots, words, out, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    i = tl.arange(0, N * W)
    for p in range(W):
        shmem.putmem_nbi_block(slots + me * N, x, N * 4, p)  #! *
        shmem.fence()  #- no fence
        __syncthreads()
        if tid(0) == 0: shmem.signal_op(words, 1, shmem.NVSHMEM_SIGNAL_ADD, p)  #! one too few, equal
    n = W
    n = W - 1  #+ one too few, equal
    cmp = shmem.NVSHMEM_CMP_GE
    cmp = shmem.NVSHMEM_CMP_EQ  #+ equal
    shmem.signal_wait_until(words, cmp, n)  #! equal, one too few
    __syncthreads()
    tl.store(out + i, tl.load(slots + i))  #! *
x, slots, w, out = sym(64), sym(64 * world), cleared(1), torch.zeros(64 * world).cuda()
x.fill_(rank)
nvshmem_barrier_all_on_stream()
k[(1,)](x, slots, w, out, 64, world)
torch.cuda.synchronize()
print(out.sum())
""",
    "a grid of all tiles": """
@triton.jit
def fill(x, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(x + i, i.to(tl.float32), mask=i < n)
@triton.jit
def use(x, out, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=0.0), mask=i < n)  #! *
n = 1000
x, out = sym(n), torch.zeros(n).cuda()
grid = triton.cdiv(n, 128)
small = grid
small = n // 128  #+ too small
fill[(small,)](x, n, 128)
use[(grid,)](x, out, n, 128)
torch.cuda.synchronize()
print(out.sum())
""",
    "bytes of a type": """
@triton_dist.jit
def k(x, inbox, words, out, N: tl.constexpr):
    n = N * 4
    n = N * 2  #+ half
    right = (dl.rank() + 1) % dl.num_ranks()
    shmem.putmem_signal_block(inbox, x, n, words, 1, shmem.NVSHMEM_SIGNAL_SET, right)
    shmem.signal_wait_until(words, shmem.NVSHMEM_CMP_EQ, 1)
    __syncthreads()
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(inbox + i))  #! *
x, inbox, w, out = sym(64), sym(64), cleared(1), torch.zeros(64).cuda()
x.fill_(rank)
nvshmem_barrier_all_on_stream()
k[(1,)](x, inbox, w, out, 64)
torch.cuda.synchronize()
print(out.sum())
""",
    "tiles handed on as they are done": """
@triton_dist.jit
def produce(x, y, flags, N: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    tl.store(y + i, tl.load(x + i) * 2)  #! *
    __syncthreads()  #- no sync
    dl.notify(flags + pid, dl.rank(), signal=1, sig_op="set", comm_scope="gpu")
@triton_dist.jit
def consume(y, flags, out, N: tl.constexpr):
    pid = tl.program_id(0)
    f = pid
    f = 0  #+ other tile
    t = dl.wait(flags + f, 1, "gpu", "acquire", waitValue=1)  #- no wait
    i = pid * N + tl.arange(0, N)
    tl.store(out + i, tl.load(y + i))  #! *
x, y, flags, out = torch.ones(256).cuda(), sym(256), cleared(4), torch.zeros(256).cuda()
s = torch.cuda.Stream()
nvshmem_barrier_all_on_stream()
s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    consume[(4,)](y, flags, out, 64)
produce[(4,)](x, y, flags, 64)
torch.cuda.current_stream().wait_stream(s)
print(out.sum())
""",
    "all to all by offsets": """
@triton_dist.jit
def k(x, inbox, words, out, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    peer = tl.program_id(0)
    at = me * N
    at = peer * N  #+ own slot
    at = 0  #+ one slot
    shmem.putmem_signal_nbi_block(inbox + at, x + peer * N, N * 4, words + me, 1, shmem.NVSHMEM_SIGNAL_SET, peer)  #! *
    shmem.signal_wait_until(words + peer, shmem.NVSHMEM_CMP_EQ, 1)
    __syncthreads()
    i = tl.arange(0, N)
    tl.store(out + peer * N + i, tl.load(inbox + peer * N + i))  #! *
x, inbox, w, out = sym(64 * world), sym(64 * world), cleared(world), torch.zeros(64 * world).cuda()
x.fill_(rank)
nvshmem_barrier_all_on_stream()
k[(world,)](x, inbox, w, out, 64, world)
torch.cuda.synchronize()
for r in range(world): assert out[64 * r].item() == r, (rank, out)
""",
    "stores to all, summed up, and again": """
@triton_dist.jit
def push(x, inbox, N: tl.constexpr, W: tl.constexpr):
    i = tl.arange(0, N)
    for r in range(W):
        tl.store(dl.symm_at(inbox, r) + dl.rank() * N + i, tl.load(x + i))  #! *
@triton_dist.jit
def total(inbox, out, N: tl.constexpr, W: tl.constexpr):
    i = tl.arange(0, N)
    acc = tl.zeros((N,), tl.float32)
    for r in range(W):
        acc += tl.load(inbox + r * N + i)  #! *
    tl.store(out + i, acc)
x, inbox, out = torch.ones(64).cuda(), sym(64 * world), torch.zeros(64).cuda()
for step in range(3):
    push[(1,)](x, inbox, 64, world)
    nvshmem_barrier_all_on_stream()  #- no barrier after the pushes
    total[(1,)](inbox, out, 64, world)
    nvshmem_barrier_all_on_stream()  #- no barrier before the next
print(out.sum())
""",
    "a wait that acquires": """
@triton_dist.jit
def shift(x, inbox, words, out, N: tl.constexpr):
    right = (dl.rank() + 1) % dl.num_ranks()
    i = tl.arange(0, N)
    tl.store(dl.symm_at(inbox, right) + i, tl.load(x + i))  #! relaxed wait, no sync
    __syncthreads()  #- no sync
    dl.notify(words, right, signal=1, sig_op="set", comm_scope="intra_node")
    sem: tl.constexpr = "acquire"
    sem: tl.constexpr = "relaxed"  #+ relaxed wait
    t = dl.wait(words, 1, "sys", sem, waitValue=1)
    __syncthreads()
    tl.store(out + i, tl.load(dl.consume_token(inbox, t) + i))  #! relaxed wait, no sync
inbox, words = sym(64), cleared(1)
nvshmem_barrier_all_on_stream()
x, out = torch.ones(64).cuda(), torch.zeros(64).cuda()
shift[(1,)](x, inbox, words, out, 64)
torch.cuda.synchronize()
assert out.sum().item() == 64
""",
    "words of a peer that is waited for": """
@triton_dist.jit
def produce(x, inbox, words, out, N: tl.constexpr):
    right = (dl.rank() + 1) % dl.num_ranks()
    i = tl.arange(0, N)
    scope: tl.constexpr = "sys"
    scope: tl.constexpr = "gpu"  #+ narrow wait
    for k in range(3):
        token = dl.wait(dl.symm_at(words, right), 1, scope, "acquire", waitValue=2 * k)  #! narrow wait
        tl.store(dl.symm_at(inbox, right) + i, tl.load(x + i) + k)
        __syncthreads()
        shmem.fence()
        dl.notify(words, right, signal=2 * k + 1, sig_op="set", comm_scope="intra_node")
        t = dl.wait(words, 1, "gpu", "acquire", waitValue=2 * k + 1)
        tl.store(out + i, tl.load(inbox + i))
        __syncthreads()
        dl.notify(words, dl.rank(), signal=2 * k + 2, sig_op="set", comm_scope="gpu")
inbox, words = sym(64), cleared(1)
nvshmem_barrier_all_on_stream()
x, out = torch.ones(64).cuda(), torch.zeros(64).cuda()
produce[(1,)](x, inbox, words, out, 64)
torch.cuda.synchronize()
assert out.sum().item() == 64 * 3
""",
    "counters of peers, added to by threads": """
@triton_dist.jit
def k(x, inbox, count, out, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    i = tl.arange(0, N)
    for p in range(W):
        tl.store(dl.symm_at(inbox, p) + me * N + i, tl.load(x + i))  #! relaxed add, relaxed look, acquire add, no sync
    __syncthreads()  #- no sync
    scope = "sys"
    scope = "gpu"  #+ narrow add
    sem = "release"
    sem = "relaxed"  #+ relaxed add
    sem = "acquire"  #+ acquire add
    if tid(0) < W:
        atomic_add(dl.symm_at(count, tid(0)), 1, scope=scope, semantic=sem)  #! narrow add
    if tid(0) == 0:
        while ld(count, scope="sys", semantic="acquire") < W: pass  #- relaxed look
        while ld(count, scope="sys", semantic="relaxed") < W: pass  #+ relaxed look
    __syncthreads()
    j = tl.arange(0, N * W)
    tl.store(out + j, tl.load(inbox + j))  #! relaxed add, relaxed look, acquire add, no sync
inbox, count = sym(64 * world), cleared(1, torch.int32)
nvshmem_barrier_all_on_stream()
x, out = torch.ones(64).cuda(), torch.zeros(64 * world).cuda()
k[(1,)](x, inbox, count, out, 64, world)
torch.cuda.synchronize()
assert out.sum().item() == 64 * world
""",
    "loads from peers after their flags": """
@triton_dist.jit
def k(x, mine, flag, out, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    i = tl.arange(0, N)
    tl.store(mine + i, tl.load(x + i) + me)  #! relaxed st
    __syncthreads()
    sem = "release"
    sem = "relaxed"  #+ relaxed st
    scope = "sys"
    scope = "gpu"  #+ narrow st
    for p in range(W):
        if tid(0) == 0: st(dl.symm_at(flag, p) + me, 1, scope=scope, semantic=sem)  #! narrow st
    for r in range(W):
        if tid(0) == 0:
            while ld_acquire(flag + r, "sys") != 1: pass
        __syncthreads()
        tl.store(out + r * N + i, tl.load(dl.symm_at(mine, r) + i))  #! relaxed st
mine, flag = sym(64), cleared(world, torch.int32)
nvshmem_barrier_all_on_stream()
x, out = torch.ones(64).cuda(), torch.zeros(64 * world).cuda()
k[(1,)](x, mine, flag, out, 64, world)
torch.cuda.synchronize()
nvshmem_barrier_all_on_stream()
""",
    "relaxed flags between fences": """
@triton_dist.jit
def k(x, mine, flag, out, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    i = tl.arange(0, N)
    tl.store(mine + i, tl.load(x + i) + me)  #! no fence, cta fence, no fence after
    __syncthreads()
    if tid(0) == 0:
        membar("sys")  #- no fence, cta fence
        membar("cta")  #+ cta fence
        for p in range(W):
            st(dl.symm_at(flag, p) + me, 1, scope="sys", semantic="relaxed")
    if tid(0) == 0:
        for r in range(W):
            while ld(flag + r, "sys", "relaxed") != 1: pass
        membar("sys")  #- no fence after
    __syncthreads()
    for r in range(W):
        tl.store(out + r * N + i, tl.load(dl.symm_at(mine, r) + i))  #! no fence, no fence after, cta fence
mine, flag = sym(64), cleared(world, torch.int32)
nvshmem_barrier_all_on_stream()
x, out = torch.ones(64).cuda(), torch.zeros(64 * world).cuda()
k[(1,)](x, mine, flag, out, 64, world)
torch.cuda.synchronize()
nvshmem_barrier_all_on_stream()
""",
    "a lock in a peer's memory": """
@triton_dist.jit
def k(total, lock, R: tl.constexpr):
    far_lock, far = dl.symm_at(lock, 0), dl.symm_at(total, 0)
    take = "acquire"
    take = "relaxed"  #+ relaxed take
    take = "release"  #+ release take
    give = "release"
    give = "relaxed"  #+ relaxed give
    scope = "sys"
    scope = "gpu"  #+ narrow
    for _ in range(R):
        while tl.atomic_cas(far_lock, 0, 1, sem=take, scope=scope) != 0: pass  #! narrow
        v = tl.load(far)  #! relaxed take, release take, relaxed give
        tl.store(far, v + 1)  #! relaxed take, release take, relaxed give
        __syncthreads()
        tl.atomic_xchg(far_lock, 0, sem=give, scope=scope)  #! narrow
total, lock = sym(1), cleared(1, torch.int32)
total.fill_(0)
nvshmem_barrier_all_on_stream()
k[(1,)](total, lock, 3)
nvshmem_barrier_all_on_stream()
if rank == 0: assert total.item() == 3 * world, total
""",
    "a count of a grid's blocks with a scope": """
@triton.jit
def total(x, parts, count, out, N: tl.constexpr, BLOCKS: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    tl.store(parts + pid, tl.sum(tl.load(x + i)))
    scope: tl.constexpr = "gpu"
    scope: tl.constexpr = "cta"  #+ narrow
    before = tl.atomic_add(count, 1, sem="acq_rel", scope=scope)  #! narrow
    if before == BLOCKS - 1:
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, BLOCKS))))
x, parts, count = torch.ones(256).cuda(), torch.zeros(4).cuda(), torch.zeros(1, dtype=torch.int32).cuda()
out = torch.zeros(1).cuda()
total[(4,)](x, parts, count, out, 64, 4)
torch.cuda.synchronize()
print(out.sum())
""",
    "data with flags in two buffers": """
@triton_dist.jit
def k(x, box, out, flag, n, half: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    t = tid(0)
    for q in range(1, W):
        p = (me + q) % W
        if t < n:
            a, b = ld(x + 2 * t), ld(x + 2 * t + 1)
            st_v4_u32(dl.symm_at(box, p) + half + (me * n + t) * 4, a, flag, b, flag)  #! one buffer
    for q in range(1, W):
        r = (me + W - q) % W
        if t < n:
            place = box + half + (r * n + t) * 4
            a, f, b, g = load_v4_u32(place)  #! one buffer
            while f != flag or g != flag:
                a, f, b, g = load_v4_u32(place)  #! one buffer
            st(out + r * 2 * n + 2 * t, a)
            st(out + r * 2 * n + 2 * t + 1, b)
n = 20
box = cleared(2 * world * n * 4, torch.int32)
nvshmem_barrier_all_on_stream()
for call in range(1, 5):
    x = torch.arange(2 * n, dtype=torch.int32).cuda() + 100 * rank + call
    out = torch.zeros(world * 2 * n, dtype=torch.int32).cuda()
    half = call % 2 * world * n * 4
    half = 0  #+ one buffer
    k[(1,)](x, box, out, call, n, half, world)
    torch.cuda.synchronize()
    for r in range(world):
        if r != rank: assert out[r * 2 * n: (r + 1) * 2 * n].tolist() == [i + 100 * r + call for i in range(2 * n)]
""",
    "producer and consumer kernels, tiles by signals": """
@triton_dist.jit
def gather(x, ws, words, call, N: tl.constexpr, W: tl.constexpr):
    pid = tl.program_id(0)
    me = dl.rank()
    peer = (me + pid) % W
    at = ws + me * N
    at = ws + peer * N  #+ wrong slot
    shmem.putmem_signal_nbi_block(at, x, N * 4, words + me, call, shmem.NVSHMEM_SIGNAL_SET, peer)  #! *
@triton_dist.jit
def consume(ws, words, w, out, call, N: tl.constexpr, W: tl.constexpr):
    pid = tl.program_id(0)
    own = pid
    own = 0  #+ wait for tile 0
    v = call
    token = dl.wait(words + own, 1, "gpu", "acquire", waitValue=v)  #- no wait
    i = tl.arange(0, N)
    t = tl.load(ws + pid * N + i)  #! no wait, wait for tile 0, wrong slot
    tl.store(out + pid * N + i, t * tl.load(w))
N = 32
x, ws, words = sym(N), sym(N * world), cleared(world, torch.int64)
w, out = torch.full((1,), 2.0).cuda(), torch.zeros(N * world).cuda()
nvshmem_barrier_all_on_stream()
s = torch.cuda.Stream()
for call in range(1, 4):
    x.copy_((torch.arange(N) + 100.0 * rank).cuda() + call)
    nvshmem_barrier_all_on_stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s): gather[(world,)](x, ws, words, call, N, world)
    consume[(world,)](ws, words, w, out, call, N, world)
    torch.cuda.current_stream().wait_stream(s)
    for r in range(world): assert out[r * N:(r + 1) * N].tolist() == [2 * (i + 100 * r + call) for i in range(N)]
    nvshmem_barrier_all_on_stream()
""",
    "gemm and reduce-scatter with counted tiles": """
@triton_dist.jit
def gemm(
    a, b, part, words, count, call,
    M: tl.constexpr, K: tl.constexpr, N: tl.constexpr, W: tl.constexpr, TILES: tl.constexpr,
):
    pid = tl.program_id(0)
    me = dl.rank()
    owner = (pid // TILES + me + 1) % W
    tile = pid % TILES
    m = tl.arange(0, M)
    kk = tl.arange(0, K)
    nn = tl.arange(0, N)
    ta = tl.load(a + (owner * TILES + tile) * M * K + m[:, None] * K + kk[None, :])
    tb = tl.load(b + kk[:, None] * N + nn[None, :])
    tc = tl.dot(ta, tb, input_precision="ieee")
    dst = dl.symm_at(part, owner) + (me * TILES + tile) * M * N
    tl.store(dst + m[:, None] * N + nn[None, :], tc)  #! *
    __syncthreads()  #- no sync
    before = tl.atomic_add(count + owner, 1, sem="acq_rel")  #- relaxed count
    before = tl.atomic_add(count + owner, 1, sem="relaxed")  #+ relaxed count
    last = TILES * call - 1
    last = TILES * call - 2  #+ count off by one
    if before == last:
        shmem.fence()
        dl.notify(words + me, owner, signal=call, sig_op="set", comm_scope="intra_node")  #! no barrier after
@triton_dist.jit
def reduce(part, words, out, call, n, B: tl.constexpr, W: tl.constexpr):
    pid = tl.program_id(0)
    token = dl.wait(words, W, "gpu", "acquire", waitValue=call)  #- no wait  #! no barrier after
    i = pid * B + tl.arange(0, B)
    acc = tl.zeros((B,), tl.float32)
    for r in range(W):
        acc += tl.load(part + r * n + i, mask=i < n, other=0.0)  #! *
    tl.store(out + i, acc, mask=i < n)
M, K, N, TILES = 16, 16, 16, 2
n = TILES * M * N
part, words, count = sym(world * n), cleared(world, torch.int64), cleared(world, torch.int32)
out = torch.zeros(n).cuda()
nvshmem_barrier_all_on_stream()
for call in range(1, 3):
    a = torch.ones(world * TILES * M, K).cuda() * (rank + call)
    b = torch.ones(K, N).cuda()
    gemm[(world * TILES,)](a, b, part, words, count, call, M, K, N, world, TILES)
    reduce[(triton.cdiv(n, 200),)](part, words, out, call, n, 256, world)
    assert out[:10].tolist() == [float(sum(K * (r + call) for r in range(world)))] * 10, (rank, call, out[:10].tolist())
    nvshmem_barrier_all_on_stream()  #- no barrier after
""",
    "data and flag in 16 bytes": """
@triton_dist.jit
def ll128(x, box, out, seq, half, n, W: tl.constexpr):
    me = dl.rank()
    t = tid(0)
    for q in range(1, W):
        p = (me + q) % W
        if t < n:
            a, b = ld(x + 2 * t), ld(x + 2 * t + 1)
            st_v4_u32(dl.symm_at(box, p) + (half * W + me) * n * 4 + t * 4, a, seq, b, seq)  #! one half
    for q in range(1, W):
        r = (me + W - q) % W
        if t < n:
            place = box + (half * W + r) * n * 4 + t * 4
            a, f, b, g = load_v4_u32(place)  #! *
            while f != seq or g != seq: a, f, b, g = load_v4_u32(place)
            st(out + r * 2 * n + 2 * t, a)
            st(out + r * 2 * n + 2 * t + 1, b)
n = 9
box = cleared(2 * world * n * 4, torch.int32)  #- flags not cleared
box = nvshmem_create_tensor((2 * world * n * 4,), torch.int32)  #+ flags not cleared
nvshmem_barrier_all_on_stream()
for seq in range(1, 5):
    x = (torch.arange(2 * n, dtype=torch.int32) + 100 * rank + seq).cuda()
    out = torch.zeros(world * 2 * n, dtype=torch.int32).cuda()
    half = seq % 2
    half = 0  #+ one half
    v = seq
    ll128[(1,)](x, box, out, v, half, n, world)
    for r in range(world):
        if r != rank: assert out[r * 2 * n:(r + 1) * 2 * n].tolist() == [i + 100 * r + seq for i in range(2 * n)]
""",
    "pull with peers barrier by CAS": """
@triton_dist.jit
def meet(words, W: tl.constexpr):
    me = dl.rank()
    t = tid(0)
    if t < W:
        there = dl.symm_at(words + me, t)
        while atomic_cas(there, 0, 1, "sys", "release") != 0: pass
        while atomic_cas(words + t, 1, 0, "sys", "acquire") != 1: pass
    __syncthreads()
@triton_dist.jit
def pull(x, mine, words, out, N: tl.constexpr, W: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(mine + i, tl.load(x + i))  #! *
    __syncthreads()  #- no sync
    meet(words, W)  #- no barrier
    for r in range(W):
        tl.store(out + r * N + i, tl.load(dl.symm_at(mine, r) + i))  #! *
    __syncthreads()
    meet(words, W)  #- no second barrier
N = 16
mine, words = sym(N), cleared(world, torch.int32)
nvshmem_barrier_all_on_stream()
for step in range(3):
    out = torch.zeros(N * world).cuda()
    pull[(1,)]((torch.arange(N) + 100.0 * rank).cuda() + step, mine, words, out, N, world)
    for r in range(world): assert out[r * N:(r + 1) * N].tolist() == [i + 100 * r + step for i in range(N)]
""",
    "a central barrier after stores to all": """
@triton_dist.jit
def push(x, box, count, go, out, call, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    i = tl.arange(0, N)
    for p in range(W):
        tl.store(dl.symm_at(box, p) + me * N + i, tl.load(x + i) + call)  #! *
    __syncthreads()  #- no sync
    if tid(0) == 0:
        red_release(dl.symm_at(count, 0), 1, "sys")
        if me == 0:
            while ld_acquire(count, "sys") < W * call: pass
            for p in range(W): st(dl.symm_at(go, p), call, "sys", "release")
        while ld_acquire(go, "sys") < call: pass  #- no wait
    __syncthreads()
    for r in range(W):
        tl.store(out + r * N + i, tl.load(box + r * N + i))  #! *
    __syncthreads()
    if tid(0) == 0:
        red_release(dl.symm_at(count, 0) + 1, 1, "sys")
        if me == 0:
            while ld_acquire(count + 1, "sys") < W * call: pass
            for p in range(W): st(dl.symm_at(go, p) + 1, call, "sys", "release")
        while ld_acquire(go + 1, "sys") < call: pass  #- no second barrier
N = 32
box, count, go = sym(N * world), cleared(2, torch.int32), cleared(2, torch.int32)
nvshmem_barrier_all_on_stream()
x, out = (torch.arange(N) + 100.0 * rank).cuda(), torch.zeros(N * world).cuda()
for call in range(1, 4):
    push[(1,)](x, box, count, go, out, call, N, world)
    for r in range(world): assert out[r * N:(r + 1) * N].tolist() == [i + 100 * r + call for i in range(N)]
""",
    "stores to one rank that another one tells of": """
@triton_dist.jit
def k(x, box, words, out, N: tl.constexpr):
    me = dl.rank()
    i = tl.arange(0, N)
    if me == 0:
        tl.store(dl.symm_at(box, 2) + i, tl.load(x + i))  #! no sync
        __syncthreads()  #- no sync
        dl.notify(words, 1, signal=1, sig_op="set", comm_scope="intra_node")
    if me == 1:
        t = dl.wait(words, 1, "sys", "acquire", waitValue=1)  #- no relay
        __syncthreads()
        dl.notify(words, 2, signal=1, sig_op="set", comm_scope="intra_node")
    if me == 2:
        t = dl.wait(words, 1, "sys", "acquire", waitValue=1)  #- no wait
        __syncthreads()
        tl.store(out + i, tl.load(box + i))  #! *
N = 32
box, words = sym(N), cleared(1, torch.int64)
nvshmem_barrier_all_on_stream()
x, out = (torch.arange(N) + 100.0 * rank).cuda(), torch.zeros(N).cuda()
k[(1,)](x, box, words, out, N)
if rank == 2: assert out.tolist() == [float(i) for i in range(N)]
nvshmem_barrier_all_on_stream()
""",
    "grid barrier by a counter": """
@triton.jit
def two_phases(x, y, out, count, call, N: tl.constexpr, BLOCKS: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, N)
    tl.store(y + pid * N + i, tl.load(x + pid * N + i) * 2)  #! no sync, relaxed, no wait
    tl.debug_barrier()  #- no sync
    tl.atomic_add(count, 1, sem="release", scope="gpu")  #- cta, relaxed
    tl.atomic_add(count, 1, sem="release", scope="cta")  #+ cta  #! cta
    tl.atomic_add(count, 1, sem="relaxed", scope="gpu")  #+ relaxed
    n = BLOCKS * call
    n = BLOCKS  #+ not reset
    n = BLOCKS * call - 1  #+ one too few
    while tl.atomic_add(count, 0, sem="acquire", scope="gpu") < n: pass  #- no wait  #! cta, not reset, one too few
    tl.debug_barrier()
    other = (pid + 1) % BLOCKS
    tl.store(out + pid * N + i, tl.load(y + other * N + i))  #! no sync, not reset, one too few, relaxed, no wait
N, B = 32, 4
y, count = torch.zeros(N * B).cuda(), torch.zeros(1, dtype=torch.int32).cuda()
for call in range(1, 4):
    x, out = (torch.arange(N * B) + call * 1.0).cuda(), torch.zeros(N * B).cuda()
    two_phases[(B,)](x, y, out, count, call, N, B)
    assert out.tolist() == [2.0 * ((j + N) % (N * B) + call) for j in range(N * B)]
""",
    "puts that a barrier on the stream ends": """
@triton_dist.jit
def put(x, box, N: tl.constexpr):
    shmem.putmem_nbi_block(box, x, N * 4, (dl.rank() + 1) % dl.num_ranks())
x, box = sym(16), sym(16)
x.fill_(1.0)
nvshmem_barrier_all_on_stream()
put[(1,)](x, box, 16)
nvshmem_barrier_all_on_stream()  #- no barrier
y = box + 1  #! no barrier
torch.cuda.synchronize()
assert y.tolist() == [2.0] * 16
""",
    "an accumulator, cleared and read": """
@triton.jit
def add(x, total, out, done, N: tl.constexpr, G: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, N)
    if pid == 0: tl.store(total + i, tl.zeros((N,), tl.float32))  #+ cleared here  #! cleared here
    tl.atomic_add(total + i, tl.load(x + pid * N + i))  #! cleared here, not the last
    tl.debug_barrier()
    last = tl.atomic_add(done, 1) == G - 1
    last = pid == 0  #+ not the last
    tl.debug_barrier()
    if last: tl.store(out + i, tl.load(total + i))  #! not the last
x, total, done = torch.arange(128).cuda() * 1.0, torch.zeros(32).cuda(), torch.zeros(1, dtype=torch.int32).cuda()
out = torch.zeros(32).cuda()
add[(4,)](x, total, out, done, 32, 4)
assert out.tolist() == [sum(p * 32.0 + i for p in range(4)) for i in range(32)]
""",
    "polls of signal pads that peers count up": """
@triton_dist.jit
def meet(pad, n, W: tl.constexpr):
    me = dl.rank()
    t = tid(0)
    __syncthreads()
    if t < W:
        atomic_add(dl.symm_at(pad + me, t), 1, "sys", "release")
        while ld_acquire(pad + t, "sys") < n: pass  #! not reset
    __syncthreads()
@triton_dist.jit
def pull(x, mine, pad, out, call, N: tl.constexpr, W: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(mine + i, tl.load(x + i))
    n = 2 * call + 1
    n = 1  #+ not reset
    meet(pad, n, W)
    for r in range(W):
        tl.store(out + r * N + i, tl.load(dl.symm_at(mine, r) + i))  #! *
    meet(pad, 2 * call + 2, W)
N = 16
mine, pad = sym(N), cleared(world, torch.int32)
nvshmem_barrier_all_on_stream()
for call in range(3):
    x, out = (torch.arange(N) + 100.0 * rank).cuda() + call, torch.zeros(N * world).cuda()
    pull[(1,)](x, mine, pad, out, call, N, world)
    for r in range(world): assert out[r * N:(r + 1) * N].tolist() == [i + 100 * r + call for i in range(N)]
""",
    "data and flag in 8 bytes": """
@triton_dist.jit
def ll(x, box, out, seq, half, n, W: tl.constexpr):
    me = dl.rank()
    t = tid(0)
    for q in range(1, W):
        p = (me + q) % W
        if t < n:
            at = dl.symm_at(box, p) + ((half * W + me) * n + t) * 2
            st(at, ld(x + t))  #+ two stores  #! two stores
            st(at + 1, seq, "sys", "relaxed")  #+ two stores  #! two stores
            st_v2_u32(at, ld(x + t), seq)  #- two stores  #! one half, any flag
    for q in range(1, W):
        r = (me + W - q) % W
        if t < n:
            place = box + ((half * W + r) * n + t) * 2
            a, f = load_v2_u32(place)  #! *
            while f != seq: a, f = load_v2_u32(place)  #- any flag
            while f == 0: a, f = load_v2_u32(place)  #+ any flag
            st(out + r * n + t, a)
n = 9
box = cleared(2 * world * n * 2, torch.int32)
nvshmem_barrier_all_on_stream()
for seq in range(1, 5):
    x = (torch.arange(n, dtype=torch.int32) + 100 * rank + seq).cuda()
    out = torch.zeros(world * n, dtype=torch.int32).cuda()
    half = seq % 2
    half = 0  #+ one half
    ll[(1,)](x, box, out, seq, half, n, world)
    for r in range(world):
        if r != rank: assert out[r * n:(r + 1) * n].tolist() == [i + 100 * r + seq for i in range(n)]
""",
    "a count that the host clears between calls": """
@triton_dist.jit
def k(x, box, count, out, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    i = tl.arange(0, N * W)
    for p in range(W):
        shmem.putmem_signal_block(box + me * N, x, N * 4, count, 1, shmem.NVSHMEM_SIGNAL_ADD, p)  #! *
    shmem.signal_wait_until(count, shmem.NVSHMEM_CMP_GE, W)  #! not cleared, no barrier after
    __syncthreads()
    tl.store(out + i, tl.load(box + i))  #! not cleared
N = 16
box, count = sym(N * world), cleared(1)
out = torch.zeros(N * world).cuda()
for call in range(3):
    count.zero_()  #- not cleared  #! no barrier after
    nvshmem_barrier_all_on_stream()  #- no barrier after
    x = torch.arange(N).cuda() * 1.0 + call + 100 * rank
    k[(1,)](x, box, count, out, N, world)
    for r in range(world): assert out[r * N:(r + 1) * N].tolist() == [i + 100.0 * r + call for i in range(N)]
""",
    "a kernel on a stream that the host does not wait for": """
@triton.jit
def fill(x, S: tl.constexpr):
    i = tl.program_id(0) * S + tl.arange(0, 16)
    tl.store(x + i, i * 1.0)  #! overlap
@triton_dist.jit
def send(words): dl.notify(words, (dl.rank() + 1) % dl.num_ranks(), signal=1, sig_op="set", comm_scope="intra_node")
@triton_dist.jit
def await_left(words): dl.wait(words, 1, "sys", "acquire", waitValue=1)
words, x = cleared(1), torch.zeros(64).cuda()
nvshmem_barrier_all_on_stream()
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
step = 16
step = 8 if rank == 0 else 16  #+ overlap
with torch.cuda.stream(side):
    fill[(4,)](x, step)
    send[(1,)](words)
await_left[(1,)](words)
torch.cuda.current_stream().synchronize()
side.synchronize()
""",
    "broadcast down a tree by flags": """
@triton_dist.jit
def bcast(buf, flags, N: tl.constexpr, W: tl.constexpr, call):
    me = dl.rank()
    if me > 0:
        dl.wait(flags, 1, "sys", "acquire", waitValue=call)  #- no wait
        __syncthreads()
    for c in range(1, 3):
        child = 2 * me + c
        if child < W:
            child = child % W
            shmem.putmem_nbi_block(buf, buf, N * 4, child)  #! *
            shmem.fence()  #- no fence
            __syncthreads()
            dl.notify(flags, child, signal=call, sig_op="set", comm_scope="inter_node")
N = 32
buf, flags = sym(N), cleared(1, torch.int64)
for call in range(1, 3):
    buf.fill_(call if rank == 0 else 0)  #! no barrier
    nvshmem_barrier_all_on_stream()
    bcast[(1,)](buf, flags, N, world, call)
    assert buf.tolist() == [float(call)] * N  #! no wait, no fence, no barrier
    nvshmem_barrier_all_on_stream()  #- no barrier
""",
    "ring attention with two buffers": """
@triton_dist.jit
def attend(q, kv, out, words, free, L: tl.constexpr, D: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    right, left = (me + 1) % W, (me + W - 1) % W
    i, j = tl.arange(0, L), tl.arange(0, D)
    at = i[:, None] * D + j[None, :]
    Q = tl.load(q + at)
    m = tl.full((L,), float("-inf"), tl.float32)
    l = tl.zeros((L,), tl.float32)
    acc = tl.zeros((L, D), tl.float32)
    for s in range(W):
        cur = s % 2
        nxt = 1 - cur
        if s < W - 1:
            if s > 0:
                shmem.signal_wait_until(free, shmem.NVSHMEM_CMP_GE, s)  #- no credit
            __syncthreads()
            to, held = kv + nxt * 2 * L * D, kv + cur * 2 * L * D
            shmem.putmem_signal_block(to, held, 8 * L * D, words + s, 1, shmem.NVSHMEM_SIGNAL_SET, right)  #! *
        K = tl.load(kv + cur * 2 * L * D + at)  #! *
        V = tl.load(kv + cur * 2 * L * D + L * D + at)  #! *
        S = tl.dot(Q, tl.trans(K), input_precision="ieee")
        mn = tl.maximum(m, tl.max(S, 1))
        p = tl.exp(S - mn[:, None])
        a = tl.exp(m - mn)
        l = l * a + tl.sum(p, 1)
        acc = acc * a[:, None] + tl.dot(p, V, input_precision="ieee")
        m = mn
        if s < W - 1:
            __syncthreads()
            w = s
            w = 0  #+ word 0
            dl.wait(words + w, 1, "sys", "acquire", waitValue=1)  #- no wait
            __syncthreads()
            if tid(0) == 0: shmem.signal_op(free, 1, shmem.NVSHMEM_SIGNAL_ADD, left)
    tl.store(out + at, acc / l[:, None])
L, D = 16, 16
kv, words, free = sym(4 * L * D), cleared(world, torch.int64), cleared(1)
full = torch.rand(world, 2, L, D)
q = (torch.arange(L * D) % 7 * 0.1 + rank).cuda()
kv[: 2 * L * D].copy_(full[rank].reshape(-1).cuda())
out = torch.zeros(L * D).cuda()
nvshmem_barrier_all_on_stream()
attend[(1,)](q, kv, out, words, free, L, D, world)
print(out.sum().item() > 0)
""",
    "persistent product of gathered tiles": """
@triton_dist.jit
def push(x, whole, flags, call, n, B: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    pid = tl.program_id(0)
    for t in range(pid, W * (n // B), tl.num_programs(0)):
        peer, c = t % W, t // W
        i = c * B + tl.arange(0, B)
        tl.store(dl.symm_at(whole, peer) + me * n + i, tl.load(x + i))  #! *
        __syncthreads()  #- no sync
        shmem.fence()
        if tid(0) == 0:
            shmem.signal_op(flags + me, 1, shmem.NVSHMEM_SIGNAL_ADD, peer)
@triton_dist.jit
def product(whole, flags, out, call, n, B: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    pid = tl.program_id(0)
    for t in range(pid, W * (n // B), tl.num_programs(0)):
        r = (me + t // (n // B)) % W
        c = t % (n // B)
        need = call * (n // B)
        need = call * (n // B) - 1  #+ one too few
        need = n // B  #+ first call's
        shmem.signal_wait_until(flags + r, shmem.NVSHMEM_CMP_GE, need)  #- no wait  #! one too few, first call's
        __syncthreads()
        i = r * n + c * B + tl.arange(0, B)
        tl.store(out + i, tl.load(whole + i) * 2)  #! *
n, B = 64, 16
x, whole, flags = torch.zeros(n).cuda(), sym(world * n), cleared(world, torch.uint64)
out = torch.zeros(world * n).cuda()
side = torch.cuda.Stream()
nvshmem_barrier_all_on_stream()
for call in range(1, 4):
    x.copy_(torch.arange(n).cuda() * 1.0 + 100 * rank + call)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side): push[(3,)](x, whole, flags, call, n, B, world)
    product[(2,)](whole, flags, out, call, n, B, world)
    torch.cuda.current_stream().wait_stream(side)
    for r in range(world): assert out[r * n: (r + 1) * n].tolist() == [2.0 * (i + 100 * r + call) for i in range(n)]
    nvshmem_barrier_all_on_stream()  #- no last barrier
""",
    "blocks that meet their peers' blocks": """
@triton_dist.jit
def k(x, mine, pads, out, call, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    tl.store(mine + i, tl.load(x + i))  #! *
    __syncthreads()
    t = tid(0)
    if t < W:
        row = pid * W
        row = 0  #+ one row for all blocks
        red_release(dl.symm_at(pads + row + me, t), 1, "sys")
        while ld_acquire(pads + row + t, "sys") < 2 * call - 1: pass  #! one row for all blocks
    __syncthreads()
    for r in range(W):
        tl.store(out + r * 4 * N + i, tl.load(dl.symm_at(mine, r) + i))  #! *
    __syncthreads()
    if t < W:
        row = pid * W
        row = 0  #+ one row for all blocks
        red_release(dl.symm_at(pads + row + me, t), 1, "sys")  #- no second meeting
        while ld_acquire(pads + row + t, "sys") < 2 * call: pass  #- no second meeting
N, G = 16, 4
mine, pads = sym(N * G), cleared(G * world, torch.int32)
nvshmem_barrier_all_on_stream()
for call in range(1, 3):
    x, out = torch.arange(N * G).cuda() + 100.0 * rank + call, torch.zeros(N * G * world).cuda()
    k[(G,)](x, mine, pads, out, call, N, world)
    assert out.tolist() == [i + 100.0 * r + call for r in range(world) for i in range(N * G)]
nvshmem_barrier_all_on_stream()
""",
    "queue of tokens with head and tail": """
@triton_dist.jit
def produce(x, slots, tail, head, n, N: tl.constexpr, CAP: tl.constexpr):
    i = tl.arange(0, N)
    for k in range(n):
        if k >= CAP:
            if tid(0) == 0:
                while ld_acquire(head, "sys") < k - CAP + 1: pass  #- no space
            __syncthreads()
        slot = k % CAP
        slot = k % (CAP - 1)  #+ wrong modulus
        tl.store(dl.symm_at(slots, 1) + slot * N + i, tl.load(x + k * N + i))  #! *
        __syncthreads()  #- no sync
        if tid(0) == 0: st(dl.symm_at(tail, 1), k + 1, "sys", "release")  #- tail relaxed
        if tid(0) == 0: st(dl.symm_at(tail, 1), k + 1, "sys", "relaxed")  #+ tail relaxed  #! tail relaxed
@triton_dist.jit
def consume(slots, tail, head, out, n, N: tl.constexpr, CAP: tl.constexpr):
    i = tl.arange(0, N)
    for k in range(n):
        if tid(0) == 0:
            while ld_acquire(tail, "sys") < k + 1: pass  #- no data  #! no space
        __syncthreads()
        tl.store(out + k * N + i, tl.load(slots + k % CAP * N + i))  #! *
        __syncthreads()  #- early head
        if tid(0) == 0: st(dl.symm_at(head, 0), k + 1, "sys", "release")
N, n, CAP = 16, 10, 4
slots, tail, head, out = sym(N * CAP), cleared(1, torch.int32), cleared(1, torch.int32), torch.zeros(N * n).cuda()
x = torch.arange(N * n).cuda() * 1.0
nvshmem_barrier_all_on_stream()
if rank == 0: produce[(1,)](x, slots, tail, head, n, N, CAP)
if rank == 1:
    consume[(1,)](slots, tail, head, out, n, N, CAP)
    assert out.tolist() == x.tolist()
nvshmem_barrier_all_on_stream()
""",
    "flags of tiles, all waited for": """
@triton_dist.jit
def produce(x, buf, flags, N: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    right = (dl.rank() + 1) % dl.num_ranks()
    p = dl.symm_at(buf, right)
    p = buf  #+ local copy
    tl.store(p + i, tl.load(x + i))  #! *
    __syncthreads()  #- no sync
    dl.notify(flags + pid, right, signal=1, sig_op="set", comm_scope="intra_node")
@triton_dist.jit
def consume(buf, flags, out, G: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N * G)
    n = G
    n = 1  #+ first flag only
    token = dl.wait(flags, n, "gpu", "acquire", waitValue=1)  #- no wait
    token = 0  #+ no wait
    b = dl.consume_token(buf, token)
    tl.store(out + i, tl.load(b + i))  #! *
N, G = 16, 4
x, out = torch.arange(N * G).cuda() + 100.0 * rank, torch.zeros(N * G).cuda()
buf, flags = sym(N * G), cleared(G, torch.int64)
nvshmem_barrier_all_on_stream()
s = torch.cuda.Stream()
s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s): produce[(G,)](x, buf, flags, N)
consume[(1,)](buf, flags, out, G, N)
torch.cuda.current_stream().wait_stream(s)
assert out.tolist() == [i + 100.0 * ((rank - 1) % world) for i in range(N * G)]
""",
    "sums by atomic additions to peers": """
@triton_dist.jit
def push(x, total, N: tl.constexpr, W: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    for p in range(W):
        there = dl.symm_at(total, p) + i
        tl.atomic_add(there, tl.load(x + i), sem="relaxed", scope="sys")  #- not atomic  #! *
        tl.store(there, tl.load(there) + tl.load(x + i))  #+ not atomic  #! *
N = 16
total = sym(2 * N)
for step in range(2):
    total.zero_()  #! no first barrier
    nvshmem_barrier_all_on_stream()  #- no first barrier
    x = torch.arange(2 * N).cuda() * (rank + 0.5) + step
    push[(2,)](x, total, N, world)
    nvshmem_barrier_all_on_stream()  #- no second barrier
    y = total * 1  #! no second barrier
    assert y.tolist() == [sum(i * (r + 0.5) + step for r in range(world)) for i in range(2 * N)]
    nvshmem_barrier_all_on_stream()
""",
    "a float of a peer, swapped and compared": """
@triton_dist.jit
def k(w, out):
    me = dl.rank()
    if me == 1:
        there = dl.symm_at(w, 0)
        a = tl.atomic_xchg(there, 2.5, scope="sys")
        b = tl.atomic_cas(there, tl.full((), 2.5, tl.float32), tl.full((), 7.25, tl.float32), scope="sys")
        c = tl.atomic_add(there, 0.5, scope="sys")
        tl.store(out, a)
        tl.store(out + 1, b)
        tl.store(out + 2, c)
w, out = sym(1), torch.zeros(3).cuda()
w.fill_(1.0)
nvshmem_barrier_all_on_stream()
k[(1,)](w, out)
nvshmem_barrier_all_on_stream()
if rank == 1: assert out.tolist() == [1.0, 2.5, 7.25]
if rank == 0: assert w.item() == 7.75
""",
    "tokens to experts, slots by counters": """
@triton_dist.jit
def dispatch(
    x, idx, slots, sent, finished, box, meta, words, T,
    K: tl.constexpr, E: tl.constexpr, W: tl.constexpr, CAP: tl.constexpr, H: tl.constexpr,
):
    me = dl.rank()
    pid, progs = tl.program_id(0), tl.num_programs(0)
    h = tl.arange(0, H)
    for t in range(pid, T * K, progs):
        e = tl.load(idx + t)
        slot = tl.atomic_add(slots + e, 1, sem="relaxed", scope="gpu")  #- plain slot  #! one short, none waited for
        slot = tl.load(slots + e)  #+ plain slot  #! plain slot
        tl.store(slots + e, slot + 1)  #+ plain slot  #! plain slot
        peer, le = e // (E // W), e % (E // W)
        at = (le * W + me) * CAP + slot
        at = le * W * CAP + slot  #+ all ranks' slots
        shmem.putmem_nbi_block(box + at * H, x + (t // K) * H, H * 4, peer)  #! *
        shmem.putmem_nbi_block(meta + at, idx + T * K + t // K, 4, peer)  #! *
        shmem.quiet()  #- no quiet
        __syncthreads()
        tl.atomic_add(finished + e, 1, sem="release", scope="gpu")  #- relaxed finish  #! one short, none waited for
        tl.atomic_add(finished + e, 1, sem="relaxed", scope="gpu")  #+ relaxed finish  #! relaxed finish
    for e in range(pid, E, progs):
        n = tl.load(sent + e)
        need = n
        need = n - 1  #+ one short
        if tid(0) == 0:
            while ld(finished + e, "gpu", "acquire") < need: pass  #- none waited for  #! one short
        __syncthreads()
        word, peer = words + (e % (E // W)) * W + me, e // (E // W)
        if tid(0) == 0: shmem.signal_op(word, n + 1, shmem.NVSHMEM_SIGNAL_SET, peer)  #! words not cleared, no barrier
        tl.store(slots + e, 0)  #! one short, none waited for
        tl.store(finished + e, 0)  #! relaxed finish, one short, none waited for
@triton_dist.jit
def receive(box, meta, words, out, counts, rows, CAP: tl.constexpr, H: tl.constexpr):
    p = tl.program_id(0)
    h = tl.arange(0, H)
    if tid(0) == 0:
        while ld(words + p, "sys", "acquire") == 0: pass  #- no wait  #! words not cleared
    __syncthreads()
    n = (tl.load(words + p) - 1).to(tl.int32)  #! words not cleared, no barrier
    n = 1  #+ no wait
    tl.store(counts + p, n)
    for i in range(0, n):
        tl.store(out + (p * CAP + i) * H + h, tl.load(box + (p * CAP + i) * H + h))  #! *
        tl.store(rows + p * CAP + i, tl.load(meta + p * CAP + i))  #! *
    __syncthreads()
    if tid(0) == 0: st(words + p, 0, "gpu", "relaxed")  #- words not cleared
T, K, H = 6, 2, 16
E, CAP = 2 * world, 12
L = E // world
box, words = sym(L * world * CAP * H), cleared(L * world, torch.int64)
meta = nvshmem_create_tensor((L * world * CAP,), torch.int32)
slots, finished = torch.zeros(E, dtype=torch.int32).cuda(), torch.zeros(E, dtype=torch.int32).cuda()
x, idx = sym(T * H), nvshmem_create_tensor((T * K + T,), torch.int32)
nvshmem_barrier_all_on_stream()
for step in range(3):
    table = [[(t + 3 * k + r + step) % E for t in range(T) for k in range(K)] for r in range(world)]
    x.copy_((torch.arange(T * H) + 1000.0 * rank + step).cuda())
    idx.copy_(torch.tensor(table[rank] + list(range(T)), dtype=torch.int32).cuda())
    sent = torch.tensor([table[rank].count(e) for e in range(E)], dtype=torch.int32).cuda()
    out, counts = torch.zeros(L * world * CAP * H).cuda(), torch.zeros(L * world, dtype=torch.int32).cuda()
    rows = torch.zeros(L * world * CAP, dtype=torch.int32).cuda()
    dispatch[(3,)](x, idx, slots, sent, finished, box, meta, words, T, K, E, world, CAP, H)
    receive[(L * world,)](box, meta, words, out, counts, rows, CAP, H)
    want = [table[r].count(rank * L + l) for l in range(L) for r in range(world)]
    assert counts.tolist() == want, (rank, step, counts)
    got, where = out.tolist(), rows.tolist()
    for p in range(L * world):
        for i in range(counts[p].item()):
            row = where[p * CAP + i]
            assert got[(p * CAP + i) * H] == row * H + 1000.0 * (p % world) + step, (rank, p, i, row)
    nvshmem_barrier_all_on_stream()  #- no barrier
""",
    "rows normalized, gradients under locks": """
@triton.jit
def backward(dx, x, dw, lock, count, n, G: tl.constexpr, N: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, N)
    g = row % G
    g = row // G % G  #+ other lock
    lock += g
    count += row % G
    part = dw + row % G * N + i
    part = dw + row // 2 % G * N + i  #+ other row
    v = tl.load(x + row * N + i, mask=i < n, other=0.0) * 2
    tl.store(dx + row * N + i, v, mask=i < n)
    while tl.atomic_cas(lock, 0, 1) == 1: pass  #- no lock
    seen = tl.load(count)  #! *
    if seen == 0:
        tl.atomic_xchg(count, 1)  #! no lock, other lock, relaxed release
    else:
        v += tl.load(part, mask=i < n, other=0.0)  #! *
    tl.store(part, v, mask=i < n)  #! *
    tl.debug_barrier()  #- no barrier
    tl.atomic_xchg(lock, 0)  #- relaxed release
    tl.atomic_xchg(lock, 0, sem="relaxed")  #+ relaxed release
@triton.jit
def total(dw, out, n, G: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    acc = tl.zeros((N,), tl.float32)
    for g in range(G):
        acc += tl.load(dw + g * N + i)  #! *
    tl.store(out + i, acc)
R, N, G = 6, 16, 2
for step in range(2):
    x, dx = torch.arange(R * N).cuda() * 1.0 + step, torch.zeros(R * N).cuda()
    dw, lock = torch.zeros(G * N).cuda(), torch.zeros(2 * G, dtype=torch.int32).cuda()
    out = torch.zeros(N).cuda()
    backward[(R,)](dx, x, dw, lock, lock[G:], N, G, N)
    total[(1,)](dw, out, N, G, N)
    assert out.tolist() == [2.0 * sum(r * N + i + step for r in range(R)) for i in range(N)], out
""",
    "tiles split along k, fixed up in turn": """
@triton.jit
def gemm(a, b, c, locks, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr, KS: tl.constexpr):
    tile, s = tl.program_id(0), tl.program_id(1)
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, KS)
    x = tl.load(a + (tile * M + m[:, None]) * K + s * KS + k[None, :])
    acc = tl.dot(x, tl.load(b + (s * KS + k[:, None]) * N + n[None, :]), input_precision="ieee")
    at = c + (tile * M + m[:, None]) * N + n[None, :]
    turn = s
    turn = 0  #+ no turn
    while tl.atomic_cas(locks + tile, s, s, sem="acquire") != s: pass  #- no turn, relaxed turn
    while tl.atomic_cas(locks + tile, s, s, sem="relaxed") != s: pass  #+ relaxed turn
    if s > 0: acc += tl.load(at)  #! *
    tl.store(at, acc)  #! *
    tl.debug_barrier()  #- no sync
    nxt = (s + 1) % S
    tl.atomic_xchg(locks + tile, nxt, sem="release")
T, M, N, S, KS = 2, 16, 16, 3, 16
K = S * KS
locks = torch.zeros(T, dtype=torch.int32).cuda()
for step in range(2):
    a, b, c = torch.ones(T * M, K).cuda() + step, torch.ones(K, N).cuda(), torch.zeros(T * M, N).cuda()
    gemm[(T, S)](a, b, c, locks, K, M, N, S, KS)
    assert c.tolist() == [[K * (1.0 + step)] * N] * (T * M), c
""",
    "tile scheduler by a counter": """
@triton.jit
def work(x, out, ticket, done, n, N: tl.constexpr):
    i = tl.arange(0, N)
    t = tl.atomic_add(ticket, 1)  #- plain ticket
    t = tl.load(ticket)  #+ plain ticket  #! plain ticket
    tl.store(ticket, t + 1)  #+ plain ticket  #! plain ticket
    while t < n:
        tl.store(out + t * N + i, tl.load(x + t * N + i) * 3)  #! plain ticket
        t = tl.atomic_add(ticket, 1)  #! plain ticket
    last = tl.atomic_add(done, 1)
    if last == tl.num_programs(0) - 1:
        tl.store(ticket, 0)  #! plain ticket
        tl.store(done, 0)
N, n = 16, 10
ticket, done = torch.zeros(1, dtype=torch.int32).cuda(), torch.zeros(1, dtype=torch.int32).cuda()
for step in range(2):
    x, out = torch.arange(N * n).cuda() + 1.0 * step, torch.zeros(N * n).cuda()
    work[(4,)](x, out, ticket, done, n, N)
    assert out.tolist() == [3.0 * (i + step) for i in range(N * n)], out
""",
    "all-reduce with counters that each block keeps": """
@triton_dist.jit
def meet(flags, own, phase: tl.constexpr, W: tl.constexpr, fenced: tl.constexpr):
    me = dl.rank()
    pid = tl.program_id(0)
    t = tid(0)
    flag = tl.load(own + pid) + 1
    flag = 1  #+ no epoch
    row = ((flag % 2) * 2 + phase) * 8 + pid
    if fenced: __syncthreads()
    if t < W:
        if fenced: st(dl.symm_at(flags + row * W + me, t), flag, "sys", "release")  #- relaxed end
        if fenced: st(dl.symm_at(flags + row * W + me, t), flag, "sys", "relaxed")  #+ relaxed end
        if not fenced: st(dl.symm_at(flags + row * W + me, t), flag, "sys", "relaxed")
        if fenced:
            while ld(flags + row * W + t, "sys", "acquire") != flag: pass  #- no wait at the end
        if not fenced:
            while ld(flags + row * W + t, "sys", "acquire") != flag: pass  #- no wait at the start, relaxed start
            while ld(flags + row * W + t, "sys", "relaxed") != flag: pass  #+ relaxed start
    __syncthreads()
@triton_dist.jit
def two_stage(x, tmp, flags, own, out, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    pid, progs = tl.program_id(0), tl.num_programs(0)
    meet(flags, own, 0, W, False)
    i = tl.arange(0, N)
    for c in range(pid, 4, progs):
        acc = tl.zeros((N,), tl.float32)
        for r in range(W):
            acc += tl.load(dl.symm_at(x, (me + r) % W) + (me * 4 + c) * N + i)  #! *
        tl.store(tmp + c * N + i, acc)  #! *
    meet(flags, own, 1, W, True)
    for c in range(pid, 4, progs):
        cc = c
        cc = (c + 1) % 4  #+ other block's part
        for r in range(W):
            tl.store(out + (r * 4 + c) * N + i, tl.load(dl.symm_at(tmp, r) + cc * N + i))  #! *
    if tid(0) == 0: st(own + pid, tl.load(own + pid) + 1, "gpu", "relaxed")
N = 16
x, tmp, flags = sym(world * 4 * N), sym(4 * N), cleared(4 * 8 * world, torch.int32)
own, out = torch.zeros(8, dtype=torch.int32).cuda(), torch.zeros(world * 4 * N).cuda()
nvshmem_barrier_all_on_stream()
for step in range(3):
    x.copy_((torch.arange(world * 4 * N) * (rank + 1.0) + step).cuda())  #! *
    two_stage[(2,)](x, tmp, flags, own, out, N, world)
    want = [sum(i * (r + 1.0) + step for r in range(world)) for i in range(world * 4 * N)]
    assert out.tolist() == want, (rank, step)
nvshmem_barrier_all_on_stream()
""",
    "heads exchanged for sequence": """
@triton_dist.jit
def exchange(qkv, box, words, call, S: tl.constexpr, H: tl.constexpr, D: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    peer = tl.program_id(0)
    hp: tl.constexpr = H // W
    s, d = tl.arange(0, S), tl.arange(0, D)
    for h in range(hp):
        v = tl.load(qkv + s[:, None] * (H * D) + (peer * hp + h) * D + d[None, :])
        to = dl.symm_at(box, peer)
        row = me * S + s[:, None]
        row = me * (S - 1) + s[:, None]  #+ wrong stride
        tl.store(to + row * (hp * D) + h * D + d[None, :], v)  #! *
    __syncthreads()  #- no sync
    if tid(0) == 0:
        to_word = dl.symm_at(words, peer)
        if True: atomic_add(to_word + me, 1, scope="sys", semantic="release")  #- relaxed, gpu scope
        if True: atomic_add(to_word + me, 1, scope="sys", semantic="relaxed")  #+ relaxed
        if True: atomic_add(to_word + me, 1, scope="gpu", semantic="release")  #+ gpu scope  #! gpu scope
@triton_dist.jit
def attend(box, words, out, call, S: tl.constexpr, HD: tl.constexpr, W: tl.constexpr):
    r = tl.program_id(0)
    word = r
    word = 0  #+ first word
    need = call
    need = 1  #+ first call
    if tid(0) == 0:
        while ld_acquire(words + word, "sys") < need: pass  #- no wait  #! first call
    __syncthreads()
    i = tl.arange(0, S * HD)
    tl.store(out + r * S * HD + i, tl.load(box + r * S * HD + i) * 2)  #! *
S, D = 4, 4
H = 2 * world
box, words = sym(world * S * 2 * D), cleared(world, torch.int32)
nvshmem_barrier_all_on_stream()
for call in range(1, 4):
    x = (torch.arange(S * H * D) + 1000.0 * rank + call).cuda()
    out = torch.zeros(world * S * 2 * D).cuda()
    exchange[(world,)](x, box, words, call, S, H, D, world)
    attend[(world,)](box, words, out, call, S, 2 * D, world)
    at = [(r, s, j) for r in range(world) for s in range(S) for j in range(2 * D)]
    want = [2 * (s * H * D + rank * 2 * D + j + 1000.0 * r + call) for r, s, j in at]
    assert out.tolist() == want, (rank, call)
    nvshmem_barrier_all_on_stream()  #- no barrier
""",
    "a look ahead of its loop": """
@triton_dist.jit
def push(x, box, flag, out, call, N: tl.constexpr):
    right = (dl.rank() + 1) % dl.num_ranks()
    i = tl.arange(0, N)
    tl.store(dl.symm_at(box, right) + i, tl.load(x + i))  #! *
    __syncthreads()  #- no sync
    if tid(0) == 0:
        st(dl.symm_at(flag, right), call, "sys", "release")  #- relaxed store
        st(dl.symm_at(flag, right), call, "sys", "relaxed")  #+ relaxed store
        seen = ld(flag, "sys", "acquire")  #- no wait, not reset  #! not reset
        while seen < call: seen = ld(flag, "sys", "acquire")  #- no wait, not reset
        seen = ld(flag, "sys", "acquire")  #+ not reset  #! not reset
        while seen < 1: seen = ld(flag, "sys", "acquire")  #+ not reset
    __syncthreads()
    tl.store(out + i, tl.load(box + i))  #! *
N = 16
box, flag = sym(N), cleared(1, torch.int32)
nvshmem_barrier_all_on_stream()
for call in range(1, 4):
    x, out = torch.arange(N).cuda() + 100.0 * rank + call, torch.zeros(N).cuda()
    push[(1,)](x, box, flag, out, call, N)
    nvshmem_barrier_all_on_stream()
    assert out.tolist() == [i + 100.0 * ((rank - 1) % world) + call for i in range(N)]
""",
    "a first value that is no look": """
@triton_dist.jit
def push(x, box, flag, out, call, N: tl.constexpr):
    right = (dl.rank() + 1) % dl.num_ranks()
    i = tl.arange(0, N)
    tl.store(dl.symm_at(box, right) + i, tl.load(x + i))  #! *
    __syncthreads()
    if tid(0) == 0: st(dl.symm_at(flag, right), call, "sys", "release")
    seen = 0
    need = call
    need = 1  #+ not reset
    while seen < need: seen = ld(flag, "sys", "acquire")  #- no wait  #! not reset
    __syncthreads()
    tl.store(out + i, tl.load(box + i))  #! *
N = 16
box, flag = sym(N), cleared(1, torch.int32)
nvshmem_barrier_all_on_stream()
for call in range(1, 4):
    x, out = torch.arange(N).cuda() + 100.0 * rank + call, torch.zeros(N).cuda()
    push[(1,)](x, box, flag, out, call, N)
    nvshmem_barrier_all_on_stream()
    assert out.tolist() == [i + 100.0 * ((rank - 1) % world) + call for i in range(N)]
""",
    "grid barrier that turns a bit": """
@triton_dist.jit
def meet(bar, G: tl.constexpr):
    __syncthreads()  #- no sync
    if tid(0) == 0:
        nb = 1
        if tl.program_id(0) == 0: nb = 0x80000000 - (G - 1)
        old = atomic_add(bar, nb, scope="gpu", semantic="release")  #- relaxed
        old = atomic_add(bar, nb, scope="gpu", semantic="relaxed")  #+ relaxed
        while ((old ^ ld_acquire(bar, "gpu")) & 0x80000000) == 0: pass  #- no wait
    __syncthreads()
@triton_dist.jit
def phases(x, y, z, out, bar, N: tl.constexpr, G: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, N)
    nxt = (pid + 1) % G
    tl.store(y + pid * N + i, tl.load(x + pid * N + i) + 1)  #! *
    meet(bar, G)
    tl.store(z + pid * N + i, tl.load(y + nxt * N + i) * 2)  #! *
    meet(bar, G)  #- one meeting
    tl.store(out + pid * N + i, tl.load(z + nxt * N + i))  #! *
N, G = 16, 4
bar = torch.zeros(1, dtype=torch.uint32).cuda()
y, z = torch.zeros(N * G).cuda(), torch.zeros(N * G).cuda()
for step in range(3):
    x, out = torch.arange(N * G).cuda() * 1.0 + step, torch.zeros(N * G).cuda()
    phases[(G,)](x, y, z, out, bar, N, G)
    assert out.tolist() == [2.0 * ((i + 2 * N) % (N * G) + step + 1) for i in range(N * G)], out
""",
    "gather of two nodes, one way each": """
local = int(os.environ["LOCAL_WORLD_SIZE"])
@triton_dist.jit
def gather(buf, words, call, N: tl.constexpr, L: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    pid = tl.program_id(0)
    node, l = me // L, me % L
    pn, pl = pid // L, pid % L
    at = buf + me * N
    if pl == l and pn != node:
        shmem.putmem_signal_nbi_block(at, at, N * 4, words + me, call, shmem.NVSHMEM_SIGNAL_SET, pid)  #! *
    if pid == me:
        t = tid(0)
        if t < W and t != me:
            shmem.signal_wait_until(words + t, shmem.NVSHMEM_CMP_EQ, call)  #- none waited for  #! one buffer
        __syncthreads()
    if pl != l and pn == node:
        for n in range(W // L):
            src = n * L + l
            if n != node:
                if tid(0) == 0: shmem.signal_wait_until(words + src, shmem.NVSHMEM_CMP_EQ, call)
                __syncthreads()
            to = buf + src * N
            shmem.putmem_signal_block(to, to, N * 4, words + src, call, shmem.NVSHMEM_SIGNAL_SET, pid)  #! *
@triton.jit
def use(buf, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(buf + i))  #! *
N = 16
bufs, rows = [sym(N * world), sym(N * world)], [cleared(world), cleared(world)]
nvshmem_barrier_all_on_stream()
for call in range(1, 5):
    b = call % 2
    b = 0  #+ one buffer
    bufs[b][rank * N:(rank + 1) * N].copy_(torch.arange(N).cuda() + 100.0 * rank + call)  #! *
    gather[(world,)](bufs[b], rows[b], call, N, local, world)
    out = torch.zeros(world * N).cuda()
    use[(1,)](bufs[b], out, world * N)
    assert out.tolist() == [i + 100.0 * r + call for r in range(world) for i in range(N)]
nvshmem_barrier_all_on_stream()
torch.cuda.synchronize()
""",
    "tasks with a scoreboard": """
@triton_dist.jit
def mega(tasks, board, a, b, c, n, N: tl.constexpr):
    pid, progs = tl.program_id(0), tl.num_programs(0)
    i = tl.arange(0, N)
    for t in range(pid, n, progs):
        kind, tile = tl.load(tasks + 3 * t), tl.load(tasks + 3 * t + 1)
        need = tl.load(tasks + 3 * t + 2)
        if kind == 0:
            tl.store(b + tile * N + i, tl.load(a + tile * N + i) * 2)  #! *
        else:
            word = tile
            word = tile + 1  #+ other tile
            if tid(0) == 0:
                while ld_acquire(board + word, "gpu") < need: pass  #- no wait  #! short
            __syncthreads()
            tl.store(c + tile * N + i, tl.load(b + 2 * tile * N + i) + tl.load(b + (2 * tile + 1) * N + i))  #! *
        __syncthreads()  #- no sync
        if kind == 0:
            if tid(0) == 0: red_release(board + tile // 2, 1, "gpu")
N, T = 16, 6
for step in range(2):
    board = torch.zeros(T // 2 + 1, dtype=torch.int32).cuda()
    need = 2
    need = 1  #+ short
    table = [[0, t, 0] for t in range(T)] + [[1, t, need] for t in range(T // 2)]
    tasks = torch.tensor(table, dtype=torch.int32).reshape(-1).cuda()
    a, b, c = torch.arange(T * N).cuda() * 1.0 + step, torch.zeros(T * N).cuda(), torch.zeros(T // 2 * N).cuda()
    mega[(4,)](tasks, board, a, b, c, len(table), N)
    assert c.tolist() == [2.0 * (2 * step + 4 * t * N + 2 * i + N) for t in range(T // 2) for i in range(N)], c
""",
    "words that a stream writes": """
from cuda.bindings import driver as cu
from triton_dist.utils import nvshmem_create_tensors
@triton_dist.jit
def consume(buf, words, out, N: tl.constexpr, W: tl.constexpr):
    r = tl.program_id(0)
    w = r
    w = (r + 1) % W  #+ other word
    token = dl.wait(words + w, 1, "sys", "acquire", waitValue=1)  #- no wait
    i = tl.arange(0, N)
    tl.store(out + r * N + i, tl.load(buf + r * N + i))  #! *
N = 16
shards = nvshmem_create_tensors((N,), torch.float32, rank, world)
buf, words = torch.zeros(N * world).cuda(), cleared(world, torch.int32)
side = torch.cuda.Stream()
for step in range(2):
    words.zero_()  #- not cleared  #! *
    if step == 0: words.zero_()  #+ not cleared  #! *
    shards[rank].copy_(torch.arange(N).cuda() + 100.0 * rank + step)  #! *
    nvshmem_barrier_all_on_stream()  #- no first barrier
    side.wait_stream(torch.cuda.current_stream())  #- no event
    with torch.cuda.stream(side):
        for s in range(world):
            r = (rank + s) % world
            buf[r * N:(r + 1) * N].copy_(shards[r])  #! *
            err, = cu.cuStreamWriteValue32(side.cuda_stream, words[r:].data_ptr(), 1, 0)  #! *
    out = torch.zeros(N * world).cuda()
    consume[(world,)](buf, words, out, N, world)
    torch.cuda.current_stream().wait_stream(side)
    assert out.tolist() == [i + 100.0 * r + step for r in range(world) for i in range(N)]
    nvshmem_barrier_all_on_stream()
""",
    "sum down and up two trees": """
@triton_dist.jit
def tree(x, up, down, ups, downs, call, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    t = tl.program_id(0)
    v = (me + t) % W
    i = tl.arange(0, N)
    x += t * N
    up += t * 2 * N
    down += t * N
    ups += t * 2
    downs += t
    acc = tl.load(x + i)
    for k in range(2):
        kid = 2 * v + 1 + k
        if kid < W:
            if tid(0) == 0: shmem.signal_wait_until(ups + k, shmem.NVSHMEM_CMP_GE, call)  #- no wait up
            __syncthreads()
            acc += tl.load(up + k * N + i)  #! *
    if v > 0:
        parent, k = ((v - 1) // 2 + W - t) % W, (v - 1) % 2
        k = 0  #+ sibling's slot
        tl.store(x + i, acc)  #! *
        __syncthreads()
        shmem.putmem_signal_block(up + k * N, x, N * 4, ups + k, 1, shmem.NVSHMEM_SIGNAL_ADD, parent)  #! *
        if tid(0) == 0: shmem.signal_wait_until(downs, shmem.NVSHMEM_CMP_GE, call)  #- no wait down
        __syncthreads()
        acc = tl.load(down + i)  #! *
    tl.store(x + i, acc)  #! *
    __syncthreads()
    for k in range(2):
        kid = 2 * v + 1 + k
        if kid < W:
            shmem.putmem_nbi_block(down, x, N * 4, (kid + W - t) % W)  #! *
            shmem.fence()  #- no fence
            if tid(0) == 0: shmem.signal_op(downs, 1, shmem.NVSHMEM_SIGNAL_ADD, (kid + W - t) % W)
N = 16
x, up, down, ups, downs = sym(2 * N), sym(4 * N), sym(2 * N), cleared(4), cleared(2)
nvshmem_barrier_all_on_stream()
for call in range(1, 4):
    x.copy_(torch.arange(2 * N).cuda() + 10.0 * rank + call)
    tree[(2,)](x, up, down, ups, downs, call, N, world)
    assert x.tolist() == [sum(i + 10.0 * r + call for r in range(world)) for i in range(2 * N)], (rank, x)
    nvshmem_barrier_all_on_stream()
""",
    "ring attention on two streams": """
@triton_dist.jit
def send(kv, words, step, N: tl.constexpr, W: tl.constexpr):
    right = (dl.rank() + 1) % W
    to, held = kv + (step + 1) * N, kv + step * N
    shmem.putmem_signal_block(to, held, N * 4, words + step, 1, shmem.NVSHMEM_SIGNAL_SET, right)  #! *
@triton_dist.jit
def arrive(words, step):
    if tid(0) == 0: shmem.signal_wait_until(words + step, shmem.NVSHMEM_CMP_EQ, 1)  #- no wait
    __syncthreads()
@triton.jit
def attend(q, kv, acc, step, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(acc + i, tl.load(acc + i) + tl.load(q + i) * tl.load(kv + step * N + i))  #! *
N = 16
kv, words = sym(N * world), cleared(world)
kv[:N].copy_(torch.arange(N).cuda() + 10.0 * rank)
nvshmem_barrier_all_on_stream()
main, comm = torch.cuda.current_stream(), torch.cuda.Stream()
q, acc = torch.ones(N).cuda(), torch.zeros(N).cuda()
comm.wait_stream(main)
arrived = [torch.cuda.Event() for _ in range(world)]
for s in range(world):
    with torch.cuda.stream(comm):
        if s: arrive[(1,)](words, s - 1)
        arrived[s].record(comm)
        if s < world - 1: send[(1,)](kv, words, s, N, world)
    main.wait_event(arrived[s])  #- no event, older event
    main.wait_event(arrived[max(s - 1, 0)])  #+ older event
    attend[(1,)](q, kv, acc, s, N)
main.wait_stream(comm)
assert acc.tolist() == [sum(i + 10.0 * r for r in range(world)) for i in range(N)]
nvshmem_barrier_all_on_stream()
""",
    "warps that put tokens": """
@triton_dist.jit
def dispatch(x, box, words, topk, T, N: tl.constexpr, W: tl.constexpr, CAP: tl.constexpr):
    me = dl.rank()
    pid = tl.program_id(0)
    if pid < W:
        n = tl.load(topk + 2 * T + pid)
        t = tid(0) // 32
        while t < T:
            e = tl.load(topk + t)
            slot = tl.load(topk + T + t)
            slot = t // 2  #+ wrong slot
            if e == pid:
                shmem.putmem_nbi_warp(box + (me * CAP + slot) * N, x + t * N, N * 4, e)  #! *
            t += 4
        __syncthreads()
        shmem.fence()  #- no fence
        if tid(0) == 0: shmem.signal_op(words + me, n + 1, shmem.NVSHMEM_SIGNAL_SET, pid)
@triton_dist.jit
def take(box, words, out, counts, N: tl.constexpr, CAP: tl.constexpr):
    r = tl.program_id(0)
    if tid(0) == 0: shmem.signal_wait_until(words + r, shmem.NVSHMEM_CMP_GT, 0)  #- no wait
    __syncthreads()
    n = ld(words + r, "sys", "acquire") - 1  #- no wait
    n = tl.load(counts + r).to(tl.uint64) + 1  #+ no wait
    i = tl.arange(0, N)
    for k in range(0, CAP):
        at = (r * CAP + k) * N + i
        if k < tl.load(counts + r): tl.store(out + at, tl.load(box + at))  #! *
    __syncthreads()
    if tid(0) == 0: st(words + r, 0, "sys", "release")
N, T, CAP = 16, 6, 6
x, box, words = sym(N * T), sym(N * world * CAP), cleared(world)
nvshmem_barrier_all_on_stream()
for step in range(3):
    e = [[(t + r * 2 + step) % world for t in range(T)] for r in range(world)]
    x.copy_(torch.arange(N * T).cuda() + 1000.0 * rank + step)
    slots = [e[rank][:t].count(e[rank][t]) for t in range(T)]
    many = [e[rank].count(r) for r in range(world)]
    topk = torch.tensor(e[rank] + slots + many, dtype=torch.int32).cuda()
    counts = torch.tensor([e[r].count(rank) for r in range(world)], dtype=torch.int32).cuda()
    out = torch.zeros(N * world * CAP).cuda()
    dispatch[(world,)](x, box, words, topk, T, N, world, CAP)
    take[(world,)](box, words, out, counts, N, CAP)
    got = out.tolist()
    for r in range(world):
        rows = [t for t in range(T) if e[r][t] == rank]
        for k, t in enumerate(rows): assert got[(r * CAP + k) * N] == t * N + 1000.0 * r + step, (rank, r, k)
    nvshmem_barrier_all_on_stream()
""",
    "a look that is noted in memory": """
@triton_dist.jit
def noted(flag, seen):
    v = ld_acquire(flag, "gpu")
    tl.store(seen, v)
    return v
@triton_dist.jit
def consume(flag, seen, out, n):
    v = noted(flag, seen)
    while v < n: v = noted(flag, seen)
    __syncthreads()
    tl.store(out, tl.load(seen))
@triton_dist.jit
def produce(x, flag, n):
    for i in range(n):
        tl.store(x + i, 1.0)
        __syncthreads()
        if tid(0) == 0: red_release(flag, 1, "gpu")
n = 6
s = torch.cuda.Stream()
for call in range(3):
    flag, seen, out = (torch.zeros(1, dtype=torch.int32).cuda() for _ in range(3))
    x = torch.zeros(n).cuda()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s): consume[(1,)](flag, seen, out, n)
    produce[(1,)](x, flag, n)
    torch.cuda.current_stream().wait_stream(s)
    assert out.tolist() == [n] and seen.tolist() == [n], (out, seen)
""",
    "counts that the host clears, looked at on another stream": """
@triton.jit
def produce(y, count, call, N: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    tl.store(y + i, i.to(tl.float32) + call)  #! not cleared, relaxed
    tl.debug_barrier()
    sem: tl.constexpr = "release"
    sem: tl.constexpr = "relaxed"  #+ relaxed
    tl.atomic_add(count, 1, sem=sem, scope="gpu")
@triton.jit
def consume(y, count, out, N: tl.constexpr, B: tl.constexpr):
    while tl.atomic_add(count, 0, sem="acquire", scope="gpu") < B: pass  #! not cleared
    tl.debug_barrier()
    i = tl.arange(0, N * B)
    tl.store(out + i, tl.load(y + i))  #! not cleared, relaxed
y, count, out = torch.zeros(64).cuda(), torch.zeros(1, dtype=torch.int32).cuda(), torch.zeros(64).cuda()
s = torch.cuda.Stream()
for call in range(3):
    count.zero_()  #- not cleared
    s.wait_stream(torch.cuda.current_stream())
    produce[(4,)](y, count, call, 16)
    with torch.cuda.stream(s): consume[(1,)](y, count, out, 16, 4)
    torch.cuda.current_stream().wait_stream(s)
    assert out.tolist() == [i + call for i in range(64)]
""",
    "a peer's flag, looked at until it is of this call": """
@triton_dist.jit
def k(x, box, flag, out, call, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    right = (me + 1) % W
    i = tl.arange(0, N)
    tl.store(box + i, tl.load(x + i))  #! *
    __syncthreads()
    if tid(0) == 0:
        tl.atomic_xchg(flag, call, sem="release", scope="sys")
        need = call
        need = 1  #+ of any call
        while ld_acquire(dl.symm_at(flag, right), "sys") < need: pass  #- no look  #! of any call
    __syncthreads()
    tl.store(out + i, tl.load(dl.symm_at(box, right) + i))  #! *
    __syncthreads()
    shmem.barrier_all_block()
N = 16
box, flag = sym(N), cleared(1, torch.int32)
nvshmem_barrier_all_on_stream()
for call in range(1, 4):
    x, out = torch.arange(N).cuda() + 100.0 * rank + call, torch.zeros(N).cuda()
    k[(1,)](x, box, flag, out, call, N, world)
""",
    "a flag that is stored and says the same again": """
@triton.jit
def produce(y, flag, call, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, i.to(tl.float32) + call)  #! *
    tl.debug_barrier()
    tl.atomic_xchg(flag, 1, sem="release", scope="gpu")  #! not cleared
@triton.jit
def consume(y, flag, out, N: tl.constexpr):
    seen = tl.load(flag, volatile=True)  #! not cleared
    while seen != 1: seen = tl.load(flag, volatile=True)  #! not cleared
    tl.debug_barrier()
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(y + i))  #! *
    tl.debug_barrier()
    tl.atomic_xchg(flag, 0)  #- not cleared
y, flag, out = torch.zeros(64).cuda(), torch.zeros(1, dtype=torch.int32).cuda(), torch.zeros(64).cuda()
s = torch.cuda.Stream()
for call in range(3):
    s.wait_stream(torch.cuda.current_stream())
    produce[(1,)](y, flag, call, 64)
    with torch.cuda.stream(s): consume[(1,)](y, flag, out, 64)
    torch.cuda.current_stream().wait_stream(s)
torch.cuda.synchronize()
print(out.sum())
""",
    "decoupled look-back scan": """
@triton.jit
def scan(x, out, part, flag, N: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    v = tl.load(x + i)
    s = tl.cumsum(v, 0)
    total = tl.sum(v, 0)
    if pid == 0:
        tl.store(part, total)  #! *
        tl.debug_barrier()
        tl.atomic_xchg(flag, 2, sem="release", scope="gpu")
        tl.store(out + i, s)
    else:
        tl.store(part + pid * 2 + 1, total)  #! *
        tl.debug_barrier()
        tl.atomic_xchg(flag + pid, 1, sem="release", scope="gpu")
        before = 0.0
        j = pid - 1
        while j >= 0:
            f = tl.atomic_add(flag + j, 0, sem="acquire", scope="gpu")
            while f == 0:
                f = tl.atomic_add(flag + j, 0, sem="acquire", scope="gpu")
            if f == 2:
                before += tl.load(part + j * 2)  #! *
                j = -1
            else:
                before += tl.load(part + j * 2 + 1)  #! *
                j = j - 1
        tl.store(part + pid * 2, before + total)  #! *
        tl.debug_barrier()
        sem: tl.constexpr = "release"
        sem: tl.constexpr = "relaxed"  #+ relaxed
        tl.atomic_xchg(flag + pid, 2, sem=sem, scope="gpu")
        tl.store(out + i, s + before)
x, out = torch.ones(64).cuda(), torch.zeros(64).cuda()
part, flag = torch.zeros(16).cuda(), torch.zeros(8, dtype=torch.int32).cuda()
for call in range(2):
    flag.zero_()  #- not cleared
    scan[(8,)](x, out, part, flag, 8)
    assert out.tolist() == [i + 1.0 for i in range(64)]
""",
    "flash-decode, last split combines": """
@triton.jit
def k(kv, po, pm, out, count, N: tl.constexpr, S: tl.constexpr):
    h, s = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, N)
    v = tl.load(kv + (h * S + s) * N + i)
    m = tl.max(v, 0)
    e = tl.exp(v - m)
    tl.store(po + h * S + s, tl.sum(e, 0))  #! *
    tl.store(pm + h * S + s, m)  #! *
    tl.debug_barrier()
    at = count + h
    at = count  #+ one counter
    done = tl.atomic_add(at, 1, sem="acq_rel", scope="gpu")
    if done == S - 1:
        j = tl.arange(0, S)
        ms = tl.load(pm + h * S + j)  #! *
        l = tl.load(po + h * S + j)  #! *
        g = tl.max(ms, 0)
        tl.store(out + h, tl.sum(l * tl.exp(ms - g), 0))
        tl.store(count + h, 0)
kv, po, pm, out = torch.ones(128).cuda(), torch.zeros(8).cuda(), torch.zeros(8).cuda(), torch.zeros(2).cuda()
count = torch.zeros(2, dtype=torch.int32).cuda()
for call in range(3):
    k[(2, 4)](kv, po, pm, out, count, 16, 4)
torch.cuda.synchronize()
assert out.tolist() == [64.0] * 2
""",
    "split-k in turns by a semaphore": """
@triton.jit
def k(x, out, lock, N: tl.constexpr, K: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, N)
    v = tl.load(x + pid * N + i)
    while tl.atomic_cas(lock, pid, pid) != pid: pass  #- no turn
    tl.debug_barrier()
    if pid > 0: v += tl.load(out + i)  #! *
    tl.store(out + i, v)  #! *
    tl.debug_barrier()
    nxt = (pid + 1) % K
    sem: tl.constexpr = "acq_rel"
    sem: tl.constexpr = "relaxed"  #+ relaxed
    tl.atomic_xchg(lock, nxt, sem=sem)
x, out, lock = torch.ones(64).cuda(), torch.zeros(16).cuda(), torch.zeros(1, dtype=torch.int32).cuda()
for call in range(3):
    k[(4,)](x, out, lock, 16, 4)
    assert out.tolist() == [4.0] * 16
""",
    "lost update by st and ld": """
@triton_dist.jit
def k(total, N: tl.constexpr):
    if tid(0) == 0:
        atomic_add(total, 1, "gpu", "relaxed")  #- relaxed, acquired
        st(total, ld(total, "gpu", "relaxed") + 1, "gpu", "relaxed")  #+ relaxed  #! relaxed
        v = ld(total, "gpu", "acquire")  #+ acquired  #! acquired
        st(total, v + 1, "gpu", "release")  #+ acquired  #! acquired
total = torch.zeros(1, dtype=torch.int32).cuda()
k[(4,)](total, 1)
print(total.item())
""",
    "lost update across ranks": """
@triton_dist.jit
def k(total):
    if tid(0) == 0:
        atomic_add(dl.symm_at(total, 0), 1, "sys", "relaxed")  #- by two
        st(dl.symm_at(total, 0), ld(dl.symm_at(total, 0), "sys", "relaxed") + 1, "sys", "relaxed")  #+ by two  #! by two
total = cleared(1, torch.int32)
nvshmem_barrier_all_on_stream()
k[(1,)](total)
nvshmem_barrier_all_on_stream()
torch.cuda.synchronize()
if rank == 0: print(total.item())
""",
    "turns by ld and st": """
@triton_dist.jit
def k(turn, total):
    pid = tl.program_id(0)
    if tid(0) == 0:
        v = ld(turn, "gpu", "acquire")  #- no turn
        while v != pid: v = ld(turn, "gpu", "acquire")  #- no turn
    __syncthreads()
    tl.store(total, tl.load(total) + 1)  #! *
    __syncthreads()
    if tid(0) == 0: st(turn, ld(turn, "gpu", "relaxed") + 1, "gpu", "release")  #! *
turn, total = torch.zeros(1, dtype=torch.int32).cuda(), torch.zeros(1).cuda()
k[(4,)](turn, total)
torch.cuda.synchronize()
assert total.item() == 4 and turn.item() == 4
""",
    "turns, the value that ended the loop": """
@triton_dist.jit
def k(turn, total):
    pid = tl.program_id(0)
    if tid(0) == 0:
        v = ld(turn, "gpu", "acquire")
        while v != pid: v = ld(turn, "gpu", "acquire")
        tl.store(total, tl.load(total) + 1)
        st(turn, v + 1, "gpu", "release")
turn, total = torch.zeros(1, dtype=torch.int32).cuda(), torch.zeros(1).cuda()
k[(4,)](turn, total)
torch.cuda.synchronize()
assert turn.item() == 4
""",
    "a count under a lock": """
@triton_dist.jit
def k(lock, total):
    if tid(0) == 0:
        while atomic_cas(lock, 0, 1, "gpu", "acquire") != 0: pass  #- no lock
        st(total, ld(total, "gpu", "relaxed") + 1, "gpu", "relaxed")  #! no lock
        st(lock, 0, "gpu", "release")  #- no lock
lock, total = torch.zeros(1, dtype=torch.int32).cuda(), torch.zeros(1, dtype=torch.int32).cuda()
k[(4,)](lock, total)
torch.cuda.synchronize()
print(total.item())
""",
    "lost update in memory by volatile loads": """
@triton.jit
def k(total):
    tl.atomic_add(total, 1)  #- volatile
    v = tl.load(total, volatile=True)  #+ volatile  #! volatile
    tl.atomic_xchg(total, v + 1)  #+ volatile  #! volatile
total = torch.zeros(1, dtype=torch.int32).cuda()
k[(4,)](total)
torch.cuda.synchronize()
print(total.item())
""",
    "work stealing by counters, results counted": """
@triton.jit
def k(x, out, heads, done, result, Q: tl.constexpr, T: tl.constexpr, N: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, N)
    for q in range(Q):
        own = (pid + q) % Q
        t = tl.atomic_add(heads + own, 1)
        while t < T:
            at = (own * T + t) * N
            tl.store(out + at + i, tl.load(x + at + i) * 2)  #! *
            t = tl.atomic_add(heads + own, 1)
    tl.debug_barrier()
    sem: tl.constexpr = "acq_rel"
    sem: tl.constexpr = "relaxed"  #+ relaxed
    last = tl.atomic_add(done, 1, sem=sem)
    if last == Q - 1:
        j = tl.arange(0, Q * T * N)
        tl.store(result, tl.sum(tl.load(out + j), 0))  #! *
x, out = torch.ones(64).cuda(), torch.zeros(64).cuda()
heads, done = torch.zeros(4, dtype=torch.int32).cuda(), torch.zeros(1, dtype=torch.int32).cuda()
result = torch.zeros(1).cuda()
for call in range(2):
    heads.zero_(); done.zero_()
    k[(4,)](x, out, heads, done, result, 4, 2, 8)
    assert result.item() == 128
""",
    "thread 0 waits, all read": """
@triton_dist.jit
def k(x, box, flag, out, call, N: tl.constexpr):
    right = (dl.rank() + 1) % dl.num_ranks()
    i = tl.arange(0, N)
    tl.store(dl.symm_at(box, right) + i, tl.load(x + i))  #! no sync before, no sync after
    __syncthreads()  #- no sync before
    if tid(0) == 0:
        st(dl.symm_at(flag, right), call, "sys", "release")
        while ld_acquire(flag, "sys") != call: pass
    __syncthreads()  #- no sync after
    tl.store(out + i, tl.load(box + i))  #! no sync before, no sync after
x, box, flag, out = torch.ones(64).cuda(), sym(64), cleared(1, torch.int32), torch.zeros(64).cuda()
nvshmem_barrier_all_on_stream()
k[(1,)](x, box, flag, out, 1, 64)
torch.cuda.synchronize()
print(out.sum())
""",
    "custom all-reduce, start and end flags by threads": """
@triton_dist.jit
def meet(flags, call, W: tl.constexpr, slot: tl.constexpr):
    me = dl.rank()
    t = tid(0)
    if t < W:
        st(dl.symm_at(flags, t) + slot * W + me, call, "sys", "release")
        while ld(flags + slot * W + t, "sys", "acquire") < call: pass
    __syncthreads()
@triton_dist.jit
def k(buf, flags, out, call, N: tl.constexpr, W: tl.constexpr):
    meet(flags, call, W, 0)  #- no start
    i = tl.arange(0, N)
    acc = tl.zeros((N,), tl.float32)
    for r in range(W): acc += tl.load(dl.symm_at(buf, r) + i)  #! *
    tl.store(out + i, acc)
    __syncthreads()
    meet(flags, call, W, 1)  #- no end
buf, flags, out = sym(32), cleared(8, torch.int32), torch.zeros(32).cuda()
nvshmem_barrier_all_on_stream()
for call in range(1, 4):
    c = call
    c = 1  #+ same call
    buf.fill_(rank + call)  #! *
    k[(1,)](buf, flags, out, c, 32, world)
torch.cuda.synchronize()
assert out[0].item() == 6 + 12
""",
    "queue of many producers and consumers, sequence numbers": """
@triton.jit
def k(seq, data, head, tail, out, P: tl.constexpr, M: tl.constexpr, S: tl.constexpr):
    pid = tl.program_id(0)
    if pid < P:
        for m in range(M):
            t = tl.atomic_add(tail, 1, sem="relaxed")
            slot = t % S
            want = t
            want = t - S  #+ no room
            s = tl.atomic_add(seq + slot, 0, sem="acquire")  #! no room
            while s < want: s = tl.atomic_add(seq + slot, 0, sem="acquire")  #! no room
            tl.store(data + slot, pid * M + m)  #! *
            sem: tl.constexpr = "release"
            sem: tl.constexpr = "relaxed"  #+ relaxed
            tl.atomic_xchg(seq + slot, t + 1, sem=sem)
    else:
        for m in range(M):
            h = tl.atomic_add(head, 1, sem="relaxed")
            slot = h % S
            while tl.atomic_add(seq + slot, 0, sem="acquire") != h + 1: pass  #- no wait
            tl.store(out + h, tl.load(data + slot))  #! *
            tl.atomic_xchg(seq + slot, h + S, sem="release")
S, P, M = 4, 2, 6
seq = torch.arange(S, dtype=torch.int32).cuda()
data, out = torch.zeros(S, dtype=torch.int32).cuda(), torch.zeros(P * M, dtype=torch.int32).cuda()
head, tail = torch.zeros(1, dtype=torch.int32).cuda(), torch.zeros(1, dtype=torch.int32).cuda()
k[(2 * P,)](seq, data, head, tail, out, P, M, S)
torch.cuda.synchronize()
assert sorted(out.tolist()) == list(range(P * M)), out
""",
    "dissemination barrier with parity and sense": """
@triton_dist.jit
def barrier(flags, parity, sense, W: tl.constexpr, L: tl.constexpr):
    me = dl.rank()
    if tid(0) == 0:
        d = 1
        for r in range(L):
            at = (parity * L + r)
            st(dl.symm_at(flags, (me + d) % W) + at, sense, "sys", "release")
            while ld(flags + at, "sys", "acquire") != sense: pass  #- no wait
            d = d * 2
    __syncthreads()
@triton_dist.jit
def k(buf, flags, out, R: tl.constexpr, N: tl.constexpr, W: tl.constexpr, L: tl.constexpr):
    me = dl.rank()
    i = tl.arange(0, N)
    right = (me + 1) % W
    parity = 0
    sense = 1
    for r in range(R):
        tl.store(buf + (r % 2) * N + i, tl.full((N,), me + r, tl.float32))  #! *
        __syncthreads()
        barrier(flags, parity, sense, W, L)
        tl.store(out + r * N + i, tl.load(dl.symm_at(buf, right) + (r % 2) * N + i))  #! *
        __syncthreads()
        if parity == 1:
            sense = 1 - sense  #- one sense
            sense = 1  #+ one sense
        parity = 1 - parity
R, N = 6, 16
buf, flags, out = sym(2 * N), cleared(8, torch.int32), torch.zeros(R * N).cuda()
nvshmem_barrier_all_on_stream()
k[(1,)](buf, flags, out, R, N, world, 2)
torch.cuda.synchronize()
assert out.view(R, N)[:, 0].tolist() == [(rank + 1) % world + r for r in range(R)]
""",
    "two-level all-reduce, leaders": """
@triton_dist.jit
def k(x, part, top, flags, out, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    i = tl.arange(0, N)
    leader = me // 2 * 2
    tl.store(dl.symm_at(part, leader) + (me % 2) * N + i, tl.load(x + i))  #! *
    __syncthreads()
    if tid(0) == 0: red_release(dl.symm_at(flags, leader), 1, "sys")
    if me == leader:
        if tid(0) == 0:
            while ld_acquire(flags, "sys") < 2: pass  #- leader early
        __syncthreads()
        s = tl.load(part + i) + tl.load(part + N + i)  #! *
        other = (me + 2) % W
        tl.store(dl.symm_at(top, other) + i, s)  #! *
        __syncthreads()
        if tid(0) == 0:
            red_release(dl.symm_at(flags + 1, other), 1, "sys")
            while ld_acquire(flags + 1, "sys") < 1: pass  #- other pair early
        __syncthreads()
        s += tl.load(top + i)  #! *
        tl.store(out + i, s)
        tl.store(dl.symm_at(out, me + 1) + i, s)  #! *
        __syncthreads()
        if tid(0) == 0: red_release(dl.symm_at(flags + 2, me + 1), 1, "sys")
    else:
        if tid(0) == 0:
            while ld_acquire(flags + 2, "sys") < 1: pass  #- member early
        __syncthreads()
        tl.store(x + i, tl.load(out + i))  #! *
x, part, top, flags, out = torch.full((16,), rank + 1.0).cuda(), sym(32), sym(16), cleared(4, torch.int32), sym(16)
nvshmem_barrier_all_on_stream()
k[(1,)](x, part, top, flags, out, 16, world)
nvshmem_barrier_all_on_stream()
assert out.tolist() == [10.0] * 16
""",
    "blocks wait for their tiles by one thread, persistent": """
@triton_dist.jit
def k(x, box, flags, out, T: tl.constexpr, N: tl.constexpr, W: tl.constexpr):
    me, pid, P = dl.rank(), tl.program_id(0), tl.num_programs(0)
    i = tl.arange(0, N)
    for t in range(pid, T, P):
        v = tl.load(x + t * N + i)
        for p in range(W):
            tl.store(dl.symm_at(box, p) + (me * T + t) * N + i, v)  #! *
        __syncthreads()  #- no sync
        if tid(0) < W: st(dl.symm_at(flags, tid(0)) + me * T + t, 1, "sys", "release")
    for t in range(pid, W * T, P):
        if tid(0) == 0:
            while ld_acquire(flags + t, "sys") != 1: pass  #- no wait
        __syncthreads()
        tl.store(out + t * N + i, tl.load(box + t * N + i))  #! *
x, out = torch.full((64,), rank + 1.0).cuda(), torch.zeros(64 * world).cuda()
box, flags = sym(64 * world), cleared(4 * world, torch.int32)
nvshmem_barrier_all_on_stream()
k[(3,)](x, box, flags, out, 4, 16, world)
torch.cuda.synchronize()
assert out.view(world, 64)[:, 5].tolist() == [r + 1.0 for r in range(world)]
""",
    "stream-k, a chain of fix-ups with a flag each": """
@triton.jit
def k(x, part, flag, out, N: tl.constexpr, G: tl.constexpr, call):
    pid = tl.program_id(0)
    i = tl.arange(0, N)
    v = tl.load(x + pid * N + i)
    if pid < G - 1:
        f = tl.load(flag + pid + 1, volatile=True)  #! one value
        while f != call: f = tl.load(flag + pid + 1, volatile=True)  #- no wait  #! one value
        tl.debug_barrier()
        v += tl.load(part + (pid + 1) * N + i)  #! *
    if pid == 0:
        tl.store(out + i, v)
    else:
        tl.store(part + pid * N + i, v)  #! *
        tl.debug_barrier()  #- no barrier
        tl.atomic_xchg(flag + pid, call)
x, part, out = torch.ones(64).cuda(), torch.zeros(64).cuda(), torch.zeros(16).cuda()
flag = torch.zeros(4, dtype=torch.int32).cuda()
for call in range(1, 4):
    c = call
    c = 1  #+ one value
    k[(4,)](x, part, flag, out, 16, 4, c)
torch.cuda.synchronize()
assert out.tolist() == [4.0] * 16
""",
    "a ring with credits, head and tail by ld and st of one writer": """
@triton_dist.jit
def k(x, ring, head, tail, out, M: tl.constexpr, S: tl.constexpr, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    right, left = (me + 1) % W, (me + W - 1) % W
    i = tl.arange(0, N)
    for m in range(M):
        if tid(0) == 0:
            while m - ld_acquire(tail, "sys") >= S: pass  #- no credit
        __syncthreads()
        tl.store(dl.symm_at(ring, right) + (m % S) * N + i, tl.load(x + m * N + i))  #! *
        __syncthreads()
        if tid(0) == 0:
            st(dl.symm_at(head, right), ld(dl.symm_at(head, right), "sys", "relaxed") + 1, "sys", "release")
            while ld_acquire(head, "sys") < m + 1: pass  #- no data
        __syncthreads()
        tl.store(out + m * N + i, tl.load(ring + (m % S) * N + i))  #! *
        __syncthreads()
        if tid(0) == 0: st(dl.symm_at(tail, left), m + 1, "sys", "release")
M, S, N = 6, 2, 8
x, ring, out = torch.arange(M * N).float().cuda() + 100 * rank, sym(S * N), torch.zeros(M * N).cuda()
head, tail = cleared(1, torch.int32), cleared(1, torch.int32)
nvshmem_barrier_all_on_stream()
k[(1,)](x, ring, head, tail, out, M, S, N, world)
torch.cuda.synchronize()
assert out.tolist() == [100.0 * ((rank - 1) % world) + i for i in range(M * N)]
""",
    "seqlock by relaxed looks and fences": """
@triton_dist.jit
def k(seq, data, out, N: tl.constexpr):
    pid = tl.program_id(0)
    if tid(0) == 0:
        if pid == 0:
            for r in range(3):
                st(seq, 2 * r + 1, "gpu", "relaxed")
                membar("gpu")
                for j in range(N): st(data + j, r + 1, "gpu", "relaxed")
                membar("gpu")
                st(seq, 2 * r + 2, "gpu", "relaxed")
        else:
            done = 0
            while done == 0:
                a = ld(seq, "gpu", "acquire")
                if a % 2 == 0:
                    s = 0
                    for j in range(N): s += ld(data + j, "gpu", "relaxed")
                    membar("gpu")
                    b = ld(seq, "gpu", "relaxed")
                    if a == b:
                        if a > 0:
                            st(out + pid, s, "gpu", "relaxed")
                            done = 1
seq = torch.zeros(1, dtype=torch.int32).cuda()
data, out = (torch.zeros(4, dtype=torch.int32).cuda() for _ in range(2))
k[(3,)](seq, data, out, 4)
torch.cuda.synchronize()
print(out.tolist())
""",
    "test and test-and-set": """
@triton_dist.jit
def k(lock, total, R: tl.constexpr):
    if tid(0) == 0:
        for r in range(R):
            got = 0
            while got == 0:
                while ld(lock, "gpu", "relaxed") != 0: pass
                if atomic_cas(lock, 0, 1, "gpu", "acquire") == 0: got = 1
            tl.store(total, tl.load(total) + 1)  #! relaxed
            sem: tl.constexpr = "release"
            sem: tl.constexpr = "relaxed"  #+ relaxed
            st(lock, 0, "gpu", sem)
lock, total = torch.zeros(1, dtype=torch.int32).cuda(), torch.zeros(1).cuda()
k[(4,)](lock, total, 3)
torch.cuda.synchronize()
assert total.item() == 12
""",
    "ticket lock": """
@triton_dist.jit
def k(next, serving, total, R: tl.constexpr):
    if tid(0) == 0:
        for r in range(R):
            t = atomic_add(next, 1, "gpu", "relaxed")
            while ld_acquire(serving, "gpu") != t: pass  #- no wait
            tl.store(total, tl.load(total) + 1)  #! no wait
            st(serving, t + 1, "gpu", "release")
next, serving, total = (torch.zeros(1, dtype=torch.int32).cuda() for _ in range(3))
k[(4,)](next, serving, total, 3)
torch.cuda.synchronize()
print(total.item())
""",
    "ping-pong by a flag that toggles, relaxed with fences": """
@triton_dist.jit
def k(flag, a, b, R: tl.constexpr):
    pid = tl.program_id(0)
    if tid(0) == 0:
        for r in range(R):
            if pid == 0:
                while ld(flag, "gpu", "relaxed") != 0: pass
                membar("gpu")  #- no fence
                tl.store(a, tl.load(b) + 1)  #! no fence
                membar("gpu")
                st(flag, 1, "gpu", "relaxed")
            else:
                while ld(flag, "gpu", "relaxed") != 1: pass
                membar("gpu")
                tl.store(b, tl.load(a) + 1)  #! no fence
                membar("gpu")
                st(flag, 0, "gpu", "relaxed")
flag, a, b = (torch.zeros(1, dtype=torch.int32).cuda() for _ in range(3))
k[(2,)](flag, a, b, 4)
torch.cuda.synchronize()
assert b.item() == 8
""",
    "ping-pong between ranks, acquire and release": """
@triton_dist.jit
def k(flag, box, out, R: tl.constexpr, N: tl.constexpr):
    me = dl.rank()
    i = tl.arange(0, N)
    if me < 2:
        peer = 1 - me
        for r in range(R):
            if (r + me) % 2 == 0:
                tl.store(dl.symm_at(box, peer) + i, tl.full((N,), r, tl.float32))  #! *
                __syncthreads()
                if tid(0) == 0: st(dl.symm_at(flag, peer), 1, "sys", "release")
            else:
                if tid(0) == 0:
                    while ld(flag, "sys", "acquire") != 1: pass  #! not cleared
                    st(flag, 0, "sys", "relaxed")  #- not cleared
                __syncthreads()
                tl.store(out + r * N + i, tl.load(box + i))  #! *
                __syncthreads()
flag, box, out = cleared(1, torch.int32), sym(8), torch.zeros(64).cuda()
nvshmem_barrier_all_on_stream()
k[(1,)](flag, box, out, 6, 8)
torch.cuda.synchronize()
print(out.sum().item())
""",
    "sense reversing barrier in a grid": """
@triton.jit
def meet(count, sense, local, G: tl.constexpr):
    tl.debug_barrier()
    if tl.atomic_add(count, 1, sem="acq_rel") == G - 1:
        tl.atomic_xchg(count, 0, sem="relaxed")
        tl.atomic_xchg(sense, local, sem="release")
    else:
        while tl.atomic_add(sense, 0, sem="acquire") != local: pass
    tl.debug_barrier()
@triton.jit
def k(x, count, sense, out, R: tl.constexpr, N: tl.constexpr, G: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, N)
    local = 1
    for r in range(R):
        tl.store(x + pid * N + i, tl.full((N,), r + pid, tl.float32))  #! *
        meet(count, sense, local, G)
        o = (pid + 1) % G
        tl.store(out + (r * G + pid) * N + i, tl.load(x + o * N + i))  #! *
        local = 1 - local  #- one sense
        meet(count, sense, local, G)
        local = 1 - local  #- one sense
x, out = torch.zeros(64).cuda(), torch.zeros(256).cuda()
count, sense = torch.zeros(1, dtype=torch.int32).cuda(), torch.zeros(1, dtype=torch.int32).cuda()
k[(4,)](x, count, sense, out, 4, 16, 4)
torch.cuda.synchronize()
assert out.view(4, 4, 16)[:, :, 0].tolist() == [[float(r + (p + 1) % 4) for p in range(4)] for r in range(4)]
""",
    "mailbox that is consumed by exchange": """
@triton.jit
def k(box, full, out, R: tl.constexpr):
    pid = tl.program_id(0)
    for r in range(R):
        if pid == 0:
            while tl.atomic_add(full, 0, sem="acquire") != 0: pass  #- no room
            tl.store(box, r + 1)  #! *
            tl.atomic_xchg(full, 1, sem="release")
        else:
            while tl.atomic_add(full, 0, sem="acquire") != 1: pass
            tl.store(out + r, tl.load(box))  #! *
            tl.atomic_xchg(full, 0, sem="release")
box, full, out = torch.zeros(1).cuda(), torch.zeros(1, dtype=torch.int32).cuda(), torch.zeros(4).cuda()
k[(2,)](box, full, out, 4)
torch.cuda.synchronize()
print(out.tolist())
""",
    "count of arrivals that the last one clears": """
@triton.jit
def k(x, part, count, out, G: tl.constexpr, N: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, N)
    tl.store(part + pid * N + i, tl.load(x + pid * N + i) * 2)  #! *
    tl.debug_barrier()
    if tl.atomic_add(count, 1, sem="acq_rel") == G - 1:
        tl.atomic_xchg(count, 0, sem="relaxed")
        acc = tl.zeros((N,), tl.float32)
        for g in range(G): acc += tl.load(part + g * N + i)  #! *
        tl.store(out + i, acc)
x, part, out = torch.ones(64).cuda(), torch.zeros(64).cuda(), torch.zeros(16).cuda()
count = torch.zeros(1, dtype=torch.int32).cuda()
s = torch.cuda.Stream()
for call in range(4):
    if call % 2:
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s): k[(4,)](x, part, count, out, 4, 16)
        torch.cuda.current_stream().wait_stream(s)
    else:
        k[(4,)](x, part, count, out, 4, 16)
    x.add_(1)
torch.cuda.synchronize()
assert out.tolist() == [32.0] * 16
""",
    "count of a tensor's view, reset by copy_ and fill_": """
@triton.jit
def produce(y, count, N: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    tl.store(y + i, tl.full((N,), 1.0, tl.float32))
    tl.debug_barrier()
    tl.atomic_add(count, 1, sem="release")
@triton.jit
def consume(y, count, out, N: tl.constexpr, G: tl.constexpr):
    while tl.atomic_add(count, 0, sem="acquire") < G: pass
    tl.debug_barrier()
    i = tl.arange(0, N * G)
    tl.store(out + i, tl.load(y + i))
y, out = torch.zeros(64).cuda(), torch.zeros(64).cuda()
counts, zeros = torch.zeros(8, dtype=torch.int32).cuda(), torch.zeros(2, dtype=torch.int32).cuda()
s, cur = torch.cuda.Stream(), torch.cuda.current_stream()
for call in range(4):
    if call % 2: counts[2:4].copy_(zeros)
    else: counts.fill_(0)
    s.wait_stream(cur)
    produce[(4,)](y, counts[3:], 16)
    with torch.cuda.stream(s): consume[(1,)](y, counts[3:], out, 16, 4)
    cur.wait_stream(s)
torch.cuda.synchronize()
print(out.sum().item())
""",
    "a count that the host clears while it is waited for": """
@triton.jit
def produce(y, count, call):
    tl.store(y, call)  #! *
    tl.atomic_add(count, 1, sem="release")
@triton.jit
def consume(y, count, out):
    while tl.atomic_add(count, 0, sem="acquire") < 1: pass  #- no wait
    tl.store(out, tl.load(y))  #! *
y, count, out = (torch.zeros(1, dtype=torch.int32).cuda() for _ in range(3))
s, cur = torch.cuda.Stream(), torch.cuda.current_stream()
for call in range(3):
    count.fill_(0)
    s.wait_stream(cur)
    with torch.cuda.stream(s): consume[(1,)](y, count, out)
    produce[(1,)](y, count, call)
    cur.wait_stream(s)
torch.cuda.synchronize()
assert out.item() == 2
""",
    "data and flags that are packed and put": """
@triton_dist.jit
def pack(x, pk, flag, n, B: tl.constexpr):
    i = tl.arange(0, B)
    src = tl.load(x + i, mask=i < n, other=0)
    j = tl.arange(0, 2 * B)
    both = tl.interleave(src, tl.full((B,), 0, tl.int32) + flag)
    tl.store(pk + j, both, mask=j < 2 * n)
@triton_dist.jit
def ll(x, pk, box, out, flag, n, B: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    pack(x, pk, flag, n, B)  #! *
    __syncthreads()
    for q in range(1, W):
        shmem.putmem_nbi_block(box + me * 2 * n, pk, n * 8, (me + q) % W)  #! *
    t = tid(0)
    for q in range(1, W):
        r = (me + W - q) % W
        if t < n // 2:
            place = box + r * 2 * n + t * 4
            a, f, b, g = load_v4_u32(place)  #! *
            while f != flag or g != flag: a, f, b, g = load_v4_u32(place)  #! *
            st(out + r * n + 2 * t, a)
            st(out + r * n + 2 * t + 1, b)
n = 16
box, pk = cleared(2 * world * 2 * n, torch.int32), nvshmem_create_tensor((2, 2 * n), torch.int32)
nvshmem_barrier_all_on_stream()
for seq in range(1, 5):
    x = (torch.arange(n, dtype=torch.int32) + 100 * rank + seq).cuda()
    out = torch.zeros(world * n, dtype=torch.int32).cuda()
    half = seq % 2
    half = 0  #+ one half
    ll[(1,)](x, pk[seq % 2], box[half * world * 2 * n:], out, seq, n, 16, world)
    for r in range(world):
        if r != rank: assert out[r * n:(r + 1) * n].tolist() == [i + 100 * r + seq for i in range(n)]
""",
    "a word put by itself as a flag": """
@triton_dist.jit
def send(x, one, box, flag, out, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    right = (me + 1) % W
    shmem.putmem_nbi_block(box, x, N * 4, right)  #! *
    shmem.fence()  #- no order
    __syncthreads()
    shmem.putmem_nbi_block(flag, one, 4, right)
    if tid(0) == 0:
        while ld(flag, "sys", "acquire") != 1: pass  #- no wait
    __syncthreads()
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(box + i))  #! *
N = 16
x, box, one, flag = sym(N), sym(N), nvshmem_create_tensor((1,), torch.int32), cleared(1, torch.int32)
x.copy_(torch.arange(N).cuda() + 100.0 * rank)
one.fill_(1)
out = torch.zeros(N).cuda()
nvshmem_barrier_all_on_stream()
send[(1,)](x, one, box, flag, out, N, world)
assert out.tolist() == [i + 100.0 * ((rank - 1) % world) for i in range(N)]
nvshmem_barrier_all_on_stream()
""",
    "int_p as a flag": """
@triton_dist.jit
def send(x, box, flag, out, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    right = (me + 1) % W
    shmem.putmem_block(box, x, N * 4, right)  #! *
    shmem.fence()  #- no fence
    __syncthreads()
    if tid(0) == 0:
        shmem.int_p(flag, 1, right)
        while ld(flag, "sys", "acquire") != 1: pass  #- no wait
    __syncthreads()
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(box + i))  #! *
N = 16
x, box, flag = sym(N), sym(N), cleared(1, torch.int32)
x.copy_(torch.arange(N).cuda() + 100.0 * rank)
out = torch.zeros(N).cuda()
nvshmem_barrier_all_on_stream()
send[(1,)](x, box, flag, out, N, world)
assert out.tolist() == [i + 100.0 * ((rank - 1) % world) for i in range(N)]
nvshmem_barrier_all_on_stream()
""",
    "two slots, a word for each, and credits": """
@triton_dist.jit
def pipe(x, ring, full, free, out, C, N: tl.constexpr, D: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    right = (me + 1) % W
    left = (me + W - 1) % W
    i = tl.arange(0, N)
    for c in range(C):
        slot = c % D
        if c >= D:
            shmem.signal_wait_until(free, shmem.NVSHMEM_CMP_GE, c - D + 1)  #- no credit, one credit too few
            shmem.signal_wait_until(free, shmem.NVSHMEM_CMP_GE, c - D)  #+ one credit too few  #! one credit too few
        at, word = ring + slot * N, full + slot
        shmem.putmem_signal_nbi_block(at, x + c * N, N * 4, word, c + 1, shmem.NVSHMEM_SIGNAL_SET, right)  #! *
        shmem.signal_wait_until(word, shmem.NVSHMEM_CMP_EQ, c + 1)  #- no wait, not 0  #! no credit, one credit too few
        shmem.signal_wait_until(word, shmem.NVSHMEM_CMP_NE, 0)  #+ not 0
        __syncthreads()
        tl.store(out + c * N + i, tl.load(ring + slot * N + i))  #! *
        __syncthreads()  #- released before read
        if tid(0) == 0: shmem.signal_op(free, 1, shmem.NVSHMEM_SIGNAL_ADD, left)
N, D, C = 16, 2, 6
x, ring, full, free = sym(C * N), sym(D * N), cleared(2), cleared(1)
x.copy_(torch.arange(C * N).cuda() + 1000.0 * rank)
out = torch.zeros(C * N).cuda()
nvshmem_barrier_all_on_stream()
pipe[(1,)](x, ring, full, free, out, C, N, D, world)
assert out.tolist() == [i + 1000.0 * ((rank - 1) % world) for i in range(C * N)]
nvshmem_barrier_all_on_stream()
""",
    "a put to the own rank, a fence and an own word": """
@triton_dist.jit
def k(x, box, words, out, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    pid = tl.program_id(0)
    i = tl.arange(0, N)
    if pid == 0:
        shmem.putmem_nbi_block(box, x, N * 4, me)  #! no wait
        shmem.fence()
        __syncthreads()
        if tid(0) == 0: st(words, 1, "sys", "release")
    else:
        if tid(0) == 0:
            while ld(words, "sys", "acquire") != 1: pass  #- no wait
        __syncthreads()
        tl.store(out + i, tl.load(box + i))  #! no wait
N = 16
x, box, words, out = sym(N), sym(N), cleared(1, torch.uint64), torch.zeros(N).cuda()
x.copy_(torch.arange(N).cuda() + 100.0 * rank)
nvshmem_barrier_all_on_stream()
k[(2,)](x, box, words, out, N, world)
assert out.tolist() == [i + 100.0 * rank for i in range(N)]
""",
    "rows of experts, their counts ahead": """
@triton_dist.jit
def counts(cnt, all_cnt, cw, call, W: tl.constexpr):
    me = dl.rank()
    p = tl.program_id(0)
    shmem.putmem_signal_block(all_cnt + me, cnt + p, 4, cw + me, call, shmem.NVSHMEM_SIGNAL_SET, p)  #! *
@triton_dist.jit
def dispatch(x, offs, cnt, box, words, call, CAP: tl.constexpr, H: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    p = tl.program_id(0)
    n = tl.load(cnt + p)
    o = tl.load(offs + p)
    base = me * CAP
    base = me * (CAP - 1)  #+ slots overlap
    shmem.putmem_nbi_block(box + base * H, x + o * H, n * H * 4, p)  #! *
    shmem.fence()  #- no fence
    __syncthreads()
    if tid(0) == 0: shmem.signal_op(words + me, call, shmem.NVSHMEM_SIGNAL_SET, p)
@triton_dist.jit
def combine(box, all_cnt, cw, words, out, got, call, CAP: tl.constexpr, H: tl.constexpr, W: tl.constexpr):
    r = tl.program_id(0)
    h = tl.arange(0, H)
    shmem.signal_wait_until(cw + r, shmem.NVSHMEM_CMP_GE, call)
    shmem.signal_wait_until(words + r, shmem.NVSHMEM_CMP_GE, call)  #- rows not awaited, wrong value
    shmem.signal_wait_until(words + r, shmem.NVSHMEM_CMP_GE, 1)  #+ wrong value
    __syncthreads()
    n = tl.load(all_cnt + r)  #! *
    tl.store(got + r, n)
    for k in range(n):
        tl.store(out + (r * CAP + k) * H + h, tl.load(box + (r * CAP + k) * H + h) * 2)  #! *
T, H, CAP = 12, 16, 3
x, box = sym(T * H), sym(world * CAP * H)
cnt, all_cnt = nvshmem_create_tensor((world,), torch.int32), nvshmem_create_tensor((world,), torch.int32)
cw, words = cleared(world), cleared(world)
nvshmem_barrier_all_on_stream()
for call in range(1, 4):
    table = [[1 + (r + p + call) % 3 for p in range(world)] for r in range(world)]
    c = torch.tensor(table[rank], dtype=torch.int32)
    cnt.copy_(c.cuda())
    o = [sum(table[rank][:p]) for p in range(world)]
    offs = torch.tensor(o, dtype=torch.int32).cuda()
    x.copy_(torch.arange(T * H).cuda() + 1000.0 * rank + call)
    out, got = torch.zeros(world * CAP * H).cuda(), torch.zeros(world, dtype=torch.int32).cuda()
    counts[(world,)](cnt, all_cnt, cw, call, world)
    dispatch[(world,)](x, offs, cnt, box, words, call, CAP, H, world)
    combine[(world,)](box, all_cnt, cw, words, out, got, call, CAP, H, world)
    nvshmem_barrier_all_on_stream()
    for r in range(world):
        o = sum(table[r][:rank]) * H
        want = [2 * (o + i + 1000.0 * r + call) for i in range(table[r][rank] * H)]
        assert out[r * CAP * H:r * CAP * H + len(want)].tolist() == want, (rank, r)
""",
    "slots of several receivers, with credits": """
@triton_dist.jit
def send(x, ring, full, free, C, N: tl.constexpr, D: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    if me == 0:
        for c in range(C):
            slot = c % D
            if c >= D:
                for r in range(1, W): shmem.signal_wait_until(free + r, 5, c - D + 1)  #- one word for all
                shmem.signal_wait_until(free, 5, (W - 1) * (c - D + 1))  #+ one word for all  #! one word for all
            for r in range(1, W):
                shmem.putmem_signal_block(ring + slot * N, x + c * N, N * 4, full, 1, 10, r)  #! *
                shmem.quiet()  #- no quiet
@triton_dist.jit
def take(ring, full, free, out, C, N: tl.constexpr, D: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    i = tl.arange(0, N)
    if me > 0:
        for c in range(C):
            slot = c % D
            shmem.signal_wait_until(full, 5, c + 1)  #! no quiet
            __syncthreads()
            tl.store(out + c * N + i, tl.load(ring + slot * N + i))  #! *
            __syncthreads()
            w = me
            w = 0  #+ one word for all
            if tid(0) == 0: shmem.signal_op(free + w, 1, shmem.NVSHMEM_SIGNAL_ADD, 0)  #! one word for all
N, D, C = 8, 2, 6
x, ring, full, free = sym(C * N), sym(D * N), cleared(1), cleared(world)
x.copy_(torch.arange(C * N).cuda())
out = torch.zeros(C * N).cuda()
nvshmem_barrier_all_on_stream()
if rank == 0: send[(1,)](x, ring, full, free, C, N, D, world)
else: take[(1,)](ring, full, free, out, C, N, D, world)
torch.cuda.synchronize()
if rank: assert out.tolist() == list(range(C * N))
nvshmem_barrier_all_on_stream()
""",
    "a maximum of blocks": """
@triton.jit
def best(x, top, N: tl.constexpr):
    pid = tl.program_id(0)
    v = tl.max(tl.load(x + pid * N + tl.arange(0, N)))
    tl.atomic_max(top, v)  #- looked for and stored, looked for and exchanged
    if v > ld(top): st(top, v)  #+ looked for and stored  #! looked for and stored
    if v > ld(top): tl.atomic_xchg(top, v)  #+ looked for and exchanged  #! looked for and exchanged

x = (torch.arange(64, dtype=torch.int32).cuda() * 37) % 64
top = torch.zeros(1, dtype=torch.int32).cuda()
best[(4,)](x, top, 16)
assert top.item() == 63
""",
    "scan whose blocks store status and sum in one word": """
@triton.jit
def scan(x, words, out, N: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    v = tl.load(x + i)
    total, before = tl.sum(v).to(tl.int64), tl.zeros((), tl.int64)
    if pid > 0:
        tl.store(words + pid, (1 << 32) | total)  #! *
        at = pid - 1
        while at >= 0:
            w = tl.load(words + at, volatile=True)  #- as data
            w = tl.load(words + at)  #+ as data  #! *
            if w >> 32 > 0:
                before += w & 0xFFFFFFFF
                at = tl.where(w >> 32 == 2, -1, at - 1)
            at = tl.where(w == 0, -1, at)  #+ as data
    tl.store(words + pid, (2 << 32) | (before + total))  #! *
    tl.store(out + i, tl.cumsum(v) + before.to(tl.int32))
x = torch.ones(256, dtype=torch.int32).cuda()
for call in range(2):
    words, out = torch.zeros(4, dtype=torch.int64).cuda(), torch.zeros(256, dtype=torch.int32).cuda()
    scan[(4,)](x, words, out, 64)
    torch.cuda.synchronize()
print(out[-1])
""",
    "sums that are handed on, numbered by calls": """
@triton.jit
def k(x, words, data, out, call, N: tl.constexpr):
    pid = tl.program_id(0)
    v = tl.sum(tl.load(x + pid * N + tl.arange(0, N))).to(tl.int64)
    i = tl.arange(0, 16)
    tl.store(data + pid * 16 + i, i + call)  #! beside the word
    tl.debug_barrier()
    if pid > 0:
        w = tl.load(words + pid - 1, volatile=True)
        while (w >> 32) != call: w = tl.load(words + pid - 1, volatile=True)
        v += w & 0xFFFFFFFF
        tl.store(out + 16 + i, tl.load(data + pid * 16 - 16 + i))  #+ beside the word  #! beside the word
    tl.store(words + pid, v + tl.full((), call, tl.int64) * 4294967296)
    tl.store(out + pid, v)
x = torch.ones(256, dtype=torch.int32).cuda()
words, out = torch.zeros(4, dtype=torch.int64).cuda(), torch.zeros(32, dtype=torch.int64).cuda()
data = torch.zeros(64, dtype=torch.int64).cuda()
for call in range(1, 4):
    k[(4,)](x, words, data, out, call, 64)
    torch.cuda.synchronize()
    assert out[:4].tolist() == [64, 128, 192, 256]
""",
    "a word of two readers, cleared by one of them": """
@triton.jit
def k(word, out):
    pid = tl.program_id(0)
    if pid == 0:
        tl.store(word, 7)  #! *
    else:
        w = tl.load(word, volatile=True)  #! *
        while w == 0: w = tl.load(word, volatile=True)  #! *
        tl.store(out + pid, w)
        if pid == 1: tl.store(word, 0)  #+ cleared  #! cleared
word, out = torch.zeros(1, dtype=torch.int32).cuda(), torch.zeros(3, dtype=torch.int32).cuda()
k[(3,)](word, out)
torch.cuda.synchronize()
print(out)
""",
    "blocks of packed words, polled as a block": """
@triton.jit
def k(words, data, out, N: tl.constexpr):
    i = tl.arange(0, N)
    if tl.program_id(0) == 0:
        tl.store(data + i, i)  #! *
        tl.debug_barrier()
        tl.store(words + i, (tl.full((), 1, tl.int64) << 32) | i)
    else:
        w = tl.load(words + i, volatile=True)
        while tl.sum(((w >> 32) != 1).to(tl.int32)) > 0: w = tl.load(words + i, volatile=True)
        tl.debug_barrier()
        tl.store(out + i, tl.load(data + i))  #+ data beside  #! *
        tl.store(out + N + i, (w & 0xFFFFFFFF).to(tl.int32))
words = torch.zeros(64, dtype=torch.int64).cuda()
data, out = torch.zeros(64, dtype=torch.int32).cuda(), torch.zeros(128, dtype=torch.int32).cuda()
k[(2,)](words, data, out, 64)
torch.cuda.synchronize()
assert out[64:].tolist() == list(range(64))
""",
    "relaxed looks of some threads, fences of all": """
@triton_dist.jit
def k(x, mine, flag, out, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    i = tl.arange(0, N)
    tl.store(mine + i, tl.load(x + i) + me)  #! *
    __syncthreads()
    membar("sys")
    if tid(0) < W: st(dl.symm_at(flag, tid(0)) + me, 1, scope="sys", semantic="relaxed")
    if tid(0) < W:
        while ld(flag + tid(0), "sys", "relaxed") != 1: pass
    __syncthreads()  #- no sync
    membar("sys")  #- fence of one
    if tid(0) == 0: membar("sys")  #+ fence of one
    for r in range(W):
        tl.store(out + r * N + i, tl.load(dl.symm_at(mine, r) + i))  #! *
mine, flag = sym(64), cleared(world, torch.int32)
nvshmem_barrier_all_on_stream()
x, out = torch.ones(64).cuda(), torch.zeros(64 * world).cuda()
k[(1,)](x, mine, flag, out, 64, world)
nvshmem_barrier_all_on_stream()
print(out.sum())
""",
    "gets of one thread": """
@triton_dist.jit
def pull(x, slots, out, N: tl.constexpr, W: tl.constexpr):
    j = tl.arange(0, N * W)
    if tid(0) == 0:
        for r in range(W):
            shmem.getmem_nbi(slots + r * N, x, N * 4, r)  #! *
        shmem.quiet()  #- no quiet
    __syncthreads()  #- no sync
    tl.store(out + j, tl.load(slots + j))  #! *
x, slots, out = sym(64), sym(64 * world), torch.zeros(64 * world).cuda()
x.fill_(rank)
nvshmem_barrier_all_on_stream()
pull[(1,)](x, slots, out, 64, world)
torch.cuda.synchronize()
print(out.sum())
""",
    "histogram whose offsets one block makes": """
@triton.jit
def k(keys, hist, offs, bar, out, N: tl.constexpr, B: tl.constexpr, G: tl.constexpr):
    pid = tl.program_id(0)
    key = tl.load(keys + pid * N + tl.arange(0, N))
    tl.atomic_add(hist + key, 1, sem="relaxed")  #! no barrier, one less
    tl.debug_barrier()
    tl.atomic_add(bar, 1, sem="acq_rel")
    need = G
    need = G - 1  #+ one less
    if pid == 0:
        while tl.atomic_add(bar, 0, sem="acquire") < need: pass  #- no barrier  #! one less
        tl.debug_barrier()
        b = tl.arange(0, B)
        h = tl.load(hist + b)  #! no barrier, one less
        tl.store(offs + b, tl.cumsum(h, 0) - h)  #! no second barrier
        tl.debug_barrier()
        tl.atomic_add(bar, G, sem="release")
    while tl.atomic_add(bar, 0, sem="acquire") < 2 * G: pass  #- no second barrier
    tl.debug_barrier()
    at = tl.atomic_add(offs + key, 1, sem="relaxed")  #! no second barrier
    tl.store(out + at, key)  #! no second barrier
keys = (torch.arange(64) % 4).to(torch.int32).cuda()
hist, offs, bar, out = (torch.zeros(n, dtype=torch.int32).cuda() for n in (4, 4, 1, 64))
k[(4,)](keys, hist, offs, bar, out, 16, 4, 4)
torch.cuda.synchronize()
assert out.sum() == 96
""",
    "sums at an owner by atomics of peers, counted": """
@triton_dist.jit
def k(x, acc, count, out, call, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    i = tl.arange(0, N)
    for p in range(W):
        tl.atomic_add(dl.symm_at(acc, p) + i, tl.load(x + p * N + i), sem="relaxed", scope="sys")  #! *
        __syncthreads()  #- no sync
        if tid(0) == 0: atomic_add(dl.symm_at(count, p), 1, scope="sys", semantic="release")
    need = W * call
    need = W * call - 1  #+ one less
    if tid(0) == 0:
        while ld_acquire(count, "sys") < need: pass  #- no wait  #! one less
    __syncthreads()
    tl.store(out + i, tl.load(acc + i))  #! *
x, acc, count, out = torch.ones(32 * world).cuda(), sym(32), cleared(1, torch.int32), torch.zeros(32).cuda()
for call in range(1, 3):
    acc.fill_(0)  #! no sync, no wait
    nvshmem_barrier_all_on_stream()
    k[(1,)](x, acc, count, out, call, 32, world)
torch.cuda.synchronize()
assert out.sum().item() == 32 * world
""",
    "all to all by data with flags, each flag looked at": """
@triton_dist.jit
def send(x, box, call, N: tl.constexpr, W: tl.constexpr):
    me, peer = dl.rank(), tl.program_id(0)
    t = tid(0)
    to = dl.symm_at(box, peer) + (call % 2 * W + me) * 2 * N
    if t < N // 2: st_v4_u32(to + 4 * t, ld(x + peer * N + 2 * t), call, ld(x + peer * N + 2 * t + 1), call)  #! *
@triton_dist.jit
def take(box, out, call, N: tl.constexpr, W: tl.constexpr):
    source = tl.program_id(0)
    t = tid(0)
    place = box + (call % 2 * W + source) * 2 * N + 4 * t
    if t < N // 2:
        a, f, b, g = load_v4_u32(place)  #! *
        while f != call or g != call: a, f, b, g = load_v4_u32(place)  #- no look, one flag  #! *
        while f != call: a, f, b, g = load_v4_u32(place)  #+ one flag  #! *
        st(out + source * N + 2 * t, a)
        st(out + source * N + 2 * t + 1, b)
N = 16
box = cleared(2 * world * 2 * N, torch.int32)
nvshmem_barrier_all_on_stream()
for call in range(1, 4):
    x = torch.arange(world * N, dtype=torch.int32).cuda() + 1000 * rank + call
    out = torch.zeros(world * N, dtype=torch.int32).cuda()
    send[(world,)](x, box, call, N, world)
    take[(world,)](box, out, call, N, world)
    assert out.tolist() == [rank * N + i + 1000 * r + call for r in range(world) for i in range(N)]
""",
    "rows of peers, four words at once": """
@triton_dist.jit
def rows(x, words, out, call, N: tl.constexpr, W: tl.constexpr):
    me, r = dl.rank(), tl.program_id(0)
    t = tid(0)
    if t == 0: dl.notify(words + me, r, signal=call, sig_op="set", comm_scope="intra_node")
    if t == 0: dl.wait(words + r, 1, "sys", "acquire", waitValue=call)  #- no wait
    __syncthreads()
    if t < N // 4:
        a, b, c, d = load_v4_u32(dl.symm_at(x, r) + 4 * t)  #! *
        s = a + b + c + d
        st(out + r * (N // 4) + t, s)
N = 32
x, words = nvshmem_create_tensor((N,), torch.int32), cleared(world)
nvshmem_barrier_all_on_stream()
for call in range(1, 3):
    x.copy_(torch.arange(N, dtype=torch.int32).cuda() + 100 * rank + call)  #! *
    out = torch.zeros(world * N // 4, dtype=torch.int32).cuda()
    rows[(world,)](x, words, out, call, N, world)
    assert out.tolist() == [16 * i + 6 + 4 * (100 * r + call) for r in range(world) for i in range(N // 4)]
    nvshmem_barrier_all_on_stream()  #- no barrier
""",
    "pulls with words that say ready and done": """
@triton_dist.jit
def pull(buf, ready, done, out, call, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    source = (me + tl.program_id(0)) % W
    if tid(0) == 0: shmem.signal_op(ready + me, call, shmem.NVSHMEM_SIGNAL_SET, source)
    if tid(0) == 0: shmem.signal_wait_until(ready + source, shmem.NVSHMEM_CMP_EQ, call)  #- no wait, any call
    if tid(0) == 0: shmem.signal_wait_until(ready + source, shmem.NVSHMEM_CMP_GE, 1)  #+ any call
    __syncthreads()  #- no sync
    i = tl.arange(0, N)
    tl.store(out + source * N + i, tl.load(dl.symm_at(buf, source) + i))  #! *
    __syncthreads()  #- done early
    if tid(0) == 0: shmem.signal_op(done + me, call, shmem.NVSHMEM_SIGNAL_SET, source)
@triton_dist.jit
def finish(done, call, W: tl.constexpr):
    if tid(0) < W: shmem.signal_wait_until(done + tid(0), shmem.NVSHMEM_CMP_GE, call)
    __syncthreads()
N = 32
buf, ready, done = sym(N), cleared(world), cleared(world)
nvshmem_barrier_all_on_stream()
for call in range(1, 5):
    buf.copy_(torch.arange(N).cuda() + 100.0 * rank + call)  #! *
    out = torch.zeros(N * world).cuda()
    pull[(world,)](buf, ready, done, out, call, N, world)
    finish[(1,)](done, call, world)
    assert out.tolist() == [i + 100.0 * r + call for r in range(world) for i in range(N)]
""",
    "parts of all ranks, counted and loaded": """
@triton_dist.jit
def parts(x, part, count, out, call, N: tl.constexpr, W: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    tl.store(part + i, tl.load(x + i))  #! *
    __syncthreads()  #- no sync
    t = tid(0)
    if t < W: atomic_add(dl.symm_at(count, t) + pid, 1, "sys", "release")
    if t == 0:
        while ld_acquire(count + pid, "sys") < W * call: pass  #- no wait, all but one, first call
        while ld_acquire(count + pid, "sys") < W * call - 1: pass  #+ all but one  #! all but one
        while ld_acquire(count + pid, "sys") < W: pass  #+ first call  #! first call
    __syncthreads()
    total = tl.zeros((N,), tl.float32)
    for r in range(W): total += tl.load(dl.symm_at(part, r) + i)  #! *
    tl.store(out + i, total)
N, G = 16, 4
part, count = sym(N * G), cleared(G, torch.int32)
nvshmem_barrier_all_on_stream()
for call in range(1, 4):
    x, out = torch.arange(N * G).cuda() + 10.0 * rank + call, torch.zeros(N * G).cuda()
    parts[(G,)](x, part, count, out, call, N, world)
    assert out.tolist() == [sum(i + 10.0 * r + call for r in range(world)) for i in range(N * G)]
    nvshmem_barrier_all_on_stream()  #- no barrier
""",
    "sums in a peer's memory, row by row under its lock": """
@triton_dist.jit
def add(total, lock, x, N: tl.constexpr, R: tl.constexpr):
    i, me = tl.arange(0, N), dl.rank()
    there, word = dl.symm_at(total, 0), dl.symm_at(lock, 0)
    if tid(0) == 0:
        while atomic_cas(word, 0, 1, "sys", "acquire") != 0: pass  #- no lock
    __syncthreads()
    for r in range(R): tl.store(there + i, tl.load(there + i) + tl.load(x + r * N + i))  #! *
    __syncthreads()  #- no sync
    if tid(0) == 0: st(word, 0, "sys", "release")  #- relaxed unlock
    if tid(0) == 0: st(word, 0, "sys", "relaxed")  #+ relaxed unlock
N, R = 64, 3
total, lock, x = sym(N), cleared(1, torch.int32), torch.arange(R * N).cuda() * 1.0 + rank
total.fill_(0.0)
nvshmem_barrier_all_on_stream()
add[(1,)](total, lock, x, N, R)
nvshmem_barrier_all_on_stream()
want = [sum(float(r * N + i + q) for r in range(R) for q in range(world)) for i in range(N)]
assert rank or total.tolist() == want, total.tolist()
""",
    "rows with their counts in flags, cleared by who has taken them": """
@triton_dist.jit
def dispatch(x, counts, box, words, half, N: tl.constexpr, T: tl.constexpr, W: tl.constexpr):
    me, e = dl.rank(), tl.program_id(0)
    i = tl.arange(0, N)
    n = tl.load(counts + e)
    for t in range(n): tl.store(dl.symm_at(box, e) + ((half * W + me) * T + t) * N + i, tl.load(x + i) + t)  #! *
    __syncthreads()  #- no sync
    word = dl.symm_at(words, e) + half * W + me
    tl.atomic_xchg(word, -n - 1, sem="release", scope="sys")  #- relaxed
    tl.atomic_xchg(word, -n - 1, sem="relaxed", scope="sys")  #+ relaxed
@triton_dist.jit
def combine(box, words, out, half, N: tl.constexpr, T: tl.constexpr, W: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, N)
    v = tl.atomic_add(words + half * W + r, 0, sem="acquire", scope="sys")  #! not cleared
    while v == 0: v = tl.atomic_add(words + half * W + r, 0, sem="acquire", scope="sys")
    acc = tl.zeros((N,), tl.float32)
    for t in range(-v - 1): acc += tl.load(box + ((half * W + r) * T + t) * N + i)  #! *
    tl.store(out + r * N + i, acc)
    tl.store(words + half * W + r, 0)  #- not cleared
N, T = 16, 4
box, words = sym(2 * world * T * N), cleared(2 * world, torch.int32)
nvshmem_barrier_all_on_stream()
for call in range(4):
    count = lambda r, e: (r + e + call) % T + 1
    counts = torch.tensor([count(rank, e) for e in range(world)], dtype=torch.int32).cuda()
    x, out = torch.arange(N).cuda() + 100.0 * rank + call, torch.zeros(N * world).cuda()
    dispatch[(world,)](x, counts, box, words, call % 2, N, T, world)
    combine[(world,)](box, words, out, call % 2, N, T, world)
    want = [sum(i + 100.0 * r + call + t for t in range(count(r, rank))) for r in range(world) for i in range(N)]
    assert out.tolist() == want, out.tolist()
""",
    "data with flags in words that a kernel has cleared": """
@triton_dist.jit
def clear(box, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(box + i, 0, mask=i < n)
@triton_dist.jit
def ll(x, box, out, seq, half, n, W: tl.constexpr):
    me = dl.rank()
    t = tid(0)
    for q in range(1, W):
        to = dl.symm_at(box, (me + q) % W) + (half * W + me) * n * 2
        if t < n: st_v2_u32(to + t * 2, ld(x + t), seq)  #! *
    for q in range(1, W):
        r = (me + W - q) % W
        if t < n:
            place = box + (half * W + r) * n * 2 + t * 2
            a, f = load_v2_u32(place)  #! *
            while f != seq: a, f = load_v2_u32(place)  #- any flag
            while f == 0: a, f = load_v2_u32(place)  #+ any flag  #! *
            st(out + r * n + t, a)
n = 8
box = nvshmem_create_tensor((2 * world * n * 2,), torch.int32)
clear[(1,)](box, 2 * world * n * 2, 256)
nvshmem_barrier_all_on_stream()
for seq in range(1, 5):
    x = (torch.arange(n, dtype=torch.int32) + 100 * rank + seq).cuda()
    out = torch.zeros(world * n, dtype=torch.int32).cuda()
    half = seq % 2
    half = 0  #+ one half
    ll[(1,)](x, box, out, seq, half, n, world)
    for r in range(world):
        if r != rank: assert out[r * n:(r + 1) * n].tolist() == [i + 100 * r + seq for i in range(n)]
""",
    "counts to all ranks, added by each to its own, too": """
@triton_dist.jit
def push(x, out, words, call, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    i = tl.arange(0, N)
    for r in range(W): tl.store(dl.symm_at(out, r) + me * N + i, tl.load(x + i))  #! *
    __syncthreads()
    sem: tl.constexpr = "release"
    sem: tl.constexpr = "acq_rel"  #+ no wait for adding both ways
    for r in range(1, W + 1): tl.atomic_add(dl.symm_at(words, (me + r) % W), 1, sem=sem, scope="sys")
    if tid(0) == 0:
        while ld_acquire(words, "sys") < W * call: pass  #- no wait, no wait for adding both ways
    __syncthreads()
N = 16
words, out = cleared(1, torch.int64), sym(world * N)
nvshmem_barrier_all_on_stream()
for call in range(1, 3):
    push[(1,)](torch.arange(N).cuda() * 1.0 + rank + call, out, words, call, N, world)
    got = out.tolist()  #! *
    nvshmem_barrier_all_on_stream()
    assert got == [i + r + 1.0 * call for r in range(world) for i in range(N)]
""",
    "a word that is polled relaxed, and added to for what it tells": """
@triton_dist.jit
def push(x, out, words, call, N: tl.constexpr, W: tl.constexpr):
    me = dl.rank()
    i = tl.arange(0, N)
    for r in range(W): tl.store(dl.symm_at(out, r) + me * N + i, tl.load(x + i))  #! *
    __syncthreads()
    if tid(0) == 0:
        for r in range(W): atomic_add(dl.symm_at(words, r), 1, "sys", "release")
        while ld(words, "sys", "relaxed") < W * call: pass  #- no wait
        atomic_add(words, 0, "sys", "acquire")  #- no acquire
    __syncthreads()
    for r in range(W): tl.load(out + r * N + i)  #! *
N = 16
words, out = cleared(1, torch.int64), sym(world * N)
nvshmem_barrier_all_on_stream()
for call in range(1, 3):
    push[(1,)](torch.arange(N).cuda() * 1.0 + rank + call, out, words, call, N, world)
    nvshmem_barrier_all_on_stream()
""",
    "stages of a pipeline in a grid, two counts each": """
@triton_dist.jit
def k(x, ring, full, empty, out, n, S: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    slots = S
    slots = S - 1  #+ too few slots
    if tl.program_id(0) == 0:
        for t in range(n):
            if tid(0) == 0:
                while ld(empty + t % S, "gpu", "acquire") < t // S: pass  #- no empty wait
            __syncthreads()  #- no sync before
            tl.store(ring + t % slots * N + i, tl.load(x + t * N + i) * 2.0)  #! *
            __syncthreads()  #- no sync after
            if tid(0) == 0: atomic_add(full + t % S, 1, "gpu", "release")  #- relaxed full
            if tid(0) == 0: atomic_add(full + t % S, 1, "gpu", "relaxed")  #+ relaxed full
    else:
        for t in range(n):
            if tid(0) == 0:
                need = t // S + 1
                need = t // S  #+ old full
                while ld(full + t % S, "gpu", "acquire") < need: pass  #- no full wait  #! too few slots, no empty wait
            __syncthreads()
            tl.store(out + t * N + i, tl.load(ring + t % slots * N + i) + 1.0)  #! *
            __syncthreads()  #- released early
            if tid(0) == 0: atomic_add(empty + t % S, 1, "gpu", "release")
n, S, N = 10, 3, 32
x, ring, out = torch.arange(n * N).cuda() * 1.0, torch.zeros(S * N).cuda(), torch.zeros(n * N).cuda()
full, empty = torch.zeros(S, dtype=torch.int32).cuda(), torch.zeros(S, dtype=torch.int32).cuda()
k[(2,)](x, ring, full, empty, out, n, S, N)
torch.cuda.synchronize()
assert out.tolist() == [2.0 * i + 1 for i in range(n * N)]
""",
    "rows as many as a word says": """
@triton_dist.jit
def send(x, box, words, n, peer, N: tl.constexpr):
    i = tl.arange(0, N)
    for t in range(n): tl.store(dl.symm_at(box, peer) + t * N + i, tl.load(x + t * N + i))
    __syncthreads()
    if tid(0) == 0: st(dl.symm_at(words, peer), n + 1, "sys", "release")  #! looked at once
@triton_dist.jit
def take(box, words, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = ld_acquire(words, "sys")  #! looked at once
    while v == 0: v = ld_acquire(words, "sys")  #- looked at once
    __syncthreads()
    for t in range(v - 1): tl.store(out + t * N + i, tl.load(box + t * N + i))
N = 8
box, words, out = sym(4 * N), cleared(1, torch.int32), torch.zeros(4 * N).cuda()
nvshmem_barrier_all_on_stream()
send[(1,)](torch.ones(4 * N).cuda() * rank, box, words, 3, (rank + 1) % world, N)
take[(1,)](box, words, out, N)
torch.cuda.synchronize()
nvshmem_barrier_all_on_stream()
""",
    "rows as many as a word says, of which another one tells": """
@triton_dist.jit
def send(x, box, words, n, peer, N: tl.constexpr):
    i = tl.arange(0, N)
    for t in range(n): tl.store(dl.symm_at(box, peer) + t * N + i, tl.load(x + t * N + i))  #! no wait
    __syncthreads()
    if tid(0) == 0: st(dl.symm_at(words, peer) + 1, n, "sys", "relaxed")  #! no wait
    if tid(0) == 0: st(dl.symm_at(words, peer), 1, "sys", "release")
@triton_dist.jit
def take(box, words, out, N: tl.constexpr):
    i = tl.arange(0, N)
    if tid(0) == 0:
        while ld_acquire(words, "sys") == 0: pass  #- no wait
    __syncthreads()
    n = ld(words + 1, "sys", "relaxed")  #! no wait
    for t in range(n): tl.store(out + t * N + i, tl.load(box + t * N + i))  #! no wait
N = 8
box, words, out = sym(4 * N), cleared(2, torch.int32), torch.zeros(4 * N).cuda()
nvshmem_barrier_all_on_stream()
send[(1,)](torch.ones(4 * N).cuda() * rank, box, words, 3, (rank + 1) % world, N)
take[(1,)](box, words, out, N)
torch.cuda.synchronize()
nvshmem_barrier_all_on_stream()
""",
}
