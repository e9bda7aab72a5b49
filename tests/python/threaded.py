"""Running programs whose ranks have threads."""

from __future__ import annotations

import textwrap
from pathlib import Path

from launch import Outcome, launch, written

START = """
import concurrent.futures
import os
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist

def together(*calls):
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
"""


def ran(folder: Path, text: str, *flags: str, nproc: int = 3, backend: str = "gloo") -> Outcome:
    """A run of a program that begins with START and has a default group."""
    start = START + (f'dist.init_process_group("{backend}")\n' if backend else "")
    return launch("--nproc-per-node", str(nproc), *flags, written(folder, start + textwrap.dedent(text)))


def check(folder: Path, text: str, *flags: str, nproc: int = 3, backend: str = "gloo") -> None:
    """Runs a program that checks for itself."""
    outcome = ran(folder, text, *flags, nproc=nproc, backend=backend)
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
