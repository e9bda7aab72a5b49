"""The hierarchical all-gather: a ring between nodes, and copies among the ranks of a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchemu.frontends.mori import _environment
from torchemu.frontends.mori._launch import NIC, SDMA, Step
from torchemu.frontends.mori._state import Team, Window

UNIT = 16
"""Bytes in whose multiples data is cut for queues."""


def cut(nbytes: int, parts: int) -> list[tuple[int, int]]:
    """Returns the offsets and sizes of so many parts, in units of 16 bytes; the last one takes the rest. Those without
    bytes are left out."""
    each = -(-nbytes // UNIT // parts) * UNIT if nbytes >= UNIT * parts else nbytes
    starts = range(0, nbytes, each) if nbytes else ()
    return [(start, min(each, nbytes - start)) for start in starts]


@dataclass(frozen=True)
class Shape:
    """The PEs as nodes of as many ranks.

    Attributes:
        nodes, ranks: N nodes of G ranks.
        node, local: where this PE is.
        near: PEs of other nodes of the shape are on this one's node all the same.
    """

    nodes: int
    ranks: int
    node: int
    local: int
    near: bool

    def pe(self, node: int, local: int) -> int:
        """Returns the number of a PE."""
        return node * self.ranks + local

    @property
    def world(self) -> int:
        """The number of PEs."""
        return self.nodes * self.ranks


class Paths:
    """The ways by which a handle's programs reach other PEs.

    Args:
        team: the handle's.
        shape: of the PEs.
        pairs: queue pairs that a ring uses.
        channels: SDMA queues that a pair of devices uses.

    MORI_HIER_DEEP_PIPE_QUIET=0 sends the ring's signals without waiting for what other queues have sent, which is a
    race where there are several.
    """

    def __init__(self, team: Team, shape: Shape, pairs: int, channels: int) -> None:
        self._quiet = _environment.switch("MORI_HIER_DEEP_PIPE_QUIET", True)
        self.team, self.shape = team, shape
        self.pairs = max(1, min(pairs, team.engines.pairs))
        self.channels = max(1, min(channels, team.engines.sdma))

    def send(self, p: Step, node: int, to: int, source: int, nbytes: int) -> None:
        """Sends bytes to the PE of another node with the same number there, and waits until they have landed."""
        queues = self.start(p, node, to, source, nbytes)
        for queue in range(queues) if self._quiet else ():
            p.drain(self.across, self.peer(node), queue)

    def start(self, p: Step, node: int, to: int, source: int, nbytes: int) -> int:
        """Starts to send bytes to the PE of another node, and returns on how many queues."""
        parts = cut(nbytes, self.channels if self.shape.near else self.pairs)
        for queue, (start, n) in enumerate(parts):
            p.copy(self.across, self.peer(node), queue, to + start, source + start, n)
        return len(parts)

    @property
    def across(self) -> int:
        """The class of engines that reach other nodes."""
        return SDMA if self.shape.near else NIC

    def peer(self, node: int) -> int:
        """Returns the rank of the PE of another node with the same number there."""
        rank: int = self.team.ranks[self.shape.pe(node, self.shape.local)]
        return rank

    def signal(self, p: Step, node: int, word: int, value: int) -> None:
        """Sets a word of the PE of another node with the same number there."""
        p.set_word(self.across, self.peer(node), 0, word, value)

    def push(self, p: Step, pe: int, moves: list[tuple[int, int, int]]) -> None:
        """Starts copies to a PE of the node: destination, source and bytes of each."""
        for to, source, nbytes in moves:
            for queue, (start, n) in enumerate(cut(nbytes, self.channels)):
                p.copy(SDMA, self.team.ranks[pe], queue, to + start, source + start, n)

    def settle(self, p: Step, pe: int, word: int, value: int) -> None:
        """Waits until a PE of the node has what was pushed to it, and tells it."""
        for queue in range(self.channels):
            p.drain(SDMA, self.team.ranks[pe], queue)
        p.set_word(SDMA, self.team.ranks[pe], 0, word, value)


class Words:
    """The words by which PEs tell each other what has landed: they hold the number of a call, which only grows.

    Args:
        window: memory of `Words.count(shape)` words.
        shape: of the PEs.
    """

    def __init__(self, window: Window, shape: Shape) -> None:
        self._window, self._shape = window, shape

    @staticmethod
    def count(shape: Shape) -> int:
        """Returns how many words there are."""
        return shape.nodes + shape.world + 4

    def ring(self, pe: int, slot: int) -> int:
        """Returns the word of a PE's ring slot."""
        return self._window.at(pe, 8 * slot)

    def gathered(self, pe: int, sender: int) -> int:
        """Returns a PE's word for what a PE's shard, or that of its block, has landed."""
        return self._window.at(pe, 8 * (self._shape.nodes + sender))

    def own(self, pe: int, number: int) -> int:
        """Returns a word that the programs of a PE have among themselves."""
        return self._window.at(pe, 8 * (self._shape.nodes + self._shape.world + number))


@dataclass
class Call:
    """A PE's part in a call.

    Attributes:
        number: of the call, from 1.
        source: address of its shard.
        target: address of its output.
        nbytes: of a shard.
        splits: first bytes and sizes of the parts of a shard, where ranks' parts are to lie together.
        place: where the program has called.
    """

    number: int
    nbytes: int
    source: int = 0
    target: int = 0
    splits: Sequence[tuple[int, int]] = ()
    place: str = ""
