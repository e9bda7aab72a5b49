"""Tests of what happens when ranks fail or never meet."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable
from typing import Any

import pytest
from conftest import OpenWorld
from programs import check_that_all_works, failure_of, wait_for_all

import torchemu as torch
from torchemu.errors import DeadlockError, MismatchError
from torchemu.multiprocessing import ProcessException, ProcessRaisedException, SpawnException

dist = torch.distributed
spawn = torch.multiprocessing.spawn


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    opened = open_world()
    dist.init_process_group()
    return opened


# -- root causes


def test_one_rank_raises() -> None:
    ended: list[int] = []

    def rank(r: int) -> None:
        try:
            if r == 2:
                raise KeyError("the cause")
            wait_for_all()
            raise AssertionError("rank 2 never joined")
        finally:
            ended.append(r)

    error = failure_of(rank)
    assert sorted(ended) == [0, 1, 2, 3]
    assert isinstance(error, ProcessRaisedException) and isinstance(error, ProcessException)
    assert [f.rank for f in error.errors] == [2]
    assert (error.error_index, error.error_pid) == (2, error.errors[0].pid)
    assert isinstance(error.errors[0].exception, KeyError)
    assert error.__cause__ is error.errors[0].exception
    text = error.msg
    assert str(error) == text
    assert text.startswith(
        "\n\n-- Process 2 terminated with the following error:\nTraceback (most recent call last):\n"
    )
    assert 'raise KeyError("the cause")' in text and "in rank\n" in text
    assert text.endswith("KeyError: 'the cause'\n")
    assert text.count("-- Process") == 1
    assert "python/torchemu/" not in text and "Unwound" not in text


def test_several_ranks_raise() -> None:
    def rank(r: int) -> None:
        if r % 2:
            raise ValueError(f"from {r}")
        wait_for_all()

    error = failure_of(rank)
    assert [(f.rank, str(f.exception)) for f in error.errors] == [(1, "from 1"), (3, "from 3")]
    assert error.msg.count("-- Process") == 2


def test_the_earliest_in_simulated_time_comes_first() -> None:
    def rank(r: int) -> None:
        if r == 0:
            for _ in range(20):  # launches, which take host time
                torch.zeros(1).copy_(torch.zeros(1))
        raise ValueError

    error = failure_of(rank)
    assert [f.rank for f in error.errors] == [1, 2, 3, 0]
    assert error.errors[0].time_ps < error.errors[-1].time_ps


def test_failures_of_many_ranks_are_not_all_spelled_out(open_world: OpenWorld) -> None:
    open_world("sips16")
    with pytest.raises(SpawnException) as raised:
        spawn(lambda r: 1 / 0, nprocs=16)
    assert len(raised.value.errors) == 16
    assert raised.value.msg.count("-- Process") == 8
    assert raised.value.msg.endswith("\n\n… and 8 more processes failed by themselves; see .errors")


def test_a_rank_that_has_passed_a_failed_one_goes_on_until_it_waits() -> None:
    passed: list[int] = []

    def rank(r: int) -> None:
        if r == 0:
            raise ValueError
        passed.append(r)
        wait_for_all()
        passed.append(-r)

    failure_of(rank)
    assert passed == [1, 2, 3]


def test_functions_that_cannot_be_called_so() -> None:
    error = failure_of(lambda: None)  # type: ignore[arg-type, misc]
    assert len(error.errors) == 4
    assert "takes 0 positional arguments but 1 was given" in error.msg


def test_exceptions_that_resist_printing() -> None:
    class NastyError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def rank(r: int) -> None:
        raise NastyError

    assert "NastyError: <exception str() failed>" in failure_of(rank).msg


def test_endless_recursion() -> None:
    def rank(r: int) -> None:
        if r == 1:
            rank(r)
        wait_for_all()

    error = failure_of(rank)
    assert [f.rank for f in error.errors] == [1]
    assert isinstance(error.errors[0].exception, RecursionError)


# -- unwinding


def test_a_broad_except_does_not_stop_the_unwinding() -> None:
    def rank(r: int) -> None:
        if r == 0:
            raise ValueError("cause")
        while True:
            try:
                wait_for_all()
            except Exception:
                continue

    assert [f.rank for f in failure_of(rank).errors] == [0]


def test_what_comes_out_of_an_unwound_rank_is_no_cause() -> None:
    def rank(r: int) -> None:
        if r == 0:
            raise ValueError("cause")
        try:
            wait_for_all()
        except BaseException as error:
            if r == 1:
                raise RuntimeError("wrapped") from error
            if r == 2:
                sys.exit(7)
            raise
        finally:
            if r == 3:
                raise LookupError("from a finally block")

    error = failure_of(rank)
    assert [(f.rank, str(f.exception)) for f in error.errors] == [(0, "cause")]


def test_a_finally_block_may_look_at_finished_tensors_but_not_wait() -> None:
    seen: list[Any] = []

    def rank(r: int) -> None:
        finished = torch.full((1,), r)
        dist.all_reduce(finished)
        finished.wait()
        try:
            wait_for_all()  # none gets past this before all are here
            if r == 0:
                raise ValueError
            wait_for_all()
        finally:
            seen.append((r, finished.item()))
            if r:
                wait_for_all()
                seen.append("not reached")

    assert [f.rank for f in failure_of(rank).errors] == [0]
    assert sorted(seen) == [(0, 6), (1, 6), (2, 6), (3, 6)]


def test_a_rank_that_refuses_to_unwind_ends_by_itself() -> None:
    def rank(r: int) -> None:
        if r == 0:
            raise ValueError("cause")
        for _ in range(10):
            with contextlib.suppress(BaseException):
                wait_for_all()

    assert [f.rank for f in failure_of(rank).errors] == [0]


def test_generators_are_closed() -> None:
    closed: list[int] = []

    def numbers(r: int) -> Any:
        try:
            yield wait_for_all()
        finally:
            closed.append(r)

    def rank(r: int) -> None:
        if r == 0:
            raise ValueError
        list(numbers(r))

    failure_of(rank)
    assert closed == [1, 2, 3]


# -- exits and interrupts


def test_exit_statuses() -> None:
    def rank(r: int) -> None:
        if r == 1:
            sys.exit(3)
        if r == 2:
            sys.exit("no config")
        sys.exit(None if r else 0)

    error = failure_of(rank)
    assert [f.rank for f in error.errors] == [1, 2]
    assert "SystemExit: 3\n" in error.msg and "SystemExit: no config\n" in error.msg


def test_all_exit_well() -> None:
    spawn(lambda r: sys.exit(0), nprocs=4)
    check_that_all_works()


def test_ctrl_c_inside_a_rank() -> None:
    ended: list[int] = []

    def rank(r: int) -> None:
        try:
            if r == 2:
                signal.raise_signal(signal.SIGINT)
            wait_for_all()
        finally:
            ended.append(r)

    with pytest.raises(KeyboardInterrupt):
        spawn(rank, nprocs=4)
    assert sorted(ended) == [0, 1, 2]  # rank 3 had not begun
    check_that_all_works()


# -- ranks that do not meet


def test_a_missing_rank_is_a_deadlock_that_names_it() -> None:
    def rank(r: int) -> None:
        if r != 3:
            t = torch.zeros(2, 3, dtype="f16")
            dist.all_reduce(t, "max")
            t.tolist()

    error = failure_of(rank)
    assert [f.rank for f in error.errors] == [0, 1, 2]
    assert all(isinstance(f.exception, DeadlockError) for f in error.errors)
    assert "t.tolist()\n" in error.msg
    assert "no rank can run and no operation is in progress\n" in error.msg
    line = "  ranks 0-2 wait for all_reduce of 6 float16 elements, op max (collective #0 of group default) at "
    assert error.msg.count(line + __file__) == 1
    assert error.msg.count(" in rank: rank 3 has not joined it\n") == 1
    assert error.msg.count("likely cause: rank 3 ended without calling all_reduce #0 of group default\n") == 1
    assert error.msg.count("DeadlockError: the deadlock that is reported above\n") == 2


def test_a_deadlock_that_is_caught() -> None:
    """The ranks go on, but in the end wait for what they have issued, as all ranks do."""
    caught: list[tuple[int, int]] = []

    def rank(r: int) -> None:
        if r == 0:
            return
        for attempt in range(2):
            try:
                wait_for_all()
            except DeadlockError:
                caught.append((attempt, r))

    error = failure_of(rank)
    assert caught == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)]
    assert [f.rank for f in error.errors] == [1, 2, 3]


def test_a_rank_that_waits_again_after_a_deadlock_does_not_end_in_silence() -> None:
    def rank(r: int) -> None:
        if r == 0:
            return
        try:
            wait_for_all()
        except DeadlockError:
            wait_for_all()

    assert [f.rank for f in failure_of(rank).errors] == [1, 2, 3]


def test_ranks_that_only_end_wait_too() -> None:
    def rank(r: int) -> None:
        if r != 1:
            dist.all_reduce(torch.zeros(1))

    error = failure_of(rank)
    assert [f.rank for f in error.errors] == [0, 2, 3]
    assert "rank 1 has not joined it" in error.msg


def test_a_deadlock_outside_of_spawn() -> None:
    t = torch.zeros(1)
    dist.all_reduce(t)
    with pytest.raises(DeadlockError, match=r"rank 0 waits for all_reduce .*: ranks 1-3 have not joined it"):
        t.item()


MISMATCHES: list[tuple[Callable[[], Any], str]] = [
    (lambda: dist.all_reduce(torch.zeros(3)), "the number of elements"),
    (lambda: dist.all_reduce(torch.zeros(2, dtype="f16")), "the dtype"),
    (lambda: dist.all_reduce(torch.zeros(2), "max"), "the reduce op"),
    (
        lambda: dist.all_gather_into_tensor(torch.zeros(8), torch.zeros(2)),
        "the operation",
    ),
    (
        lambda: dist.all_reduce(torch.zeros(3, dtype="f16"), "min"),
        "the dtype and the number of elements and the reduce op",
    ),
]


@pytest.mark.parametrize(("call", "what"), MISMATCHES)
@pytest.mark.parametrize("odd", [0, 2, 3])
def test_a_mismatch_names_both_sides(call: Callable[[], Any], what: str, odd: int) -> None:
    def rank(r: int) -> None:
        if r == odd:
            call()
        wait_for_all()

    error = failure_of(rank)
    assert {type(f.exception) for f in error.errors} == {MismatchError}
    text = str(error.errors[-1].exception)
    head = f"ranks 0 and {odd or 1} disagree on {what} in collective #0 of group default:\n  rank 0 calls "
    assert text.startswith(head)
    assert f"\n  rank {odd or 1} calls " in text
    assert text.endswith(".") and text.splitlines()[-1].startswith("All ranks of ")
    assert "all_reduce of 2 float32 elements, op sum" in text
    assert text.count(f" at {__file__}:") == 1  # the odd rank's
    assert text.count(" in wait_for_all\n") == 1


def test_shapes_may_differ_where_sizes_agree() -> None:
    def rank(r: int) -> None:
        t = torch.ones((2, 3) if r else (6,))
        dist.all_reduce(t)
        assert (t == 4).numpy().all()

    spawn(rank, nprocs=4)


def test_a_tensor_of_a_failed_operation_stays_failed_for_readers() -> None:
    kept: list[Any] = []

    def rank(r: int) -> None:
        if r == 3:
            raise ValueError
        t = torch.ones(1)
        kept.append(t)
        dist.all_reduce(t)
        t.wait()

    failure_of(rank)
    for t in kept:
        with pytest.raises(RuntimeError, match=r"abandoned: a rank of its spawn failed"):
            t.item()
    kept.clear()
    check_that_all_works()
