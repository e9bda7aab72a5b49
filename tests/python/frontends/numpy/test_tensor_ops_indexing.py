"""Square brackets, masks, gather and scatter: against explicit indices."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from tensor_oracle import broadcast, indices

import torchemu as torch

Tensor = torch.Tensor
S = slice


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


def fresh(*shape: int) -> Tensor:
    return torch.arange(math.prod(shape)).reshape(shape)


def listed(key: Any) -> Any:
    return key.tolist() if isinstance(key, Tensor | np.ndarray) else key


def shape_of(nested: Any) -> tuple[int, ...]:
    return (len(nested), *shape_of(nested[0])) if isinstance(nested, list) and nested else (0,) if nested == [] else ()


def element(nested: Any, index: tuple[int, ...]) -> Any:
    for i in index:
        nested = nested[i]
    return nested


def chosen(  # noqa: C901 (one rule after another)
    shape: tuple[int, ...], keys: tuple[Any, ...]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Returns what square brackets select, by the rules: the shape of the result and the index of each of its elements.

    Integers drop their dimension, slices keep theirs, None makes one. Lists broadcast together; their dimensions are
    where they are if they are next to each other, in front otherwise. A mask is the lists of its true indices.
    """
    keys = tuple(listed(k) for k in keys)
    expanded: list[Any] = []
    for k in keys:
        if isinstance(k, list) and shape_of(k) and isinstance(element(k, (0,) * len(shape_of(k))), bool):
            true = [i for i in indices(shape_of(k)) if element(k, i)]
            expanded += [[i[d] for i in true] for d in range(len(shape_of(k)))]
        else:
            expanded.append(k)
    used = sum(k is not None and k is not ... for k in expanded)
    if ... not in [k for k in expanded if not isinstance(k, list)]:
        expanded.append(...)
    at = next(i for i, k in enumerate(expanded) if k is ...)
    expanded[at : at + 1] = [S(None)] * (len(shape) - used)
    lists = [k for k in expanded if isinstance(k, list)]
    common = broadcast([shape_of(k) for k in lists]) if lists else ()
    places = [i for i, k in enumerate(k for k in expanded if not isinstance(k, int)) if isinstance(k, list)]
    together = not places or places == list(range(places[0], places[0] + len(places)))
    groups: list[tuple[str, int, Any]] = []  # of result dimensions: ("list", …), ("slice", axis, range), ("new", …)
    axis = 0
    fixed: dict[int, int] = {}
    axes_of_lists: list[int] = []
    for k in expanded:
        if k is None:
            groups.append(("new", -1, None))
            continue
        if isinstance(k, S):
            groups.append(("slice", axis, range(*k.indices(shape[axis]))))
        elif isinstance(k, list):
            if not axes_of_lists:
                groups.append(("lists", -1, None))
            axes_of_lists.append(axis)
        else:
            fixed[axis] = k % shape[axis]
        axis += 1
    if not together:
        groups = [("lists", -1, None), *[g for g in groups if g[0] != "lists"]]
    sizes = [common if g[0] == "lists" else (1,) if g[0] == "new" else (len(g[2]),) for g in groups]
    result = tuple(n for s in sizes for n in s)
    selected = []
    for index in indices(result):
        rest, source = list(index), dict(fixed)
        for (what, a, steps), own in zip(groups, sizes, strict=True):
            part, rest = rest[: len(own)], rest[len(own) :]
            if what == "slice":
                source[a] = steps[part[0]]
            elif what == "lists":
                for b, k in zip(axes_of_lists, lists, strict=True):
                    inner = shape_of(k)
                    low = part[len(part) - len(inner) :]
                    value = element(k, tuple(0 if n == 1 else i for i, n in zip(low, inner, strict=True)))
                    source[b] = value % shape[b]
        selected.append(tuple(source[a] for a in range(len(shape))))
    return result, selected


