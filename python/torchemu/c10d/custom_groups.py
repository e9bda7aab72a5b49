"""Groups whose backends a program has registered: what is known of them before a front end makes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from torchemu.c10d.backend_registry import known
from torchemu.c10d.backends import BackendConfig
from torchemu.c10d.stores import Store


@dataclass(frozen=True)
class Plan:
    """A plan says what a group is to be whose backends a program has registered.

    Attributes:
        backend: as init_process_group takes it.
        rank: this rank's number in the group.
        members: the ranks' numbers in the World, by group rank.
        ranks: those in the default group; None for the default group.
        name, description: of the group.
        timeout: how long an operation may take.
        options: the program's pg_options.
        store: what the members share.
    """

    backend: str
    rank: int
    members: tuple[int, ...]
    ranks: Sequence[int] | None
    name: str
    description: str
    timeout: timedelta
    options: Any
    store: Store


def is_custom(backend: str) -> bool:
    """Returns whether one of the backends of the name, or of the list of pairs, was registered by the program."""
    return any(known().plugin(name) is not None for name in BackendConfig(backend).device_backend_map.values())
