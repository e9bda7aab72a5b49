"""Orchestrations of several kernels, which are functions in Python beside their sources."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from simpler_cases import ADD, IN, OUT, RUNTIME, called, run, tensor, working

from torchemu.errors import DeadlockError
from torchemu.frontends.simpler.task_interface import ArgDirection, ChipCallable, CoreCallable
from torchemu.frontends.simpler_setup.kernel_compiler import KernelCompiler
from torchemu.runtime import Strictness

MULTIPLY = ADD.replace("TADD", "TMUL").replace("a + b", "a · b")
WAITS = """
    from torchemu.pto import *

    def kernel_entry(args):
        TWAIT(Signal(args[2].ptr().cast(int32)), 1, WaitCmp.GE)
"""
SUM_OF_PRODUCTS = """
    from torchemu.pto import *

    def entry(args):
        '''e = (a · b + c) · c'''
        a, b, c, d, e = args[:5]
        rt_submit_aiv_task(7, [a, b, d])
        rt_submit_aic_task(2, [d, c, e])
        rt_submit_aiv_task(7, [e, c, e])
"""


def orchestrated(folder: Path, text: str | None, kernels: dict[int, str], name: str = "entry") -> ChipCallable:
    """A callable of an orchestration with the text, None for one without a file, and of kernels, by number."""
    compiler = KernelCompiler("a2a3sim")
    children = []
    for number, kernel in kernels.items():
        source = folder / f"k{number}.cpp"
        source.with_suffix(".py").write_text(textwrap.dedent(kernel))
        children.append((number, CoreCallable.build([ArgDirection.IN], compiler.compile_incore(source))))
    source = folder / "orch.cpp"
    if text is not None:
        source.with_suffix(".py").write_text(textwrap.dedent(text))
    binary = compiler.compile_orchestration(RUNTIME, source)
    return ChipCallable.build([ArgDirection.IN], name, binary, children)


def outcome(chip: ChipCallable, numbers: np.ndarray, chips: int = 1) -> Any:
    """Returns what the last of five tensors is on each chip, of which the first three are given."""
    given = [[tensor(row + i) for row in numbers] for i in range(chips)]
    made = [[tensor(np.zeros(numbers.shape[1])) for _ in range(2)] for _ in range(chips)]
    with working(chips) as worker:
        cid = worker.register(chip)

        def build(orch: Any) -> None:
            for i in range(chips):
                args = called(*[(t, IN) for t in given[i]], *[(t, OUT) for t in made[i]])
                orch.submit_next_level(cid, args, worker=i)

        timing = run(worker, build)
    return np.stack([e.numpy() for _, e in made]), timing


@pytest.mark.parametrize("chips", [1, 2, 5])
@pytest.mark.parametrize("count", [1, 33])
def test_kernels_run_one_after_another(chips: int, count: int, tmp_path: Path, open_world: OpenWorld) -> None:
    open_world().strictness = Strictness(check=True, reorder=3)
    numbers = np.random.default_rng(count).integers(-4, 5, (3, count)).astype(np.float32)
    got, _ = outcome(orchestrated(tmp_path, SUM_OF_PRODUCTS, {7: MULTIPLY, 2: ADD}), numbers, chips)
    for i in range(chips):
        a, b, c = numbers + i
        np.testing.assert_array_equal(got[i], (a * b + c) * c)


def test_it_takes_the_time_of_its_kernels(tmp_path: Path, open_world: OpenWorld) -> None:
    open_world()
    numbers = np.ones((3, 64), np.float32)
    times = []
    for n in (1, 2, 3):
        text = "from torchemu.pto import *\ndef entry(args):\n" + "    rt_submit_aiv_task(0, args[:3])\n" * n
        folder = tmp_path / str(n)
        folder.mkdir()
        times.append(outcome(orchestrated(folder, text, {0: ADD}), numbers)[1].host_wall_us)
    assert 0 < times[1] - times[0] == pytest.approx(times[2] - times[1])


def test_a_file_says_what_a_single_kernel_is_for(tmp_path: Path, open_world: OpenWorld) -> None:
    open_world()
    text = "from torchemu.pto import *\ndef entry(args):\n    rt_submit_aiv_task(0, [args[2], args[2], args[4]])\n"
    numbers = np.arange(12, dtype=np.float32).reshape(3, 4)
    got, _ = outcome(orchestrated(tmp_path, text, {0: ADD}), numbers)
    np.testing.assert_array_equal(got[0], 2 * numbers[2])


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ("rt_submit_aiv_task(1, args)", KeyError, r"no kernel has the number 1; those of the orchestration have \[0\]"),
        ("1 / 0", ZeroDivisionError, "division by zero"),
        ("rt_submit_aiv_task(0, args[:1])", ValueError, "not enough values to unpack"),
    ],
)
def test_wrong_orchestrations(
    body: str, kind: type[Exception], said: str, tmp_path: Path, open_world: OpenWorld
) -> None:
    open_world()
    text = f"from torchemu.pto import *\ndef entry(args):\n    {body}\n"
    with pytest.raises(kind, match=said) as caught:
        outcome(orchestrated(tmp_path, text, {0: ADD}), np.ones((3, 4), np.float32))
    assert caught.value.__notes__ == ['in kernel "entry #1" on rank 0']


def test_kernels_submit_nothing(tmp_path: Path, open_world: OpenWorld) -> None:
    open_world()
    kernel = "from torchemu.pto import *\ndef kernel_entry(args):\n    rt_submit_aiv_task(0, args)\n"
    text = "from torchemu.pto import *\ndef entry(args):\n    rt_submit_aiv_task(0, args)\n"
    with pytest.raises(RuntimeError, match="tasks can be submitted in orchestrations only"):
        outcome(orchestrated(tmp_path, text, {0: kernel}), np.ones((3, 4), np.float32))


def test_a_wait_names_its_kernels_line(tmp_path: Path, open_world: OpenWorld) -> None:
    open_world()
    text = "from torchemu.pto import *\ndef entry(args):\n    rt_submit_aiv_task(1, args[1:])\n"
    with pytest.raises(
        DeadlockError, match=r'(?s)kernel "entry #1" on rank 0 at k1\.py:5 waits for the word at rank 0'
    ):
        outcome(orchestrated(tmp_path, text, {0: ADD, 1: WAITS}), np.ones((3, 4), np.float32))


def test_what_cannot_be_registered(tmp_path: Path, open_world: OpenWorld) -> None:
    open_world()
    with working(1) as worker:
        with pytest.raises(
            ValueError, match=r"entry: 2 kernels, and the source that .* was not compiled; write entry\(args\) in"
        ):
            worker.register(orchestrated(tmp_path, None, {0: ADD, 1: MULTIPLY}))
        with pytest.raises(RuntimeError, match=r"orch\.py has no function other\(args\), which would be the orchestr"):
            worker.register(orchestrated(tmp_path, SUM_OF_PRODUCTS, {7: ADD, 2: ADD}, name="other"))
        example = CoreCallable.build([ArgDirection.IN], KernelCompiler().compile_incore("allgather_kernel.cpp"))
        binary = KernelCompiler().compile_orchestration(RUNTIME, tmp_path / "orch.cpp")
        with pytest.raises(ValueError, match="in Python, and allgather_kernel is torchemu's own"):
            worker.register(ChipCallable.build([ArgDirection.IN], "entry", binary, [(0, example)]))
