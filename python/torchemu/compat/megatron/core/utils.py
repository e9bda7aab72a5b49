"""megatron.core.utils: sizes and initial values."""

from torchemu.tp._sizes import divide, ensure_divisibility
from torchemu.tp.config import init_method_normal, scaled_init_method_normal

__all__ = ["divide", "ensure_divisibility", "init_method_normal", "scaled_init_method_normal"]
