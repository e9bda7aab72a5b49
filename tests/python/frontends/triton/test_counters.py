"""A word that programs of another rank count up: whoever has seen the last count may read what all have stored."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, torch, triton, triton_dist
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import tid, __syncthreads, atomic_add, ld_acquire
from triton_dist.utils import (
    finalize_distributed, initialize_distributed, nvshmem_barrier_all_on_stream, nvshmem_create_tensor)

COUNTED = COUNT

@triton_dist.jit
def produce(x, counter):
    peer = (dl.rank() + 1) % dl.num_ranks()
    pid = tl.program_id(0)
    tl.store(dl.symm_at(x, peer) + pid * 16 + tl.arange(0, 16), pid + 1.0)
    __syncthreads()
    if tid(0) == 0:
        atomic_add(dl.symm_at(counter, peer), 1, scope="sys", semantic="release")

@triton_dist.jit
def consume(x, counter, out, count, N: tl.constexpr):
    if tid(0) == 0:
        while ld_acquire(counter, scope="sys") < count:
            pass
    __syncthreads()
    n = tl.arange(0, N)
    tl.store(out + tl.program_id(0) * N + n, tl.load(x + n))

initialize_distributed()
x, counter = nvshmem_create_tensor((32,), torch.float32), nvshmem_create_tensor((1,), torch.int32)
x.zero_(), counter.zero_()
nvshmem_barrier_all_on_stream()
out = torch.empty((3, 32), device="cuda")
produce[(2,)](x, counter)
consume[(3,)](x, counter, out, COUNTED, N=32)
nvshmem_barrier_all_on_stream()
assert COUNTED < 2 or out.tolist() == [[1.0] * 16 + [2.0] * 16] * 3
finalize_distributed()
"""


def explored(folder: Path, count: int) -> subprocess.CompletedProcess[str]:
    """Runs the script, in which so many counts are waited for, in several schedules."""
    script = folder / "counter.py"
    script.write_text(SCRIPT.replace("COUNT\n", f"{count}\n"))
    command = ["run", "--torch", "numpy", "--nproc-per-node", "2", "--check", "--explore", "12"]
    return subprocess.run(
        [sys.executable, "-m", "torchemu", *command, script], capture_output=True, text=True, timeout=600
    )


@pytest.mark.slow
def test_who_has_seen_all_counts_may_read(tmp_path: Path) -> None:
    done = explored(tmp_path, 2)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_who_has_seen_one_count_may_not(tmp_path: Path) -> None:
    done = explored(tmp_path, 1)
    loop, load = (line_of(text) for text in ("while ld_acquire", "tl.store(out"))
    assert done.returncode != 0 and "wait that other signals can satisfy" in done.stderr, done.stderr
    assert f"counter.py:{loop}, bytes 0 to 4" in done.stderr and f"counter.py:{load}, bytes" in done.stderr, done.stderr
    assert "fails in the ordinary order" in done.stderr, done.stderr


def line_of(text: str) -> int:
    """Returns the number of the script's line that has a text."""
    return next(n for n, line in enumerate(SCRIPT.splitlines(), 1) if text in line)
