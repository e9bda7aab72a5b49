"""Which ranks form groups, in any order of the kinds of parallelism."""

from __future__ import annotations

import json

from torchemu.bridge.binding import go


class RankGenerator:
    """Arranges ranks along the kinds of parallelism; the Go core does it.

    Args:
        tp, ep, dp, pp, cp: sizes of tensor, expert, data, pipeline and context parallelism.
        order: of the kinds, such as "tp-cp-ep-dp-pp"; the leftmost varies fastest. Kinds of size 1 may be left out.
        rank_offset: the number of the first rank.

    Attributes:
        world_size: the number of ranks.

    Raises:
        AssertionError: both ep and cp are greater than 1.
        RuntimeError: the order lacks a kind, or has one that does not exist.
    """

    def __init__(self, tp: int, ep: int, dp: int, pp: int, cp: int, order: str, rank_offset: int = 0) -> None:
        self.tp, self.ep, self.dp, self.pp, self.cp, self.order = tp, ep, dp, pp, cp, order
        self.rank_offset = rank_offset
        self.world_size = tp * dp * pp * cp * ep
        self.get_ranks("tp")

    def get_ranks(self, token: str) -> list[list[int]]:
        """The groups of ranks that differ in the kinds which are named, "tp-dp", alone."""
        groups = json.loads(go.RankGroups(self.tp, self.cp, self.ep, self.dp, self.pp, self.order, token))
        return [[self.rank_offset + rank for rank in ranks] for ranks in groups]
