"""Calls of collectives go through here: the checks that are the same for all, and the way to the Go core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from torchemu.bridge.calls import Call
from torchemu.c10d.blocks import Blocks
from torchemu.c10d.checks import (
    check_dtypes,
    check_place,
    check_root,
    check_tensor,
    refuse_shards,
)
from torchemu.c10d.group import Group
from torchemu.c10d.groups import group_rank_of, member
from torchemu.c10d.issue import issue
from torchemu.c10d.ops import OPS
from torchemu.c10d.work import Work
from torchemu.runtime.buffer import Buffer


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective that programs call.

    Attributes:
        name: of the function, as c10d.ops has it.
        mixed: its own checks look at the dtypes; otherwise all must be the same.
        takes_shards: a single worker's shards can call it.
    """

    name: str
    mixed: bool = False
    takes_shards: bool = False
    _calls: dict[tuple[str, int], Call] = field(default_factory=dict, init=False, repr=False, compare=False)

    def entered(self, group: Group | None, **given: Any) -> Group | None:
        """The group in which the rank calls it, with what it gives and receives, by the names of the parameters; None,
        after a warning, on a rank that is not in the group.

        Raises:
            TypeError: not a tensor.
            ValueError: no process group; several dtypes; a tensor is on another device than the rank.
            RuntimeError: the group's backend is for other devices, or the group is in another World.
            NotImplementedError: over a single worker's shards, where it does not take them.
        """
        different = {parameter: _different(value, parameter) for parameter, value in given.items()}
        if not self.mixed:
            check_dtypes(chain.from_iterable(different.values()))
        ranks = member(group, self.name)
        if ranks is None:
            return None
        if not self.takes_shards:
            refuse_shards(ranks, self.name)
        for parameter, tensors in different.items():
            check_place(ranks, parameter, tensors)
        return ranks

    def entered_with(self, group: Group | None, tensor: Any) -> Group | None:
        """Acts as entered, for the parameter ``tensor`` alone."""
        buffer = check_tensor(tensor, "tensor")
        ranks = member(group, self.name)
        if ranks is not None:
            if not self.takes_shards:
                refuse_shards(ranks, self.name)
            check_place(ranks, "tensor", (buffer,))
        return ranks

    def root(self, ranks: Group, global_rank: int | None, group_rank: int | None) -> int:
        """The group rank of the root, which a call names in one of two ways.

        Raises:
            ValueError: in both, or in none; the rank is not in the group.
            RuntimeError: no such rank.
        """
        root = group_rank_of(ranks, global_rank, group_rank)
        check_root(ranks, self.name, root)
        return root

    def issue(
        self,
        ranks: Group,
        tensors: tuple[Sequence[Any], Sequence[Any]],
        async_op: bool,
        outputs: list[Any],
        op: str = "",
        factor: float | None = None,
        root: int = 0,
    ) -> Work | None:
        """Issues it.

        Args:
            ranks: the group, as entered gave it.
            tensors: what the rank receives, and what it gives; empty where it does not.
            async_op: return a work; without it the current stream waits for the collective, the host does not.
            outputs: what the work's result is.
            op: the core's name of the reduction.
            factor: what the rank's elements are multiplied by before they are reduced; None for nothing.
            root: a group rank.
        """
        call = self._calls.get((op, root)) if factor is None else None
        return issue(ranks, call or self._call(op, factor, root), tensors, async_op, outputs)

    def _call(self, op: str, factor: float | None, root: int) -> Call:
        call = Call.of(self.name, OPS[self.name].kind.name, op, root, factor)
        if factor is None:
            self._calls[op, root] = call
        return call


def _different(value: Any, parameter: str) -> Sequence[Buffer]:
    """Returns the buffers that there are to look at. Raises TypeError for what is no tensor."""
    return value.different if isinstance(value, Blocks) else (check_tensor(value, parameter),)
