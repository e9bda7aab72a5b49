"""Process groups that programs make themselves, and then register backends with: `ProcessGroup(store, rank, size)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from torchemu.frontends.torch.groups import AhbmGroup
from torchemu.frontends.torch.membership import Membership
from torchemu.frontends.torch.session import Session

_MAKE = dist.ProcessGroup.__new__


class BareGroup(dist.ProcessGroup):
    """A group without backends.

    Args:
        store: one that the members share, which backends have, too.
        rank: this one's in the group.
        size: how many there are.
    """

    def __init__(self, store: Any, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self._store = store

    def get_group_store(self) -> Any:
        """A store that the members share."""
        return self._store

    def _register_backend(self, device: Any, kind: Any, backend: Any) -> None:
        if not isinstance(backend, AhbmGroup):
            super()._register_backend(device, kind, backend)
            return
        self.__dict__.update(backend.__dict__, of_devices={})
        self.__class__ = RegisteredGroup  # PyTorch's C++ finds a group's methods by its class
        self._register_backend(device, kind, backend)


class RegisteredGroup(AhbmGroup):
    """A group with backends that the program has registered with it: it issues what they would issue.

    Attributes:
        of_devices: the backends, by the types of devices that they are for.
    """

    of_devices: dict[str, AhbmGroup]

    def _register_backend(self, device: Any, kind: Any, backend: AhbmGroup) -> None:
        self.of_devices[device.type] = backend
        if device.type == "cpu":
            self._core = backend._core
        else:
            self._device_core = backend._device_core

    def _set_default_backend(self, kind: Any) -> None:
        """Every device has the backend that is registered for it."""

    def _get_backend(self, device: Any) -> AhbmGroup:
        found = self.of_devices.get(torch.device(device).type)
        if found is None:
            raise RuntimeError(f"No backend type associated with device type {torch.device(device).type}")
        return found

    def _like(self, store: Any, rank: int, membership: Membership, backend: str = "") -> AhbmGroup:
        made = super()._like(store, rank, membership, backend)
        made.__dict__["of_devices"] = dict.fromkeys(self.of_devices, made)
        return made

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device(name) for name in self.of_devices]


def install(run: Session, is_own: Callable[[], bool]) -> None:
    """Lets groups that programs make have the run's backends.

    Args:
        run: the run.
        is_own: says whether torch.distributed is making a group, which needs none of this.
    """

    def make(cls: type, *args: Any, **kwargs: Any) -> Any:
        is_bare = cls is dist.ProcessGroup and args and isinstance(args[0], dist.Store) and not is_own()
        return _MAKE(BareGroup if is_bare else cls)

    run.replace(dist.ProcessGroup, "__new__", make)
