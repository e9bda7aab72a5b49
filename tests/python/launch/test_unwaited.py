"""A use of a tensor before the wait() of an operation on it is reported, and a right program is not."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest
from launch import launch, lines, written
from unwaited_cases import CROSSED, WRONG, program, right, streams

from torchemu.runtime.outstanding import Elements, UnwaitedWarning


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
@pytest.mark.parametrize("name", WRONG)
def test_what_is_used_before_its_wait_is_warned_of(tmp_path: Path, name: str, backend: str) -> None:
    file = written(tmp_path, program(backend, WRONG[name]))
    with pytest.warns(UnwaitedWarning) as seen:
        outcome = launch("--nproc-per-node", "2", file)
    assert outcome.status == 0
    (only,) = seen.list  # and not one for each rank
    assert f"{file}:{len(file.read_text().splitlines())} in <module>" in str(only.message)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["gloo", "nccl"])
@pytest.mark.parametrize("strict", [(), ("--explore", "2")])
def test_right_programs_are_not(tmp_path: Path, backend: str, strict: tuple[str, ...]) -> None:
    for name, text in right(backend).items():
        outcome = launch("--nproc-per-node", "3", *strict, written(tmp_path, program(backend, text)))
        assert outcome.status == 0, (name, outcome.err)


@pytest.mark.parametrize("flag", ["--check", "--explore"])
def test_strict_runs_fail_with_both_lines(tmp_path: Path, flag: str) -> None:
    file = written(tmp_path, program("nccl", "w = dist.all_reduce(x, async_op=True)\nz = x * 2\nw.wait()"))
    outcome = launch("--nproc-per-node", "2", flag, *(["2"] if flag == "--explore" else []), file)
    assert outcome.status == 1
    first = file.read_text().splitlines().index("w = dist.all_reduce(x, async_op=True)") + 1
    assert (
        "RaceError" in outcome.err and f"{file}:{first} in" in outcome.err and f"{file}:{first + 1} in" in outcome.err
    )


def test_the_warning_can_be_turned_off(tmp_path: Path) -> None:
    file = written(tmp_path, program("gloo", WRONG["reads a result"]))
    outcome = launch("--nproc-per-node", "2", "--allow-unwaited", file)
    assert (outcome.status, outcome.err) == (0, "")


def test_streams_that_read_what_another_is_still_to_write_are_warned_of(tmp_path: Path) -> None:
    with pytest.warns(UnwaitedWarning) as seen:
        outcome = launch("--nproc-per-node", "2", written(tmp_path, streams(*CROSSED, "right")))
    assert outcome.status == 0, outcome.err
    told = [str(warning.message) for warning in seen.list]
    assert len(told) == len(CROSSED), told
    for name in CROSSED:
        assert any(f"in {name} reads it on stream" in text and f"in {name} writes it" in text for text in told), name


@pytest.mark.parametrize("flag", [["--check"], ["--explore", "2"]])
def test_they_are_errors_of_strict_runs(tmp_path: Path, flag: list[str]) -> None:
    for name in CROSSED:
        outcome = launch("--nproc-per-node", "2", *flag, written(tmp_path, streams(name)))
        lines = outcome.err.count(f"in {name}")
        assert outcome.status == 1 and "RaceError" in outcome.err and lines >= 2, (name, outcome)
    assert launch("--nproc-per-node", "2", *flag, written(tmp_path, streams("right"))).status == 0


def test_streams_that_threads_begin_with_are_in_no_order(tmp_path: Path) -> None:
    text = """
import threading
s = torch.cuda.Stream()
z = torch.ones(8, device="cuda") * 2
thread = threading.Thread(target=lambda: z + 1)
thread.start()
thread.join()
"""
    outcome = launch("--nproc-per-node", "2", written(tmp_path, program("gloo", text)))
    assert (outcome.status, outcome.err) == (0, "")


def test_threads_begin_on_the_default_stream_whichever_is_current(tmp_path: Path) -> None:
    text = """
import threading
with torch.cuda.stream(torch.cuda.Stream()):
    x.add_(1)
    thread = threading.Thread(target=lambda: x * 2)
    thread.start()
    thread.join()
    y = x * 2
"""
    with pytest.warns(UnwaitedWarning, match="in <lambda> reads it on stream 0") as seen:
        outcome = launch("--nproc-per-node", "2", written(tmp_path, program("nccl", text)))
    assert (outcome.status, outcome.err, len(seen.list)) == (0, "", 1)


def test_what_many_works_that_nobody_waits_for_hold_is_bounded(tmp_path: Path) -> None:
    text = """
    from torchemu import runtime
    for _ in range(300):
        dist.all_reduce(torch.ones(4), async_op=True)
        dist.all_reduce(torch.ones(4))
        dist.isend(torch.ones(4), (rank + 1) % world)
        dist.recv(torch.ones(4), (rank - 1) % world)
    other = dist.new_group()
    for _ in range(300):
        dist.all_reduce(torch.ones(4), group=other, async_op=True)
        dist.barrier()
    assert len(runtime.current().outstanding.issued) <= 2 * 64 + 1  # half are dropped at a time
    """
    outcome = launch("--nproc-per-node", "2", written(tmp_path, program("gloo", "") + textwrap.dedent(text)))
    assert (outcome.status, outcome.err) == (0, "")


def test_elements_overlap_where_numpy_says_that_arrays_share_memory() -> None:
    seed = 20261
    draw = np.random.default_rng(seed)
    memory = np.zeros(64, np.int16)
    for case in range(500):
        views = []
        for _ in range(2):
            start, step = int(draw.integers(0, 30)), int(draw.integers(1, 4))
            rows, row = int(draw.integers(0, 3)), int(draw.integers(1, 9))
            n = int(draw.integers(0, 5))
            views.append((start, (rows, n), (row * 2, step * 2)))
        shown = [np.lib.stride_tricks.as_strided(memory[s:], shape, steps) for s, shape, steps in views]
        told = [Elements("m", s * 2, shape, steps, 2) for s, shape, steps in views]
        assert told[0].overlaps(told[1]) == np.shares_memory(*shown), (seed, case, views)
        assert not told[0].overlaps(Elements("n", *[getattr(told[0], a) for a in ("start", "shape", "steps", "size")]))


def test_collectives_of_one_group_are_not_compared_with_each_other(tmp_path: Path) -> None:
    """They come one after another: to compare each with all before took seconds for some hundreds."""
    text = """
    import torch, torch.distributed as dist
    from torchemu.runtime.outstanding import Issued
    dist.init_process_group("gloo")
    compared, real = [], Issued.conflict
    Issued.conflict = lambda self, *args: compared.append(self) or real(self, *args)
    t = torch.ones(4)
    for _ in range(100): dist.all_reduce(t, dist.ReduceOp.MAX, async_op=True)
    print(len(compared))
    dist.barrier()
    """
    assert lines(launch("--nproc-per-node", "2", written(tmp_path, text))) == ["0"] * 2
