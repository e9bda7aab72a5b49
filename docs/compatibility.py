"""Writes the table of what runs on which front end into docs/start.md, from the tests that show it: `make reference`.

A test, or all of a file, that shows that something runs says so with ``pytest.mark.shows("KIND: THING")``. Those in
tests/python/frontends/torch and tests/python/libraries are run with the installed PyTorch, and all others on the NumPy
front end.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests" / "python"
PAGE = ROOT / "docs" / "start.md"
FRONT_ENDS = ("NumPy", "the installed PyTorch")
WITH_PYTORCH = (TESTS / "frontends" / "torch", TESTS / "libraries")
KINDS = ("programs", "libraries", "PyTorch")
PART = re.compile(r"(?<=<!-- made by docs/compatibility.py -->\n).*?(?=<!-- end -->\n)", re.DOTALL)


def shown(file: Path) -> Iterator[str]:
    """Yields what the tests of a file say that they show.

    Raises:
        ValueError: the mark is on no test, or says no kind.
    """
    for node in ast.parse(file.read_text()).body:
        is_test = isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        marks = node.decorator_list if isinstance(node, ast.FunctionDef) else [node]
        for mark in marks:
            for text in _texts(mark):
                is_of_all = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
                if not (is_test or is_of_all) or text.partition(": ")[0] not in KINDS:
                    raise ValueError(f"{file}:{node.lineno}: no test shows {text!r}, or it is none of {KINDS}")
                yield text


def _texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.shows":
            yield from (ast.literal_eval(argument) for argument in node.args)


def rows() -> dict[str, tuple[set[Path], set[Path]]]:
    """Returns what is shown, and for each front end the files of the tests that show it."""
    found: dict[str, tuple[set[Path], set[Path]]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        for text in shown(file):
            column = any(folder in file.parents for folder in WITH_PYTORCH)
            found.setdefault(text, (set(), set()))[column].add(file)
    return found


def table() -> str:
    """Returns the lines of the table."""
    found = rows()
    lines = [f"| | {' | '.join(FRONT_ENDS)} |", "|---|---|---|"]
    for kind in KINDS:
        lines.append(f"| **{kind}** | | |")
        for text in sorted((t for t in found if t.startswith(f"{kind}: ")), key=str.lower):
            cells = (" ".join(map(_link, sorted(files))) for files in found[text])
            lines.append(f"| {text.partition(': ')[2]} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _link(file: Path) -> str:
    """One test file: a tick that leads to it."""
    return f"[✓](../{file.relative_to(ROOT).as_posix()})"


def page() -> str:
    """Returns the page with the table of now."""
    text, count = PART.subn(lambda _: table(), PAGE.read_text())
    if count != 1:
        raise ValueError(f"{PAGE}: there is no place for the table")
    return text


if __name__ == "__main__":
    PAGE.write_text(page())
