"""torch.cuda.nccl's collectives of tensors on several devices of one process, compared with NumPy."""

import numpy as np
import pytest
import torch

import torchemu

SIZES = (0, 1, 5, 1000)


def numbers(size: int) -> np.ndarray:
    return np.random.default_rng(size).integers(1, 4, (3, size)).astype(np.float32)


def on_devices(rows: np.ndarray) -> list[torch.Tensor]:
    return [torch.tensor(row).to(f"cuda:{index}") for index, row in enumerate(rows)]


def check(size: int) -> None:
    from torch.cuda import nccl

    rows = numbers(size)
    for op, reduced in enumerate(
        (rows.sum(0), rows.prod(0), rows.max(0, initial=0), rows.min(0, initial=9), rows.mean(0))
    ):
        inputs, outputs = on_devices(rows), on_devices(np.zeros_like(rows))
        nccl.all_reduce(inputs, outputs, op=op)
        assert all(np.allclose(each.cpu().numpy(), reduced, rtol=1e-6) for each in outputs)
        assert [each.device.index for each in outputs] == [0, 1, 2]
        nccl.reduce(inputs, root=1, op=op)
        assert np.allclose(inputs[1].cpu().numpy(), reduced, rtol=1e-6)
        assert np.array_equal(inputs[0].cpu().numpy(), rows[0])
    inputs = on_devices(rows)
    nccl.all_reduce(inputs)
    assert all(np.array_equal(each.cpu().numpy(), rows.sum(0)) for each in inputs)
    inputs = on_devices(rows)
    nccl.broadcast(inputs, root=2)
    assert all(np.array_equal(each.cpu().numpy(), rows[2]) for each in inputs)
    inputs, outputs = on_devices(rows), on_devices(np.zeros((3, 3 * size), np.float32))
    nccl.all_gather(inputs, outputs)
    assert all(np.array_equal(each.cpu().numpy(), rows.ravel()) for each in outputs)
    whole = np.tile(rows, 3)
    inputs, outputs = on_devices(whole), on_devices(np.zeros_like(rows))
    nccl.reduce_scatter(inputs, outputs)
    parts = whole.sum(0).reshape(3, size)
    assert all(np.array_equal(each.cpu().numpy(), part) for each, part in zip(outputs, parts, strict=True))


@pytest.mark.parametrize("size", SIZES)
def test_values_are_numpys(size):
    def program(rank: int) -> None:
        check(size)

    torchemu.pytorch.spawn(program)


def test_tensors_of_the_host_are_refused():
    def program(rank: int) -> None:
        with pytest.raises(RuntimeError, match="input and output elements have to be cuda dense Tensors"):
            torch.cuda.nccl.all_reduce([torch.ones(1), torch.ones(1, device="cuda")])
        with pytest.raises(RuntimeError, match="have to be contiguous"):
            torch.cuda.nccl.all_reduce([torch.ones(2, 2, device="cuda").t()])
        with pytest.raises(TypeError, match="Inputs should be a collection of tensors"):
            torch.cuda.nccl.all_reduce(torch.ones(1, device="cuda"))

    torchemu.pytorch.spawn(program)
