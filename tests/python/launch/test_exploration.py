"""Bugs that need a switch at the right place are found, with few switches, and come again by these."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from launch import launch, written

LOST_UPDATE = """
    import threading
    lock, total = threading.Lock(), [0]
    def add():
        for _ in range(2):
            with lock:
                before = total[0]
            with lock:
                total[0] = before + 1
    def check():
        assert total == [4], "an update is lost"
    """
LOST_WAKE_UP = """
    import threading
    changed, ready, lost = threading.Condition(), [], []
    def add():
        if threading.current_thread().name == "1":
            ready.append(True)
            with changed:
                changed.notify_all()
        elif not ready:
            with changed:
                if not changed.wait(timeout=5):
                    lost.append(True)
    def check():
        assert not lost, "a wake-up is lost"
    """
INVERSION = """
    import threading
    one, two = threading.Lock(), threading.Lock()
    def add():
        first, second = (one, two) if threading.current_thread().name == "1" else (two, one)
        with first, second:
            pass
    def check():
        pass
    """
EMPTY = """
    import queue, threading
    items, failed = queue.Queue(), []
    items.put(1)
    def add():
        try:
            if not items.empty():
                items.get_nowait()
        except queue.Empty:
            failed.append(True)
    def check():
        assert not failed, "somebody else has taken it"
    """
END = """
    threads = [threading.Thread(target=add, name=str(i)) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check()
    """
BUGS = {
    "a lost update": (LOST_UPDATE, "an update is lost"),
    "a lost wake-up": (LOST_WAKE_UP, "a wake-up is lost"),
    "locks in two orders": (INVERSION, "DeadlockError"),
    "a queue that is empty by then": (EMPTY, "somebody else has taken it"),
}
FEW = 10  # switches


@pytest.mark.slow
@pytest.mark.parametrize("how", [("--explore", "60"), ("--exhaustive", "400")], ids=lambda how: how[0])
@pytest.mark.parametrize("bug", BUGS)
def test_what_is_found(tmp_path: Path, bug: str, how: tuple[str, ...]) -> None:
    lines, said = BUGS[bug]
    file = written(tmp_path, lines + END)
    assert launch("--nproc-per-node", "1", file).status == 0, "it does not fail in the ordinary order"
    found = launch("--nproc-per-node", "1", *how, file)
    assert found.status == 1 and said in found.err, found.err
    fails = re.search(r"fails with --replay (\S+), (\d+) switch", found.err)
    assert fails and 1 <= int(fails[2]) <= FEW and len(fails[1].split(",")) == int(fails[2]), found.err
    again = launch("--nproc-per-node", "1", "--replay", fails[1], file)
    assert again.status == 1 and again.err == found.err.rpartition("fails with")[0]


def test_all_orders_of_a_small_program(tmp_path: Path) -> None:
    """Three ranks that never wait have 3! orders, of the first three picks: two of three, then one of two. One is
    enough, but where they may notice each other by the system."""
    found = launch("--nproc-per-node", "3", "--exhaustive", "50", written(tmp_path, "x = 1"))
    left_out = "but for those that differ in nothing that ranks notice: 3 other choices were skipped"
    assert (found.status, found.out) == (0, "")
    assert found.err == f"1 run: no failure; these are all orders, {left_out}\n"
    writes = written(tmp_path, f"open({str(tmp_path / 'file')!r}, 'w').close()")
    assert launch("--nproc-per-node", "3", "--exhaustive", "50", writes).err == (
        "6 runs: no failure; these are all orders\n"
    )
    some = launch("--nproc-per-node", "3", "--exhaustive", "2", writes)
    assert some.err == "2 runs: no failure; all orders of fewer than 1 switches are among them, and there are more\n"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--replay", "x"], "switches are such as 3:1,7:0+"),
        (["--replay", "1:1", "--explore", "2"], "are two ways to choose schedules"),
        (["--exhaustive", "3", "--schedule", "pct"], "--schedule does nothing with --exhaustive"),
        (["--schedule-depth", "3"], "--schedule-depth does nothing without --schedule pct"),
    ],
)
def test_flags_that_do_not_fit(tmp_path: Path, flags: list[str], said: str) -> None:
    assert said in launch("--nproc-per-node", "1", *flags, written(tmp_path, "x = 1")).err
