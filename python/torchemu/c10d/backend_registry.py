"""The backends that a rank knows: those that are built in, and those that its program has registered."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torchemu import runtime

UNDEFINED, AHBM, GLOO, NCCL = "undefined", "ahbm", "gloo", "nccl"


class BackendType(enum.Enum):
    """The kinds of backends that process groups tell apart."""

    UNDEFINED = 0
    GLOO = 1
    NCCL = 2
    XCCL = 5
    UCC = 3
    MPI = 4
    CUSTOM = 6

    def __int__(self) -> int:
        return self.value


class Plugin(NamedTuple):
    """A backend that a program brings along.

    Attributes:
        creator_fn: makes a process group, or what serves one.
        extended_api: it takes DistributedBackendOptions and the program's options, and not four arguments.
    """

    creator_fn: Callable[..., Any]
    extended_api: bool


def _without_fake(about: Any, options: Any) -> Any:
    raise NotImplementedError("torchemu's own torch has no backend fake: run with --torch real")


_BUILT_IN = {"FAKE": Plugin(_without_fake, extended_api=True)}


def _types() -> dict[str, BackendType]:
    names = (UNDEFINED, GLOO, NCCL, "ucc", "mpi", "xccl")
    return {name: BackendType[name.upper()] for name in names} | dict.fromkeys((AHBM, "fake"), BackendType.CUSTOM)


@dataclass
class Known:
    """The backends of one rank.

    Attributes:
        names: all of them.
        by_device: the backend that each type of device has unless a program says another.
        capability: the types of devices that each is for.
        types: the kind of each.
        plugins: those that the program has registered, by their names in capitals, and FAKE.
    """

    names: list[str] = field(default_factory=lambda: [UNDEFINED, AHBM, GLOO, NCCL, "xccl", "ucc", "mpi", "fake"])
    by_device: dict[str, str] = field(
        default_factory=lambda: {"cpu": GLOO, "cuda": NCCL, "xpu": "xccl", "mps": GLOO, "ahbm": AHBM}
    )
    capability: dict[str, list[str]] = field(
        default_factory=lambda: {
            AHBM: ["cpu", "cuda", "ahbm"],
            GLOO: ["cpu", "cuda"],
            NCCL: ["cuda"],
            "xccl": ["xpu"],
            "ucc": ["cpu", "cuda"],
            "mpi": ["cpu", "cuda"],
            "fake": ["cpu", "cuda", "hpu", "xpu"],
        }
    )
    types: dict[str, BackendType] = field(default_factory=_types)
    plugins: dict[str, Plugin] = field(default_factory=lambda: dict(_BUILT_IN))

    def plugin(self, name: str) -> Plugin | None:
        """The registered backend of the name; None without one."""
        return self.plugins.get(name.upper())

    def copy(self) -> Known:
        """The same backends, to which others can be added."""
        capability = {name: list(kinds) for name, kinds in self.capability.items()}
        return Known(list(self.names), dict(self.by_device), capability, dict(self.types), dict(self.plugins))


def known() -> Known:
    """The backends of the running rank. It begins with those of the program that spawned it."""
    context = runtime.present()
    return Known() if context is None else _known_of(context)


def register(name: str, plugin: Plugin, devices: str | Sequence[str] | None) -> None:
    """Adds a backend of the running rank, or replaces the one of the same name; see Backend.register_backend."""
    lower = name.lower()
    kinds = ["cpu", "cuda"] if devices is None else [devices] if isinstance(devices, str) else list(devices)
    if devices is None:
        warnings.warn(
            f"Device capability of {name} unspecified, assuming `cpu` and `cuda` or `xpu`. Please specify it via "
            "the `devices` argument of `register_backend`.",
            stacklevel=3,
        )
    mine = _known_of(runtime.current())
    if lower not in mine.names:
        mine.names.append(lower)
    if devices is not None:
        for kind in kinds:
            mine.by_device.setdefault(kind, lower)
    mine.types[lower], mine.capability[lower] = BackendType.CUSTOM, kinds
    mine.plugins[name.upper()] = plugin


def _known_of(context: runtime.Context) -> Known:
    if Known not in context.own:
        outer = context.parent
        context.own[Known] = Known() if outer is None else _known_of(outer).copy()
    return context.own[Known]
