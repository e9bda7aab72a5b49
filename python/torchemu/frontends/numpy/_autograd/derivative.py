"""Parts of an operation's derivative. See the package for an example."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

RESULT = -1
"""Among what a formula looks at: the result of the call, or the results."""

EVERYTHING = -2
"""Among what a formula looks at: all operands."""

OTHERS = -3
"""Among what a formula looks at: all operands but the first."""

LATER = -4
"""Among what a formula looks at: all results but the first, which programs may then write into."""


class Partial:
    """The rule for the gradient of one operand.

    Args:
        formula: calculates it, from the call (``_autograd.call.Call``) and the gradients of the results (None:
            zeros); None is zeros too.
        uses: the numbers of the operands that it looks at as ``call[0]``, …, or EVERYTHING or OTHERS; and RESULT if at
            ``call.result``, or LATER if at ``call.results[1]``, ….
    """

    __slots__ = ("formula", "uses")

    def __init__(self, formula: Callable[..., Any], *uses: int) -> None:
        self.formula, self.uses = formula, uses


class Derivative:
    """The partial derivatives of an operation, in the order of its operands; those behind the last have none.

    An operation that writes into a tensor has that, as it was before, as its first operand.
    """

    __slots__ = ("_known", "partials")

    def __init__(self, *partials: Partial) -> None:
        self.partials = partials
        self._known: dict[tuple[bool, ...], frozenset[int]] = {}  # what uses returns

    def uses(self, needs: Sequence[bool]) -> frozenset[int]:
        """Returns what the formulas of the operands whose gradients are needed look at."""
        key = tuple(needs)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = frozenset(_written_out(self._used(key), len(key)))
        return known

    def _used(self, needs: Sequence[bool]) -> set[int]:
        pairs = zip(self.partials, needs, strict=False)
        return {used for partial, needed in pairs if needed for used in partial.uses}

    def gradients(self, call: Any, grads: Sequence[Any]) -> list[Any]:
        """The gradients of the operands, None where none is needed or there is none."""
        found = [
            partial.formula(call, *grads) if needed else None
            for partial, needed in zip(self.partials, call.needs, strict=False)
        ]
        return found + [None] * (len(call.needs) - len(found))


class Joint(Derivative):
    """A derivative whose formula finds the gradients of all operands at once, and returns a sequence of them.

    Args:
        formula: as that of Partial; ``call.needs`` tells which gradients are needed.
        uses: as those of Partial.
    """

    __slots__ = ("_formula", "_uses")

    def __init__(self, formula: Callable[..., Any], *uses: int) -> None:
        super().__init__()
        self._formula, self._uses = formula, uses

    def _used(self, needs: Sequence[bool]) -> set[int]:
        return set(self._uses)

    def gradients(self, call: Any, grads: Sequence[Any]) -> list[Any]:
        """The gradients of the operands."""
        return list(self._formula(call, *grads))


def _written_out(used: set[int], operands: int) -> set[int]:
    if EVERYTHING in used or OTHERS in used:
        used = used | set(range(EVERYTHING not in used, operands))
    return used
