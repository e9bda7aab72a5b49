"""The programs of planted/symmetric.py: right ones are clean in any order, defects are reported by their lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from planted import marks, symmetric
from planted.runs import run
from sampling import sampled

pytestmark = pytest.mark.shows("PyTorch: symmetric memory")

WRONG = [(name, defect) for name, text in symmetric.PROGRAMS.items() for defect in marks.defects(text)]


@pytest.mark.parametrize("name", sampled(symmetric.PROGRAMS, 8))
def test_right_programs_are_clean_in_any_order(name: str, tmp_path: Path) -> None:
    text = marks.planted(symmetric.BEGIN + symmetric.PROGRAMS[name])
    for flags in ((), ("--check", "--reorder", "7")):
        status, said = run(tmp_path, text, *flags)
        assert status == 0 and "Warning" not in said, (flags, said)


@pytest.mark.parametrize(("name", "defect"), sampled(WRONG, 16))
def test_a_planted_defect_is_reported(name: str, defect: str, tmp_path: Path) -> None:
    text = symmetric.BEGIN + symmetric.PROGRAMS[name]
    status, said = run(tmp_path, marks.planted(text, defect), "--check")
    wanted, found = marks.named(text, defect), marks.reports(said)
    if defect.startswith("beyond"):
        found = [
            {int(n)} for n in re.findall(r"KernelError: kernel .* failed at .*program\.py:(\d+): ValueError", said)
        ]
    assert status and found and found[0] and found[0] <= wanted, (wanted, found, said)


ASTRAY = """
@triton.jit
def pass_on(pads, pad, to, rank: tl.constexpr):
    theirs = tl.load(pads.to(tl.pointer_type(tl.uint64)) + to).to(tl.pointer_type(tl.uint32))
    if rank == 0: tl.atomic_add(theirs, 1, sem="release", scope="sys")
    else:
        while tl.atomic_add(pad, 0, sem="acquire", scope="sys") == 0: pass
t, hdl = met(8)
if rank < 2: pass_on[(1,)](hdl.signal_pad_ptrs_dev, hdl.get_signal_pad(rank, dtype=torch.uint32), 3, rank)
torch.cuda.synchronize()
"""


def test_a_signal_that_goes_to_another_rank_is_named(tmp_path: Path) -> None:
    status, said = run(tmp_path, symmetric.BEGIN + ASTRAY)
    word = r'the word at \+0 of its window "signal pads of symmetric memory 1 of group 0", to which no signal has come'
    sent = r"and the fetch_add of rank 0 at program\.py:\d+ has come to that of rank 3, which does not wait for it"
    found = re.search(
        rf"likely cause: a signal has gone to another rank: rank 1 waits at program\.py:\d+ for {word}, {sent}", said
    )
    assert status and found, said


CIRCLE = """
@triton.jit
def meet_late(pads, pad, to, rank: tl.constexpr):
    while tl.atomic_add(pad, 0, sem="acquire", scope="sys") == 0: pass
    tl.atomic_add(tl.load(pads.to(tl.pointer_type(tl.uint64)) + to).to(tl.pointer_type(tl.uint32)), 1, scope="sys")
t, hdl = met(8)
pad = hdl.get_signal_pad(rank, dtype=torch.uint32)
pad.zero_()
hdl.barrier(channel=7)
meet_late[(1,)](hdl.signal_pad_ptrs_dev, pad, (rank + 1) % world, rank)
t.fill_(1)
t.cpu()
"""


def test_what_hosts_have_put_off_is_not_what_sends(tmp_path: Path) -> None:
    status, said = run(tmp_path, symmetric.BEGIN + CIRCLE)
    assert status and "separate dispatches" not in said, said
    assert re.search(r"likely cause: .*they wait for each other in a circle", said), said
