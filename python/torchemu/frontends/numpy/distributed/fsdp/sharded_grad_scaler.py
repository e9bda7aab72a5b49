"""torch.distributed.fsdp.sharded_grad_scaler: a GradScaler of ranks that have parts of gradients."""

from __future__ import annotations

from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import zeros
from torchemu.frontends.numpy.amp.grad_scaler import GradScaler
from torchemu.frontends.numpy.distributed import ProcessGroup, ReduceOp, all_reduce
from torchemu.frontends.numpy.distributed._process_group import resolved

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """As GradScaler, where a step is left out on all ranks of a group if a gradient of one of them is not finite.

    Args:
        device, init_scale, backoff_factor, growth_factor, growth_interval, enabled: as GradScaler's.
        process_group: the ranks; None: the default group.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group: ProcessGroup | None = None,
    ) -> None:
        super().__init__(
            device,
            init_scale=init_scale,
            backoff_factor=backoff_factor,
            growth_factor=growth_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )
        self.process_group = resolved(process_group) if enabled else process_group

    def _unscale_grads(self, optimizer: Any, inverse: Tensor) -> Tensor | None:
        found = super()._unscale_grads(optimizer, inverse)
        if found is None:
            found = zeros(1, device=inverse.device)
        all_reduce(found, ReduceOp.MAX, group=self.process_group)
        return found
