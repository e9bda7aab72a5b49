"""Hosts run ahead of collectives: rank 0 computes with the result of one that rank 1 joins only when it is told to,
which rank 0 does after it has issued everything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ahead import LIMIT, MINE, SUM, THEIRS, Program, X, ahead, arrays, same, tensor, told
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
from torchemu import nn
from torchemu.frontends.numpy._tensor import deferral
from torchemu.runtime.waiting import host_time, reach

dist = torch.distributed


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> torch.World:
    monkeypatch.chdir(tmp_path)  # where the store is
    return open_world()


def in_place(t: Any, x: Any) -> Any:
    t.mul_(2).add_(x)
    t[0] = 7
    t[:, 1] -= 1
    return t


def in_place_of_numpy() -> np.ndarray:
    t = SUM * 2 + X
    t[0] = 7
    t[:, 1] -= 1
    return t


def through_views(t: Any, x: Any) -> Any:
    row, turned = t[1], t.t()
    row.add_(1)
    turned[0].zero_()
    return row, turned, t.reshape(-1)[2:5], x.view(3, 2) @ t


def through_views_of_numpy() -> list[np.ndarray]:
    t = SUM.copy()
    t[1] += 1
    t[:, 0] = 0
    return [t[1], t.T, t.reshape(-1)[2:5], X.reshape(3, 2) @ t]


def reads_before_it_writes(t: Any, x: Any) -> Any:
    y = t * x
    x.add_(100)  # later than the product, which is computed later
    z = t * x
    x[0] = 0
    return y, z, x


def writes_a_known_one(t: Any, x: Any) -> Any:
    x.copy_(t)
    y = x + 1
    x.fill_(3)
    return y, x, x + 1


def chain(t: Any, x: Any) -> Any:
    for _ in range(50):
        t = t + x
    return t


PROGRAMS: dict[str, tuple[Program, Callable[[], Any]]] = {
    "pointwise": (lambda t, x: [t * 2, x - t, 1 / t, t > 20], lambda: [SUM * 2, X - SUM, 1 / SUM, SUM > 20]),
    "broadcast": (lambda t, x: t[:, None] + x, lambda: SUM[:, None] + X),
    "reductions": (
        lambda t, x: [t.sum(), t.mean(1), t.max(0).values, t.argmax(), t.std()],
        lambda: [SUM.sum(), SUM.mean(1), SUM.max(0), SUM.argmax(), SUM.std(ddof=1)],
    ),
    "products": (lambda t, x: [t @ x.t(), torch.einsum("ij,kj->ik", x, t)], lambda: [SUM @ X.T, X @ SUM.T]),
    "joined": (
        lambda t, x: [torch.cat([t, x]), torch.stack([x, t])],
        lambda: [np.concatenate([SUM, X]), np.stack([X, SUM])],
    ),
    "sorted": (lambda t, x: list(t.sort(descending=True)), lambda: [-np.sort(-SUM), np.argsort(-SUM)]),
    "gathered": (
        lambda t, x: [t[torch.tensor([1, 0, 1])], t.index_select(1, torch.tensor([2]))],
        lambda: [SUM[[1, 0, 1]], SUM[:, [2]]],
    ),
    "where": (lambda t, x: torch.where(t > 30, t, x), lambda: np.where(SUM > 30, SUM, X)),
    "dtypes": (
        lambda t, x: [t.to(torch.float64), t.int(), t.bool()],
        lambda: [SUM.astype(np.float64), SUM.astype(np.int32), SUM != 0],
    ),
    "cloned": (lambda t, x: [t.clone(), t.t().contiguous(), t.detach()], lambda: [SUM, SUM.T, SUM]),
    "empty": (lambda t, x: [t[:0] * 2, t[:0].sum(), t[1:1] @ x.t()], lambda: [SUM[:0], np.float32(0), SUM[1:1] @ X.T]),
    "in place": (in_place, in_place_of_numpy),
    "views": (through_views, through_views_of_numpy),
    "reads before writes": (
        reads_before_it_writes,
        lambda: [SUM * X, SUM * (X + 100), np.stack([0 * X[0], X[1] + 100])],
    ),
    "writes a known one": (writes_a_known_one, lambda: [SUM + 1, np.full_like(X, 3), np.full_like(X, 4)]),
    "chain": (chain, lambda: SUM + 50 * X),
    "out=": (lambda t, x: [torch.add(t, x, out=x), x], lambda: [SUM + X, SUM + X]),
    "not blocking": (lambda t, x: t.to("cpu", non_blocking=True), lambda: SUM),
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_results_are_those_of_numpy(case: str) -> None:
    program, oracle = PROGRAMS[case]
    same(ahead(program), oracle())


# -- with what ranks do together


def exchange(rank: int) -> Any:
    """Collectives and messages, some in place, of what is put off; rank 1 joins when it is told to."""
    store = told()
    if rank == 1:
        store.wait(["go"], LIMIT)
    t = tensor((MINE, THEIRS)[rank])
    dist.all_reduce(t)
    if rank == 0:  # a copy that no rank but this one has put off
        y = t * 2
        t.sub_(1)
    else:
        y = t.clone()
    dist.all_reduce(y)
    t.add_(y)
    gathered = torch.zeros(2, 2, 3)
    dist.all_gather_into_tensor(gathered, t)
    message = torch.zeros(2, 3)
    works = dist.batch_isend_irecv([
        dist.P2POp(dist.isend, gathered[0] + rank, 1 - rank),
        dist.P2POp(dist.irecv, message, 1 - rank),
    ])  # fmt: skip
    for work in works:
        work.wait()
    message.mul_(10)
    w = dist.all_reduce(message, async_op=True)
    w.wait()
    final = message.sum(0)
    if rank == 0:
        store.set("go", b"")
    return arrays([y, t, gathered, message, final])


def exchanged() -> list[Any]:
    y = 3 * SUM
    t = [SUM - 1 + y, SUM + y]
    message = 10 * (t[0] + 1) + 10 * t[0]
    return [[y, mine, np.stack(t), message, message.sum(0)] for mine in t]


@pytest.mark.parametrize("schedule", [("fifo", 0)] + [(s, seed) for s in ("random", "pct") for seed in range(4)])
def test_collectives_and_messages_take_what_is_put_off(world: torch.World, schedule: tuple[str, int]) -> None:
    world.schedule, world.seed = schedule
    same(on_ranks(2, exchange), exchanged())


def test_a_known_tensor_can_be_sent_while_a_computation_reads_it() -> None:
    def rank(r: int) -> Any:
        dist.init_process_group("nccl")
        t, x = tensor((MINE, THEIRS)[r]), tensor(X)
        if r == 1:
            dist.recv(x.zero_(), 0)
            got = x.numpy().copy()
            dist.all_reduce(t)
            return got
        dist.all_reduce(t)
        y = t * x
        with torch.cuda.stream(torch.cuda.Stream()):
            dist.send(x, 1)
        return y.numpy().copy()

    same(on_ranks(2, rank), [SUM * X, X])


def test_a_chain_of_collectives_over_three_groups() -> None:
    """Ranks 0 and 1 are ahead of rank 2 by three collectives, each of the result of another."""

    def rank(r: int) -> Any:
        store = told()
        left, right = dist.new_group([0, 1]), dist.new_group([1, 2])
        if r == 2:
            store.wait(["go0", "go1"], LIMIT)
        t = tensor(np.full(3, r + 1.0, np.float32))
        dist.all_reduce(t)  # 6
        t = t * 2 + r  # 12, 13, 14
        if r != 0:
            dist.all_reduce(t, group=right)  # 12, 27, 27
        t = t - 1
        if r != 2:
            dist.all_reduce(t, group=left)  # 37, 37, 26
        t = t / 2
        if r < 2:
            store.set(f"go{r}", b"")
        return t.tolist()

    assert on_ranks(3, rank) == [[18.5] * 3, [18.5] * 3, [13.0] * 3]


# -- with gradients and random numbers


def test_gradients_go_through_what_is_put_off() -> None:
    def program(t: Any, x: Any) -> Any:
        w = x.clone().requires_grad_()
        h = (t * w).relu()
        h = h * h
        h[0] = 0
        h.sum().backward()
        step = torch.optim.SGD([w], lr=0.5)
        before = w.grad.clone()
        step.step()
        step.zero_grad()
        (w * t).sum().backward()
        return before, w.grad, w

    gradient = 2 * np.maximum(SUM * X, 0) * SUM
    gradient[0] = 0
    same(ahead(program), [gradient, SUM, X - 0.5 * gradient])


def test_a_changed_operand_is_noticed() -> None:
    def program(t: Any, x: Any) -> Any:
        w = x.clone().requires_grad_()
        y = w * t
        t.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
        return t

    same(ahead(program), SUM + 1)


def test_layers_and_adam_of_numpy() -> None:
    """A layer whose weight is broadcast, trained for two steps with gradients that are reduced; rank 1 comes late."""

    def rank(r: int) -> Any:
        store = told()
        if r == 1:
            store.wait(["go"], LIMIT)
        torch.manual_seed(r)
        layer = nn.Linear(3, 2)
        for p in layer.parameters():
            dist.broadcast(p.data, 0)
        first = layer.weight.detach().clone()
        adam = torch.optim.Adam(layer.parameters(), lr=0.1)
        for _ in range(2):
            adam.zero_grad()
            layer(tensor((MINE, THEIRS)[r] / 10)).square().mean().backward()
            for p in layer.parameters():
                dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
            adam.step()
        if r == 0:
            store.set("go", b"")
        return arrays([first, *layer.parameters()])

    mine, theirs = on_ranks(2, rank)
    same(mine, theirs)
    together = on_ranks(1, lambda _: trained(mine[0]))[0]
    np.testing.assert_allclose(mine[1], together[0], rtol=1e-5)


def trained(weight: np.ndarray) -> Any:
    """The same on both halves at once, with nothing put off; the bias begins as rank 0's does."""
    torch.manual_seed(0)
    layer = nn.Linear(3, 2)
    np.testing.assert_array_equal(layer.weight.detach().numpy(), weight)
    adam = torch.optim.Adam(layer.parameters(), lr=0.1)
    for _ in range(2):
        adam.zero_grad()
        layer(tensor(np.concatenate([MINE, THEIRS]) / 10)).square().mean().backward()
        adam.step()
    return arrays(list(layer.parameters()))


