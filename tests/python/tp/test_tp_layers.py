"""Layers of torchemu.tp, forward and backward, against the same computation without any division, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import NUMPY, OpenWorld
from ranks import SIXTY_FOUR
from tp_ranks import DEGREES, on_ranks, on_tensor_parallel_ranks

import torchemu as torch
from torchemu import runtime, tp
from torchemu.tp import parallel_state
from torchemu.tp.gradients import finalize_model_grads

pytestmark = pytest.mark.shows("libraries: Megatron's tensor parallelism, torchemu's own")

IN, OUT, SEQUENCE, BATCH = 24, 48, 24, 2

SEED = 4_2026


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world(SIXTY_FOUR)


@pytest.fixture
def rng() -> np.random.Generator:
    print("seed", SEED)
    return np.random.default_rng(SEED)


def noise(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Normal numbers that float32 has exactly, since whole weights are made in that; in float64."""
    return rng.standard_normal(shape).astype(np.float32).astype(np.float64)


def close(found: np.ndarray, want: np.ndarray, what: str) -> None:
    assert found.shape == want.shape, what
    np.testing.assert_allclose(found, want, rtol=1e-13, atol=1e-12, err_msg=what)


def config(n: int, **more: Any) -> tp.ModelParallelConfig:
    return tp.ModelParallelConfig(
        tensor_model_parallel_size=n, use_cpu_initialization=True, params_dtype=torch.float64, **more
    )


def filled(whole: np.ndarray) -> Any:
    """An init_method that makes a weight this one."""
    return lambda weight: weight.copy_(torch.from_numpy(whole))


def part(array: np.ndarray, r: int, n: int, axis: int) -> np.ndarray:
    return np.split(array, n, axis=axis)[r]


