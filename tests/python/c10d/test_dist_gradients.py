"""Gradients through collectives: each is a linear map, and NumPy knows its transpose.

Every rank has its own whole numbers for what it gives and for the gradient of what it gets, so that sums are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR, on_ranks

import torchemu as torch
import torchemu.distributed as dist
import torchemu.distributed._functional_collectives as funcol
import torchemu.distributed.nn.functional as dist_nn

SIZES = [1, 2, 3, 8]


def numbers(rank: int, *shape: int, of: int = 0) -> np.ndarray:
    """Small whole numbers, other ones on each rank."""
    return np.random.default_rng([rank, of]).integers(-3, 4, shape).astype(np.float32)


def leaf(values: np.ndarray) -> torch.Tensor:
    """A tensor that wants its gradient."""
    return torch.tensor(values, requires_grad=True)


def on_group(n: int, fn: Callable[[int], Any]) -> None:
    """fn on the ranks of a default group."""

    def program(rank: int) -> None:
        dist.init_process_group("nccl")
        fn(rank)

    on_ranks(n, program)


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world(SIXTY_FOUR)


def check(out: torch.Tensor, want: np.ndarray, given: torch.Tensor, grad: np.ndarray, back: np.ndarray) -> None:
    """Fails unless out is what is wanted, and going backward from grad gives what was given the gradient back."""
    np.testing.assert_array_equal(out.detach().numpy(), want)
    out.backward(torch.tensor(grad))
    assert given.grad is not None
    np.testing.assert_array_equal(given.grad.numpy(), back)


@pytest.mark.parametrize("n", SIZES)
def test_reductions(n: int) -> None:
    given, grads = ([numbers(r, 4, 3, of=k) for r in range(n)] for k in (0, 1))
    total, back, root = np.sum(given, axis=0), np.sum(grads, axis=0), n - 1

    def program(rank: int) -> None:
        for reduce in (dist_nn.all_reduce, lambda t: funcol.all_reduce(t, "sum", "0")):
            x = leaf(given[rank])
            check(reduce(x), total, x, grads[rank], back)
        x = leaf(given[rank])
        np.testing.assert_array_equal(x.detach().numpy(), given[rank])
        out = dist_nn.reduce(x, root)
        check(out, total if rank == root else given[rank], x, grads[rank], grads[root])
        x = leaf(given[rank])
        out = dist_nn.all_reduce(x * 2, dist.ReduceOp.AVG)
        out.backward(torch.tensor(grads[rank]))
        np.testing.assert_allclose(x.grad.numpy(), 2 * back / n, rtol=1e-6)  # type: ignore[union-attr]

    on_group(n, program)


@pytest.mark.parametrize("n", SIZES)
def test_parts_of_reductions(n: int) -> None:
    given = [numbers(r, 2 * n, 3 * n) for r in range(n)]
    grads = [numbers(r, 2, 3 * n, of=1) for r in range(n)]
    wide = [numbers(r, 2 * n, 3, of=2) for r in range(n)]
    total = np.sum(given, axis=0)

    def program(rank: int) -> None:
        mine = slice(2 * rank, 2 * rank + 2)
        for scatter in (funcol.reduce_scatter_tensor, funcol.reduce_scatter_tensor_autograd):
            x = leaf(given[rank])
            check(scatter(x, "sum", 0, "0"), total[mine], x, grads[rank], np.concatenate(grads))
        x = leaf(given[rank])
        columns = total[:, 3 * rank : 3 * rank + 3]
        check(funcol.reduce_scatter_tensor(x, "sum", 1, "0"), columns, x, wide[rank], np.concatenate(wide, axis=1))
        x = leaf(given[rank])
        out = dist_nn.reduce_scatter(torch.empty(2, 3 * n), list((x * 1).chunk(n)))
        check(out, total[mine], x, grads[rank], np.concatenate(grads))

    on_group(n, program)


@pytest.mark.parametrize("n", SIZES)
def test_gathers(n: int) -> None:
    given = [numbers(r, 2, 3) for r in range(n)]
    grads = [numbers(r, 2 * n, 3, of=1) for r in range(n)]
    wide = [numbers(r, 2, 3 * n, of=2) for r in range(n)]
    together = np.concatenate(given)

    def program(rank: int) -> None:
        mine = slice(2 * rank, 2 * rank + 2)
        back = np.sum(grads, axis=0)[mine]
        for gather in (funcol.all_gather_tensor, funcol.all_gather_tensor_autograd):
            x = leaf(given[rank])
            check(gather(x, 0, "0"), together, x, grads[rank], back)
        x = leaf(given[rank])
        columns = np.sum(wide, axis=0)[:, 3 * rank : 3 * rank + 3]
        check(funcol.all_gather_tensor(x, 1, "0"), np.concatenate(given, axis=1), x, wide[rank], columns)
        x = leaf(given[rank])
        check(dist_nn._all_gather_base(torch.empty(2 * n, 3), x), together, x, grads[rank], back)
        x = leaf(given[rank])
        check(torch.cat(dist_nn.all_gather(x)), together, x, grads[rank], back)

    on_group(n, program)


@pytest.mark.parametrize("n", SIZES)
def test_with_a_root(n: int) -> None:
    given, grads = ([numbers(r, n, 3, of=k) for r in range(n)] for k in (0, 1))
    root = n // 2

    def program(rank: int) -> None:
        nothing = np.zeros((n, 3), np.float32)
        total = np.sum(grads, axis=0)
        for broadcast in (lambda t: dist_nn.broadcast(t, root), lambda t: funcol.broadcast(t, root, "0")):
            x = leaf(given[rank])
            check(broadcast(x), given[root], x, grads[rank], total if rank == root else nothing)
        x = leaf(given[rank])
        out = torch.cat(dist_nn.gather(x[:1], root))
        want = np.stack([g[0] for g in given]) if rank == root else nothing
        back = nothing.copy()
        back[0] = grads[root][rank]
        check(out, want, x, grads[rank], back)
        x = leaf(given[rank])
        back = np.stack([g[0] for g in grads]) if rank == root else nothing
        check(dist_nn.scatter(list((x * 1).unbind(0)), root), given[root][rank], x, grads[rank][0], back)

    on_group(n, program)


@pytest.mark.parametrize("n", SIZES)
def test_exchanges(n: int) -> None:
    given, grads = ([numbers(r, n, 3, of=k) for r in range(n)] for k in (0, 1))
    counts = np.random.default_rng(n).integers(0, 3, (n, n))

    def program(rank: int) -> None:
        want, back = (np.stack([each[rank] for each in all_]) for all_ in (given, grads))
        for exchange in (
            lambda t: funcol.all_to_all_single(t, None, None, "0"),
            lambda t: funcol.all_to_all_single_autograd(t, [1] * n, [1] * n, "0"),
            lambda t: dist_nn.all_to_all_single(torch.empty(n, 3), t),
            lambda t: torch.stack(dist_nn.all_to_all([torch.empty(3) for _ in range(n)], list((t * 1).unbind(0)))),
        ):
            x = leaf(given[rank])
            check(exchange(x), want, x, grads[rank], back)

    def uneven(rank: int) -> None:
        taken, sent = counts[:, rank].tolist(), counts[rank].tolist()
        x = leaf(np.arange(sum(sent), dtype=np.float32)[:, None] + 100 * rank)
        out = funcol.all_to_all_single(x, taken, sent, "0")
        out.backward(out.detach() * 2)  # what came here goes back doubled
        assert x.grad is not None
        np.testing.assert_array_equal(x.grad.numpy(), 2 * x.detach().numpy())

    on_group(n, lambda rank: (program(rank), uneven(rank)))


def test_a_model_cut_over_ranks_has_the_whole_ones_gradients() -> None:
    """A linear layer whose inputs are cut: the sum over ranks is the whole product, and so are the gradients."""
    n = 4
    weight, x, target = numbers(0, 8, 5, of=7), numbers(1, 6, 8, of=7), numbers(2, 6, 5, of=7)
    error = x @ weight - target

    def program(rank: int) -> None:
        mine = slice(2 * rank, 2 * rank + 2)
        w = leaf(weight[mine])
        out = funcol.all_reduce(torch.tensor(x[:, mine]) @ w, "sum", "0")
        loss = ((out - torch.tensor(target)) ** 2).sum()
        assert loss.item() == (error**2).sum()
        (loss / n).backward()  # the transpose of the sum adds up what all ranks' losses give
        np.testing.assert_array_equal(w.grad.numpy(), 2 * (x[:, mine].T @ error))  # type: ignore[union-attr]

    on_group(n, program)


def test_second_derivatives() -> None:
    def program(rank: int) -> None:
        x = torch.tensor([2.0 + rank], requires_grad=True)
        y = dist_nn.all_reduce(x**3)
        (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        assert first.tolist() == [2 * 3 * (2 + rank) ** 2]
        first.sum().backward()
        assert x.grad is not None and x.grad.tolist() == [2 * 6 * (2 + rank)]

    on_group(2, program)


def test_what_wants_no_gradient_has_none() -> None:
    def program(rank: int) -> None:
        x = torch.ones(2)
        assert not dist_nn.all_reduce(x).requires_grad
        assert not funcol.all_gather_tensor(x, 0, "0").requires_grad
        y = torch.ones(2, requires_grad=True)
        with torch.no_grad():
            assert not funcol.all_reduce(y, "sum", "0").requires_grad
        assert funcol.all_reduce(y, "sum", "0").requires_grad

    on_group(2, program)


def test_backward_of_other_reductions() -> None:
    def program(rank: int) -> None:
        for call, name in (
            (lambda t: funcol.all_reduce(t, "max", "0"), "all_reduce"),
            (lambda t: funcol.reduce_scatter_tensor(t, "avg", 0, "0"), "reduce_scatter_tensor"),
        ):
            out = call(torch.ones(2, requires_grad=True))
            with pytest.raises(RuntimeError, match=f"{name} backward only supports 'sum' reduction, got"):
                out.sum().backward()

    on_group(2, program)
