"""torch._utils: many tensors as one."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import OpenWorld

import torchemu as torch
from torchemu.frontends.numpy._utils import _flatten_dense_tensors, _unflatten_dense_tensors


@pytest.mark.parametrize("shapes", [[(2, 3)], [(2, 3), (4,)], [(), (3, 1), (0, 5), (2, 2, 2)], [(0,)]])
@pytest.mark.parametrize("strided", [False, True])
def test_there_and_back(open_world: OpenWorld, shapes: list[tuple[int, ...]], strided: bool) -> None:
    """NumPy says what the elements are; what comes back are views of the flat tensor."""
    open_world()
    arrays = [np.array(np.arange(np.prod(s)).reshape(s) + 10 * i, np.float32) for i, s in enumerate(shapes)]
    tensors = [torch.from_numpy(a.copy()) for a in arrays]
    if strided:
        tensors = [t.unsqueeze(-1).expand(*t.shape, 2)[..., 0] for t in tensors]
    flat = _flatten_dense_tensors(tensors)
    assert flat.numpy().tolist() == [x for a in arrays for x in a.ravel().tolist()]
    back = _unflatten_dense_tensors(flat, tensors)
    for got, want in zip(back, arrays, strict=True):
        assert got.shape == want.shape and np.array_equal(got.numpy(), want)
    flat.zero_()
    assert all(not t.numpy().any() for t in back)
