"""Groups of tensors by device and dtype, for optimizers that do all of a group's at once."""

from __future__ import annotations

from typing import Any

import torch

from torchemu.frontends.torch.device import places
from torchemu.frontends.torch.device.patches import Replacements


def put(replaced: Replacements) -> None:
    """Makes the groups go by names of devices."""
    original = torch._C._group_tensors_by_device_and_dtype

    def group(lists: Any, with_indices: bool = False) -> dict[Any, Any]:
        """Returns as PyTorch's function does lists of tensors and their numbers, by device and dtype."""
        numbered = original(lists, True)
        found: dict[Any, Any] = {}
        for (device, dtype), (columns, indices) in numbered.items():
            for row, index in enumerate(indices):
                where = _device([column[row] for column in columns if column], device)
                parts, numbers = found.setdefault((where, dtype), ([[] for _ in columns], []))
                for part, column in zip(parts, columns, strict=True):
                    if column:
                        part.append(column[row])
                numbers.append(index)
        return {key: (parts, numbers if with_indices else []) for key, (parts, numbers) in found.items()}

    replaced.put(torch._C, "_group_tensors_by_device_and_dtype", group)


def _device(tensors: list[Any], raw: torch.device) -> torch.device:
    """Returns the device of the first of a row's tensors."""
    for t in tensors:
        if t is not None:
            where = places.of(t)
            return raw if where is None else where.device
    return raw
