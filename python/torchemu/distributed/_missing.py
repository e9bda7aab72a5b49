"""Names of torch.distributed behind which there is nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NewType, NoReturn

from torchemu._unsupported import unsupported, unsupported_class
from torchemu.distributed._options import BackendOptions

GroupName = NewType("GroupName", str)
RankType = int

_DDP = "it is a part of DistributedDataParallel; all_reduce the gradients after the backward pass instead"


def _class(name: str, instead: str) -> Any:
    return unsupported_class(f"torch.distributed.{name}", instead)


BuiltinCommHookType = _class("BuiltinCommHookType", _DDP)
GradBucket = _class("GradBucket", _DDP)
Logger = _class("Logger", _DDP)
Reducer = _class("Reducer", _DDP)

_MADE_BY = "process groups are made by init_process_group and new_group"


class ProcessGroupNCCL:
    """The group of PyTorch's NCCL backend. Nothing is an instance of it; its options may be given and mean nothing."""

    Options = BackendOptions
    NCCLConfig = SimpleNamespace

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise unsupported("torch.distributed.ProcessGroupNCCL", _MADE_BY)


class ProcessGroupGloo:
    """The group of PyTorch's Gloo backend. Nothing is an instance of it."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise unsupported("torch.distributed.ProcessGroupGloo", _MADE_BY)
