"""Kernels in programs: torchemu run and its flags, tests with @torchemu.distributed, Worlds that are gone, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from kernel_worlds import world_of

import torchemu
import torchemu as torch
import torchemu.language as tl
from torchemu.errors import DeadlockError, RaceError

PROGRAM = """
import sys
import torch
import torch.distributed as dist
import torchemu
import torchemu.language as tl

@torchemu.kernel
def shift(out, x, words, n, careful):
    following = (tl.rank() + 1) % tl.world_size()
    tl.put_signal(out.on(following), x, n, words.on(following))
    if careful:
        tl.wait(words, tl.GE, 1)
    tl.store(x, tl.load(out, n))

dist.init_process_group()
rank = dist.get_rank()
out, words = tl.symmetric_empty(16), tl.symmetric_empty(1, dtype=torch.int64)
x = torch.full((16,), float(rank), device="cuda")
shift[1](out, x, words, 16, sys.argv[1] == "careful")
print(rank, x.tolist()[0])
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program whose ranks each have modules, and so kernels, of their own."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


def torchemu_run(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torchemu", "run", "--nproc-per-node", "4", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("flags", [[], ["--check"], ["--check", "--reorder", "7"]])
def test_ranks_with_modules_of_their_own_share_a_kernel(program: Path, flags: list[str]) -> None:
    done = torchemu_run(*flags, str(program), "careful")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["0 3.0", "1 0.0", "2 1.0", "3 2.0"]


@pytest.mark.parametrize("nodes", [2, 3])
def test_ranks_of_every_node_launch_kernels(program: Path, nodes: int) -> None:
    """A device's number counts within its node, a rank's over all nodes."""
    done = torchemu_run(
        "--nproc-per-node", "2", "--nnodes", str(nodes), "--topology", "nodes2x8", str(program), "careful"
    )
    assert done.returncode == 0, done.stderr
    ranks = 2 * nodes
    assert sorted(done.stdout.splitlines()) == [f"{rank} {float((rank - 1) % ranks)}" for rank in range(ranks)]


def test_a_tensor_of_another_device_is_named_with_the_right_one(tmp_path: Path) -> None:
    """The second node's first rank is on device 0 of its node, so a tensor on device 1 is another rank's."""
    program = tmp_path / "program.py"
    program.write_text(
        "import torch, torchemu, torch.distributed as dist\n"
        "import torchemu.language as tl\n"
        "@torchemu.kernel\n"
        "def touch(x):\n    tl.store(x, tl.load(x, 4))\n"
        "dist.init_process_group()\n"
        "if dist.get_rank() == 2:\n"
        "    touch[1](torch.zeros(4, device='cuda:0'))\n"
        "    touch[1](torch.zeros(4, device='cuda:1'))\n"
    )
    done = torchemu_run("--nproc-per-node", "2", "--nnodes", "2", "--topology", "nodes2x8", str(program))
    assert done.returncode == 1
    assert "is on cuda:1; a kernel of rank 2 uses tensors on its own device, 0" in done.stderr


def test_check_finds_what_a_plain_run_does_not(program: Path) -> None:
    assert torchemu_run(str(program), "careless").returncode == 0
    done = torchemu_run("--check", str(program), "careless")
    assert done.returncode == 1
    assert "RaceError" in done.stderr
    assert 'by kernel "shift" on rank' in done.stderr
    assert "program.py:11" in done.stderr
    assert "program.py:14" in done.stderr


@torchemu.kernel
def careless(out: Any, x: Any, n: int) -> None:
    tl.put_nbi(out.on((tl.rank() + 1) % tl.world_size()), x, n)
    tl.load(out, n)


def body() -> None:
    out = tl.symmetric_empty(16)
    careless[1](out, torch.ones(16), 16)
    out.wait()


def test_decorated_tests_are_checked() -> None:
    with pytest.raises(RaceError, match="careless"):
        torchemu.distributed(body, world_size=2)()
    torchemu.distributed(world_size=2, check=False)(body)()


# -- Worlds that are gone


def test_a_kernel_of_a_world_that_is_closed() -> None:
    with world_of(1):
        x = torch.ones(4)
        kept = x.numpy()

        @torchemu.kernel
        def forever(words: Any) -> None:
            tl.wait(words, tl.GE, 1)

        words = tl.symmetric_empty(1, dtype=torch.int64)
        seen = words.numpy()
        forever[1](words)  # nobody waits for it
    with (
        world_of(1),
        pytest.raises(RuntimeError, match=r"argument words .* belongs to another World"),
    ):
        forever[1](words)
    assert kept.tolist() == [1.0] * 4
    assert seen.tolist() == [0]
    with pytest.raises(RuntimeError, match="closed"):
        words.tolist()


def test_a_deadlock_outside_of_a_spawn() -> None:
    @torchemu.kernel
    def forever(words: Any) -> None:
        tl.wait(words + 1, tl.NE, 0)

    with world_of(1):
        words = tl.symmetric_empty(3, dtype=torch.int32)
        forever[1](words)
        stuck = r'kernel "forever", which on rank 0 at test_kernel_runs\.py:\d+ waits for the word .* NE 0; it is 0'
        for _ in range(2):
            with pytest.raises(DeadlockError, match=stuck):
                words.tolist()


INTERRUPTED = """
import os, signal, torchemu
import torchemu.language as tl

@torchemu.kernel
def forever(x):
    print("running", flush=True)
    t = tl.load(x, 4)
    while True:
        t = t + 1

with torchemu.open_world("default"):
    x = torchemu.zeros(4)
    forever[1](x)
    x.tolist()
"""


def test_ctrl_c_ends_a_kernel_that_never_ends(tmp_path: Path) -> None:
    file = tmp_path / "forever.py"
    file.write_text(INTERRUPTED)
    child = subprocess.Popen([sys.executable, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "running\n"
    time.sleep(0.2)
    os.kill(child.pid, signal.SIGINT)
    _, errors = child.communicate(timeout=30)
    assert child.returncode != 0
    assert "KeyboardInterrupt" in errors


def test_kernels_are_in_traces(program: Path, tmp_path: Path) -> None:
    done = torchemu_run("--trace", str(tmp_path / "t.json"), str(program), "careful")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "t.json").read_text().count('"name":"shift"') == 4
