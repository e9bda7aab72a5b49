"""Ranks that have made a process group for which they wait for each other, as with gloo.

Here nobody waits: times would be other ones. A member that ends without having made a group that others have made is
told so, or they are: on a cluster they would wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torchemu import runtime
from torchemu.runtime import footprints


@dataclass
class _Made:
    label: str
    members: tuple[int, ...]
    maker: int
    site: str
    makers: set[int] = field(default_factory=set)


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
        made[key] = _Made(label, tuple(members), context.rank, runtime.call_site())
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
        if context.rank not in group.members or len(group.makers) == len(group.members):
            continue
        footprints.use(_Made)
        footprints.use(footprints.ENDS)
        ended = [r for r in group.members if r not in group.makers and tasks.exit_codes[r] == 0]
        if context.rank not in group.makers:
            ended = [context.rank]
        if ended:
            raise RuntimeError(
                f"rank {ended[0]} has ended without making process group {group.label}, of ranks "
                f"{list(group.members)}, as rank {group.maker} does at {group.site}, where that waits for it on a "
                "cluster"
            )
