"""kernbench.policy.placement.dp: placement within a device."""

from torchemu._placement import DPPolicy

__all__ = ["DPPolicy"]
