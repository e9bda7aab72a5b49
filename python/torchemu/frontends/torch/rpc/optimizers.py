"""The parts of DistributedOptimizer on the owners of parameters, which PyTorch runs as scripts in C++."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.distributed.rpc as rpc

from torchemu.frontends.torch.rpc import contexts


class LocalOptimizer:
    """An optimizer of the parameters that one worker owns.

    Args:
        make: makes one that is given gradients at each step.
        references: to the parameters.
    """

    def __init__(self, make: Any, references: Sequence[Any], *args: Any, **kwargs: Any) -> None:
        self._parameters = [reference.local_value() for reference in references]
        self.optim = make(self._parameters, *args, **kwargs)

    def step(self, context: int) -> None:
        """Updates the parameters by their gradients in a context."""
        gradients = contexts.get_gradients(context)
        self.optim.step([gradients.get(parameter) for parameter in self._parameters])


def new_local_optimizer(make: Any, references: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
    """Returns a reference to a LocalOptimizer, in the place of one to a script."""
    return rpc.RRef(LocalOptimizer(make, references, *args, **kwargs))


def step(reference: Any, context: int) -> None:
    """Lets a LocalOptimizer of the running rank's update its parameters."""
    reference.local_value().step(context)
