"""Compares what ranks kept."""

from __future__ import annotations

import ast
from typing import Any

from fuzz.emulated import Outcome


def difference(expected: Outcome, got: Outcome) -> str | None:
    """Returns the first difference of two outcomes, element by element; None: there is none."""
    if isinstance(got, str) or isinstance(expected, str):
        return None if got == expected else str(got if isinstance(got, str) else expected)
    for rank, (wanted, have) in enumerate(zip(expected, got, strict=True)):
        if len(wanted) != len(have):
            return f"rank {rank} kept {len(have)} results, not {len(wanted)}"
        for a, b in zip(wanted, have, strict=True):
            if a != b:
                return f"rank {rank}, step {a[0]}: {_element(a, b)}"
    return None


def _element(wanted: list[Any], have: list[Any]) -> str:
    if wanted[1:-1] != have[1:-1] or len(wanted) == 2:
        return f"{have[1:]}, not {wanted[1:]}"
    for k, (a, b) in enumerate(zip(_numbers(wanted[-1]), _numbers(have[-1]), strict=True)):
        if repr(a) != repr(b):
            return f"element {k} is {b}, not {a}, of {have[1]}{have[2]}"
    return "texts of equal numbers differ"


def _numbers(text: str) -> list[Any]:
    return list(ast.literal_eval(text.replace("nan", "'nan'").replace("inf", "'inf'")))
