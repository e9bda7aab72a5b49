"""PowerSGD: what is averaged against the same in NumPy, when it begins, what is fed back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu import nn
from torchemu.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
from torchemu.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_wrapper
from torchemu.nn.parallel import DistributedDataParallel

RNG = np.random.default_rng


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()


def reduced(data: list[np.ndarray], hook: Any, make: Any) -> list[list[np.ndarray]]:
    """A matrix's gradients after each pass on each rank; data[step][rank] are those before, as the loss is linear."""

    def program(rank: int) -> list[np.ndarray]:
        dist.init_process_group()
        model = DistributedDataParallel(nn.Linear(data[0].shape[2], data[0].shape[1], bias=False))
        state = make()
        model.register_comm_hook(state, hook)
        found = []
        for step in data:
            model.zero_grad()
            weights = torch.from_numpy(step[rank]).float().to("ahbm")
            model(torch.eye(weights.shape[1], device="ahbm")).mul(weights.t()).sum().backward()
            found.append(model.module.weight.grad.cpu().numpy())
        return found

    return on_ranks(len(data[0]), program)


def orthonormal(matrix: np.ndarray) -> np.ndarray:
    result = matrix.copy()
    for i in range(result.shape[1]):
        for j in range(i):
            result[:, i] -= result[:, j] @ result[:, i] * result[:, j]
        result[:, i] /= np.linalg.norm(result[:, i])
    return result


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_matrices_become_products_of_narrow_ones(rank: int) -> None:
    """From the third pass on, with what has been lost before: only Q at first is random, so the next ones follow."""
    data = [RNG([rank, i]).standard_normal((2, 9, 8)) for i in range(6)]
    found = reduced(data, power.powerSGD_hook, lambda: power.PowerSGDState(None, rank, 2, min_compression_rate=1.0))
    assert all(a.tolist() == b.tolist() for a, b in zip(*found, strict=True))
    for i in (0, 1):
        np.testing.assert_allclose(found[0][i], data[i].mean(0), rtol=1e-5, atol=1e-6)
    errors, q = np.zeros((2, 9, 8)), None
    for i in range(2, 6):
        given = data[i] + errors
        result = found[0][i].astype(np.float64)
        assert np.linalg.matrix_rank(result, tol=1e-4) == rank
        if q is not None:
            p = orthonormal((given @ orthonormal(q)).sum(0))
            np.testing.assert_allclose(result, p @ (np.swapaxes(given, 1, 2) @ p).mean(0).T, rtol=1e-3, atol=1e-3)
        errors = given - result
        left, sizes, right = np.linalg.svd(result)
        p = left[:, :rank]
        q = (np.swapaxes(given, 1, 2) @ p).mean(0)  # of another basis of the same space, which makes no difference
        assert (sizes[:rank] > 0).all() and len(right) == 8


def test_what_is_a_product_loses_nothing() -> None:
    """Gradients of rank one that have their columns in common are averaged exactly, whatever Q begins with."""
    column, rows = RNG(1).standard_normal(9), RNG(2).standard_normal((4, 2, 8))
    data = [np.stack([np.outer(column, row) for row in step]) for step in rows]
    for hook, make in (
        (power.powerSGD_hook, lambda: power.PowerSGDState(None, 1, 2)),
        (power.powerSGD_hook, lambda: power.PowerSGDState(None, 1, 0, use_error_feedback=False, warm_start=False)),
        (power.batched_powerSGD_hook, lambda: power.PowerSGDState(None, 9, 2)),
    ):
        for step, found in zip(data, reduced(data, hook, make)[0], strict=True):
            np.testing.assert_allclose(found, step.mean(0), rtol=1e-3, atol=1e-4)


def test_small_matrices_and_vectors_are_averaged_as_they_are() -> None:
    data = [RNG(i).standard_normal((2, 3, 2)) for i in range(4)]
    for step, found in zip(
        data, reduced(data, power.powerSGD_hook, lambda: power.PowerSGDState(None, 1, 2))[0], strict=True
    ):
        np.testing.assert_allclose(found, step.mean(0), rtol=1e-5, atol=1e-6)


def test_in_fewer_bits() -> None:
    data = [np.stack([np.outer(np.arange(1, 10.0), np.arange(1, 9.0))] * 2) for _ in range(4)]
    hook = bf16_compress_wrapper(power.powerSGD_hook)
    for found in reduced(data, hook, lambda: power.PowerSGDState(None, 1, 2))[0]:
        np.testing.assert_allclose(found, data[0][0], rtol=3e-2)


def test_too_early() -> None:
    with pytest.raises(ValueError, match="Expect `start_powerSGD_iter` > 1"):
        power.PowerSGDState(None, start_powerSGD_iter=1)
