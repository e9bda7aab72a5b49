"""Complex numbers: they are made, moved, shared and saved; there is no arithmetic of them."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from complex_numbers import COMPLEX, PARTS, noise
from conftest import OpenWorld, same

import torchemu as torch


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()


@pytest.mark.parametrize("kind", COMPLEX)
def test_they_are_made_and_moved(kind: str) -> None:
    z = noise(kind, 3, 4)
    t = torch.tensor(z)
    assert t.dtype is getattr(torch, kind) and t.dtype.is_complex and not t.dtype.is_floating_point
    assert same(t.numpy(), z) and t.tolist() == z.tolist() and t[1, 2].item() == z[1, 2]
    for moved, want in {
        t.t().contiguous(): z.T,
        torch.cat([t, t[:1]]): np.concatenate([z, z[:1]]),
        torch.stack([t, t]): np.stack([z, z]),
        t[[2, 0]]: z[[2, 0]],
        t.cpu(): z,
    }.items():
        assert same(moved.numpy(), np.ascontiguousarray(want))
    target = torch.zeros(3, 4, dtype=t.dtype)
    target[:2].copy_(t[1:])
    target[2] = 1j
    assert same(target.numpy(), np.concatenate([z[1:], np.full((1, 4), 1j, kind)]))
    assert same(t.view(getattr(torch, PARTS[kind])).numpy(), z.view(PARTS[kind]))


def test_files_pickles_and_copies() -> None:
    for kind in COMPLEX:
        z = torch.from_numpy(noise(kind, 3, 4))
        file = io.BytesIO()
        torch.save({"z": z, "row": z[1], "number": 1j, "dtype": z.dtype}, file)
        file.seek(0)
        loaded = torch.load(file)
        assert (loaded["number"], loaded["dtype"]) == (1j, z.dtype)
        for name, want in {"z": z, "row": z[1]}.items():
            assert same(loaded[name].numpy(), want.numpy()) and loaded[name].dtype is want.dtype
        for t in (pickle.loads(pickle.dumps(z)), copy.deepcopy(z), z.clone()):
            assert same(t.numpy(), z.numpy()) and t.dtype is z.dtype and t.data_ptr() != z.data_ptr()


@pytest.mark.parametrize(
    "use",
    [
        lambda z: z + 1,
        lambda z: z.abs(),
        lambda z: torch.ones(2) * z,
        lambda z: torch.ones(2) + 1j,
        lambda z: z == z,
        lambda z: z.sum(),
        lambda z: z.sort(),
        lambda z: z @ z,
        lambda z: torch.linspace(0, 1, 3, dtype=torch.complex64),
    ],
)
def test_there_is_no_arithmetic(use: Callable[[torch.Tensor], Any]) -> None:
    with pytest.raises(NotImplementedError, match=r"NumPy front end has no arithmetic of torch.complex64: run with"):
        use(torch.tensor([1j, 2]))


def test_they_have_no_gradients_and_are_not_random() -> None:
    with pytest.raises(NotImplementedError, match=r"NumPy front end has no gradients of torch.complex64: run with"):
        torch.tensor([1j]).requires_grad_()
    with pytest.raises(RuntimeError, match="value cannot be converted to type float without overflow"):
        torch.ones(2).fill_(1j)
    with pytest.raises(NotImplementedError, match="\"normal_cpu\" not implemented for 'ComplexFloat'"):
        torch.tensor([1j]).normal_()


def test_they_are_printed() -> None:
    assert repr(torch.tensor([1.5 + 2j], device="cpu")) == "tensor([1.5+2.j], dtype=torch.complex64)"
