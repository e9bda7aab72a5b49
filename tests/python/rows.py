"""Misuse of torch.distributed as tables: what is called, and what comes of it on rank 0 of two."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist


@dataclass(frozen=True)
class Row:
    """A misuse and what comes of it.

    Attributes:
        call: the misuse.
        error: what it raises; None for nothing.
        text: the beginning of the message.
        warning: what it warns of, and how that begins.
        note: why the message differs from PyTorch's, where it does.
    """

    call: Callable[[], Any]
    error: type[BaseException] | None = None
    text: str = ""
    warning: tuple[type[Warning], str] | None = None
    note: str = ""


def f32(*shape: int) -> torch.Tensor:
    return torch.zeros(shape)


def f64(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype="float64")


def members_only() -> Any:
    """A group that rank 0 is not in."""
    return dist.new_group([1])


def misuse(row: Row) -> None:
    """Checks what a row does on this rank."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        raised = None
        try:
            row.call()
        except Exception as error:
            raised = error
    if row.error is None:
        assert raised is None
    else:
        assert type(raised) is row.error, raised
        assert str(raised).startswith(row.text)
    warned = [(w.category, str(w.message)) for w in seen]
    if row.warning is None:
        assert not warned
    else:
        assert warned == [row.warning]
        assert seen[0].filename == row.call.__code__.co_filename


def on_rank_zero(row: Row, init: bool = True) -> None:
    """Checks what a row does on rank 0, where rank 1 does nothing."""

    def program(rank: int) -> None:
        if init:
            dist.init_process_group("gloo")
        if rank == 0:
            misuse(row)
            dist.group.WORLD and dist.group.WORLD.abort()  # what was issued and nobody joins

    on_ranks(2, program)