def like_earlier_ones(t: Any, x: Any, np_or_torch: Any) -> list[Any]:
    """Calls some of which are alike but for their numbers, and some of which are so almost."""
    found = []
    for k in (0.5, -2.0, 3):
        found += [t * k + x * k, x / (t + k), t.sum(0) * k, t.sum(1) * k, t.sum(), t[:1].sum(0), t.T[:2] + k, t.T + t.T]
        found += [t @ x.T, t[:, :2] @ x.T[:2], t[:, 1:] @ x.T[1:], np_or_torch.where(x > k, x, x * k) - t]
        t = t - x * k
        t[:1] *= k
        t += x
    return found


@pytest.mark.parametrize("known", [3, deferral.MOST_CALLS])
def test_calls_like_earlier_ones_give_their_own_results(known: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferral, "MOST_CALLS", known)
    mine = ahead(lambda t, x: like_earlier_ones(t.clone(), x, torch))
    exact = like_earlier_ones(SUM.astype(np.float64), X.astype(np.float64), np)
    assert len(mine) == len(exact)
    for found, wanted in zip(mine, exact, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)


def test_what_is_wrong_with_a_call_like_earlier_ones_is_found_at_once() -> None:
    def program(t: Any, x: Any) -> Any:
        for _ in range(3):
            t = t + x
            with pytest.raises(RuntimeError, match=r"size of tensor a \(3\) must match"):
                t + x[:, :2]
            t.mul_(x[:1])
            with pytest.raises(RuntimeError, match="broadcast shape"):
                t.mul_(torch.ones(2, 2, 3))
            with pytest.raises(RuntimeError, match="cannot be multiplied"):
                t @ x
        return t

    want = SUM
    for _ in range(3):
        want = (want + X) * X[:1]
    same(ahead(program), want)


