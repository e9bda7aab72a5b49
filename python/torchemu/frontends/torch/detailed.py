"""The debug level DETAIL: before a rank issues a collective it meets the others of the group, and what they call is
compared, as PyTorch's ProcessGroupWrapper does. So a program may catch the error and go on."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from torchemu import dtypes, runtime
from torchemu.c10d.fingerprints import Fingerprint, both, told_apart
from torchemu.errors import MismatchError
from torchemu.frontends.torch.device import deferral

if TYPE_CHECKING:
    from torchemu.frontends.torch.groups import AhbmGroup

Shapes = list[tuple[int, ...]]

_COMPARED: dict[str, tuple[str, tuple[int, ...]]] = {
    "_allgather_base": ("_ALLGATHER_BASE", (1,)),
    "_reduce_scatter_base": ("_REDUCE_SCATTER_BASE", (1, 0)),
    "allgather": ("ALLGATHER", (1,)),
    "allgather_coalesced": ("ALLGATHER_COALESCED", ()),
    "allgather_into_tensor_coalesced": ("ALLGATHER_INTO_TENSOR_COALESCED", (1,)),
    "allreduce": ("ALLREDUCE", (0,)),
    "allreduce_coalesced": ("ALLREDUCE_COALESCED", ()),
    "alltoall": ("ALLTOALL", ()),
    "alltoall_base": ("ALLTOALL_BASE", ()),
    "barrier": ("BARRIER", ()),
    "broadcast": ("BROADCAST", (0,)),
    "gather": ("GATHER", (1,)),
    "reduce": ("REDUCE", (0,)),
    "reduce_scatter": ("REDUCE_SCATTER", (0,)),
    "reduce_scatter_tensor_coalesced": ("REDUCE_SCATTER_TENSOR_COALESCED", (0,)),
    "scatter": ("SCATTER", (0,)),
}
"""The methods whose calls are compared, with PyTorch's names of what they do, and the places of the arguments whose
tensors are."""


class Meeting:
    """One rank's side of what the ranks of a group tell each other before collectives.

    Args:
        group: theirs.
        beside: a group of gloo of the same ranks, of which nobody else makes use.
        limit: how long a rank waits for the others.
    """

    def __init__(self, group: AhbmGroup, beside: AhbmGroup, limit: timedelta) -> None:
        self._group, self._beside, self._limit = group, beside, limit
        self._met = 0
        self._is_inside = False

    def around(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls a method of the group once all ranks have been found to call it, with tensors that are alike. What it
        is made of is not compared again.

        Raises:
            MismatchError: one calls something else.
            RuntimeError: some have not come within the limit.
        """
        compared = _COMPARED.get(method.__name__)
        if compared is None or self._is_inside:
            return method(self._group, *args, **kwargs)
        self._compare(*_fingerprint(self._group, compared, method, args, kwargs))
        self._is_inside = True
        try:
            return method(self._group, *args, **kwargs)
        finally:
            self._is_inside = False

    def _compare(self, mine: Fingerprint, shapes: Shapes) -> None:
        self._met += 1
        told: dict[int, dict[int, tuple[Fingerprint, Shapes, str]]] = self._beside.membership.told
        site = runtime.call_site()
        told.setdefault(self._met, {})[mine.rank] = mine, shapes, site
        try:
            self._beside.monitored_barrier(self._limit, wait_all_ranks=True)
        except RuntimeError as error:
            text = f"ProcessGroupWrapper: Monitored Barrier encountered error running collective: {mine}. Error: \n"
            raise RuntimeError(f"{text}{error}") from error
        told.pop(self._met - 1, None)  # all have been there
        for rank, (other, of_other, site_of_other) in sorted(told[self._met].items()):
            text = told_apart(mine, other)
            if text or shapes != of_other:
                sites = f"rank {mine.rank} calls it at {site}\nrank {rank} at {site_of_other}"
                raise MismatchError(f"{text or both(mine, other)}\n{sites}")


def _fingerprint(
    group: AhbmGroup,
    compared: tuple[str, tuple[int, ...]],
    method: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Fingerprint, Shapes]:
    """Returns what is compared of a call: its fingerprint, and the shapes of all tensors, of which that has the first
    one's."""
    operation, indices = compared
    given = list(inspect.signature(method).bind(group, *args, **kwargs).arguments.values())[1:]
    tensors = [tensor for index in indices for tensor in deferral.tensors(given[index])]
    made = Fingerprint(
        group.rank(),
        int(group._get_sequence_number_for_group()),
        operation,
        tuple(tensors[0].shape) if tensors else (),
        tuple(dtypes.parse(str(tensor.dtype)).title for tensor in tensors),
        tensors[0].device.type if tensors else "cpu",
    )
    return made, [tuple(tensor.shape) for tensor in tensors]
