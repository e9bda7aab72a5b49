"""torch.amp: mixed precision. autocast chooses dtypes for operations, GradScaler keeps small gradients of float16."""

from torchemu.frontends.numpy.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from torchemu.frontends.numpy.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
