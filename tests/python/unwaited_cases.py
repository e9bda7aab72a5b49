"""Programs that use a tensor of an operation before they have waited for it, and programs that only look as if."""

from __future__ import annotations

START = """
import torch
import torch.distributed as dist

dist.init_process_group("{backend}")
rank, world = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", rank) if "{backend}" == "nccl" else torch.device("cpu")
x, y = torch.ones(8, device=device), torch.ones(4, device=device)
big = torch.zeros(4 * world, device=device)
"""

WRONG = {
    "reads a result": "w = dist.all_reduce(x, async_op=True); z = x * 2; w.wait()",
    "overwrites a result": "w = dist.all_reduce(x, async_op=True); x.zero_(); w.wait()",
    "overwrites what is read": "w = dist.all_gather_into_tensor(big, y, async_op=True); y.zero_(); w.wait()",
    "reads a part": "w = dist.all_reduce(x, async_op=True); z = x[2:3] + 1; w.wait()",
    "reads a view of a part": "w = dist.all_reduce(x[:4], async_op=True); z = x.view(2, 4)[0] + 1; w.wait()",
    "looks at it": "w = dist.all_reduce(x, async_op=True); z = x.tolist(); w.wait()",
    "looks at an element": "w = dist.all_reduce(x, async_op=True); z = x[3].item(); w.wait()",
    "makes a number of it": "w = dist.all_reduce(x[:1], async_op=True); z = float(x[0]); w.wait()",
    "never waits": "dist.all_reduce(x, async_op=True); z = x.sum()",
    "has a future": "f = dist.all_reduce(x, async_op=True).get_future(); z = x * 2; f.wait()",
    "waits for another": "w = dist.all_reduce(x, async_op=True); v = dist.broadcast(y, 0, group=dist.new_group(), "
    "async_op=True); v.wait(); z = x + 1; w.wait()",
    "overwrites what is sent": "w = dist.isend(y, (rank + 1) % world); y.fill_(3); "
    "dist.recv(x[:4], (rank - 1) % world); w.wait()",
    "reads what is received": "w = dist.irecv(y, (rank - 1) % world); dist.send(x[:4], (rank + 1) % world); "
    "z = y + 1; w.wait()",
}
"""By what a program does, its text. It does so in its last line."""

RIGHT = {
    "waits": "w = dist.all_reduce(x, async_op=True); w.wait(); z = x * 2",
    "reads what is read": "w = dist.all_gather_into_tensor(big, y, async_op=True); z = y * 2; w.wait(); z += big[0]",
    "uses another part": "w = dist.all_reduce(x[:4], async_op=True); z = x[4:] * 2; x[4:].zero_(); w.wait()",
    "uses every other element": "w = dist.all_reduce(x[::2].contiguous(), async_op=True); x[1::2].zero_(); w.wait()",
    "asks until it has ended": "w = dist.all_reduce(x, async_op=True)\nwhile not w.is_completed(): pass\nz = x * 2",
    "waits for a future": "w = dist.all_reduce(x, async_op=True); w.get_future().wait(); z = x * 2",
    "waits for all futures": "fs = [dist.all_reduce(t, async_op=True).get_future() for t in (x, y)]\n"
    "torch.futures.collect_all(fs).wait(); z = x[:4] * y",
    "waits for each future": "fs = [dist.all_reduce(t, async_op=True).get_future() for t in (x, y)]\n"
    "torch.futures.wait_all(fs); z = x[:4] * y",
    "asks until a future is done": "f = dist.all_reduce(x, async_op=True).get_future()\n"
    "while not f.done(): pass\nz = x * 2",
    "reads in a callback": "f = dist.all_reduce(x, async_op=True).get_future()\n"
    "f.then(lambda f: f.value()[0] * 2).wait()",
    "meets at a barrier": "dist.all_reduce(x, async_op=True); dist.barrier(); z = x * 2",
    "sends the same twice": "ws = [dist.isend(y, (rank + 1) % world, tag=i) for i in range(2)]\n"
    "for i in range(2): dist.recv(x[:4], (rank - 1) % world, tag=i)\nfor w in ws: w.wait()",
    "hears from whom it has sent to": "dist.isend(y, 1 - rank) if rank < 2 else None\n"
    "if rank < 2: dist.recv(x[:4], 1 - rank); y.zero_()",
    "reduces again": "ws = [dist.all_reduce(x, async_op=True) for _ in range(2)]\nfor w in ws: w.wait()\nz = x * 2",
    "batches": "to, source = (rank + 1) % world, (rank - 1) % world\n"
    "ops = [dist.P2POp(dist.isend, y, to), dist.P2POp(dist.irecv, big[:4], source)]\n"
    "for w in dist.batch_isend_irecv(ops): w.wait()\nz = big + 1; y.zero_()",
}
"""The same of programs in which nothing is wrong with either backend."""

