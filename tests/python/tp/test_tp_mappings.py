"""The mappings of torchemu.tp, forward and backward, against NumPy on what all ranks have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR
from tp_ranks import DEGREES, on_tensor_parallel_ranks

import torchemu as torch
from torchemu import tp
from torchemu.frontends.kernbench import primitives
from torchemu.tp import parallel_state

Arrays = list[np.ndarray]

SEED = 20260


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world(SIXTY_FOUR)


def noise(seed: int, *shapes: Sequence[int]) -> Arrays:
    """Numbers whose sums are rounded."""
    print("seed", seed)
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) for shape in shapes]


def both_ways(mapping: Callable[[torch.Tensor], torch.Tensor], inputs: Arrays, grads: Arrays) -> tuple[Arrays, Arrays]:
    """Returns a mapping's results of the ranks' inputs, and of its outputs' gradients; it must leave both alone."""

    def rank(r: int) -> tuple[np.ndarray, np.ndarray]:
        x = torch.tensor(inputs[r], requires_grad=True)
        grad = torch.tensor(grads[r])
        y = mapping(x)
        y.backward(grad)
        assert (x.detach().numpy() == inputs[r]).all()
        assert (grad.numpy() == grads[r]).all()
        assert x.grad is not None
        return y.detach().numpy(), x.grad.numpy()

    found = on_tensor_parallel_ranks(len(inputs), rank)
    return [y for y, _ in found], [g for _, g in found]


def expect(found: Arrays, want: Arrays) -> None:
    """The same up to the rounding of a sum of a few numbers; and the same bits where the same is wanted."""
    for r, (a, b) in enumerate(zip(found, want, strict=True)):
        assert a.shape == b.shape, f"rank {r}"
        np.testing.assert_allclose(a, b, rtol=1e-15, atol=1e-14, err_msg=f"rank {r}")
        for s in range(r):
            if want[s].shape == b.shape and (want[s] == b).all():
                assert a.tobytes() == found[s].tobytes(), f"ranks {s} and {r}"


def total(arrays: Arrays) -> np.ndarray:
    return np.sum(arrays, axis=0)


def parts(array: np.ndarray, n: int, axis: int) -> Arrays:
    return np.split(array, n, axis=axis)


def same(arrays: Arrays) -> Arrays:
    return arrays


def summed(arrays: Arrays) -> Arrays:
    return [total(arrays)] * len(arrays)


def split(axis: int) -> Callable[[Arrays], Arrays]:
    return lambda arrays: [parts(a, len(arrays), axis)[r] for r, a in enumerate(arrays)]


def joined(axis: int) -> Callable[[Arrays], Arrays]:
    return lambda arrays: [np.concatenate(arrays, axis=axis)] * len(arrays)


def summed_split(axis: int) -> Callable[[Arrays], Arrays]:
    return lambda arrays: parts(total(arrays), len(arrays), axis)


MAPPINGS: dict[str, tuple[Any, Callable[[Arrays], Arrays], Callable[[Arrays], Arrays]]] = {
    "copy": (tp.copy_to_tensor_model_parallel_region, same, summed),
    "reduce": (tp.reduce_from_tensor_model_parallel_region, summed, same),
    "scatter": (tp.scatter_to_tensor_model_parallel_region, split(-1), joined(-1)),
    "gather": (tp.gather_from_tensor_model_parallel_region, joined(-1), split(-1)),
    "scatter to sp": (tp.scatter_to_sequence_parallel_region, split(0), joined(0)),
    "gather from sp": (tp.gather_from_sequence_parallel_region, joined(0), summed_split(0)),
    "gather from sp, equal": (lambda x: tp.gather_from_sequence_parallel_region(x, False), joined(0), split(0)),
    "reduce scatter to sp": (tp.reduce_scatter_to_sequence_parallel_region, summed_split(0), joined(0)),
    "all gather last": (tp.all_gather_last_dim_from_tensor_parallel_region, joined(-1), summed_split(-1)),
    "reduce scatter last": (tp.reduce_scatter_last_dim_to_tensor_parallel_region, summed_split(-1), joined(-1)),
}


