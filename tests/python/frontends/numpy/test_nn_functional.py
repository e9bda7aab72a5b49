"""torch.nn.functional: layers against NumPy, gradients against central differences, short floats, misuse."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import NUMPY, OpenWorld, same
from nn_cases import refused
from nn_gradients import check

import torchemu as torch
import torchemu.nn.functional as F  # noqa: N812 (its usual name)
from torchemu import nn

RNG = np.random.default_rng


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


def normal(seed: int, *shape: int) -> np.ndarray:
    return RNG([seed, *shape]).standard_normal(shape)


# -- oracles, in float64


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return e / e.sum(axis, keepdims=True)


def layer_norm(x: np.ndarray, weight: Any = 1.0, bias: Any = 0.0, ndim: int = 1, eps: float = 1e-5) -> np.ndarray:
    rows = x.reshape(*x.shape[: x.ndim - ndim], math.prod(x.shape[x.ndim - ndim :]))
    normalized = np.empty_like(rows)
    for index in np.ndindex(rows.shape[:-1]):
        row = rows[index]
        mean = math.fsum(row) / row.size
        variance = math.fsum((v - mean) ** 2 for v in row) / row.size
        normalized[index] = [(v - mean) / math.sqrt(variance + eps) for v in row]
    return normalized.reshape(x.shape) * weight + bias


# -- layers


class TestLinear:
    @pytest.mark.parametrize("batch", [(), (1,), (5,), (0,), (2, 3), (2, 1, 3)])
    @pytest.mark.parametrize("bias", [True, False])
    def test_with_gradients(self, batch: tuple[int, ...], bias: bool) -> None:
        arrays = [normal(1, *batch, 4), normal(2, 3, 4), *([normal(3, 3)] if bias else [])]
        check(F.linear, lambda x, w, b=0.0: np.einsum("...i,oi->...o", x, w) + b, arrays)

    def test_a_vector_as_weight(self) -> None:
        check(F.linear, lambda x, w: x @ w, [normal(1, 5, 4), normal(2, 4)])
        check(F.linear, lambda x, w: x @ w, [normal(1, 4), normal(2, 4)])

    @pytest.mark.parametrize(("outputs", "inputs"), [(0, 4), (3, 0), (0, 0)])
    def test_no_features(self, outputs: int, inputs: int) -> None:
        arrays = [normal(1, 5, inputs), normal(2, outputs, inputs), normal(3, outputs)]
        check(F.linear, lambda x, w, b: x @ w.T + b, arrays)

    def test_module(self) -> None:
        m = nn.Linear(3, 2, dtype=torch.float64)
        x = torch.from_numpy(normal(1, 4, 3))
        want = x.numpy() @ m.weight.detach().numpy().T + m.bias.detach().numpy()
        np.testing.assert_allclose(m(x).detach().numpy(), want, rtol=1e-14)

    def test_short_floats_are_rounded_once(self) -> None:
        for name in ("float16", "bfloat16"):
            kind = NUMPY[name]
            x, w, b = (normal(i, *s).astype(kind) for i, s in enumerate([(6, 300), (7, 300), (7,)]))
            got = F.linear(*(torch.from_numpy(a) for a in (x, w, b)))
            wide = x.astype(np.float32) @ w.astype(np.float32).T + b.astype(np.float32)
            assert same(got.numpy(), wide.astype(kind)), name

    def test_misuse(self) -> None:
        ones = torch.ones
        wanted = [
            ((ones(2, 3), ones(4, 2)), "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x4)"),
            ((ones(2, 2, 3), ones(4, 2)), "mat1 and mat2 shapes cannot be multiplied (4x3 and 2x4)"),
            ((ones(2, 3), ones(4, 3).half()), "expected m1 and m2 to have the same dtype, but got: Float != Half"),
            ((ones(2, 3), ones(4, 3), ones(3)), "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1.  Target sizes: [2, 4].  Tensor sizes: [3]"),  # noqa: E501
            ((ones(2, 5, 3), ones(4, 3), ones(3)), "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1.  Target sizes: [10, 4].  Tensor sizes: [3]"),  # noqa: E501
            ((ones(2, 3), ones(4, 3), ones(4).half()), "self and mat2 must have the same dtype, but got Half and Float"),  # noqa: E501
            ((ones(2, 3), ones(2, 4, 3)), "t() expects a tensor with <= 2 dimensions, but self is 3D"),
            ((ones(()), ones(4, 3)), "both arguments to linear need to be at least 1D, but they are 0D and 2D"),
        ]  # fmt: skip
        for args, text in wanted:
            assert refused(lambda args=args: F.linear(*args)) == ("RuntimeError", text)


class TestEmbedding:
    @pytest.mark.parametrize("shape", [(), (1,), (0,), (7,), (2, 3)])
    def test_with_gradients(self, shape: tuple[int, ...]) -> None:
        check(lambda w, i: F.embedding(i, w), lambda w, i: w[i], [normal(1, 4, 3), RNG(2).integers(0, 4, shape)])

    def test_gradients_of_short_floats_are_rounded_once(self) -> None:
        w = torch.zeros(2, 1, dtype=torch.float16).requires_grad_()
        grads = np.full((4096, 1), 1.0, np.float16)
        F.embedding(torch.zeros(4096, dtype=torch.int64), w).backward(torch.from_numpy(grads))
        assert w.grad is not None and w.grad.tolist() == [[4096], [0]], "float16 sums stop at 2048"

    def test_module(self) -> None:
        m = nn.Embedding(5, 3)
        assert m(torch.tensor([[4]])).tolist() == [[m.weight[4].tolist()]] and repr(m) == "Embedding(5, 3)"

    def test_misuse(self) -> None:
        w = torch.ones(3, 2)
        wanted: list[tuple[Callable[[], Any], str, str]] = [
            (lambda: F.embedding(torch.tensor([3]), w), "IndexError", "index out of range in self"),
            (lambda: F.embedding(torch.tensor([-1]), w), "IndexError", "index out of range in self"),
            (lambda: F.embedding(torch.tensor([1.0]), w), "RuntimeError", "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got torch.FloatTensor instead (while checking arguments for embedding)"),  # noqa: E501
            (lambda: F.embedding(torch.tensor([1]), torch.ones(3)), "RuntimeError", "'weight' must be 2-D"),
            (lambda: F.embedding([1], w), "TypeError", "embedding(): argument 'indices' (position 2) must be Tensor, not list"),  # type: ignore[arg-type]  # noqa: E501
        ]  # fmt: skip
        for call, kind, text in wanted:
            assert refused(call) == (kind, text)


class TestNormalization:
    @pytest.mark.parametrize("shape", [(4,), (1, 1), (3, 5), (2, 3, 4), (0, 3)])
    @pytest.mark.parametrize("parameters", [0, 1, 2])
    def test_layer_norm(self, shape: tuple[int, ...], parameters: int) -> None:
        arrays = [normal(1, *shape) * 3 + 1, *(normal(2 + i, shape[-1]) for i in range(parameters))]
        check(lambda x, *p: F.layer_norm(x, shape[-1:], *p), layer_norm, arrays)

    def test_layer_norm_over_several_dimensions(self) -> None:
        arrays = [normal(1, 2, 3, 4), normal(2, 3, 4), normal(3, 3, 4)]
        check(
            lambda x, w, b: F.layer_norm(x, (3, 4), w, b, eps=0.1),
            lambda x, w, b: layer_norm(x, w, b, ndim=2, eps=0.1),
            arrays,
        )

    def test_far_from_zero(self) -> None:
        x = (normal(1, 3, 64) + 1e4).astype(np.float32)
        got = F.layer_norm(torch.from_numpy(x), (64,)).numpy()
        np.testing.assert_allclose(got, layer_norm(x.astype(np.float64)), atol=3e-3)

    @pytest.mark.parametrize("name", ["float16", "bfloat16"])
    def test_short_floats_are_rounded_once(self, name: str) -> None:
        kind = NUMPY[name]
        x, w, b = normal(1, 5, 37).astype(kind), normal(2, 37).astype(kind), normal(3, 37).astype(kind)
        wide = [a.astype(np.float64) for a in (x, w, b)]
        tensors = [torch.from_numpy(a) for a in (x, w, b)]
        step = float(np.finfo(np.float16).eps) if name == "float16" else 2.0**-7
        got, want = F.layer_norm(tensors[0], (37,), *tensors[1:]), layer_norm(*wide)
        assert got.dtype == tensors[0].dtype
        off = np.abs(got.numpy().astype(np.float64) - want)
        assert np.all(off <= 0.51 * step * np.abs(want) + 1e-6)

    def test_a_short_input_with_parameters_of_float32(self) -> None:
        x = torch.from_numpy(normal(1, 3, 4).astype(np.float16)).requires_grad_()
        w, b = torch.ones(4).requires_grad_(), torch.zeros(4).requires_grad_()
        out = F.layer_norm(x, (4,), w, b)
        out.sum().backward()
        kinds = [t.grad.dtype for t in (x, w, b) if t.grad is not None]
        assert out.dtype == torch.float16 and kinds == [torch.float16, torch.float32, torch.float32]

    def test_modules(self) -> None:
        x = torch.from_numpy(normal(1, 3, 4))
        m = nn.LayerNorm(4, dtype=torch.float64)
        np.testing.assert_allclose(m(x).detach().numpy(), layer_norm(x.numpy()), rtol=1e-12)
        assert nn.LayerNorm(4, bias=False).bias is None and nn.LayerNorm(4, elementwise_affine=False).weight is None

    def test_misuse(self) -> None:
        x = torch.ones(1, 2)
        wanted: list[tuple[Callable[[], Any], str, str]] = [
            (lambda: F.layer_norm(x, (3,)), "RuntimeError", "Given normalized_shape=[3], expected input with shape [*, 3], but got input of size[1, 2]"),  # noqa: E501
            (lambda: F.layer_norm(x, ()), "RuntimeError", "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = []"),  # noqa: E501
            (lambda: F.layer_norm(x, (2,), torch.ones(3)), "RuntimeError", "Expected weight to be of same shape as normalized_shape, but got weight of shape [3] and normalized_shape = [2]"),  # noqa: E501
            (lambda: F.layer_norm(x, (2,), None, torch.ones(3)), "RuntimeError", "Expected bias to be of same shape as normalized_shape, but got bias of shape [3] and normalized_shape = [2]"),  # noqa: E501
            (lambda: F.layer_norm(x, (2,), torch.ones(2).half()), "RuntimeError", "mixed dtype (CPU): expect parameter to have scalar type of Float"),  # noqa: E501
            (lambda: F.layer_norm(x.long(), (2,)), "NotImplementedError", "\"LayerNormKernelImpl\" not implemented for 'Long'"),  # noqa: E501
        ]  # fmt: skip
        for call, kind, text in wanted:
            assert refused(call) == (kind, text)


# -- what is no tensor


def test_what_is_no_tensor() -> None:
    x, y = torch.ones(2, 3), [1]
    wanted: list[tuple[Callable[[Any], Any], str]] = [
        (lambda y: F.linear(y, x), "linear(): argument 'input' (position 1)"),
        (lambda y: F.linear(x, y), "linear(): argument 'weight' (position 2)"),
        (lambda y: F.linear(x, x, y), "linear(): argument 'bias' (position 3)"),
        (lambda y: F.embedding(x.long(), y), "embedding(): argument 'weight' (position 1)"),
        (lambda y: F.layer_norm(y, (3,)), "layer_norm(): argument 'input' (position 1)"),
        (lambda y: F.layer_norm(x, (3,), y), "layer_norm(): argument 'weight' (position 3)"),
        (lambda y: F.layer_norm(x, (3,), None, y), "layer_norm(): argument 'bias' (position 4)"),
        (lambda y: F.cross_entropy(y, x), "cross_entropy_loss(): argument 'input' (position 1)"),
        (lambda y: F.cross_entropy(x, y), "cross_entropy_loss(): argument 'target' (position 2)"),
        (lambda y: F.dropout(y), "dropout(): argument 'input' (position 1)"),
        (lambda y: F.silu(y), "silu(): argument 'input' (position 1)"),
    ]
    for call, text in wanted:
        assert refused(lambda call=call: call(y)) == ("TypeError", f"{text} must be Tensor, not list")
