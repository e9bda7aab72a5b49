"""Numbers that a program has found in a word, for the checker: what they are compared with, and where they are stored.

A look whose number is compared once, and not used otherwise, is a wait that the program makes itself: it might have
gone the same way with what the word was before. Who stores in the word what it has made of a number that it has not
compared has done no atomic addition.
"""

from __future__ import annotations

import ast
import linecache
import operator
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

from torchemu.bridge.binding import go
from torchemu.language._program import LANGUAGE, Program

Place = tuple[int | None, int | None, int | None, int | None]
"""Where an expression begins and ends: lines, columns."""


class Look:
    """A look at a word.

    Attributes:
        program: whose it is.
        word: the word's address and size.
        text: the comparison that is all for which the program uses what it has found; "" where there is more.
        decided: the program has compared what it has found, or what it has made of that.
    """

    __slots__ = ("decided", "program", "text", "word")

    def __init__(self, program: Program, word: tuple[int, int], text: str) -> None:
        self.program, self.word, self.text, self.decided = program, word, text, False

    def compared(self, holds: Callable[[int], bool], result: bool) -> None:
        """Tells the checker of an earlier value of the word with which a comparison would have had this result."""
        self.decided, program = True, self.program
        if not self.text or program.fetched.get(self.word[0]) is not self:
            return
        for value in go.PrimPast(program.handle, *self.word):
            if holds(value) == result:
                go.PrimSuffices(program.handle, program.line(), *self.word, value, self.text)
                return


class Derived(int):
    """A number that has been found in a word, or is made of one that has.

    Attributes:
        look: the look.
    """

    look: Look

    __hash__ = int.__hash__


class Looked(Derived):
    """A number that has been found in a word."""


def found(value: int, look: Look) -> int:
    """Returns what a look has found."""
    number = Looked(value)
    number.look = look
    return number


def note_update(program: Program, word: tuple[int, int], value: Any) -> None:
    """Tells the checker that a program is about to store in a word what it has made of a look at it."""
    if isinstance(value, Derived) and not value.look.decided and value.look.word == word:
        go.PrimDerives(program.handle, *word)


def _derived(name: str) -> Any:
    operate = getattr(int, name)

    def method(self: Derived, *others: Any) -> Any:
        result = operate(self, *others)
        if result is NotImplemented:
            return result
        number = Derived(result)
        number.look = self.look
        return number

    return method


def _compared(name: str) -> Any:
    operate, plain = getattr(operator, name), getattr(int, f"__{name}__")

    def method(self: Derived, other: Any) -> Any:
        result = plain(self, other)
        self.look.decided = True
        if result is not NotImplemented and type(self) is Looked:
            self.look.compared(lambda value: operate(value, other), result)
        return result

    return method


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "and", "rand", "or", "ror", "xor", "rxor"):
    setattr(Derived, f"__{_name}__", _derived(f"__{_name}__"))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Derived, f"__{_name}__", _compared(_name))


# -- what a program does with what it finds


def comparison() -> str:
    """Returns the comparison for which alone the program's call into this package is there; "" if there is more."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(LANGUAGE):
        frame = frame.f_back
    known = _known.get(id(frame.f_code))
    if known is None:
        known = _known[id(frame.f_code)] = frame.f_code, _comparisons(frame.f_code.co_filename)
    return known[1].get(_place(frame), "")


def _place(frame: FrameType) -> Place:
    for i, (line, end, column, last) in enumerate(frame.f_code.co_positions()):
        if 2 * i == frame.f_lasti:
            return line, end, column, last
    return None, None, None, None


_known: dict[int, tuple[CodeType, dict[Place, str]]] = {}
"""The comparisons of a program's file, by the code that has asked: that is kept, so that no other gets its number."""


def _comparisons(file: str) -> dict[Place, str]:
    linecache.checkcache(file)
    text = "".join(linecache.getlines(file))
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return {}
    found: dict[Place, str] = {}
    for call, compare in _compared_once(tree):
        found[call.lineno, call.end_lineno, call.col_offset, call.end_col_offset] = ast.unparse(compare)
    return found


def _compared_once(tree: ast.AST) -> Iterator[tuple[ast.Call, ast.Compare]]:
    """Yields the calls whose value is an operand of one comparison, at once or by a name, and nothing else."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        parent: ast.AST | None = parents[node]
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
            parent = _only_use(parent.targets[0], parents)
        if isinstance(parent, ast.Compare) and len(parent.ops) == 1:
            yield node, parent


def _only_use(name: ast.Name, parents: dict[ast.AST, ast.AST]) -> ast.AST | None:
    """The only place where a name of a function is looked at; None where there are others, or it is no local one."""
    function = parents[name]
    while not isinstance(function, ast.FunctionDef):
        if function not in parents:
            return None
        function = parents[function]
    uses = []
    for node in ast.walk(function):
        if isinstance(node, ast.Global | ast.Nonlocal) and name.id in node.names:
            return None
        if isinstance(node, ast.Name) and node.id == name.id and not isinstance(node.ctx, ast.Store):
            uses.append(parents[node])
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name.id:
            return None
    return uses[0] if len(uses) == 1 else None
