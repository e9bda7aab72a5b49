"""Programs, each with its truth, are put to the checker of hosts, streams and what is under way.

The parts of a program are lines that all four ranks run, behind the same beginning.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from launch import launch

BEGIN = """
import torch, torch.distributed as dist
import torchemu, torchemu.language as tl
dist.init_process_group("nccl")
r, w = dist.get_rank(), dist.get_world_size()
right, left = (r + 1) % w, (r - 1) % w

@torchemu.kernel
def give(out, x, n):
    tl.put(out.on((tl.rank() + 1) % tl.world_size()), x, n)

@torchemu.kernel
def take(x, out, n):
    tl.store(x, tl.load(out, n))

@torchemu.kernel
def inc(x, n):
    tl.store(x, tl.load(x, n) + 1)

"""

RIGHT: dict[str, str] = {
    "isend ok": """
x=torch.ones(8)
if r==0:
    h=dist.isend(x,1)
    y=x+1
    h.wait()
    x.add_(1)
elif r==1:
    dist.recv(x,0)
print(x.sum())
""",
    "async ar ok": """
x=torch.ones(8)
h=dist.all_reduce(x,async_op=True)
z=torch.ones(3)*2
h.wait()
y=x*2
print(y)
""",
    "async halo ok": """
x=torch.ones(4,8)
h=dist.irecv(x[0],left)
g=dist.isend(x[3],right)
y=x[1:3]*2
z=x[3]+1
h.wait()
g.wait()
print((x*2).sum())
""",
    "is completed ok": """
x=torch.ones(8)
h=dist.all_reduce(x,async_op=True)
while not h.is_completed(): pass
x.add_(1)
""",
    "streams kernels event": """
s=torch.cuda.Stream()
x=torch.ones(8)
inc[1](x,8)
e=torch.cuda.Event()
e.record()
s.wait_event(e)
with torch.cuda.stream(s): inc[1](x,8)
torch.cuda.current_stream().wait_stream(s)
print(x+1)
""",
    "stream collective sync ok": """
s=torch.cuda.Stream()
x=torch.ones(8)
inc[1](x,8)
torch.cuda.synchronize()
with torch.cuda.stream(s): dist.all_reduce(x)
s.synchronize()
x.add_(1)
print(x)
""",
    "streams readers ok": """
s=torch.cuda.Stream()
x=torch.ones(8)
torch.cuda.synchronize()
y=torch.empty(8)
z=torch.empty(8)
take[1](y,x,8)
with torch.cuda.stream(s): take[1](z,x,8)
torch.cuda.synchronize()
""",
    "host fill barrier ok": """
x=tl.symmetric_empty(8)
y=torch.ones(8)
x.fill_(3)
dist.barrier()
give[1](x,y,8)
torch.cuda.synchronize()
dist.barrier()
print(x.sum())
""",
    "host read allreduce ok": """
x=tl.symmetric_empty(8)
y=torch.ones(8)
t=torch.ones(1)
give[1](x,y,8)
dist.all_reduce(t)
z=x+1
print(z)
""",
    "collective on symmetric ok": """
x=tl.symmetric_empty(8)
y=torch.ones(8)
t=torch.ones(1)
give[1](x,y,8)
dist.barrier()
dist.all_reduce(x)
dist.barrier()
give[1](x,y,8)
torch.cuda.synchronize()
""",
    "store ok": """
x=tl.symmetric_empty(8)
y=torch.ones(8)
store=dist.distributed_c10d._get_default_store()
give[1](x,y,8)
torch.cuda.synchronize()
store.set(f"d{r}","1")
store.get(f"d{left}")
take[1](y,x,8)
torch.cuda.synchronize()
""",
    "message ok": """
x=tl.symmetric_empty(8)
y=torch.ones(8)
t=torch.ones(1)
give[1](x,y,8)
if r%2==0:
    dist.send(t,right)
    dist.recv(t,left)
else:
    dist.recv(t,left)
    dist.send(t,right)
take[1](y,x,8)
torch.cuda.synchronize()
""",
    "kernels300": """
x=tl.symmetric_empty(8)
y=torch.ones(8)
z=torch.ones(8)
give[1](x,y,8)
torch.cuda.synchronize()
dist.barrier()
for i in range(300): inc[1](z,8)
take[1](y,x,8)
torch.cuda.synchronize()
""",
    "zeroed": """
@torchemu.kernel
def acc(out,n):
    a=tl.workspace("acc",n)
    t=tl.load(a,n)+1
    tl.store(a,t)
    tl.store(out,t)
y=torch.empty(8)
for i in range(3): acc[1](y,8)
x=tl.symmetric_empty(8)
take[1](y,x,8)
print(y.sum())
""",
    "temporaries": """
@torchemu.kernel
def temps(out,x,n):
    words=tl.workspace("w",1,torch.int64)
    for i in range(60):
        peer = (tl.rank()+1) % tl.world_size()
        tl.put_signal_nbi(out.on(peer)+i*n, tl.load(x,n)+i, n, words.on(peer))
    tl.wait(words, tl.GE, 60)
    for i in range(60): tl.load(out+i*n,n)
n=20000
o=tl.symmetric_empty(60*n)
x=torch.ones(n)
temps[1](o,x,n)
torch.cuda.synchronize()
print(o[::n])
""",
}
"""Programs in which all is ordered."""

WRONG: dict[str, tuple[str, str, str]] = {
    "isend changed": (
        """
