"""Words that are loaded together: those that a kernel compares, or may compare, are flags for the others."""

from __future__ import annotations

import ast

import pytest

from torchemu.frontends.triton._packed import Uses


@pytest.mark.parametrize(
    ("statements", "data"),
    [
        ("st(out, a + b)", (0, 1, 2, 3)),
        ("while f != 1: a, f, b, g = load_v4_u32(p)", (2, 3)),
        ("while f != 1 or g != 1: a, f, b, g = load_v4_u32(p)", ()),
        ("s = f + g\nwhile s < 2: pass", ()),
        ("s = f\nt = s * 2\nst(out, tl.where(t == 4, a, 0))", (2, 3)),
        ("have_come(f, g)", ()),
        ("s = have_come(f)\nif s: st(out, a)", (2, 3)),
        ("return a, f", (2, 3)),
        ("total += a\nst(out, total)", (0, 1, 2, 3)),
        ("total += a\nassert total > 0", (2, 3)),
        ("x[0] = g", (0, 1)),
    ],
)
def test_words_of_data(statements: str, data: tuple[int, ...]) -> None:
    text = "def kernel(p, out, x, total):\n  a, f, b, g = load_v4_u32(p)\n  " + statements.replace("\n", "\n  ")
    kernel = ast.parse(text).body[0]
    assert isinstance(kernel, ast.FunctionDef) and isinstance(kernel.body[0], ast.Assign)
    assert Uses(kernel).words_of_data(kernel.body[0]) == data


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("a, b = lang.load_v2_b64(p)", (0, 1)),
        ("words = load_v2_u32(p)", (0, 1)),
        ("x[0], b = load_v2_u32(p)", ()),
        ("a, b = load(p)", ()),
    ],
)
def test_loads_of_which_nothing_is_compared(text: str, data: tuple[int, ...]) -> None:
    kernel = ast.parse("def kernel(p, x):\n  " + text).body[0]
    assert isinstance(kernel, ast.FunctionDef) and isinstance(kernel.body[0], ast.Assign)
    assert Uses(kernel).words_of_data(kernel.body[0]) == data
