"""Tests of what newcomers get wrong, and what they read then: the cause, their own line, and what would be right.

Each report is compared from its first line on, so that no frame of torchemu, NumPy or the standard library is in it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from launch import launch, unmarked, written

BEGIN = """
import torch
import torch.distributed as dist
import torchemu.language as tl
import torchemu
dist.init_process_group("gloo")
rank = dist.get_rank()
x = torch.ones(64, device="cuda")
"""

KERNEL = """
@torchemu.kernel
def k(x, n):
    {body}
{call}
"""


def said(folder: Path, text: str, *flags: str) -> list[str]:
    """Returns what a program that fails prints before the summary, without the mark of the rank; FILE is its name."""
    file = written(folder, text)
    outcome = launch(*(flags or ("--nproc-per-node", "2")), file)
    assert outcome.status == 1
    report = unmarked(outcome.err.partition("=" * 60)[0].replace(str(file), "FILE"))
    return [line.partition(": ")[2] for line in report.splitlines()]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (
            "torch.cuda.set_device(4)",
            "torch.AcceleratorError: CUDA error: invalid device ordinal: device 4 does not exist: topology "
            "'default' has 4 SIPs (devices 0 to 3)",
        ),
        (
            "torch.zeros(1 << 50)",
            "torchemu.errors.HostMemoryError: DefaultCPUAllocator: can't allocate memory: you tried to allocate "
            "4503599627370496 bytes, for a float32 tensor of shape [1125899906842624]: no machine has so many",
        ),
        (
            "torch.empty(1 << 45, device='cuda')",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 128.00 TiB. GPU 0 has a total "
            "capacity of 384.00 GiB of which 384.00 GiB is free. 512 bytes is allocated by tensors: 1 of 512 bytes. "
            "The capacity is the topology's: capacity_gib for each of a SIP's cubes.",
        ),
        ("torch.load('nothing.pt')", "FileNotFoundError: [Errno 2] No such file or directory: 'nothing.pt'"),
        (
            "torch.onnx",
            "AttributeError: torchemu's NumPy front end has no torch.onnx: run with --torch real (pip install "
            "torchemu[torch])",
        ),
        (
            "dist.destroy_process_group(); dist.init_process_group('gloo', rank=rank, world_size=4)",
            "ValueError: world_size 4 is not the number of processes, 2: start 4 of them (torchemu run "
            "--nproc-per-node, or nprocs of spawn), or give no world_size",
        ),
        (
            "dist.destroy_process_group(); dist.init_process_group('gloo', rank=1 - rank, world_size=2)",
            "ValueError: rank 1 was given by the process whose rank is 0, its number in the run",
        ),
    ],
)
def test_a_line_that_is_wrong(tmp_path: Path, line: str, error: str) -> None:
    lines = [text for text in said(tmp_path, BEGIN + line) if "^" not in text]
    assert lines == [
        "Traceback (most recent call last):",
        '  File "FILE", line 9, in <module>',
        f"    {line}",
        error,
    ]


@pytest.mark.parametrize(
    ("body", "call", "line", "error"),
    [
        ("pass", "k[1](x)", 13, "TypeError: kernel 'k', k(x, n): missing a required argument: 'n'"),
        (
            "tl.load(x, n) + tl.load(x, n // 2)",
            "k[1](x, 64); x.tolist()",
            12,
            "ValueError: tiles of shapes [64] and [32] do not go together: they differ in a dimension that is not 1",
        ),
        (
            "tl.load(x, n)",
            "k[1](x, 65); x.tolist()",
            12,
            'reach beyond window "argument x of kernel k", which has 256 after that',
        ),
    ],
)
def test_a_kernel_that_is_wrong(tmp_path: Path, body: str, call: str, line: int, error: str) -> None:
    lines = said(tmp_path, BEGIN + KERNEL.format(body=body, call=call))
    assert lines[-1].endswith(error)
    places = [text for text in lines if text.startswith("  File ")]
    assert places[-1].startswith(f'  File "FILE", line {line}, in ')
    assert all(text.startswith('  File "FILE"') for text in places)


def test_a_rank_whose_block_for_itself_has_two_sizes(tmp_path: Path) -> None:
    call = "dist.all_to_all_single(torch.ones(4), torch.ones(4), [1, 3], [2, 2])"
    assert said(tmp_path, BEGIN + call)[-4:] == [
        "torchemu.errors.MismatchError: rank 0 disagrees with itself on the number of elements in collective #0 of "
        "group default:",
        "  rank 0 calls all_to_all_single of float32 with 1 element for rank 0's block at FILE:9 in <module>",
        "  rank 0 calls all_to_all_single of float32 with 2 elements for it at FILE:9 in <module>",
        "Rank 0 must make room for just what rank 0 gives.",
    ]


SPAWNS = """
import torch.multiprocessing as mp
def work(rank):
    pass
mp.spawn(work, nprocs=2)
"""


def test_spawn_without_a_guard(tmp_path: Path) -> None:
    """Each process loads the program, and spawns in turn: Python's own words for it."""
    lines = said(tmp_path, SPAWNS, "--nproc-per-node", "1")
    errors = [text for text in lines if text.startswith("RuntimeError")]
    assert len(errors) == 2 and all(
        text.startswith("RuntimeError: An attempt has been made to start a new process before the current process has ")
        and text.endswith("What starts them belongs under \"if __name__ == '__main__':\"")
        for text in errors
    )
    assert lines[3] == "torch.multiprocessing.SpawnException: "


def test_a_script_that_spawns_is_started_once(tmp_path: Path) -> None:
    (error,) = [text for text in said(tmp_path, SPAWNS) if text.startswith("RuntimeError")]
    assert error.startswith("RuntimeError: spawn inside a spawned rank is not supported")
    assert error.endswith("is started once: torchemu run --nproc-per-node 1")


def test_a_forked_child_tells_its_own_line_only(tmp_path: Path) -> None:
    """And ends there: the report of the run is its parent's."""
    text = """
        import os, sys
        import torch
        pid = os.fork()
        if pid == 0:
            torch.ones(2)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """
    command = [sys.executable, "-m", "torchemu", "run", "--nproc-per-node", "1", str(written(tmp_path, text))]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = unmarked(outcome.stderr).splitlines()
    assert outcome.stdout == "1\n" and lines[0] == "Traceback (most recent call last):"
    assert lines[1].endswith('program.py", line 6, in <module>') and len(lines) == 4
    assert lines[3].startswith("RuntimeError: torchemu does not work in a forked child")


def test_a_forked_child_that_comes_to_the_programs_end(tmp_path: Path) -> None:
    text = "import os\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\nprint('one', pid > 0)"
    command = [sys.executable, "-m", "torchemu", "run", "--nproc-per-node", "1", str(written(tmp_path, text))]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True)
    assert sorted(outcome.stdout.splitlines()) == ["one False", "one True"] and outcome.stderr == ""
