"""A rank that is ahead of another: what the tests of computations that are put off share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
from ranks import on_ranks

import torchemu as torch

dist = torch.distributed

MINE = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], np.float32)
THEIRS = np.array([[10.0, 20.0, 30.0], [40.0, 50.0, 60.0]], np.float32)
SUM = MINE + THEIRS
X = np.array([[0.5, 1.5, -1.0], [2.0, 0.25, 3.0]], np.float32)
LIMIT = timedelta(seconds=1)
"""How long rank 1 waits to be told: it would fail if rank 0 did not run ahead."""

Program = Callable[[Any, Any], Any]


def tensor(array: Any) -> Any:
    return torch.tensor(array, device="ahbm")


def arrays(outcome: Any) -> Any:
    if isinstance(outcome, tuple | list):
        return [arrays(one) for one in outcome]
    return outcome.detach().numpy().copy() if isinstance(outcome, torch.Tensor) else outcome


def told(backend: str = "nccl") -> Any:
    dist.init_process_group(backend)
    return dist.FileStore("told", 2)


def ahead(program: Program, backend: str = "nccl") -> Any:
    """Returns what program(t, x) returns on rank 0, where t is the sum that rank 1 has yet to join, and x is known."""

    def rank(r: int) -> Any:
        store = told(backend)
        if r == 1:
            store.wait(["go"], LIMIT)
            t = tensor(THEIRS)
            dist.all_reduce(t)
            return t.numpy().copy()
        t, x = tensor(MINE), tensor(X)
        dist.all_reduce(t)
        outcome = program(t, x)
        store.set("go", b"")
        return arrays(outcome)

    outcome, theirs = on_ranks(2, rank)
    np.testing.assert_array_equal(theirs, SUM)
    return outcome


def same(got: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple | list):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            same(one, other)
        return
    wanted = np.asarray(wanted)
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(got, wanted, rtol=1e-6)
