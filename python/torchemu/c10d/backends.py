"""Backends: their names. Those that are built in are all the emulated fabric."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from torchemu.c10d.backend_registry import BackendType, Plugin, known, register

DEFAULT_TIMEOUT = timedelta(minutes=30)
"""An operation may take so long, but for backend nccl."""

NCCL_TIMEOUT = timedelta(minutes=10)
"""An operation may take so long with backend nccl."""

BACKENDS = ("ahbm", "nccl", "gloo")
"""The names of the backends that are built in. All are the emulated fabric."""

_NOT_BUILT_IN = {
    "mpi": "Distributed package doesn't have MPI built in. MPI is only included if you build PyTorch from source on a "
    "host that has MPI installed.",
    "ucc": "Distributed package doesn't have UCC built in",
    "xccl": "Distributed package doesn't have XCCL built in",
}


class _OfRank(type):
    """Gives Backend what the running rank knows of backends: also the names that its program has registered."""

    def __getattr__(cls, name: str) -> str:
        if name.isupper() and name.lower() in known().names:
            return name.lower()
        raise AttributeError(f"type object 'Backend' has no attribute {name!r}")

    @property
    def backend_list(cls) -> list[str]:
        """All names."""
        return known().names

    @property
    def default_device_backend_map(cls) -> dict[str, str]:
        """The backend that each type of device has unless a program says another."""
        return known().by_device

    @property
    def backend_capability(cls) -> dict[str, list[str]]:
        """The types of devices that each backend is for."""
        return known().capability

    @property
    def backend_type_map(cls) -> dict[str, BackendType]:
        """The kind of each backend."""
        return known().types

    @property
    def _plugins(cls) -> dict[str, Plugin]:
        return known().plugins


class Backend(str, metaclass=_OfRank):
    """The names of backends: ``Backend("NCCL")`` is ``Backend.NCCL`` is ``"nccl"``."""

    __slots__ = ()

    UNDEFINED = "undefined"
    AHBM = "ahbm"
    GLOO = "gloo"
    NCCL = "nccl"
    XCCL = "xccl"
    UCC = "ucc"
    MPI = "mpi"
    FAKE = "fake"

    _BackendPlugin = Plugin

    def __new__(cls, name: str) -> str:  # type: ignore[misc]
        """The name as PyTorch writes it."""
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return name.lower()

    @classmethod
    def register_backend(
        cls,
        name: str,
        func: Callable[..., Any],
        extended_api: bool = False,
        devices: str | Sequence[str] | None = None,
    ) -> None:
        """Makes a backend known, on this rank and those that it spawns: groups of this name are what func makes.

        Args:
            name: also becomes an attribute, in capitals.
            func: called as ``func(store, rank, size, timeout)``. It returns a ProcessGroup, which is the group then,
                or what serves tensors on the backend's devices: a ProcessGroupGloo, a
                torch._C._distributed_c10d.Backend.
            extended_api: it is called with DistributedBackendOptions and pg_options instead.
            devices: the types of devices that the backend is for; None is "cpu" and "cuda", with a warning.
        """
        register(name, Plugin(func, extended_api), devices)


class BackendConfig:
    """The backend of a group for each type of device.

    Args:
        backend: a name, or "device:backend" pairs with commas between them.

    Attributes:
        device_backend_map: the backend's name, by type of device.
    """

    def __init__(self, backend: str) -> None:
        name = str(backend).lower()
        if name == Backend.UNDEFINED:
            name = Backend.AHBM
        if name in Backend.backend_list:
            self.device_backend_map = dict.fromkeys(Backend.backend_capability[name], name)
        elif ":" in name:
            self.device_backend_map = _pairs(name)
        else:
            self.device_backend_map = _unknown(name)

    def __repr__(self) -> str:
        return ",".join(f"{device}:{backend}" for device, backend in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, str]:
        """The backend's name, by type of device."""
        return self.device_backend_map


def _pairs(text: str) -> dict[str, str]:
    """Reads "cpu:gloo,cuda:nccl"."""
    found: dict[str, str] = {}
    for pair in text.split(","):
        device, colon, backend = pair.partition(":")
        if not colon or ":" in backend:
            raise ValueError(f"Invalid device:backend pairing: {pair}. {_FORMAT}")
        if device in found:
            raise ValueError(f"Duplicate device type {device} in backend string: {text}. {_FORMAT}")
        found[device] = backend
    return found


_FORMAT = "A backend is a name, or pairs such as 'cpu:gloo,cuda:nccl'"


def _unknown(name: str) -> dict[str, str]:
    warnings.warn(
        f"Device capability of {name} unknown, assuming `cpu` and `cuda`. You can specify it in `device:backend` "
        "format in `init_process_group` call.",
        stacklevel=5,
    )
    return {"cpu": name, "cuda": name, "xpu": name}


def checked(backend: str | None) -> str:
    """The backend's name, if there is such a backend.

    Raises:
        AssertionError: unknown.
        RuntimeError: known, but not part of this package.
    """
    name = Backend(Backend.AHBM if backend is None else backend)
    for part in BackendConfig(name).device_backend_map.values():
        if part in _NOT_BUILT_IN and not _is_there(part):
            raise RuntimeError(_NOT_BUILT_IN[part])
        if not _is_there(part):
            choices = [*BACKENDS, *map(str.lower, known().plugins)]
            kind = f"c10d backend type {part.upper()}" if ":" in name else f"backend type {part}"
            raise AssertionError(f"Unknown {kind}; choose one of {', '.join(choices)}")
    return name


def _is_there(name: str) -> bool:
    return name in BACKENDS or known().plugin(name) is not None


def default_timeout(backend: str) -> timedelta:
    """Returns how long operations of a group may take for which the program does not say it."""
    return NCCL_TIMEOUT if backend == Backend.NCCL else DEFAULT_TIMEOUT


def checked_timeout(timeout: Any, backend: str) -> timedelta:
    """The timeout, or that of the backend for None."""
    if timeout is None:
        return default_timeout(backend)
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    return timeout


def is_available() -> bool:
    """Always true."""
    return True


def is_nccl_available() -> bool:
    """Always true: "nccl" is a name for the emulated fabric."""
    return True


def is_gloo_available() -> bool:
    """Always true: "gloo" is a name for the emulated fabric."""
    return True


def is_mpi_available() -> bool:
    """Always false."""
    return False


def is_ucc_available() -> bool:
    """Always false."""
    return False


def is_xccl_available() -> bool:
    """Always false."""
    return False


def is_backend_available(backend: str) -> bool:
    """Returns whether a backend of this name, or all of a list of pairs, can be used."""
    names = _pairs(backend.lower()).values() if ":" in backend else [backend.lower()]
    return all(map(_is_there, names))


def is_torchelastic_launched() -> bool:
    """Returns whether a launcher started the program."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def get_default_backend_for_device(device: Any) -> str:
    """The backend for a device or type of device.

    Raises:
        ValueError: there is none.
    """
    kind = getattr(device, "type", None) or str(device).partition(":")[0]
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank on its node, which the launcher says in LOCAL_RANK.

    Raises:
        RuntimeError: it does not, and there is no fallback_rank.
    """
    rank = os.environ.get("LOCAL_RANK", fallback_rank)
    if rank is None:
        raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank")
    return int(rank)
