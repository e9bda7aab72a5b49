"""Clusters: what the agents of remote procedure calls that have found each other through one store have in common."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.runtime import footprints
from torchemu.runtime.waiting import Line

if TYPE_CHECKING:
    from torchemu.frontends.torch.rpc.agents import Agent

_KEY = "torchemu/cluster"


class Cluster:
    """The agents that call each other.

    Args:
        core: the core's group of all ranks, in which their messages are.

    Attributes:
        core: the argument.
        agents: those that are there, by the numbers of their workers.
        sent: what is on its way by a message, by numbers: references, which the message keeps alive.
    """

    def __init__(self, core: int) -> None:
        self.core = core
        self.agents: dict[int, Agent] = {}
        self.sent: dict[Any, Any] = {}
        self._tags = itertools.count()
        self._active = 0
        self._leaving: set[int] = set()
        self._line = Line()

    def tag(self) -> int:
        """Returns the tag of a message, which no other one has."""
        return next(self._tags)

    def began(self) -> None:
        """Notes that a call has begun."""
        self._active += 1

    def ended(self) -> None:
        """Notes that a call has ended: its answer has come, or nobody waits for it any more."""
        self._active -= 1
        self._notice()

    def leave(self, agent: Agent, ps: int | None) -> None:
        """Blocks the running rank until all workers are here, and no call goes on.

        Args:
            agent: the rank's.
            ps: for how many picoseconds at most; None is for ever.

        Raises:
            RuntimeError: they were not in time.
        """
        self._leaving.add(agent.id)
        self._notice()
        while not self._is_quiet():
            waiting = sorted(a.rank for a in self.agents.values() if a.id not in self._leaving)
            if not self._line.wait("rpc.shutdown()", ps, waiting).called:
                raise RuntimeError(
                    f"rpc.shutdown: workers {[a.name for a in self.agents.values() if a.id not in self._leaving]} did "
                    "not shut down in time"
                )

    def _is_quiet(self) -> bool:
        return self._active == 0 and all(number in self._leaving for number in self.agents)

    def _notice(self) -> None:
        footprints.use()
        if self._is_quiet():
            self._line.call_all()


def of_store(store: Any) -> Cluster:
    """Returns the cluster of the agents that share a store. The first one makes it."""
    context = runtime.current()
    if context.tasks is None:
        raise RuntimeError(
            "torch.distributed.rpc.init_rpc: workers are ranks of a run; use torchemu run, or torchemu.pytorch.spawn"
        )
    shared = context.tasks.shared
    number = int(store.compare_set(_KEY, "", str(len(shared))))
    made = shared.get((Cluster, number))
    if made is None:
        members = tuple(range(max(context.tasks.nprocs, min(context.meets, context.world.sips))))
        core = go.NewGroup(context.world.handle, len(shared), f"rpc{number}", members)
        made = shared[Cluster, number] = Cluster(core)
    assert isinstance(made, Cluster)
    return made
