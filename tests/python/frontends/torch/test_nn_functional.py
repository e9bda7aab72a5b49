"""torch.distributed.nn.functional: values and gradients, element by element, against sums over ranks."""

import newer
import pytest
import torch
import torch.distributed as dist
from torch.distributed.nn import functional

import torchemu

SIZES = (2, 3, 4)
pytestmark = newer.names_of_before

privately = pytest.mark.filterwarnings(r"ignore:`torch\.distributed\._\w+_base`:FutureWarning")
of_ranks = pytest.mark.parametrize("size", SIZES)


def given(rank, salt=0, shape=(2, 3)):
    """Returns what a rank brings: no two elements are the same."""
    count = torch.Size(shape).numel()
    return torch.arange(1.0, count + 1, dtype=torch.float64).reshape(shape) * (rank + 1) + 100 * salt


def weight(rank, place=0, shape=(2, 3)):
    """The gradient of a result: a rank's loss is the sum of its results' elements, times these."""
    return given(rank, place, shape) + 7


def backward(results, rank):
    """Runs the backward pass of the loss."""
    sum((out * weight(rank, place, out.shape)).sum() for place, out in enumerate(results)).backward()


def on_ranks(size, check):
    """Runs check(rank) on ranks of gloo."""

    @torchemu.distributed(world_size=size, torch="real")
    def run():
        dist.init_process_group("gloo")
        check(dist.get_rank())

    run()


def summed(size, function):
    return sum(function(rank) for rank in range(size))


def leaf(*arguments):
    return given(*arguments).requires_grad_()


@of_ranks
def test_broadcast_and_reduce(size):
    def check(rank):
        for root in range(size):
            x = leaf(rank)
            out = functional.broadcast(x, root)
            backward([out], rank)
            assert torch.equal(out, given(root))
            assert torch.equal(x.grad, summed(size, weight) if rank == root else torch.zeros(2, 3))
            x = leaf(rank)
            out = functional.reduce(x, root)
            backward([out], rank)
            if rank == root:
                assert torch.equal(out, summed(size, given))
            assert torch.equal(x.grad, weight(root))

    on_ranks(size, check)


@of_ranks
def test_gather_and_scatter(size):
    def check(rank):
        for root in range(size):
            x = leaf(rank)
            outs = functional.gather(x, root)
            backward(outs, rank)
            for source, out in enumerate(outs):
                assert torch.equal(out, given(source) if rank == root else torch.zeros(2, 3))
            assert torch.equal(x.grad, weight(root, rank))
            parts = [leaf(rank, to) for to in range(size)]
            out = functional.scatter(parts, root)
            backward([out], rank)
            assert torch.equal(out, given(root, rank))
            for to, part in enumerate(parts):
                assert torch.equal(part.grad, weight(to) if rank == root else torch.zeros(2, 3))

    on_ranks(size, check)


@of_ranks
def test_gradients_that_are_one_element_in_memory(size):
    """The gradient of a sum is expanded; gloo itself reads its memory past the end in a scatter."""

    def check(rank):
        for root in range(size):
            x = leaf(rank)
            torch.stack(functional.gather(x, root)).sum().backward()
            assert torch.equal(x.grad, torch.ones(2, 3))
            x = leaf(rank)
            functional.gather(x.t(), root)[0].t().sum().backward()
            assert torch.equal(x.grad, torch.full((2, 3), float(rank == 0)))

    on_ranks(size, check)


@of_ranks
def test_reductions_for_all(size):
    def check(rank):
        x = leaf(rank)
        out = functional.all_reduce(x)
        backward([out], rank)
        assert torch.equal(out, summed(size, given))
        assert torch.equal(x.grad, summed(size, weight))
        parts = [leaf(rank, to) for to in range(size)]
        out = functional.reduce_scatter(torch.zeros(2, 3, dtype=torch.float64), parts)
        backward([out], rank)
        assert torch.equal(out, summed(size, lambda r: given(r, rank)))
        for to, part in enumerate(parts):
            assert torch.equal(part.grad, weight(to))

    on_ranks(size, check)


@privately
@of_ranks
def test_all_gather(size):
    def check(rank):
        x = leaf(rank)
        outs = functional.all_gather(x)
        backward(outs, rank)
        for source, out in enumerate(outs):
            assert torch.equal(out, given(source))
        assert torch.equal(x.grad, summed(size, lambda r: weight(r, rank)))
        x = leaf(rank)
        out = functional._all_gather_base(torch.zeros(2 * size, 3, dtype=torch.float64), x)
        assert torch.equal(out, torch.cat([given(r) for r in range(size)]))
        with pytest.raises(RuntimeError, match="Backend not supported!"):  # PyTorch has its gradients with NCCL only
            out.sum().backward()

    on_ranks(size, check)


@of_ranks
def test_all_to_all(size):
    def check(rank):
        parts = [leaf(rank, to) for to in range(size)]
        outs = functional.all_to_all([torch.zeros(2, 3, dtype=torch.float64) for _ in parts], parts)
        backward(outs, rank)
        for source, out in enumerate(outs):
            assert torch.equal(out, given(source, rank))
        for to, part in enumerate(parts):
            assert torch.equal(part.grad, weight(to, rank))

    on_ranks(size, check)


@of_ranks
def test_all_to_all_single_of_uneven_parts(size):
    """Rank r gives rank s the rows of number (r + s) % size + 1, so both sides have the same splits."""

    def rows(rank):
        return [(rank + to) % size + 1 for to in range(size)]

    def check(rank):
        total = sum(rows(rank))
        x = leaf(rank, 0, (total, 2))
        out = torch.zeros(total, 2, dtype=torch.float64)
        out = functional.all_to_all_single(out, x, rows(rank), rows(rank))
        backward([out], rank)
        theirs = [given(r, 0, (total, 2)).split(rows(r))[rank] for r in range(size)]
        assert torch.equal(out, torch.cat(theirs))
        grads = [weight(r, 0, (total, 2)).split(rows(r))[rank] for r in range(size)]
        assert torch.equal(x.grad, torch.cat(grads))

    on_ranks(size, check)


@privately
@of_ranks
def test_all_gather_base_of_nccl_has_gradients(size):
    @torchemu.distributed(world_size=size, torch="real")
    def run():
        dist.init_process_group("nccl")
        rank = dist.get_rank()
        x = given(rank).cuda().requires_grad_()
        out = functional._all_gather_base(torch.zeros(2 * size, 3, dtype=torch.float64, device="cuda"), x)
        shape = (2 * size, 3)
        (out * weight(rank, 0, shape).cuda()).sum().backward()
        expected = summed(size, lambda r: weight(r, 0, shape)).chunk(size)[rank]
        assert torch.equal(x.grad.cpu(), expected)

    run()
