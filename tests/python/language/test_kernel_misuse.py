"""Tests of what misuse of kernels becomes: exceptions, deadlocks and races with their lines."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernel_worlds import run, world_of

import torchemu
import torchemu as torch
import torchemu.language as tl
from torchemu.multiprocessing import ProcessRaisedException
from torchemu.runtime.waiting import host_time

WORLDS = [1, 2, 3, 4, 8, 16]

dist = torch.distributed


def failure(program: Callable[[int], None], ranks: int = 1) -> str:
    """The text that a spawn fails with."""
    with pytest.raises(ProcessRaisedException) as caught:
        run(ranks, program)
    return str(caught.value)


@torchemu.kernel
def nothing(*args: Any) -> None:
    pass


@pytest.mark.parametrize(
    ("grid", "error"),
    [
        (0, ValueError),
        (-1, ValueError),
        ("1", TypeError),
        (True, TypeError),
        ((1, "2"), TypeError),
        ((1, 0), ValueError),
        ((1, 2, 3, 4), TypeError),
        ((1, 2.0, 3), TypeError),
        (10_000, ValueError),
    ],
)
def test_bad_grids(grid: Any, error: type[Exception]) -> None:
    with world_of(1), pytest.raises(error, match=r"grid|process group"):
        nothing[grid]()


@pytest.mark.parametrize("argument", [object(), {"a": 1}, np.zeros(3), b"x"])
def test_bad_arguments(argument: Any) -> None:
    with world_of(1), pytest.raises(TypeError, match="argument args of kernel 'nothing' is of type"):
        nothing[1](argument)


def test_tensors_that_a_kernel_cannot_have() -> None:
    with world_of(2):
        with pytest.raises(ValueError, match="cpu"):
            nothing[1](torch.zeros(3, device="cpu"))
        with pytest.raises(ValueError, match="on ahbm:1"):
            nothing[1](torch.zeros(3, device=1))
        with pytest.raises(ValueError, match="not contiguous"):
            nothing[1](torch.zeros(3, 4).t())
        x = torch.zeros(3)
    with world_of(1), pytest.raises(RuntimeError, match="another World"):
        nothing[1](x)


def test_symmetric_memory_of_a_dtype_without_its_name() -> None:
    with world_of(1), pytest.raises(TypeError, match=r"not \(\(4,\), .*int64\); a dtype is given by its name, dtype="):
        tl.symmetric_empty((4,), torch.int64)


@torchemu.kernel
def far_out(x: Any) -> None:
    tl.load(x + 1000, 4)


def test_an_address_beyond_a_tensor_says_how_far() -> None:
    def program(rank: int) -> None:
        far_out[1](torch.zeros(8))
        torch.cuda.synchronize()

    text = failure(program)
    assert '; 3968 bytes beyond the end of window "argument x of kernel far_out" of rank 0, which has 32' in text


def test_wrong_signatures() -> None:
    @torchemu.kernel
    def two(a: Any, b: int) -> None:
        pass

    with world_of(1):
        with pytest.raises(TypeError, match="missing a required argument"):
            two[1](torch.zeros(1))
        with pytest.raises(RuntimeError, match=r"launched with a grid: two\[1\]"):
            two(1, 2)
        with pytest.raises(ValueError, match="all_reduce, all_gather, reduce_scatter"):
            torchemu.kernel(collective="broadcast")
    with pytest.raises(RuntimeError, match="only inside of a kernel"):
        tl.rank()


BROKEN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "beyond a tensor": (lambda p: tl.load(p + 6, 8), r"ValueError: .* reach beyond .*8 after that"),
    "in no window": (lambda p: tl.load(p + (1 << 40), 1), "ValueError: .*is in no window"),
    "on no rank": (lambda p: p.on(1), "ValueError: rank 1 is not one of 0 to 0"),
    "wrong dtype": (lambda p: tl.store(p, tl.zeros(4, torch.float16)), "TypeError: a tile of torch.float16 cannot be"),
    "scratch overflow": (lambda p: tl.zeros(1 << 20), "MemoryError: a tile of 4194304 bytes .*of its 1048576 bytes 0"),
    "complex": (lambda p: tl.zeros(4, torch.complex64), "TypeError: a tile of torch.complex64: tiles are of real"),
    "no word": (lambda p: tl.signal(p), "TypeError: word must be of int32 or int64, not torch.float32"),
    "no pointer": (lambda p: tl.load(7, 1), "TypeError: pointer must be a pointer, .*not int"),
    "no queue to there": (lambda p: tl.queue("q", 0, 1, 1, 1), "ValueError: rank 1 is not one of 0 to 0"),
    "no slots": (lambda p: tl.queue("q", 0, 0, 0, 1), "ValueError: .*there must be slots"),
    "too long a message": (lambda p: tl.send(tl.queue("q", 0, 0, 1, 2), p, 3), "ValueError: .*a send of 12 bytes"),
    "no such comparison": (lambda p: tl.wait(tl.workspace("w", 1, torch.int32), 6, 0), "ValueError: comparison 6"),
    "no such signal": (lambda p: tl.signal(tl.workspace("w", 1, torch.int32), 1, "or"), "ValueError: .*add or set"),
    "no such pipe": (lambda p: tl.set_flag("mte2", "vector"), "ValueError: there is no pipe 'mte2'"),
    "no such op": (lambda p: tl.store_reduce(p, tl.load(p, 2), "xor"), "ValueError"),
    "huge": (lambda p: tl.load(p + (1 << 70), 1), "ValueError: a number is out of range"),
    "another rank's word": (lambda p: tl.wait(p, tl.GE, 1), "TypeError: word must be of int32 or int64"),
    "dot of vectors": (lambda p: tl.dot(tl.load(p, 2), tl.load(p, 2)), "ValueError: .*must be m×k and k×n"),
    "negative": (lambda p: tl.load(p, -1), "ValueError: n must be 0 or more"),
    "shapes": (lambda p: tl.load(p, 2) + tl.load(p, 3), "ValueError: .*broadcast"),
    "truth": (lambda p: bool(tl.load(p, 2) > 1), "TypeError: what a tile has is known only when"),
    "host": (lambda p: torch.zeros(2).all().item() or tensor_wait(), "RuntimeError: a kernel cannot wait"),
    "raise": (lambda p: 1 // 0, "ZeroDivisionError"),
    "launch": (lambda p: nothing[1](), "RuntimeError: a kernel cannot launch another one"),
}


def tensor_wait() -> None:
    from torchemu.runtime import waiting

    waiting.reach(1)


@pytest.mark.parametrize("mistake", BROKEN)
def test_an_exception_in_a_kernel_names_it_and_its_line(mistake: str) -> None:
    operation, text = BROKEN[mistake]

    @torchemu.kernel
    def broken(p: Any) -> None:
        operation(p)

    with world_of(1):
        x = torch.zeros(8)
        broken[1](x)
        with pytest.raises(torchemu.errors.KernelError, match=rf"(?s)kernel 'broken' on rank 0 failed at .*{text}"):
            x.tolist()
        y = torch.ones(8)
        nothing[1](y)  # the device goes on
        assert y.tolist() == [1.0] * 8


def test_an_exception_on_one_rank_ends_the_others() -> None:
    @torchemu.kernel
    def one_fails(words: Any) -> None:
        if tl.rank() == 2:
            raise ValueError("not today")
        tl.wait(words, tl.GE, 1)

    def rank(r: int) -> None:
        words = tl.symmetric_empty(1, dtype=torch.int64)
        one_fails[1](words)
        words.tolist()

    text = failure(rank, 4)
    assert "Process 2" in text
    assert "not today" in text
    assert "kernel 'one_fails' on rank 2 failed at" in text


def test_a_deadlock_names_kernel_rank_address_values_and_line() -> None:
    @torchemu.kernel
    def stuck(words: Any) -> None:
        if tl.rank() == 1:
            tl.signal(words.on(0), 1)
        if tl.rank() == 0:
            tl.wait(words, tl.EQ, 3)

    def rank(r: int) -> None:
        words = tl.symmetric_empty(1, dtype=torch.int64)
        stuck[1](words)
        words.tolist()

    text = failure(rank, 2)
    assert "deadlock at simulated time" in text
    assert 'kernel "stuck", which on rank 0 at test_kernel_misuse.py:' in text
    assert "to be EQ 3; it is 1" in text


def test_a_wait_for_equality_that_is_overshot_is_the_cause() -> None:
    @torchemu.kernel
    def overshot(words: Any) -> None:
        tl.signal(words.on(1 - tl.rank()), 2)
        tl.sync()
        tl.wait(words, tl.EQ, 1)

    def rank(r: int) -> None:
        words = tl.symmetric_empty(1, dtype=torch.int64)
        overshot[1](words)
        words.tolist()

    with pytest.raises(ProcessRaisedException, match="likely cause: EQ wait overshot"):
        run(2, rank, check=False)


@pytest.mark.slow
def test_polling_for_ever_is_a_deadlock() -> None:
    @torchemu.kernel
    def polls(words: Any) -> None:
        while tl.rank() == 0 and not tl.test(words, tl.GE, 1):
            pass

    def rank(r: int) -> None:
        words = tl.symmetric_empty(1, dtype=torch.int64)
        polls[1](words)
        words.tolist()

    text = failure(rank, 2)
    assert 'kernel "polls", which on rank 0 at test_kernel_misuse.py:' in text
    assert "a test of the word at rank 0" in text
    assert "to be GE 1; it is 0" in text


def test_a_race_is_an_error_that_names_both_accesses() -> None:
    @torchemu.kernel
    def racy(out: Any, x: Any, words: Any, n: int) -> None:
        following = (tl.rank() + 1) % tl.world_size()
        tl.put_nbi(out.on(following), x, n)
        tl.store(x, tl.load(out, n))  # nobody says that it has come
        tl.drain()

    def rank(r: int) -> None:
        out, words = tl.symmetric_empty(33), tl.symmetric_empty(1, dtype=torch.int64)
        racy[1](out, torch.zeros(33), words, 33)
        out.tolist()

    text = failure(rank, 2)
    assert "RaceError" in text
    lines = racy.function.__code__.co_firstlineno
    assert f"test_kernel_misuse.py:{lines + 3}" in text
    assert f"test_kernel_misuse.py:{lines + 4}" in text
    assert "missing: no signal, barrier or event leads from" in text


def test_a_store_that_was_not_drained_before_its_signal() -> None:
    @torchemu.kernel
    def undrained(out: Any, words: Any, n: int, drain: bool) -> None:
        peer = 1 - tl.rank()
        tl.store(out.on(peer), tl.full(n, 1.0))
        if drain:
            tl.drain()
            tl.fence()
        tl.signal(words.on(peer), 1)
        tl.wait(words, tl.GE, 1)
        tl.load(out, n)

    def rank(drain: bool) -> Callable[[int], None]:
        def program(r: int) -> None:
            out, words = tl.symmetric_empty(1024), tl.symmetric_empty(1, dtype=torch.int64)
            undrained[1](out, words, 1024, drain)
            out.tolist()

        return program

    run(2, rank(True))
    with pytest.raises(ProcessRaisedException, match="drain the store pipe"):
        run(2, rank(False))


@torchemu.kernel
def give(out: Any, x: Any, n: int) -> None:
    tl.put(out.on((tl.rank() + 1) % tl.world_size()), x, n)


@torchemu.kernel
def take(x: Any, out: Any, n: int) -> None:
    tl.store(x, tl.load(out, n))


def exchange_messages(rank: int) -> None:
    others = [p for p in range(4) if p != rank]
    works = [dist.isend(torch.zeros(1), p) for p in others]
    for p in others:
        dist.recv(torch.zeros(1), p)
    for work in works:
        work.wait()


BETWEEN: dict[str, Callable[[int, Any], object]] = {
    "a barrier of the group": lambda r, meeting: dist.barrier(),
    "messages to and from all": lambda r, meeting: exchange_messages(r),
    "a barrier of the hosts": lambda r, meeting: meeting.wait(),
    "a collective": lambda r, meeting: dist.all_reduce(torch.zeros(4)),
    "nothing": lambda r, meeting: None,
}


@pytest.mark.parametrize(
    ("between", "reads", "ordered"),
    [(how, True, how != "nothing") for how in BETWEEN] + [("a collective", False, True), ("nothing", False, False)],
)
def test_what_orders_two_kernels(between: str, reads: bool, ordered: bool) -> None:
    """Hosts that meet after they have waited for the first one, or a collective on the streams."""

    def program(r: int, meeting: Any) -> None:
        dist.init_process_group()
        out, x = tl.symmetric_empty(64), torch.full((64,), float(r))
        give[1](out, x, 64)
        if reads:
            out.wait()
        BETWEEN[between](r, meeting)
        take[1](x, out, 64)
        x.wait()

    expected = contextlib.nullcontext() if ordered else pytest.raises(ProcessRaisedException, match="RaceError")
    with world_of(4), expected:
        torch.multiprocessing.spawn(program, (torch.multiprocessing.Barrier(4),), nprocs=4)


def pair(members: list[int]) -> Callable[[int, dict[Any, Any]], object]:
    return lambda r, groups: r in members and dist.all_reduce(torch.zeros(4), group=groups[tuple(members)])


def message(source: int, to: int) -> Callable[[int, dict[Any, Any]], object]:
    def step(r: int, groups: dict[Any, Any]) -> None:
        if r in (source, to):
            dist.batch_isend_irecv([
                dist.P2POp(dist.isend if r == source else dist.irecv, torch.zeros(4), to + source - r)
            ])[0].wait()  # fmt: skip

    return step


def broadcast(root: int) -> Callable[[int, dict[Any, Any]], object]:
    return lambda r, groups: dist.broadcast(torch.zeros(4), root)


PARTS: dict[str, tuple[list[Callable[[int, dict[Any, Any]], object]], bool]] = {
    "the two": ([pair([0, 1])], True),
    "one of them and another": ([pair([1, 2])], False),
    "one after another": ([pair([0, 2]), pair([1, 2])], True),
    "the wrong one first": ([pair([1, 2]), pair([0, 2])], False),
    "a message to who takes": ([message(0, 1)], True),
    "a message from who takes": ([message(1, 0)], False),
    "a broadcast to who takes": ([broadcast(0)], True),
    "a broadcast from who takes": ([broadcast(1)], False),
}


@pytest.mark.parametrize("case", PARTS)
def test_an_operation_orders_for_those_that_take_part(case: str) -> None:
    """Rank 0 gives to rank 1, which takes after the operations: long after, in this run."""
    steps, ordered = PARTS[case]

    def program(r: int) -> None:
        dist.init_process_group("nccl")
        groups = {members: dist.new_group(list(members)) for members in ((0, 1), (0, 2), (1, 2))}
        out, x, big = tl.symmetric_empty(64), torch.full((64,), float(r)), torch.ones(512, 512)
        dist.all_reduce(torch.zeros(4))
        if r == 0:
            give[1](out, x, 64)
        elif r == 1:
            big @ big
        for step in steps:
            step(r, groups)
        if r == 1:
            take[1](x, out, 64)

    expected = contextlib.nullcontext() if ordered else pytest.raises(ProcessRaisedException, match="RaceError")
    with world_of(3), expected:
        torch.multiprocessing.spawn(program, nprocs=3)


def test_ranks_must_ask_for_the_same_symmetric_memory() -> None:
    def rank(r: int) -> None:
        tl.symmetric_empty(4 + r)

    text = failure(rank, 2)
    assert "MismatchError" in text
    assert "asks for float32[5]" in text
    assert "float32[4]" in text


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_must_ask_for_the_same_workspace(world: int) -> None:
    """Sizes may differ from launch to launch, and from one ask to the next, but not among ranks."""

    @torchemu.kernel
    def asks(x: Any, n: int, last: int) -> None:
        here = [tl.workspace("slots", n), tl.workspace("slots", n), tl.workspace("slots", 2 * n)]
        assert here[0] == here[1] != here[2]
        tl.sync()
        tl.workspace("last", last)

    def rank(differ: int) -> Callable[[int], None]:
        def program(r: int) -> None:
            x = torch.zeros(1)
            for n in (3, 4, 3):
                asks[2](x, n, 1)
            asks[2](x, 5, 7 + differ * r)
            x.wait()

        return program

    run(world, rank(0), reorder=1)
    with pytest.raises(ProcessRaisedException, match=r"memory 'last' of kernel 'asks': rank . asks for .* elements of"):
        run(world, rank(1))


def test_ctrl_c_in_a_kernel() -> None:
    @torchemu.kernel
    def interrupted(words: Any) -> None:
        if tl.rank() == 1:
            raise KeyboardInterrupt
        tl.wait(words, tl.GE, 1)

    def rank(r: int) -> None:
        words = tl.symmetric_empty(1, dtype=torch.int64)
        interrupted[1](words)
        words.tolist()

    with pytest.raises(KeyboardInterrupt):
        run(2, rank)
    run(2, lambda r: nothing[1](torch.zeros(1)))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_is_no_exception_ends_a_kernel_too(error: type[BaseException]) -> None:
    @torchemu.kernel
    def leaves(x: Any) -> None:
        raise error

    with world_of(1):
        x = torch.zeros(4)
        leaves[1](x)
        with pytest.raises(KeyboardInterrupt if error is KeyboardInterrupt else torchemu.errors.KernelError):
            x.tolist()
        with pytest.raises(torchemu.errors.KernelError, match=error.__name__):
            x.tolist()
        y = torch.ones(4)
        nothing[1](y)
        assert y.tolist() == [1.0] * 4


def test_results_do_not_depend_on_the_run() -> None:
    """The same program, the same simulated times; with --reorder others, and the same results."""

    @torchemu.kernel
    def gather(out: Any, x: Any, words: Any, n: int) -> None:
        for peer in range(tl.world_size()):
            tl.put_signal_nbi(out.on(peer) + tl.rank() * n, x, n, words.on(peer))
        tl.wait(words, tl.GE, tl.world_size())

    def once(reorder: int | None) -> int:
        ends = []

        def rank(r: int) -> None:
            out, words = tl.symmetric_empty(4 * 8), tl.symmetric_empty(1, dtype=torch.int64)
            gather[1](out, torch.full((8,), float(r)), words, 8)
            assert out.tolist() == [float(i) for i in range(4) for _ in range(8)]
            ends.append(host_time())

        run(4, rank, reorder=reorder)
        return max(ends)

    assert once(None) == once(None)
    times = {once(seed) for seed in range(6)}
    assert times == {once(seed) for seed in range(6)}
    assert len(times) > 1


def test_a_world_goes_on_after_a_failure() -> None:
    """The ranks' counters, and the memory that they share, begin anew."""

    @torchemu.kernel
    def meet(out: Any, fail: bool) -> None:
        words = tl.workspace("words", 1, torch.int64)
        if fail and tl.rank() == 1:
            tl.signal(words.on(0))
            raise ValueError("once")
        tl.sync()
        tl.signal(words.on((tl.rank() + 1) % tl.world_size()))
        tl.wait(words, tl.EQ, tl.call_number())
        tl.store(out, tl.full(4, tl.call_number()))

    def rank(r: int, fail: bool) -> None:
        out = torch.zeros(4)
        meet[1](out, False)
        meet[1](out, fail)
        if r == 0 and fail:
            tl.symmetric_empty(3)
        assert out.tolist() == [2.0] * 4
        assert tl.symmetric_empty(4).tolist() == [0.0] * 4

    with world_of(3, check=False):
        torch.multiprocessing.spawn(rank, (False,), nprocs=3)
    with world_of(3, check=False):
        with pytest.raises(ProcessRaisedException, match="once"):
            torch.multiprocessing.spawn(rank, (True,), nprocs=3)
        torch.multiprocessing.spawn(rank, (False,), nprocs=3)
