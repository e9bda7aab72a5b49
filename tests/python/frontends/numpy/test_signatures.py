"""Functions, methods and classes are called as PyTorch's are."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from torchemu.c10d.reduce_op import RedOpType

DATA = Path(__file__).parents[2] / "data"
SIGNATURES = DATA / "torch_distributed_signatures_2_11.txt"

PACKAGES = [
    "torch.distributed",
    "torch.multiprocessing",
]

OTHERWISE = {
    "torch.distributed.ProcessGroupGloo.alltoall": "output_tensors instead of output_tensor",
    "torch.distributed.ProcessGroupNCCL.alltoall": "output_tensors instead of output_tensor",
}
"""Parameters of other names: these have those of ProcessGroup.alltoall."""


def lines() -> list[str]:
    """Returns what PyTorch has, a line for each."""
    return [line for line in SIGNATURES.read_text().splitlines() if not line.startswith("#")]


def found(name: str) -> Any:
    """Returns what a program has under a name."""
    package = max((p for p in PACKAGES if name.startswith(f"{p}.")), key=len)
    thing = importlib.import_module(package.replace("torch", "torchemu", 1))
    return functools.reduce(getattr, name[len(package) + 1 :].split("."), thing)


def shown(value: Any) -> str:
    return f"ReduceOp.{value.name}" if isinstance(value, RedOpType) else repr(value)


def split(text: str) -> list[str]:
    """The parameters of "(a, b=(), *, c=1)"."""
    return [part for part in re.split(r", (?![^()]*\))", text[1:-1]) if part]


def described(parameter: inspect.Parameter) -> str:
    mark = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    name = mark + parameter.name
    return name if parameter.default is parameter.empty else f"{name}={shown(parameter.default)}"


def wrong(given: list[inspect.Parameter], wanted: list[str]) -> str:
    """Returns the faults of parameters; empty for none. There may be more of them, which need not be given, and more of
    them may have defaults."""
    public = [p for p in given if not p.name.startswith("_")]
    names = [w for w in wanted if w != "*"]
    behind = next((i for i, w in enumerate(wanted) if w.startswith("*") and w != "**kwargs"), len(wanted))
    for i, want in enumerate(names):
        if i >= len(public):
            return f"{want} is missing"
        have = described(public[i])
        some = want.endswith("=...") and have.split("=")[0] == want[:-4] and "=" in have
        if have != want and not some and have.split("=")[0] != want:
            return f"{have} instead of {want}"
        only = public[i].kind is inspect.Parameter.KEYWORD_ONLY
        if not want.startswith("*") and only != (i >= behind) and "*size" not in names:
            return f"{want} by its name only"
    more = public[len(names) :]
    needed = [p.name for p in more if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return f"{needed} must be given too" if needed else ""


@pytest.mark.parametrize("line", lines())
def test_is_called_as_in_pytorch(line: str) -> None:
    name, parenthesis, rest = line.partition("(")
    thing = found(name)
    assert callable(thing)
    if parenthesis:
        given = list(inspect.signature(thing).parameters.values())
        assert wrong(given, split(parenthesis + rest)) == OTHERWISE.get(name, "")


def test_the_test_finds_what_differs() -> None:
    def function(a: int, b: int = 2, *, c: int = 3) -> None:
        pass

    given = list(inspect.signature(function).parameters.values())
    for same in ("(a, b=2, *, c=3)", "(a, b=2)", "(a)", "(a, b)", "()", "(a, b=...)"):
        assert wrong(given, split(same)) == ("['a'] must be given too" if same == "()" else "")
    for other, text in {
        "(x, b=2)": "a instead of x",
        "(a, b=1)": "b=2 instead of b=1",
        "(a, b=2, c=3)": "c=3 by its name only",
        "(a, *, b=2)": "b=2 by its name only",
        "(a, b=2, *, c=3, d=4)": "d=4 is missing",
        "(a=...)": "a instead of a=...",
    }.items():
        assert wrong(given, split(other)) == text
    assert split("(x, args=(), y=(1, 2), *, z='a')") == ["x", "args=()", "y=(1, 2)", "*", "z='a'"]
