"""The arguments of simpler's tasks, without a Worker."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import OpenWorld

import torchemu as torch
from torchemu.frontends.simpler.task_interface import (
    ArgDirection,
    CallConfig,
    ChipCallable,
    ContinuousTensor,
    CoreCallable,
    DataType,
    TaskArgs,
    Tensor,
    TensorArgType,
    get_element_size,
    scalar_to_uint64,
)
from torchemu.frontends.simpler_setup.torch_interop import make_tensor_arg, torch_dtype_to_datatype

IN = ArgDirection.IN


def some(data: int = 64, shape: tuple[int, ...] = (4,)) -> ContinuousTensor:
    return ContinuousTensor.make(data, shape, DataType.FLOAT32)


@pytest.mark.parametrize("kind", DataType, ids=lambda kind: kind.name)
def test_element_sizes(kind: DataType) -> None:
    name = kind.name.lower()
    numpy = ml_dtypes.bfloat16 if name == "bfloat16" else name
    assert get_element_size(kind) == np.dtype(numpy).itemsize


def test_tensor() -> None:
    t = ContinuousTensor.make(data=4096, shapes=[2, 3, 5], dtype=DataType.INT16, child_memory=True)
    assert (t.data, t.shapes, t.dtype, t.child_memory) == (4096, (2, 3, 5), DataType.INT16, True)
    assert (t.ndims, t.numel(), t.nbytes()) == (3, 30, 60)
    assert not some().child_memory
    assert Tensor is ContinuousTensor


@pytest.mark.parametrize(("shape", "elements"), [((), 1), ((0,), 0), ((3, 0, 2), 0), ((1,) * 5, 1)])
def test_tensor_of_odd_shape(shape: tuple[int, ...], elements: int) -> None:
    assert some(shape=shape).numel() == elements


@pytest.mark.parametrize("shape", [(1,) * 6, (-1,), (2, -3)])
def test_tensor_of_impossible_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="there can be up to 5 sizes"):
        some(shape=shape)


def test_task_args_keep_order_and_tags() -> None:
    args = TaskArgs()
    args.add_tensor(some(64))
    args.add_tensor(some(128), TensorArgType.OUTPUT_EXISTING)
    args.add_scalar(7)
    args.add_scalar(-1)
    assert (args.tensor_count(), args.scalar_count(), len(args)) == (2, 2, 4)
    assert [args.tensor(i).data for i in range(2)] == [64, 128]
    assert [args.tag(i) for i in range(2)] == [TensorArgType.INPUT, TensorArgType.OUTPUT_EXISTING]
    assert [args.scalar(i) for i in range(2)] == [7, 2**64 - 1]


def test_tensors_come_before_scalars() -> None:
    args = TaskArgs()
    args.add_scalar(1)
    with pytest.raises(RuntimeError, match="all tensors of a TaskArgs come before its scalars"):
        args.add_tensor(some())
    assert args.tensor_count() == 0


def test_task_args_take_no_torch_tensors(open_world: OpenWorld) -> None:
    open_world()
    with pytest.raises(TypeError, match="make_tensor_arg makes one"):
        TaskArgs().add_tensor(torch.zeros(3))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        (0, 0),
        (True, 1),
        (-1, 2**64 - 1),
        (2**64 + 5, 5),
        (1.5, 0x3FC00000),
        (-0.0, 0x80000000),
        (0.1, int(np.float32(0.1).view(np.uint32))),
        (ctypes.c_double(0.1), int(np.float64(0.1).view(np.uint64))),
        (ctypes.c_float(-2.5), int(np.float32(-2.5).view(np.uint32))),
        (ctypes.c_int32(-3), 2**64 - 3),
        (np.uint64(2**63 + 1), 2**63 + 1),
    ],
)
def test_scalars(value: Any, bits: int) -> None:
    assert scalar_to_uint64(value) == bits


@pytest.mark.parametrize("kind", DataType, ids=lambda kind: kind.name)
def test_tensor_arg(kind: DataType, open_world: OpenWorld) -> None:
    open_world()
    t = torch.zeros(2, 3, dtype=getattr(torch, kind.name.lower())).share_memory_()
    arg = make_tensor_arg(t)
    assert (arg.data, arg.shapes, arg.dtype, arg.child_memory) == (t.data_ptr(), (2, 3), kind, False)
    assert torch_dtype_to_datatype(t.dtype) is kind


def test_tensor_arg_of_a_view(open_world: OpenWorld) -> None:
    open_world()
    t = torch.zeros(4, 4)
    assert make_tensor_arg(t[2]).data == t.data_ptr() + 8 * 4
    with pytest.raises(ValueError, match=r"call contiguous\(\) first"):
        make_tensor_arg(t[:, 0])


@pytest.mark.parametrize("name", ["float64", "bool", "float8_e4m3fn"])
def test_tensor_arg_of_other_dtypes(name: str, open_world: OpenWorld) -> None:
    open_world()
    with pytest.raises(ValueError, match="there is no DataType for"):
        make_tensor_arg(torch.zeros(2, dtype=getattr(torch, name)))
    with pytest.raises(KeyError):
        torch_dtype_to_datatype(getattr(torch, name))


def test_config_takes_any_attribute() -> None:
    config = CallConfig()
    config.block_dim = 3
    config.enable_profiling = True  # type: ignore[attr-defined]


def test_callables() -> None:
    core = CoreCallable.build(signature=[IN, ArgDirection.OUT], binary=b"k", arg_index=[0, 1])
    chip = ChipCallable.build(signature=[IN], func_name="f", binary=b"o", children=[(0, core)], config_name="c")
    assert chip.children == ((0, core),)
    with pytest.raises(ValueError, match=r"arg_index \[1, 0\]: want \[0, 1\]"):
        CoreCallable.build(signature=[IN, IN], binary=b"", arg_index=[1, 0])
    for children in ([], [(1, core), (1, core)]):
        with pytest.raises(ValueError, match="want one or several, each with a number of its own"):
            ChipCallable.build(signature=[], func_name="f", binary=b"", children=children)
