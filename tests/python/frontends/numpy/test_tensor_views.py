"""Views of tensors, and memory that tensors share with NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import NUMPY, OpenWorld, same

import torchemu as torch


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


# -- views

INDICES = [
    1,
    -1,
    (1, 2),
    (0, 1, 3),
    slice(1, None),
    slice(None, None, 2),
    (slice(None), 1),
    (slice(None), slice(1, 3), slice(None, None, 3)),
    (Ellipsis, 0),
    (0, Ellipsis),
    Ellipsis,
    (None, 1),
    (1, None, slice(None), 2),
    slice(5, 2),
    (np.int64(1), np.int8(2)),
    (),
]
ADVANCED = [[1, 0], np.array([True, False]), (slice(None), [0, 0, 2]), ([0, 1], [2, 1]), True, np.array([[0], [1]])]


def cube() -> tuple[torch.Tensor, np.ndarray]:
    array = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    return torch.tensor(array), array.copy()


@pytest.mark.parametrize("index", INDICES)
def test_indices_select_views(index: Any) -> None:
    t, array = cube()
    part = t[index]
    assert same(part.numpy(), array[index])
    part.fill_(-1)
    array[index] = -1
    assert same(t.numpy(), array)
    t[index] = 5
    array[index] = 5
    assert same(t.numpy(), array)
    t[index] = torch.tensor(7.9)  # converted, as copy_ does
    array[index] = 7
    assert same(t.numpy(), array)


@pytest.mark.parametrize("index", ADVANCED)
def test_lists_and_masks_select_copies(index: Any) -> None:
    t, array = cube()
    part = t[index]
    assert same(part.numpy(), array[index])
    part.fill_(-1)
    assert same(t.numpy(), array)
    t[index] = 5
    array[index] = 5
    assert same(t.numpy(), array)


def test_tensors_as_indices() -> None:
    t, array = cube()
    assert same(t[torch.tensor([1, 0])].numpy(), array[[1, 0]])
    assert same(t[t == 3].numpy(), array[array == 3])
    assert same(t[torch.tensor(1), torch.tensor([0, 2])].numpy(), array[1, [0, 2]])
    t[t == 4] = torch.tensor(-4)
    assert t.tolist()[0][1][0] == -4


def test_single_elements_write_through() -> None:
    t = torch.zeros(3)
    t[1] = 5
    t[2].fill_(6)
    for i, element in enumerate(t):
        element.copy_(torch.tensor(10.0 * i + element.item()))
    assert t.tolist() == [0, 15, 26]


def test_views_of_views_of_views() -> None:
    t, array = cube()
    part, want = t[1][1:][:, ::2][0], array[1][1:][:, ::2][0]
    assert part.stride() == (2,)
    assert not part.is_contiguous()
    assert same(part.numpy(), want)
    del t
    assert same(part.numpy(), want)
    assert part.reshape(2, 1).tolist() == [[16], [18]]
    assert part.view(2, 1).tolist() == [[16], [18]]
    with pytest.raises(RuntimeError, match=r"not compatible with input tensor's size \[4, 3\] and stride \[1, 4\]"):
        torch.zeros(3, 4).t().view(12)


def test_view_and_reshape() -> None:
    t, array = cube()
    for shape in [(24,), (4, 6), (-1,), (2, -1), (1, 24, 1)]:
        assert same(t.view(*shape).numpy(), array.reshape(shape))
        assert same(t.reshape(shape).numpy(), array.reshape(shape))
    t.view(-1)[0] = 99
    assert t.tolist()[0][0][0] == 99
    assert torch.zeros(0, 3).view(3, 0).shape == (3, 0)
    assert torch.zeros(0).view(-1).shape == (0,)
    for shape in [(5,), (5, -1), (-1, -1), (-2, -12), (-2, 12), (0, -1), (2**70,)]:
        with pytest.raises(RuntimeError, match=r"invalid|only one dimension can be inferred"):
            t.view(*shape)


def test_bad_indices() -> None:
    t, _ = cube()
    for index in (2, -3, (0, 0, 0, 0), (0, 3), 2**70):
        with pytest.raises(IndexError):
            t[index]
        with pytest.raises(IndexError):
            t[index] = 0
    for index in ("a", 1.5, object()):
        with pytest.raises(IndexError):
            t[index]
    for index in (slice(None, None, -1), (0, slice(2, 0, -1))):
        with pytest.raises(ValueError, match=r"step must be greater than zero"):
            t[index]
    with pytest.raises(RuntimeError, match=r"cannot copy a tensor of shape \[5\] into one of shape \[3, 4\]"):
        t[0] = torch.zeros(5)


# -- NumPy


@pytest.mark.parametrize("name", NUMPY)
def test_from_numpy_shares_memory(name: str) -> None:
    array = np.zeros((2, 3), NUMPY[name])
    t = torch.from_numpy(array)
    assert t.dtype is getattr(torch, name)
    array[1, 2] = 1
    assert t.tolist()[1][2] == 1
    t.fill_(1)
    assert same(array, np.ones((2, 3), NUMPY[name]))
    assert np.shares_memory(t.numpy(), array)


def test_from_numpy_of_strided_arrays() -> None:
    base = np.arange(48.0).reshape(4, 12)
    for array in [base[::2], base[:, ::3], base.T, base[1:3, 2:7], base[:, 0], base[2:2], base[3, 4], base[:, None, 1]]:
        array = np.asarray(array)
        t = torch.from_numpy(array)
        assert same(t.numpy(), array)
        t.fill_(-1)
        assert (array == -1).all()
        assert torch.ones(array.shape, dtype="f64").copy_(t).tolist() == np.full(array.shape, -1.0).tolist()


def test_from_numpy_copies_what_is_read_only() -> None:
    array = np.arange(3)
    array.flags.writeable = False
    t = torch.from_numpy(array)
    t.fill_(7)
    assert array.tolist() == [0, 1, 2]
    assert torch.from_numpy(np.broadcast_to(np.arange(3), (2, 3))).tolist() == [[0, 1, 2]] * 2
    assert torch.from_numpy(np.frombuffer(b"abc", np.uint8)).tolist() == [97, 98, 99]


def test_from_numpy_rejects() -> None:
    packed = np.zeros(3, np.dtype([("a", "u1"), ("b", "<i4")]))["b"]
    cases: list[tuple[Any, type[Exception], str]] = [
        (np.arange(3.0)[::-1], ValueError, "not negative"),
        (packed, ValueError, "multiples of the element size"),
        (np.zeros(3, ">f4"), ValueError, "byte order"),
        (np.zeros(3, ">i8"), ValueError, r"use array.astype\('int64'\)"),
        (np.zeros(3, object), TypeError, "of type object: the supported types are bool, uint8"),
        (np.zeros(3, "U4"), TypeError, "can't convert"),
        (np.zeros(3, "M8[s]"), TypeError, "can't convert"),
        (np.zeros(3, np.clongdouble), TypeError, "can't convert"),
        (np.zeros(3, np.longdouble), TypeError, "can't convert"),
        (np.zeros(3, [("a", "f4")]), TypeError, "can't convert"),
        (np.zeros(3, ml_dtypes.float8_e4m3), TypeError, "float8_e4m3"),
        (np.zeros(3, ml_dtypes.int4), TypeError, "int4"),
        ([1, 2], TypeError, r"expected np.ndarray \(got list\)"),
        (np.float32(1), TypeError, r"expected np.ndarray \(got float32\)"),
        (torch.zeros(1), TypeError, r"expected np.ndarray \(got Tensor\)"),
    ]
    for wrong, kind, text in cases:
        with pytest.raises(kind, match=text):
            torch.from_numpy(wrong)


def test_unaligned_memory() -> None:
    raw = np.zeros(4 * 5 + 1, np.uint8)
    array = raw[1:].view(np.float32)
    assert not array.flags.aligned
    t = torch.from_numpy(array)
    t.copy_(torch.arange(5))
    assert array.tolist() == t.tolist() == t.clone().tolist() == [0, 1, 2, 3, 4]
    assert torch.zeros(5, dtype="f16").copy_(t).tolist() == [0, 1, 2, 3, 4]


def test_numpy_shares_memory() -> None:
    t = torch.zeros(2, 3)
    array = t.numpy()
    array[0, 0] = 5
    assert t.tolist()[0][0] == 5
    t[1, 1] = 6
    assert array[1, 1] == 6
    assert np.shares_memory(array, np.asarray(t)) and np.shares_memory(t[1].numpy(), array)
    assert not np.shares_memory(array, np.array(t, copy=True))
    assert np.asarray(t, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match=r"copy"):
        np.array(t, dtype=np.float64, copy=False)


def test_parts_of_nothing_may_lie_behind_its_end() -> None:
    empty = torch.zeros(0, 4)
    assert [part.contiguous().shape for part in empty.split(2, dim=1)] == [(0, 2)] * 2
    assert torch.zeros(4, 0)[2:].clone().tolist() == [[], []]
