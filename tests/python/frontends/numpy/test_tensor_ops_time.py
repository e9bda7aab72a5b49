"""Tests of what operations wait for, what they cost their device, and when a host sees their results."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.errors import MismatchError
from torchemu.frontends.numpy._tensor import HOST_READS, dispatch
from torchemu.frontends.numpy._tensor.core import METHODS
from torchemu.runtime.waiting import host_time

pytestmark = pytest.mark.filterwarnings("ignore::torchemu.runtime.outstanding.UnwaitedWarning")  # on purpose

dist = torch.distributed

TOPOLOGY = """
name: handy
system: {sips: {count: 2}}
sip: {cube_mesh: {w: 2, h: 2}}
cube: {hbm: {bandwidth: 250, latency: 100}, pe_layout: {pe_per_corner: 1, corners: [nw]}}
pe: {matrix: {f8_tflops: 1, f16_tflops: 0.5, f32_tflops: 0.25}, vector: {f32_tflops: 0.125}}
host: {launch_overhead: 5000, link: {bandwidth: 50, latency: 1000}}
"""
"""All memories of a SIP together move a byte a picosecond; its vector units do an operation in 2 ps, its matrix units
an operation in 1 ps in float32 and two in float16."""

US = 1_000_000  # ps
OVERHEAD = 5 * US


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    opened = open_world(TOPOLOGY)
    dist.init_process_group()
    return opened


# -- who waits


def calls(names: str, *args: Any) -> dict[str, Callable[[torch.Tensor], Any]]:
    """Calls of methods of these names."""
    return {name: functools.partial(lambda name, t: getattr(t, name)(*args), name) for name in names.split()}


CALLS: dict[str, Callable[[torch.Tensor], Any]] = {
    **calls("__array__ __bool__ __complex__ __float__ __index__ __int__ __repr__ bincount cpu"),
    **calls("item nonzero numpy tolist unique"),
    **calls("__reduce_ex__", 4),
    "__contains__": lambda t: 3 in t,
    "__format__": lambda t: f"{t}",
    "allclose": lambda t: t.allclose(t),
    "equal": lambda t: t.equal(t),
    "masked_select": lambda t: t.masked_select(torch.tensor([True])),
}
"""A call of each host read, on a tensor of one element."""

SILENT: dict[str, Callable[[torch.Tensor], Any]] = {
    **calls("__add__ __rsub__ __mul__ __lt__ __eq__ __iadd__ add_ fill_ div pow clamp", 2),
    **calls("exp abs sum max argmax sort clone float t flatten squeeze detach zero_ isnan"),
    **calls("dim numel size stride is_contiguous element_size data_ptr storage_offset get_device untyped_storage"),
    "__iter__": lambda t: list(iter(t)),
    "__len__": len,
    "brackets": lambda t: t[0],
    "slices": lambda t: t[:1],
    "index": lambda t: t[torch.tensor([0])],
    "set": lambda t: t.__setitem__(0, 1),
    "view": lambda t: t.view(1, 1),
    "copy_": lambda t: t.copy_(torch.tensor([1])),
    "from": lambda t: torch.zeros(1, dtype=torch.int64).copy_(t),
    "matmul": lambda t: t @ t,
    "cat": lambda t: torch.cat([t, t]),
    "where": lambda t: torch.where(torch.tensor([True]), t, 0),
    "shape": lambda t: t.shape,
    "deepcopy": lambda t: t.__deepcopy__({}),
    "to": lambda t: t.to("cpu", non_blocking=True),
}


def test_the_list_of_host_reads_is_closed() -> None:
    assert list(HOST_READS) == sorted(HOST_READS) and set(CALLS) == set(HOST_READS)
    functions = METHODS.keys()
    dunders = {n for n in vars(torch.Tensor) if n.startswith("__")}
    assert set(HOST_READS) <= {*functions, *dunders, "is_nonzero", "item", "numpy", "tolist"}


def times_of(call: Callable[[torch.Tensor], Any]) -> tuple[int, int]:
    """The host's clock after the call, on a tensor that a long all_reduce writes, and when that ends."""

    def program(rank: int) -> tuple[int, int]:
        whole = torch.zeros(1 << 21, dtype=torch.int64)
        t = whole[:1]
        whole.wait()
        dist.all_reduce(whole, async_op=True)
        if rank == 0:
            call(t)
        after = host_time()
        whole.wait()
        return after, host_time()

    return on_ranks(2, program)[0]


