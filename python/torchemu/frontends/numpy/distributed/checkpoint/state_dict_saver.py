"""torch.distributed.checkpoint.state_dict_saver: saves what ranks have, each a part."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.frontends.numpy.distributed.checkpoint._paths import by_name
from torchemu.frontends.numpy.distributed.checkpoint._ranks import Ranks
from torchemu.frontends.numpy.distributed.checkpoint.api import CheckpointException
from torchemu.frontends.numpy.distributed.checkpoint.filesystem import Entries, FileSystemWriter, contents
from torchemu.frontends.numpy.distributed.checkpoint.metadata import Metadata
from torchemu.frontends.numpy.distributed.checkpoint.stateful import Stateful

__all__ = ["async_save", "save"]

Where = str | os.PathLike[str] | None


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Where = None,
    storage_writer: FileSystemWriter | None = None,
    planner: Any = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Saves a state that ranks have in common. All ranks of the group call it, and each writes a part: what several
    have under one name is written by the one that has least to write by then.

    Args:
        state_dict: tensors, other objects, dictionaries and lists of such; or objects with a state_dict of their own.
        checkpoint_id: the folder.
        storage_writer: in the place of a folder.
        planner, use_collectives: mean nothing here.
        process_group: the ranks; None: the default group.
        no_dist: this rank alone.

    Returns:
        What is in the checkpoint.

    Raises:
        RuntimeError: neither a folder nor a writer is given. CheckpointException: a rank could not; it has two entries
            whose paths are the same text, for example.
    """
    writer = _writer(checkpoint_id, storage_writer)
    ranks = Ranks(process_group, no_dist, "save")
    states = _states(state_dict)
    plans = ranks.everybodys("plan", lambda: _sizes(states))
    values = {name: value for name, (_, value) in by_name(states).items()}
    mine = _divided(plans)[ranks.rank]
    written = ranks.everybodys("write", lambda: writer.write(ranks.rank, {name: values[name] for name in mine}))
    entries: Entries = {name: entry for part in written for name, entry in part.items()}
    ranks.everybodys("write", lambda: writer.finish(entries) if ranks.rank == 0 else None)
    return contents(entries)


def _writer(where: Where, writer: FileSystemWriter | None) -> FileSystemWriter:
    if where is None and writer is None:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    if writer is None:
        assert where is not None
        return FileSystemWriter(where)
    return writer if where is None else FileSystemWriter(where)


def _states(state_dict: dict[str, Any]) -> dict[str, Any]:
    return {key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()}


def _sizes(states: dict[str, Any]) -> dict[str, int]:
    leaves = by_name(states)
    return {name: value.nbytes if isinstance(value, Tensor) else 0 for name, (_, value) in leaves.items()}


def _divided(plans: Sequence[dict[str, int]]) -> list[list[str]]:
    """The names that each rank writes, of the names and sizes that it has."""
    owners: dict[str, list[int]] = {}
    for rank, plan in enumerate(plans):
        for name in plan:
            owners.setdefault(name, []).append(rank)
    loads, found = [0] * len(plans), [list[str]() for _ in plans]
    for name, those in owners.items():
        chosen = min(those, key=lambda rank: loads[rank])
        loads[chosen] += plans[chosen][name] or 1
        found[chosen].append(name)
    return found


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Where = None,
    storage_writer: FileSystemWriter | None = None,
    planner: Any = None,
    process_group: ProcessGroup | None = None,
    async_checkpointer_type: Any = None,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Future[Metadata]:
    """As save, which is done at once: to write files takes no simulated time.

    Args:
        async_checkpointer_type, async_stager: mean nothing here.

    Returns:
        A future that has the result, or the error.
    """
    future: Future[Metadata] = Future()
    try:
        future.set_result(
            save(
                state_dict,
                checkpoint_id=checkpoint_id,
                storage_writer=storage_writer,
                process_group=process_group,
                no_dist=no_dist,
            )
        )
    except (Exception, CheckpointException) as error:
        future.set_exception(error)
    return future
