"""The norm of gradients of which ranks have parts is where the parameters are."""

from __future__ import annotations

import math
from typing import Any

import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu import nn
from torchemu.distributed.fsdp import FullyShardedDataParallel


@pytest.mark.parametrize("kind", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_also_on_a_rank_that_has_nothing_of_them(open_world: OpenWorld, where: str, kind: float) -> None:
    """There are fewer elements than ranks."""
    open_world("sips8")

    def program(rank: int) -> Any:
        dist.init_process_group("gloo" if where == "cpu" else "nccl")
        torch.set_default_device("cpu")
        model = FullyShardedDataParallel(nn.Linear(2, 1, bias=False, device=where), use_orig_params=True)
        model(torch.tensor([[3.0, -4.0]], device=where)).sum().backward()
        norm = model.clip_grad_norm_(1.0, kind)
        return norm.device == next(model.parameters()).device, norm.item()

    assert on_ranks(3, program) == [(True, {1.0: 7.0, 2.0: 5.0, math.inf: 4.0}[kind])] * 3
