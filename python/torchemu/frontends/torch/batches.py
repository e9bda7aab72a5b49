"""Batches of messages, which a library launches as one."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _register_work
from torch.distributed import _functional_collectives as functional
from torch.distributed import distributed_c10d as c10d

from torchemu.c10d.hooks import batched
from torchemu.frontends.torch.groups import AhbmGroup
from torchemu.frontends.torch.works import Several
from torchemu.runtime.launches import one_launch


def batching(issue: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Makes batch_isend_irecv issue the messages of a group as one launch, with one work, as NCCL does; gloo's are one
    each."""

    @functools.wraps(issue)
    def call(p2p_op_list: Any) -> Any:
        first = p2p_op_list[0] if isinstance(p2p_op_list, list) and p2p_op_list else None
        if first is not None and sys._getframe(1).f_code.co_filename.startswith(_PIPELINING):
            _receive_apart(p2p_op_list)
        group = getattr(first, "group", None)
        if not (isinstance(group, AhbmGroup) and group.supports_coalescing):
            return issue(p2p_op_list)
        group.is_batching = True
        try:
            with one_launch(), batched(group):
                works = issue(p2p_op_list)
        finally:
            group.is_batching = False
        return [Several(works, [op.tensor for op in p2p_op_list])] if works else works

    return call


def in_place(
    op_list: Sequence[str], peer_list: Sequence[int], tag_list: Sequence[int], tensors: Sequence[Any], group_name: Any
) -> list[Any]:
    """Issues a batch of messages, and returns their tensors, for which wait_tensor waits: batch_p2p_ops_inplace. Its
    operation in C++ asks for backends that ranks' groups have not."""
    group = functional._resolve_group(group_name or dist.group.WORLD)
    if isinstance(group, str):
        group = c10d._resolve_process_group(group)
    ops = [
        dist.P2POp(getattr(dist, op), tensor, group=group, tag=tag, group_peer=peer)
        for op, peer, tag, tensor in zip(op_list, peer_list, tag_list, tensors, strict=True)
    ]
    works = dist.batch_isend_irecv(ops)
    for tensor in tensors:
        _register_work(tensor, works[0] if len(works) == 1 else Several(works, list(tensors)))
    return list(map(functional._maybe_wrap_tensor, tensors))


_PIPELINING = os.path.join(os.path.dirname(dist.__file__), "pipelining", "")


def _receive_apart(ops: Sequence[dist.P2POp]) -> None:
    """Gives each message of a batch a tensor of its own. Stages of a pipeline greet their neighbours with numbers that
    nobody reads, and PyTorch receives those of both sides in one tensor, which checks would take for the program's
    mistake."""
    received: set[int] = set()
    for op in ops:
        if op.op is dist.irecv:
            if id(op.tensor) in received:
                op.tensor = torch.empty_like(op.tensor)
            received.add(id(op.tensor))
