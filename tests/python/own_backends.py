"""Backends of a program's own, for tests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist


class Done(dist.Work):
    """A work that has ended."""

    def __init__(self, result: Any = None) -> None:
        super().__init__()
        self.waited = 0
        self._result = result

    def wait(self, timeout: timedelta | None = None) -> bool:
        self.waited += 1
        return True

    def get_future(self) -> Any:
        future: torch.futures.Future[Any] = torch.futures.Future()
        future.set_result(self._result)
        return future


def describe(value: Any) -> Any:
    """A tensor's shape, an option's fields, and others as they are."""
    if isinstance(value, torch.Tensor):
        return tuple(value.shape)
    if isinstance(value, list):
        return [describe(v) for v in value]
    if type(value).__name__.endswith("Options"):
        told = [getattr(value, name) for name in ("asyncOp", "reduceOp", "rootRank") if hasattr(value, name)]
        return (type(value).__name__, *told)
    return value


class Noting(dist.ProcessGroup):
    """A group that does nothing but note what is called of it."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self.notes: list[Any] = []
        self.works: list[Done] = []

    def getBackendName(self) -> str:  # noqa: N802 (PyTorch's name)
        return "Noting"


def _noted(name: str) -> Callable[..., Done]:
    def method(self: Noting, *args: Any) -> Done:
        self.notes.append((name, *map(describe, args)))
        self.works.append(Done(args[0]))
        return self.works[-1]

    return method


METHODS = [
    *("broadcast", "allreduce", "allreduce_coalesced", "reduce", "allgather", "_allgather_base", "allgather_coalesced"),
    *("allgather_into_tensor_coalesced", "gather", "scatter", "reduce_scatter", "_reduce_scatter_base"),
    *("reduce_scatter_tensor_coalesced", "alltoall", "alltoall_base", "send", "recv", "recv_anysource", "barrier"),
]
"""The names by which process groups are called."""
for _name in METHODS:
    setattr(Noting, _name, _noted(_name))


def registered(name: str, creator: Any, **options: Any) -> None:
    """Registers a backend for the host's memory."""
    dist.Backend.register_backend(name, creator, devices=options.pop("devices", ["cpu"]), **options)


def noting(n: int, program: Callable[[Noting], Any]) -> list[Any]:
    """program(group) on the ranks of a default group that notes."""

    def main(rank: int) -> Any:
        registered("noting", lambda store, rank, size, timeout: Noting(rank, size))
        dist.init_process_group("noting")
        group = dist.group.WORLD
        assert isinstance(group, Noting)
        return program(group)

    return on_ranks(n, main)


def t(*shape: int) -> torch.Tensor:
    return torch.ones(shape, device="cpu")


def several(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    return [t(*shape) for shape in shapes]
