"""Worlds and ranks in notebooks: open_world without a with block, run_ranks, and what is shown as HTML."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest

import torchemu as torch
import torchemu.distributed as dist
from torchemu import runtime


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while isinstance(world := runtime.world._world, torch.frontends.numpy._interactive.World):
        world.close()


def total(rank: int) -> list[int]:
    tensor = torch.full((3,), rank)
    dist.all_reduce(tensor)
    return tensor.tolist()


def test_a_world_holds_without_a_with_block() -> None:
    world = torch.open_world("sips8")
    assert runtime.current_world() is world and world.sips == 8
    assert torch.run_ranks(total) == [[28] * 3] * 8
    assert torch.run_ranks(total, 3) == [[3] * 3] * 3
    world.close()
    assert not world.is_open and not runtime.held_worlds.is_any_open()
    world.close()


def test_worlds_one_after_the_other() -> None:
    """A cell that is run again closes what it had opened."""
    first = torch.open_world("sips8")
    second = torch.open_world("sips2")
    assert not first.is_open and runtime.current_world() is second
    assert torch.run_ranks(lambda: dist.get_world_size()) == [2, 2]
    with pytest.raises(ValueError, match="no_such_preset"):
        torch.open_world("no_such_preset")
    assert second.is_open and runtime.current_world() is second
    second.close()


def test_a_with_block_inside_of_another() -> None:
    with torch.open_world("sips8") as outer:
        with torch.open_world("sips2") as inner:
            assert runtime.current_world() is inner
        assert not inner.is_open and runtime.current_world() is outer and outer.is_open
        assert torch.ones(3).sum().item() == 3
    assert not outer.is_open and not runtime.held_worlds.is_any_open()


def test_ranks_without_a_world() -> None:
    assert torch.run_ranks(lambda rank, k: rank * k, 6, 7) == [0, 7, 14, 21, 28, 35]
    assert torch.run_ranks(total, 40) == [[780] * 3] * 40  # more than the preset has
    assert not runtime.held_worlds.is_any_open()


def test_the_first_rank_that_fails_is_named() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        torch.run_ranks(lambda rank: 1 // (rank - 2), 4)
    assert caught.value.__notes__[0].startswith("This is rank 2, the first to fail, at ")
    assert not runtime.held_worlds.is_any_open()


@pytest.mark.parametrize("nprocs", [0, -1])
def test_numbers_of_ranks(nprocs: int) -> None:
    with pytest.raises(ValueError, match=f"nprocs must be at least 1, not {nprocs}"):
        torch.run_ranks(total, nprocs)
    with torch.open_world("sips2"), pytest.raises(ValueError, match="nprocs is 3, and the World has 2 SIPs"):
        torch.run_ranks(total, 3)


def test_interrupt_has_a_message() -> None:
    """A notebook's stop button sends a signal, while ranks run; the World can be used afterwards."""
    program = """
import os, signal
import torchemu as torch, torchemu.distributed as dist
def f(rank):
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGINT)
    while True:
        dist.barrier()
world = torch.open_world("sips2")
try:
    torch.run_ranks(f, 2)
except KeyboardInterrupt as interrupt:
    print("told:", interrupt)
print(torch.run_ranks(lambda rank: rank, 2))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    told, after = done.stdout.splitlines()
    assert told.startswith("told: interrupted") and after == "[0, 1]", done


def test_html() -> None:
    world = torch.open_world("nodes2x8")
    shown = ET.fromstring(f"<body>{world._repr_html_()}</body>")
    assert "".join(shown[0].itertext()) == "nodes2x8: 16 SIPs" and shown[1].tag.endswith("svg")
    world.close()
    assert "closed" in world._repr_html_()
