"""The fuzzer finds defects that are planted, makes programs small, and knows a report that names the guilty rank."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fuzz.comparing import difference
from fuzz.emulated import Emulation, Outcome
from fuzz.faults import FAULTS, faulty, shortcoming
from fuzz.kinds import KINDS
from fuzz.minimising import minimised
from fuzz.programs import Fault, Program, Step, random_program
from fuzz.scripts import script_of
from fuzz.session import Session

PLAIN = Emulation("numpy")


@pytest.mark.slow
@pytest.mark.parametrize("device", [False, True])
def test_programs_follow_from_their_seed_and_lose_steps_as_scripts(device: bool) -> None:
    seen = set()
    for seed in range(60):
        program = random_program(seed, 2 + seed % 3, device)
        assert program == random_program(seed, program.size, device)
        seen |= {step.kind for step in program.steps}
        for i in range(len(program.steps)):
            compile(script_of(program.without(i)).text, "a script", "exec")
    assert seen == {name for name, kind in KINDS.items() if not (device and kind.host)}


def test_a_script_runs_and_keeps_what_its_steps_get() -> None:
    steps = (Step("all_reduce", salt=1), Step("all_gather", (1, 2), "int64", (2,), wait=1), Step("barrier"))
    outcome = PLAIN.outcomes([script_of(Program(0, 3, steps)).text], 3)[0]
    data = [[float((k * 2 + r * 3 + 1) % 4) for k in range(3)] for r in range(3)]
    summed = [0, "torch.float32", [3], repr([sum(column) for column in zip(*data, strict=True)])]
    blocks = [[1, "torch.int64", [2], repr([(k + r * 3) % 4 for k in range(2)])] for r in (1, 2)]
    assert outcome == [[summed], [summed, *blocks], [summed, *blocks]]


def test_differences_are_named_by_rank_step_and_element() -> None:
    right: Outcome = [[[0, "torch.float32", [2], "[1.0, nan]"]], [[0, "'a'"]]]
    assert difference(right, copy.deepcopy(right)) is None
    for wrong, text in [
        ([[[0, "torch.float32", [2], "[1.0, 2.0]"]], [[0, "'a'"]]], "rank 0, step 0: element 1 is 2.0, not nan"),
        ([[[0, "torch.float32", [2], "[1.0, nan]"]], [[0, "'b'"]]], "rank 1, step 0"),
        ([[[0, "torch.float64", [2], "[1.0, nan]"]], [[0, "'a'"]]], "torch.float64"),
        ([[], [[0, "'a'"]]], "rank 0 kept 0 results"),
        ("a traceback", "a traceback"),
    ]:
        assert text in str(difference(right, wrong)), text


def _has(test: Callable[[Step], bool]) -> Callable[[Program], bool]:
    return lambda program: any(test(step) for step in program.steps)


def test_the_minimiser_leaves_what_fails() -> None:
    program = next(p for p in (random_program(seed, 4, True) for seed in range(99)) if len(p.steps) > 8)
    steps = list(program.steps)
    steps[5] = Step("scatter", (0, 2), "float16", (2, 3), "offset", root=1, salt=7, wait=2, feeds=True, stream=1)
    program = replace(program, steps=tuple(steps))
    small = minimised(program, _has(lambda step: step.kind == "scatter" and step.dtype == "float16"))
    assert small.steps == (Step("scatter", dtype="float16"),)
    assert not small.device and not small.joins
    both = minimised(program, lambda p: len({step.kind for step in p.steps}) > 1)
    assert len(both.steps) == 2


def test_the_minimiser_leaves_the_fault() -> None:
    fault = Fault("dtype", 1, 2, ((2, Step("broadcast", dtype="int64")),))
    steps = (Step("barrier"), Step("all_reduce"), Step("broadcast"), Step("gather"))
    small = minimised(Program(0, 2, steps, fault=fault), lambda program: program.fault is not None)
    assert [step.kind for step in small.steps] == ["broadcast"]
    assert small.fault == Fault("dtype", 1, 0, ((0, Step("broadcast", dtype="int64")),))


class _Right:
    """Results of torchemu in place of those of gloo, once for each script."""

    def __init__(self) -> None:
        self.known: dict[str, Outcome] = {}

    def results(self, script: Path, size: int) -> Outcome:
        text = script.read_text()
        if text not in self.known:
            self.known[text] = PLAIN.outcomes([text], size)[0]
        return self.known[text]


class _Planted(Emulation):
    """An emulation with a defect: the last result of an all_to_all_single is another one."""

    right: _Right

    def outcomes(self, scripts, size):  # type: ignore[no-untyped-def]
        found = []
        for text in scripts:
            outcome = copy.deepcopy(self.right.known[text])
            if "dist.all_to_all_single(" in text:
                outcome[-1][-1][-1] = "[77]"
            found.append(outcome)
        return found


@pytest.mark.slow
def test_a_planted_defect_is_found_and_made_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _Planted.right = right = _Right()
    session = Session(right, ["numpy"], tmp_path, _Planted)
    steps = (Step("all_reduce"), Step("all_to_all_single", shape=(2,)), Step("barrier"))
    program = Program(5, 2, steps, joins=False)
    session.different(program, _Planted("numpy"), "a difference")
    assert session.counts["findings"] == 1
    written = (tmp_path / "finding-5-numpy.py").read_text()
    assert "dist.all_to_all_single(o0" in written and "all_reduce" not in written and "barrier" not in written
    assert "FOUND by seed 5 of 2 ranks" in capsys.readouterr().out
    session.different(program.without(1), _Planted("numpy"), "a difference")


FAULTY = Program(
    0,
    2,
    (
        Step("all_reduce", shape=(4,), wait=1),
        Step("gather", dtype="int32"),
        Step("all_gather", salt=3),
        Step("broadcast"),
        Step("all_to_all_splits"),
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_the_guilty_rank_and_its_line_are_named(name: str, tmp_path: Path) -> None:
    class Chosen:
        def choice(self, found):  # type: ignore[no-untyped-def]
            return name if name in found else found[-1]

    program = faulty(FAULTY, Chosen())  # type: ignore[arg-type]
    assert program is not None and program.fault is not None and program.fault.name == name
    script, file = script_of(program), tmp_path / "program.py"
    file.write_text(script.text)
    emulation = Emulation("numpy", ("--check",) if name == "unwaited" else ())
    status, said = emulation.run([str(file)], 2)
    assert shortcoming(program, script, status, said) is None, said


def test_a_coalesced_call_is_named_by_the_programs_line(tmp_path: Path) -> None:
    step = Step("coalesced_all_reduce")
    program = Program(0, 2, (step,), fault=Fault("op", 1, 0, ((0, replace(step, op="MAX")),)))
    script, file = script_of(program), tmp_path / "program.py"
    file.write_text(script.text)
    status, said = PLAIN.run([str(file)], 2)
    assert shortcoming(program, script, status, said) is None, said


def test_reports_that_name_nobody_or_another_one_are_findings() -> None:
    fault = Fault("dtype", 1, 0, ((0, Step("broadcast", dtype="int64")),))
    program = Program(0, 2, (Step("broadcast"),), fault=fault)
    script = script_of(program)
    line = script.lines[0][1]
    for status, said in [
        (0, f"rank 1 at program.py:{line}"),
        (1, ""),
        (1, f"rank 0 at program.py:{line}"),
        (1, f"rank 1 at program.py:{line}0"),
        (1, f"internal error\nrank 1 at program.py:{line}"),
        (124, f"rank 1 at program.py:{line}"),
    ]:
        assert shortcoming(program, script, status, said), (status, said)
    for named in ("[rank1]: rank 1 calls it", "ranks 0 and 1 wait", "ranks 0-2 wait", "ranks 0, 1 and 3 wait"):
        assert shortcoming(program, script, 1, f"{named} at program.py:{line} in f") is None
    barriers = Program(0, 3, (Step("monitored_barrier", (1, 2)),), fault=Fault("exception", 2, 0, ((0, None),)))
    for number, named in [(1, True), (2, False)]:  # rank 2 is the group's rank 1
        said = f"RuntimeError: [Rank 0]: Rank {number} failed to pass monitoredBarrier in 1800000 ms"
        assert (shortcoming(barriers, script_of(barriers), 1, said) is None) is named


def test_nobody_is_named_who_was_to_set_a_key() -> None:
    said = "rank 0 waits for key 'k' of FileStore(the default store), which nobody has set, at program.py:1"
    for step, right in [(Step("store_set"), True), (Step("broadcast"), False)]:
        steps = (step, Step("all_reduce"))
        swapped = Program(0, 2, steps, fault=Fault("order", 1, 0, ((0, steps[1]), (1, steps[0]))))
        assert (shortcoming(swapped, script_of(swapped), 1, said) is None) is right


def test_only_who_sets_a_key_may_leave_that_out() -> None:
    program = Program(0, 3, (Step("store_compare_set", root=2),))
    assert [rank for rank in range(3) if list(FAULTS["skipped"](program, 0, rank))] == [2]
