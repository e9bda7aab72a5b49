"""What nodes do in backward passes while anomalies are detected; see torch.autograd.anomaly_mode."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from torchemu.frontends.numpy._autograd import state
from torchemu.frontends.numpy._autograd.node import Node
from torchemu.frontends.numpy._tensor.core import Tensor


def applied(node: Node, grads: list[Tensor | None], again: bool) -> Sequence[Any]:
    """node.apply(grads, again).

    Raises:
        RuntimeError: a gradient is NaN, and that is looked for.
    """
    try:
        found = node.apply(grads, again)
        if state.current().anomaly.check_nan:
            _check(node, found)
    except Exception:
        warnings.warn(_where(node), stacklevel=2)
        raise
    return found


def _check(node: Node, found: Sequence[Any]) -> None:
    for i, grad in enumerate(found):
        if isinstance(grad, Tensor) and bool(grad.isnan().any()):
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")


def _where(node: Node) -> str:
    lines = node.metadata.get("traceback_")
    if lines is None:
        return (
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during "
            "forward pass for more information."
        )
    return f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(lines)}"
