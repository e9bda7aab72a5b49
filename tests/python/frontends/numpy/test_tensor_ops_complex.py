"""What operations make of tensors of complex numbers, compared with Python's and NumPy's, and which there are not."""

from __future__ import annotations

import cmath
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from complex_numbers import COMPLEX, PARTS, SEED, near, noise
from conftest import NUMPY, OpenWorld, same
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist

NAN, INF = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    world = open_world()
    torch.set_default_device("cpu")
    return world


UNARY: dict[str, Callable[[complex], complex]] = {
    "neg": operator.neg, "positive": operator.pos, "abs": abs, "angle": cmath.phase, "conj": lambda z: z.conjugate(),
    "square": lambda z: z * z, "reciprocal": lambda z: 1 / z, "sgn": lambda z: z / abs(z), "sqrt": cmath.sqrt,
    "rsqrt": lambda z: 1 / cmath.sqrt(z), "exp": cmath.exp, "exp2": lambda z: cmath.exp(z * cmath.log(2)),
    "expm1": lambda z: cmath.exp(z) - 1, "log": cmath.log, "log2": lambda z: cmath.log(z) / cmath.log(2),
    "log10": cmath.log10, "log1p": lambda z: cmath.log(1 + z), "sin": cmath.sin, "cos": cmath.cos, "tan": cmath.tan,
    "asin": cmath.asin, "acos": cmath.acos, "atan": cmath.atan, "sinh": cmath.sinh, "cosh": cmath.cosh,
    "tanh": cmath.tanh, "asinh": cmath.asinh, "acosh": cmath.acosh, "atanh": cmath.atanh,
    "sigmoid": lambda z: 1 / (1 + cmath.exp(-z)), "silu": lambda z: z / (1 + cmath.exp(-z)),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    """In the plane around 0 and 1, where no function is steep and nothing cancels but in expm1."""
    rng = np.random.default_rng(SEED)
    values = (rng.uniform(0.3, 2, 60) * np.exp(1j * rng.uniform(-3, 3, 60))).astype(np.complex64).astype(np.complex128)
    want = [UNARY[name](complex(v)) for v in values]
    function = getattr(torch.nn.functional if name == "silu" else torch, name)
    for kind in COMPLEX:
        got = function(torch.from_numpy(values.astype(NUMPY[kind])))
        assert got.dtype.name == (PARTS[kind] if name in ("abs", "angle") else kind)
        near(got.numpy(), want, kind, 40)


BINARY: dict[str, Callable[[complex, complex], complex]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "pow": operator.pow,
    "logaddexp": lambda a, b: cmath.log(cmath.exp(a) + cmath.exp(b)),
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    rng = np.random.default_rng(SEED)
    numbers = rng.uniform(0.5, 2, (2, 40)) * np.exp(1j * rng.uniform(-1.2, 1.2, (2, 40)))
    a, b = numbers.astype(np.complex64).astype(np.complex128)
    want = [BINARY[name](complex(x), complex(y)) for x, y in zip(a, b, strict=True)]
    for kind in COMPLEX:
        x, y = (torch.from_numpy(v.astype(NUMPY[kind])) for v in (a, b))
        near(getattr(torch, name)(x, y).numpy(), want, kind, 40)


def test_powers_by_roots_and_products() -> None:
    array = noise("complex128", 50)
    z = torch.from_numpy(array.copy())
    for y, want in ((2, array * array), (3, array * array * array), (0.5, np.sqrt(array)), (2 + 0j, array * array)):
        assert same((z**y).numpy(), want)
    assert torch.tensor([-2.0 + 0j]).pow(0.5).real.item() == 0
    near((z**-1.5).numpy(), [complex(v) ** -1.5 for v in array], "complex128", 40)


def test_sign_of_zero_and_of_parts() -> None:
    z = torch.tensor([0, -2, 3j, complex(-0.0, -0.0)])
    assert z.sgn().tolist() == [0, -1, 1j, 0]
    assert str(z.conj().imag.tolist()) == "[-0.0, -0.0, -3.0, 0.0]"
    assert torch.isreal(torch.tensor([1, 1j, complex(NAN, 0)])).tolist() == [True, False, True]
    assert torch.isreal(torch.ones(2)).all()
    assert torch.tensor([-1.0, 0.0, -0.0, 2.0]).angle().tolist() == pytest.approx([np.pi, 0, 0, 0])
    assert torch.tensor([-3, 3]).angle().dtype is torch.float32


def test_which_are_not_finite() -> None:
    z = torch.tensor([1, complex(NAN, 1), complex(1, NAN), complex(INF, 0), complex(0, -INF), complex(INF, NAN)])
    assert z.isnan().tolist() == [False, True, True, False, False, True]
    assert z.isinf().tolist() == [False, False, False, True, True, True]
    assert z.isfinite().tolist() == [True, False, False, False, False, False]
    most = torch.finfo(torch.complex64).max
    assert torch.nan_to_num(z).tolist() == [1, 1j, 1, most, complex(0, -most), most]


def test_comparisons() -> None:
    z, w = torch.tensor([1j, 2, complex(NAN, 0)]), torch.tensor([1j, 2j, complex(NAN, 0)])
    assert (z == w).tolist() == [True, False, False] and (z != w).tolist() == [False, True, True]
    assert (torch.tensor([0, 1]) == 1 + 0j).tolist() == [False, True]
    assert torch.equal(z[:2], z[:2].clone()) and not torch.equal(z, z)
    for name in ("lt", "le", "gt", "ge"):
        for pair in ((z, w), (z, 1), (torch.ones(3), 1j)):
            with pytest.raises(NotImplementedError, match=f"^\"{name}_cpu\" not implemented for 'ComplexFloat'$"):
                getattr(torch, name)(*pair)


REFUSED: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "max": (lambda z: z.max(), NotImplementedError, "\"max_all\" not implemented for 'ComplexFloat'"),
    "max of dim": (lambda z: z.max(0), RuntimeError, "max(): does not support complex input"),
    "amin": (lambda z: z.amin(), NotImplementedError, "\"min_values_cpu\" not implemented for 'ComplexFloat'"),
    "aminmax": (lambda z: z.aminmax(), NotImplementedError, '"aminmax_cpu" not implemented'),
    "argmax": (lambda z: z.argmax(), RuntimeError, "argmax(): does not support complex input"),
    "cummin": (lambda z: z.cummin(0), NotImplementedError, '"cummin_cpu" not implemented'),
    "maximum": (lambda z: torch.maximum(z, z), RuntimeError, "maximum not implemented for complex tensors."),
    "fmin": (lambda z: torch.fmin(z, z), RuntimeError, "fmin not implemented for complex tensors."),
    "sort": (lambda z: z.sort(), RuntimeError, " Sort does not support complex dtypes on CPU"),
    "topk": (lambda z: z.topk(1), RuntimeError, " topk does not support complex dtypes on CPU"),
    "median": (lambda z: z.median(), NotImplementedError, '"median_cpu" not implemented'),
    "isin": (lambda z: torch.isin(z, z), RuntimeError, "Unsupported input type encountered for isin(): ComplexFloat"),
    "unique": (lambda z: z.unique(), NotImplementedError, '"unique" not implemented'),
    "floor": (lambda z: z.floor(), NotImplementedError, "floor is not supported for complex inputs"),
    "clamp": (lambda z: z.clamp(0, 1), NotImplementedError, "clamp is not supported for complex types"),
    "sign": (lambda z: z.sign(), NotImplementedError, "Unlike NumPy, torch.sign is not intended to support complex"),
    "mod": (lambda z: z % 2, NotImplementedError, '"remainder_cpu" not implemented'),
    "floor division": (lambda z: z // 2, NotImplementedError, '"div_floor_cpu" not implemented'),
    "bitwise": (lambda z: z & z, NotImplementedError, '"bitwise_and_cpu" not implemented'),
    "invert": (lambda z: ~z, TypeError, "~ (operator.invert) is only implemented on integer and Boolean-type tensors"),
    "erf": (lambda z: z.erf(), NotImplementedError, '"erf_vml_cpu" not implemented'),
    "softmax": (lambda z: z.softmax(0), NotImplementedError, '"softmax_lastdim_kernel_impl" not implemented'),
    "nansum": (lambda z: z.nansum(), RuntimeError, "nansum on CPU does not support complex inputs"),
    "isposinf": (lambda z: z.isposinf(), RuntimeError, "isposinf does not support complex inputs."),
    "abs_": (lambda z: z.abs_(), RuntimeError, "In-place abs is not supported for complex tensors."),
    "arange": (lambda z: torch.arange(3, dtype=z.dtype), NotImplementedError, '"arange_cpu" not implemented'),
    "randperm": (lambda z: torch.randperm(3, dtype=z.dtype), NotImplementedError, '"randperm'),
    "random_": (lambda z: z.random_(), NotImplementedError, '"random_kernel_cpu" not implemented'),
    "index": (lambda z: torch.ones(3)[z], IndexError, "tensors used as indices must be long, int, byte or bool"),
    "default": (lambda z: torch.set_default_dtype(z.dtype), TypeError, "only floating-point types are supported"),
    "alpha": (lambda z: torch.ones(2).add(torch.ones(2), alpha=1j), RuntimeError, "For non-complex input tensors"),
    "reduced": (lambda z: z.scatter_reduce(0, torch.tensor([0]), z, "amax"), NotImplementedError, '"scatter_gather'),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, error, text = REFUSED[name]
    with pytest.raises(error) as raised:
        call(torch.tensor([1j, 2]))
    assert str(raised.value).startswith(text)


@pytest.mark.parametrize("kind", COMPLEX)
def test_reductions(kind: str) -> None:
    array = noise(kind, 5, 7)
    z, wide = torch.from_numpy(array.copy()), array.astype(np.complex128)
    for dim in (None, 0, 1):
        near(z.sum(dim).numpy(), wide.sum(dim), kind, 100)
        near(z.mean(dim).numpy(), wide.mean(dim), kind, 100)
        near(z.prod(dim).numpy(), wide.prod(dim), kind, 200)
        spread = np.abs(wide - wide.mean(dim, keepdims=True)) ** 2
        n = array.size if dim is None else array.shape[dim]
        near(z.var(dim).numpy(), spread.sum(dim) / (n - 1), kind, 200)
        near(z.std(dim, unbiased=False).numpy(), np.sqrt(spread.sum(dim) / n), kind, 200)
        assert z.var(dim).dtype is z.norm(dim=dim).dtype is getattr(torch, PARTS[kind])
        for p in (0, 1, 2, 3, INF, -INF):
            near(z.norm(p, dim).numpy(), np.linalg.norm(wide.ravel() if dim is None else wide, p, dim), kind, 200)
    near(z.cumsum(1).numpy(), wide.cumsum(1), kind, 200)
    near(z.cumprod(0).numpy(), wide.cumprod(0), kind, 200)
    near((z / 20).logsumexp(0).numpy(), np.log(np.exp(wide / 20).sum(0)), kind, 200)
    near(z.diff().numpy(), array[:, 1:] - array[:, :-1], kind)
    assert z.sum(dtype=torch.complex128).dtype is torch.complex128 and torch.ones(2).sum(dtype=kind).item() == 2
    assert torch.zeros(0, dtype=kind).sum().item() == 0 and torch.zeros(0, dtype=kind).prod().item() == 1
    assert z.any() and z.all() and int((z - z).count_nonzero()) == 0


@pytest.mark.parametrize("kind", COMPLEX)
def test_products(kind: str) -> None:
    a, b = noise(kind, 4, 6), noise(kind, 6, 3, seed=12)
    x, y = torch.from_numpy(a.copy()), torch.from_numpy(b.copy())
    want = np.array([[sum(complex(a[i, k]) * complex(b[k, j]) for k in range(6)) for j in range(3)] for i in range(4)])
    scale = 64 * float(np.abs(a).max() * np.abs(b).max() / np.abs(want).min())
    for got in (x @ y, torch.mm(x, y), torch.einsum("ik,kj->ij", x, y), torch.tensordot(x, y, 1)):
        assert got.dtype.name == kind
        near(got.numpy(), want, kind, scale)
    near(torch.addmm(x[:, :3], x, y, beta=2, alpha=0.5).numpy(), 2 * a[:, :3].astype(complex) + want / 2, kind, scale)
    u, v = x[0], x[1]
    near(torch.dot(u, v).numpy(), np.dot(a[0].astype(complex), a[1].astype(complex)), kind, scale)
    near(torch.vdot(u, v).numpy(), np.vdot(a[0].astype(complex), a[1].astype(complex)), kind, scale)
    near(torch.outer(u, v).numpy(), np.outer(a[0].astype(complex), a[1].astype(complex)), kind)
    assert same(x.H.numpy(), a.conj().T) and same(x.mH.numpy(), a.conj().T) and same(x.adjoint().numpy(), a.conj().T)
    assert same(x.T.numpy(), a.T)
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.matmul(x, torch.ones(6, 3))


def test_rearranged() -> None:
    array = noise("complex64", 4, 6)
    z, mask = torch.from_numpy(array.copy()), torch.from_numpy(array.real > 0)
    assert same(torch.cat([z, torch.ones(1, 6)]).numpy(), np.concatenate([array, np.ones((1, 6), np.complex64)]))
    assert same(torch.stack([z, z], 1).numpy(), np.stack([array, array], 1))
    assert same(torch.where(mask, z, 1j).numpy(), np.where(array.real > 0, array, 1j).astype(np.complex64))
    assert same(z[mask].numpy(), array[array.real > 0]) and same(z[[2, 0]].numpy(), array[[2, 0]])
    assert same(z.masked_fill(mask, 7j).numpy(), np.where(array.real > 0, 7j, array).astype(np.complex64))
    assert same(z.t().contiguous().numpy(), np.ascontiguousarray(array.T)) and same(z.flip(0).numpy(), array[::-1])
    z[1:3, ::2], array[1:3, ::2] = 5 - 1j, 5 - 1j
    z[0], array[0] = torch.arange(6), np.arange(6)
    assert same(z.numpy(), array)
    z.index_add_(0, torch.tensor([0, 0]), torch.ones(2, 6, dtype=torch.complex64) * 1j)
    assert same(z.numpy()[0], np.arange(6).astype(np.complex64) + 2j)


def test_each_rank_has_its_own() -> None:
    def program(rank: int) -> list[complex]:
        dist.init_process_group()
        z = torch.full((2,), complex(rank, 1))
        dist.all_reduce(z)
        return (z * 1j).tolist()

    assert on_ranks(4, program) == [[-4 + 6j] * 2] * 4
