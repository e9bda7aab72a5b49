"""The cost of the installed PyTorch on a simulated cluster, beside its targets: ``make perf-torch``.

A collective's cost is processor time a rank and call, of ranks that share the processor in one process. The script with
DistributedDataParallel is run on 8 ranks of torchemu and as 8 processes on gloo, and what counts is the whole command.
Ratios are of one run on one machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RANKS = 8

COLLECTIVE = """
import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
tensor, calls = torch.ones(16), 500
for _ in range(50):
    dist.all_reduce(tensor)
start = time.process_time()
for _ in range(calls):
    dist.all_reduce(tensor)
if dist.get_rank() == 0:
    print((time.process_time() - start) / calls / dist.get_world_size() * 1e6)
"""

OPERATION = """
import time, torch, torch.distributed as dist
dist.init_process_group("nccl")
def cost(device, calls=20000):
    x = torch.ones(16, device=device)
    for _ in range(500):
        x.mul_(1.0)
    best = 1e9
    for _ in range(5):
        start = time.process_time()
        for _ in range(calls // 5):
            x.mul_(1.0)
        best = min(best, (time.process_time() - start) / (calls // 5) * 1e6)
    return best
print(cost("cuda"))
"""

PLAIN = OPERATION.replace('dist.init_process_group("nccl")', "").replace('"cuda"', '"cpu"')

IN_A_MODE = (
    """
from torch.utils._python_dispatch import TorchDispatchMode
class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))
Mode().__enter__()
"""
    + PLAIN
)

BARE = """
import resource, torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
if dist.get_rank() == 0:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""

TRAINING = """
import torch, torch.distributed as dist, torch.nn as nn
dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 8)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(16, 64)).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
dist.destroy_process_group()
"""


def run(command: list[str], program: str, **environment: str) -> tuple[str, float]:
    """Returns what a command prints that runs a program, and the seconds that it takes."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "program.py")
        script.write_text(program)
        start = time.perf_counter()
        told = subprocess.run(
            [*command, str(script)], check=True, capture_output=True, text=True, env={**os.environ, **environment}
        )
        return told.stdout, time.perf_counter() - start


def on_torchemu(program: str, ranks: int = RANKS, **environment: str) -> tuple[str, float]:
    """run, on simulated ranks."""
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", str(ranks)]
    return run(command, program, **environment)


def number(program: str, ranks: int = RANKS, times: int = 3, **environment: str) -> float:
    """The median of what a program prints."""
    return statistics.median(float(on_torchemu(program, ranks, **environment)[0].split()[-1]) for _ in range(times))


def row(what: str, value: str, target: str) -> None:
    """Prints a line of the table."""
    print(f"{what:<58} {value:>12}   {target}", flush=True)


def main() -> None:
    """Measures, and prints a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out gloo, which takes longest")
    options = parser.parse_args()
    collective = number(COLLECTIVE, CUDA_VISIBLE_DEVICES="")
    row("all_reduce of 64 bytes, 8 ranks, processor time a rank", f"{collective:.0f} us", "target: 40 us")
    plain = float(run([sys.executable], PLAIN)[0])
    charged = number(OPERATION, 1)
    row("charging an operation to its rank's stream", f"{charged - plain:.1f} us", "target: 5 us")
    moded = float(run([sys.executable], IN_A_MODE)[0])
    row("  PyTorch's call of a dispatch mode that does nothing", f"{moded - plain:.1f} us", "")
    few, many = (number(BARE, n, 1, CUDA_VISIBLE_DEVICES="") for n in (8, 264))
    row("memory of a rank that does nothing", f"{(many - few) / 256:.2f} MiB", "target: 1 MiB")
    ours = statistics.median(on_torchemu(TRAINING)[1] for _ in range(3))
    row("DDP script, 8 ranks, whole command", f"{ours:.1f} s", "")
    if not options.quick:
        gloo = run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS)], TRAINING)[1]
        row("the same on 8 gloo processes", f"{gloo:.1f} s", "")
        row("gloo's time as a multiple of ours", f"{gloo / ours:.1f} x", "target: 4 x")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    row("largest process", f"{peak:.0f} MiB", "")


if __name__ == "__main__":
    main()
