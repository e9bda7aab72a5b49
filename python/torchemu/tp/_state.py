"""What one rank knows of the groups it is in for model parallelism; its own, as a process's globals are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torchemu import runtime
from torchemu.runtime.rank_local import RankLocal

if TYPE_CHECKING:
    from torchemu.tp._memory_buffer import GlobalMemoryBuffer

TENSOR = "tensor model parallel"
PIPELINE = "pipeline model parallel"
MODEL = "model parallel"
DATA = "data parallel"
DATA_WITH_CONTEXT = "data parallel with context parallel combined"
CONTEXT = "context parallel"
TENSOR_AND_CONTEXT = "tensor and context parallel"
EMBEDDING = "embedding"
POSITION_EMBEDDING = "position embedding"
EXPERT_MODEL = "expert model parallel"
EXPERT_TENSOR = "expert tensor parallel"
EXPERT_TENSOR_AND_MODEL = "expert tensor and model parallel"
EXPERT_DATA = "expert data parallel"
INTRA_PARTIAL_DATA = "intra partial data parallel"
INTRA_PARTIAL_EXPERT_DATA = "intra partial expert data parallel"

_TITLES = {
    PIPELINE: "pipeline_model parallel group",
    DATA_WITH_CONTEXT: "data parallel group with context parallel combined",
    INTRA_PARTIAL_DATA: "Intra partial data parallel group",
    "tensor and data parallel with context parallel": "tensor and data parallel group",
    EXPERT_TENSOR: "Expert tensor parallel group",
    EXPERT_TENSOR_AND_MODEL: "Expert tensor and model parallel group",
    "expert tensor model pipeline parallel": "Expert tensor-model-pipeline parallel group",
    EXPERT_DATA: "Expert data parallel group",
    INTRA_PARTIAL_EXPERT_DATA: "Intra partial expert data parallel group",
    "intra distributed optimizer instance": "Intra distributed optimizer instance group",
}
"""What Megatron's messages call a group, where that is not the kind's name."""


@dataclass
class State:
    """One rank's.

    Attributes:
        initialize: makes the same groups for another rank; None where nothing was initialized.
        groups: those that the rank is in, by kind (the Go core's names).
        levels: its groups on each level of the hierarchy of its context parallel group, from the innermost on.
        hybrid: its groups of data and context parallelism, by size.
        ranks, sizes: what was set instead of the groups' own, by kind.
        virtual_rank, virtual_size: which of the rank's pipeline stages runs, of how many; None without interleaving.
        memory: what layers use again and again; None before its first use.
    """

    initialize: Callable[[], None] | None = None
    groups: dict[str, Any] = field(default_factory=dict)
    levels: list[Any] = field(default_factory=list)
    hybrid: dict[int, Any] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    virtual_rank: int | None = None
    virtual_size: int | None = None
    memory: GlobalMemoryBuffer | None = None


_STATE: RankLocal[State] = RankLocal(State)


def current() -> State:
    """The running rank's. A rank that has none has, like its default process group, that of the program which spawned
    it."""
    state = _STATE.get()
    parent = runtime.current().parent
    if state.initialize is None and parent is not None:
        inherited = parent.own.get(_STATE)
        if inherited is not None and inherited.initialize is not None:
            inherited.initialize()
    return _STATE.get()


def is_own() -> bool:
    """Whether the running rank itself has initialized groups."""
    return _STATE.get().initialize is not None


def replace(state: State) -> None:
    """Makes this the running rank's."""
    _STATE.set(state)


def group(kind: str, check: bool = True, title: str = "") -> Any:
    """The rank's group of a kind; None where there is none and that is not checked.

    Args:
        kind: the kind.
        check: whether there must be one.
        title: what the message calls it, if not as usual.

    Raises:
        AssertionError: there is none.
    """
    found = current().groups.get(kind)
    if found is None and check:
        raise AssertionError(f"{title or _TITLES.get(kind, f'{kind} group')} is not initialized")
    return found


def first_rank(kind: str) -> int:
    """The first rank of the rank's group of a kind."""
    title = _TITLES.get(kind, f"{kind} group")
    return group(kind, title=title[0].upper() + title[1:]).ranks[0]


def rank(kind: str) -> int:
    """The rank's number in its group of a kind, unless another was set."""
    chosen = current().ranks.get(kind)
    return group(kind).rank() if chosen is None else chosen


def size(kind: str) -> int:
    """The number of ranks in the rank's group of a kind, unless another was set."""
    chosen = current().sizes.get(kind)
    return group(kind).size() if chosen is None else chosen


def set_rank(kind: str, number: int | None) -> None:
    """Makes rank() answer this; None: the group's again."""
    _set(current().ranks, kind, number)


def set_size(kind: str, number: int | None) -> None:
    """Makes size() answer this; None: the group's again."""
    _set(current().sizes, kind, number)


def _set(chosen: dict[str, int], kind: str, number: int | None) -> None:
    if number is None:
        chosen.pop(kind, None)
    else:
        chosen[kind] = number
