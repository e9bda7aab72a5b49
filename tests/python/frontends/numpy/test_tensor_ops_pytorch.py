"""The same calls in PyTorch and here, where PyTorch is installed (``pip install torch``; no other test needs it)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld

import torchemu

pytorch = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with", exc_type=ImportError)

CALLS = [
    line
    for line in Path(__file__).with_name("pytorch_calls.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
TOLERANCES = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-5, "float64": 1e-12}
TOLERANCES |= {"complex64": 2e-5, "complex128": 1e-12}


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> Iterator[None]:
    open_world()
    torchemu.set_default_device("cpu")
    yield
    pytorch.set_default_dtype(pytorch.float32)


def operands(library: Any) -> dict[str, Any]:
    """The tensors that the calls name, made by one of the libraries."""
    rng = np.random.default_rng(0)
    normal = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    arrays: dict[str, Any] = {"a": normal(3, 4), "b": normal(3, 4), "v": normal(4), "c": normal(4, 5)}
    arrays |= {"t3": normal(2, 3, 4), "u3": normal(2, 4, 5), "i": rng.integers(-5, 6, (3, 4))}
    arrays |= {"j": rng.integers(1, 6, (3, 4)), "i32": rng.integers(-5, 6, (3, 4)).astype(np.int32)}
    arrays |= {"i8": rng.integers(-5, 6, (3, 4)).astype(np.int8), "u8": rng.integers(0, 200, (3, 4)).astype(np.uint8)}
    arrays |= {"m": rng.random((3, 4)) > 0.5, "m2": rng.random((3, 4)) > 0.5, "d": rng.standard_normal((3, 4))}
    arrays |= {"s": np.float32(1.5), "si": np.int64(3), "e": np.zeros((0, 3), np.float32)}
    arrays |= {"p": np.abs(arrays["a"]) + np.float32(0.1), "q": np.clip(arrays["a"], -0.9, 0.9)}
    arrays["n"] = np.array([1, np.nan, -np.inf, np.inf, 0, -0.0, 2.5, -2.5, 1e30, -1e-30], np.float32)
    arrays |= {"idx": np.array([2, 0, 1, 1]), "w": np.array([3, 1, 2, 3, 3, 1, 0, 2])}
    arrays |= {"gi": rng.integers(0, 3, (2, 4)), "gj": rng.integers(0, 4, (3, 2))}
    arrays["z"], arrays["y"], arrays["zc"] = [normal(n, m) + 1j * normal(n, m) for n, m in ((3, 4), (3, 4), (4, 5))]
    arrays |= {"zv": arrays["z"][0], "zs": np.complex64(1.5 - 2j), "zd": arrays["z"].astype(np.complex128) / 3}
    made = {name: library.tensor(np.array(array)) for name, array in arrays.items()}
    made |= {"h": made["a"].half(), "bf": made["a"].bfloat16(), "h2": made["b"].half(), "bf2": made["b"].bfloat16()}
    return {**made, "torch": library, "inf": np.inf, "nan": np.nan, "np": np}


def answer(library: Any, call: str) -> Any:
    """What the library makes of a call: the result or the exception."""
    names = operands(library)
    *statements, expression = call[1:].split(";") if call.startswith("!") else [call]
    try:
        for statement in statements:
            exec(statement.strip(), names)
        return eval(expression.strip(), names)
    except Exception as error:
        return error


def assert_alike(theirs: Any, ours: Any) -> None:
    if isinstance(theirs, pytorch.Tensor):
        assert_tensors_alike(theirs, ours)
    elif isinstance(theirs, tuple | list) and not isinstance(theirs, pytorch.Size):
        assert len(theirs) == len(ours) and isinstance(theirs, tuple) == isinstance(ours, tuple)
        for a, b in zip(theirs, ours, strict=True):
            assert_alike(a, b)
    elif isinstance(theirs, Exception):
        assert type(ours).__name__ == type(theirs).__name__, f"{ours!r} where PyTorch has {theirs!r}"
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=1e-5, nan_ok=True)
    elif isinstance(theirs, np.ndarray):
        assert np.array_equal(theirs, ours) and theirs.dtype == ours.dtype
    elif isinstance(theirs, bool | int | str | None):
        assert (type(ours), ours) == (type(theirs), theirs)
    elif isinstance(theirs, pytorch.dtype | pytorch.device | pytorch.Size):
        assert str(ours) == str(theirs)


def assert_tensors_alike(theirs: Any, ours: Any) -> None:
    assert isinstance(ours, torchemu.Tensor), f"{ours!r} where PyTorch has {theirs!r}"
    assert (repr(ours.dtype), tuple(ours.shape)) == (str(theirs.dtype), tuple(theirs.shape))
    assert ours.is_contiguous() == theirs.is_contiguous()
    want = (theirs.double() if theirs.dtype.is_floating_point else theirs.resolve_conj()).numpy()
    tolerance = TOLERANCES.get(ours.dtype.name, 0)
    np.testing.assert_allclose(np.asarray(ours).astype(want.dtype), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("call", CALLS)
def test_calls(call: str) -> None:
    assert_alike(answer(pytorch, call), answer(torchemu, call))


UNARY = [
    "abs",
    "neg",
    "positive",
    "sign",
    "reciprocal",
    "sqrt",
    "rsqrt",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "sigmoid",
    "erf",
    "erfc",
    "erfinv",
    "lgamma",
    "relu",
    "floor",
    "ceil",
    "trunc",
    "frac",
    "round",
    "isnan",
    "isinf",
    "isfinite",
    "signbit",
    "logical_not",
    "bitwise_not",
    "deg2rad",
    "rad2deg",
    "nan_to_num",
    "logit",
]
BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "true_divide",
    "floor_divide",
    "remainder",
    "fmod",
    "atan2",
    "hypot",
    "copysign",
    "logaddexp",
    "xlogy",
    "maximum",
    "minimum",
    "fmax",
    "gcd",
    "lcm",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "logical_xor",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_left_shift",
    "nextafter",
    "rsub",
]


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one(name: str) -> None:
    for operand in ["a", "d", "h", "bf", "i", "i8", "u8", "m", "s", "si", "e", "n", "q", "p"]:
        call = f"torch.{name}({operand})"
        assert_alike(answer(pytorch, call), answer(torchemu, call))


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two(name: str) -> None:
    tensors = ["a", "b", "d", "h", "bf", "i", "i32", "i8", "u8", "m", "s", "si", "v"]
    for x, y in itertools.product(tensors, [*tensors, "j", "2", "1.5", "True", "-1"]):
        call = f"torch.{name}({x}, {y})"
        assert_alike(answer(pytorch, call), answer(torchemu, call))


def test_printing() -> None:
    for make in [
        "a",
        "i",
        "m",
        "h",
        "bf",
        "u8",
        "s",
        "si",
        "e",
        "n",
        "t3",
        "torch.arange(1001)",
        "torch.arange(2000.).reshape(40,50)",
        "torch.eye(3)",
        "torch.zeros(7,200)",
        "torch.tensor([1e-5,1])",
        "torch.tensor([9999.5,1.25])",
        "torch.full((3,),1e-10)",
        "torch.zeros(3,1,400)",
        "a.max(0)",
        "[a,i]",
        "torch.arange(60.).reshape(2,30)*1.5",
        "torch.tensor([1.,2.],dtype=torch.float64)",
        "torch.tensor([2**62])",
    ]:
        assert repr(answer(torchemu, make)) == repr(answer(pytorch, make))


def test_files(tmp_path: Path) -> None:
    for writer, reader in ((torchemu, pytorch), (pytorch, torchemu)):
        names = operands(writer)
        objects = {k: v for k, v in names.items() if isinstance(v, writer.Tensor)}
        writer.save({**objects, "view": names["a"].T[1:], "dtype": writer.float16}, tmp_path / "file.pt")
        back = reader.load(tmp_path / "file.pt")
        for name, value in objects.items():
            assert_alike(*((value, back[name]) if writer is pytorch else (back[name], value)))
        assert tuple(back["view"].stride()) == (1, 4) and str(back["dtype"]) == "torch.float16"


# What differs, on purpose: results of nonzero are row-major; lists and arrays can be assigned to parts of a tensor, and
# copies between overlapping parts work; sort takes its dimension by position with stable=True too; integers whose
# division addcdiv refuses are a NotImplementedError; multinomial refuses what has no probability.