x=torch.ones(8)
if r==0:
    h=dist.isend(x,1)
    x.add_(1)
    h.wait()
elif r==1:
    dist.recv(x,0)
""",
        "dist.isend",
        "x.add_",
    ),
    "irecv read": (
        """
x=torch.ones(8)
if r==0: dist.send(x,1)
elif r==1:
    h=dist.irecv(x,0)
    print(x.sum())
    h.wait()
""",
        "dist.irecv",
        "x.sum",
    ),
    "async ar read": (
        """
x=torch.ones(8)
h=dist.all_reduce(x,async_op=True)
y=x*2
h.wait()
""",
        "all_reduce",
        "x*2",
    ),
    "streams kernels": (
        """
s=torch.cuda.Stream()
x=torch.ones(8)
inc[1](x,8)
with torch.cuda.stream(s): inc[1](x,8)
torch.cuda.synchronize()
""",
        "tl.load(x, n) + 1",
        "tl.load(x, n) + 1",
    ),
    "stream kernel torch": (
        """
s=torch.cuda.Stream()
x=torch.ones(8)
s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s): inc[1](x,8)
x.mul_(2)
""",
        "tl.load(x, n) + 1",
        "x.mul_",
    ),
    "stream torch kernel": (
        """
s=torch.cuda.Stream()
x=torch.ones(8)
x.mul_(2)
with torch.cuda.stream(s): inc[1](x,8)
torch.cuda.synchronize()
""",
        "x.mul_",
        "tl.load(x, n) + 1",
    ),
    "stream collective": (
        """
s=torch.cuda.Stream()
x=torch.ones(8)
inc[1](x,8)
with torch.cuda.stream(s): dist.all_reduce(x)
torch.cuda.synchronize()
""",
        "x=torch.ones(8)",
        "all_reduce(x)",
    ),
    "host fill": (
        """
x=tl.symmetric_empty(8)
y=torch.ones(8)
give[1](x,y,8)
x.fill_(3)
torch.cuda.synchronize()
""",
        "tl.put(",
        "x.fill_",
    ),
    "host read early": (
        """
x=tl.symmetric_empty(8)
y=torch.ones(8)
give[1](x,y,8)
torch.cuda.synchronize()
print(x.sum())
""",
        "tl.put(",
        "x.sum",
    ),
    "collective on symmetric": (
        """
x=tl.symmetric_empty(8)
y=torch.ones(8)
t=torch.ones(1)
give[1](x,y,8)
dist.all_reduce(x)
torch.cuda.synchronize()
""",
        "tl.put(",
        "all_reduce(x)",
    ),
    "store wrong key": (
        """
x=tl.symmetric_empty(8)
y=torch.ones(8)
store=dist.distributed_c10d._get_default_store()
give[1](x,y,8)
torch.cuda.synchronize()
store.set(f"d{r}","1")
store.get(f"d{right}")
take[1](y,x,8)
torch.cuda.synchronize()
""",
        "tl.put(",
        "tl.load(out",
    ),
    "store not synced": (
        """
x=tl.symmetric_empty(8)
y=torch.ones(8)
store=dist.distributed_c10d._get_default_store()
give[1](x,y,8)
store.set(f"d{r}","1")
store.get(f"d{left}")
take[1](y,x,8)
torch.cuda.synchronize()
""",
        "tl.put(",
        "tl.load(out",
    ),
    "message wrong way": (
        """
x=tl.symmetric_empty(8)
y=torch.ones(8)
t=torch.ones(1)
give[1](x,y,8)
if r%2==0:
    dist.send(t,left)
    dist.recv(t,right)
else:
    dist.recv(t,right)
    dist.send(t,left)
take[1](y,x,8)
torch.cuda.synchronize()
""",
        "tl.put(",
        "tl.load(out",
    ),
    "broadcast no edge to root": (
        """
x=tl.symmetric_empty(8)
y=torch.ones(8)
t=torch.ones(1)
give[1](x,y,8)
dist.broadcast(t,0)
take[1](y,x,8)
torch.cuda.synchronize()
""",
        "tl.put(",
        "tl.load(out",
    ),
}
"""Programs with a race, and of each what is in the two lines that a report has to name."""


def run(tmp_path: Path, lines: str) -> tuple[int, str]:
    """Runs a program on four ranks, checked, and returns its exit status and what it says."""
    file = tmp_path / "program.py"
    file.write_text(BEGIN + lines)
    outcome = launch("--nproc-per-node", "4", "--check", str(file))
    return outcome.status, outcome.out + outcome.err


@pytest.mark.parametrize("name", RIGHT)
def test_right_programs_are_not_reported(name: str, tmp_path: Path) -> None:
    status, said = run(tmp_path, RIGHT[name])
    assert status == 0, said


@pytest.mark.parametrize("name", WRONG)
def test_wrong_programs_are_reported_with_both_lines(name: str, tmp_path: Path) -> None:
    lines, *ends = WRONG[name]
    status, said = run(tmp_path, lines)
    assert status and "RaceError" in said, said
    reported = said.partition("FAILED")[0]
    for end in ends:
        number = next(n for n, line in enumerate((BEGIN + lines).splitlines(), 1) if end in line)
        assert f"program.py:{number}" in reported, said
