"""Collectives of some PEs: a ring between nodes, a gather and a broadcast inside of one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchemu.frontends.mori import _environment, _state
from torchemu.frontends.mori._hier import Call, Paths, Shape, Words
from torchemu.frontends.mori._launch import Launch, Step
from torchemu.frontends.mori._schedules import Gathering, Plan
from torchemu.frontends.mori._state import Team
from torchemu.frontends.mori._tensors import sized
from torchemu.frontends.triton_dist._streams import numbered
from torchemu.runtime import capture as captures

DEFAULT_BUFFER = 512 << 20


class _OfSome:
    """A handle of the PEs from a first one on, at a distance from each other.

    Attributes:
        size, position: how many PEs there are, and which one this is.
    """

    descriptor = "invalid sub-group descriptor"

    def _join(self, my_pe: int, npes: int, size: int, position: int, base: int, stride: int) -> tuple[int, ...]:
        """Returns the PEs.

        Raises:
            RuntimeError: they are not PEs, or this is not one of them.
        """
        name = type(self).__name__
        size = npes if size == -1 else size
        members = tuple(base + i * stride for i in range(max(size, 0)))
        position = members.index(my_pe) if position == -1 and my_pe in members else position
        fits = members and stride > 0 and members[0] >= 0 and members[-1] < npes
        if not fits or not 0 <= position < size or members[position] != my_pe:
            raise RuntimeError(
                f"{name}: {self.descriptor}: {size} PEs from {base} on, {stride} apart, of which PE {my_pe} is number "
                f"{position}, among {npes}"
            )
        self.my_pe, self.npes, self.size, self.position, self._called = my_pe, npes, size, position, 0
        return members

    def _made(self, members: tuple[int, ...], shape: Shape, room: int, failure: str, pairs: int = 1) -> None:
        _state.take(room, failure, self)
        team = Team(type(self).__name__, members)
        words = Words(team.window("words", 8 * Words.count(shape), data=False), shape)
        buffer = team.window("buffer", room)
        paths = Paths(team, shape, pairs, _environment.channels())
        self._plan = Plan(team, shape, paths, words, buffer, buffer, buffer)

    def _launch(
        self, source: Any, output: Any, nbytes: int, body: Callable[[Gathering, Step], None], stream: Any
    ) -> bool:
        if nbytes % 4:
            raise ValueError(f"{nbytes} bytes are no multiple of 4: they move as lanes of 4 bytes")
        again = functools.partial(self._launch_at_once, source, output, nbytes, body)
        if nbytes:
            with numbered(stream), captures.noted(again, (output,)):
                again()
        return True

    def _launch_at_once(self, source: Any, output: Any, nbytes: int, body: Callable[[Gathering, Step], None]) -> None:
        self._called += 1
        call = Call(self._called, nbytes)
        self._plan.team.join(self.position, call)
        gathering = Gathering(self._plan, call, False)
        launch = Launch(type(self).__name__, lambda p: body(gathering, p))
        at = launch.begin({"input": source, "output": output})
        call.source, call.target = at["input"], at["output"]


class InterNodeRingAllgather(_OfSome):
    """All-gather of PEs of different nodes: a ring over network cards.

    Args:
        my_pe, npes: this PE and how many there are.
        ring_buffer_bytes: of all slots; 512 MiB.
        ring_size, ring_pos: PEs of the ring, and which one this is; all, as they follow one another.
        pe_base, pe_stride: the first one, and the distance to the next.
        num_qp: queue pairs.
        num_blocks: accepted.

    Raises:
        RuntimeError: the heap is too small; there are no such PEs; shmem is not initialized.
    """

    descriptor = "invalid ring descriptor"

    def __init__(
        self, my_pe: int, npes: int, ring_buffer_bytes: int | None = None, ring_size: int = -1, ring_pos: int = -1,
        pe_base: int = 0, pe_stride: int = 1, num_qp: int = 1, num_blocks: int = 1,
    ) -> None:  # fmt: skip
        members = self._join(my_pe, npes, ring_size, ring_pos, pe_base, pe_stride)
        near = all(_state.near(pe) for pe in members)
        room = DEFAULT_BUFFER if ring_buffer_bytes is None else ring_buffer_bytes
        shape = Shape(self.size, 1, self.position, 0, near)
        self._made(members, shape, room, "InterNodeRingAllgather: ring ShmemMalloc failed", num_qp)

    def __call__(self, input: Any, output: Any, count: int, stream: Any = None) -> bool:  # noqa: A002
        """Gathers count elements of each PE into output, in the order of a stream. The host does not wait.

        Raises:
            RuntimeError: the message exceeds the ring buffer.
            ValueError: a tensor is too small, not contiguous, or in the host's memory; the bytes are no multiple of 4.
        """
        nbytes = sized("input", input, count, count)
        sized("output", output, count, count * self.size)
        if nbytes * self.size > self._plan.ring.nbytes:
            raise RuntimeError(
                f"InterNodeRingAllgather: message exceeds ring buffer capacity ({nbytes} bytes a PE, "
                f"{self._plan.ring.nbytes} in all): make the handle with a larger ring_buffer_bytes"
            )
        return self._launch(input, output, nbytes, self._run, stream)

    def _run(self, gathering: Gathering, p: Step) -> None:
        gathering.enter(p)
        gathering.ring(p, gathering.whole())
        p.enter("copy out")
        p.copy_locally(gathering.call.target, self._plan.ring.at(self.position), gathering.nbytes * self.size)
        gathering.leave(p)


class IntraNodeSubGroupAllgatherSdma(_OfSome):
    """All-gather of PEs of one node, by SDMA.

    Args:
        my_pe, npes: this PE and how many there are.
        out_buffer_bytes: of a result at most; 512 MiB.
        group_size, group_pos: PEs that take part, and which one this is; all, as they follow one another.
        pe_base, pe_stride: the first one, and the distance to the next.

    Raises:
        RuntimeError: MORI_ENABLE_SDMA is not set; the heap is too small; there are no such PEs, or they are on several
            nodes; shmem is not initialized.
    """

    def __init__(
        self, my_pe: int, npes: int, out_buffer_bytes: int | None = None, group_size: int = -1, group_pos: int = -1,
        pe_base: int = 0, pe_stride: int = 1,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        _environment.require_sdma(name)
        members = self._join(my_pe, npes, group_size, group_pos, pe_base, pe_stride)
        far = [pe for pe in members if not _state.near(pe)]
        if far:
            raise RuntimeError(f"{name}: {self.descriptor}: PE {far[0]} is on another node than PE {my_pe}")
        room = DEFAULT_BUFFER if out_buffer_bytes is None else out_buffer_bytes
        self._made(members, Shape(1, self.size, 0, self.position, True), room, f"{name}: out ShmemMalloc failed")

    def __call__(
        self, input: Any, output: Any, count: int, stream: Any = None, *, barrier: bool = True,  # noqa: A002
        prepare_barrier: bool = True,
    ) -> bool:  # fmt: skip
        """Gathers count elements of each PE into output, in the order of a stream. The host does not wait.

        Args:
            input, output, count, stream: as in other gathers.
            barrier: PEs wait for each other at the end.
            prepare_barrier: they do at the beginning, too: then nobody's result of the call before is overwritten.

        Raises:
            RuntimeError: the message exceeds the buffer.
            ValueError: a tensor is too small, not contiguous, or in the host's memory; the bytes are no multiple of 4.
        """
        nbytes = sized("input", input, count, count)
        sized("output", output, count, count * self.size)
        self._fits(nbytes * self.size)
        return self._launch(input, output, nbytes, lambda g, p: self._run(g, p, prepare_barrier, barrier), stream)

    def _fits(self, nbytes: int) -> None:
        if nbytes > self._plan.transit.nbytes:
            raise RuntimeError(
                f"{type(self).__name__}: message exceeds out capacity ({nbytes} bytes, of "
                f"{self._plan.transit.nbytes}): make the handle with a larger out_buffer_bytes"
            )

    def _run(self, gathering: Gathering, p: Step, prepare: bool, barrier: bool) -> None:
        if prepare:
            gathering.enter(p)
        else:
            gathering.wait_for_own(p)
        gathering.spread(p, 0, gathering.call.source, gathering.whole())
        p.enter("copy out")
        p.copy_locally(gathering.call.target, self._plan.transit.at(self.position), self.size * gathering.nbytes)
        gathering.leave(p)
        if barrier:
            p.enter("finish barrier")
            p.meet(self._plan.team.barrier("finish", tuple(range(self.size))), self._plan.team.engines.barrier)


class IntraNodeSubGroupBroadcastSdma(IntraNodeSubGroupAllgatherSdma):
    """Broadcast from the first of some PEs of one node, by SDMA."""

    def __call__(  # type: ignore[override]
        self, input: Any, output: Any, count: int, stream: Any = None  # noqa: A002
    ) -> bool:  # fmt: skip
        """Sends count elements of the first PE's input to all outputs, in the order of a stream. The host goes on.

        Raises:
            RuntimeError: the message exceeds the buffer.
            ValueError: a tensor is too small, not contiguous, or in the host's memory; the bytes are no multiple of 4.
        """
        nbytes = sized("input", input, count, count if self.position == 0 else 0)
        sized("output", output, count, count)
        self._fits(nbytes)
        return self._launch(input, output, nbytes, self._send, stream)

    def _send(self, gathering: Gathering, p: Step) -> None:
        n, transit = gathering.nbytes, self._plan.transit
        gathering.enter(p)
        if self.position == 0:
            p.enter("broadcast, push")
            gathering.push(p, 0, lambda pe: [(transit.at(pe), gathering.call.source, n)], 0)
        p.enter("broadcast, wait")
        p.wait(gathering.words.gathered(self.position, 0), gathering.tick())
        p.enter("copy out")
        p.copy_locally(gathering.call.target, transit.at(self.position), n)
        gathering.leave(p)
