"""Tensors whose memory moves, or goes, while an operation between ranks or a kernel is yet to use it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from launch import written
from sampling import sampled

pytest.importorskip("torch")

_BEGIN = '''
import os, torch
import torch.distributed as dist
rank = int(os.environ["LOCAL_RANK"])
if BACKEND == "nccl":
    torch.cuda.set_device(rank)
device = torch.device("cuda", rank) if BACKEND == "nccl" else torch.device("cpu")
dist.init_process_group(BACKEND)
count = dist.get_world_size()

def others(n):
    """Returns tensors to which the allocator gives memory that it was given back."""
    return [torch.zeros(n, device=device) for _ in range(4)]

def are_zeros(tensors):
    return not any(int(tensor.count_nonzero()) for tensor in tensors)
'''

_REDUCED = """
for i in range(40):
    n = 2400 + i
    x = torch.ones(n, device=device)
    whole = x.view(-1)
    work = dist.all_reduce(x, async_op=True)
    {move}
    after = others(n)
    work.wait()
    assert are_zeros(after), i
    assert {kept}
"""

_MOVES = {
    "grows": ("x.resize_(1 << 14)", "x[:n].eq(count).all()"),
    "grows as another": ("x.resize_as_(torch.empty(1 << 14))", "x[:n].eq(count).all()"),
    "storage goes": ("x.untyped_storage().resize_(0)", "x.untyped_storage().nbytes() == 0"),
    "other data": ("x.data = torch.zeros(1, device=device)", "whole.eq(count).all() and not x.any()"),
    "set": ("x.set_(torch.zeros(1, device=device))", "whole.eq(count).all() and not x.any()"),
    "out": ("torch.cat([torch.zeros(1 << 14, device=device)], out=x)", "not x.any()"),
    "deleted": ("del x", "whole.eq(count).all()"),
    "waited, then grows": ("work.wait(); x.resize_(1 << 14)", "x[:n].eq(count).all()"),
    "waited, then other data": ("work.wait(); x.data = torch.zeros(1, device=device)", "whole.eq(count).all()"),
}

_MESSAGE = """
for i in range(40):
    n = 2400 + i
    sent = dist.isend(torch.ones(n, device=device), (rank + 1) % count)
    x = torch.zeros(n, device=device)
    received = dist.irecv(x, (rank - 1) % count)
    x.resize_(1 << 14)
    after = others(n)
    received.wait(), sent.wait()
    assert are_zeros(after) and x[:n].eq(1).all(), i
"""

_KERNEL = """
import triton, triton.language as tl

@triton.jit
def increase(p, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(p + at, tl.load(p + at, mask=at < n) + 1, mask=at < n)

for i in range(30):
    n = 10_000 + i
    x = torch.zeros(n, device=device)
    increase[(triton.cdiv(n, 256),)](x, n, BLOCK=256)
    if i % 3 == 0:
        x.untyped_storage().resize_(0)
    elif i % 3 == 1:
        x.resize_(1 << 16)
        assert x[:n].eq(1).all()
    else:
        x.data = torch.zeros(1, device=device)
    after = others(n)
    torch.cuda.synchronize()
    assert are_zeros(after), i
"""

_SYMMETRIC = """
import torch.distributed._symmetric_memory as symmetric
x = symmetric.empty(1000, device=device)
handle = symmetric.rendezvous(x, dist.group.WORLD)
for resize in (lambda: x.resize_(100_000), lambda: x.untyped_storage().resize_(0)):
    try:
        resize()
    except RuntimeError as error:
        assert "not resizable" in str(error), error
    else:
        raise AssertionError("symmetric memory has moved")
handle.barrier()
handle.get_buffer((rank + 1) % count, (10,), torch.float32).fill_(1)
handle.barrier()
assert x[:10].eq(1).all()
"""

_COUNTED = """
x = torch.empty(1 << 18, device=device)
torch.cuda.reset_peak_memory_stats()
before = torch.cuda.memory_allocated()
x.resize_(1 << 20)
assert torch.cuda.memory_allocated() - before == 3 << 20, torch.cuda.memory_allocated() - before
torch.cat([torch.zeros(1 << 21, device=device)], out=x)
assert torch.cuda.memory_allocated() - before == 7 << 20, torch.cuda.memory_allocated() - before
try:
    x.resize_(1 << 42)
except (torch.OutOfMemoryError, RuntimeError):
    pass
"""


def _run(tmp_path: Path, backend: str, body: str, ranks: int = 4) -> subprocess.CompletedProcess[str]:
    file = written(tmp_path, f"BACKEND = {backend!r}\n{_BEGIN}\n{body}\n")
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", str(ranks), str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("backend", sampled(["nccl", "gloo"], 2))
@pytest.mark.parametrize("move", sampled(_MOVES, 9))
def test_collectives_use_the_memory_that_they_were_given(tmp_path: Path, backend: str, move: str) -> None:
    what, kept = _MOVES[move]
    done = _run(tmp_path, backend, _REDUCED.format(move=what, kept=kept))
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["gloo", "nccl"])
def test_messages_use_the_memory_that_they_were_given(tmp_path: Path, backend: str) -> None:
    done = _run(tmp_path, backend, _MESSAGE)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_kernels_use_the_memory_that_they_were_given(tmp_path: Path) -> None:
    done = _run(tmp_path, "nccl", _KERNEL, ranks=2)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_symmetric_memory_does_not_move(tmp_path: Path) -> None:
    done = _run(tmp_path, "nccl", _SYMMETRIC)
    assert done.returncode == 0, done.stderr


def test_memory_that_a_tensor_grows_by_is_counted(tmp_path: Path) -> None:
    done = _run(tmp_path, "nccl", _COUNTED, ranks=1)
    assert done.returncode == 0, done.stderr
