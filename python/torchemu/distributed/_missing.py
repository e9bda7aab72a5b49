"""Names of torch.distributed behind which there is nothing yet; and the options of backends, which mean nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NewType, NoReturn

from torchemu._unsupported import unsupported, unsupported_class

GroupName = NewType("GroupName", str)
RankType = int

_ARGUMENTS = "pass what it would hold to the functions of torch.distributed, such as all_reduce"
_DDP = "it is a part of DistributedDataParallel; all_reduce the gradients after the backward pass instead"


def _class(name: str, instead: str) -> Any:
    return unsupported_class(f"torch.distributed.{name}", instead)


AllToAllOptions = _class("AllToAllOptions", _ARGUMENTS)
AllreduceCoalescedOptions = _class("AllreduceCoalescedOptions", _ARGUMENTS)
AllreduceOptions = _class("AllreduceOptions", _ARGUMENTS)
BarrierOptions = _class("BarrierOptions", _ARGUMENTS)
BroadcastOptions = _class("BroadcastOptions", _ARGUMENTS)
GatherOptions = _class("GatherOptions", _ARGUMENTS)
ReduceOptions = _class("ReduceOptions", _ARGUMENTS)
ReduceScatterOptions = _class("ReduceScatterOptions", _ARGUMENTS)
ScatterOptions = _class("ScatterOptions", _ARGUMENTS)

BuiltinCommHookType = _class("BuiltinCommHookType", _DDP)
GradBucket = _class("GradBucket", _DDP)
Logger = _class("Logger", _DDP)
Reducer = _class("Reducer", _DDP)

_MADE_BY = "process groups are made by init_process_group and new_group"


class ProcessGroupNCCL:
    """The group of PyTorch's NCCL backend. Nothing is an instance of it; its options may be given and mean nothing."""

    class Options(SimpleNamespace):
        """What a program sets is kept."""

        def __init__(self, is_high_priority_stream: bool = False, **others: Any) -> None:
            super().__init__(is_high_priority_stream=is_high_priority_stream, config=SimpleNamespace(), **others)
            self._timeout = None

    NCCLConfig = SimpleNamespace

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise unsupported("torch.distributed.ProcessGroupNCCL", _MADE_BY)


class ProcessGroupGloo:
    """The group of PyTorch's Gloo backend. Nothing is an instance of it."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise unsupported("torch.distributed.ProcessGroupGloo", _MADE_BY)