class Linear:
    """x·Wᵀ + b, and what gradients of its output make of x, W and b."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.x, self.w, self.b = noise(rng, SEQUENCE, BATCH, IN), noise(rng, OUT, IN), noise(rng, OUT)
        self.dy = noise(rng, SEQUENCE, BATCH, OUT)
        self.product = np.einsum("sbi,oi->sbo", self.x, self.w)
        self.y = self.product + self.b
        self.dx = np.einsum("sbo,oi->sbi", self.dy, self.w)
        self.dw = np.einsum("sbo,sbi->oi", self.dy, self.x)
        self.db = self.dy.sum(axis=(0, 1))


def passed(layer: Any, x: np.ndarray, dy: np.ndarray, bias: np.ndarray | None) -> dict[str, Any]:
    """Returns what a layer with this bias makes of an input, and of a gradient of its output."""
    layer = layer.cuda()
    if layer.bias is not None and bias is not None:
        with torch.no_grad():
            layer.bias.copy_(torch.from_numpy(bias))
    t = torch.tensor(x, requires_grad=True)
    y, left = layer(t)
    y.backward(torch.tensor(dy))
    assert t.grad is not None
    found = {"y": y.detach(), "dx": t.grad, "dw": layer.weight.grad, "left": left}
    found["db"] = None if layer.bias is None else layer.bias.grad
    return {name: None if value is None else value.detach().numpy().copy() for name, value in found.items()}


def agree(ranks: list[dict[str, Any]], name: str) -> None:
    """All ranks have the same bits."""
    assert len({found[name].tobytes() for found in ranks}) == 1, name


# -- column parallel


@pytest.mark.parametrize("n", DEGREES)
@pytest.mark.parametrize("how", ["plain", "gather", "runtime gather", "sequence", "skip", "no bias"])
def test_column_parallel_linear(rng: np.random.Generator, n: int, how: str) -> None:
    want, sequence = Linear(rng), how == "sequence" and n > 1

    def rank(r: int) -> dict[str, Any]:
        layer = tp.ColumnParallelLinear(
            IN,
            OUT,
            config=config(n, sequence_parallel=sequence),
            init_method=filled(want.w),
            bias=how != "no bias",
            gather_output=how == "gather",
            skip_bias_add=how == "skip",
        )
        assert tuple(layer.weight.shape) == (OUT // n, IN)
        x = part(want.x, r, n, 0) if sequence else want.x
        dy = want.dy if "gather" in how else part(want.dy, r, n, 2)
        if how == "runtime gather":
            forward = layer.forward
            layer.forward = lambda x: forward(x, runtime_gather_output=True)
        return passed(layer, x, dy, part(want.b, r, n, 0))

    ranks = on_tensor_parallel_ranks(n, rank)
    for r, found in enumerate(ranks):
        y = want.product if how in ("skip", "no bias") else want.y
        close(found["y"], y if "gather" in how else part(y, r, n, 2), f"rank {r}: y")
        close(found["dx"], part(want.dx, r, n, 0) if sequence else want.dx, f"rank {r}: dx")
        close(found["dw"], part(want.dw, r, n, 0), f"rank {r}: dw")
        if how in ("skip", "no bias"):
            assert found["db"] is None
        else:
            close(found["db"], part(want.db, r, n, 0), f"rank {r}: db")
        assert (found["left"] is None) == (how != "skip")
    if not sequence:
        agree(ranks, "dx")


def test_column_parallel_linear_without_reduced_gradients(rng: np.random.Generator) -> None:
    want, n = Linear(rng), 4

    def rank(r: int) -> dict[str, Any]:
        layer = tp.ColumnParallelLinear(
            IN, OUT, config=config(n), init_method=filled(want.w), bias=False, disable_grad_reduce=True
        )
        return passed(layer, want.x, part(want.dy, r, n, 2), None)

    shares = [found["dx"] for found in on_tensor_parallel_ranks(n, rank)]
    for r, share in enumerate(shares):
        close(share, part(want.dy, r, n, 2) @ part(want.w, r, n, 0), f"rank {r}")


@pytest.mark.parametrize("sequence", [False, True])
def test_column_parallel_linear_with_another_weight(rng: np.random.Generator, sequence: bool) -> None:
    """A weight from elsewhere, as of an output layer that shares the embedding's; with and without a gradient."""
    want, n = Linear(rng), 2

    def rank(r: int) -> list[np.ndarray]:
        layer = tp.ColumnParallelLinear(
            IN,
            OUT,
            config=config(n, sequence_parallel=sequence),
            init_method=filled(want.w),
            bias=False,
            skip_weight_param_allocation=True,
        )
        assert layer.weight is None
        with pytest.raises(RuntimeError, match="weight was not supplied to ColumnParallelLinear forward pass"):
            layer(torch.ones(2, IN))
        found = []
        for trained in (True, False):
            x = torch.tensor(part(want.x, r, n, 0) if sequence else want.x, requires_grad=True)
            weight = torch.tensor(part(want.w, r, n, 0), requires_grad=trained)
            y, _ = layer(x, weight)
            y.backward(torch.tensor(part(want.dy, r, n, 2)))
            assert (weight.grad is not None) == trained
            found += [y.detach().numpy(), x.grad.numpy()]
        return found

    for r, found in enumerate(on_tensor_parallel_ranks(n, rank)):
        for i in (0, 2):
            close(found[i], part(want.product, r, n, 2), f"rank {r}: y")
            close(found[i + 1], part(want.dx, r, n, 0) if sequence else want.dx, f"rank {r}: dx")


# -- row parallel