@pytest.mark.parametrize("name", CALLS)
def test_host_reads_wait_for_the_end_of_what_is_pending(name: str) -> None:
    after, end = times_of(CALLS[name])
    assert after == end


@pytest.mark.parametrize("name", SILENT)
def test_nothing_else_waits_for_simulated_time(name: str) -> None:
    after, end = times_of(SILENT[name])
    assert after < end / 2


def test_a_mask_waits_for_how_much_it_selects() -> None:
    after, end = times_of(lambda t: torch.zeros(1)[t.bool()])
    assert after < end / 2  # that kernel is on the stream, which an asynchronous all_reduce does not hold up

    def program(rank: int) -> tuple[int, int]:
        mask = torch.zeros(1 << 21, dtype=torch.bool)
        dist.all_reduce(mask, "max")
        _ = torch.zeros(1 << 21)[mask]
        after = host_time()
        mask.wait()
        return after, host_time()

    for after, end in on_ranks(2, program):
        assert after >= end - OVERHEAD


def test_operations_wait_until_their_operands_are_there() -> None:
    """Rank 0 calculates with the result of an all_reduce that rank 1 joins much later."""

    def program(rank: int) -> Any:
        t = torch.tensor([rank + 1])
        t.wait()
        if rank == 1:
            go.Spend(runtime.current().world.handle, 1, 1000 * US)
        dist.all_reduce(t)
        view, double, total = t.view(1, 1), t * 2, torch.cat([t, t]).sum()
        t.add_(10)
        index = torch.arange(20)[t]
        return [x.tolist() for x in (view, double, total, index)], t.item()

    assert on_ranks(2, program) == [([[[13]], [6], 6, [13]], 13)] * 2


def test_failed_operations_fail_those_that_use_their_results() -> None:
    def program(rank: int) -> None:
        t = torch.ones(2)
        dist.all_reduce(t if rank else torch.ones(3))
        (t + 1).tolist()

    with pytest.raises(torch.multiprocessing.SpawnException, match=r"disagree on the number of elements"):
        on_ranks(2, program)


# -- costs

N = 1000


@pytest.mark.parametrize(
    ("call", "want"),
    [
        (lambda x, m: x + x, (12 * N, N, "vector")),
        (lambda x, m: x.half() + x.half(), (6 * N, N, "vector")),
        (lambda x, m: x.exp(), (8 * N, N, "vector")),
        (lambda x, m: x.sum(), (4 * N + 4, N, "vector")),
        (lambda x, m: x.clone(), (8 * N, 0, "vector")),
        (lambda x, m: x.add_(x[:1]), (8 * N + 4, N, "vector")),
        (lambda x, m: x.fill_(1), (4 * N, 0, "vector")),
        (lambda x, m: torch.zeros(N), (4 * N, 0, "vector")),
        (lambda x, m: torch.rand(N), (4 * N, 0, "vector")),
        (lambda x, m: x.softmax(0), (8 * N, 4 * N, "vector")),
        (lambda x, m: m @ m.t(), (4 * (600 + 600 + 400), 2 * 20 * 30 * 20, "float32")),
        (lambda x, m: torch.einsum("ij,kj->ik", m, m), (4 * (600 + 600 + 400), 2 * 20 * 30 * 20, "float32")),
        (lambda x, m: m.half() @ m.half().t(), (2 * (600 + 600 + 400), 2 * 20 * 30 * 20, "float16")),
        (lambda x, m: torch.cat([x, x]), (16 * N, 0, "vector")),
    ],
)
def test_costs(monkeypatch: pytest.MonkeyPatch, call: Any, want: tuple[int, int, str]) -> None:
    launched: list[tuple[int, int, str]] = []
    x, m = torch.ones(N), torch.ones(20, 30)
    launch = dispatch.launch

    def noted(context: Any, name: str, nbytes: int, flops: int, unit: str, outputs: Any) -> None:
        launched.append((nbytes, flops, unit))
        launch(context, name, nbytes, flops, unit, outputs)

    monkeypatch.setattr(dispatch, "launch", noted)
    call(x, m)
    assert launched[-1] == want


