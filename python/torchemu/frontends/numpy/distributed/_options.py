"""The options of process groups' methods, and of backends."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from torchemu.c10d.reduce_op import RedOpType, ReduceOp

UNSET = timedelta(milliseconds=-1)
"""The timeout of options that say none: the group's holds."""


@dataclass
class AllgatherOptions:
    """Of allgather and its kin.

    Attributes:
        timeout: how long whoever waits for the work waits; UNSET: as the group says.
        asyncOp: means nothing: methods of groups always return works.
    """

    timeout: timedelta = UNSET
    asyncOp: bool = True  # noqa: N815 (PyTorch's name)


@dataclass
class AllToAllOptions(AllgatherOptions):
    """Of alltoall."""


@dataclass
class AllreduceOptions(AllgatherOptions):
    """Of allreduce.

    Attributes:
        reduceOp: how elements are combined.
    """

    reduceOp: Any = ReduceOp.SUM  # noqa: N815

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "reduceOp" and not isinstance(value, (ReduceOp, RedOpType)):
            raise TypeError(
                "(): incompatible function arguments. The following argument types are supported:\n"
                f"    1. (self: torch._C._distributed_c10d.{type(self).__name__}, "
                f"arg0: torch._C._distributed_c10d.ReduceOp) -> None\n\nInvoked with: {self!r}, {value!r}"
            )
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"<torch._C._distributed_c10d.{type(self).__name__}>"


class AllreduceCoalescedOptions(AllreduceOptions):
    """Of allreduce_coalesced."""


class ReduceScatterOptions(AllreduceOptions):
    """Of reduce_scatter."""


@dataclass
class BroadcastOptions(AllgatherOptions):
    """Of broadcast.

    Attributes:
        rootRank: the group rank whose tensor it is.
        rootTensor: means nothing: there is one tensor.
    """

    rootRank: int = 0  # noqa: N815
    rootTensor: int = 0  # noqa: N815


@dataclass(repr=False)
class ReduceOptions(AllreduceOptions):
    """Of reduce: the reduceOp of AllreduceOptions, and the root of BroadcastOptions."""

    rootRank: int = 0  # noqa: N815
    rootTensor: int = 0  # noqa: N815


@dataclass
class GatherOptions(AllgatherOptions):
    """Of gather.

    Attributes:
        rootRank: the group rank that receives.
    """

    rootRank: int = 0  # noqa: N815


@dataclass
class ScatterOptions(AllgatherOptions):
    """Of scatter.

    Attributes:
        rootRank: the group rank that gives.
    """

    rootRank: int = 0  # noqa: N815


@dataclass
class BarrierOptions(AllgatherOptions):
    """Of barrier. Devices mean nothing here."""

    device_ids: list[int] = field(default_factory=list)
    device: Any = None


class BackendOptions(SimpleNamespace):
    """The options of a backend, which mean nothing here. What a program sets is kept."""

    def __init__(self, is_high_priority_stream: bool = False, **others: Any) -> None:
        super().__init__(is_high_priority_stream=is_high_priority_stream, config=SimpleNamespace(), **others)
        self._timeout: timedelta | None = None