@pytest.mark.parametrize("n", DEGREES)
@pytest.mark.parametrize("name", MAPPINGS)
@pytest.mark.parametrize("shape", [(24, 3, 24), (24, 48), (48,)])
def test_mappings(name: str, n: int, shape: tuple[int, ...]) -> None:
    mapping, forward, backward = MAPPINGS[name]
    inputs = noise(SEED + n, *[shape] * n)
    grads = noise(SEED - n, *[out.shape for out in forward(inputs)])
    outputs, found = both_ways(mapping, inputs, grads)
    expect(outputs, forward(inputs))
    expect(found, backward(grads))


@pytest.mark.parametrize("n", DEGREES)
def test_tokens_and_what_they_have_change_places(n: int) -> None:
    tokens = noise(SEED, *[(2, 12, 24)] * n)  # [2·12 tokens of a rank, 24]
    grads = noise(SEED + 1, *[(24 * n, 24 // n)] * n)
    whole = np.concatenate([t.reshape(-1, 24) for t in tokens])
    outputs, found = both_ways(tp.all_to_all_sp2hp, tokens, grads)
    expect(outputs, parts(whole, n, 1))
    back = parts(np.concatenate(grads, axis=1), n, 0)
    expect(found, [b.reshape(2, 12, 24) for b in back])
    outputs, found = both_ways(tp.all_to_all_hp2sp, grads, [t.reshape(-1, 24) for t in tokens])
    expect(outputs, back)
    expect(found, parts(whole, n, 1))


@pytest.mark.parametrize("n", DEGREES)
def test_uneven_parts(n: int) -> None:
    """Rank i has i + 2j rows for rank j; the last rank has nothing for itself but for that."""
    sizes = [[i + 2 * j for j in range(n)] for i in range(n)]
    inputs = noise(SEED, *[(sum(row), 5) for row in sizes])
    cut = [np.split(x, np.cumsum(row)[:-1]) for x, row in zip(inputs, sizes, strict=True)]
    outputs = [np.concatenate([cut[i][j] for i in range(n)]) for j in range(n)]

    def mapping(x: torch.Tensor) -> torch.Tensor:
        r = parallel_state.get_tensor_model_parallel_rank()
        group = parallel_state.get_tensor_model_parallel_group()
        return tp.all_to_all(group, x, [row[r] for row in sizes], sizes[r])

    found, back = both_ways(mapping, inputs, outputs)
    expect(found, outputs)
    expect(back, inputs)


@pytest.mark.parametrize("n", DEGREES)
def test_sequences_of_uneven_parts(n: int) -> None:
    sizes = [3 * r % 5 for r in range(n)]  # rank 0 has none
    tokens = noise(SEED, *[(size, 2) for size in sizes])
    whole = noise(SEED + 1, *[(sum(sizes), 2)] * n)
    pieces = np.split(total(whole), np.cumsum(sizes)[:-1])
    joining, dividing = [
        lambda x: tp.gather_from_sequence_parallel_region(x, output_split_sizes=sizes),
        lambda x: tp.reduce_scatter_to_sequence_parallel_region(x, input_split_sizes=sizes),
    ]
    outputs, found = both_ways(joining, tokens, whole)
    expect(outputs, joined(0)(tokens))
    expect(found, pieces if n > 1 else whole)
    outputs, found = both_ways(dividing, whole, tokens)
    expect(outputs, pieces if n > 1 else whole)
    expect(found, joined(0)(tokens))


def test_uneven_copies_have_no_way_back() -> None:
    def rank(r: int) -> list[float]:
        x = torch.full((r + 1,), float(r), requires_grad=True)
        y = tp.gather_from_sequence_parallel_region(x, False, output_split_sizes=[1, 2])
        with pytest.raises(AssertionError, match="need tensor_parallel_output_grad"):
            y.sum().backward()
        return y.tolist()

    assert on_tensor_parallel_ranks(2, rank) == [[0.0, 1.0, 1.0]] * 2


def test_a_group_of_ones_own() -> None:
    def rank(r: int) -> list[float]:
        pairs = [torch.distributed.new_group([0, 1]), torch.distributed.new_group([2, 3])]
        return tp.reduce_from_tensor_model_parallel_region(torch.tensor([float(r)]), group=pairs[r // 2]).tolist()

    assert on_tensor_parallel_ranks(4, rank) == [[1.0], [1.0], [5.0], [5.0]]


@pytest.mark.parametrize("name", MAPPINGS)
def test_nothing(name: str) -> None:
    """Empty tensors go through."""
    mapping, forward, _ = MAPPINGS[name]
    inputs = [np.zeros((4, 0)) if "sp" in name else np.zeros((0, 4))] * 2
    want = forward(inputs)
    outputs, found = both_ways(mapping, inputs, want)
    assert [a.shape for a in outputs] == [a.shape for a in want]
    assert [a.shape for a in found] == [a.shape for a in inputs]


# -- bad input


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (tp.scatter_to_tensor_model_parallel_region, "Last dimension of the tensor (7) should be divisible by tensor"),
        (tp.reduce_scatter_last_dim_to_tensor_parallel_region, "Last dimension of the tensor (7)"),
        (tp.scatter_to_sequence_parallel_region, "First dimension of the tensor (5) should be divisible by tensor"),
        (tp.reduce_scatter_to_sequence_parallel_region, "First dimension of the tensor (5)"),
        (tp.all_to_all_sp2hp, "Last dimension of the tensor (7) should be divisible by tensor"),
        (tp.all_to_all_hp2sp, "First dimension of the tensor (5)"),
        (lambda x: primitives.reduce(x, None), "group should not be None"),
        (lambda x: tp.all_to_all(None, x), "group should not be None"),
    ],
)
def test_what_cannot_be_divided(call: Callable[[torch.Tensor], Any], text: str) -> None:
    def rank(r: int) -> str:
        with pytest.raises(AssertionError) as caught:
            call(torch.ones(5, 7))
        return str(caught.value)

    for message in on_tensor_parallel_ranks(2, rank):
        assert text in message


def test_use_before_initialization() -> None:
    for mapping, _, _ in MAPPINGS.values():
        with pytest.raises(AssertionError, match="tensor model parallel group is not initialized"):
            mapping(torch.ones(2))


# -- parts of tensors


def test_parts_of_a_tensor() -> None:
    t = torch.arange(24).view(2, 12)
    halves = tp.split_tensor_along_last_dim(t, 3, contiguous_split_chunks=True)
    assert [h.tolist() for h in halves] == [t[:, i : i + 4].tolist() for i in (0, 4, 8)]
    assert all(h.is_contiguous() for h in halves)
    with pytest.raises(AssertionError, match="12 is not divisible by 5"):
        tp.split_tensor_along_last_dim(t, 5)

    def rank(r: int) -> tuple[list[int], list[int]]:
        mine = tp.split_tensor_into_1d_equal_chunks(torch.arange(24).view(2, 12), new_buffer=r == 1)
        return mine.tolist(), tp.gather_split_1d_tensor(mine).tolist()

    assert on_tensor_parallel_ranks(3, rank) == [(list(range(8 * r, 8 * r + 8)), list(range(24))) for r in range(3)]


def test_parts_of_a_vocabulary() -> None:
    assert tp.VocabUtility.vocab_range_from_global_vocab_size(12, 2, 3) == (8, 12)
    assert tp.VocabUtility.vocab_range_from_per_partition_vocab_size(4, 1, 3) == (4, 8)
    with pytest.raises(AssertionError, match="10 is not divisible by 3"):
        tp.VocabUtility.vocab_range_from_global_vocab_size(10, 0, 3)