def test_views_and_operations_of_the_host_cost_nothing() -> None:
    t, host = torch.ones(4, 4), torch.ones(4, device="cpu")
    t.wait()
    start = host_time()
    _ = t.t()[1:].view(3, 4).expand(2, 3, 4).unsqueeze(0).detach(), t.split(2), list(t), torch.from_numpy(t.numpy())
    _ = host + host, host.sum(), torch.rand(3, device="cpu"), torch.empty(5), host.clone().fill_(2)
    assert host_time() == start


def test_a_result_is_there_when_its_kernel_ends() -> None:
    """Three kernels one after another: a host that reads the second waits for two of them."""
    a = torch.empty(5 * US // 4)  # reading and writing it takes 10 us
    start = host_time()
    b = a + 1
    c = b.exp()
    d = c * 2
    assert host_time() == start + 3 * OVERHEAD
    a.wait()
    assert host_time() == start + 3 * OVERHEAD
    c[:1].item()
    assert host_time() == start + OVERHEAD + 20 * US
    d[:1].item()
    assert host_time() == start + OVERHEAD + 30 * US
    b.tolist()
    assert host_time() == start + OVERHEAD + 30 * US


def test_matrix_products_take_the_time_of_the_matrix_units() -> None:
    for kind, picoseconds in ((torch.float32, 1.0), (torch.float16, 0.5)):
        a = torch.empty(256, 256, dtype=kind)
        start = host_time()
        (a @ a)[0, 0].item()
        assert host_time() == start + OVERHEAD + int(2 * 256**3 * picoseconds)


def test_rows_in_memory_decide_what_products_take(open_world: OpenWorld) -> None:
    open_world(TOPOLOGY + "kernels: {unaligned: {2: 3, 1: 5, result: 7}}\n")
    dist.init_process_group()
    x, most, narrow = (torch.empty(shape, dtype=torch.float16) for shape in ((512, 512), (511, 512), (512, 511)))
    linear = torch.nn.functional.linear

    def took(call: Callable[[], torch.Tensor]) -> int:
        start = host_time()
        call()[0, 0].item()
        return int(host_time() - start - OVERHEAD)

    aligned = took(lambda: x @ x)
    for factor, call in (
        (1, lambda: most @ x),
        (1, lambda: most.T @ most),
        (5, lambda: x @ narrow),
        (5, lambda: narrow.T @ x),
        (7, lambda: x @ most.T),
        (7, lambda: linear(x, most)),
    ):
        assert took(call) == pytest.approx(factor * aligned, rel=3e-3)


def test_copies_between_device_and_host_take_the_time_of_their_link() -> None:
    a = torch.empty(1 << 20)
    start = host_time()
    a.to("cpu", non_blocking=True)
    assert host_time() == start + OVERHEAD
    there = host_time()
    host = a.cpu()
    took = host_time() - there
    assert took > (1 << 22) * 1000 // 50  # 50 bytes a nanosecond
    start = host_time()
    back = host.cuda()
    assert host_time() == start + OVERHEAD
    back[0].item()
    assert host_time() - start > (1 << 22) * 1000 // 50
    assert host.cpu() is host and host_time() > start


def test_a_host_is_not_arbitrarily_far_ahead_of_its_device() -> None:
    x = torch.ones(1 << 16)
    for _ in range(20_000):
        x.mul_(1)
    context = runtime.current()
    assert not go.LaunchEnd(context.world.handle, context.rank, x._storage.launch - 8 * 1024)  # that has ended
    assert x[0].item() == 1


def test_the_result_of_a_kernel_that_failed_is_an_error_for_ever() -> None:
    """A kernel fails with the collective before it on its stream, however many kernels come after it."""

    def rank(r: int) -> None:
        if r == 1:
            with pytest.raises(MismatchError):
                dist.all_reduce(torch.ones(5))
            return
        x, y = torch.zeros(4), torch.zeros(4)
        dist.all_reduce(torch.ones(4))
        x.add_(1)
        for _ in range(2):
            with pytest.raises(MismatchError):
                x.tolist()
            for _ in range(3000):
                y.add_(1)
            assert y[0].item() % 3000 == 0

    torch.multiprocessing.spawn(rank, nprocs=2)
