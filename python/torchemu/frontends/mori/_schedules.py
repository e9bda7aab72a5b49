"""The programs of the hierarchical all-gather: what a rank's blocks do in a call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torchemu.frontends.mori._hier import UNIT, Call, Paths, Shape, Words, cut
from torchemu.frontends.mori._launch import Step
from torchemu.frontends.mori._state import Team, Window

_OPENED, _GATHERED, _OVER, _RINGED = range(4)
"""Words that the programs of a PE have among themselves: the entry barrier is over, the gather beside it, the call, and
how many blocks the ring has brought."""

PARTS = 32
"""A call numbers the parts of its blocks in words below this."""

_MIB = 1 << 20
_MOST_PARTS, _MOST_CUT = 16, 32 * _MIB


@dataclass
class Plan:
    """The memory and the ways of a handle.

    Attributes:
        team, shape, paths, words: of the handle.
        ring: slots of a ring between nodes: the shards of this rank's rail.
        collection: where these are gathered from.
        transit: where the result comes into being, if not in the output.
        chunks: parts of a small shard.
        host_barriers: barriers of hosts in the call of a small shard.
    """

    team: Team
    shape: Shape
    paths: Paths
    words: Words
    ring: Window
    collection: Window
    transit: Window
    chunks: int = 2
    host_barriers: int = 3

    def everybody(self) -> int:
        """The barrier of all PEs."""
        return self.team.barrier("entry", tuple(range(self.shape.world)))

    def of_node(self) -> int:
        """The barrier of the PEs of this one's node."""
        return self.team.barrier("node", tuple(sorted(self.neighbours())))

    def neighbours(self) -> list[int]:
        """The PEs of this one's node, this one first."""
        shape = self.shape
        return [shape.pe(shape.node, (shape.local + i) % shape.ranks) for i in range(shape.ranks)]


