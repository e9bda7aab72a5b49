"""Tensors as programs see them: contents, conversions, views, NumPy."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import numpy as np
import pytest
from conftest import NUMPY, REAL, OpenWorld, same

import torchemu as torch
from torchemu import dtypes

pytestmark = pytest.mark.shows("PyTorch: tensors")

SHORT = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f8e4m3": "float8_e4m3fn",
    "i8": "int8",
    "u64": "uint64",
}


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


def bit_patterns(name: str) -> np.ndarray:
    """Elements of a type with all its bits in use: infinities, NaNs, subnormals, both zeros."""
    kind = np.dtype(NUMPY[name])
    if name == "bool":
        return np.array([False, True, True])
    if kind.itemsize <= 2:
        return np.arange(1 << (8 * kind.itemsize), dtype=f"u{kind.itemsize}").view(kind)
    rng = np.random.default_rng(7)
    return np.frombuffer(rng.bytes(999 * kind.itemsize), dtype=kind)


# -- dtypes


def test_the_dtypes_are_torchs() -> None:
    assert [d.name for d in dtypes.ALL] == list(NUMPY)


@pytest.mark.parametrize("name", NUMPY)
def test_dtype(name: str) -> None:
    d = getattr(torch, name)
    kind = np.dtype(NUMPY[name])
    assert repr(d) == f"torch.{name}"
    assert (d.itemsize, d.numpy) == (kind.itemsize, kind)
    assert (d.is_floating_point, d.is_complex) == ("float" in name, "complex" in name)
    assert all(dtypes.parse(n) is d for n in [*d.names, f"torch.{name}", d])
    assert pickle.loads(pickle.dumps(d)) is d
    assert torch.zeros(2, dtype=d).dtype is d
    assert torch.zeros((2, 3), dtype=name).element_size() == kind.itemsize
    assert dtypes.of_numpy(np.zeros(1, kind)) is d


def test_dtype_names() -> None:
    for short, name in SHORT.items():
        assert dtypes.parse(short) is getattr(torch, name) is getattr(torch, short)
    assert dtypes.parse(None) is torch.float32
    assert torch.half is torch.float16


def test_unknown_dtype_names_the_choices() -> None:
    for bad in ("f17", "", "torch.", "\0", "f16\0", "é" * 1000):
        with pytest.raises(ValueError, match=r"unknown dtype .*: choose one of bool, uint8, .*float64"):
            torch.zeros(1, dtype=bad)
    for wrong in (3, np.float16, object(), b"f16"):
        with pytest.raises(TypeError, match=r"dtype must be a torch.dtype or its name"):
            torch.zeros(1, dtype=wrong)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match=r"has no torch\.float17"):
        operator.attrgetter("float17")(torch)


# -- creation


@pytest.mark.parametrize("name", NUMPY)
def test_creation_in_every_dtype(name: str) -> None:
    kind = NUMPY[name]
    assert same(torch.zeros(2, 3, dtype=name).numpy(), np.zeros((2, 3), kind))
    assert same(torch.ones((2, 3), dtype=name).numpy(), np.ones((2, 3), kind))
    assert same(torch.full((3,), 1, dtype=name).numpy(), np.full(3, 1, kind))
    assert same(torch.empty(3, dtype=name).numpy(), np.zeros(3, kind))
    assert same(torch.zeros_like(torch.ones(3, dtype=name)).numpy(), np.zeros(3, kind))
    assert same(torch.tensor([1, 0, 1], dtype=name).numpy(), np.array([1, 0, 1]).astype(kind))


def test_creation_infers_dtypes() -> None:
    assert torch.tensor(5).dtype is torch.int64
    assert torch.tensor([1.5]).dtype is torch.float32
    assert torch.tensor(True).dtype is torch.bool
    assert torch.tensor(np.array([1.5])).dtype is torch.float64
    assert torch.tensor(torch.ones(2, dtype="f16")).dtype is torch.float16
    assert torch.arange(2, 8, 3).tolist() == [2, 5]
    assert torch.zeros(2).dtype is torch.float32


def test_attributes() -> None:
    dp = torch.DPPolicy(num_cubes=1)
    t = torch.zeros(2, 3, dtype="f16", device=3, dp=dp, name="x")
    assert (t.shape, t.ndim, t.dim(), t.numel(), t.nbytes) == ((2, 3), 2, 2, 6, 12)
    assert (t.size(), t.size(-1), t.stride(), len(t)) == (torch.Size((2, 3)), 3, (3, 1), 2)
    assert (t.name, t.device, t.dp) == ("x", 3, dp)
    assert repr(t.shape) == "torch.Size([2, 3])"
    assert t.shape.numel() == 6
    assert torch.zeros(1).name == ""


def test_device_is_the_current_one_unless_named() -> None:
    torch.ahbm.set_device(2)
    assert [torch.zeros(1, device=d).device for d in (None, "ahbm", "ahbm:3", 1)] == [2, 2, 3, 1]
    assert torch.zeros(1).clone().device == torch.from_numpy(np.zeros(1)).device == 2


def test_repr() -> None:
    assert repr(torch.ones(2, dtype="f16")) == "tensor([1., 1.], device='ahbm:0', dtype=torch.float16)"
    assert repr(torch.zeros(0)) == "tensor([], device='ahbm:0')"
    assert f"{torch.tensor(1.25):.1f}" == "1.2"
    for name in NUMPY:
        assert (name in repr(torch.ones(1, dtype=name))) == (name not in ("bool", "int64", "float32"))


def test_bad_creation() -> None:
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: torch.zeros(-1), RuntimeError, r"negative dimension -1: \[-1\]"),
        (lambda: torch.zeros(2, -(2**70)), RuntimeError, "negative dimension"),
        (lambda: torch.zeros(1.5), TypeError, "a shape must be of integers, not 1.5"),
        (lambda: torch.zeros("3"), TypeError, "a shape must be of integers, not '3'"),
        (lambda: torch.zeros(True), TypeError, "a shape must be of integers, not True"),
        (lambda: torch.zeros([[2]]), TypeError, "a shape must be of integers"),
        (lambda: torch.zeros(1, device=4), ValueError, "device 4 does not exist.*devices 0 to 3"),
        (lambda: torch.zeros(1, device=-1), ValueError, "device -1 does not exist"),
        (lambda: torch.zeros(1, device="mps:0"), RuntimeError, "Expected one of cpu, ahbm, cuda device type .*: mps:0"),
        (lambda: torch.zeros(1, device="ahbm:x"), RuntimeError, "Invalid device string: 'ahbm:x'"),
        (lambda: torch.zeros(1, device="ahbm:9"), ValueError, "device 9 does not exist"),
        (lambda: torch.zeros(1, device=1.0), TypeError, "device must be a torch.device, an integer or a string"),
        (lambda: torch.zeros(1, dp="column_wise"), TypeError, "dp must be a DPPolicy"),
        (lambda: torch.tensor("abc"), TypeError, "can't convert np.ndarray of type <U3"),
        (lambda: torch.tensor([1, [2]]), ValueError, "inhomogeneous"),
        (lambda: torch.ahbm.set_device(4), ValueError, "device 4 does not exist"),
        (lambda: torch.ahbm.set_device("0"), RuntimeError, "Expected one of cpu, ahbm, cuda device type .*: 0"),
        (lambda: torch.ahbm.set_device("cpu"), RuntimeError, "cpu is the host"),
        (lambda: torch.ahbm.set_device(1.5), TypeError, "device must be a torch.device, an integer or a string"),
    ]
    for call, kind, text in cases:
        with pytest.raises(kind, match=text):
            call()


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        ({"cube": "columnwise"}, 'unknown placement "columnwise".*replicate, column_wise, row_wise'),
        ({"pe": ""}, 'unknown placement "".*replicate, column_wise, row_wise'),
        ({"num_pes": 9}, "num_pes is 9, but a cube has 8 PEs"),
        ({"num_cubes": 17}, "num_cubes is 17, but .*16 cubes"),
        ({"num_pes": 0}, "num_pes must be a positive integer, or None for all; not 0"),
        ({"num_cubes": -1}, "num_cubes must be a positive integer"),
        ({"num_cubes": "1"}, "num_cubes must be a positive integer"),
    ],
)
def test_bad_policy(policy: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        torch.zeros(128, 128, dp=torch.DPPolicy(**policy))


@pytest.mark.parametrize("shape", [(2**62,), (2**70,), (2**30, 2**30), (2**40,), (2**70, 0), (2**38, 1)])
def test_sizes_that_no_machine_has_are_memory_errors(shape: tuple[int, ...]) -> None:
    with pytest.raises(MemoryError, match=r"memory|no machine has so many"):
        torch.zeros(shape)
    assert torch.zeros(3).tolist() == [0, 0, 0]


# -- elements


def test_empty_and_zero_dimensional() -> None:
    for shape in [(0,), (0, 3), (3, 0), (2**40, 0)]:
        t = torch.zeros(shape)
        assert t.numpy().shape == shape == t.clone().shape == torch.from_numpy(np.zeros(shape)).shape
        assert t.numel() == 0
        assert t.copy_(torch.ones(shape)) is t
        t.fill_(3)
        assert not (t == t).numpy().any()
    scalar = torch.tensor(2.5)
    assert (scalar.shape, scalar.item(), float(scalar), int(scalar), bool(scalar)) == ((), 2.5, 2.5, 2, True)
    assert scalar[()].item() == scalar[...].item() == 2.5
    assert torch.zeros(0, 3)[:, 1].shape == (0,)
    with pytest.raises(TypeError, match=r"0-d"):
        len(scalar)
    with pytest.raises(RuntimeError, match=r"2 elements cannot be converted to Scalar"):
        torch.zeros(2).item()
    for several in (torch.zeros(2), torch.zeros(0)):
        with pytest.raises(RuntimeError, match=r"ambiguous"):
            bool(several)


@pytest.mark.parametrize("name", NUMPY)
def test_copy_round_trips_every_bit_pattern(name: str) -> None:
    patterns = bit_patterns(name)
    t = torch.zeros(patterns.shape, dtype=name)
    t.copy_(torch.from_numpy(patterns))
    assert same(t.numpy(), patterns)
    assert same(t.clone().numpy(), patterns)
    assert same(copy.deepcopy(t).numpy(), patterns)
    assert same(np.array(t), patterns)


INTEGERS = [n for n in NUMPY if "int" in n]
FLOATS = [n for n in NUMPY if "float" in n]


@pytest.mark.parametrize("src", REAL)
@pytest.mark.parametrize("dst", REAL)
def test_copy_converts(src: str, dst: str) -> None:
    values = np.array([0, 1, 2, 3.5, 7, 100, 13, 0.25])
    if "uint" not in src and src != "bool":
        values = np.append(values, [-1, -2.75])
    if "float" in src and "uint" in dst:
        values = np.abs(values)  # of a negative float, an unsigned integer has no value
    source = values.astype(NUMPY[src])
    t = torch.zeros(len(values), dtype=dst).copy_(torch.from_numpy(source))
    exact = source.astype(np.float64)  # of all these values float64 has the exact one
    want = exact.astype(np.int64).astype(NUMPY[dst]) if "int" in dst else exact.astype(NUMPY[dst])
    assert same(t.numpy(), want)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_wrap_when_converted(name: str) -> None:
    extremes = np.array([np.iinfo(k).min for k in "bhiq"] + [np.iinfo(k).max for k in "bhiq"])
    t = torch.zeros(8, dtype=name).copy_(torch.from_numpy(extremes))
    assert same(t.numpy(), extremes.astype(NUMPY[name]))


def test_fills_of_values_that_do_not_fit_are_defined() -> None:
    assert torch.zeros(1, dtype="u8").fill_(300).item() == 44
    assert torch.zeros(1, dtype="f16").fill_(1e9).item() == np.inf
    assert torch.zeros(1, dtype="i32").fill_(float("nan")).numpy().dtype == np.int32
    assert torch.tensor([1e9], dtype="f16").item() == np.inf
    t = torch.zeros(2, dtype="f16")
    t[0] = 1e9
    t[np.array([False, True])] = -1e9
    assert t.tolist() == [np.inf, -np.inf]


@pytest.mark.parametrize(
    ("src", "dst"),
    [((), (2, 3)), ((1,), (2, 3)), ((3,), (2, 3)), ((2, 1), (2, 3)), ((1, 3), (2, 3)), ((2, 1, 4), (5, 2, 3, 4))],
)
def test_copy_broadcasts(src: tuple[int, ...], dst: tuple[int, ...]) -> None:
    source = np.arange(np.prod(src, dtype=int), dtype=np.float32).reshape(src)
    t = torch.zeros(dst).copy_(torch.from_numpy(source))
    assert same(t.numpy(), np.broadcast_to(source, dst).astype(np.float32))


def test_copy_rejects() -> None:
    for src in [(4,), (2,), (3, 2), (1, 2, 3)]:
        with pytest.raises(RuntimeError, match=r"must match the size|doesn't match the broadcast shape"):
            torch.zeros(2, 3).copy_(torch.zeros(src))
    for wrong in (None, np.zeros(3), [1]):
        with pytest.raises(TypeError, match=r"copy_.*argument 'other' .*must be Tensor"):
            torch.zeros(3).copy_(wrong)  # type: ignore[arg-type]


def test_copy_between_overlapping_views() -> None:
    t = torch.arange(6)
    t[1:].copy_(t[:-1])
    assert t.tolist() == [0, 0, 1, 2, 3, 4]
    t.copy_(t)
    assert t.tolist() == [0, 0, 1, 2, 3, 4]


def test_comparisons() -> None:
    t = torch.tensor([1, 2, 3])
    assert (t == 2).tolist() == (t == torch.tensor([0, 2, 0])).tolist() == [False, True, False]
    assert (t != np.array([1, 2, 0])).tolist() == [False, False, True]
    assert (t == None) is False  # noqa: E711 (PyTorch's meaning)
    assert 2 in t and 5 not in t and torch.tensor(3) in t
    assert len({t, t, torch.tensor([1, 2, 3])}) == 2
    with pytest.raises(RuntimeError, match=r"size of tensor a \(3\) must match the size of tensor b \(2\)"):
        _ = t == torch.zeros(2)


def test_copies_have_memory_of_their_own() -> None:
    t = torch.tensor([1, 2, 3], device=2, name="x")
    copies = [t.clone(), copy.copy(t.clone()), copy.deepcopy(t), pickle.loads(pickle.dumps(t))]
    t.fill_(9)
    for c in copies:
        assert (c.tolist(), c.device, c.dtype) == ([1, 2, 3], 2, torch.int64)
    del t
    assert [c.tolist() for c in copies] == [[1, 2, 3]] * 4
    part = copy.deepcopy({"a": [copies[0][1:]]})["a"][0]
    assert part.tolist() == [2, 3]
