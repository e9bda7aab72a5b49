"""What training scripts say that changes little or nothing here, but has to be there."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.nn.functional as F  # noqa: N812 (its usual name)
from torchemu import nn
from torchemu.nn.attention import SDPBackend, sdpa_kernel


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


def test_the_precision_of_products_is_each_ranks() -> None:
    def program(rank: int) -> str:
        if rank:
            torch.set_float32_matmul_precision("high")
        return torch.get_float32_matmul_precision()

    assert on_ranks(2, program) == ["highest", "high"]
    with pytest.raises(RuntimeError, match="must be highest, high or medium"):
        torch.set_float32_matmul_precision("low")


def test_attention_has_one_kernel() -> None:
    q = torch.ones(1, 1, 2, 2)
    plain = F.scaled_dot_product_attention(q, q, q).tolist()
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
        assert F.scaled_dot_product_attention(q, q, q).tolist() == plain
    with pytest.raises(AssertionError, match="Backend must be an instance of SDPBackend"), sdpa_kernel("flash"):  # type: ignore[arg-type]
        pass


def test_channels_may_be_said_to_be_last() -> None:
    net = nn.Conv2d(2, 3, 1).to(memory_format=torch.channels_last)
    x = torch.ones(1, 2, 3, 3).to(memory_format=torch.channels_last)
    assert x.contiguous(memory_format=torch.channels_last).is_contiguous(memory_format=torch.channels_last)
    assert net(x).shape == (1, 3, 3, 3)


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (3, 2, 2), (1, 4), (0, 2)])
def test_orthogonal_matrices(shape: tuple[int, ...]) -> None:
    matrix = nn.init.orthogonal_(torch.empty(shape), gain=2.0).flatten(1).numpy().astype(np.float64) / 2
    rows, columns = matrix.shape
    product = matrix @ matrix.T if rows <= columns else matrix.T @ matrix
    np.testing.assert_allclose(product, np.eye(min(rows, columns)), atol=1e-6)


def test_a_vector_is_not_orthogonal() -> None:
    with pytest.raises(ValueError, match="Only tensors with 2 or more dimensions"):
        nn.init.orthogonal_(torch.empty(3))


@pytest.mark.parametrize(
    ("module", "name", "instead"),
    [
        ("fsdp", "fully_shard", "its parameters are DTensors"),
        ("tensor", "distribute_tensor", "run it with torchemu run --torch real"),
        ("tensor.parallel", "parallelize_module", "run it with torchemu run --torch real"),
        ("checkpoint", "save_state_dict", "use save and load"),
        ("pipelining", "ScheduleZBVZeroBubble", "make each stage's module"),
    ],
)
def test_what_is_not_there_can_be_imported_and_says_so(module: str, name: str, instead: str) -> None:
    found = getattr(importlib.import_module(f"torchemu.distributed.{module}"), name)
    with pytest.raises(NotImplementedError, match=rf"torch\.distributed\.{module}\.{name} is not supported: {instead}"):
        found(nn.Linear(1, 1))
    assert not isinstance(found, type) or not isinstance(nn.Linear(1, 1), found)
