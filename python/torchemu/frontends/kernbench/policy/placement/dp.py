"""kernbench.policy.placement.dp: placement within a device."""

from torchemu.frontends.numpy._placement import DPPolicy

__all__ = ["DPPolicy"]
