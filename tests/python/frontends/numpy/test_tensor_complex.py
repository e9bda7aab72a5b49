"""Tensors of complex numbers: how they are made, converted, taken apart, printed and kept."""

from __future__ import annotations

import copy
import io
import math
import operator
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from complex_numbers import COMPLEX, PARTS, SEED, noise
from conftest import NUMPY, REAL, OpenWorld, same

import torchemu as torch

NAN, INF = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    world = open_world()
    torch.set_default_device("cpu")
    return world


# -- dtypes


def test_the_two_dtypes() -> None:
    assert torch.cfloat is torch.complex64 and torch.cdouble is torch.complex128
    for name, part in PARTS.items():
        kind = getattr(torch, name)
        assert (kind.is_complex, kind.is_floating_point, kind.is_signed) == (True, False, True)
        assert kind.to_real() is getattr(torch, part) and getattr(torch, part).to_complex() is kind
        assert kind.to_complex() is kind and kind.itemsize == 2 * getattr(torch, part).itemsize
    assert torch.bfloat16.to_complex() is torch.complex64
    for name in REAL:
        assert getattr(torch, name).to_real() is getattr(torch, name)
    with pytest.raises(NotImplementedError, match="complex32 is not supported: use complex64"):
        torch.float16.to_complex()
    for name in ("bool", "int8", "float8_e5m2"):
        with pytest.raises(RuntimeError, match="Unknown Complex ScalarType for"):
            getattr(torch, name).to_complex()


def expected_promotion(a: str, b: str) -> str | None:
    """complex128 where one of them has 64 bits in a part, complex64 otherwise; None where there is none."""
    if any(n in ("uint16", "uint32", "uint64") or "float8" in n for n in (a, b)):
        return None
    return "complex128" if {a, b} & {"float64", "complex128"} else "complex64"


@pytest.mark.parametrize("a", COMPLEX)
@pytest.mark.parametrize("b", NUMPY)
def test_promotion(a: str, b: str) -> None:
    want = expected_promotion(a, b)
    pair = getattr(torch, a), getattr(torch, b)
    if want is None:
        with pytest.raises(RuntimeError, match=r"^Promotion for .* is not supported, attempted to promote"):
            torch.promote_types(*pair)
        return
    assert torch.promote_types(*pair) is torch.promote_types(*pair[::-1]) is getattr(torch, want)
    left, right = (torch.ones(2, dtype=d) for d in pair)
    assert (left + right).dtype is (right * left).dtype is getattr(torch, want)
    assert (left + right).tolist() == [2, 2]


@pytest.mark.parametrize("default", ["float32", "float64"])
def test_numbers_and_tensors_without_dimensions_give_way(default: str) -> None:
    torch.set_default_dtype(getattr(torch, default))
    wide = "complex128" if default == "float64" else "complex64"
    z = torch.tensor(1j, dtype=torch.complex64)
    for name, number, zero_dim in [
        ("bool", wide, "complex64"),
        ("int64", wide, "complex64"),
        ("uint16", wide, "complex64"),
        ("bfloat16", "complex64", "complex64"),
        ("float32", "complex64", "complex64"),
        ("float64", "complex128", "complex128"),
        ("complex64", "complex64", "complex64"),
        ("complex128", "complex128", "complex128"),
    ]:
        x = torch.ones(2, dtype=name)
        assert torch.result_type(x, 1j).name == torch.result_type(1j, x).name == number, name
        assert torch.result_type(x, z).name == torch.result_type(z, x).name == zero_dim, name
        assert (x + 1j).dtype.name == number and (z * x).dtype.name == zero_dim
    for narrow in (lambda: torch.ones(2, dtype=torch.float16) + 1j, lambda: torch.ones(2, dtype=torch.float16) * z):
        with pytest.raises(NotImplementedError, match="complex32 is not supported"):
            narrow()


