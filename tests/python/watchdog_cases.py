"""A program that never reads an operation which lasts longer than its group allows, and what becomes of it."""

from __future__ import annotations

PROGRAM = """
import os, sys, time
from datetime import timedelta
import torch
import torch.distributed as dist

backend, device = sys.argv[1:]
dist.init_process_group(backend, timeout=timedelta(seconds=1))
if dist.get_rank() == 0:
    work = dist.all_reduce(torch.ones(4, device=device), async_op=True)
    try:
        time.sleep(3)
        print("goes on")
        work.wait()
        work.result()[0].tolist()
    except Exception as error:
        print("catches", type(error).__name__)
else:
    time.sleep(3)
"""


def is_ended(status: int, out: str, err: str) -> bool:
    """Reports whether the watchdog has ended the rank, as NCCL's does, and the report says why."""
    told = "Watchdog caught collective operation timeout", "time.sleep(3)", "all_reduce of 4 float32 elements"
    return (status, out) == (1, "") and all(
        text in err for text in (*told, "rank 1 has not joined it", "exitcode  : -6")
    )
