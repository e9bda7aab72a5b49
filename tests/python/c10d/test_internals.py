"""Names that start with an underscore in PyTorch, and that programs use nevertheless."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
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


def test_default_devices(open_world: OpenWorld) -> None:
    open_world("sips2")
    for backend, kind in {"nccl": "cuda", "gloo": "cpu", "cpu:gloo,cuda:nccl": "cpu", "cuda:nccl": "cuda"}.items():

        def program(group: dist.ProcessGroup, rank: int, kind: str = kind) -> None:
            assert c10d._get_object_coll_device(group) == kind
            assert c10d._get_pg_default_device() == torch.device(kind)

        on_groups(2, backend, program)


def test_numbers_of_ranks(open_world: OpenWorld) -> None:
    open_world("default")

    def program(group: dist.ProcessGroup, rank: int) -> None:
        upper = dist.new_group([2, 3])
        if rank < 2:
            assert c10d._find_pg_by_ranks_and_tag("", [2, 3]) is None
            return
        assert c10d._canonicalize_group_rank(upper, 3) == 1
        assert c10d._canonicalize_group_rank(upper, group_rank=1) == 1
        assert c10d._canonicalize_group_rank(upper, group_rank=1, return_global=True) == 3
        with pytest.raises(ValueError, match="Can't specify both group_rank and global_rank"):
            c10d._canonicalize_group_rank(upper, 3, 1)
        assert c10d._get_global_rank(upper, 0) == 2
        assert c10d._get_group_size_by_name(upper.group_name) == 2
        assert c10d._find_pg_by_ranks_and_tag("", [2, 3]) is upper
        assert c10d._group_or_default_group(None) is group
        c10d._get_process_group_store(upper).set("k", "v")

    on_groups(4, "gloo", program)


def test_objects_as_tensors(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(group: dist.ProcessGroup, rank: int) -> None:
        for obj in (None, {"a": [1, 2.5]}, "x" * 1000):
            data, size = c10d._object_to_tensor(obj, torch.device("cuda"), group)
            assert data.dtype is torch.uint8 and size.tolist() == [data.numel()]
            padded = torch.cat([data, torch.zeros(5, dtype=torch.uint8)])
            assert c10d._tensor_to_object(padded, size, group) == obj

    on_groups(1, "nccl", program)


def test_timeouts_are_timedeltas() -> None:
    c10d._check_valid_timeout(timedelta(seconds=1))
    with pytest.raises(TypeError, match=r"Expected timeout argument to be of type datetime\.timedelta, got 3"):
        c10d._check_valid_timeout(3)
