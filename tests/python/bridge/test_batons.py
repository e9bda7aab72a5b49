"""Batons, by which threads take turns, and the release of many handles at once."""

import _thread
import os
import threading

import pytest

from torchemu import runtime
from torchemu.bridge.batons import Baton
from torchemu.bridge.binding import go

EVERYWHERE = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
"""The processors on which a thread may run to which nothing has happened."""


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_go_on_in_the_order_in_which_they_are_handed_the_baton(threads):
    rounds, seen = 50, []
    batons, done = [Baton() for _ in range(threads)], Baton()

    def run(number):
        batons[number].wait()
        for turn in range(rounds):
            seen.append((turn, number))
            following, is_last = batons[(number + 1) % threads], turn == rounds - 1
            if not is_last:
                batons[number].wait_after(following)
            elif number < threads - 1:
                following.hand_over()
            else:
                done.hand_over()

    for number in range(threads):
        _thread.start_new_thread(run, (number,))
    done.wait_after(batons[0])
    assert seen == [(turn, number) for turn in range(rounds) for number in range(threads)]


def test_a_baton_that_was_handed_over_before_is_not_waited_for():
    baton = Baton()
    baton.hand_over()
    baton.wait()


def test_only_what_has_ended_is_released():
    with runtime.opened("sips2") as world:
        soon, late = (go.Timer(world.handle, 0, ps) for ps in (10, 10**9))
        while not go.Await(world.handle, 0, soon):
            pass
        unknown = late + 1000
        assert go.ReleaseEnded([soon, late, unknown]) == [late]
        assert not go.IsDone(late)
        with pytest.raises(RuntimeError, match="does not exist any more"):
            go.IsDone(soon)
        many = [go.Timer(world.handle, 0, 10**9) for _ in range(200)]
        assert go.ReleaseEnded(many) == many
        assert go.ReleaseEnded([]) == []


@pytest.mark.skipif(EVERYWHERE is None, reason="this system does not say where a thread may run")
def test_threads_may_run_where_they_might_before_they_waited():
    """Whoever waits wakes on the processor of who hands over, and is bound to none afterwards."""
    allowed = [{cpu} for cpu in EVERYWHERE] + [EVERYWHERE]
    batons, done, seen = [Baton() for _ in allowed], Baton(), []

    def body(number):
        os.sched_setaffinity(0, allowed[number])
        batons[number].wait()
        for _ in range(20):
            seen.append((number, os.sched_getaffinity(0)))
            batons[number].wait_after(batons[(number + 1) % len(batons)])
        seen.append((number, os.sched_getaffinity(0)))
        (batons[number + 1] if number + 1 < len(batons) else done).hand_over()

    for number in range(len(allowed)):
        threading.Thread(target=body, args=(number,), daemon=True).start()
    done.wait_after(batons[0])
    assert seen == [(number, cpus) for _ in range(21) for number, cpus in enumerate(allowed)]
