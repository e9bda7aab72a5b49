"""The collectives of torch.ops.symm_mem, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR
from symmetric import SIZES, numbers, on_group, symmetric

import torchemu as torch
from torchemu import ops

FLOATS = [torch.float32, torch.bfloat16, torch.float16]


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world(SIXTY_FOUR)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", FLOATS, ids=str)
def test_all_reduces(n: int, kind: Any) -> None:
    want = sum(numbers(r, 4, 3) for r in range(n))

    def program(rank: int) -> None:
        own = numbers(rank, 4, 3)
        t, _ = symmetric(own, kind)
        one = ops.symm_mem.one_shot_all_reduce(t, "sum", "0")
        np.testing.assert_array_equal(one.float().numpy(), want)
        np.testing.assert_array_equal(t.float().numpy(), own)
        out = torch.empty(4, 3, dtype=kind)
        assert ops.symm_mem.two_shot_all_reduce_out(t, "sum", "0", out) is out
        np.testing.assert_array_equal(out.float().numpy(), want)
        assert ops.symm_mem.two_shot_all_reduce_(t, "sum", "0") is t
        np.testing.assert_array_equal(t.float().numpy(), want)

    on_group(n, program)


def test_misuse_of_collectives() -> None:
    def program(rank: int) -> None:
        t, _ = symmetric(np.zeros((2, 2)), torch.float32)
        whole, _ = symmetric([1, 2], torch.int32)
        cases: list[tuple[Callable[[], Any], type[Exception], str]] = [
            (lambda: one_shot(torch.ones(2), "sum", "0"), RuntimeError, "must be allocated with empty_strided_p2p"),
            (lambda: one_shot(t, "max", "0"), RuntimeError, "one_shot_all_reduce: only sum is supported for now"),
            (lambda: one_shot(t.t(), "sum", "0"), RuntimeError, "one_shot_all_reduce: input must be contiguous"),
            (lambda: one_shot(whole, "sum", "0"), NotImplementedError, "not implemented for 'Int'"),
            (
                lambda: ops.symm_mem.one_shot_all_reduce_out(t, "sum", "0", t[0]),
                RuntimeError,
                "input/output size mismatch",
            ),
        ]
        for call, kind, text in cases:
            with pytest.raises(kind, match=text):
                call()

    one_shot = ops.symm_mem.one_shot_all_reduce
    on_group(2, program)
