"""Imports of the Python package go downwards only; see floors.txt."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import ROOT

PACKAGE = ROOT / "python" / "torchemu"
TABLE = Path(__file__).with_name("floors.txt")


@dataclass(frozen=True)
class Floors:
    """The table.

    Attributes:
        numbers: the floor of each part.
        left: for each part, those of its floor that it may import.
        climbing: the pairs of parts of which the first imports the second although it lies higher.
    """

    numbers: dict[str, int]
    left: dict[str, frozenset[str]]
    climbing: frozenset[tuple[str, str]]

    def part(self, module: str) -> str:
        """The listed part that a module, as a path below torchemu, belongs to."""
        steps = module.split("/")
        shortest = 2 if steps[0] == "frontends" and len(steps) > 1 else 1
        for end in range(len(steps), shortest - 1, -1):
            if "/".join(steps[:end]) in self.numbers:
                return "/".join(steps[:end])
        if shortest == 2:
            return "frontends/*"
        raise AssertionError(f"{module} has no place in {TABLE.name}")

    def allows(self, importer: str, imported: str) -> bool:
        """Reports whether a module may import another."""
        a, b = self.part(importer), self.part(imported)
        if "frontends/*" in (a, b) and a == b:
            return importer.split("/")[:2] == imported.split("/")[:2]
        return a == b or self.numbers[b] < self.numbers[a] or b in self.left[a]


def parsed(text: str) -> Floors:
    numbers: dict[str, int] = {}
    left: dict[str, set[str]] = {}
    climbing = set()
    for line in filter(None, (line.partition("#")[0].strip() for line in text.splitlines())):
        if line.startswith("!"):
            importer, _, imported = line[1:].partition("->")
            climbing.add((importer.strip(), imported.strip()))
            continue
        number, _, chains = line.partition(" ")
        for chain in chains.split(";"):
            before: list[str] = []
            for part in map(str.strip, chain.split("<")):
                assert numbers.setdefault(part, int(number)) == int(number), f"{part} is on two floors"
                left.setdefault(part, set()).update(before)
                before.append(part)
    return Floors(numbers, {part: frozenset(parts) for part, parts in left.items()}, frozenset(climbing))


@dataclass(frozen=True)
class Import:
    """One module's import of another, both as paths below torchemu; `.` is torchemu/__init__.py."""

    importer: str
    imported: str
    line: int


def modules() -> dict[str, Path]:
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        path = file.relative_to(PACKAGE).with_suffix("")
        if path.parts[0] != "_core":
            found[str(path.parent if path.name == "__init__" else path)] = file
    return found


def imports(known: dict[str, Path]) -> Iterator[Import]:
    for importer, file in known.items():
        for node in ast.walk(ast.parse(file.read_text())):
            for name in _names(node, importer, file.name == "__init__.py"):
                imported = _module(name, known)
                if imported is not None and imported != importer:
                    yield Import(importer, imported, node.lineno)  # type: ignore[attr-defined]


def _names(node: ast.AST, importer: str, is_package: bool) -> Iterable[str]:
    """The dotted names that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        steps = ["torchemu", *([] if importer == "." else importer.split("/"))]
        steps = steps[: len(steps) - node.level + is_package]
        base = ".".join([*steps, *([node.module] if node.module else [])])
    return [f"{base}.{alias.name}" for alias in node.names]


def _module(name: str, known: dict[str, Path]) -> str | None:
    """The path of the module that a dotted name is, or is in; None for those of others and for the core's binding."""
    top, _, inner = name.partition(".")
    if top != "torchemu" or inner.partition(".")[0] == "_core":
        return None
    steps = inner.split(".") if inner else []
    for end in range(len(steps), 0, -1):
        if "/".join(steps[:end]) in known:
            return "/".join(steps[:end])
    return "."


def test_imports_go_downwards() -> None:
    floors, known = parsed(TABLE.read_text()), modules()
    used, wrong = set(), []
    for found in imports(known):
        if floors.allows(found.importer, found.imported):
            continue
        pair = floors.part(found.importer), floors.part(found.imported)
        used.add(pair)
        if pair not in floors.climbing:
            wrong.append(f"{known[found.importer].relative_to(ROOT)}:{found.line} imports {found.imported}")
    assert not wrong, "imports that climb; see floors.txt:\n" + "\n".join(wrong)
    assert used == floors.climbing, f"no longer needed in floors.txt: {sorted(floors.climbing - used)}"


def test_nobody_else_imports_the_binding() -> None:
    known = modules()
    found = [name for name, file in known.items() if "torchemu._core" in file.read_text() and name != "bridge/binding"]
    assert found in ([], ["."]), "only bridge/binding imports the Go core"


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("runtime/tasks", "bridge/binding", True),
        ("bridge/binding", "runtime/tasks", False),
        ("runtime/tasks", "runtime/world", True),
        ("c10d/stores", "language/_launch", False),
        ("frontends/kernbench/tp/layers", "tp/layers", True),
        ("tp/layers", "frontends/kernbench/tp/layers", False),
        ("frontends/newcomer/names", "frontends/newcomer/front_end", True),
        ("frontends/newcomer/names", "frontends/other/names", False),
        ("frontends/newcomer/names", "c10d/stores", True),
        ("launch/command", "frontends/base", True),
        ("launch/command", ".", False),
    ],
)
def test_the_rule(importer: str, imported: str, allowed: bool) -> None:
    assert parsed(TABLE.read_text()).allows(importer, imported) is allowed


def test_a_part_without_a_place_is_named() -> None:
    with pytest.raises(AssertionError, match="newcomer/x has no place"):
        parsed(TABLE.read_text()).part("newcomer/x")
