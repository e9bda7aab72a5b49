"""Names of torch.distributed behind which there is nothing."""

from __future__ import annotations

import enum
from typing import Any, NewType

from torchemu.unsupported import unsupported_class

GroupName = NewType("GroupName", str)
RankType = int

_DDP = "it is a part of DistributedDataParallel; all_reduce the gradients after the backward pass instead"


def _class(name: str, instead: str) -> Any:
    return unsupported_class(f"torch.distributed.{name}", instead)


Logger = _class("Logger", _DDP)
Reducer = _class("Reducer", _DDP)


class BuiltinCommHookType(enum.Enum):
    """The communication hooks that are built into PyTorch's DistributedDataParallel."""

    ALLREDUCE = 1
    FP16_COMPRESS = 2
