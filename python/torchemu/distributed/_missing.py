"""Names of torch.distributed behind which there is nothing."""

from __future__ import annotations

import enum
from types import SimpleNamespace
from typing import Any, NewType, NoReturn

from torchemu._unsupported import unsupported, unsupported_class
from torchemu.distributed._options import BackendOptions

GroupName = NewType("GroupName", str)
RankType = int

_DDP = "it is a part of DistributedDataParallel; all_reduce the gradients after the backward pass instead"


def _class(name: str, instead: str) -> Any:
    return unsupported_class(f"torch.distributed.{name}", instead)


Logger = _class("Logger", _DDP)
Reducer = _class("Reducer", _DDP)

_MADE_BY = "process groups are made by init_process_group and new_group"


class BuiltinCommHookType(enum.Enum):
    """The communication hooks that are built into PyTorch's DistributedDataParallel."""

    ALLREDUCE = 1
    FP16_COMPRESS = 2


class _OfBackend(type):
    """Whose instances are process groups of a backend: those that _get_backend gives."""

    backend: str

    def __instancecheck__(cls, instance: object) -> bool:
        from torchemu.distributed._groups import ProcessGroup

        return isinstance(instance, ProcessGroup) and cls.backend in instance.backend


class ProcessGroupNCCL(metaclass=_OfBackend):
    """What groups of backend nccl are. Its options may be given and mean nothing."""

    backend = "nccl"

    Options = BackendOptions
    NCCLConfig = SimpleNamespace

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise unsupported("torch.distributed.ProcessGroupNCCL", _MADE_BY)


class ProcessGroupGloo(metaclass=_OfBackend):
    """What groups of backend gloo are."""

    backend = "gloo"

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise unsupported("torch.distributed.ProcessGroupGloo", _MADE_BY)
