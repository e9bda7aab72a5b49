"""Atomic operations over tiles, and tiles as masks, compared with NumPy element by element."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import NUMPY, same
from kernel_worlds import run, world_of
from test_kernel_tiles import of

import torchemu
import torchemu as torch
import torchemu.language as tl
from torchemu.errors import KernelError

SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 30)))
PLACES, N = 24, 40

OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (tl.atomic_add, lambda old, v: old + v),
    "max": (tl.atomic_max, lambda old, v: np.maximum(old, v)),
    "min": (tl.atomic_min, lambda old, v: np.minimum(old, v)),
    "exchange": (tl.atomic_exchange, lambda old, v: v),
    "cas": (tl.atomic_cas, lambda old, wanted, v: v if old == wanted else old),
    "and": (tl.atomic_and, lambda old, v: old & v),
    "or": (tl.atomic_or, lambda old, v: old | v),
    "xor": (tl.atomic_xor, lambda old, v: old ^ v),
}
KINDS = ["int8", "uint8", "int32", "int64", "float32", "float64", "float16", "bfloat16"]
CASES = [(op, kind) for op in OPERATIONS for kind in KINDS if "int" in kind or op not in ("and", "or", "xor")]


def oracle(op: str, memory: np.ndarray, at: np.ndarray, kept: np.ndarray, values: list[np.ndarray]) -> np.ndarray:
    """Changes memory one element after another, and returns what each has found; 0 where it is masked off."""
    old = np.zeros(at.shape, memory.dtype)
    wide = np.float32 if memory.dtype.itemsize < 4 and memory.dtype.kind not in "iu" else memory.dtype
    with np.errstate(all="ignore"):
        for i in np.ndindex(at.shape):
            if kept[i]:
                old[i] = memory[at[i]]
                operands = [np.asarray(x).astype(wide)[()] for x in (old[i], *[v[i] for v in values])]
                memory[at[i]] = np.asarray(OPERATIONS[op][1](*operands)).astype(memory.dtype)
    return old


@pytest.mark.parametrize("twice", [True, False], ids=["some places twice", "each place once"])
@pytest.mark.parametrize(("op", "kind"), CASES)
def test_old_values_and_what_is_left(op: str, kind: str, twice: bool) -> None:
    print("SEED", SEED)
    rng, shape = np.random.default_rng(SEED), (5, 8)
    size = PLACES if twice else 2 * N
    memory, first, second = (rng.integers(0, 5, n).astype(NUMPY[kind]) for n in (size, N, N))
    at = (rng.integers(0, size, N) if twice else rng.permutation(size)[:N]).reshape(shape)
    kept = rng.random(shape) < 0.7
    values = [v.reshape(shape) for v in ((first, second) if op == "cas" else (first,))]

    @torchemu.kernel
    def body(out: Any, place: Any, index: Any, mask: Any, *given: Any) -> None:
        tiles = [tl.load(p, shape) for p in given]
        found = OPERATIONS[op][0](place, *tiles, index=tl.load(index, shape), mask=tl.load(mask, shape))
        tl.store(out, found)

    with world_of(1):
        out, place = of(np.zeros(shape, NUMPY[kind])), of(memory)
        body[1](out, place, of(at), of(kept), *[of(v) for v in values])
        got, left = out.numpy().copy(), place.numpy().copy()
    assert same(got, oracle(op, memory, at, kept, values))
    assert same(left, memory)


@torchemu.kernel
def counting(counts, tickets, digits, n):
    start = tl.program_id() * n
    found = tl.atomic_add(counts, 1, index=tl.load(digits + start, n))
    tl.store(tickets + start, found)


def test_programs_count_together() -> None:
    """Each digit's tickets are 0, 1, 2, …, whoever has drawn them."""
    print("SEED", SEED)
    digits = np.random.default_rng(SEED).integers(0, 10, 96)
    with world_of(1):
        counts, tickets = torch.zeros(10, dtype=torch.int64), torch.zeros(96, dtype=torch.int64)
        counting[4](counts, tickets, of(digits), 24)
        drawn = tickets.numpy().copy()
        assert counts.tolist() == np.bincount(digits, minlength=10).tolist()
    for d in range(10):
        assert sorted(drawn[digits == d].tolist()) == list(range((digits == d).sum()))


@torchemu.kernel
def afar(words, out, n):
    peer = words.on(1 - tl.rank())
    tl.store(out, tl.atomic_add(peer, tl.arange(0, n), mask=np.arange(n) % 2 == 0))
    tl.store(out + n, tl.atomic_cas(peer, 2, tl.full(n, 9, torch.int32)))
    tl.store(out + 2 * n, tl.atomic_exchange(peer, tl.full(n, 7, torch.int32), mask=tl.arange(0, n) < 3))
    tl.barrier()


def test_words_of_another_rank() -> None:
    def program(rank: int) -> None:
        words, out = tl.symmetric_empty(4, dtype=torch.int32), torch.zeros(12, dtype=torch.int32)
        afar[1](words, out, 4)
        assert out.tolist() == [0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 9, 0]
        assert words.tolist() == [7, 7, 7, 0]

    run(2, program)


def mistakes(kind: str) -> Callable[..., Any]:
    """A call that cannot be."""
    return {
        "window": lambda p, q: tl.atomic_add(p, 1.0, index=tl.arange(0, 16)),
        "dtype": lambda p, q: tl.atomic_add(p, tl.arange(0, 8)),
        "bits": lambda p, q: tl.atomic_or(p, tl.load(p, 8)),
        "index": lambda p, q: tl.atomic_add(p, 1.0, index=tl.load(p, 8)),
        "shapes": lambda p, q: tl.atomic_add(p, tl.load(p, 8), mask=np.ones(3, bool)),
        "word": lambda p, q: tl.atomic_add(p, 1),
    }[kind]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("window", "ValueError: atomic_add: an element is beyond its window, which has 32 bytes"),
        ("dtype", "TypeError: a tile of torch.int32 cannot change torch.float32: convert it first"),
        ("bits", "TypeError: atomic_or of torch.float32: its operands are whole numbers or bools"),
        ("index", "TypeError: an index of torch.float32: it must be of whole numbers"),
        ("shapes", r"ValueError: tiles, an index and a mask of shapes \[8\] and \[3\] do not go together"),
        ("word", "TypeError: word must be of int32 or int64, not torch.float32"),
    ],
)
def test_what_is_wrong_is_said(kind: str, text: str) -> None:
    @torchemu.kernel
    def wrong(p: Any, q: Any) -> None:
        mistakes(kind)(p, q)

    with world_of(1):
        x = torch.zeros(8)
        wrong[1](x, x)
        with pytest.raises(KernelError, match=text):
            x.tolist()


@torchemu.kernel
def positive(out, x, n):
    tile = tl.load(x, n)
    chosen = tl.load(x, n, mask=tile > 0, other=-1)
    tl.store(out, chosen + 1, mask=tile > 0)


def test_tiles_are_masks() -> None:
    print("SEED", SEED)
    x = np.random.default_rng(SEED).standard_normal(50).astype(np.float32)
    with world_of(1):
        out = of(np.full(50, 8, np.float32))
        positive[1](out, of(x), 50)
        assert same(out.numpy(), np.where(x > 0, x + np.float32(1), np.float32(8)))
