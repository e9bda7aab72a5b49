"""Results of the collectives, worked out without a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def hier_allgather_reference(shards: Sequence[Any], num_nodes: int, ranks_per_node: int) -> list[Any]:
    """Returns the result of each PE, from the shards of all: a ring between nodes, then a gather inside each.

    Raises:
        ValueError: there are not as many shards as PEs.
    """
    world = num_nodes * ranks_per_node
    if len(shards) != world:
        raise ValueError(f"{len(shards)} shards for {num_nodes} nodes of {ranks_per_node} ranks")
    outputs = []
    for _ in range(world):
        rails = [_ring([shards[node * ranks_per_node + local] for node in range(num_nodes)])[0]
                 for local in range(ranks_per_node)]  # fmt: skip
        outputs.append(_joined([rails[i % ranks_per_node][i // ranks_per_node] for i in range(world)]))
    return outputs


def inter_node_ring_reference(blocks: Sequence[Any]) -> list[Any]:
    """Returns what each member of a ring has at its end: all blocks one after another, from the block of each."""
    return [_joined(slots) for slots in _ring(blocks)]


def _ring(blocks: Sequence[Any]) -> list[list[Any]]:
    """The slots of each member at the end."""
    n = len(blocks)
    slots: list[list[Any]] = [[blocks[i] if i == member else None for i in range(n)] for member in range(n)]
    for step in range(n - 1):
        for member in range(n):
            slot = (member - step) % n
            slots[(member + 1) % n][slot] = slots[member][slot]
    return slots


def _joined(parts: list[Any]) -> Any:
    """The parts one after another: an array of arrays, a list of lists, or a tensor of tensors."""
    like = parts[0]
    if isinstance(like, np.ndarray):
        return np.concatenate(parts)
    if isinstance(like, list | tuple):
        return [element for part in parts for element in part]
    whole = like.new_empty((sum(part.numel() for part in parts),))
    start = 0
    for part in parts:
        whole[start : start + part.numel()] = part.reshape(-1)
        start += part.numel()
    return whole
