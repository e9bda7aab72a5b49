"""Switches that PyTorch has once for a process are each rank's own, as in processes, and end with the run."""

import os
from unittest import mock

import pytest
import torch
import torch.distributed as dist
from torch.nn.attention import SDPBackend, sdpa_kernel

import torchemu

real = torchemu.distributed(world_size=4, torch="real")


def matmul_precision(value):
    torch.backends.cuda.matmul.fp32_precision = value


def debug_of_environment(level):
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = level.name
    dist.set_debug_level_from_env()


SWITCHES = {
    "matmul.allow_tf32": (
        lambda v: setattr(torch.backends.cuda.matmul, "allow_tf32", v),
        lambda: torch.backends.cuda.matmul.allow_tf32,
        (False, True),
    ),
    "matmul.fp32_precision": (
        matmul_precision,
        lambda: torch.backends.cuda.matmul.fp32_precision,
        ("ieee", "tf32"),
    ),
    "float32_matmul_precision": (
        torch.set_float32_matmul_precision,
        torch.get_float32_matmul_precision,
        ("highest", "high"),
    ),
    "cudnn.benchmark": (
        lambda v: setattr(torch.backends.cudnn, "benchmark", v),
        lambda: torch.backends.cudnn.benchmark,
        (False, True),
    ),
    "cudnn.enabled": (
        lambda v: setattr(torch.backends.cudnn, "enabled", v),
        lambda: torch.backends.cudnn.enabled,
        (True, False),
    ),
    "deterministic": (
        torch.use_deterministic_algorithms,
        torch.are_deterministic_algorithms_enabled,
        (False, True),
    ),
    "anomaly": (torch.autograd.set_detect_anomaly, torch.is_anomaly_enabled, (False, True)),
    "printing": (
        lambda v: torch.set_printoptions(precision=v),
        lambda: len(str(torch.tensor(1 / 3)).split(".")[1]) - 1,
        (4, 7),
    ),
    "flash": (torch.backends.cuda.enable_flash_sdp, torch.backends.cuda.flash_sdp_enabled, (True, False)),
    "math": (torch.backends.cuda.enable_math_sdp, torch.backends.cuda.math_sdp_enabled, (True, False)),
    "debug level": (
        lambda v: dist.set_debug_level(v),
        dist.get_debug_level,
        (dist.DebugLevel.OFF, dist.DebugLevel.DETAIL),
    ),
    "debug level of the environment": (
        debug_of_environment,
        dist.get_debug_level,
        (dist.DebugLevel.OFF, dist.DebugLevel.INFO),
    ),
    "warnings": (torch.set_warn_always, torch.is_warn_always_enabled, (False, True)),
}


@pytest.mark.parametrize("name", SWITCHES)
@real
def test_a_switch_is_its_ranks_own(name):
    turn, value, (first, other) = SWITCHES[name]
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    assert value() == first
    dist.barrier()
    if rank % 2:
        turn(other)
    dist.barrier()
    assert value() == (other if rank % 2 else first)
    if rank == 3:
        turn(first)
    dist.barrier()
    assert value() == (other if rank == 1 else first)


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_ends_with_the_run(name):
    turn, value, (first, other) = SWITCHES[name]

    def rank() -> None:
        dist.init_process_group("gloo")
        turn(other)
        dist.barrier()

    torchemu.distributed(world_size=2, torch="real")(rank)()
    assert value() == first


@real
def test_kernels_of_attention_are_chosen_by_each_rank():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    backend = (SDPBackend.FLASH_ATTENTION, SDPBackend.MATH, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION)
    enabled = (
        torch.backends.cuda.flash_sdp_enabled,
        torch.backends.cuda.math_sdp_enabled,
        torch.backends.cuda.mem_efficient_sdp_enabled,
        torch.backends.cuda.cudnn_sdp_enabled,
    )
    for _ in range(3):
        with sdpa_kernel(backend[rank]):
            dist.barrier()
            assert [is_on() for is_on in enabled] == [k == rank for k in range(4)]
            dist.barrier()
        assert all(is_on() for is_on in enabled)


@real
def test_two_names_of_one_switch_change_together():
    """PyTorch does not tell a precision by its old name that is not the one by its new name."""
    dist.init_process_group("gloo")
    first = dist.get_rank() == 0
    if first:
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.set_float32_matmul_precision("high")
    if dist.get_rank() == 1:  # PyTorch refuses now to tell the precision by that name
        torch.set_float32_matmul_precision("high")
        torch.backends.cuda.matmul.allow_tf32 = False
    for _ in range(2):
        dist.barrier()
        assert torch.backends.cuda.matmul.allow_tf32 == first
        if dist.get_rank() != 1:
            assert torch.get_float32_matmul_precision() == ("high" if first else "highest")


@torchemu.distributed(world_size=1, torch="real")
def test_groups_take_the_debug_level_that_the_environment_has_got():
    """PyTorch reads it as it is imported, for which programs set it first; here somebody has imported it before."""
    with mock.patch.dict(os.environ, TORCH_DISTRIBUTED_DEBUG="DETAIL"):
        dist.init_process_group("gloo")
        assert dist.get_debug_level() == dist.DebugLevel.DETAIL
