"""Ranks that have made a process group for which they wait for each other, as with gloo.

Here nobody waits: times would be other ones. A member that ends without having made a group that others have made is
told so, or they are: on a cluster they would wait for it. Where runs are checked that holds for all ranks that have to
make a group, members or not: without it the names of the next groups differ.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from torchemu import runtime
from torchemu.errors import MismatchError
from torchemu.runtime import footprints


@dataclass
class _Made:
    """A group that ranks make.

    Attributes:
        label: what reports call it.
        members: numbers in the World.
        of: the ranks that have to make it: the members.
        maker, site: the rank that came first, and from where.
        makers: the ranks that have made it.
    """

    label: str
    members: tuple[int, ...]
    of: tuple[int, ...]
    maker: int
    site: str
    makers: set[int] = field(default_factory=set)


class _Call(_Made):
    """A group that all ranks of another one have to make, members or not."""


def note(key: object, label: str, members: Sequence[int]) -> None:
    """Notes that the running rank makes a group.

    Args:
        key: by which the members know it.
        label: what reports call it.
        members: numbers in the World.
    """
    context = runtime.current()
    tasks = context.tasks
    if tasks is None or context.rank not in members:
        return
    footprints.use(_Made, footprints.TOGETHER)
    made = tasks.shared.setdefault(_Made, {})
    if key not in made:
        made[key] = _Made(label, tuple(members), tuple(members), context.rank, runtime.call_site())
        tasks.when_returned[_Made] = _check
    made[key].makers.add(context.rank)


def forget(key: object) -> None:
    """Forgets a group that all its members have made and left."""
    tasks = runtime.current().tasks
    if tasks is not None:
        tasks.shared.get(_Made, {}).pop(key, None)


def _check(context: runtime.Context) -> None:
    """Raises RuntimeError where a member has ended that has not made a group of the rank's."""
    tasks = context.tasks
    assert tasks is not None
    for group in tasks.shared[_Made].values():
        if ended := _ended_without(context, group, _Made):
            first = context.rank if context.rank in ended else ended[0]
            raise RuntimeError(
                f"rank {first} has ended without making process group {group.label}, of ranks "
                f"{list(group.members)}, as rank {group.maker} does at {group.site}, where that waits for it on a "
                "cluster"
            )


def _ended_without(context: runtime.Context, group: _Made, kind: Hashable) -> list[int]:
    """Returns the ranks that have ended, the running one among them, without a group that this has to make, too."""
    tasks = context.tasks
    assert tasks is not None
    if context.rank not in group.of or len(group.makers) == len(group.of):
        return []
    footprints.use(kind)
    footprints.use(footprints.ENDS)
    codes = dict(enumerate(tasks.exit_codes))
    return [r for r in group.of if r not in group.makers and (r == context.rank or codes.get(r) == 0)]


def note_call(key: object, label: str, members: Sequence[int], of: Sequence[int]) -> None:
    """Notes that the running rank makes a group as all ranks of another one have to.

    Args:
        key: by which they know it.
        label: what reports call it.
        members, of: numbers in the World.

    Raises:
        MismatchError: another rank makes it of other members, and not each of the two one of itself alone, for which
            nobody waits and nothing is exchanged.
    """
    context = runtime.current()
    tasks = context.tasks
    assert tasks is not None
    calls = tasks.shared.setdefault(_Call, {})
    footprints.use((_Call, key), hash(tuple(members)) | 1)
    call = calls.get(key)
    if call is None:
        call = calls[key] = _Call(label, tuple(members), tuple(of), context.rank, runtime.call_site())
        if context.world.strictness.check:
            tasks.when_returned[_Call] = _check_calls
    call.makers.add(context.rank)
    are_alone = call.members == (call.maker,) and tuple(members) == (context.rank,)
    if call.members != tuple(members) and not are_alone:
        raise disagreement(label, (call.maker, call.members, call.site), members)


_ALL = "All ranks of the world, not only the members, must make the same groups in the same order."


def disagreement(label: str, first: tuple[int, Sequence[int], str], members: Sequence[int]) -> MismatchError:
    """Returns the error of the running rank, which makes a group of other members than another one.

    Args:
        label: of the group.
        first: the other rank, its members and its place in the program.
        members: the running rank's.
    """
    rank, (maker, theirs, site) = runtime.current().rank, first
    low, high = sorted((rank, maker))
    return MismatchError(
        f"ranks {low} and {high} disagree on the members of process group {label}:\n"
        f"  rank {maker} makes it of ranks {list(theirs)} at {site}\n"
        f"  rank {rank} makes it of ranks {list(members)} at {runtime.call_site()}\n{_ALL}"
    )


def _check_calls(context: runtime.Context) -> None:
    """Raises MismatchError where a rank has ended that has not made a group as others have."""
    tasks = context.tasks
    assert tasks is not None
    for call in tasks.shared[_Call].values():
        if ended := _ended_without(context, call, _Call):
            raise MismatchError(
                f"rank {ended[0]} has ended without making process group {call.label}, as rank {call.maker} does of "
                f"ranks {list(call.members)} at {call.site}\n{_ALL}"
            )
