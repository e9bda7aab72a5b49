"""PTX, as far as kernels write it inline: texts of instructions, and what the parts of an instruction say.

PTX is NVIDIA's assembly language. An instruction is ``@guard name.modifier.type operands;``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import ml_dtypes
import numpy as np

TYPES: dict[str, np.dtype] = {
    **{f"b{8 * n}": np.dtype(f"u{n}") for n in (1, 2, 4, 8)},
    **{f"u{8 * n}": np.dtype(f"u{n}") for n in (1, 2, 4, 8)},
    **{f"s{8 * n}": np.dtype(f"i{n}") for n in (1, 2, 4, 8)},
    **{f"f{8 * n}": np.dtype(f"f{n}") for n in (2, 4, 8)},
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "pred": np.dtype("u1"),
}
"""NumPy's types for those of PTX."""

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LABEL = re.compile(r"\s*([\w$%]+)\s*:(?!:)")
_BRACE = re.compile(r"\s*[{}]")
_STATEMENT = re.compile(r"\s*([^;]+);?", re.DOTALL)
_GUARD = re.compile(r"@(!?)\s*([%\w$]+)\s+")
_OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,]+")


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Attributes:
        text: it, as a program has it.
        guard: the predicate under which it is done; "" for none.
        negated: it is done where the predicate does not hold.
        name, modifiers: such as "atom", and ("global", "cas", "b32").
        operands: such as "$0", "%r1", "[$1+4]", "0".
    """

    text: str
    guard: str
    negated: bool
    name: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]

    def has(self, *modifiers: str) -> str:
        """Returns the first of some modifiers that it has; "" for none."""
        return next((m for m in modifiers if m in self.modifiers), "")

    @property
    def kind(self) -> np.dtype:
        """The type of its elements, which is its last one.

        Raises:
            NotImplementedError: it has none, or an unknown one.
        """
        for modifier in reversed(self.modifiers):
            if modifier in TYPES:
                return TYPES[modifier]
        raise NotImplementedError(f"inline assembly: {self.text!r} is not emulated: its type is not known")


@dataclass(frozen=True)
class Code:
    """A text of instructions.

    Attributes:
        labels: by name, the number of the instruction that follows.
    """

    instructions: tuple[Instruction, ...]
    labels: dict[str, int]

    @property
    def names(self) -> set[str]:
        """The names of its instructions."""
        return {one.name for one in self.instructions}


@cache
def parse(text: str) -> Code:
    """Reads a text of instructions.

    Raises:
        ValueError: some part of it is no instruction.
    """
    rest = _COMMENT.sub(" ", text).strip()
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    while rest:
        if found := _BRACE.match(rest):
            pass
        elif found := _LABEL.match(rest):
            labels[found[1]] = len(instructions)
        elif found := _STATEMENT.match(rest):
            statement = " ".join(found[1].split())
            if statement and not statement.startswith(".reg"):
                instructions.append(_instruction(statement))
        else:
            raise ValueError(f"inline assembly: {rest.split(chr(10))[0]!r} is no instruction")
        rest = rest[found.end() :].strip()
    return Code(tuple(instructions), labels)


def _instruction(text: str) -> Instruction:
    guard = _GUARD.match(text)
    body = text[guard.end() :] if guard else text
    head, _, operands = body.partition(" ")
    name, *modifiers = head.replace("::", "_").split(".")
    if not re.fullmatch(r"\w+", name):
        raise ValueError(f"inline assembly: {text!r} is no instruction")
    parts = tuple(part.strip() for part in _OPERAND.findall(operands) if part.strip())
    return Instruction(text, guard[2] if guard else "", bool(guard and guard[1]), name, tuple(modifiers), parts)


def number(text: str, kind: np.dtype) -> np.ndarray | None:
    """Returns a constant as one element of a type; None where the text is a register."""
    if match := re.fullmatch(r"0([fFdD])([0-9a-fA-F]+)", text):
        size = 4 if match[1] in "fF" else 8
        return np.array([int(match[2], 16)], f"u{size}").view(f"f{size}").astype(kind)
    if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", text):
        value = int(text.rstrip("U"), 0) if not re.fullmatch(r"-?0\d+U?", text) else int(text.rstrip("U"), 8)
        if kind.kind in "iu":
            return np.array([value % (1 << 8 * kind.itemsize)], f"u{kind.itemsize}").view(kind)
        return np.array([value]).astype(kind)
    if re.fullmatch(r"-?\d+\.\d*([eE][-+]?\d+)?", text):
        return np.array([float(text)]).astype(kind)
    return None
