"""torch.linalg: results against NumPy and definitions, gradients by differences, and matrices that fail."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import gradients
import numpy as np
import pytest
from conftest import OpenWorld
from nn_cases import refused
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu import linalg


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


def normal(*shape: int) -> np.ndarray:
    return np.asarray(np.random.default_rng([8, *shape]).standard_normal(shape))


def positive(*shape: int) -> np.ndarray:
    a = normal(*shape)
    return a @ a.swapaxes(-1, -2) + np.eye(shape[-1])


def t(array: Any) -> torch.Tensor:
    return torch.from_numpy(np.array(array))


def close(got: Any, want: Any, tolerance: float = 1e-9) -> None:
    assert tuple(got.shape) == np.shape(want), (got.shape, np.shape(want))
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=tolerance, atol=tolerance)


SQUARE: list[tuple[int, ...]] = [(1, 1), (3, 3), (2, 4, 4), (2, 1, 2, 2), (0, 0), (0, 3, 3)]
OBLONG: list[tuple[int, ...]] = [(4, 3), (3, 4), (2, 5, 2), (1, 3), (3, 1), (2, 2)]


@pytest.mark.parametrize("shape", SQUARE)
@pytest.mark.parametrize("kind", [np.float64, np.complex128])
def test_inverses_and_determinants(shape: tuple[int, ...], kind: Any) -> None:
    a = normal(*shape) + (1j * normal(*reversed(shape)).reshape(shape) if kind is np.complex128 else 0)
    close(linalg.inv(t(a)), np.linalg.inv(a))
    close(t(a).inverse(), np.linalg.inv(a))
    close(linalg.det(t(a)), np.linalg.det(a))
    for got, want in zip(t(a).slogdet(), np.linalg.slogdet(a), strict=True):
        close(got, want)
    b = normal(*shape).astype(kind)
    close(linalg.solve(t(a), t(b)), np.linalg.solve(a, b))
    close(linalg.solve(t(a), t(b), left=False), b @ np.linalg.inv(a), 1e-7)


@pytest.mark.parametrize("function", ["inv", "det", "matrix_exp", "eigvalsh", "svdvals", "cond"])
def test_gradients_of_square_matrices(function: str) -> None:
    symmetric = function == "eigvalsh"  # whose gradient is that of symmetric matrices
    gradients.check(lambda a: getattr(linalg, function)(a + a.mT if symmetric else a), normal(3, 3))
    if function not in ("cond", "eigvalsh"):
        gradients.check(getattr(linalg, function), normal(2, 2, 2))


def test_gradients_of_determinants() -> None:
    gradients.check(lambda a: linalg.slogdet(a)[1], normal(2, 3, 3))
    gradients.check(torch.logdet, positive(3, 3))
    gradients.check(linalg.det, [[1.0, 2.0], [2.0, 4.0]])  # singular
    assert math.isnan(torch.logdet(t([[0.0, 1.0], [1.0, 0.0]])).item())


@pytest.mark.parametrize(
    ("left", "a", "b"),
    [
        (True, (3, 3), (3, 2)),
        (True, (3, 3), (3,)),
        (True, (2, 3, 3), (2, 3)),
        (False, (3, 3), (2, 3)),
        (True, (2, 1, 2, 2), (3, 2, 1)),
    ],
)
def test_solutions(left: bool, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = normal(*a), normal(*b)
    found = linalg.solve(t(x), t(y), left=left).numpy()
    vectors = left and (len(b) == 1 or b == a[:-1])
    again = (x @ found[..., None])[..., 0] if vectors else x @ found if left else found @ x
    np.testing.assert_allclose(again, np.broadcast_to(y, again.shape), rtol=1e-9, atol=1e-9)
    gradients.check(lambda x, y: linalg.solve(x, y, left=left), x, y)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 2, 2)])
def test_cholesky(shape: tuple[int, ...], upper: bool) -> None:
    a = positive(*shape)
    factor = linalg.cholesky(t(a), upper=upper)
    close(factor, np.linalg.cholesky(a).swapaxes(-1, -2) if upper else np.linalg.cholesky(a))
    b = normal(*shape)
    close(torch.cholesky_solve(t(b), factor, upper), np.linalg.solve(a, b))
    close(torch.cholesky_inverse(factor, upper), np.linalg.inv(a))
    gradients.check(lambda a: linalg.cholesky(a @ a.mT + torch.eye(shape[-1]).double(), upper=upper), normal(*shape))


@pytest.mark.parametrize("shape", OBLONG)
def test_qr(shape: tuple[int, ...]) -> None:
    a, least = normal(*shape), min(shape[-2:])
    for mode, columns in (("reduced", least), ("complete", shape[-2])):
        q, r = linalg.qr(t(a), mode)
        assert q.shape[-1] == columns and torch.equal(r, r.triu())
        close(q @ r, a)
        close(q.mT @ q, np.broadcast_to(np.eye(columns), (*q.mT.shape[:-2], columns, columns)))
    close(linalg.qr(t(a), "r").R, linalg.qr(t(a)).R.numpy())
    if shape[-2] >= shape[-1]:
        gradients.check(lambda a: tuple(linalg.qr(a)), a)


@pytest.mark.parametrize("shape", OBLONG)
def test_svd(shape: tuple[int, ...]) -> None:
    a, least = normal(*shape), min(shape[-2:])
    for full in (False, True):
        u, s, vh = linalg.svd(t(a), full)
        assert u.shape[-1] == (shape[-2] if full else least) and vh.shape[-2] == (shape[-1] if full else least)
        close((u[..., :least] * s.unsqueeze(-2)) @ vh[..., :least, :], a)
        close(s, np.linalg.svd(a, compute_uv=False))
    u, s, v = torch.svd(t(a))
    close((u * s.unsqueeze(-2)) @ v.mT, a)
    close(linalg.pinv(t(a)), np.linalg.pinv(a))
    gradients.check(lambda a: tuple(linalg.svd(a, False)), a)
    gradients.check(linalg.pinv, a)


def test_hermitian_eigenvalues() -> None:
    a, z = normal(2, 3, 3), normal(3, 3) + 1j * normal(3, 4)[:, :3]
    for part in "LUl":
        values, vectors = linalg.eigh(t(a), part)
        triangle = np.tril(a) if part.upper() == "L" else np.triu(a)
        whole = triangle + triangle.swapaxes(-1, -2) - np.eye(3) * triangle
        close(vectors @ torch.diag_embed(values) @ vectors.mT, whole)
        assert (values[..., 1:] >= values[..., :-1]).all()
    values, vectors = linalg.eigh(t(z + z.conj().T))
    close(vectors @ torch.diag(values).to(vectors.dtype) @ vectors.mH, z + z.conj().T)
    gradients.check(lambda a: tuple(linalg.eigh(a + a.mT)), normal(3, 3))
    values, vectors = linalg.eig(t(a))
    close(t(a).to(torch.complex128) @ vectors, (vectors * values.unsqueeze(-2)).numpy())


def test_ranks_and_least_squares() -> None:
    a = np.array([[1.0, 2.0], [2.0, 4.0], [0.0, 0.0]])
    assert linalg.matrix_rank(t(a)).item() == 1 and linalg.matrix_rank(t(a), atol=9.0).item() == 0
    assert linalg.matrix_rank(t(normal(2, 4, 3))).tolist() == [3, 3]
    close(linalg.pinv(t(a)), np.linalg.pinv(a))
    x, y = normal(5, 3), normal(5, 2)
    want, left, *_ = np.linalg.lstsq(x, y)
    found = linalg.lstsq(t(x), t(y), driver="gels")
    close(found.solution, want)
    close(found.residuals, left)
    close(linalg.lstsq(t(x), t(y[:, 0])).solution, want[:, 0])
    assert found.rank.item() == 3


@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf])
def test_norms(order: Any) -> None:
    a = normal(3, 4)
    close(linalg.norm(t(a), order), np.linalg.norm(a, order))
    if order is not None:
        close(linalg.matrix_norm(t(a), order, keepdim=True), [[np.linalg.norm(a, order)]])
        b = normal(2, 3, 4)
        close(linalg.matrix_norm(t(b), order, dim=(0, 2)), [np.linalg.norm(b[:, i], order) for i in range(3)])
        gradients.check(lambda a: linalg.matrix_norm(a, order), a)
    if order not in ("fro", "nuc"):
        close(linalg.cond(t(a[:, :3]), order), np.linalg.cond(a[:, :3], order), 1e-7)


def test_powers() -> None:
    a = normal(3, 3)
    for n in range(-3, 6):
        close(torch.matrix_power(t(a), n), np.linalg.matrix_power(a, n), 1e-7)
    gradients.check(lambda a: linalg.matrix_power(a, 3), a)
    values, vectors = np.linalg.eigh(a + a.T)
    close(linalg.matrix_exp(t(a + a.T)), vectors @ np.diag(np.exp(values)) @ vectors.T)
    close(torch.matrix_exp(t(np.zeros((2, 2)))), np.eye(2))
    turn = np.array([[0, -3.0], [3.0, 0]])
    close(t(turn).matrix_exp(), [[math.cos(3), -math.sin(3)], [math.sin(3), math.cos(3)]])


def test_products() -> None:
    chain = [normal(2, 3), normal(3, 6), normal(6, 1), normal(1, 4)]
    want = np.linalg.multi_dot(chain)
    close(linalg.multi_dot([t(m) for m in chain]), want)
    close(torch.chain_matmul(*[t(m) for m in chain]), want)
    close(linalg.multi_dot([t(chain[0][0]), *map(t, chain[1:3]), t(chain[3][:, 0])]), want[0, 0])
    x, y = normal(2, 3), normal(2, 3)
    close(linalg.vecdot(t(x), t(y)), (x * y).sum(-1))
    close(linalg.vander(t(x)), np.stack([np.vander(row, increasing=True) for row in x]))
    close(linalg.vander(t(x[0]), N=2), np.vander(x[0], 2, increasing=True))
    a, b = np.triu(normal(3, 3)), normal(3, 2)
    close(linalg.solve_triangular(t(a + np.tril(a.T, -1)), t(b), upper=True), np.linalg.solve(a, b))
    close(torch.triangular_solve(t(b), t(a), transpose=True)[0], np.linalg.solve(a.T, b))
    unit = np.triu(a, 1) + np.eye(3)
    close(linalg.solve_triangular(t(a), t(b.T), upper=True, left=False, unitriangular=True), b.T @ np.linalg.inv(unit))


SINGULAR = [[1.0, 2.0], [2.0, 4.0]]
BOTH = [np.eye(2), np.array(SINGULAR)]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: linalg.inv(t(SINGULAR)), "linalg.inv: The diagonal element 2 is zero, the inversion could not be"),
        (lambda: linalg.inv(t(BOTH)), "linalg.inv: (Batch element 1): The diagonal element 2 is zero, the inversion"),
        (
            lambda: linalg.solve(t(SINGULAR), t([1.0, 2.0])),
            "torch.linalg.solve: The solver failed because the input matrix",
        ),
        (
            lambda: linalg.cholesky(t([[1.0, 2.0], [2.0, 1.0]])),
            "linalg.cholesky: The factorization could not be completed",
        ),
        (
            lambda: linalg.cholesky(-t(BOTH)),
            "linalg.cholesky: (Batch element 0): The factorization could not be completed",
        ),
    ],
)
def test_matrices_that_fail(call: Any, text: str) -> None:
    with pytest.raises(linalg.LinAlgError) as caught:
        call()
    assert str(caught.value).startswith(text) and isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: linalg.inv(torch.ones(2, 3)), "linalg.inv: A must be batches of square matrices, but they are 2 by 3"),
        (lambda: linalg.det(torch.ones(3)), "linalg.det: The input tensor A must have at least 2 dimensions."),
        (
            lambda: linalg.inv(torch.ones(2, 2).long()),
            "linalg.inv: Expected a floating point or complex tensor as input.",
        ),
        (lambda: linalg.eigh(torch.ones(2, 2).half()), "linalg.eigh: Low precision dtypes not supported. Got Half"),
        (
            lambda: linalg.solve(torch.eye(2), torch.ones(3, 1)),
            "linalg.solve: Incompatible shapes of A and B for the equa",
        ),
        (
            lambda: linalg.solve(torch.eye(2), torch.ones(2).double()),
            "linalg.solve: Expected A and B to have the same dtype",
        ),
        (lambda: linalg.eigh(torch.eye(2), "x"), "Expected UPLO argument to be 'L' or 'U', but got x"),
        (
            lambda: linalg.qr(torch.eye(2), "x"),
            "qr received unrecognized mode 'x' but expected one of 'reduced' (default)",
        ),
        (lambda: linalg.matrix_norm(torch.eye(2), 7), "linalg.matrix_norm: Order 7 not supported."),
    ],
)
def test_misuse(call: Any, text: str) -> None:
    kind, said = refused(call)
    assert kind == "RuntimeError" and said.startswith(text)


def test_matrices_that_other_ranks_bring_about() -> None:
    """The inverse of a sum that is not known when the rank asks for it."""

    def program(rank: int) -> list[Any]:
        dist.init_process_group("nccl", rank=rank, world_size=2)
        matrix = torch.full((2, 2), float(rank), device="cuda") + torch.eye(2, device="cuda")
        dist.all_reduce(matrix)
        found = linalg.inv(matrix).tolist()
        dist.destroy_process_group()
        return found

    want = np.linalg.inv(np.ones((2, 2)) + 2 * np.eye(2))
    for found in on_ranks(2, program):
        np.testing.assert_allclose(found, want, rtol=1e-6)


@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, math.inf, -math.inf])
def test_condition_numbers_of_singular_matrices(order: Any) -> None:
    zero, both = np.zeros((2, 2)), np.stack([np.diag([1.0, 0.0]), np.diag([2.0, 4.0])])
    assert linalg.cond(t(both[0]), order).tolist() == math.inf
    got = linalg.cond(t(both), order).tolist()
    assert got[0] == math.inf
    np.testing.assert_allclose(got[1], np.linalg.cond(both[1], order))
    assert not math.isfinite(linalg.cond(t(zero), order).item())


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: linalg.matrix_norm(torch.ones(2, 2), 1, (0, 5)),
        IndexError,
        "expected to be in range of [-2, 1], but got 5",
    ),
    (lambda: linalg.matrix_norm(torch.ones(2, 2), 1, (0, -2)), RuntimeError, "dims must be different. Got (0, -2)"),
    (lambda: linalg.matrix_norm(torch.ones(2, 2), 1, (0,)), RuntimeError, "dim must be a 2-tuple. Got 0"),
    (
        lambda: linalg.matrix_norm(torch.ones(2, 2).long()),
        NotImplementedError,
        "matrix_norm: Expected a floating point",
    ),
    (lambda: linalg.norm(torch.ones(2), "fro"), RuntimeError, "must have at least 2 dimensions"),
    (lambda: linalg.norm(torch.ones(2, 2, 2), 2), RuntimeError, "the input must be 1D or 2D. Got 3D."),
    (lambda: linalg.norm(torch.tensor(1.0), 2), RuntimeError, "the input must be 1D or 2D. Got 0D."),
    (lambda: linalg.vector_norm(torch.ones(0), math.inf), RuntimeError, "the inf norm on an empty tensor because"),
    (lambda: linalg.vector_norm(torch.ones(2, 0), -1, 1), RuntimeError, "the -1 norm on the dimension 1 because"),
    (
        lambda: linalg.multi_dot([torch.ones(2, 2), torch.ones(2, 2, 2)]),
        RuntimeError,
        "the last tensor must be 1D or 2D",
    ),
    (lambda: linalg.multi_dot([torch.ones(2, 2), torch.ones(2), torch.ones(2)]), RuntimeError, "tensor 1 must be 2D"),
    (
        lambda: linalg.multi_dot([torch.ones(2, 3), torch.ones(2, 2)]),
        RuntimeError,
        "with shapes [2, 3] and [2, 2] cannot",
    ),
    (lambda: linalg.svd(torch.full((2, 2), math.nan)), linalg.LinAlgError, "contained non-finite values"),
    (lambda: linalg.svdvals(torch.full((2, 2), math.inf)), linalg.LinAlgError, "contained non-finite values"),
    (lambda: linalg.eig(torch.full((2, 2), math.nan)), RuntimeError, "should not contain infs or NaNs"),
]


@pytest.mark.parametrize("call, kind, text", REFUSED)
def test_what_has_no_norm_product_or_factors(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        call()


def test_norms_of_nothing_that_have_a_value() -> None:
    assert linalg.vector_norm(torch.ones(0)).item() == 0
    assert linalg.vector_norm(torch.ones(2, 0), math.inf, 0).shape == (0,)