@pytest.mark.parametrize("n", DEGREES)
@pytest.mark.parametrize("how", ["plain", "scatter", "sequence", "skip", "no bias"])
def test_row_parallel_linear(rng: np.random.Generator, n: int, how: str) -> None:
    want, sequence = Linear(rng), how == "sequence" and n > 1

    def rank(r: int) -> dict[str, Any]:
        layer = tp.RowParallelLinear(
            IN,
            OUT,
            config=config(n, sequence_parallel=sequence),
            init_method=filled(want.w),
            bias=how != "no bias",
            input_is_parallel=how != "scatter",
            skip_bias_add=how == "skip",
        )
        assert tuple(layer.weight.shape) == (OUT, IN // n)
        x = want.x if how == "scatter" else part(want.x, r, n, 2)
        dy = part(want.dy, r, n, 0) if sequence else want.dy
        found = passed(layer, x, dy, want.b)
        finalize_model_grads([layer])
        found["finalized"] = None if layer.bias is None or layer.bias.grad is None else layer.bias.grad.numpy()
        return found

    ranks = on_tensor_parallel_ranks(n, rank)
    for r, found in enumerate(ranks):
        y = want.product if how in ("skip", "no bias") else want.y
        close(found["y"], part(y, r, n, 0) if sequence else y, f"rank {r}: y")
        close(found["dx"], want.dx if how == "scatter" else part(want.dx, r, n, 2), f"rank {r}: dx")
        close(found["dw"], part(want.dw, r, n, 1), f"rank {r}: dw")
        if how in ("skip", "no bias"):
            assert found["db"] is found["finalized"] is None
        else:
            share = part(want.dy, r, n, 0).sum(axis=(0, 1)) if sequence else want.db
            close(found["db"], share, f"rank {r}: db")
            close(found["finalized"], want.db, f"rank {r}: finalized db")
        assert (found["left"] is None) == (how != "skip")
    if not sequence:
        agree(ranks, "y")
    if how == "scatter":
        agree(ranks, "dx")


@pytest.mark.parametrize("n", DEGREES)
@pytest.mark.parametrize("sequence", [False, True])
def test_a_column_and_a_row(rng: np.random.Generator, n: int, sequence: bool) -> None:
    """The MLP of a transformer, h → 4h → h, with gelu between them: losses and gradients as without division."""
    sequence = sequence and n > 1
    up, down, x = noise(rng, 96, IN), noise(rng, IN, 96), noise(rng, SEQUENCE, BATCH, IN)

    def rank(r: int, n: int, sequence: bool) -> list[np.ndarray]:
        about = config(n, sequence_parallel=sequence)
        first = tp.ColumnParallelLinear(IN, 96, config=about, init_method=filled(up), skip_bias_add=True).cuda()
        second = tp.RowParallelLinear(
            96, IN, config=about, init_method=filled(down), bias=False, input_is_parallel=True, skip_bias_add=False
        ).cuda()
        t = torch.tensor(part(x, r, n, 0) if sequence else x, requires_grad=True)
        hidden, bias = first(t)
        y, _ = second(torch.nn.functional.gelu(hidden + bias))
        (y * y * y).sum().backward()
        return [a.detach().numpy() for a in (y, t.grad, first.weight.grad, first.bias.grad, second.weight.grad)]

    (alone,) = on_tensor_parallel_ranks(1, rank, 1, False)
    for r, found in enumerate(on_tensor_parallel_ranks(n, rank, n, sequence)):
        for name, a, whole, axis in zip(
            ("y", "dx", "dup", "dbias", "ddown"), found, alone, (0, 0, 0, 0, 1), strict=True
        ):
            divided = name.startswith("d") and name != "dx"
            want = part(whole, r, n, axis) if divided or sequence else whole
            np.testing.assert_allclose(a, want, rtol=1e-11, atol=1e-9, err_msg=f"rank {r}: {name}")


# -- the embedding


@pytest.mark.parametrize("n", DEGREES)
@pytest.mark.parametrize("scattered", [False, True])
def test_vocab_parallel_embedding(rng: np.random.Generator, n: int, scattered: bool) -> None:
    table, tokens = noise(rng, 48, 7), rng.integers(0, 48, (BATCH, SEQUENCE))
    grad = noise(rng, SEQUENCE, BATCH, 7) if scattered else noise(rng, BATCH, SEQUENCE, 7)

    def rank(r: int) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
        layer = tp.VocabParallelEmbedding(
            48, 7, init_method=filled(table), reduce_scatter_embeddings=scattered, config=config(n)
        ).cuda()
        y = layer(torch.tensor(tokens))
        y.backward(torch.tensor(part(grad, r, n, 0) if scattered else grad))
        return y.detach().numpy(), layer.weight.grad.numpy(), (layer.vocab_start_index, layer.vocab_end_index)

    whole = table[tokens]
    dtable = np.zeros_like(table)
    np.add.at(dtable, tokens, grad.swapaxes(0, 1) if scattered else grad)
    for r, (y, dw, rows) in enumerate(on_tensor_parallel_ranks(n, rank)):
        assert rows == (r * 48 // n, (r + 1) * 48 // n)
        assert (y == (part(whole.swapaxes(0, 1), r, n, 0) if scattered else whole)).all()
        close(dw, part(dtable, r, n, 0), f"rank {r}")


# -- how weights begin


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_pieces_of_fused_weights(n: int, stride: int) -> None:
    """A rank's part has a piece from each of stride blocks: piece i of the whole is rank i mod n's."""
    whole = np.arange(24.0 * 2).reshape(24, 2)

    def rank(r: int) -> tuple[np.ndarray, Any, Any]:
        layer = tp.ColumnParallelLinear(
            2, 24, config=config(n), init_method=filled(whole), stride=stride, keep_master_weight_for_test=True
        )
        marks = layer.weight.tensor_model_parallel, layer.weight.partition_dim, layer.weight.partition_stride
        return layer.weight.detach().numpy(), layer.master_weight.numpy(), marks

    for r, (weight, master, marks) in enumerate(on_tensor_parallel_ranks(n, rank)):
        rows = [i for i in range(24) if i // (24 // n // stride) % n == r]
        assert (weight == whole[rows]).all()
        assert (master == whole).all()
        assert marks == (True, 0, stride)


def test_weights_do_not_depend_on_the_number_of_ranks() -> None:
    def rank(r: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        torch.manual_seed(3)
        normal = {"config": config(n), "init_method": torch.nn.init.xavier_normal_}
        column = tp.ColumnParallelLinear(8, 16, **normal)
        row = tp.RowParallelLinear(16, 8, bias=True, input_is_parallel=True, skip_bias_add=False, **normal)
        table = tp.VocabParallelEmbedding(16, 4, **normal)
        assert column.bias.tolist() == [0] * (16 // n) and row.bias.tolist() == [0] * 8
        return tuple(layer.weight.detach().numpy() for layer in (column, row, table))

    (alone,) = on_tensor_parallel_ranks(1, rank, 1)
    for n in (2, 4, 8):
        for r, found in enumerate(on_tensor_parallel_ranks(n, rank, n)):
            for weight, whole, axis in zip(found, alone, (0, 1, 0), strict=True):
                assert (weight == part(whole, r, n, axis)).all()


def test_weights_on_devices_differ_from_rank_to_rank() -> None:
    about = tp.ModelParallelConfig(tensor_model_parallel_size=2)

    def rank(r: int) -> tuple[str, bytes, bytes]:
        tp.model_parallel_cuda_manual_seed(7)
        layer = tp.ColumnParallelLinear(8, 16, config=about, init_method=torch.nn.init.normal_)
        torch.manual_seed(7 + 2718 + r)
        again = torch.nn.init.normal_(torch.empty(8, 8))
        assert (layer.weight == again).all()
        return layer.weight.device.type, layer.weight.detach().numpy().tobytes(), again.numpy().tobytes()

    first, second = on_tensor_parallel_ranks(2, rank)
    assert first[0] == second[0] == "ahbm"
    assert first[1] != second[1]


def test_weights_that_are_left_as_memory_is() -> None:
    def rank(r: int) -> Any:
        about = config(2, perform_initialization=False)
        layer = tp.ColumnParallelLinear(8, 16, config=about, init_method=lambda _: pytest.fail("called"))
        return layer.weight.tensor_model_parallel, layer.weight.shape

    assert on_tensor_parallel_ranks(2, rank) == [(True, (8, 8))] * 2


def test_marks_of_parameters() -> None:
    def rank(r: int) -> list[Any]:
        plain, divided, copied = (torch.nn.Parameter(torch.ones(2)) for _ in range(3))
        tp.set_defaults_if_not_set_tensor_model_parallel_attributes(plain)
        tp.set_tensor_model_parallel_attributes(divided, True, 1, 2)
        tp.copy_tensor_model_parallel_attributes(copied, divided)
        with pytest.raises(AssertionError, match="has tensor_model_parallel already"):
            tp.set_tensor_model_parallel_attributes(divided, True, 1, 2)
        marks = [(p.tensor_model_parallel, p.partition_dim, p.partition_stride) for p in (plain, divided, copied)]
        return [*marks, *map(tp.param_is_not_tensor_parallel_duplicate, (plain, divided))]

    first, second = on_tensor_parallel_ranks(2, rank)
    assert first == [(False, -1, 1), (True, 1, 2), (True, 1, 2), True, True]
    assert second == [*first[:3], False, True]


def test_state_dicts() -> None:
    """A state of Megatron's, with an entry that says nothing, and which need not be there."""

    def rank(r: int) -> tuple[str, list[str]]:
        layer, other = column(), column(bias=False)
        layer.load_state_dict({"weight": torch.full((8, 8), 2.0), "bias": torch.full((8,), 3.0)})
        assert layer.weight is not None and layer.weight.unique().tolist() == [2]
        layer.load_state_dict(layer.state_dict())
        other.load_state_dict(other.state_dict())
        assert list(row(bias=False).state_dict()) == list(other.state_dict()) == ["weight", "_extra_state"]
        return repr(layer), list(layer.state_dict())

    text = "ColumnParallelLinear(in_features=8, out_features=16, bias=True, TP=2)"
    assert on_tensor_parallel_ranks(2, rank) == [(text, ["weight", "bias", "_extra_state"])] * 2


# -- experts


def test_experts_that_are_divided_leave_communication_to_others(rng: np.random.Generator) -> None:
    """A layer of an expert computes with what its rank has, and its gradient is the rank's share."""
    want, n = Linear(rng), 2

    def rank(r: int) -> tuple[dict[str, Any], dict[str, Any], int]:
        parallel_state.destroy_model_parallel()
        parallel_state.initialize_model_parallel(n, expert_tensor_parallel_size=n)
        first = tp.ColumnParallelLinear(
            IN, OUT, config=config(n), init_method=filled(want.w), bias=False, is_expert=True
        )
        second = tp.RowParallelLinear(
            IN, OUT, config=config(n), init_method=filled(want.w), bias=False, input_is_parallel=True,
            skip_bias_add=True, is_expert=True,
        )  # fmt: skip
        before = len(runtime.current_world().collectives())
        found = (
            passed(first, want.x, part(want.dy, r, n, 2), None),
            passed(second, part(want.x, r, n, 2), want.dy, None),
        )
        return *found, len(runtime.current_world().collectives()) - before

    for r, (first, second, collectives) in enumerate(on_tensor_parallel_ranks(n, rank)):
        assert collectives == 0
        close(first["y"], part(want.product, r, n, 2), "column: y")
        close(first["dx"], part(want.dy, r, n, 2) @ part(want.w, r, n, 0), "column: dx")
        close(second["y"], part(want.x, r, n, 2) @ part(want.w, r, n, 1).T, "row: y")
        close(second["dx"], part(want.dx, r, n, 2), "row: dx")


def test_experts_must_return_their_bias() -> None:
    def rank(r: int) -> None:
        layer = row(is_expert=True, skip_bias_add=False, config=config(2)).cuda()
        with pytest.raises(AssertionError, match="need skip_bias_add"):
            layer(torch.ones(3, 4, dtype=torch.float64))

    on_tensor_parallel_ranks(2, rank)


def test_an_old_argument_is_ignored_with_a_warning() -> None:
    def rank(r: int) -> list[float]:
        x, w = (torch.ones(2, 2, requires_grad=True) for _ in range(2))
        with pytest.warns(UserWarning, match="async_grad_allreduce is deprecated"):
            y = tp.linear_with_grad_accumulation_and_async_allreduce(
                x, w, None, False, allreduce_dgrad=True, sequence_parallel=False, async_grad_allreduce=False
            )
        y.sum().backward()
        assert x.grad is not None
        return x.grad[0].tolist()

    assert on_tensor_parallel_ranks(2, rank) == [[4, 4]] * 2


# -- short floats


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_short_floats_are_summed_in_float32_and_rounded_once(rng: np.random.Generator, name: str) -> None:
    kind, dtype = NUMPY[name], getattr(torch, name)
    assert (torch.ones(1, 4096, dtype=dtype) @ torch.ones(4096, 1, dtype=dtype)).item() == 4096  # 2048 or 256 otherwise
    a, b = (rng.standard_normal((33, 257)).astype(kind) for _ in range(2))
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    found = (torch.from_numpy(a) @ torch.from_numpy(b).t()).numpy()
    slack = 257 * 2.0**-24 * (np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)).T)
    low, high = ((exact + sign * slack).astype(kind).astype(np.float64) for sign in (-1, 1))
    assert ((low <= found.astype(np.float64)) & (found.astype(np.float64) <= high)).all()


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_layers_of_other_dtypes(rng: np.random.Generator, name: str) -> None:
    """Sums of products in float32, a rounding of each rank's share, one of each reduction and one of the bias."""
    want, n, dtype = Linear(rng), 4, getattr(torch, name)
    unit = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}[name]
    about = tp.ModelParallelConfig(tensor_model_parallel_size=n, use_cpu_initialization=True, params_dtype=dtype)

    def rank(r: int) -> np.ndarray:
        layer = tp.RowParallelLinear(
            IN, OUT, config=about, init_method=filled(want.w), bias=True, input_is_parallel=True, skip_bias_add=False
        ).cuda()
        y, _ = layer(torch.tensor(part(want.x, r, n, 2)).to(dtype))
        assert y.dtype is layer.weight.dtype is dtype
        return y.detach().double().numpy()

    size = np.einsum("sbi,oi->sbo", np.abs(want.x), np.abs(want.w))
    for found in on_tensor_parallel_ranks(n, rank):
        assert (np.abs(found - want.product) <= 12 * unit * (1 + size)).all()


# -- bad input


def column(n: int = 2, **more: Any) -> tp.ColumnParallelLinear:
    return tp.ColumnParallelLinear(8, 16, config=config(n), init_method=torch.nn.init.zeros_, **more)


def row(inputs: int = 8, **more: Any) -> tp.RowParallelLinear:
    given = {"config": config(2), "bias": True, "input_is_parallel": True, "skip_bias_add": False, **more}
    return tp.RowParallelLinear(inputs, 6, init_method=torch.nn.init.zeros_, **given)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: column()(torch.ones(3, 8), torch.ones(4, 8)), RuntimeError,
         "supplied weight's shape is (4, 8), not (8, 8) as expected"),
        (lambda: row(7), AssertionError, "7 is not divisible by 2"),
        (lambda: tp.ColumnParallelLinear(8, 15, config=config(2), init_method=None), AssertionError,
         "15 is not divisible by 2"),
        (lambda: tp.VocabParallelEmbedding(9, 4, config=config(2), init_method=None), AssertionError,
         "9 is not divisible by 2"),
        (lambda: row(config=config(2, sequence_parallel=True), input_is_parallel=False), RuntimeError,
         "To enable `sequence_parallel`, `input_is_parallel` must be `True`"),
        (lambda: row(config=config(2, gradient_accumulation_fusion=True)), RuntimeError,
         "RowParallelLinear was called with gradient_accumulation_fusion set to True"),
        (lambda: column()(torch.ones(3, 7, dtype=torch.float64)), RuntimeError, "3x7 and 8x8"),
        (lambda: column(stride=3), AssertionError, "8 is not divisible by 3"),
        (lambda: tp.ColumnParallelLinear(8, 16, config=tp.ModelParallelConfig(), init_method=torch.nn.init.zeros_),
         Exception, "cuda rng state model-parallel-rng is not added"),
    ],
)  # fmt: skip
def test_what_does_not_fit(call: Any, kind: type[Exception], text: str) -> None:
    def rank(r: int) -> str:
        with pytest.raises(kind) as caught:
            call()
        return str(caught.value)

    for message in on_tensor_parallel_ranks(2, rank):
        assert text in message


