"""Makers of parallel_state's functions, which say of each kind of group the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchemu.frontends.numpy import distributed as dist
from torchemu.tp import _state

Setter = Callable[[int | None], None]


def _documented(function: Callable[..., Any], about: str) -> Any:
    function.__doc__ = about
    return function


def group_getter(kind: str, about: str) -> Callable[..., Any]:
    """Makes the getter of the rank's group of a kind: an AssertionError where there is none, or None."""

    def get(check_initialized: bool = True) -> Any:
        return _state.group(kind, check_initialized)

    return _documented(get, f"Returns {about}.")


def size_getter(kind: str, alone: int | None = None) -> Callable[[], int]:
    """Makes the getter of the number of ranks in the rank's group; alone is that without a default process group."""

    def get() -> int:
        return _state.size(kind) if alone is None or dist.is_initialized() else alone

    return _documented(get, f"Returns the number of ranks in the {kind} group{_unless(alone)}.")


def rank_getter(kind: str, alone: int | None = None) -> Callable[[], int]:
    """Makes the getter of the rank's number in its group; alone is that without a default process group."""

    def get() -> int:
        return _state.rank(kind) if alone is None or dist.is_initialized() else alone

    return _documented(get, f"Returns the rank's number in the {kind} group{_unless(alone)}.")


def _unless(alone: int | None) -> str:
    return "" if alone is None else f"; {alone} without a default process group"


def size_setter(kind: str) -> Setter:
    """Makes what changes the answer of size_getter's getter."""

    def set_size(world_size: int | None) -> None:
        _state.set_size(kind, world_size)

    return _documented(set_size, "Makes the getter answer this; None: the group's own again.")


def rank_setter(kind: str) -> Setter:
    """Makes what changes the answer of rank_getter's getter."""

    def set_rank(rank: int | None) -> None:
        _state.set_rank(kind, rank)

    return _documented(set_rank, "Makes the getter answer this; None: the group's own again.")


def first_rank_getter(kind: str) -> Callable[[], int]:
    """Makes the getter of the first rank of the rank's group."""

    def get() -> int:
        return _state.first_rank(kind)

    return _documented(get, f"Returns the first rank of the {kind} group, from where others get what all are to have.")


def publish(names: dict[str, Any]) -> list[str]:
    """Gives a module's functions their own names, and lists them for ``__all__``: those of Megatron, which begin so."""
    public = sorted(n for n in names if n.startswith(("get_", "set_", "is_", "initialize_", "destroy_", "model_")))
    for name in public:
        if names[name].__module__ == __name__:
            names[name].__name__ = names[name].__qualname__ = name
            names[name].__module__ = names["__name__"]
    return public
