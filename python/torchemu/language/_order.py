"""Signals, waits, and what else orders operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchemu.bridge.binding import go
from torchemu.language._looked import Look, comparison, found, note_update
from torchemu.language._memory import signal_op, word_of
from torchemu.language._pointer import Pointer, checked, count
from torchemu.language._program import ATOMIC, current
from torchemu.language._tile import Tile

if TYPE_CHECKING:
    from torchemu.language._launch import Launched

EQ, NE, GT, GE, LT, LE = range(6)
"""How a wait compares a word with a value."""

_PIPES = ("scalar", "load", "vector", "matrix", "store")


def signal(word: Pointer, value: int = 1, op: str = "add") -> None:
    """Adds a value to a word of any rank, or sets it, later: in order with what else the program itself sends there."""
    program, at, how = current(), word_of(word), signal_op(op)
    if program.checks and op == "set":
        note_update(program, at, value)
    program.call(go.PrimSignal, *at, how, value)


def wait(word: Pointer, compare: int, value: int) -> None:
    """Waits until a word of the own rank compares so (EQ, NE, GT, GE, LT, LE) with a value. What came before the
    signals that made it so is known then."""
    current().call(go.PrimWait, *word_of(word), compare, value, False)


def test(word: Pointer, compare: int, value: int) -> bool:
    """Reports whether a word of the own rank compares so with a value now. It takes the latency of the memory."""
    return current().ask(go.PrimWait, *word_of(word), compare, value, True) == 1


def fetch(word: Pointer) -> int:
    """The value of a word of any rank."""
    program, at = current(), word_of(word)
    value = program.ask(go.PrimAtomic, "fetch", *at, 0, 0, ATOMIC)
    if not program.checks:
        return value
    look = program.fetched[at[0]] = Look(program, at, comparison())
    return found(value, look)


def fence() -> None:
    """All that the program sends to a rank from now on lands after all that it has sent there before."""
    current().call(go.PrimOrder, "fence")


def quiet() -> None:
    """Waits until all that the program has sent, put, got or copied has landed."""
    current().call(go.PrimOrder, "quiet")


def drain() -> None:
    """Waits until all pipes have done what they were given: after it stores to the own memory are there, and those to
    others' are sent."""
    current().call(go.PrimOrder, "pipe_barrier")


def set_flag(source: str, target: str, number: int = 0) -> None:
    """Makes a pipe set a flag for another one when it has done all that it was given before. Pipes are scalar (the
    program itself), load, vector, matrix and store."""
    current().call(go.PrimFlag, False, _pipe(source), _pipe(target), number)


def wait_flag(source: str, target: str, number: int = 0) -> None:
    """Makes the target pipe wait for a flag of the source pipe, and take it back, before it does what comes after."""
    current().call(go.PrimFlag, True, _pipe(source), _pipe(target), number)


def sync(ranks: Sequence[int] | None = None) -> None:
    """Waits until the program has come here on all ranks, or on some, of which this is one: a team, such as
    :func:`node_ranks`.

    Raises:
        ValueError: this rank is not among them, one is named twice, or there is no such rank.
    """
    program = current()
    launch = program.launch
    if ranks is None:
        barrier = launch.barrier(program.block)
    else:
        barrier = program.machine.barrier(launch.kernel, _team(launch, ranks), program.block)
    program.sync_with(barrier)


def _team(launch: Launched, ranks: Sequence[int]) -> tuple[int, ...]:
    members = tuple(sorted({count(r, "a rank") for r in ranks}))
    if len(members) != len(ranks) or launch.index not in members or members[-1] >= len(launch.ranks):
        raise ValueError(
            f"a team of the ranks {list(ranks)}: rank {launch.index} has to be among them, each once, and all of 0 to "
            f"{len(launch.ranks) - 1}"
        )
    return tuple(launch.ranks[r] for r in members)


def barrier(ranks: Sequence[int] | None = None) -> None:
    """Waits until the program has come here on all ranks, or some, and all that they had started before has landed."""
    drain()
    quiet()
    sync(ranks)


class Queue:
    """A bounded queue of messages from one rank to another; see :func:`torchemu.language.queue`."""

    __slots__ = ("_handle", "dtype", "n")

    def __init__(self, handle: int, pointer: Pointer, n: int) -> None:
        self._handle, self.dtype, self.n = handle, pointer.dtype, n


def send(queue: Queue, source: Pointer | Tile, n: int) -> None:
    """Puts a message of n elements into a queue. It returns when there was a slot and the source may be overwritten."""
    if isinstance(source, Tile):
        drain()
    else:
        checked(source, "the source")
    current().call(go.PrimSend, queue._handle, source.address, count(n) * source.dtype.itemsize)


def recv(queue: Queue, to: Pointer, n: int) -> int:
    """Takes the next message out of a queue, of n elements at most, and returns how many it has.

    Raises:
        ValueError: it has more.
    """
    nbytes = count(n) * checked(to, "the destination").dtype.itemsize
    got = current().ask(go.PrimRecv, queue._handle, to.address, nbytes)
    if got > nbytes:
        raise ValueError(f"a message of {got} bytes for a place of {nbytes}")
    return got // to.dtype.itemsize


def _pipe(name: str) -> int:
    if name not in _PIPES:
        raise ValueError(f"there is no pipe {name!r}; the pipes are {', '.join(_PIPES)}")
    return _PIPES.index(name)
