"""torch.distributed.checkpoint.state_dict_loader: gives ranks back what they have saved, whichever rank wrote it."""

from __future__ import annotations

from typing import Any

from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.frontends.numpy.distributed.checkpoint._paths import by_name, put
from torchemu.frontends.numpy.distributed.checkpoint._ranks import Ranks
from torchemu.frontends.numpy.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torchemu.frontends.numpy.distributed.checkpoint.filesystem import Entries, FileSystemReader
from torchemu.frontends.numpy.distributed.checkpoint.state_dict_saver import Where
from torchemu.frontends.numpy.distributed.checkpoint.stateful import Stateful

__all__ = ["load"]


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Where = None,
    storage_reader: FileSystemReader | None = None,
    planner: DefaultLoadPlanner | None = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
) -> None:
    """Loads what a state names from a checkpoint. All ranks of the group call it; they need not be as many as those
    that saved it.

    Args:
        state_dict: what is to be loaded, with tensors of the right shapes, which are written into; other objects are
            replaced, and objects with a load_state_dict of their own are given their state.
        checkpoint_id: the folder.
        storage_reader: in the place of a folder.
        planner: a DefaultLoadPlanner.
        process_group: the ranks; None: the default group.
        no_dist: this rank alone.

    Raises:
        RuntimeError: neither a folder nor a reader is given.
        CheckpointException: a rank could not: the checkpoint has not what is wanted, or in another shape.
    """
    if checkpoint_id is None and storage_reader is None:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    reader = FileSystemReader(checkpoint_id) if checkpoint_id is not None else storage_reader
    assert reader is not None
    ranks = Ranks(process_group, no_dist, "load")
    states = {key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()}
    ranks.everybodys("read", lambda: _fill(states, reader, bool(planner and planner.allow_partial_load)))
    for key, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]


def _fill(states: dict[str, Any], reader: FileSystemReader, partially: bool) -> None:
    entries = reader.entries()
    wanted = by_name(states)
    for name, (_, value) in wanted.items():
        _check(entries, name, value, partially)
    for name, (path, value) in wanted.items():
        if name not in entries:
            continue
        loaded = reader.read(entries[name])
        if isinstance(value, Tensor):
            with no_grad():
                value.detach().copy_(loaded)
        else:
            put(states, path, loaded)


def _check(entries: Entries, name: str, value: Any, partially: bool) -> None:
    if name not in entries:
        if not partially:
            raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
        return
    shape = entries[name].get("shape")
    if isinstance(value, Tensor) and shape is not None and shape != list(value.shape):
        raise ValueError(f"Size mismatch between saved torch.Size({shape}) and current: {value.size()} for {name}")