def test_results_are_stored_where_nothing_is_lost() -> None:
    x, z = torch.ones(2), torch.ones(2, dtype=torch.complex64)
    assert torch.can_cast(torch.float64, torch.complex64) and not torch.can_cast(torch.complex64, torch.float64)
    assert (z.add_(1), z.mul_(x), z.div_(2.0))[-1].tolist() == [1, 1]
    for write in (lambda: x.add_(1j), lambda: x.mul_(z), lambda: torch.add(x, 1j, out=x), lambda: x.copy_(x).sub_(z)):
        with pytest.raises(
            RuntimeError, match="result type ComplexFloat can't be cast to the desired output type Float"
        ):
            write()
    assert x.tolist() == [1, 1]


# -- made


def test_creation_infers_the_dtype() -> None:
    assert torch.tensor(1j).dtype is torch.tensor([1, 2j]).dtype is torch.tensor([True, 2.5, 1j]).dtype is torch.cfloat
    assert torch.tensor(np.complex64(1j)).dtype is torch.complex64
    assert torch.tensor(np.array([1j])).dtype is torch.complex128
    assert torch.full((2,), 1j).dtype is torch.complex64
    assert torch.zeros(1, dtype=complex).dtype is torch.complex128
    torch.set_default_dtype(torch.float64)
    assert torch.tensor([1j]).dtype is torch.full((), 1j).dtype is torch.complex128
    assert torch.tensor(np.complex64(1j)).dtype is torch.complex64
    torch.set_default_dtype(torch.float16)
    with pytest.raises(NotImplementedError, match="complex32"):
        torch.tensor(1j)


@pytest.mark.parametrize("kind", COMPLEX)
def test_creation(kind: str) -> None:
    number = NUMPY[kind]
    assert same(torch.full((2, 3), 2 - 1j, dtype=kind).numpy(), np.full((2, 3), 2 - 1j, number))
    assert same(torch.eye(3, 2, dtype=kind).numpy(), np.eye(3, 2, dtype=number))
    assert same(torch.linspace(0, 4, 5, dtype=kind).numpy(), np.arange(5).astype(number))
    assert same(torch.linspace(1j, 5j, 5, dtype=kind).numpy(), (1j * np.arange(1, 6)).astype(number))
    assert torch.zeros(0, 3, dtype=kind).numpy().shape == (0, 3)
    rows = [[1 + 2j, 3], [4j, -5.5]]
    assert same(torch.tensor(rows, dtype=kind).numpy(), np.array(rows, number))
    assert same(torch.tensor([torch.tensor(1j), 2], dtype=kind).numpy(), np.array([1j, 2], number))


@pytest.mark.parametrize("kind", COMPLEX)
def test_random_numbers_are_those_of_the_parts(kind: str) -> None:
    for n in (0, 1, 7, 8, 33):
        for call, scale in (("rand", 1.0), ("randn", 1 / math.sqrt(2))):
            torch.manual_seed(SEED)
            z = getattr(torch, call)(n, dtype=kind)
            torch.manual_seed(SEED)
            parts = torch.empty(n, 2, dtype=PARTS[kind])
            parts = parts.uniform_() if call == "rand" else parts.normal_(0, scale)
            assert same(z.numpy(), np.array(parts.numpy()).view(NUMPY[kind])[..., 0]), (call, n)


