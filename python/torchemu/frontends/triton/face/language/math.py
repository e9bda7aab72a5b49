"""Functions of elements, as ``triton.language.math``."""

from torchemu.frontends.triton._arithmetic import (
    abs,  # noqa: A004
    ceil,
    cos,
    div_rn,
    erf,
    exp,
    exp2,
    fdiv,
    floor,
    fma,
    log,
    log2,
    rsqrt,
    sin,
    sqrt,
    sqrt_rn,
    tanh,
    umulhi,
)
from torchemu.frontends.triton._placeholders import placeholders

__all__ = [
    "abs", "ceil", "cos", "div_rn", "erf", "exp", "exp2", "fdiv", "floor", "fma", "log", "log2", "rsqrt", "sin", "sqrt",
    "sqrt_rn", "tanh", "umulhi",
]  # fmt: skip

__getattr__ = placeholders("triton.language.math")
