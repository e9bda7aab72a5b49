"""A program that asks again and again for what never comes is a deadlock, at once; one whose answer comes goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch import launch, written

START = """
import time
from datetime import timedelta
import torch
import torch.distributed as dist

dist.init_process_group("{backend}")
rank, t = dist.get_rank(), torch.ones(4)
store = dist.distributed_c10d._get_default_store()
"""

IN_VAIN = {
    "is_completed": "w = dist.irecv(t, 1)\nwhile not w.is_completed(): pass",
    "is_completed, sleeping": "w = dist.irecv(t, 1)\nwhile not w.is_completed(): time.sleep(0.001)",
    "done": "f = dist.irecv(t, 1).get_future()\nwhile not f.done(): pass",
    "check": "while not store.check(['k']): pass",
    "check, sleeping": "while not store.check(['k']): time.sleep(0.001)",
    "add": "while store.add('n', 0) < 2: pass",
    "compare_set": "store.set('lock', 'taken')\nwhile store.compare_set('lock', 'free', 'me') != b'me': pass",
    "num_keys": "while store.num_keys() < 1000: pass",
}
"""Loops of rank 0 that nobody ends, by what is asked."""


@pytest.mark.parametrize("clock", [(), ("--virtual-clock",)], ids=["wall", "virtual"])
@pytest.mark.parametrize("name", IN_VAIN)
def test_what_never_comes(tmp_path: Path, name: str, clock: tuple[str, ...]) -> None:
    loop = "\n".join("    " + line for line in IN_VAIN[name].splitlines())
    file = written(tmp_path, START.format(backend="gloo") + f"if rank == 0:\n{loop}\n")
    outcome = launch("--nproc-per-node", "2", *clock, file)
    assert outcome.status == 1 and "DeadlockError" in outcome.err
    at = len(file.read_text().splitlines())
    assert f"rank 0 waits for {name.partition(',')[0]}()" in outcome.err and f"{file}:{at} in <module>" in outcome.err


def test_all_ranks_ask_in_vain(tmp_path: Path) -> None:
    file = written(tmp_path, START.format(backend="gloo") + "while not store.check([f'k{rank}']): pass\n")
    outcome = launch("--nproc-per-node", "16", file)
    assert outcome.status == 1 and "DeadlockError" in outcome.err
    assert all(f"rank {rank} waits for check()" in outcome.err for rank in (0, 15))


RIGHT = {
    "a late sender": """
    if rank == 0:
        w = dist.irecv(t, 1)
        while not w.is_completed(): pass
    else:
        time.sleep(2)
        dist.send(t, 0)
    """,
    "a chain of keys": """
    for i in range(2000):
        if i % 2 == rank: store.set(f"k{i}", "")
        else:
            while not store.check([f"k{i}"]): pass
    """,
    "many keys that are there, while another waits": """
    if rank == 0:
        store.set("k", "")
        for i in range(5000): assert store.check(["k"])
    dist.barrier()
    """,
    "gives up by the clock": """
    if rank == 0:
        begun = time.monotonic()
        while not store.check(["k"]):
            if time.monotonic() - begun > 2: break
    dist.barrier()
    """,
    "gives up after some looks": """
    if rank == 0:
        for i in range(100):
            if store.check(["k"]): break
    dist.barrier()
    """,
    "a heartbeat": """
    if rank == 0:
        while not store.check(["stop"]): store.add("beats", 1)
    else:
        while store.add("beats", 0) < 3000: pass
        store.set("stop", "")
    """,
}
"""Programs that ask again and again, by what brings the answer about."""


@pytest.mark.parametrize("name", RIGHT)
def test_what_comes_in_the_end(tmp_path: Path, name: str) -> None:
    import textwrap

    file = written(tmp_path, START.format(backend="gloo") + textwrap.dedent(RIGHT[name]) + "print('end')\n")
    for clock in ((), ("--virtual-clock",)):
        outcome = launch("--nproc-per-node", "2", *clock, file)
        assert (outcome.status, outcome.out, outcome.err) == (0, "end\nend\n", "")
