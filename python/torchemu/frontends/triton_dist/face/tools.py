"""triton_dist.tools, as far as programs import it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchemu.frontends.triton._placeholders import placeholders


def aot_compile_spaces(spaces: Any) -> Callable[[Any], Any]:
    """Returns a decorator that leaves a kernel as it is: nothing is compiled."""
    return lambda fn: fn


__getattr__ = placeholders("triton_dist.tools")