def test_what_is_no_number_for_a_real_tensor() -> None:
    x, i = torch.ones(3), torch.ones(3, dtype=torch.int32)
    stores: list[tuple[Callable[[], Any], str]] = [
        (lambda: x.fill_(1j), "float"),
        (lambda: i.fill_(1j), "int"),
        (lambda: torch.zeros(2, dtype=torch.float16).fill_(1j), "c10::Half"),
        (lambda: torch.zeros(2, dtype=torch.uint8).fill_(1j), "uint8_t"),
        (lambda: torch.full((2,), 1j, dtype=torch.float64), "double"),
        (lambda: torch.full_like(i, 1j), "int"),
        (lambda: x.masked_fill_(x > 0, 1j), "float"),
        (lambda: x.masked_fill(x > 0, 1j), "float"),
        (lambda: operator.setitem(x, 0, 1j), "float"),
        (lambda: operator.setitem(x, x > 0, 1j), "float"),
        (lambda: x.scatter_(0, torch.tensor([0]), 1j), "float"),
        (lambda: float(torch.tensor(1j)), "double"),
        (lambda: int(torch.tensor(1j)), "int64_t"),
        (lambda: torch.arange(1j), "double"),
    ]
    for store, name in stores:
        with pytest.raises(RuntimeError, match=f"^value cannot be converted to type {name} without overflow$"):
            store()
    assert x.tolist() == i.tolist() == [1, 1, 1]
    assert x.fill_(2 + 0j).tolist() == [2, 2, 2] and torch.zeros(2, dtype=torch.bool).fill_(1j).all()
    assert (float(torch.tensor(2 + 0j)), int(torch.tensor(2 + 0j)), complex(torch.tensor(2j))) == (2.0, 2, 2j)
    with pytest.raises(TypeError, match="must be real number, not complex"):
        torch.tensor([1j], dtype=torch.float32)
    with pytest.raises(TypeError, match="'complex' object cannot be interpreted as an integer"):
        torch.tensor(1j, dtype=torch.int64)
    with pytest.raises(TypeError, match="only integer tensors of a single element can be converted to an index"):
        [1, 2, 3][torch.tensor(1 + 0j)]  # type: ignore[call-overload]


# -- converted


@pytest.mark.parametrize("kind", COMPLEX)
@pytest.mark.parametrize("real", REAL)
def test_conversions(kind: str, real: str) -> None:
    """Real numbers get imaginary parts of 0. Of complex ones the imaginary part is lost, with a warning."""
    values = [0, 1, 2, 3, 6, 96]  # which all types have exactly
    for repeat in (1, 20_000):  # NumPy converts the few, the core the many
        x = torch.from_numpy(np.tile(np.array(values).astype(NUMPY[real]), repeat))
        z = x.to(getattr(torch, kind))
        want = np.asarray(x).astype(np.float32).astype(NUMPY[kind])
        assert z.dtype.name == kind and same(z.numpy(), want)
        assert same(torch.zeros_like(z).copy_(x).numpy(), want)
        twisted = torch.from_numpy(want + np.where(want == 0, 0, 7j).astype(NUMPY[kind]))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            back = twisted.to(getattr(torch, real))
            copied = torch.zeros_like(x).copy_(twisted)
        texts = [str(w.message) for w in caught if w.category is UserWarning]
        lost = "Casting complex values to real discards the imaginary part"
        assert texts == ([] if real == "bool" else [lost, lost])
        assert same(back.numpy(), x.numpy()) and same(copied.numpy(), x.numpy())


def test_a_number_is_true_where_a_part_is_not_zero() -> None:
    z = torch.tensor([0, 1, 1j, -0.0, complex(0, NAN), complex(NAN, 0)])
    assert z.bool().tolist() == [False, True, True, False, True, True]
    assert torch.cat([z] * 9000).to(torch.bool)[:6].tolist() == [False, True, True, False, True, True]
    assert bool(torch.tensor(1j)) and not bool(torch.tensor(0j))


def test_between_the_two() -> None:
    z = noise("complex128", 40_000)
    assert same(torch.from_numpy(z).cfloat().numpy(), z.astype(np.complex64))
    assert same(torch.from_numpy(z).cfloat().cdouble().numpy(), z.astype(np.complex64).astype(np.complex128))


# -- parts


