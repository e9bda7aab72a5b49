"""Names that start with an underscore in PyTorch, and that programs use nevertheless."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from torchemu.c10d.backends import BackendConfig
from torchemu.c10d.groups import get_backend, get_global_rank, global_rank_of, group_rank_of
from torchemu.c10d.membership import groups
from torchemu.c10d.stores import Store
from torchemu.frontends.numpy._device import device
from torchemu.frontends.numpy._tensor import Tensor, tensor
from torchemu.frontends.numpy.distributed._process_group import ProcessGroup, find_by_name, resolved


def _check_valid_timeout(timeout: Any) -> None:
    """Raises TypeError unless it is a timedelta."""
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")


def _group_or_default_group(group: ProcessGroup | None = None) -> ProcessGroup:
    """The group, or the default one for None."""
    return resolved(group)


def _canonicalize_group_rank(
    group: ProcessGroup, global_rank: int | None = None, group_rank: int | None = None, return_global: bool = False
) -> int:
    """The group rank that is named in one of two ways, or its number in the default group."""
    return (global_rank_of if return_global else group_rank_of)(group, global_rank, group_rank)


_get_global_rank = get_global_rank


def _get_group_size_by_name(group_name: str) -> int:
    """The number of ranks of the group with the name."""
    return find_by_name(group_name).size()


def _get_process_group_store(pg: ProcessGroup) -> Store:
    """A store that the members share."""
    return pg.get_group_store()


def _get_object_coll_device(group: ProcessGroup | None = None) -> str:
    """The type of device that objects go through: the host's memory where the group's backend takes it."""
    kinds = list(BackendConfig(get_backend(group)).device_backend_map)
    return "cpu" if "cpu" in kinds else kinds[0]


def _get_pg_default_device(group: ProcessGroup | None = None) -> device:
    """The type of device that the group is for first of all."""
    return device(_get_object_coll_device(group))


def _find_pg_by_ranks_and_tag(tag: str, ranks: Sequence[int]) -> ProcessGroup | None:
    """This rank's first group of just these ranks; None without one. Tags mean nothing here."""
    for group in groups.get().by_name.values():
        if list(group.ranks) == list(ranks):
            return group
    return None


def _object_to_tensor(obj: Any, device: Any, group: ProcessGroup | None) -> tuple[Tensor, Tensor]:
    """An object's bytes, pickled, and their number."""
    data = np.frombuffer(pickle.dumps(obj), np.uint8)
    return tensor(data.copy(), device=device), tensor([len(data)], device=device)


def _tensor_to_object(tensor: Tensor, tensor_size: int | Tensor, group: ProcessGroup | None) -> Any:
    """The object of so many bytes."""
    return pickle.loads(tensor.cpu().numpy().tobytes()[: int(tensor_size)])
