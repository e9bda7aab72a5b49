"""Backward passes of several ranks, in simulated time and on streams."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from conftest import OpenWorld
from ranks import failures, on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu.profiler import profile

Tensor = torch.Tensor


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


class Reduced(torch.autograd.Function):
    """Identity forwards, the sum over all ranks backwards: as at the entry of a tensor parallel layer."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        total = grad.contiguous().clone()
        dist.all_reduce(total)
        total.wait()  # other ranks run in the middle of this one's pass
        return total


def test_passes_of_ranks_do_not_mix() -> None:
    """They wait for each other in the middle of passes over different graphs, in different modes."""

    def program(rank: int) -> Any:
        dist.init_process_group()
        x = torch.full((3,), float(rank + 1), requires_grad=True)
        order: list[str] = []
        y = x
        for layer in range(rank + 1):
            y = Reduced.apply(y * 1) if layer == 0 else y * 2
            y.register_hook(lambda g, layer=layer: order.append(f"{layer}"))
        before = torch.is_grad_enabled()
        y.sum().backward()
        assert torch.is_grad_enabled() is before
        return x.grad.tolist(), order

    answers = on_ranks(4, program)
    for rank, (grad, order) in enumerate(answers):
        assert grad == [sum(2.0**r for r in range(4))] * 3
        assert order == [str(layer) for layer in range(rank, -1, -1)]


def test_a_rank_that_fails_in_its_pass_leaves_the_others_alone() -> None:
    """The ranks that wait for it in the middle of theirs are unwound, each with its own mode and stream."""

    def program(rank: int) -> None:
        dist.init_process_group()
        x = torch.ones(3, requires_grad=True)
        y = Reduced.apply(x * 2)
        if rank == 1:
            y.register_hook(lambda g: 1 / 0)
        with torch.cuda.stream(torch.cuda.Stream()):
            y.sum().backward()

    errors = failures(3, program)
    assert isinstance(errors[1], ZeroDivisionError)
    assert torch.is_grad_enabled() and torch.cuda.current_stream() == torch.cuda.default_stream()
    test_passes_of_ranks_do_not_mix()


def test_modes_belong_to_ranks() -> None:
    def program(rank: int) -> bool:
        dist.init_process_group()
        x = torch.ones(1, requires_grad=True)
        with torch.no_grad() if rank else torch.enable_grad():
            dist.barrier()
            return (x * 2).requires_grad

    assert on_ranks(3, program) == [True, False, False]


def test_collectives_take_tensors_that_require_gradients_and_are_not_recorded() -> None:
    def program(rank: int) -> Any:
        dist.init_process_group()
        x = torch.full((2,), rank + 1.0, requires_grad=True)
        y = x * 2
        dist.all_reduce(y)
        version = y._version
        dist.all_reduce(x)
        gathered = torch.zeros(4)
        dist.all_gather_into_tensor(gathered, x)
        y.sum().backward()
        return y.tolist(), version, x.tolist(), gathered.tolist(), gathered.requires_grad, x.grad.tolist()

    assert on_ranks(2, program) == [([6, 6], 0, [3, 3], [3] * 4, False, [2, 2])] * 2


def elapsed(run: Any) -> float:
    """The simulated milliseconds that the device is at it."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end)


def kernels(run: Any) -> Counter[str]:
    """How many kernels of each name the device runs."""
    with profile() as profiled:
        run()
    return Counter(e.name for e in profiled.events() if e.device_type == "CUDA")


def test_a_backward_pass_takes_the_time_of_its_operations() -> None:
    """A product's pass is two products, and none for what needs no gradient."""
    n = 1024
    x, w = torch.ones(n, n, requires_grad=True), torch.ones(n, n, requires_grad=True)
    constant, seed = torch.ones(n, n), torch.ones(n, n)
    product = elapsed(lambda: (constant @ seed, constant @ seed)) - elapsed(lambda: constant @ seed)
    both, one = x @ w, x @ constant
    within = product / 2  # launches take time too
    assert elapsed(lambda: torch.autograd.grad(both, [x, w], seed)) == pytest.approx(2 * product, abs=within)
    assert elapsed(lambda: torch.autograd.grad(one, x, seed)) == pytest.approx(product, abs=within)


def test_views_and_sums_cost_no_kernel_backwards() -> None:
    a, b = torch.ones(2, 3, requires_grad=True), torch.ones(3, 2, requires_grad=True)
    y = ((a.t().contiguous().t() @ b) + 1).reshape(-1).sum()
    seed = torch.ones(())
    assert kernels(lambda: y.backward(seed)) == {"matmul": 2}


def test_the_first_gradient_of_a_leaf_is_not_copied_unless_somebody_else_has_it() -> None:
    x, w, seed = torch.ones(5, requires_grad=True), torch.ones(5, requires_grad=True), torch.ones(5)
    y, z = x * 2, x * 2
    assert kernels(lambda: y.backward(seed)) == {"mul": 1}
    assert kernels(lambda: z.backward(seed)) == {"mul": 1, "add": 1}
    x.grad = None
    v = x + w
    assert kernels(lambda: v.backward(seed)) == {"clone": 2}, "both would be the seed"
    x.grad = w.grad = None
    u = (x + w) * 2
    assert kernels(lambda: u.backward(seed)) == {"mul": 1, "clone": 1}


def test_nodes_run_on_the_streams_that_they_were_recorded_on() -> None:
    side = torch.cuda.Stream()
    x = torch.ones(4, requires_grad=True)
    seen: list[tuple[str, Any]] = []
    y = x * 2
    y.register_hook(lambda g: seen.append(("y", torch.cuda.current_stream() == side)))
    main = torch.cuda.current_stream()
    side.wait_stream(main)
    with torch.cuda.stream(side):
        z = y * 3
        z.register_hook(lambda g: seen.append(("z", torch.cuda.current_stream() == side)))
    with pytest.raises(ZeroDivisionError), torch.cuda.stream(side):
        w = x * 2
        w.register_hook(lambda g: 1 / 0)
        w.sum().backward()
    main.wait_stream(side)
    z.sum().backward()
    assert seen == [("z", True), ("y", False)]
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    assert x.grad.tolist() == [6] * 4


def test_streams_of_a_pass_wait_for_each_other() -> None:
    """A gradient is added up no earlier than a long product on another stream that it comes from."""
    n = 1024
    side = torch.cuda.Stream()
    x, w = torch.ones(n, n, requires_grad=True), torch.ones(n, n)
    product = elapsed(lambda: w @ w)
    with torch.cuda.stream(side):
        y = x @ w
    torch.cuda.synchronize()
    assert elapsed(lambda: y.backward(w)) >= product
