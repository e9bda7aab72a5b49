"""Views: their shapes, strides and memory, against an explicit list of the elements that each position shows."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

import pytest
from conftest import OpenWorld
from tensor_oracle import indices

import torchemu as torch

Tensor = torch.Tensor


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


class Model:
    """A view as a shape and, for each position, the number of the element of the storage that is there."""

    def __init__(self, shape: Sequence[int], places: list[int]) -> None:
        self.shape, self.places = tuple(shape), places

    @classmethod
    def of(cls, shape: Sequence[int], place: Callable[[tuple[int, ...]], int]) -> Model:
        return cls(shape, [place(i) for i in indices(shape)])

    def at(self, index: Sequence[int]) -> int:
        flat = 0
        for i, n in zip(index, self.shape, strict=True):
            flat = flat * n + i
        return self.places[flat]


def fresh(*shape: int) -> tuple[Tensor, Model]:
    """A tensor whose elements are their places in memory."""
    n = 1
    for size in shape:
        n *= size
    return torch.arange(n).reshape(shape), Model(shape, list(range(n)))


def check(view: Tensor, model: Model) -> None:
    """That the view shows what the model says, at addresses that its strides give."""
    assert view.shape == model.shape
    assert view.reshape(-1).tolist() == model.places
    base = view.storage_offset()
    for index, place in zip(indices(model.shape), model.places, strict=True):
        assert base + sum(i * s for i, s in zip(index, view.stride(), strict=True)) == place
    in_order = all(b == a + 1 for a, b in itertools.pairwise(model.places))
    if model.places:
        assert view.is_contiguous() == (in_order or all(n == 1 for n in view.shape))
    assert view.contiguous().tolist() == view.clone().tolist() == view.tolist()
    assert (view.contiguous() is view) == view.is_contiguous()


def permuted(m: Model, order: Sequence[int]) -> Model:
    def place(index: tuple[int, ...]) -> int:
        back = [0] * len(order)
        for at, axis in enumerate(order):
            back[axis] = index[at]
        return m.at(back)

    return Model.of([m.shape[a] for a in order], place)


def narrowed(m: Model, axis: int, start: int, length: int, step: int = 1) -> Model:
    shape = [*m.shape[:axis], length, *m.shape[axis + 1 :]]
    return Model.of(shape, lambda i: m.at([*i[:axis], start + step * i[axis], *i[axis + 1 :]]))


def selected(m: Model, axis: int, at: int) -> Model:
    shape = [*m.shape[:axis], *m.shape[axis + 1 :]]
    return Model.of(shape, lambda i: m.at([*i[:axis], at, *i[axis:]]))


Step = tuple[str, Callable[[Tensor], Tensor], Callable[[Model], Model]]


def random_step(rng: random.Random, m: Model) -> Step:
    """Some view of what the model describes, on both sides."""
    n = len(m.shape)
    axis = rng.randrange(n) if n else 0
    order = rng.sample(range(n), n)
    choices: list[Step] = [
        ("permute", lambda t: t.permute(order), lambda m: permuted(m, order)),
        ("unsqueeze", lambda t: t.unsqueeze(axis), lambda m: Model([*m.shape[:axis], 1, *m.shape[axis:]], m.places)),
        ("squeeze", lambda t: t.squeeze(), lambda m: Model([s for s in m.shape if s != 1], m.places)),
    ]
    if n:
        size = m.shape[axis]
        start = rng.randrange(size)
        length = rng.randrange(1, size - start + 1)
        step = rng.randrange(1, 3)
        count = -(-length // step)
        key = (slice(None),) * axis + (slice(start, start + length, step),)
        choices += [
            ("narrow", lambda t: t.narrow(axis, start, length), lambda m: narrowed(m, axis, start, length)),
            ("slice", lambda t: t[key], lambda m: narrowed(m, axis, start, count, step)),
            ("select", lambda t: t.select(axis, start), lambda m: selected(m, axis, start)),
            ("split", lambda t: t.split(length, axis)[0], lambda m: narrowed(m, axis, 0, min(length, size))),
        ]
    return rng.choice(choices)


@pytest.mark.parametrize("seed", range(60))
def test_chains_of_views(seed: int) -> None:
    rng = random.Random(seed)
    view, model = fresh(*rng.choice([(4, 3, 5), (2, 6), (7,), (2, 2, 3, 4), (1, 5, 1, 3)]))
    base, names = view, []
    for _ in range(rng.randrange(1, 7)):
        name, on_tensor, on_model = random_step(rng, model)
        names.append(name)
        view, model = on_tensor(view), on_model(model)
    try:
        check(view, model)
        view.fill_(-1)
        assert base.reshape(-1).tolist() == [-1 if i in set(model.places) else i for i in range(base.numel())]
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {' → '.join(names)}") from error


# -- view and reshape


@pytest.mark.parametrize("shape", [(2, 3, 4), (6, 4), (1, 24), (4, 1, 6), (24,)])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (0, 2, 1), (1, 0, 2)])
def test_view_where_strides_allow_it(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    base, model = fresh(2, 3, 4)
    t, m = base.permute(order), permuted(model, order)
    reshaped = t.reshape(shape)
    assert reshaped.reshape(-1).tolist() == m.places
    # there are strides iff in each new dimension the elements are at equal distances
    wanted = Model(shape, m.places)
    steps = []
    for axis, n in enumerate(shape):
        zero = [0] * len(shape)
        one = [int(a == axis) for a in range(len(shape))]
        steps.append(wanted.at(one) - wanted.at(zero) if n > 1 else 0)
    possible = all(
        p == wanted.places[0] + sum(i * s for i, s in zip(index, steps, strict=True))
        for index, p in zip(indices(shape), wanted.places, strict=True)
    )
    if possible:
        check(t.view(shape), wanted)
        assert reshaped.untyped_storage() == base.untyped_storage()
    else:
        with pytest.raises(RuntimeError, match=r"not compatible with input tensor's size .* Use .reshape"):
            t.view(shape)
        assert reshaped.untyped_storage() != base.untyped_storage()


def test_sizes_that_are_worked_out() -> None:
    t = torch.zeros(4, 6)
    assert t.view(-1).shape == (24,) and t.view(3, -1).shape == (3, 8) and t.reshape((-1, 2, 2)).shape == (6, 2, 2)
    assert torch.zeros(0, 3).view(-1, 3).shape == (0, 3)
    for shape, text in [
        ((5,), r"shape '\[5\]' is invalid for input of size 24"),
        ((-1, 5), r"shape '\[-1, 5\]' is invalid for input of size 24"),
        ((-1, -1), r"only one dimension can be inferred"),
        ((-2, 12), r"invalid shape dimension -2"),
    ]:
        for call in (t.view, t.reshape):
            with pytest.raises(RuntimeError, match=text):
                call(*shape)
    with pytest.raises(RuntimeError, match=r"-1 can be any value and is ambiguous"):
        torch.zeros(0, 3).view(-1, 0)


def test_views_as_other_dtypes() -> None:
    t = torch.tensor([[1.0, -2.0], [0.5, 3.0]])
    bits = t.view(torch.int32)
    assert bits.tolist() == [[0x3F800000, 0xC0000000 - (1 << 32)], [0x3F000000, 0x40400000]]
    assert t.view(torch.uint8).shape == (2, 8) and t.view(torch.uint8).view(torch.float32).tolist() == t.tolist()
    assert t.view(torch.float64).shape == (2, 1)
    bits[0, 0] = 0x40000000
    assert t[0, 0].item() == 2.0
    part = t[1].view(torch.int16)
    assert part.storage_offset() == 4 and part.shape == (4,)
    for wrong in (torch.zeros(2, 3).view, t.t().view, torch.tensor(1.0).view):
        with pytest.raises(RuntimeError, match=r"self.view\(dtype\) from torch.float32 to torch.float64"):
            wrong(torch.float64)


def test_flatten_and_its_kin() -> None:
    t, _ = fresh(2, 3, 4)
    assert t.flatten().shape == (24,) and t.flatten(1).shape == (2, 12) and t.flatten(0, 1).shape == (6, 4)
    assert t.view_as(torch.zeros(6, 4)).shape == t.reshape_as(torch.zeros(6, 4)).shape == (6, 4)
    with pytest.raises(RuntimeError, match=r"start_dim cannot come after end_dim"):
        t.flatten(2, 1)


# -- dimensions


def test_dimensions_in_another_order() -> None:
    t, m = fresh(2, 3, 4)
    check(t.transpose(0, -1), permuted(m, [2, 1, 0]))
    check(t.mT, permuted(m, [0, 2, 1]))
    check(t.T, permuted(m, [2, 1, 0]))
    check(t[0].t(), permuted(selected(m, 0, 0), [1, 0]))
    assert torch.tensor(1).t().shape == () and torch.zeros(3).t().shape == (3,)
    for call, text in [
        (lambda: t.t(), r"t\(\) expects a tensor with <= 2 dimensions, but self is 3D"),
        (lambda: t.permute(0, 1), r"input.dim\(\) = 3 is not equal to len\(dims\) = 2"),
        (lambda: t.permute(0, 0, 1), r"duplicate dims are not allowed"),
        (lambda: torch.zeros(2).mT, r"only supported on matrices"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            call()


def test_expand() -> None:
    t, m = fresh(3, 1)
    check_places = Model.of((2, 3, 4), lambda i: m.at((i[1], 0)))
    view = t.expand(2, -1, 4)
    assert view.shape == (2, 3, 4) and view.stride() == (0, 1, 0)
    assert view.reshape(-1).tolist() == check_places.places
    assert torch.broadcast_shapes((3, 1), (4,), 1) == (3, 4)
    for sizes, text in [
        ((3,), r"number of sizes provided \(1\) must be greater or equal to the number of dimensions"),
        ((4, 1), r"expanded size of the tensor \(4\) must match the existing size \(3\) at non-singleton dimension 0"),
        ((-1, 3, 4), r"must match the existing size"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            t.expand(*sizes)


def test_squeeze_and_unsqueeze() -> None:
    t, _ = fresh(1, 3, 1, 2)
    assert t.squeeze().shape == (3, 2) and t.squeeze(0).shape == (3, 1, 2) and t.squeeze(1).shape == t.shape
    assert t.squeeze((0, 2)).shape == (3, 2) and t.squeeze(-2).shape == (1, 3, 2)
    assert t.unsqueeze(0).shape == (1, 1, 3, 1, 2) and t.unsqueeze(-1).shape == (1, 3, 1, 2, 1)
    with pytest.raises(IndexError, match=r"expected to be in range of \[-4, 3\], but got 4"):
        t.squeeze(4)
    with pytest.raises(IndexError, match=r"expected to be in range of \[-5, 4\], but got 5"):
        t.unsqueeze(5)


# -- parts


def test_split_and_chunk() -> None:
    t = torch.arange(7)
    assert [p.tolist() for p in t.split(3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [p.tolist() for p in t.split([2, 0, 5])] == [[0, 1], [], [2, 3, 4, 5, 6]]
    assert [len(p) for p in t.chunk(3)] == [3, 3, 1] and [len(p) for p in t.chunk(5)] == [2, 2, 2, 1]
    assert [len(p) for p in t.chunk(9)] == [1] * 7
    assert [len(p) for p in torch.zeros(0).chunk(3)] == [0, 0, 0]
    t.chunk(2)[1].fill_(0)
    assert t.tolist() == [0, 1, 2, 3, 0, 0, 0]
    for call, text in [
        (lambda: t.split([1, 2]), r"split_sizes to sum exactly to 7"),
        (lambda: t.split(0), r"split_size can only be 0 if dimension size is 0, but got dimension size of 7"),
        (lambda: t.split(-1), r"split_size be non-negative"),
        (lambda: t.chunk(0), r"chunk expects `chunks` to be greater than 0, got: 0"),
        (lambda: torch.tensor(1).split(1), r"at least a 1-dimensional tensor"),
        (lambda: t.narrow(0, 5, 3), r"start \(5\) \+ length \(3\) exceeds dimension size \(7\)"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            call()
    with pytest.raises(IndexError, match=r"select\(\): index 7 out of range for tensor of size \[7\] at dimension 0"):
        t.select(0, 7)


def test_diagonals_and_windows() -> None:
    t, m = fresh(3, 4)
    for offset in range(-4, 5):
        want = [m.at((i, i + offset)) for i in range(3) if 0 <= i + offset < 4]
        assert t.diagonal(offset).tolist() == want
    t.diagonal().fill_(-1)
    assert [t[i, i].item() for i in range(3)] == [-1] * 3
    u = torch.arange(6)
    assert torch.as_strided(u, (2, 3), (1, 2)).tolist() == [[0, 2, 4], [1, 3, 5]]
    assert u[1:].as_strided((2,), (2,)).tolist() == [1, 3]
    with pytest.raises(RuntimeError, match=r"requiring a storage size of 56 are out of bounds for storage of size 48"):
        u.as_strided((4,), (2,))


# -- the tensor's own shape and memory


def test_data_of_another_tensor() -> None:
    t = torch.zeros(2)
    t.data.fill_(1)
    assert t.tolist() == [1, 1]
    t.data = torch.arange(3)
    assert t.tolist() == [0, 1, 2] and t.dtype is torch.int64


@pytest.mark.parametrize("n", [10, 100_000])  # NumPy's memory, and the core's
def test_storages_and_addresses(n: int) -> None:
    t = torch.arange(n)
    storage = t.untyped_storage()
    assert storage.nbytes() == len(storage) == 8 * n
    assert t[3:].untyped_storage() == storage and t.clone().untyped_storage() != storage
    assert t[3].data_ptr() - t.data_ptr() == 24 == t[3].storage_offset() * t.element_size()
    assert t.data_ptr() == storage.data_ptr() == t.numpy().__array_interface__["data"][0]
    assert torch.zeros(0).data_ptr() == 0
    assert t.pin_memory() is t and t.share_memory_() is t and t.record_stream(None) is None
