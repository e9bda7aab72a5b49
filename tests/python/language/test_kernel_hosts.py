"""Calls that are for the host's program are errors inside of a kernel, which say what and where."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kernel_worlds import run, world_of

import torchemu
import torchemu as torch
import torchemu.language as tl
from torchemu.multiprocessing import ProcessRaisedException
from torchemu.runtime.waiting import sleep

dist = torch.distributed


OWN: dict[int, Any] = {}
TRUE: dict[int, Any] = {}
"""Things that hosts have made and kernels find, by rank."""


def own() -> Any:
    return OWN[tl.rank()]


CALLS: dict[str, Callable[[], object]] = {
    "all_reduce": lambda: dist.all_reduce(own()),
    "broadcast": lambda: dist.broadcast(own(), 0, async_op=True),
    "barrier": lambda: dist.barrier(),
    "send": lambda: dist.send(own(), 1 - tl.rank()),
    "irecv": lambda: dist.irecv(own()),
    "__add__": lambda: own() + 1,
    "__matmul__": lambda: own() @ own(),
    "sum": lambda: own().sum(),
    "add_": lambda: own().add_(1),
    "copy_": lambda: own().copy_(own()),
    "fill_": lambda: own().fill_(1),
    "__setitem__": lambda: own().__setitem__(0, 1),
    "item": lambda: own()[0].item(),
    "tolist": lambda: own().tolist(),
    "numpy": lambda: own().numpy(),
    "__bool__": lambda: bool(TRUE[tl.rank()]),
    "cpu": lambda: own().cpu(),
    "synchronize": lambda: torch.cuda.synchronize(),
    "current_stream": lambda: torch.cuda.current_stream().synchronize(),
    "sleep": lambda: dist.HashStore().get("never"),
}


@torchemu.kernel
def wrong(out: Any, what: str) -> None:
    tl.store(out, tl.full(4, 1.0))
    CALLS[what]()


def program(what: str) -> Callable[[int], None]:
    def rank(r: int) -> None:
        torch.ahbm.set_device(r)
        dist.init_process_group("nccl")
        OWN[r], TRUE[r] = torch.ones(4, device="ahbm"), torch.tensor(True)
        torch.cuda.synchronize()
        out = torch.zeros(4)
        wrong[1](out, what)
        out.tolist()

    return rank


@pytest.mark.parametrize("what", CALLS)
def test_what_is_for_the_host(what: str) -> None:
    with pytest.raises(ProcessRaisedException) as caught:
        run(2, program(what))
    text = str(caught.value)
    place = r'test_kernel_hosts\.py:(\d+): "(\w+)"'
    said = re.search(rf'kernel "wrong" on rank \d uses an operation of its host at {place}', text)
    assert said, text
    assert said[2] == what
    assert f'"{what}": lambda' in Path(__file__).read_text().splitlines()[int(said[1]) - 1]
    assert "A kernel uses torchemu.language (tl.load, tl.put, …), and NumPy." in text


def test_a_kernel_of_a_collective_names_itself(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(
        "import torchemu\n"
        '@torchemu.kernel(collective="all_reduce")\n'
        "def mine(out, source, n, op):\n"
        "    out + 0 if op == 3 else torchemu.ones(3)\n"
    )
    ccl = f"defaults: {{algorithm: mine}}\nalgorithms:\n  mine: {{kernel: {tmp_path / 'k.py'}:mine}}\n"

    def rank(r: int) -> None:
        dist.init_process_group("nccl")
        t = torch.ones(4)
        dist.all_reduce(t)
        t.tolist()

    said = r'kernel "mine" on rank [01] uses an operation of its host at k.py:4: out'
    with world_of(2, ccl), pytest.raises(ProcessRaisedException, match=said):
        torch.multiprocessing.spawn(rank, nprocs=2)


@torchemu.kernel
def give(out: Any, x: Any, n: int) -> None:
    tl.put(out.on((tl.rank() + 1) % tl.world_size()), x, n)


@torchemu.kernel
def take(x: Any, out: Any, n: int) -> None:
    tl.store(x, tl.load(out, n))


def ask(store: Any, rank: int) -> None:
    store.set(f"done {rank}", b"")
    store.wait([f"done {1 - rank}"])


LATER: dict[str, tuple[Callable[[Any, int], object], bool]] = {
    "sleep": (lambda store, rank: sleep(10**9), False),
    "poll its own device": (lambda store, rank: torch.cuda.current_stream().query(), False),
    "ask a store": (ask, True),
}


@pytest.mark.parametrize("case", LATER)
def test_time_that_passes_orders_nothing(case: str) -> None:
    """Each host waits for its kernel, and then takes what the other one's has given: long ago, in this run."""
    between, ordered = LATER[case]

    def rank(r: int) -> None:
        dist.init_process_group("nccl")
        store = dist.distributed_c10d._get_default_store()
        out, x = tl.symmetric_empty(8), torch.full((8,), float(r))
        give[1](out, x, 8)
        out.wait()
        between(store, r)
        take[1](x, out, 8)
        x.wait()

    expected = contextlib.nullcontext() if ordered else pytest.raises(ProcessRaisedException, match="RaceError")
    with world_of(2), expected:
        torch.multiprocessing.spawn(rank, nprocs=2)


def test_the_host_goes_on_after_a_launch() -> None:
    """The context of a kernel is not its host's: that may operate while the kernel is under way."""

    @torchemu.kernel
    def doubles(out: Any, n: int) -> None:
        x = tl.load(out, n)
        tl.store(out, x + x)

    got: list[Any] = [None] * 2

    def rank(r: int) -> None:
        dist.init_process_group("nccl")
        out, other = torch.full((4,), r + 1.0), torch.ones(4)
        doubles[1](out, 4)
        other.add_(r)
        dist.all_reduce(other)
        stream = torch.cuda.Stream()
        torch.cuda.set_stream(stream)
        stream.wait_stream(torch.cuda.default_stream())
        got[r] = ((out + other).tolist(), dist.get_rank())

    run(2, rank)
    assert got == [([5.0] * 4, 0), ([7.0] * 4, 1)]
