"""Collectives among PEs of one node by SDMA: all-gather, all-to-all, all-reduce."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.frontends.mori import _environment, _state
from torchemu.frontends.mori._hier import Call, Paths, Shape, Words
from torchemu.frontends.mori._launch import SDMA, Launch, Step
from torchemu.frontends.mori._schedules import Gathering, Plan
from torchemu.frontends.mori._state import Team
from torchemu.frontends.mori._sums import SUMMED, summed
from torchemu.frontends.mori._tensors import given, in_bytes, in_lanes, sized
from torchemu.frontends.mori._unwaited import NO_USE, note_use, recorded
from torchemu.frontends.triton_dist._streams import numbered
from torchemu.runtime import capture as captures
from torchemu.runtime.buffer import buffer_of

DEFAULT_BUFFER = 512 << 20
_ONE_SHOT = 1 << 20
"""Bytes up to which an all-reduce gathers all inputs everywhere."""


class Flat:
    """A handle of PEs of one node.

    Args:
        my_pe, npes: this PE and how many there are.
        input_buffer_size, output_buffer_size: bytes of an input and of a result at most; 512 MiB each.
        transit_buffer_size: instead of both: of an input; a result has npes times as many.
        copy_output_to_user: the result is copied to the output; or else it stays in transit memory.

    Raises:
        RuntimeError: MORI_ENABLE_SDMA is not set; shmem is not initialized; PEs are on several nodes; the heap is too
            small.
    """

    def __init__(
        self, my_pe: int, npes: int, input_buffer_size: int | None = None, output_buffer_size: int | None = None,
        transit_buffer_size: int | None = None, copy_output_to_user: bool = True,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        _environment.require_sdma(name)
        self.my_pe, self.npes, self._copies = my_pe, npes, copy_output_to_user
        far = [pe for pe in range(npes) if not _state.near(pe)]
        if far:
            raise RuntimeError(f"{name} needs all PEs on one node, and PE {far[0]} is on another: use HierAllGather")
        if transit_buffer_size is not None:
            input_buffer_size, output_buffer_size = transit_buffer_size, transit_buffer_size * npes
        room = DEFAULT_BUFFER if output_buffer_size is None else output_buffer_size
        self._input_room = DEFAULT_BUFFER if input_buffer_size is None else input_buffer_size
        _state.take(room, f"{name}: output transit buffer ShmemMalloc failed", self)
        self._plan = self._planned(name, room)
        self._called = 0
        self._begun: int | None = None
        self._uses = NO_USE
        self._registered: set[Any] = set()

    def _planned(self, name: str, room: int) -> Plan:
        team, shape = Team(name, tuple(range(self.npes))), Shape(1, self.npes, 0, self.my_pe, True)
        words = Words(team.window("words", 8 * Words.count(shape), data=False), shape)
        transit = team.window("transit", room)
        paths = Paths(team, shape, 1, _environment.channels())
        return Plan(team, shape, paths, words, transit, transit, transit)

    def _launch(
        self, source: Any, output: Any, nbytes: int, direct: bool, body: Callable[[Gathering, Step], None],
        stream: Any, splits: Sequence[tuple[int, int]] = (),
    ) -> None:  # fmt: skip
        """Puts a call on a stream, and into the graph that is being captured, if there is one."""
        again = functools.partial(self._launch_at_once, source, output, nbytes, direct, body, splits)
        with numbered(stream), captures.noted(again, (output,)):
            again()

    def _launch_at_once(
        self, source: Any, output: Any, nbytes: int, direct: bool, body: Callable[[Gathering, Step], None],
        splits: Sequence[tuple[int, int]],
    ) -> None:  # fmt: skip
        self._called += 1
        call = Call(self._called, nbytes, splits=splits)
        self._plan.team.join(self.my_pe, call)
        gathering = Gathering(self._plan, call, direct)
        launch = Launch(type(self).__name__, lambda p: body(gathering, p))
        at = launch.begin({"input": source, "output": output})
        call.source, call.target = at["input"], at["output"]

    def _require_room(self, nbytes: int, result: int, direct: bool) -> None:
        name = type(self).__name__
        if nbytes % 4:
            raise ValueError(f"{nbytes} bytes are no multiple of 4: they move as lanes of 4 bytes")
        if not direct and (result > self._plan.transit.nbytes or nbytes > self._input_room):
            raise RuntimeError(
                f"{name}: message exceeds out capacity ({result} bytes, of {self._plan.transit.nbytes}): make the "
                "handle with larger buffers"
            )

    # -- calls in two steps

    def start_async(self, input: Any, output: Any, count: int, stream: Any = None) -> bool:  # noqa: A002
        """Begins a call, of which wait_async is the end. The host does not wait.

        Raises:
            RuntimeError: another call is in progress.
        """
        before = self._start_of_call()
        self._begin(input, output, count, stream)
        self._note_use(input, output, before, stream)
        return True

    def _note_use(self, input: Any, output: Any, before: int, stream: Any) -> None:  # noqa: A002
        """Notes that a call is in progress since a moment: its tensors are not to be used before wait_async."""
        self._begun = before
        with numbered(stream):
            end = recorded()
        self._uses = note_use(end, (f"{type(self).__name__}.start_async", "wait_async()"), [input], [output])

    def _start_of_call(self) -> int:
        """Returns the time, unless a call is in progress."""
        if self._begun is not None:
            raise RuntimeError(f"{type(self).__name__}: an asynchronous call is in progress; call wait_async first")
        return int(go.PrimNow(self._plan.team.machine.handle))

    def _begin(self, input: Any, output: Any, count: int, stream: Any = None) -> None:  # noqa: A002
        raise NotImplementedError

    def wait_async(self, stream: Any = None, capturing: bool = False) -> float:
        """Waits for the call that start_async began, and returns its seconds. Capturing means nothing here.

        Raises:
            RuntimeError: there is none.
        """
        if self._begun is None:
            raise RuntimeError(f"{type(self).__name__}: no asynchronous call is in progress; call start_async first")
        before, self._begun = self._begun, None
        self._uses.end()
        return self._seconds_since(before)

    def is_async_in_progress(self) -> bool:
        """Says whether a call has begun whose end was not waited for."""
        return self._begun is not None

    def cancel_async(self) -> None:
        """Forgets a call that start_async began; what is on its way still lands."""
        self._begun = None
        self._uses.end()

    def reset_flags(self) -> None:
        """Does nothing: words hold the numbers of calls, which only grow."""

    def _seconds_since(self, before: int) -> float:
        runtime.current().synchronize()
        return float(go.PrimNow(self._plan.team.machine.handle) - before) / 1e12

    def get_output_transit_buffer(self, dtype: Any = None, device: Any = None) -> Any:
        """Returns the memory in which results come into being, as elements of a type; bytes by default."""
        return self._plan.transit.tensor(dtype)


class AllgatherSdma(Flat):
    """All-gather among PEs of one node: each pushes its shard to all, by SDMA."""

    def __call__(
        self, input: Any, output: Any, count: int, stream: Any = None, capturing: bool = False  # noqa: A002
    ) -> bool:  # fmt: skip
        """Gathers count elements of each PE into output, in the order of a stream. The host does not wait. Capturing
        means nothing here.

        Raises:
            RuntimeError: the message exceeds the buffers.
            ValueError: a tensor is too small, not contiguous, or in the host's memory; the bytes are no multiple of 4.
        """
        self._begin(input, output, count, stream)
        return True

    def _begin(self, input: Any, output: Any, count: int, stream: Any = None) -> None:  # noqa: A002
        nbytes = sized("input", input, count, count)
        sized("output", output, count, count * self.npes)
        direct = self.is_output_registered(output)
        self._require_room(nbytes, nbytes * self.npes, direct)
        if nbytes:
            self._launch(input, output, nbytes, direct, self._run, stream)

    def _run(self, gathering: Gathering, p: Step) -> None:
        gathering.enter(p)
        gathering.spread(p, 0, gathering.call.source, gathering.whole())
        if self._copies or gathering.direct:
            gathering.hand_over(p)
        else:
            gathering.leave(p)

    def enqueue_param_contiguous(
        self, input: Any, output: Any, count: int, split_sizes: Any, split_offsets: Any, stream: Any = None,  # noqa: A002
        capturing: bool = False,
    ) -> bool:  # fmt: skip
        """Gathers as a call does, with the PEs' parts of each split together: see HierAllGather. The splits may be
        tensors. It returns false where the bytes of a split are no multiple of 4.

        Raises:
            ValueError: the lists differ in length; a split is not in the shard.
        """
        nbytes, splits = in_bytes(input, output, count, self.npes, split_sizes, split_offsets)
        if nbytes % 4 or not in_lanes(splits):
            return False
        direct = self.is_output_registered(output)
        self._require_room(nbytes, nbytes * self.npes, direct)
        if nbytes:
            self._launch(input, output, nbytes, direct, self._run_splits, stream, splits)
        return True

    def start_async_param_contiguous(
        self, input: Any, output: Any, count: int, split_sizes: Any, split_offsets: Any, stream: Any = None  # noqa: A002
    ) -> bool:  # fmt: skip
        """Begins enqueue_param_contiguous, of which wait_async is the end.

        Raises:
            RuntimeError: another call is in progress.
        """
        before = self._start_of_call()
        done = self.enqueue_param_contiguous(input, output, count, split_sizes, split_offsets, stream)
        if done:
            self._note_use(input, output, before, stream)
        return done

    def _run_splits(self, gathering: Gathering, p: Step) -> None:
        gathering.enter(p)
        gathering.push_splits(p, lambda node: gathering.call.source)

    def register_output_buffer(self, tensor: Any) -> None:
        """Makes results come into being in an output. All PEs register theirs in step."""
        buffer = given("output", tensor)
        self._registered.add(buffer.memory)

    def deregister_output_buffer(self, tensor: Any) -> None:
        """Undoes register_output_buffer."""
        self._registered.discard(given("output", tensor).memory)

    def is_output_registered(self, tensor: Any) -> bool:
        """Says whether results come into being in an output."""
        buffer = buffer_of(tensor)
        return buffer is not None and buffer.memory in self._registered


class All2allSdma(Flat):
    """All-to-all among PEs of one node, by SDMA."""

    def __call__(self, input: Any, output: Any, count: int, stream: Any = None) -> float:  # noqa: A002
        """Sends count elements to each PE, and returns the seconds that it took.

        Raises:
            RuntimeError: the message exceeds the buffers.
            ValueError: a tensor is too small, not contiguous, or in the host's memory; the bytes are no multiple of 4.
        """
        before = go.PrimNow(self._plan.team.machine.handle)
        self._begin(input, output, count, stream)
        return self._seconds_since(before)

    def _begin(self, input: Any, output: Any, count: int, stream: Any = None) -> None:  # noqa: A002
        nbytes = sized("input", input, count, count * self.npes)
        sized("output", output, count, count * self.npes)
        self._require_room(nbytes, nbytes * self.npes, False)
        if nbytes:
            self._launch(input, output, nbytes, False, self._run, stream)

    def _run(self, gathering: Gathering, p: Step) -> None:
        n, source = gathering.nbytes, gathering.call.source
        gathering.enter(p)
        p.enter("all-to-all, push")
        gathering.push(p, self.my_pe, lambda pe: [(self._plan.transit.at(pe, self.my_pe * n), source + pe * n, n)], 0)
        p.enter("all-to-all, wait")
        for pe in range(self.npes):
            p.wait(gathering.words.gathered(self.my_pe, pe), gathering.tick())
        if self._copies:
            gathering.hand_over(p)
        else:
            gathering.leave(p)


class AllreduceSdma(Flat):
    """All-reduce among PEs of one node: a sum, accumulated as float32 in the order of the PEs and rounded once, of
    integers too.

    Args:
        dtype: of the elements: uint32, int32, float32, float16 or bfloat16.
        mode: accepted.

    Raises:
        ValueError: another type.
    """

    def __init__(
        self, my_pe: int, npes: int, input_buffer_size: int | None = None, output_buffer_size: int | None = None,
        transit_buffer_size: int | None = None, copy_output_to_user: bool = True, dtype: Any = None,
        mode: str = "eager",
    ) -> None:  # fmt: skip
        name = "uint32" if dtype is None else str(dtype).removeprefix("torch.")
        if name not in SUMMED:
            raise ValueError(f"AllreduceSdma of {name}: there are {', '.join(SUMMED)}")
        super().__init__(my_pe, npes, input_buffer_size, output_buffer_size, transit_buffer_size, copy_output_to_user)
        self._kind, self._itemsize = name, SUMMED[name]

    def __call__(self, input: Any, output: Any, count: int, stream: Any = None) -> bool:  # noqa: A002
        """Sums count elements of all PEs into output, in the order of a stream. The host does not wait.

        Raises:
            RuntimeError: the message exceeds the buffers.
            ValueError: a tensor is too small, not contiguous, or in the host's memory, or has elements of another type.
        """
        self._begin(input, output, count, stream)
        return True

    def allreduce_inplace(self, data: Any, count: int, stream: Any = None) -> bool:
        """Sums as a call does, into the tensor that the elements are of."""
        return self(data, data, count, stream)

    def _begin(self, input: Any, output: Any, count: int, stream: Any = None) -> None:  # noqa: A002
        nbytes = sized("input", input, count, count)
        sized("output", output, count, count)
        for what, tensor in (("input", input), ("output", output)):
            self._require_kind(what, given(what, tensor).dtype.name)
        room = max(2 * nbytes + 64 * self.npes, nbytes * self.npes if nbytes <= _ONE_SHOT else 0)
        self._require_room(0, room, False)
        if nbytes:
            body = self._one_shot if nbytes <= _ONE_SHOT else self._two_shot
            self._launch(input, output, nbytes, False, body, stream)

    def _require_kind(self, what: str, kind: str) -> None:
        """Refuses elements that the sum would take for others. Whole numbers with a sign and without have the same
        bits, as long as they are small."""
        if kind == self._kind or {kind, self._kind} == {"int32", "uint32"}:
            return
        kinds = ", ".join(SUMMED)
        right = f"make the handle with dtype=torch.{kind}" if kind in SUMMED else f"it sums {kinds}"
        raise ValueError(
            f"{what} has elements of {kind}, and AllreduceSdma of PE {self.my_pe} takes bits for {self._kind}: {right}"
        )

    def _one_shot(self, gathering: Gathering, p: Step) -> None:
        n, transit = gathering.nbytes, self._plan.transit
        gathering.enter(p)
        p.enter("all-reduce, push")
        gathering.push(p, self.my_pe, lambda pe: [(transit.at(pe, self.my_pe * n), gathering.call.source, n)], 0)
        self._await_all(gathering, p, 0)
        self._sum(p, [transit.at(self.my_pe, pe * n) for pe in range(self.npes)], gathering.call.target, n)
        gathering.leave(p)

    def _two_shot(self, gathering: Gathering, p: Step) -> None:
        """Pushes to each PE its part of the vector, has it summed there, and gathers the sums."""
        n, transit, me = gathering.nbytes, self._plan.transit, self.my_pe
        each = -(-n // self.npes // 16) * 16
        parts = [(min(pe * each, n), max(0, min(each, n - pe * each))) for pe in range(self.npes)]
        gathering.enter(p)
        p.enter("reduce-scatter, push")
        source = gathering.call.source
        gathering.push(p, me, lambda pe: [(transit.at(pe, me * each), source + parts[pe][0], parts[pe][1])], 0)
        self._await_all(gathering, p, 0)
        start, size = parts[me]
        result = self.npes * each
        own = transit.at(me, result + start)
        self._sum(p, [transit.at(me, pe * each) for pe in range(self.npes)], own, size)
        p.enter("all-gather of the sums, push")
        near = [pe for pe in range(self.npes) if pe != me]
        for pe in near:
            self._plan.paths.push(p, pe, [(transit.at(pe, result + start), own, size)] if size else [])
        for pe in near:
            for queue in range(self._plan.paths.channels):
                p.drain(SDMA, self._plan.team.ranks[pe], queue)
        for pe in range(self.npes):
            p.set_word(SDMA, self._plan.team.ranks[pe], 0, gathering.words.gathered(pe, me), gathering.tick(1))
        self._await_all(gathering, p, 1)
        p.enter("copy out")
        p.copy_locally(gathering.call.target, transit.at(me, result), n)
        gathering.leave(p)

    def _await_all(self, gathering: Gathering, p: Step, part: int) -> None:
        p.enter("all-reduce, wait")
        for pe in range(self.npes):
            p.wait(gathering.words.gathered(self.my_pe, pe), gathering.tick(part))

    def _sum(self, p: Step, sources: list[int], target: int, nbytes: int) -> None:
        """Sums bytes of several places into one, on the vector units."""
        p.enter("sum in the order of the PEs")
        if nbytes == 0:
            return
        if _state.timing_only():
            p.let_pass(p.time_of_traffic(nbytes * (len(sources) + 1)))
            return
        p.read([(at, nbytes) for at in sources])
        total = summed(self._kind, [p.bytes_at(at, nbytes) for at in sources])
        p.let_pass(p.time_of_traffic(nbytes * (len(sources) + 1)))
        p.bytes_at(target, nbytes)[:] = total.view(np.uint8)
        p.wrote([(target, nbytes)])
