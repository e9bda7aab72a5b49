"""Names that start with an underscore in PyTorch, and that programs use nevertheless."""

from __future__ import annotations

from typing import Any

from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
import torchemu.distributed.distributed_c10d as c10d
from torchemu._C import _distributed_c10d as core


def on_groups(n: int, backend: str, fn: Any) -> None:
    """fn(default group, rank) on ranks."""

    def program(rank: int) -> None:
        dist.init_process_group(backend)
        fn(dist.group.WORLD, rank)

    on_ranks(n, program)


def test_the_core_has_what_the_package_has() -> None:
    assert torch._C._distributed_c10d is core  # type: ignore[attr-defined]
    for name in ("AllreduceOptions", "FileStore", "ProcessGroup", "ReduceOp", "Store", "Work"):
        assert getattr(core, name) is getattr(dist, name)
    for name in core.__all__:
        assert getattr(core, name) is not None
    for name in c10d.__all__:
        assert hasattr(c10d, name)


def test_kinds_of_groups(open_world: OpenWorld) -> None:
    open_world("sips2")
    for backend, kinds in {"nccl": (True, False), "gloo": (False, True), "cpu:gloo,cuda:nccl": (True, True)}.items():

        def program(group: dist.ProcessGroup, rank: int, kinds: tuple[bool, bool] = kinds) -> None:
            backend = group._get_backend(torch.device("cuda"))
            assert (isinstance(backend, dist.ProcessGroupNCCL), isinstance(backend, dist.ProcessGroupGloo)) == kinds
            assert not isinstance(None, dist.ProcessGroupNCCL)

        on_groups(2, backend, program)
