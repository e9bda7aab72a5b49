"""Backends, which serve process groups on types of devices: torch._C._distributed_c10d.Backend, which programs make
subclasses of, and the two that they make instances of, ProcessGroupGloo and ProcessGroupNCCL."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, NoReturn

from torchemu import runtime
from torchemu.c10d.membership import Membership, common_membership
from torchemu.c10d.ops import TABLE
from torchemu.c10d.stores import Store
from torchemu.frontends.numpy.distributed._backend_dispatch import checked_place
from torchemu.frontends.numpy.distributed._options import BackendOptions
from torchemu.frontends.numpy.distributed._process_group import ProcessGroup
from torchemu.frontends.numpy.distributed.constants import default_pg_nccl_timeout, default_pg_timeout
from torchemu.runtime.rank_local import RankLocal


class Backend:
    """A backend, which does the operations of process groups on some types of devices. A program's own subclass has the
    methods of ProcessGroup that it can do, and ``getBackendName``.

    Args:
        rank: in the group.
        size: of the group.
    """

    class Options:
        """The options of a backend, as far as all have them.

        Attributes:
            backend: its name.
        """

        def __init__(self, backend: str, timeout: timedelta = default_pg_timeout) -> None:
            self.backend, self._timeout = backend, timeout

    supports_splitting = supports_coalescing = supports_shrinking = supports_time_estimate = False

    def __init__(self, rank: int, size: int) -> None:
        _, self._rank, self._size = checked_place("Backend", (rank, size))

    def rank(self) -> int:
        """This rank's number in the group."""
        return self._rank

    def size(self) -> int:
        """The number of ranks."""
        return self._size

    def name(self) -> str:
        """Returns what the backend is called.

        Raises:
            RuntimeError: the subclass does not say it.
        """
        return self._get_backend_name()

    def _get_backend_name(self) -> str:
        own: Callable[[], str] | None = getattr(self, "getBackendName", None)
        if own is None:
            raise RuntimeError("getBackendName is not implemented.")
        return own()

    def abort(self) -> None:
        """Does nothing."""

    def shutdown(self) -> None:
        """Does nothing."""

    def set_timeout(self, timeout: timedelta) -> None:
        """Does nothing."""

    def eager_connect_single_device(self, device: Any = None) -> None:
        """Does nothing."""

    def supports_tensor_alloc(self, device: Any) -> bool:
        """False."""
        return False

    def _set_sequence_number_for_group(self) -> None:
        """Does nothing."""

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Not for backends of a program's own.

        Raises:
            RuntimeError: always.
        """
        name = self._get_backend_name()
        raise RuntimeError(f"Backend {name} does not support monitoredBarrier, only GLOO supports monitored barrier.")

    def _get_sequence_number_for_group(self) -> int:
        raise RuntimeError(f"Backend {self._get_backend_name()} does not yet support sequence numbers.")

    def _start_coalescing(self) -> None:
        raise RuntimeError(f"Backend {self._get_backend_name()} does not implement startCoalescing")

    def _end_coalescing(self) -> None:
        raise RuntimeError(f"Backend {self._get_backend_name()} does not implement endCoalescing")


_OPERATIONS = (*TABLE.methods(), "send", "recv", "recv_anysource", "shrink")
"""Operations that a backend may have."""


def _without(text: str) -> Callable[..., NoReturn]:
    def operation(self: Backend, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"Backend {self._get_backend_name()} does not support {text}")

    operation.__doc__ = "What a subclass may do; see ProcessGroup.\n\nRaises:\n    RuntimeError: it does not."
    return operation


for _name in _OPERATIONS:
    setattr(Backend, _name, _without({"recv_anysource": "recvAnysource"}.get(_name, _name)))


# -- on the fabric


class _OfBackend(type):
    """Whose instances are also the process groups of a backend: those that _get_backend gives."""

    backend: str

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, ProcessGroup) and instance.delegate is None and cls.backend in instance.backend


class _FabricBackend(ProcessGroup, metaclass=_OfBackend):
    """A group whose ranks have found each other through a store, and whose collectives the fabric does.

    Args:
        store: what the ranks share, and nobody else.
        rank, size: of the group.
        options: those of the backend, or the timeout.

    Raises:
        TypeError: rank and size are no numbers.
        ValueError: there is no such rank.
        MismatchError: ranks of one store say different sizes.
    """

    backend: str
    _usual_timeout: timedelta

    def __init__(
        self, store: Store, rank: int, size: int, options: Any = None, *, timeout: timedelta | None = None
    ) -> None:
        kind = type(self)
        _, rank, size = checked_place(kind.__name__, (store, rank, size))
        if not 0 <= rank < size:
            raise ValueError(f"rank {rank} is not one of a group of {size}")
        limit = timeout or (options if isinstance(options, timedelta) else getattr(options, "_timeout", None))
        self._begin(None)
        shared = _met(store, rank, size)
        name = kind.backend
        self.join(shared, shared.members, "", "", name)
        self.timeout = limit or kind._usual_timeout


def _met(store: Store, rank: int, size: int) -> Membership:
    """Returns what the ranks of a new group have in common, who tell each other through the store who they are."""
    me = str(runtime.current().rank)
    turn = store.add(f"joined/{rank}", 1)  # a store may be used again
    store.set(f"{turn}/member/{rank}", me)
    if rank == 0:
        store.set(f"{turn}/name", f"{me}.{next(_numbers.get())}")
    name = store.get(f"{turn}/name").decode()
    members = tuple(int(store.get(f"{turn}/member/{i}")) for i in range(size))
    return common_membership(("store", name), f"store:{name}", members, f"store:{name}")


_numbers: RankLocal[itertools.count[int]] = RankLocal(itertools.count)
"""Of the groups that a rank has made as the first of their members."""


class ProcessGroupGloo(_FabricBackend):
    """The backend of gloo groups."""

    backend = "gloo"
    _usual_timeout = default_pg_timeout

    Options = _Options = BackendOptions
    Device = SimpleNamespace

    @staticmethod
    def create_device(hostname: str = "", interface: str = "", lazy_init: bool | None = None) -> SimpleNamespace:
        """A network device, which means nothing here."""
        return SimpleNamespace(hostname=hostname, interface=interface)

    @staticmethod
    def create_default_device(lazy_init: bool | None = None) -> SimpleNamespace:
        """A network device, which means nothing here."""
        return ProcessGroupGloo.create_device()


class ProcessGroupNCCL(_FabricBackend):
    """The backend of nccl groups. Its options may be given and mean nothing but their timeout."""

    backend = "nccl"
    _usual_timeout = default_pg_nccl_timeout

    Options = BackendOptions
    NCCLConfig = SimpleNamespace
