"""triton.runtime.autotuner, as far as programs import it."""

from torchemu.frontends.triton._placeholders import placeholders
from torchemu.frontends.triton._tuning import Autotuner, Config, Heuristics, OutOfResources, autotune, heuristics

__all__ = ["Autotuner", "Config", "Heuristics", "OutOfResources", "autotune", "heuristics"]

__getattr__ = placeholders("triton.runtime.autotuner")