def test_layers_before_initialization() -> None:
    def rank(r: int) -> None:
        for make in (column, row, lambda: tp.VocabParallelEmbedding(8, 4, config=config(2), init_method=None)):
            with pytest.raises(AssertionError, match="tensor model parallel group is not initialized"):
                make()

    on_ranks(2, rank)


def test_sequence_parallelism_of_one_rank_is_none() -> None:
    def rank(r: int) -> None:
        about = config(2, sequence_parallel=True)
        alone = torch.distributed.new_group([r], use_local_synchronization=True)
        with pytest.warns(UserWarning, match="tensor model parallel size is 1. Disabling sequence parallel"):
            layer = tp.ColumnParallelLinear(8, 16, config=about, init_method=torch.nn.init.ones_, tp_group=alone)
        assert not layer.sequence_parallel
        assert layer.cuda()(torch.ones(2, 8, dtype=torch.float64))[0].tolist() == [[8.0] * 16] * 2

    on_tensor_parallel_ranks(2, rank)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"sequence_parallel": True}, "Can not use sequence parallelism without tensor parallelism"),
        ({"pipeline_model_parallel_size": 2}, "pipeline_dtype must be specified"),
        ({"defer_embedding_wgrad_compute": True}, "Cannot defer embedding wgrad compute"),
        ({"num_attention_heads": 6, "tensor_model_parallel_size": 4}, r"num_attention_heads \(6\) must be a multiple"),
        ({"fp16": True, "bf16": True}, "Only one of self.fp16: True and self.bf16 True should be True"),
    ],
)
def test_configurations_that_contradict_themselves(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        tp.TransformerConfig(**given)


def test_a_model_of_several_groups() -> None:
    """Ranks 0, 1 and ranks 2, 3 have a model each; a layer can also be given its group."""

    def rank(r: int) -> tuple[list[float], list[float]]:
        parallel_state.destroy_model_parallel()
        parallel_state.initialize_model_parallel(2)
        layer = row(bias=False).cuda()
        everyone = row(bias=False, tp_group=torch.distributed.group.WORLD).cuda()
        with torch.no_grad():
            layer.weight.fill_(1)
            everyone.weight.fill_(1)
        assert layer.weight.shape == (6, 4) and everyone.weight.shape == (6, 2)
        x = torch.full((1, 4), float(r), dtype=torch.float64)
        return layer(x)[0][0, :1].tolist(), everyone(x[:, :2])[0][0, :1].tolist()

    found = on_tensor_parallel_ranks(4, rank)
    assert found == [([4.0], [12.0]), ([4.0], [12.0]), ([20.0], [12.0]), ([20.0], [12.0])]


@pytest.mark.parametrize("hooked", [False, True])
def test_gradients_are_computed_again_only_if_that_is_said(hooked: bool) -> None:
    """A pass lets go of what it was given and has saved, unless the graph is kept or a hook sees it."""

    def rank(r: int) -> tuple[list[Any], list[Any]]:
        table = tp.VocabParallelEmbedding(8, 4, config=config(2), init_method=torch.nn.init.ones_).cuda()
        layer, seen = row(inputs=4, input_is_parallel=False).cuda(), []
        with torch.no_grad():
            layer.weight.fill_(0.5)
        embedded = table(torch.tensor([[1, 6, 1]]))
        y, _ = layer(embedded)
        if hooked:
            for t in (embedded, y):
                t.register_hook(lambda grad: seen.append(grad.tolist()))
        grad, found = torch.full_like(y, 2.0), []
        for keep in (True, False):
            y.backward(grad, retain_graph=keep)
            found.append([p.grad.tolist() for p in (table.weight, layer.bias)])
            table.weight.grad, layer.bias.grad = None, None
        with pytest.raises(RuntimeError, match="a second time"):
            y.backward(grad)
        return found, seen

    for found, seen in on_tensor_parallel_ranks(2, rank):
        assert found[0] == found[1]
        assert found[0][1] == [6.0] * 6
        assert found[0][0] != [[0.0] * 4] * 4
        assert seen[:2] == seen[2:4]
        assert len(seen) == (5 if hooked else 0)  # the third pass comes as far as the output
