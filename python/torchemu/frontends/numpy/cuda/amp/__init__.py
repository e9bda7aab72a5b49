"""torch.cuda.amp: older names of what is in torch.amp."""

from torchemu.frontends.numpy.cuda.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from torchemu.frontends.numpy.cuda.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
