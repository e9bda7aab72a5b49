"""Kernels whose costs the core knows, of operations that it is told about."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch

from torchemu.frontends.torch.device.ground import context

Kernels = tuple[tuple[str, int, int, str], ...]
"""Names of kernels, the bytes that they move, their operations, and their units."""

DTYPES = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16"}
"""The core's names of the dtypes of which it knows costs."""


def listed(costs: Callable[[int, str], str], name: str, said: dict[str, Any]) -> Kernels:
    """Returns the kernels of an operation; none where the topology says nothing of such.

    Args:
        costs: the core's function.
        name: of the kernels.
        said: of the operation, as that function wants it.
    """
    found = json.loads(costs(context().world.handle, json.dumps(said)))
    return tuple((name, nbytes, ops, unit) for nbytes, ops, unit in found)
