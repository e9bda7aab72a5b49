"""Faults on simpler's chips are named: races, with both accesses, and who waits for what."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, OpenWorld
from simpler_cases import IN, INOUT, OUT, RUNTIME, called, compiled, domain, run, tensor, window, working, written

from torchemu.errors import DeadlockError, RaceError
from torchemu.frontends.simpler.orchestrator import Orchestrator
from torchemu.frontends.simpler.task_interface import ChipCallable
from torchemu.frontends.simpler.worker import Worker
from torchemu.runtime import Strictness

KERNELS = ROOT / "benches" / "simpler" / "python" / "kernels" / "aiv"
ONEPHASE = (KERNELS / "allreduce_onephase_kernel.py").read_text()
DRAIN = "    TSTORE(GlobalTensor(scratch, (COUNT,)), acc)\n    pipe_barrier(PIPE_ALL)\n"
BARRIER = "    barrier(ctx, signals, nranks)\n"
EXAMPLES = {
    "allreduce_onephase": 256,
    "allreduce_twophase": 256,
    "allreduce_ring": 256,
    "allreduce_bidirectional_ring": 256,
    "reduce_scatter": 256,
    "all_to_all": 256,
    "allgather": 64,
}
"""Kernels for four chips, with the elements of their inputs."""


def summing(cid: int, chips: int = 2, times: int = 1, elements: int = 256) -> Callable[[Orchestrator], object]:
    """Returns what submits one collective over all chips, or several in one window."""
    outputs = {"reduce_scatter": elements // chips, "allgather": elements * chips}
    x = [tensor(np.arange(elements) + i) for i in range(chips)]

    def build(orch: Orchestrator, name: str = "") -> None:
        seen = domain(orch, list(range(chips)))
        for _ in range(times):
            for i in range(chips):
                y = tensor(np.zeros(outputs.get(name, elements)))
                args = called((x[i], IN), (y, OUT), (window(seen[i]), INOUT), chips, seen[i].device_ctx)
                orch.submit_next_level(cid, args, worker=i)

    return build


def without(part: str, tmp_path: Path, instead: str = "") -> ChipCallable:
    """The kernel in Python without some lines."""
    assert part in ONEPHASE
    return written(tmp_path, ONEPHASE.replace(part, instead), "allreduce_kernel")


@pytest.mark.parametrize("reorder", [None, 1, 2, 3])
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_have_no_races(name: str, reorder: int | None, open_world: OpenWorld) -> None:
    open_world().strictness = Strictness(check=True, reorder=reorder)
    with working(4) as worker:
        build = summing(worker.register(compiled(f"{name}_kernel.cpp")), chips=4, elements=EXAMPLES[name])
        run(worker, lambda orch: build(orch, name))  # type: ignore[call-arg]


@pytest.mark.parametrize("reorder", [None, 1, 2, 3])
@pytest.mark.parametrize("name", sorted(file.stem.removesuffix("_kernel") for file in KERNELS.glob("*.py")))
def test_kernels_in_python_have_no_races(name: str, reorder: int | None, open_world: OpenWorld) -> None:
    open_world().strictness = Strictness(check=True, reorder=reorder)
    with working(4) as worker:
        build = summing(worker.register(compiled(KERNELS / f"{name}_kernel.cpp")), chips=4, elements=EXAMPLES[name])
        run(worker, lambda orch: build(orch, name))  # type: ignore[call-arg]


def race(open_world: OpenWorld, cut: Callable[[], ChipCallable], times: int = 1) -> str:
    """Returns what the checker says of a kernel."""
    open_world().strictness = Strictness(check=True)
    with working() as worker:
        cid = worker.register(cut())
        with pytest.raises(RaceError) as caught:
            run(worker, summing(cid, times=times))
        whole = worker.register(compiled(KERNELS / "allreduce_onephase_kernel.cpp"))
        run(worker, summing(whole))  # a race is no reason to stop
    return str(caught.value)


def test_no_barrier(tmp_path: Path, open_world: OpenWorld) -> None:
    text = race(open_world, lambda: without(BARRIER, tmp_path))
    assert "unordered read" in text
    assert 'load by kernel "allreduce_kernel #1" on rank 0 at allreduce_kernel.py:' in text


def test_notify_before_the_drain(tmp_path: Path, open_world: OpenWorld) -> None:
    drained = "    pipe_barrier(PIPE_ALL)\n"
    text = race(open_world, lambda: without(DRAIN, tmp_path, DRAIN.removesuffix(drained)))
    assert 'signal overtakes its data: window "d" of rank' in text
    assert "a pipe barrier to drain the store pipe is missing before the signal" in text


def test_window_used_again(tmp_path: Path, open_world: OpenWorld) -> None:
    """By a second dispatch in the same run: its barrier is over before it begins."""
    text = race(open_world, lambda: compiled(KERNELS / "allreduce_onephase_kernel.cpp"), times=2)
    assert "reused" in text


def test_fresh_windows_are_no_races(tmp_path: Path, open_world: OpenWorld) -> None:
    open_world().strictness = Strictness(check=True)
    with working() as worker:
        cid = worker.register(compiled(KERNELS / "allreduce_onephase_kernel.cpp"))
        for _ in range(3):
            run(worker, summing(cid))


def test_races_are_looked_for_on_demand_only(tmp_path: Path, open_world: OpenWorld) -> None:
    open_world()
    with working() as worker:
        run(worker, summing(worker.register(without(BARRIER, tmp_path))))


def test_rank_that_skips_its_notify(tmp_path: Path, open_world: OpenWorld) -> None:
    """And what the checker found until then is a note."""
    open_world().strictness = Strictness(check=True)
    notify = "        if peer != ctx.rankId:\n            TNOTIFY("
    silent = notify.replace("ctx.rankId:", "ctx.rankId and ctx.rankId != 1:")
    with working(3) as worker:
        cid = worker.register(without(notify, tmp_path, silent))
        with pytest.raises(DeadlockError) as caught:
            run(worker, summing(cid, chips=3))
        with pytest.raises(RuntimeError, match="an earlier run of this Worker has failed"):
            run(worker, summing(cid, chips=3))
    text = str(caught.value)
    for rank in (0, 2):
        assert f'kernel "allreduce_kernel #{rank + 1}" on rank {rank} at allreduce_kernel.py:' in text
    assert text.count("to be GE 1; it is 0") == 2
    assert "a rank skips its notify" in text
    assert "from rank 1" in text


def test_tasks_that_were_not_begun_are_in_the_report(tmp_path: Path, open_world: OpenWorld) -> None:
    """The task that would signal follows the one that waits, on another worker."""
    open_world()
    wait = "from torchemu.pto import *\n\ndef kernel_entry(args):\n    TWAIT(Signal(args[0].ptr()), 1, WaitCmp.GE)\n"
    flag = tensor(np.zeros(1))

    def build(orch: Orchestrator) -> None:
        left, right = domain(orch, [0, 1])
        orch.submit_next_level(cid, called((window(left), INOUT), (flag, OUT)), worker=0)
        orch.submit_next_level(cid, called((window(right), INOUT), (flag, IN)), worker=1)
        orch.submit_next_level(cid, called((window(right), IN), (flag, IN)))
        orch.submit_next_level_group(cid, [called((flag, IN))] * 2, workers=[0, 1])

    worker = Worker(platform="a2a3sim", runtime=RUNTIME, device_ids=[3, 1])  # reports have the SIPs' numbers
    worker.init()
    cid = worker.register(written(tmp_path, wait, "wait_kernel"))
    with pytest.raises(DeadlockError) as caught:
        run(worker, build)
    worker.close()
    assert str(caught.value).splitlines()[1:] == [
        '  kernel "wait_kernel #1" on rank 3 at wait_kernel.py:4 waits for the word at rank 3 +0x200 '
        '(window "d" +0) to be GE 1; it is 0',
        '  task "wait_kernel #2" for worker 1 follows "wait_kernel #1"',
        '  task "wait_kernel #3" follows "wait_kernel #2" and "wait_kernel #1"',
        '  task "wait_kernel #4" for workers [3, 1] follows "wait_kernel #1"',
        'likely cause: a rank skips its notify: rank 3 has heard nothing in window "d" from rank 1',
    ]


def test_long_chain_of_tasks_is_cut(tmp_path: Path, open_world: OpenWorld) -> None:
    """A thousand tasks behind one that waits, and one that follows a hundred of them."""
    open_world()
    wait = "from torchemu.pto import *\n\ndef kernel_entry(args):\n    TWAIT(Signal(args[0].ptr()), 1, WaitCmp.GE)\n"
    values = [tensor(np.zeros(1)) for _ in range(1000)]

    def build(orch: Orchestrator) -> None:
        (own,) = domain(orch, [0])
        orch.submit_next_level(cid, called((window(own), INOUT), (values[0], OUT)))
        for before, after in pairwise(values):
            orch.submit_next_level(cid, called((before, IN), (after, OUT)))
        orch.submit_next_level(cid, called(*((value, IN) for value in values[-100:])))

    with working(1) as worker:
        cid = worker.register(written(tmp_path, wait, "wait_kernel"))
        with pytest.raises(DeadlockError) as caught:
            run(worker, build)
    lines = [line for line in str(caught.value).splitlines() if line.startswith(("  task", "  …"))]
    assert len(lines) == 17
    assert lines[0] == '  task "wait_kernel #2" follows "wait_kernel #1"'
    assert lines[8] == "  … and 984 more …"
    assert lines[-1] == (
        '  task "wait_kernel #1001" follows "wait_kernel #901" and "wait_kernel #902" and … and 97 more … and '
        '"wait_kernel #1000"'
    )
