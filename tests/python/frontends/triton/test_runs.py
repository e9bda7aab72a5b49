"""Runs of numbers and addresses have no elements until somebody looks: they are what blocks with elements are."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernel_worlds import run, world_of

import torchemu as torch
import torchemu.frontends.triton.face as triton
import torchemu.frontends.triton.face.language as tl
from torchemu.errors import DeadlockError, KernelError
from torchemu.frontends.triton import _clock, _types
from torchemu.frontends.triton._values import Run, tensor
from torchemu.frontends.triton_dist import _symmetric
from torchemu.frontends.triton_dist.face import language as dl
from torchemu.multiprocessing import SpawnException

SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 30)))
EDGE = (1 << 31) - 20

STEPS: list[tuple[str, Callable[[Any, int], Any]]] = [
    ("x + n", lambda x, n: x + n),
    ("n + x", lambda x, n: n + x),
    ("x - n", lambda x, n: x - n),
    ("n - x", lambda x, n: n - x),
    ("x + value", lambda x, n: x + tensor(np.int32(n), _types.int32)),
    ("value + x", lambda x, n: tensor(np.int32(n), _types.int32) + x),
    ("x * n", lambda x, n: x * n),
    ("x + long", lambda x, n: x + tensor(np.int64(n), _types.int64)),
    ("x + x", lambda x, n: x + x),
    ("x[:, None]", lambda x, n: x[:, None] if len(x.shape) == 1 else x),
]
ENDS: list[tuple[str, Callable[[Any, int], Any]]] = [
    ("x", lambda x, n: x),
    ("x < n", lambda x, n: x < n),
    ("x < value", lambda x, n: x < tensor(np.int32(n), _types.int32)),
    ("x >= n", lambda x, n: x >= n),
    ("(x < n) & (x > 2)", lambda x, n: (x < n) & (x > 2)),
    ("p + x", lambda x, n: place() + x),
    ("p + n + x", lambda x, n: place() + n + x),
    ("p + x + n", lambda x, n: place() + x + n),
    ("p + x < p + n", lambda x, n: place() + x < place() + n),
]


def place() -> tensor:
    """A pointer to float32."""
    return tensor(np.int64(1 << 44), _types.pointer_type(_types.float32))


def with_elements(x: tensor) -> tensor:
    """The same block, made."""
    return tensor(x.data.copy(), x.dtype)


def worked(function: Callable[[], Any]) -> tuple[Any, int]:
    """Returns what a function gives, and the bytes of results that it was charged for."""
    account = _clock.Account()
    before = _clock.present()
    _clock.use(account)
    try:
        with np.errstate(all="ignore"):
            return function(), account.made
    finally:
        _clock.use(before)


def test_runs_are_blocks() -> None:
    """Random expressions: values, types, shapes, and what they take."""
    print("SEED", SEED)
    choose = random.Random(SEED)
    for _ in range(400):
        start = choose.choice([0, 3, -40, EDGE])
        steps = [choose.choice(STEPS) for _ in range(choose.randrange(4))] + [choose.choice(ENDS)]
        numbers = [choose.choice([0, 1, 5, -7, 16, 40, 1 << 20]) for _ in steps]
        run_of = tl.arange(0, 16) + start
        assert type(run_of) is Run or start == EDGE

        def made(x: Any, steps: Any = steps, numbers: Any = numbers) -> Any:
            for (_, step), n in zip(steps, numbers, strict=True):
                x = step(x, n)
            return x

        got, cost = worked(lambda made=made, x=run_of: made(x))
        want, price = worked(lambda made=made, x=run_of: made(with_elements(x)))
        said = start, [name for name, _ in steps], numbers
        assert got.dtype == want.dtype and got.shape == want.shape, said
        assert np.asarray(got.data).dtype == np.asarray(want.data).dtype, said
        assert np.array_equal(got.data, want.data), said
        assert cost == price, said


@triton.jit
def tails(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=5.0)
    tl.store(out + i, value + 1, mask=i < n)
    tl.store(out + n + i, value, mask=i < 2 * n - n)


@pytest.mark.parametrize("n", [1, 15, 16, 17, 32, 33])
def test_masks_of_tails(n: int) -> None:
    x = np.arange(n, dtype=np.float32)
    with world_of(1):
        out = torch.zeros(2 * n)
        tails[(triton.cdiv(n, 16),)](torch.from_numpy(x).to("ahbm:0"), out, n, 16)
        assert np.array_equal(out.numpy(), np.concatenate((x + 1, x)))


@triton.jit
def swaps(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for _ in range(n):
        first = tl.load(x + i)
        second = tl.load(x + BLOCK + i)
        tl.store(x + i, second)
        tl.store(x + BLOCK + i, first)
    kept = tl.load(x + i)
    tl.store(x + i, kept * 0)
    tl.store(x + 2 * BLOCK + i, kept + 1)


@pytest.mark.parametrize("n", [0, 1, 2, 1501])
def test_values_are_those_of_their_loads(n: int) -> None:
    """Stores that come later change nothing of them, however far the program is ahead of the core."""
    x = np.arange(96, dtype=np.float32)
    with world_of(1):
        given = torch.from_numpy(x.copy()).to("ahbm:0")
        swaps[(1,)](given, n, 32)
        left, right = (x[32:64], x[:32]) if n % 2 else (x[:32], x[32:64])
        assert np.array_equal(given.numpy(), np.concatenate((left * 0, right, left + 1)))


@triton.jit
def fails_after_a_wait(words):
    dl.wait(words, 1, "gpu", "acquire")
    tl.something_new(words)


@pytest.mark.parametrize("comes", [True, False])
def test_a_failure_comes_when_the_wait_before_it_is_over(comes: bool) -> None:
    def program(rank: int) -> None:
        words = _symmetric.allocate((1,), "int64")
        words.fill_(int(comes))
        fails_after_a_wait[(1,)](words)
        torch.cuda.synchronize()

    with pytest.raises(SpawnException) as caught:
        run(1, program)
    error = caught.value.errors[0].exception
    assert isinstance(error, KernelError if comes else DeadlockError), error
    assert ("something_new is not emulated" in str(error)) == comes