MASK = [[True, False, True], [False, True, True]]
KEYS: list[Any] = [
    1,
    -1,
    (1, 2),
    (0, 1, 3),
    S(1, None),
    S(None, None, 2),
    (S(None), 1),
    (S(None), S(1, 3), S(None, None, 3)),
    (..., 0),
    (0, ...),
    ...,
    (None, 1),
    (1, None, S(None), 2),
    S(5, 2),
    (),
    [1, 0],
    [0, 0, 1],
    (S(None), [0, 2]),
    ([0, 1], [2, 1]),
    ([0, 1], S(None), [2, 1]),
    (0, S(None), [0, 3]),
    (1, [0, 2], S(1, 3)),
    (S(None), [0, 2], 1),
    (S(None), [0, 2], None),
    (None, [1], S(None)),
    (..., [3, 0]),
    ([1], ..., [0]),
    [-1, -2],
    MASK,
    (MASK, 1),
    (S(None), [True, False, True]),
    ([True, False], S(None), S(2)),
    ([False, False],),
    (1, [True, False, True], [0, 1]),
]


def has_list(key: Any) -> bool:
    return any(isinstance(k, list) for k in (key if isinstance(key, tuple) else (key,)))


CASES = [(k, how) for k in KEYS for how in ("lists", "tensors", "arrays") if how == "lists" or has_list(k)]


@pytest.mark.parametrize(("key", "how"), CASES, ids=str)
def test_brackets(key: Any, how: str) -> None:
    make = {"lists": lambda k: k, "tensors": torch.tensor, "arrays": np.array}[how]
    keys = key if isinstance(key, tuple) else (key,)
    given: Any = tuple(make(k) if isinstance(k, list) else k for k in keys)
    if len(given) == 1 and not isinstance(key, tuple):
        given = given[0]
    t = fresh(2, 3, 4)
    shape, places = chosen((2, 3, 4), keys)
    if how == "lists" and key is MASK:
        given = (torch.tensor(MASK),)  # a list of lists counts as one key for each dimension
    got = t[given]
    assert got.shape == shape
    assert got.reshape(-1).tolist() == [t.tolist()[a][b][c] for a, b, c in places]
    is_view = not has_list(key)
    assert (got.untyped_storage() == t.untyped_storage()) == is_view
    want = t.tolist()
    for a, b, c in places:
        want[a][b][c] = -7
    for value in (-7, torch.tensor(-7.9), torch.full(shape[-1:], -7)):
        u = fresh(2, 3, 4)
        u[given] = value
        assert u.tolist() == want
    u = fresh(2, 3, 4)
    u[given] += 100
    assert u[given].reshape(-1).tolist() == [v + 100 for v in got.reshape(-1).tolist()]


def test_new_dimensions_have_the_strides_of_unsqueeze() -> None:
    x = torch.ones(2, 3)
    for key, strides in [
        (None, (6, 3, 1)),
        ((None, None), (6, 6, 3, 1)),
        ((slice(None), None), (3, 3, 1)),
        ((..., None), (3, 1, 1)),
        ((0, None), (3, 1)),
        ((None, 0), (6, 1)),
    ]:
        assert x[key].stride() == strides, key
    assert x[None].stride() == x.unsqueeze(0).stride() and torch.ones(())[None].stride() == (1,)


def test_tensors_as_keys() -> None:
    t = fresh(3, 4)
    assert t[torch.tensor(1)].tolist() == t[1].tolist() and t[torch.tensor(1)].untyped_storage() == t.untyped_storage()
    assert t[torch.tensor(1), torch.tensor([0, 2])].tolist() == [4, 6]
    assert t[: torch.tensor(2)].shape == (2, 4) and [10, 20, 30][torch.tensor(1)] == 20
    assert t[t > 9].tolist() == [10, 11] and t[[[0, 1], [1, 2]]].tolist() == [1, 6]
    assert t[True].shape == (1, 3, 4) and t[torch.tensor(False)].shape == (0, 3, 4)
    assert t[torch.tensor([], dtype=torch.int64)].shape == t[[]].shape == (0, 4)
    t[torch.tensor([2, 0])] = torch.tensor([[1], [2]])
    assert t[:, 0].tolist() == [2, 4, 1]
    t[0] = [5, 6, 7, 8]
    assert t[0].tolist() == [5, 6, 7, 8]


