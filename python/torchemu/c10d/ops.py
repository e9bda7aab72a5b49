"""The table of collectives, which is the core's: the kinds that there are, the functions by which programs call them,
and their names elsewhere. Every table that is keyed by a collective is derived from this one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from torchemu.bridge.binding import go


@dataclass(frozen=True, slots=True)
class Kind:
    """A row of the table of collectives.

    Attributes:
        name: in torch.distributed and in ccl.yaml.
        gathers: ranks give their own blocks of what others receive as a whole.
        scatters: ranks receive their own blocks of what others give as a whole.
        exchanges: every rank has a block for every rank.
        from_root, to_root: only the root gives, or receives.
        reduces: elements are combined.
        rooted: a call names a root.
        kernel: a device program can do it.
        passes: how often the share of the data that all ranks but one have passes through each rank's link; 0 where all
            of the data passes once.
    """

    name: str
    gathers: bool
    scatters: bool
    exchanges: bool
    from_root: bool
    to_root: bool
    reduces: bool
    rooted: bool
    passes: int
    kernel: bool

    @property
    def in_place(self) -> bool:
        """Returns whether all have whole vectors, so that programs give the tensor that they receive."""
        return not (self.gathers or self.scatters or self.exchanges)

    @property
    def blocks(self) -> tuple[bool, bool]:
        """Returns whether what is given, and what is received, has a block for each rank."""
        return self.scatters or self.exchanges, self.gathers or self.exchanges

    def bus_bandwidth(self, ranks: int) -> float:
        """The bus bandwidth of nccl-tests, as a multiple of the algorithm bandwidth."""
        return self.passes * ((ranks - 1) / ranks) if self.passes else 1.0


@dataclass(frozen=True, slots=True)
class Op:
    """A function by which programs call a kind of collective. A name that is "" there is not.

    Attributes:
        name: torch.distributed's.
        kind: what it comes to.
        method: of PyTorch's ProcessGroup and Backend.
        op_type: of PyTorch's works and fingerprints.
        hook: of what PyTorch's hooks are told; without one they are told the kind's.
        recorded: in the flight recorder's dumps.
        apiece: there, after an entry for each block, where blocks have several sizes.
        compares: which tensor PyTorch compares between ranks at the debug level DETAIL: "given", "received" or "".
        whole: blocks are in one tensor, not in a list.
        several: it is of several tensors in one go.
        silent: what is moved is no business of the program.
    """

    name: str
    kind: Kind
    method: str
    op_type: str
    hook: str
    recorded: str
    apiece: str
    compares: str
    whole: bool
    several: bool
    silent: bool


@dataclass(frozen=True, slots=True)
class Table:
    """The kinds and the functions, by their names."""

    kinds: dict[str, Kind]
    ops: dict[str, Op]

    @classmethod
    def read(cls, document: str) -> Table:
        """The table from the core's JSON."""
        found = json.loads(document)
        kinds = {row["name"]: _kind(row) for row in found["kinds"]}
        ops = {row["name"]: _op(row, kinds[row["kind"]]) for row in found["calls"]}
        return cls(kinds, ops)

    def op(self, name: str, kind: str) -> Op:
        """The function of a name that has a method; otherwise the one that is called as its kind."""
        op = self.ops.get(name)
        return op if op is not None and op.method else self.ops[kind]

    def told(self, name: str, kind: str) -> str:
        """The name by which hooks are told of a call: its own, or its kind's."""
        op = self.ops.get(name)
        return name if op is not None and op.hook else kind

    def methods(self) -> list[str]:
        """The methods of process groups and backends that do collectives."""
        return [op.method for op in self.ops.values() if op.method]


def _kind(row: dict[str, Any]) -> Kind:
    starts, ends = row["starts"], row["ends"]
    return Kind(
        name=row["name"],
        gathers=starts["share"] == "block",
        scatters=ends["share"] == "block",
        exchanges=starts["share"] == "blocks",
        from_root=starts["root"],
        to_root=ends["root"],
        reduces=row["reduces"],
        rooted=row["rooted"],
        passes=row["passes"],
        kernel=row["kernel"],
    )


def _op(row: dict[str, Any], kind: Kind) -> Op:
    own = {field: row[field] for field in Op.__slots__ if field not in ("kind", "recorded")}
    return Op(kind=kind, recorded=row["recorded"] or row["name"], **own)


TABLE = Table.read(go.CollectiveTable())
"""All of it."""

KINDS, OPS = TABLE.kinds, TABLE.ops
"""Its parts."""