@pytest.mark.parametrize("kind", COMPLEX)
def test_parts_are_views(kind: str) -> None:
    whole = noise(kind, 4, 6)
    for cut in (np.s_[:], np.s_[1:3, ::2], np.s_[:, 1], np.s_[2, 3]):
        z, array = torch.from_numpy(whole.copy())[cut], whole.copy()[cut]
        assert same(z.real.numpy(), array.real) and same(z.imag.numpy(), array.imag)
        pairs = np.stack([array.real, array.imag], -1)
        assert same(torch.view_as_real(z).numpy(), pairs)
        z.real.mul_(2)
        z.imag.fill_(5)
        torch.view_as_real(z)[..., 1] += 1
        assert same(z.numpy(), (2 * array.real + 6j).astype(NUMPY[kind]))
        z.real.copy_(torch.zeros(z.shape, dtype=PARTS[kind]))
        assert same(z.numpy(), np.full(array.shape, 6j, NUMPY[kind]))
        assert z.real._storage is z._storage


def test_real_tensors_have_no_parts() -> None:
    x = torch.ones(2)
    assert x.real is x and x.conj() is x and torch.real(x) is x
    for call in (lambda: x.imag, lambda: torch.imag(x)):
        with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
            call()
    with pytest.raises(RuntimeError, match="view_as_real is only supported for complex tensors"):
        torch.view_as_real(x)


# -- looked at, kept and given away


def test_as_python_numbers() -> None:
    z = torch.tensor([[1 + 2j, -0.5j]])
    assert z.tolist() == [[1 + 2j, -0.5j]] and z[0, 0].item() == 1 + 2j and type(z[0, 0].item()) is complex
    assert f"{z[0, 0]:.2f}" == "1.00+2.00j" and 1 + 2j in z and 3j not in z
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        z.item()


PRINTED = [
    ([1 + 2j, 3.5 - 1j], "tensor([1.0000+2.j, 3.5000-1.j])"),
    ([], "tensor([], dtype=torch.complex64)"),
    ([0j], "tensor([0.+0.j])"),
    ([complex(-0.0, -0.0)], "tensor([-0.-0.j])"),
    ([complex(NAN, 1), complex(1, -INF)], "tensor([nan+1.j, 1.-infj])"),
    ([1e-9 + 1j, 1e9 - 2.5j], "tensor([1.0000e-09+1.0000j, 1.0000e+09-2.5000j])"),
    ([[1j, 10], [-100, 0.25j]], "tensor([[   0.+1.0000j,   10.+0.0000j],\n        [-100.+0.0000j,    0.+0.2500j]])"),
]
"""As PyTorch 2.11 printed them."""


@pytest.mark.parametrize(("values", "text"), PRINTED, ids=str)
def test_printed(values: Any, text: str) -> None:
    t = torch.tensor(values, dtype=torch.complex64)
    assert repr(t) == text
    other = repr(t.cdouble())
    if values:
        assert other == text[:-1] + ", dtype=torch.complex128)" or ",\n       dtype=torch.complex128)" in other
        torch.set_default_dtype(torch.float64)
        assert repr(t.cdouble()) == text


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


def test_shared_with_numpy() -> None:
    array = noise("complex64", 3)
    z = torch.from_numpy(array)
    z[0] = 9j
    assert array[0] == 9j
    z.numpy()[1] = 8j
    assert z[1].item() == 8j
    assert np.shares_memory(z.numpy(), array)
    raw = torch.frombuffer(array.tobytes(), dtype=torch.complex64)
    assert same(raw.numpy(), array)
    assert same(z.view(torch.float32).numpy(), array.view(np.float32))
    assert same(torch.arange(4.0).view(torch.complex64).numpy(), np.array([1j, 2 + 3j], np.complex64))


def test_nearly_equal() -> None:
    z = torch.tensor([1 + 1j, 3j, complex(NAN, 0)])
    moved = z + torch.tensor([1e-7j, 0, 0])
    assert torch.isclose(z, moved).tolist() == [True, True, False]
    assert torch.allclose(z, moved, equal_nan=True) and not torch.allclose(z[:2], z[:2] * 1.1)
    # |a - b| is that of complex numbers: a large part makes up for a small one
    assert torch.isclose(torch.tensor(1e6 + 1j), torch.tensor(1e6 + 2j)).item()