class Gathering:
    """One call on one PE.

    Args:
        plan: of the handle.
        call: the call.
        direct: the result comes into being in the outputs, not in transit memory.
    """

    def __init__(self, plan: Plan, call: Call, direct: bool) -> None:
        self.plan, self.call, self.direct = plan, call, direct
        self.shape, self.paths, self.words, self.team = plan.shape, plan.paths, plan.words, plan.team
        self.pe = plan.team.index
        self.nbytes = call.nbytes

    # -- steps

    def tick(self, part: int = 0) -> int:
        """Returns the value of words by which a part of this call is known."""
        return self.call.number * PARTS + part

    def enter(self, p: Step) -> None:
        """Waits until the handle's last call, which may be on another stream, is over, and all PEs are here."""
        self.wait_for_own(p)
        p.meet(self.plan.everybody(), self.team.engines.barrier)
        self.team.forget(self.call.number - 1)

    def wait_for_own(self, p: Step) -> None:
        """Waits until the handle's last call on this PE is over."""
        p.enter("entry barrier")
        p.wait(self.words.own(self.pe, _OVER), self.call.number - 1)

    def leave(self, p: Step) -> None:
        """Ends the call: the handle's next one may begin."""
        p.tell(self.words.own(self.pe, _OVER), self.call.number)

    def target(self, pe: int) -> int:
        """Returns where the result of a PE of the node comes into being."""
        if self.direct:
            target: int = self.team.calls[self.call.number][pe].target
            return target
        return self.plan.transit.at(pe)

    def ring(self, p: Step, span: Span) -> None:
        """Brings a span of the shards of this PE's rail into its ring slots: its own, and over the ring the others."""
        p.enter("copy into the ring")
        own = self.plan.ring.at(self.pe, self.shape.node * span.stride + span.start)
        p.copy_locally(own, self.call.source + span.start, span.nbytes)
        for step in range(self.shape.nodes - 1):
            self.ring_step(p, step, span)

    def ring_step(self, p: Step, step: int, span: Span) -> None:
        """Sends a block on to the next node, and waits for one from the node before."""
        shape, ring, pos = self.shape, self.plan.ring, self.shape.node
        following = (pos + 1) % shape.nodes
        receiver, slot = shape.pe(following, shape.local), (pos - step) % shape.nodes
        p.enter(f"ring step {step}, send")
        at = slot * span.stride + span.start
        self.paths.send(p, following, ring.at(receiver, at), ring.at(self.pe, at), span.nbytes)
        self.paths.signal(p, following, self.words.ring(receiver, slot), self.tick(span.part))
        p.enter(f"ring step {step}, wait")
        p.wait(self.words.ring(self.pe, (slot - 1) % shape.nodes), self.tick(span.part))

    def collect(self, p: Step, nodes: list[int]) -> None:
        """Copies blocks of nodes out of the ring, to where they are gathered from."""
        p.enter("copy out of the ring")
        n = self.nbytes
        for node in nodes:
            p.copy_locally(self.plan.collection.at(self.pe, node * n), self.plan.ring.at(self.pe, node * n), n)

    def spread(self, p: Step, node: int, source: int, span: Span) -> None:
        """Pushes a span of a shard of a node's block to all PEs of this one's node, and waits for theirs."""
        sender = self.shape.pe(node, self.shape.local)
        p.enter(f"gather of node {node}'s block, push")
        self.push(p, sender, lambda pe: [(self.target(pe) + sender * self.nbytes + span.start, source, span.nbytes)],
                  span.part)  # fmt: skip
        p.enter(f"gather of node {node}'s block, wait")
        for local in range(self.shape.ranks):
            p.wait(self.words.gathered(self.pe, self.shape.pe(node, local)), self.tick(span.part))

    def push(self, p: Step, sender: int, moves: Callable[[int], list[tuple[int, int, int]]], part: int) -> None:
        """Pushes to all PEs of this one's node, and sets their word of a sender when all has landed."""
        near = self.plan.neighbours()
        for pe in near:
            self.paths.push(p, pe, moves(pe))
        for pe in near:
            self.paths.settle(p, pe, self.words.gathered(pe, sender), self.tick(part))

    def others(self) -> list[int]:
        """The other nodes, the nearest one in the ring first."""
        return [(self.shape.node - 1 - i) % self.shape.nodes for i in range(self.shape.nodes - 1)]

    def hand_over(self, p: Step) -> None:
        """Copies the result to the output where it is in transit memory, and ends the call."""
        if not self.direct:
            p.enter("copy out")
            p.copy_locally(self.call.target, self.plan.transit.at(self.pe), self.shape.world * self.nbytes)
        self.leave(p)

    def whole(self) -> Span:
        """The whole of a shard."""
        return Span(0, self.nbytes, self.nbytes)

    def collected(self, node: int) -> int:
        """Returns where a node's shard is gathered from."""
        return self.plan.collection.at(self.pe, node * self.nbytes)

    def _meet_node(self, p: Step) -> None:
        p.enter("barrier of the node")
        p.meet(self.plan.of_node(), self.team.engines.barrier)

    # -- whole calls

    def single_node(self, p: Step) -> None:
        """Gathers among the ranks of the only node."""
        self.enter(p)
        self.spread(p, 0, self.call.source, self.whole())
        self.hand_over(p)

    def sliced(self, p: Step) -> None:
        """Runs the ring between nodes, and then gathers each node's block."""
        self.enter(p)
        self.ring(p, self.whole())
        self.collect(p, list(range(self.shape.nodes)))
        self._meet_node(p)
        for node in range(self.shape.nodes):
            self.spread(p, node, self.collected(node), self.whole())
        self.hand_over(p)

    def by_block(self, p: Step) -> None:
        """Runs the ring in one program, and gathers each block in another one as soon as the ring has brought it."""
        ringed = self.words.own(self.pe, _RINGED)
        if p.block == 0:
            self.enter(p)
            p.tell(ringed, self.tick())
            p.enter("copy into the ring")
            p.copy_locally(self.plan.ring.at(self.pe, self.shape.node * self.nbytes), self.call.source, self.nbytes)
            for step in range(self.shape.nodes - 1):
                self.ring_step(p, step, self.whole())
                p.tell(ringed, self.tick(step + 1))
            return
        for i, node in enumerate([self.shape.node, *self.others()]):
            p.enter(f"wait for node {node}'s block")
            p.wait(ringed, self.tick(i))
            at = self.plan.ring.at(self.pe, node * self.nbytes) if i else self.call.source
            self.spread(p, node, at, self.whole())
        self.hand_over(p)

    def fused(self, p: Step) -> None:
        """Runs the ring in one program, and gathers the own node's block beside it in another one."""
        if p.block == 1:
            self._gather_beside(p)
            return
        self.enter(p)
        p.tell(self.words.own(self.pe, _OPENED), self.call.number)
        self.ring(p, self.whole())
        self.collect(p, self.others())
        self._meet_node(p)
        for node in self.others():
            self.spread(p, node, self.collected(node), self.whole())
        self._join(p)
        self.hand_over(p)

    def _gather_beside(self, p: Step) -> None:
        p.enter("gather beside the ring, wait for the entry barrier")
        p.wait(self.words.own(self.pe, _OPENED), self.call.number)
        self.spread(p, self.shape.node, self.call.source, self.whole())
        p.tell(self.words.own(self.pe, _GATHERED), self.call.number)

    def _join(self, p: Step) -> None:
        p.enter("wait for the gather beside the ring")
        p.wait(self.words.own(self.pe, _GATHERED), self.call.number)

    def fused_remote(self, p: Step) -> None:
        """Acts as fused, of two nodes, in parts: what has crossed between nodes is pushed while the next crosses."""
        if p.block == 1:
            self._gather_beside(p)
            return
        self.enter(p)
        p.tell(self.words.own(self.pe, _OPENED), self.call.number)
        other, spans = 1 - self.shape.node, self.parts()
        self._cross(p, spans)
        self._join(p)
        p.enter("wait for the parts to be gathered")
        for local in range(self.shape.ranks):
            p.wait(self.words.gathered(self.pe, self.shape.pe(other, local)), self.tick(spans[-1].part))
        self.hand_over(p)

    def _cross(self, p: Step, spans: list[Span]) -> None:
        """Sends parts to the other node, each beside the push of the one before."""
        other, ring, n = 1 - self.shape.node, self.plan.ring, self.nbytes
        receiver, sender = self.shape.pe(other, self.shape.local), self.shape.pe(other, self.shape.local)
        own, far = self.shape.node * n, other * n
        p.enter("copy into the ring")
        p.copy_locally(ring.at(self.pe, own), self.call.source, n)
        for span in spans:
            p.enter(f"part {span.part}, send")
            at = own + span.start
            p.copy(
                self.paths.across, self.paths.peer(other), 0, ring.at(receiver, at), ring.at(self.pe, at), span.nbytes
            )
            self.paths.signal(p, other, self.words.ring(receiver, self.shape.node), self.tick(span.part))
        for span in spans:
            p.enter(f"part {span.part}, wait")
            p.wait(self.words.ring(self.pe, other), self.tick(span.part))
            p.enter(f"part {span.part}, push")
            at = far + span.start
            for pe in self.plan.neighbours():
                self.paths.push(p, pe, [(self.target(pe) + at_of(sender, n, span), ring.at(self.pe, at), span.nbytes)])
        p.enter("parts, drain")
        for pe in self.plan.neighbours():
            self.paths.settle(p, pe, self.words.gathered(pe, sender), self.tick(spans[-1].part))

    def parts(self) -> list[Span]:
        """The parts in which a shard crosses: up to 16 equal ones of 1 MiB or more, or all of it."""
        count = min(_MOST_PARTS, max(1, self.nbytes // _MIB))
        while count > 1 and self.nbytes % (count * UNIT):
            count -= 1
        each = self.nbytes // count
        if each >= _MOST_CUT:
            return [self.whole()]
        return [Span(i * each, each, self.nbytes, i) for i in range(count)]

    def piped(self, p: Step) -> None:
        """Gathers a shard in halves: the gathers of one beside the ring of the next, into transit memory."""
        ringed, spans = self.words.own(self.pe, _RINGED), self.halves()
        if p.block == 0:
            self.enter(p)
            for span in spans:
                self.ring(p, span)
                p.tell(ringed, self.tick(span.part + 1))
            return
        for span in spans:
            p.enter(f"wait for the ring of half {span.part}")
            p.wait(ringed, self.tick(span.part + 1))
            for node in range(self.shape.nodes):
                self.spread(p, node, self.plan.ring.at(self.pe, node * self.nbytes + span.start), span)
        p.enter("barriers of hosts")
        p.let_pass(self.plan.host_barriers * self.team.engines.host_barrier)
        self.hand_over(p)

    def halves(self) -> list[Span]:
        """The halves of a shard."""
        pieces = cut(self.nbytes, self.plan.chunks)
        return [Span(start, n, self.nbytes, i) for i, (start, n) in enumerate(pieces)]

    def unsliced(self, p: Step) -> None:
        """Gathers the node's block, and then runs the ring with whole blocks."""
        n, block = self.nbytes, self.nbytes * self.shape.ranks
        ring, at = self.plan.ring, self.shape.node * block + self.shape.local * self.nbytes
        self.enter(p)
        p.enter("gather of the node's block, push")
        self.push(p, self.pe, lambda pe: [(ring.at(pe, at), self.call.source, n)], 0)
        p.enter("gather of the node's block, wait")
        for pe in self.plan.neighbours():
            p.wait(self.words.gathered(self.pe, pe), self.tick())
        for step in range(self.shape.nodes - 1):
            self.ring_step(p, step, Span(0, block, block))
        p.enter("copy out")
        p.copy_locally(self.call.target, ring.at(self.pe), self.shape.nodes * block)
        self.leave(p)

    def param_contiguous(self, p: Step) -> None:
        """Runs the ring, and then pushes each split of each block to where the ranks' parts of it lie together."""
        self.enter(p)
        self.ring(p, self.whole())
        self.collect(p, list(range(self.shape.nodes)))
        self._meet_node(p)
        self.push_splits(p, self.collected)

    def push_splits(self, p: Step, source: Callable[[int], int]) -> None:
        """Pushes the splits of each node's block, which is at a source, and ends the call."""
        p.enter("splits, push")
        self.push(p, self.pe, lambda pe: self._splits(pe, source), 0)
        p.enter("splits, wait")
        for pe in self.plan.neighbours():
            p.wait(self.words.gathered(self.pe, pe), self.tick())
        self.hand_over(p)

    def _splits(self, pe: int, source: Callable[[int], int]) -> list[tuple[int, int, int]]:
        world, moves = self.shape.world, []
        for node in range(self.shape.nodes):
            sender = self.shape.pe(node, self.shape.local)
            for start, size in self.call.splits:
                if size:
                    moves.append((self.target(pe) + start * world + sender * size, source(node) + start, size))
        return moves


def at_of(sender: int, nbytes: int, span: Span) -> int:
    """Returns where a part of a sender's shard is in a result."""
    return sender * nbytes + span.start


@dataclass(frozen=True)
class Span:
    """A part of what is in a slot of the ring.

    Attributes:
        start, nbytes: its bytes.
        stride: bytes of a slot.
        part: its number in the call.
    """

    start: int
    nbytes: int
    stride: int
    part: int = 0
