"""The Go core's exported functions: the list, their documentation, and that no argument crashes the process."""

from __future__ import annotations

import contextlib
import itertools
import math
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from torchemu import errors
from torchemu.bridge.binding import EXPORTED, arguments, go

GOLDEN = ROOT / "tests" / "golden" / "exports.txt"
FUZZ = Path(__file__).with_name("fuzz_core.py")

HANDLES = (0, -1, 1 << 62)
STRINGS = ("", "\x1f", "é" * 300, "%s%n", "1,2,x", "nil")
LISTS: tuple[tuple[int, ...], ...] = ((), (0,), (1 << 62, -1), (1, 7, 1), tuple(range(99)))
# Letting go of what is gone does nothing, and an exploration is full or not.
TOLERANT = {"CloseWorld", "NewExploration", "PrimClose", "Release"}
MAY_BE_GONE = {"ReleaseEnded"}  # numbers of a World that is closed are right, and those of none are wrong


def signature(name: str) -> str:
    """A function, as gopy documents it: "AllReduce(long group, int rank, long t, str op) long work, str err"."""
    return (getattr(go, name).__doc__ or "").split("\n")[0].strip()


def kinds(name: str) -> list[str]:
    """The types of what the function takes: long (a handle, an address or a time), int, float, str, bool, list."""
    return [kind for kind, _ in arguments(name)]


def test_exports_are_the_golden_list(request: pytest.FixtureRequest) -> None:
    """A change is one of the interface between Go and Python: `pytest tests/python -k golden --rewrite` accepts it."""
    exports = "".join(f"{signature(name)}\n" for name in EXPORTED)
    if request.config.getoption("--rewrite"):
        GOLDEN.write_text(exports)
    assert exports == GOLDEN.read_text(), "pytest tests/python -k golden --rewrite accepts this"


@pytest.mark.parametrize("name", EXPORTED)
def test_every_export_is_documented(name: str) -> None:
    text = getattr(go, name).__doc__.split("\n", 1)[1].strip()
    assert text.startswith(f"{name} "), "Go's convention: the sentence begins with the name"
    assert text.endswith(".")


@pytest.mark.parametrize("name", EXPORTED)
def test_garbage_is_an_exception(name: str) -> None:
    choices = {
        "long": HANDLES, "int": (0, -1, 1 << 62), "float": (0.0, math.nan), "str": STRINGS, "bool": (False, True),
        "list": LISTS,
    }  # fmt: skip
    parameters = kinds(name)
    for given in itertools.islice(itertools.product(*(choices[k] for k in parameters)), 500):
        if not given or name in TOLERANT:
            getattr(go, name)(*given)
            continue
        if name in MAY_BE_GONE:
            with contextlib.suppress(RuntimeError, ValueError):
                getattr(go, name)(*given)
            continue
        with pytest.raises((RuntimeError, ValueError)) as raised:
            getattr(go, name)(*given)
        assert not isinstance(raised.value, errors.InternalError), given


@pytest.mark.parametrize("name", EXPORTED)
def test_wrong_types_and_counts_are_exceptions(name: str) -> None:
    count = len(kinds(name))
    for given in [(None,) * count, (1.5,) * count, (b"x",) * count, ([],) * count, (object(),) * (count + 1)]:
        if given and not (kinds(name) == ["list"] and given == ([],)):  # an empty list is one
            with pytest.raises(TypeError):
                getattr(go, name)(*given)


def test_text_that_c_cannot_carry_is_an_exception() -> None:
    for text in ("a\0b", "\ud800"):
        with pytest.raises(ValueError, match=r"null|surrogates"):
            go.OpenWorld(text, "")


def test_random_calls_do_not_crash() -> None:
    """With handles of all kinds in all places, in a process of their own."""
    command = [sys.executable, FUZZ, "20261120", "20000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    assert "seed " in done.stdout
