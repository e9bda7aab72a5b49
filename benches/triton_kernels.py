"""Times what the emulation of Triton's kernels costs the computer that runs it.

    python benches/triton_kernels.py
    python benches/triton_kernels.py --tutorial 8 --rounds 20

It prints microseconds of the processor for an iteration of a loop in a kernel: a product of blocks, a load with an
addition, and an iteration of a GEMM's block with its loads. With --tutorial it prints the seconds, of the clock and of
the processor, that Triton-distributed's tutorial 01 takes on so many ranks instead: 2,025 items a round, of which each
is stored in a peer's queue, signalled, waited for and copied.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torchemu
import torchemu as torch
import torchemu.frontends.triton.face as triton
import torchemu.frontends.triton.face.language as tl
from torchemu.launch import blas

TUTORIAL = Path(__file__).parents[1] / "tests/python/frontends/triton/tutorials/notify_wait.py"
ITEMS = 2025
ITERATIONS = 200
REPEATS = 5


@triton.jit
def products(a, b, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    x = tl.load(a + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :])
    y = tl.load(b + tl.arange(0, K)[:, None] * N + tl.arange(0, N)[None, :])
    total = tl.zeros((M, N), tl.float32)
    for _ in range(n):
        total = tl.dot(x, y, total)
    tl.store(c + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], total)


@triton.jit
def sums(a, b, c, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(n):
        total = total + tl.load(a + i)
    tl.store(c + i, total)


@triton.jit
def gemm(a, b, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    p = a + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :]
    q = b + tl.arange(0, K)[:, None] * N + tl.arange(0, N)[None, :]
    total = tl.zeros((M, N), tl.float32)
    for k in range(n):
        total = tl.dot(tl.load(p + k * 0), tl.load(q + k * 0), total)
    tl.store(c + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], total)


def timed(launch: Callable[[int], Any]) -> float:
    """Returns the microseconds of an iteration: the least of some repeats."""

    def seconds(n: int) -> float:
        start = time.process_time()
        launch(n)
        torch.cuda.synchronize()
        return time.process_time() - start

    seconds(1)
    return min((seconds(ITERATIONS + 1) - seconds(1)) / ITERATIONS for _ in range(REPEATS)) * 1e6


def tutorial(ranks: int, rounds: int) -> None:
    """Prints what tutorial 01 takes, with the start of the run, and without it for an item."""

    def seconds(items: int, rounds: int) -> tuple[float, float]:
        env = {**os.environ, "ITEMS": str(items), "ROUNDS": str(rounds)}
        command = ["run", "--torch", "numpy", "--nproc-per-node", str(ranks), str(TUTORIAL)]
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, "-m", "torchemu", *command], env=env, check=True, stdout=subprocess.DEVNULL)
        after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
        return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    _, least = seconds(20, 1)
    wall, busy = seconds(ITEMS, rounds)
    item = (busy - least) / (ITEMS * rounds * ranks) * 1e6
    print(f"{ranks} ranks, {rounds} rounds: {wall:.1f} s, {busy:.1f} s of the processor, {item:.0f} us of it an item")


def main() -> None:
    """Prints the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tutorial", type=int, metavar="RANKS", help="time tutorial 01 on so many ranks")
    parser.add_argument("--rounds", type=int, default=20, help="of the tutorial")
    args = parser.parse_args()
    if args.tutorial:
        tutorial(args.tutorial, args.rounds)
    else:
        loops()


def loops() -> None:
    """Prints the times of loops, with one thread of OpenBLAS, as in a run."""
    blas.limit()
    with torchemu.open_world("default"):
        a = torch.zeros(128 * 64, dtype=torch.float16)
        b = torch.zeros(64 * 256, dtype=torch.float16)
        c = torch.zeros(128 * 256)
        rows = {
            "128x256x64 float16 product": lambda n: products[(1,)](a, b, c, n, 128, 256, 64),
            "load and add of 128 float32": lambda n: sums[(1,)](c, c, c, n, 128),
            "GEMM block with its loads": lambda n: gemm[(1,)](a, b, c, n, 128, 256, 64),
        }
        for name, launch in rows.items():
            print(f"{name:30} {timed(launch):9.1f} us")


if __name__ == "__main__":
    main()
