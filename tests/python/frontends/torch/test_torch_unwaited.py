"""The same as launch/test_unwaited.py on the installed PyTorch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from launch import written
from unwaited_cases import WRONG, program, right

pytest.importorskip("torch")


def _run(file: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", "2", *flags, str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def _functions(texts: Iterable[str]) -> str:
    """Returns a program of a function for each text, called one after another."""
    parts = []
    for i, text in enumerate(texts):
        body = text.replace("\n", "\n    ")
        parts.append(f"def f{i}(x, y, big):\n    {body}\nf{i}(x.clone(), y.clone(), big.clone())\ndist.barrier()")
    return "\n".join(parts)


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
def test_each_use_before_its_wait_is_warned_of(tmp_path: Path, backend: str) -> None:
    bodies = _functions(WRONG.values())
    done = _run(written(tmp_path, program(backend, bodies)))
    assert done.returncode == 0, done.stderr
    for i, name in enumerate(WRONG):
        assert f"in f{i} " in done.stderr, (name, done.stderr)


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
def test_right_programs_are_not(tmp_path: Path, backend: str) -> None:
    bodies = _functions(right(backend).values())
    for flags in ((), ("--check",)):
        done = _run(written(tmp_path, program(backend, bodies)), *flags)
        assert done.returncode == 0 and "nwaited" not in done.stderr, done.stderr


def test_check_makes_it_an_error(tmp_path: Path) -> None:
    done = _run(written(tmp_path, program("gloo", WRONG["reads a result"])), "--check")
    assert done.returncode == 1 and "RaceError" in done.stderr


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

{}()
torch.cuda.synchronize()
"""


def test_streams_that_read_what_another_is_still_to_write(tmp_path: Path) -> None:
    wrong = "kernel", "collective", "other_way"
    calls = "(); torch.cuda.synchronize(); ".join([*wrong, "right"])
    done = _run(written(tmp_path, STREAMS.replace("{}()", f"{calls}()")))
    assert done.returncode == 0 and done.stderr.count("UnwaitedWarning") == 3, done.stderr
    for name in wrong:
        assert f"in {name} reads it on stream" in done.stderr, done.stderr
    for name, status in [(wrong[0], 1), ("right", 0)]:
        assert _run(written(tmp_path, STREAMS.replace("{}", name)), "--check").returncode == status
