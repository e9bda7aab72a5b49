"""Streams and events: what runs after what, beside what, and how a program reads the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from conftest import OpenWorld
from ranks import failures, on_ranks

import torchemu as torch
from torchemu.runtime.waiting import host_time

pytestmark = pytest.mark.shows("PyTorch: torch.cuda: streams and events")

cuda, dist = torch.cuda, torch.distributed

TOPOLOGY = """
name: handy
system: {sips: {count: 2}}
sip: {cube_mesh: {w: 2, h: 2}}
cube: {hbm: {bandwidth: 250, latency: 0}, pe_layout: {pe_per_corner: 1, corners: [nw]}}
pe: {matrix: {f8_tflops: 4, f16_tflops: 2, f32_tflops: 1}, vector: {f32_tflops: 1}}
host: {launch_overhead: 5000, link: {bandwidth: 50, latency: 1000}}
"""
"""All memories of a SIP together move a byte a picosecond, and that is what limits what the tests do."""

US = 1_000_000  # ps
OVERHEAD = 5 * US
N = 1 << 22
WORK = 8 * N  # ps that negating N float32 takes alone: they are read and written, at a byte a picosecond


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world(TOPOLOGY)


def marked(stream: Any = None) -> Any:
    event = cuda.Event(enable_timing=True)
    event.record(stream)
    return event


def ps_between(start: Any, end: Any) -> int:
    cuda.synchronize()
    return round(start.elapsed_time(end) * 1e9)


def span(program: Callable[[torch.Tensor], None]) -> int:
    """How long the device is at what a program puts on the default stream, from before its first operation to after
    its last; the host is far ahead of it."""
    x = torch.zeros(N)
    cuda.synchronize()
    start = marked()
    program(x)
    return ps_between(start, marked())


# -- order and time


def test_operations_of_a_stream_follow_each_other() -> None:
    def program(x: torch.Tensor) -> None:
        for _ in range(3):
            x.neg()

    assert span(program) == 3 * WORK + OVERHEAD  # the first is issued that much after the event


def test_operations_of_two_streams_share_the_memory() -> None:
    side = cuda.Stream()

    def program(x: torch.Tensor) -> None:
        with cuda.stream(side):
            x.neg()
        x.neg()
        cuda.current_stream().wait_stream(side)

    # The one on the side stream is alone for a launch, then they share; together they move what two in a row would.
    assert span(program) == 2 * WORK + OVERHEAD


def test_a_stream_that_waits_for_nothing_is_not_held_up() -> None:
    side = torch.Stream()
    x, small = torch.zeros(N), torch.zeros(1)
    cuda.synchronize()
    start = marked()
    x.neg()
    with side:
        small.neg()
        ended = marked()
    assert ps_between(start, ended) < WORK


@pytest.mark.parametrize("way", ["wait_stream", "wait_event", "event.wait", "record_event"])
def test_a_stream_waits_for_another(way: str) -> None:
    side = cuda.Stream()
    x, small = torch.zeros(N), torch.zeros(1)
    cuda.synchronize()
    start = marked()
    x.neg()
    if way == "wait_stream":
        side.wait_stream(cuda.current_stream())
    elif way == "wait_event":
        side.wait_event(marked())
    elif way == "event.wait":
        marked().wait(side)
    else:
        side.wait_event(cuda.current_stream().record_event())
    with cuda.stream(side):
        small.neg()
        ended = marked()
    assert WORK + OVERHEAD <= ps_between(start, ended) < WORK + 2 * OVERHEAD


def test_an_event_is_where_it_was_recorded_last() -> None:
    x = torch.zeros(N)
    cuda.synchronize()
    start, event = marked(), cuda.Event(enable_timing=True)
    x.neg()
    event.record()
    x.neg()
    event.record()
    assert ps_between(start, event) == 2 * WORK + OVERHEAD


def test_waiting_for_a_stream_is_for_what_is_on_it_then() -> None:
    side = cuda.Stream()
    x, small = torch.zeros(N), torch.zeros(1)
    cuda.synchronize()
    start = marked()
    side.wait_stream(cuda.current_stream())
    x.neg()
    with cuda.stream(side):
        small.neg()
    assert ps_between(start, marked(side)) < WORK


def test_compute_overlaps_a_collective_and_wait_orders_the_rest() -> None:
    def program(rank: int, overlapped: bool) -> int:
        dist.barrier()
        x, grads = torch.zeros(N), torch.zeros(N)
        cuda.synchronize()
        dist.barrier()
        start = marked()
        work = dist.all_reduce(grads, async_op=overlapped)
        x.neg()
        if work is not None:
            work.wait()
        grads.neg()
        return ps_between(start, marked())

    dist.init_process_group()
    beside, after = (max(on_ranks(2, program, overlapped)) for overlapped in (True, False))
    assert after - beside > WORK / 2


# -- the host


def test_synchronize_blocks_the_host_until_all_streams_are_idle() -> None:
    side, x = cuda.Stream(), torch.zeros(N)
    cuda.synchronize()
    x.neg()
    with cuda.stream(side):
        x.neg()
        ended = marked()
    assert not ended.query()
    before = host_time()
    cuda.synchronize()
    assert host_time() > before and ended.query() and side.query() and cuda.current_stream().query()
    after = host_time()
    cuda.synchronize("cuda:0")
    assert host_time() == after


@pytest.mark.parametrize("whose", ["stream", "event"])
def test_the_host_waits_for_a_stream_or_an_event_only(whose: str) -> None:
    side, x, small = cuda.Stream(), torch.zeros(N), torch.zeros(1)
    cuda.synchronize()
    x.neg()
    ended = marked()
    with cuda.stream(side):
        small.neg()
    side.synchronize() if whose == "stream" else marked(side).synchronize()
    assert not ended.query()


def test_a_program_may_ask_in_a_loop() -> None:
    def program(rank: int) -> bool:
        event = marked()
        if rank == 0:
            t = torch.zeros(4)
            dist.recv(t, 1)
            event = marked()
            while not event.query():
                pass
            return bool(t[0] == 3)
        dist.send(torch.full((4,), 3.0), 0)
        while not cuda.current_stream().query():
            pass
        return True

    dist.init_process_group()
    assert on_ranks(2, program) == [True, True]


# -- which stream


def test_the_current_stream_is_a_ranks_own() -> None:
    def program(rank: int) -> list[int]:
        numbers = [cuda.current_stream().stream_id]
        with cuda.stream(cuda.Stream()) as nothing:
            assert nothing is None
            dist.barrier()  # the other rank runs
            numbers.append(cuda.current_stream().stream_id)
            with torch.Stream() as inner:
                dist.barrier()
                numbers.append(cuda.current_stream().stream_id)
                assert cuda.current_stream() is inner
            with cuda.stream(None):
                numbers.append(cuda.current_stream().stream_id)
        numbers.append(cuda.current_stream().stream_id)
        return numbers

    dist.init_process_group()
    assert on_ranks(2, program) == [[0, 1, 2, 1, 0]] * 2


def test_a_stream_that_is_set_stays_without_another_reference() -> None:
    cuda.set_stream(cuda.Stream())
    cuda.set_stream(None)
    assert cuda.current_stream().stream_id == 1 and cuda.default_stream().stream_id == 0
    assert float(torch.ones(3).sum()) == 3
    cuda.set_stream(cuda.default_stream())
    assert cuda.current_stream() == cuda.default_stream()


def test_a_failure_inside_leaves_the_stream_that_was() -> None:
    with pytest.raises(ZeroDivisionError), torch.Stream():
        _ = 1 / 0
    assert cuda.current_stream().stream_id == 0


def test_what_streams_and_events_say_of_themselves() -> None:
    side, event = cuda.Stream(priority=-1), torch.Event("cuda:0", enable_timing=True)
    assert (side.device_index, side.stream_id, side.cuda_stream, side.priority) == (0, 1, 1, 0)
    assert side.priority_range() == (0, 0) and side.device == torch.device("cuda", 0)
    assert repr(side) == "<torch.Stream device=ahbm:0 stream_id=1>" and side.device_type == "ahbm"
    assert len({side, side, cuda.Stream()}) == 2 and side != cuda.Stream() and side != 1
    assert event.query() and event.event_id == 0 and repr(event) == "<torch.Event device=cuda:0 event_id=0>"
    event.synchronize()
    event.wait()
    assert isinstance(side.record_event(), torch.Event) and side.record_event(event) is event and event.event_id


# -- mistakes


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: cuda.Stream("cpu"), RuntimeError, "cpu is the host"),
        (lambda: cuda.Stream(7), ValueError, "device 7 does not exist"),
        (lambda: cuda.current_stream("cuda:2"), ValueError, "device 2 does not exist"),
        (lambda: cuda.synchronize("cuda:2"), ValueError, "device 2 does not exist"),
        (lambda: torch.Event("cpu"), RuntimeError, "cpu is the host"),
        (lambda: marked().elapsed_time(cuda.Event()), ValueError, "must be created with argument 'enable_timing=True'"),
        (lambda: marked().elapsed_time(cuda.Event(True)), ValueError, "Both events must be recorded"),
    ],
)
def test_mistakes_are_named(call: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_the_time_of_an_event_that_is_not_over_is_no_number() -> None:
    start = marked()
    torch.zeros(N).neg()
    with pytest.raises(RuntimeError, match="Both events must be completed before calculating elapsed time"):
        start.elapsed_time(marked())


def test_an_event_that_can_never_end_is_a_deadlock() -> None:
    def program(rank: int) -> None:
        if rank == 0:
            dist.all_reduce(torch.zeros(4))
            marked().synchronize()

    dist.init_process_group()
    failed = failures(2, program)
    assert isinstance(failed[0], torch.errors.DeadlockError) and "all_reduce" in str(failed[0])