@pytest.mark.parametrize("as_tensor", [False, True])
def test_a_step_that_is_put_off_has_the_learning_rate_of_its_time(as_tensor: bool) -> None:
    rates = [0.5, 0.25, 2.0, 1024.0]

    def program(t: Any, x: Any) -> Any:
        p = nn.Parameter(tensor(X))
        p.grad = t
        lr = torch.tensor(rates[0], device="cpu") if as_tensor else rates[0]
        sgd = torch.optim.SGD([p], lr=lr)
        for after in rates[1:]:
            sgd.step()
            if as_tensor:
                lr.fill_(after)
            else:
                sgd.param_groups[0]["lr"] = after
        return p

    same(ahead(program), X - sum(rates[:-1]) * SUM)  # all exact


def test_random_numbers_come_in_the_order_of_the_program() -> None:
    def program(t: Any, x: Any) -> Any:
        torch.manual_seed(7)
        dropped = nn.functional.dropout(t, 0.5)
        a = torch.rand(3)
        t.uniform_()
        return dropped, a, t, torch.rand(3), nn.functional.dropout(t, 0.25)

    def at_once() -> Any:
        return arrays(program(tensor(SUM), None))

    same(ahead(program), at_once())


# -- with time


def spans(late: bool) -> list[float]:
    """Milliseconds of rank 0's device: from the collective's end to that of a product, and to that of one after it."""
    n = 512

    def rank(r: int) -> Any:
        store = told()
        if r == 1 and late:
            store.wait(["go"], LIMIT)
        t = torch.ones(n, n, device="ahbm")
        if r == 1:
            dist.all_reduce(t)
            return []
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
        dist.all_reduce(t)
        marks[0].record()
        for mark in marks[1:]:
            t = t @ t
            mark.record()
        if late:
            store.set("go", b"")
        torch.cuda.synchronize()
        return [marks[0].elapsed_time(mark) for mark in marks[1:]]

    return on_ranks(2, rank)[0]


