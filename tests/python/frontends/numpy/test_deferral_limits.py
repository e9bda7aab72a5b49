"""Where a host that runs ahead of a collective has to wait, and what goes wrong then."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ahead import LIMIT, MINE, SUM, THEIRS, X, ahead, same, tensor, told
from conftest import OpenWorld
from ranks import failures

import torchemu as torch
from torchemu.errors import DeadlockError
from torchemu.frontends.numpy._tensor.deferral import MOST

dist = torch.distributed


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> torch.World:
    monkeypatch.chdir(tmp_path)  # where the store is
    return open_world()


READS: dict[str, Callable[[Any], Any]] = {
    "item": lambda t: t.sum().item(),
    "tolist": lambda t: (t * 2).tolist(),
    "numpy": lambda t: (t + 1).numpy(),
    "print": lambda t: f"{t * 2}",
    "bool": lambda t: bool((t > 0).all()),
    "nonzero": lambda t: (t > 0).nonzero(),
    "mask": lambda t: t[t > 0],
    "index": lambda t: torch.zeros(100, device="ahbm")[t.long()],
    "cpu": lambda t: (t * 2).cpu(),
    "unique": lambda t: t.unique(),
}


@pytest.mark.parametrize("case", READS)
def test_a_host_that_looks_waits(case: str) -> None:
    """Ranks 0 and 1 wait for each other, and the report says in what, and who lacks."""

    def rank(r: int) -> None:
        dist.init_process_group("nccl")
        t, x = tensor((MINE, THEIRS)[r]), tensor(X)
        if r == 1:
            dist.recv(x, 0)
        dist.all_reduce(t)
        READS[case](t)
        dist.send(x, 1)

    errors = failures(2, rank)
    assert set(errors) == {0, 1} and all(isinstance(e, DeadlockError) for e in errors.values())
    text = str(errors[0])
    assert "rank 0 waits for " in text and "all_reduce of 6 float32 elements, op sum (collective #0" in text
    assert "rank 1 has not joined it" in text and "wait for each other in a circle" in text


def test_gloo_holds_the_host() -> None:
    """PyTorch has it so: wait() blocks the host, and a collective without async_op waits."""

    def rank(r: int) -> None:
        store = told("gloo")
        if r == 1:
            store.wait(["go"])
        t = tensor(MINE)
        dist.all_reduce(t)
        t * 2
        store.set("go", b"")

    assert isinstance(failures(2, rank)[0], DeadlockError)


def test_memory_of_the_host_holds_it() -> None:
    def rank(r: int) -> None:
        store = told("cpu:gloo,cuda:nccl")
        if r == 1:
            store.wait(["go"])
        t = torch.tensor(MINE, device="cpu")
        dist.all_reduce(t)
        t * 2
        store.set("go", b"")

    assert isinstance(failures(2, rank)[0], DeadlockError)


def test_who_never_joins_is_named() -> None:
    def rank(r: int) -> None:
        dist.init_process_group("nccl")
        if r == 1:
            return
        t = tensor(MINE)
        dist.all_reduce(t)
        for _ in range(3):
            t = t * 2
        t.tolist()

    text = str(failures(2, rank)[0])
    assert "rank 0 waits for mul" in text
    assert "likely cause: rank 1 ended without calling all_reduce #0 of group default" in text


def test_a_host_is_not_ahead_without_end() -> None:
    """Rank 0 would issue for ever; a device has room for some launches only."""
    steps = []

    def rank(r: int) -> None:
        dist.init_process_group("nccl")
        if r == 1:
            return
        t = tensor(MINE)
        dist.all_reduce(t)
        while True:
            t.add_(1)
            steps.append(1)

    assert isinstance(failures(2, rank)[0], DeadlockError)
    assert len(steps) == MOST


# -- what goes wrong


def test_what_is_wrong_with_a_call_is_said_at_once() -> None:
    def program(t: Any, x: Any) -> Any:
        with pytest.raises(RuntimeError, match="must match the size of tensor b"):
            t + torch.zeros(4, device="ahbm")
        with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
            t @ x
        with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
            x.int().add_(t)
        with pytest.raises(IndexError, match="Dimension out of range"):
            t.sum(5)
        with pytest.raises(RuntimeError, match="broadcast shape"):
            t[0].add_(x)
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            t[:1].expand(2, 3).add_(1)
        return t * 2

    same(ahead(program), SUM * 2)


def test_numbers_that_would_be_wrong_as_zeros_are_not() -> None:
    def program(t: Any, x: Any) -> Any:
        n = t.int()
        return 100 // n, 7 % n, torch.full((2, 3), 2, device="ahbm") ** n.abs().clamp(max=5)

    n = SUM.astype(np.int32)
    same(ahead(program), [100 // n, 7 % n, 2 ** np.minimum(np.abs(n), 5).astype(np.int64)])


def test_a_collective_that_fails_fails_what_follows() -> None:
    def rank(r: int) -> Any:
        store = told()
        if r == 1:
            store.wait(["go"], LIMIT)
            dist.all_reduce(tensor(MINE[0]))
            return
        t = tensor(MINE)
        dist.all_reduce(t)
        y = (t * 2).sum()
        store.set("go", b"")
        y.item()

    errors = failures(2, rank)
    assert all("disagree on the number of elements" in str(e) for e in errors.values()) and set(errors) == {0, 1}


def test_memory_is_given_back() -> None:
    """A put-off operation holds on to nothing once it is done, and lends nothing any more."""

    def program(t: Any, x: Any) -> Any:
        kept.append(x)
        z = t @ x.t()
        z = z + 1
        seen.extend([weakref.ref(z._storage), weakref.ref(t._storage)])
        return t.sum()

    kept: list[Any] = []
    seen: list[Any] = []
    same(ahead(program), SUM.sum())
    gc.collect()
    assert [ref() for ref in seen] == [None, None]
    assert not kept[0]._storage.lends