def test_keys_that_do_not_fit() -> None:
    t = fresh(2, 3)
    cases: list[tuple[Any, type[Exception], str]] = [
        (2, IndexError, r"index 2 is out of bounds for dimension 0 with size 2"),
        ((0, -4), IndexError, r"index -4 is out of bounds for dimension 1 with size 3"),
        ((0, 0, 0), IndexError, r"too many indices for tensor of dimension 2"),
        ([5], IndexError, r"index 5 is out of bounds for dimension 0 with size 2"),
        ((S(None), torch.tensor([3])), IndexError, r"index 3 is out of bounds for dimension 1 with size 3"),
        (torch.tensor([0.5]), IndexError, r"must be long, int, byte or bool tensors, not torch.float32"),
        ([1.5], IndexError, r"must hold integers or bools"),
        ("a", IndexError, r"only integers, slices .* are valid indices \(got str\)"),
        (1.5, IndexError, r"got float"),
        (torch.tensor([True]), IndexError, r"shape of the mask \[1\] at index 0 does not match .* \[2, 3\] at index 0"),
        (torch.ones(2, 2).bool(), IndexError, r"mask \[2, 2\] at index 1 does not match .* at index 1"),
        (S(None, None, -1), ValueError, r"step must be greater than zero"),
    ]
    for key, kind, text in cases:
        with pytest.raises(kind, match=text):
            t[key]
        with pytest.raises(kind, match=text):
            t[key] = 0
    for value, text in [
        (torch.zeros(4), r"cannot copy a tensor of shape \[4\] into one of shape \[3\]"),
        (torch.zeros(2, 3), r"cannot copy a tensor of shape \[2, 3\] into one of shape \[3\]"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            t[0] = value
    with pytest.raises(RuntimeError, match=r"shape mismatch: value tensor of shape \[2\] cannot be broadcast"):
        t[torch.tensor([True, True])] = torch.zeros(2)
    with pytest.raises(TypeError, match=r"can't assign a str to a torch"):
        t[0] = "x"
    assert t.tolist() == [[0, 1, 2], [3, 4, 5]]


# -- masks


def test_masks() -> None:
    t, mask = torch.arange(6.0).reshape(2, 3), torch.tensor([[True, False, True], [False, False, True]])
    assert t.masked_select(mask).tolist() == [0, 2, 5] and t.masked_select(mask[0]).tolist() == [0, 2, 3, 5]
    assert t.masked_fill(mask, -1).tolist() == [[-1, 1, -1], [3, 4, -1]]
    assert t[0].masked_fill(mask, torch.tensor(9.0)).tolist() == [[9, 1, 9], [0, 1, 9]]
    assert t.masked_fill_(mask[0], 0.5) is t and t.tolist() == [[0.5, 1, 0.5], [0.5, 4, 0.5]]
    assert mask.nonzero().tolist() == [[0, 0], [0, 2], [1, 2]]
    assert (
        [x.tolist() for x in torch.where(mask)]
        == [x.tolist() for x in mask.nonzero(as_tuple=True)]
        == [[0, 0, 1], [0, 2, 2]]
    )
    assert torch.tensor(3).nonzero().shape == (1, 0) and torch.zeros(2, 0).nonzero().shape == (0, 2)
    for call, text in [
        (lambda: t.masked_fill(t, 1), r"only supports boolean masks, but got mask with dtype Float"),
        (lambda: t.masked_fill(mask, t), r"only supports a 0-dimensional value tensor, but got tensor with 2"),
        (lambda: t.masked_select(t), r"expected BoolTensor for mask"),
        (lambda: t.masked_fill(torch.ones(2).bool(), 1), r"broadcast"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            call()


# -- along a dimension


@pytest.mark.parametrize("dim", [0, 1, 2, -2])
@pytest.mark.parametrize("seed", range(4))
def test_gather_and_scatter(dim: int, seed: int) -> None:
    rng = random.Random(f"{dim} {seed}")
    shape = (3, 4, 2)
    axis = dim % 3
    small = tuple(rng.randrange(1, 6) if a == axis else rng.randrange(1, n + 1) for a, n in enumerate(shape))
    index = torch.tensor([rng.randrange(shape[axis]) for _ in indices(small)]).reshape(small)
    t, source = fresh(*shape).float(), torch.rand(small)

    def place(i: tuple[int, ...]) -> tuple[int, ...]:
        return (*i[:axis], int(index[i]), *i[axis + 1 :])

    assert t.gather(dim, index).reshape(-1).tolist() == [t[place(i)].item() for i in indices(small)]
    want = {i: t[i].item() for i in indices(shape)}
    for i in indices(small):
        want[place(i)] += source[i].item()
    got = t.scatter_add(dim, index, source)
    assert got.reshape(-1).tolist() == pytest.approx(list(want.values()), rel=1e-6)
    stored = t.scatter(dim, index, source)
    for i in indices(shape):
        sources = [source[j].item() for j in indices(small) if place(j) == i]
        assert stored[i].item() in (sources or [t[i].item()])
    assert set(t.scatter(dim, index, 99.0).reshape(-1).tolist()) <= {99.0, *t.reshape(-1).tolist()}


def test_rows_by_index() -> None:
    t, index = fresh(3, 2).float(), torch.tensor([2, 0, 2])
    assert t.index_select(0, index).tolist() == [[4, 5], [0, 1], [4, 5]]
    assert t.index_select(1, torch.tensor([1])).tolist() == [[1], [3], [5]]
    ones = torch.ones(3, 2)
    assert t.index_add(0, index, ones).tolist() == [[1, 2], [2, 3], [6, 7]]
    assert t.clone().index_add_(0, index, ones, alpha=10).tolist() == [[10, 11], [2, 3], [24, 25]]


def test_indices_that_do_not_fit() -> None:
    t = fresh(3, 2).float()
    cases: list[tuple[Any, type[Exception], str]] = [
        (
            lambda: t.index_select(0, torch.tensor([3])),
            IndexError,
            r"index 3 is out of bounds .* size 3",
        ),
        (lambda: t.index_select(0, torch.tensor([[0]])), IndexError, r"supposed to be a vector"),
        (lambda: t.index_select(0, torch.tensor([0.0])), RuntimeError, r"Expected dtype int32 or int64 for index"),
        (lambda: t.gather(0, torch.tensor([0])), RuntimeError, r"same number of dimensions as input tensor"),
        (lambda: t.gather(0, torch.tensor([[0, 0, 0]])), RuntimeError, r"Size does not match at dimension 1"),
        (lambda: t.gather(0, torch.tensor([[-1]])), RuntimeError, r"index -1 is out of bounds"),
        (lambda: t.scatter(0, torch.tensor([[0]]), t.double()), RuntimeError, r"self.dtype to be equal to src.dtype"),
        (lambda: t.scatter(1, torch.tensor([[0], [1]]), t[:1]), RuntimeError, r"no larger than src \[1, 2\]"),
        (
            lambda: t.index_add(0, torch.tensor([0]), t),
            RuntimeError,
            r"Number of indices \(1\) should be .*\(3\)",
        ),
        (lambda: t.index_add(0, torch.tensor([7]), t[:1]), RuntimeError, r"index 7 is out of bounds"),
    ]
    for call, kind, text in cases:
        with pytest.raises(kind, match=text):
            call()


# -- in another order


def test_orders() -> None:
    t = fresh(2, 3)
    assert torch.tensor(7).flip(0).item() == torch.tensor(7).flip(-1).item() == 7
    assert t.flip(0).tolist() == [[3, 4, 5], [0, 1, 2]]
    assert t.flip(0, 1).tolist() == t.flip((0, 1)).tolist() == [[5, 4, 3], [2, 1, 0]]
    for k in range(-3, 4):
        lower, upper = t.tril(k), t.triu(k)
        for i, j in itertools.product(range(2), range(3)):
            assert lower[i, j].item() == (t[i, j].item() if j - i <= k else 0)
            assert upper[i, j].item() == (t[i, j].item() if j - i >= k else 0)
    with pytest.raises(RuntimeError, match=r"tril: input tensor must have at least 2 dimensions"):
        torch.zeros(3).tril()