def test_it_costs_what_it_costs_at_once() -> None:
    late, at_once = spans(late=True), spans(late=False)
    np.testing.assert_allclose(late, at_once, rtol=1e-9)
    assert late[1] == pytest.approx(2 * late[0], rel=1e-6) and late[0] > 0


@pytest.mark.parametrize("read", ["operand", "result", "view"])
def test_a_read_waits_for_the_end_of_the_collective(read: str) -> None:
    """Not only until what has been put off is computed, which is at once when rank 1 has joined."""

    def program(rank: int) -> bool:
        store = told()
        t = torch.ones(1 << 20, device="ahbm")
        if rank == 1:
            store.wait(["go"], LIMIT)
        work = dist.all_reduce(t, async_op=True)
        work.wait()
        if rank == 1:
            return True
        y, view = t[:4] * 2, t[5:7]
        if read == "view":
            view.add_(1)
        store.set("go", b"")
        {"operand": t, "result": y, "view": view}[read][0].item()
        now = host_time()
        return work.is_completed() and host_time() == now

    assert on_ranks(2, program) == [True, True]


def test_the_host_takes_no_longer() -> None:
    """Rank 1 comes after a second: rank 0's host does not know."""

    def rank(r: int) -> Any:
        told()
        t = tensor((MINE, THEIRS)[r])
        if r == 1:
            reach(10**12)
        dist.all_reduce(t)
        y = t + 1
        issued = host_time()
        return issued, arrays(y)

    (issued, mine), (_, theirs) = on_ranks(2, rank)
    same([mine, theirs], [SUM + 1] * 2)
    assert issued < 10**8