RIGHT_ON_DEVICES = {
    "synchronizes": "dist.all_reduce(x, async_op=True); torch.cuda.synchronize(); z = x * 2",
    "waits for a later one": "dist.all_reduce(x, async_op=True); dist.all_reduce(y, async_op=True).wait(); z = x * 2",
}
"""The same with nccl, whose operations follow each other on a stream."""


def program(backend: str, text: str) -> str:
    """Returns the program."""
    return START.format(backend=backend) + text + "\n"


def right(backend: str) -> dict[str, str]:
    """Returns what is right with a backend."""
    return RIGHT | (RIGHT_ON_DEVICES if backend == "nccl" else {})


STREAMS = """
import torch, torch.distributed as dist
dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
s, cur = torch.cuda.Stream(), torch.cuda.current_stream()
x = torch.ones(8, device="cuda")

def kernel():
    z = x * 3
    with torch.cuda.stream(s): y = z * 2

def collective():
    z = x * 3
    dist.all_reduce(z)
    with torch.cuda.stream(s): y = z + 1

def other_way():
    with torch.cuda.stream(s): y = x * 2
    w = y + 1

def host_read():
    with torch.cuda.stream(s): y = x * 2
    y.cpu()

def message():
    z = x * 3
    with torch.cuda.stream(s): w = dist.isend(z, 1 - dist.get_rank())
    dist.recv(torch.zeros(8, device="cuda"), 1 - dist.get_rank())
    w.wait()

def right():
    z = x * 3
    s.wait_stream(cur)
    with torch.cuda.stream(s): y = z * 2
    cur.wait_stream(s)
    w = y + 1
    event, q = torch.cuda.Event(), w * 2
    event.record()
    with torch.cuda.stream(s):
        event.wait()
        y = q + 1
    torch.cuda.synchronize()
    w, a = y + q, w * 2
    event.record()
    event.synchronize()
    with torch.cuda.stream(s): b = a + 1
    s.synchronize()
    c, h = b + 1, torch.ones(8).cuda()
    with torch.cuda.stream(s): k = h * 2
    s.synchronize()
    with torch.cuda.stream(s): work = dist.all_reduce(k, async_op=True)
    work.wait()
    m, big = k + 1, torch.zeros(16, device="cuda")
    cur.synchronize()
    big[:8].add_(1)
    with torch.cuda.stream(s): n = big[8:] * 2
    w = x * 3
    w.sum().item()
    with torch.cuda.stream(s): y = w * 2
    cur.wait_stream(s)
    v, u = y + 1, y + 2
    dist.barrier()
    with torch.cuda.stream(s): y = v * 2
    s.synchronize()
    with torch.cuda.stream(s): dist.all_reduce(u)
    event.record(s)
    while not event.query(): pass
    p = u + y
    model = torch.nn.Linear(8, 8).cuda()
    s.wait_stream(cur)
    with torch.cuda.stream(s): loss = model(p).sum()
    loss.backward()
    model.weight.grad.add_(1)

{}()
torch.cuda.synchronize()
"""
"""Functions of which all but right read on one stream what another one is still to write."""

CROSSED = "kernel", "collective", "other_way", "host_read", "message"
"""Their names."""


def streams(*names: str) -> str:
    """Returns the program that calls some of them."""
    return STREAMS.replace("{}()", "(); torch.cuda.synchronize(); ".join(names) + "()")
