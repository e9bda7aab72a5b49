"""ProcessGroup: the class of process groups that programs of the NumPy front end know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, cast

from torchemu import runtime
from torchemu.c10d import groups
from torchemu.c10d.backend_registry import BackendType
from torchemu.c10d.backends import Backend
from torchemu.c10d.group import Group
from torchemu.c10d.groups import NON_GROUP_MEMBER, set_default
from torchemu.c10d.hooks import Hooks
from torchemu.c10d.membership import Membership
from torchemu.frontends.numpy._buffers import TENSORS, Tensors
from torchemu.frontends.numpy._device import CPU
from torchemu.frontends.numpy.distributed import _custom_groups
from torchemu.frontends.numpy.distributed._backend_dispatch import Dispatch, checked_place
from torchemu.frontends.numpy.distributed._backend_methods import BackendMethods
from torchemu.frontends.numpy.distributed._group_methods import GroupMethods


class ProcessGroup(Group, GroupMethods, BackendMethods):
    """Ranks that meet in collectives, as one of them knows the group.

    Programs get groups from init_process_group and new_group. One that they make themselves, of this class or one of
    their own, has a rank and a size only: its class says how collectives are done, or backends that are registered for
    types of devices do them.

    Args:
        place: rank and size, perhaps after a store that the members share.
    """

    BackendType = BackendType
    UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, CUSTOM = BackendType

    def __init__(self, *place: Any) -> None:
        store, rank, size = checked_place("ProcessGroup", place)
        context = runtime.current()
        self._begin(Hooks(Dispatch(self)))
        self._place, self.store = (rank, size), store
        self.join(Membership(context.world, 0, (context.rank,)), range(size), "", "", Backend.UNDEFINED)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle 'torch._C._distributed_c10d.{type(self).__name__}' object")

    @property
    def tensors(self) -> Tensors:
        """The NumPy front end's class of tensors."""
        return TENSORS

    @classmethod
    def custom(cls, plan: Any) -> Group:
        """Makes a group whose backends the program has registered."""
        return _custom_groups.make(plan, cls)


groups.register(TENSORS, ProcessGroup)

current_default = cast("Callable[[], ProcessGroup | None]", groups.current_default)
default_group = cast("Callable[[], ProcessGroup]", groups.default_group)
resolved = cast("Callable[[ProcessGroup | None], ProcessGroup]", groups.resolved)
find_by_name = cast("Callable[[str], ProcessGroup]", groups.find_by_name)


class _HasWorld(type):
    """Gives classes the attribute WORLD, the default group of the rank that asks."""

    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802 (PyTorch's name)
        """The default group; None without one."""
        return current_default()

    @WORLD.setter
    def WORLD(cls, group: ProcessGroup | None) -> None:  # noqa: N802
        set_default(group)


class group(metaclass=_HasWorld):  # noqa: N801 (PyTorch's name)
    """``group.WORLD`` is the default group."""


class GroupMember(metaclass=_HasWorld):
    """``GroupMember.WORLD`` is the default group."""

    NON_GROUP_MEMBER = NON_GROUP_MEMBER


def get_backend_impl(group: str | ProcessGroup | None = None, device: Any = None) -> Any:
    """Returns the backend that does the operations on a device: the group itself on the fabric.

    Args:
        group: or its name; None is the default group.
        device: None is the one that the group is bound to, or all that it is for.

    Raises:
        ValueError: this rank is not in the group; without a device, there are different ones.
        RuntimeError: there is none for the device.
    """
    found = resolved(find_by_name(group) if isinstance(group, str) else group)
    where = found.bound_device_id if device is None else device
    if where is not None:
        return found._get_backend(where)
    each = [found._get_backend(kind) for kind in found._device_types] or [found._get_backend(CPU)]
    if any(backend is not each[0] for backend in each):
        raise ValueError("Process group has multiple backend implementations; pass the device argument to select one.")
    return each[0]
