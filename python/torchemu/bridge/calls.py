"""Calls of collectives, as they cross to the Go core: a number each, and pieces."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.bridge.ints import NOTHING, Ints, Pieces


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A call of a collective, without its tensors. The core knows it by a number. Use ``Call.of``, which gives the same
    call for the same arguments.

    Attributes:
        name: of the function that the program called.
        kind: what the core does; see c10d.ops.
        op: the core's name of the reduction; "" without one.
        root: a group rank; 0 without one.
        factor: what the rank's elements are multiplied by before they are reduced; None for nothing.
        algorithm: the one that the program asks for; "" for the one that is configured.
        number: the core's.

    Raises:
        ValueError: no such kind, or reduction.
    """

    name: str
    kind: str
    op: str = ""
    root: int = 0
    factor: float | None = None
    algorithm: str = ""
    number: int = field(init=False)
    _handle: Handle = field(init=False, repr=False)

    def __post_init__(self) -> None:
        scaled = self.factor is not None
        number = go.DefineCall(self.name, self.kind, self.op, scaled, self.factor or 0.0, self.root, self.algorithm)
        object.__setattr__(self, "number", number)
        object.__setattr__(self, "_handle", Handle(number))

    @staticmethod
    def of(name: str, kind: str, op: str = "", root: int = 0, factor: float | None = None, algorithm: str = "") -> Call:
        """The call with these attributes. Programs make few calls many times, but there may be a new factor each time:
        those with one are not kept."""
        if factor is not None:
            return Call(name, kind, op, root, factor, algorithm)
        key = (name, kind, op, root, algorithm)
        known = _known.get(key)
        if known is None:
            known = _known[key] = Call(name, kind, op, root, None, algorithm)
        return known


_known: dict[tuple[str, str, str, int, str], Call] = {}

Side = int | Pieces
"""A rank's part in a call: the handle of a tensor, 0 for nothing, or pieces."""


def issue(group: int, stream: int, site: int, waits: bool, call: Call, out: Side, given: Side) -> int:
    """Issues a collective by the rank whose stream is given.

    Args:
        group, stream: their handles.
        site: the number of the place in the program.
        waits: the program waits by itself; without it the stream does.
        out, given: what the rank receives and gives.

    Returns:
        The handle of the work; 0 where the stream waits.
    """
    if type(out) is int and type(given) is int:
        work: int = go.Issue(group, stream, site, waits, call.number, out, given)
    else:
        work = go.IssuePieces(group, stream, site, waits, call.number, as_ints(out), as_ints(given))
    return work


def as_ints(side: Side) -> Ints:
    """A region, also of one tensor or nothing."""
    if isinstance(side, Ints):
        return side
    return Pieces([side]) if side else NOTHING
