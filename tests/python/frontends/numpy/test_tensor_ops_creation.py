"""Making tensors, filling and copying into them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import REAL, OpenWorld
from tensor_oracle import numbers, wrapped

import torchemu as torch


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


def test_of_one_value() -> None:
    assert (
        torch.zeros(2, 3).tolist() == torch.zeros((2, 3)).tolist() == torch.zeros(size=(2, 3)).tolist() == [[0] * 3] * 2
    )
    assert torch.ones([2], dtype=torch.bfloat16).tolist() == [1, 1] and torch.zeros(()).item() == 0
    assert torch.empty(torch.Size([2, 0])).shape == (2, 0)
    for value, kind in ((1.5, torch.float32), (3, torch.int64), (True, torch.bool)):
        assert torch.full((2,), value).dtype is kind and torch.full((), value).item() == value
    assert torch.full((2,), 1.9, dtype=torch.int8).tolist() == [1, 1]
    assert torch.full((3,), torch.tensor(2)).tolist() == [2, 2, 2]
    assert torch.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]] and torch.eye(2, dtype=torch.int32).dtype is torch.int32
    assert torch.zeros(2, dtype=float).dtype is torch.float64 and torch.zeros(2, dtype=bool).dtype is torch.bool
    out = torch.ones(2)
    assert torch.zeros(2, out=out) is out and out.tolist() == [0, 0]
    large = torch.full((100_000,), 7, dtype=torch.uint8)
    assert large.sum().item() == 700_000


def test_like_another() -> None:
    t = torch.ones(2, 3, dtype=torch.float16, device=1)
    for made in (
        torch.zeros_like(t),
        torch.ones_like(t),
        torch.empty_like(t),
        torch.full_like(t, 5),
        torch.rand_like(t),
    ):
        assert (made.shape, made.dtype, made.device) == (t.shape, t.dtype, t.device)
    for made in (t.new_zeros(4), t.new_ones((4,)), t.new_empty(4), t.new_full((4,), 2), t.new_tensor([1, 2, 3, 4])):
        assert (made.shape, made.dtype, made.device) == ((4,), t.dtype, t.device)
    assert torch.ones_like(t, dtype=torch.int8, device=0).dtype is torch.int8
    assert t.new_zeros(2, dtype=torch.bool).dtype is torch.bool


ROWS = [
    (5,), (2, 8, 3), (5, 0, -2), (3, 3), (-3, 4), (0, 1, 0.3), (1, 0, -0.4), (2.5,), (0, 5, 2.5), (10**12, 10**12 + 3),
]  # fmt: skip


@pytest.mark.parametrize("bounds", ROWS)
def test_rows_of_numbers(bounds: tuple[float, ...]) -> None:
    start, end, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    n = math.ceil((end - start) / step)
    want = [start + i * step for i in range(n)]
    got = torch.arange(*bounds)
    assert got.dtype is (torch.int64 if all(isinstance(b, int) for b in bounds) else torch.float32)
    assert got.tolist() == pytest.approx(want, rel=1e-6)
    assert torch.arange(*bounds, dtype=torch.float64).tolist() == want


def test_arange_by_name_and_its_errors() -> None:
    assert torch.arange(end=3).tolist() == [0, 1, 2] and torch.arange(start=1, end=7, step=3).tolist() == [1, 4]
    assert (
        torch.arange(torch.tensor(3)).tolist() == [0, 1, 2]
        and torch.arange(3, dtype=torch.float16).dtype is torch.float16
    )
    for call, text in [
        (lambda: torch.arange(0, 5, 0), r"step must be nonzero"),
        (lambda: torch.arange(5, 0), r"upper bound and lower bound inconsistent with step sign"),
        (lambda: torch.arange(math.inf), r"unsupported range"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            call()


@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "int32"])
@pytest.mark.parametrize(
    ("start", "end", "steps"), [(0, 1, 5), (-3, 7, 11), (2, 2, 3), (0, 10, 4), (1, 9, 1), (5, -5, 0), (0.1, 0.7, 7)]
)
def test_equal_distances(kind: str, start: float, end: float, steps: int) -> None:
    got = torch.linspace(start, end, steps, dtype=getattr(torch, kind))
    want = [start + i * (end - start) / (steps - 1) for i in range(steps)] if steps > 1 else [start][:steps]
    if kind == "int32":
        want = [float(int(round(v, 9))) for v in want]
    assert got.tolist() == pytest.approx(want, rel=2e-3 if kind == "float16" else 1e-6)
    if steps > 1 and kind in ("float32", "float64"):
        assert got[0].item() == torch.tensor(start, dtype=got.dtype).item()
        assert got[-1].item() == torch.tensor(end, dtype=got.dtype).item()


# -- of data


def test_data_decide_the_dtype() -> None:
    cases: list[tuple[Any, torch.dtype]] = [
        (5, torch.int64),
        (1.5, torch.float32),
        (True, torch.bool),
        ([True, 2], torch.int64),
        ([1, 2.5], torch.float32),
        ([], torch.float32),
        ([[], []], torch.float32),
        (range(3), torch.int64),
        ((1, 2), torch.int64),
        (np.float32(1), torch.float32),
        (np.float64(1), torch.float64),
        ([np.float64(1)], torch.float64),
        ([np.float32(1)], torch.float32),
        (np.arange(3), torch.int64),
        (np.zeros(2), torch.float64),
        ([np.int32(1)], torch.int32),
        ([torch.tensor(1.0), torch.tensor(2.0)], torch.float32),
        ([torch.tensor(1), 2], torch.int64),
        (torch.ones(1, dtype=torch.bfloat16), torch.bfloat16),
    ]
    for data, kind in cases:
        assert torch.tensor(data).dtype is kind, data
    assert torch.tensor([[1, 2], [3, 4]]).shape == (2, 2) and torch.tensor([[], []]).shape == (2, 0)
    assert torch.tensor([1.9, -1.9], dtype=torch.int32).tolist() == [1, -1]
    t = torch.ones(2)
    assert torch.tensor(t).untyped_storage() != t.untyped_storage()


def test_data_that_make_no_tensor() -> None:
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: torch.tensor([1, [2]]), ValueError, r"expected sequences of equal length at every depth"),
        (lambda: torch.tensor(2**70), ValueError, r"an integer has more than 64 bits"),
        (lambda: torch.tensor([300], dtype=torch.uint8), RuntimeError, r"to type uint8 without overflow"),
        (lambda: torch.tensor([-1], dtype=torch.uint8), RuntimeError, r"to type uint8 without overflow"),
        (lambda: torch.tensor(None), RuntimeError, r"Could not infer dtype of NoneType"),
        (lambda: torch.tensor("a"), TypeError, r"can't convert np.ndarray of type"),
        (lambda: torch.zeros(2, foo=1), TypeError, r"zeros\(\) got an unexpected keyword argument 'foo'"),
        (lambda: torch.zeros(), TypeError, r"missing 1 required positional arguments: \"size\""),
        (lambda: torch.full((2,), [1]), TypeError, r"argument 'value' must be a number"),
    ]
    for call, kind, text in cases:
        with pytest.raises(kind, match=text):
            call()


def test_shared_data() -> None:
    array = np.arange(3)
    for share in (torch.from_numpy, torch.as_tensor, torch.asarray):
        t = share(array)
        t[0] = 9
        assert array[0] == 9
        array[0] = 0
    t = torch.ones(2)
    assert torch.as_tensor(t) is t and torch.asarray(t, copy=True) is not t
    assert torch.as_tensor(t, dtype=torch.float64).dtype is torch.float64


def test_old_constructors() -> None:
    assert torch.Tensor(2, 3).shape == (2, 3) and torch.Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert torch.Tensor().shape == (0,) and torch.Tensor(torch.Size([2])).shape == (2,)
    assert torch.is_tensor(torch.Tensor(1)) and not torch.is_tensor(np.zeros(1))


# -- into existing tensors


@pytest.mark.parametrize("n", [6, 100_000])
@pytest.mark.parametrize("name", REAL)
def test_fill(name: str, n: int) -> None:
    t = torch.zeros(n, dtype=getattr(torch, name))
    for value in (1, 1.75, True, np.float32(2), torch.tensor(3)):
        assert t.fill_(value) is t
        number = value.item() if isinstance(value, torch.Tensor | np.generic) else value
        want = number if "float" in name else wrapped(int(number), name) if name != "bool" else bool(number)
        assert numbers(t[:2]) == numbers(t[-2:]) == [want, want]
    assert not any(numbers(t.zero_()[:3]))
    t[1:3] = 1
    assert [float(v) for v in numbers(t[:4])] == [0, 1, 1, 0]


def test_copies_into_views() -> None:
    t = torch.zeros(2, 3)
    t[:, 1].copy_(torch.tensor([1, 2]))
    t.t()[2].copy_(torch.tensor(7.9, dtype=torch.float64))
    assert t.tolist() == [[0, 1, pytest.approx(7.9)], [0, 2, pytest.approx(7.9)]]
    assert t.copy_(torch.ones(1, 3)).tolist() == [[1] * 3] * 2 and t.copy_(5).tolist() == [[5] * 3] * 2
    big = torch.zeros(100_000)
    big[50_000:].copy_(torch.arange(50_000))
    assert big.sum().item() == pytest.approx(sum(range(50_000)), rel=1e-6)
    overlapping = torch.arange(6)
    overlapping[1:].copy_(overlapping[:-1])
    assert overlapping.tolist() == [0, 0, 1, 2, 3, 4]
    with pytest.raises(RuntimeError, match=r"fill_ only supports 0-dimension value tensor but got tensor with 1"):
        t.fill_(torch.ones(2))
    with pytest.raises(TypeError, match=r"must be a number or a Tensor, not list"):
        t.fill_([1])
    with pytest.raises(RuntimeError, match=r"more than one element of the written-to tensor"):
        torch.zeros(1).expand(3).copy_(torch.ones(3))


def test_augmented_assignments() -> None:
    t = torch.tensor([7, 8])
    alias = t
    t += 1
    t -= torch.tensor([1, 2])
    t *= 3
    t //= 2
    t %= 8
    t **= 2
    t <<= 1
    t |= 1
    assert alias is t and t.tolist() == [((((7 * 3) // 2) % 8) ** 2) << 1 | 1, ((((7 * 3) // 2) % 8) ** 2) << 1 | 1]
    f = torch.tensor([3.0])
    f /= 2
    assert f.item() == 1.5
    with pytest.raises(RuntimeError, match=r"result type Float can't be cast"):
        t /= 2
