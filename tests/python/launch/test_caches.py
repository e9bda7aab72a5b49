"""Functions of installed packages remember each rank's own process, such as its number."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from launch import launch, lines, written

PACKAGE = """
import functools, os
from functools import cache, lru_cache, partial

@cache
def rank():
    return int(os.environ["RANK"])

@lru_cache
def once():
    return []

@partial(lru_cache, maxsize=None)()
def with_size():
    return rank()

@cache
def of_value(value):
    return [value]
"""

PROGRAM = """
import sys
sys.path.append({folder!r})
import pickle, torch.distributed as dist
from remembers import of_value, once, rank, with_size
dist.init_process_group("gloo")
mine = dist.get_rank()
assert rank() == with_size() == mine and rank.__name__ == "rank" and rank.__wrapped__() == mine
assert once() is once() and rank.cache_info().misses == 1
once().append(mine)
dist.barrier()
assert once() == [mine] and pickle.loads(pickle.dumps(rank)) is rank
of_value(3).append(mine)
dist.barrier()
once.cache_clear()
print(once(), sorted(of_value(3)))
"""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Lets each run load the package anew."""
    yield
    sys.modules.pop("remembers", None)


def test_answers_are_a_ranks_own(tmp_path: Path) -> None:
    written(tmp_path, PACKAGE, "site-packages/remembers.py")
    program = written(tmp_path, PROGRAM.format(folder=str(tmp_path / "site-packages")))
    assert lines(launch("--nproc-per-node", "2", program)) == ["[] [0, 1, 3]"] * 2


OF_TORCH = """
import functools, torch

@functools.lru_cache(maxsize=None)
def mask(rows, *, whole=True):
    return torch.ones(rows)

class Rotary:
    def __init__(self, rows):
        self.rows = rows

    @functools.cache
    def table(self, times):
        return torch.ones(self.rows) * times
"""

USING = """
import sys
sys.path.append({folder!r})
import torch.distributed as dist
from remembers import Rotary, mask
dist.init_process_group("gloo")
mine, rotary = dist.get_rank(), Rotary(2)
assert mask(2) is mask(2) and mask(2) is not mask(2, whole=False)
mask(2).fill_(mine)
dist.barrier()
print(mask(2).tolist(), rotary.table(3).tolist(), rotary.table(3) is rotary.table(3), Rotary.table.cache_info().hits)
"""


def test_answers_with_tensors_are_a_ranks_own(tmp_path: Path) -> None:
    written(tmp_path, OF_TORCH, "site-packages/remembers.py")
    program = written(tmp_path, USING.format(folder=str(tmp_path / "site-packages")))
    want = [f"[{float(rank)}, {float(rank)}] [3.0, 3.0] True 2" for rank in range(2)]
    assert sorted(lines(launch("--nproc-per-node", "2", program))) == want
