"""Collectives of Python objects. They are pickled, and their bytes go through tensors: it takes as long as it takes."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.bridge.calls import Call
from torchemu.c10d.backends import BackendConfig
from torchemu.c10d.checks import refuse_shards
from torchemu.c10d.exchanges import check_gather_list
from torchemu.c10d.group import Group
from torchemu.c10d.groups import group_rank_of, member
from torchemu.c10d.issue import finish
from torchemu.c10d.p2p import recv, send
from torchemu.runtime.buffer import HOST


def all_gather_object(object_list: list[Any], obj: Any, group: Group | None = None, weights_only: bool = False) -> None:
    """Fills the list, on every rank, with all ranks' objects.

    Args:
        object_list: as long as the group.
        obj: anything that can be pickled.
        group: the ranks; None is the default group.
        weights_only: means nothing here: the bytes are this program's own.

    Raises:
        ValueError: no process group; the list is too short.
    """
    ranks = _ranks(group, "all_gather_object")
    if ranks is None:
        return
    if len(object_list) < ranks.size():
        raise ValueError(f"object_list has room for {len(object_list)} objects of {ranks.size()} ranks")
    data = _pickled(obj)
    sizes = _all_sizes(ranks, "all_gather_object", len(data))
    longest = max(sizes)
    out = _room(ranks, ranks.size() * longest)
    finish(ranks, Call.of("all_gather_object", "all_gather"), out, _padded(ranks, data, longest))
    object_list[: ranks.size()] = _objects(ranks, out, [r * longest for r in range(ranks.size())], sizes)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Group | None = None,
    group_dst: int | None = None,
    weights_only: bool = False,
) -> None:
    """Fills the list, on one rank, with all ranks' objects.

    Args:
        obj: anything that can be pickled.
        object_gather_list: on that rank, a list as long as the group; nothing on the others.
        dst: that rank, as a number in the default group, or group_dst, as one in the group. Neither is rank 0.
        group: the ranks; None is the default group.
        weights_only: means nothing here.

    Raises:
        ValueError: no process group; the list is missing, or given where it must not be, or too short.
    """
    ranks = _ranks(group, "gather_object")
    if ranks is None:
        return
    root = _root(ranks, dst, group_dst)
    check_gather_list(ranks, object_gather_list, root)
    data = _pickled(obj)
    sizes = _all_sizes(ranks, "gather_object", len(data))
    longest = max(sizes)
    out = _room(ranks, ranks.size() * longest) if ranks.rank() == root else None
    call = Call.of("gather_object", "gather", root=root)
    finish(ranks, call, out, _padded(ranks, data, longest))
    if out is not None and object_gather_list is not None:
        starts = [r * longest for r in range(ranks.size())]
        object_gather_list[: ranks.size()] = _objects(ranks, out, starts, sizes)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Group | None = None,
    device: Any = None,
    group_src: int | None = None,
    weights_only: bool = False,
) -> None:
    """Makes the objects in the list, on every rank, those of one rank.

    Args:
        object_list: equally long on all ranks.
        src: that rank, as a number in the default group, or group_src, as one in the group. Neither is rank 0.
        group: the ranks; None is the default group.
        device, weights_only: mean nothing here.

    Raises:
        ValueError: no process group; the list is empty.
        MismatchError: the lists are not equally long.
    """
    ranks = _ranks(group, "broadcast_object_list")
    if ranks is None:
        return
    if not object_list:
        raise ValueError("object_list must not be empty")
    root = _root(ranks, src, group_src)
    mine = ranks.rank() == root
    data = [_pickled(o) for o in object_list] if mine else []
    sizes = _numbers(ranks, [len(d) for d in data] if mine else [0] * len(object_list))
    _broadcast(ranks, root, sizes)
    lengths = ranks.tensors.array(sizes).tolist()
    out = _of_array(ranks, np.concatenate(data)) if mine else _room(ranks, sum(lengths))
    _broadcast(ranks, root, out)
    if not mine:
        object_list[:] = _objects(ranks, out, [sum(lengths[:i]) for i in range(len(lengths))], lengths)


def _broadcast(group: Group, root: int, t: Any) -> None:
    finish(group, Call.of("broadcast_object_list", "broadcast", root=root), t, t if group.rank() == root else None)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Sequence[Any] | None = None,
    src: int | None = None,
    group: Group | None = None,
    group_src: int | None = None,
    weights_only: bool = False,
) -> None:
    """Puts, into the first place of each rank's output list, its object of one rank's input list.

    Args:
        scatter_object_output_list: not empty.
        scatter_object_input_list: on that rank, an object for each rank.
        src: that rank, as a number in the default group, or group_src, as one in the group. Neither is rank 0.
        group: the ranks; None is the default group.
        weights_only: means nothing here.

    Raises:
        ValueError: no process group; a list is missing or has a wrong length.
    """
    ranks = _ranks(group, "scatter_object_list")
    if ranks is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root = _root(ranks, src, group_src)
    data: list[np.ndarray] = []
    if ranks.rank() == root:
        if scatter_object_input_list is None or len(scatter_object_input_list) != ranks.size():
            raise ValueError(f"scatter_object_input_list must have an object for each of {ranks.size()} ranks")
        data = [_pickled(o) for o in scatter_object_input_list]
    longest = _numbers(ranks, [max(map(len, data), default=0)])
    _scatter_step(ranks, "broadcast", root, longest, longest if data else None)
    room = int(ranks.tensors.array(longest)[0])
    padded = _of_array(ranks, np.concatenate([_padded_array(d, room) for d in data])) if data else None
    out, size = _room(ranks, room), _numbers(ranks, [0])
    _scatter_step(ranks, "scatter", root, out, padded)
    _scatter_step(ranks, "scatter", root, size, _numbers(ranks, [len(d) for d in data]) if data else None)
    scatter_object_output_list[0] = _objects(ranks, out, [0], [int(ranks.tensors.array(size)[0])])[0]


def _scatter_step(group: Group, kind: str, root: int, out: Any, given: Any | None) -> None:
    finish(group, Call.of("scatter_object_list", kind, root=root), out, given)


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Group | None = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
    weights_only: bool = False,
) -> None:
    """Sends the objects in a list, and blocks the host until they have arrived.

    Args:
        object_list: anything that can be pickled.
        dst: the receiver, as a number in the default group, or group_dst, as one in the group.
        group: the ranks; None is the default group.
        device, use_batch, weights_only: mean nothing here.

    Raises:
        as send does; ValueError also when the list is empty.
    """
    ranks = _ranks(group, "send_object_list")
    if ranks is None:
        return
    if not object_list:
        raise ValueError("object_list must not be empty")
    peer = group_rank_of(ranks, dst, group_dst)
    data = [_pickled(o) for o in object_list]
    send(_numbers(ranks, [len(d) for d in data]), group=ranks, group_dst=peer)
    send(_of_array(ranks, np.concatenate(data)), group=ranks, group_dst=peer)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Group | None = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
    weights_only: bool = False,
) -> int:
    """Receives as many objects as the list is long, and blocks the host until they have arrived.

    Args:
        object_list: as long as the sender's.
        src: the sender, as a number in the default group, or group_src, as one in the group. Neither is any rank.
        group: the ranks; None is the default group.
        device, use_batch, weights_only: mean nothing here.

    Returns:
        the sender, as a number in the default group; -1 on a rank that is not in the group.

    Raises:
        as recv does; ValueError also when the list is empty.
    """
    ranks = _ranks(group, "recv_object_list")
    if ranks is None:
        return -1
    if not object_list:
        raise ValueError("object_list must not be empty")
    sizes = _numbers(ranks, [0] * len(object_list))
    sender = recv(sizes, src, ranks, group_src=group_src)
    lengths = ranks.tensors.array(sizes).tolist()
    out = _room(ranks, sum(lengths))
    recv(out, sender, ranks)
    object_list[:] = _objects(ranks, out, [sum(lengths[:i]) for i in range(len(lengths))], lengths)
    return sender


# -- bytes


def _ranks(group: Group | None, operation: str) -> Group | None:
    ranks = member(group, operation)
    if ranks is not None:
        refuse_shards(ranks, operation)
    return ranks


def _root(group: Group, global_rank: int | None, group_rank: int | None) -> int:
    if global_rank is None and group_rank is None:
        global_rank = 0
    return group_rank_of(group, global_rank, group_rank)


def _pickled(obj: Any) -> np.ndarray:
    return np.frombuffer(pickle.dumps(obj), np.uint8)


def _objects(group: Group, data: Any, starts: Sequence[int], sizes: Sequence[int]) -> list[Any]:
    seen = group.tensors.array(data)
    return [pickle.loads(seen.data[start : start + size]) for start, size in zip(starts, sizes, strict=True)]


def _is_on_host(group: Group) -> bool:
    """Returns whether objects go through the host's memory: for a group that is not on the fabric, if it takes that."""
    return group.delegate is not None and HOST in BackendConfig(group.backend).device_backend_map


def _of_array(group: Group, array: np.ndarray) -> Any:
    return group.tensors.of_array(array, _is_on_host(group))


def _numbers(group: Group, values: Sequence[int]) -> Any:
    return _of_array(group, np.array(values, np.int64))


def _room(group: Group, size: int, kind: dtypes.dtype = dtypes.uint8) -> Any:
    return group.tensors.zeros((size,), kind, _is_on_host(group))


def _padded_array(data: np.ndarray, size: int) -> np.ndarray:
    return np.pad(data, (0, size - len(data)))


def _padded(group: Group, data: np.ndarray, size: int) -> Any:
    return _of_array(group, _padded_array(data, size))


def _all_sizes(group: Group, operation: str, size: int) -> list[int]:
    """All ranks' sizes."""
    out = _room(group, group.size(), dtypes.int64)
    finish(group, Call.of(operation, "all_gather"), out, _numbers(group, [size]))
    return group.tensors.array(out).tolist()
