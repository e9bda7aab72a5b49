"""Tensors: what a rank's program calculates with. The Go core has their memory, NumPy does the arithmetic.

Each module has the functions of a family, which ``__all__`` of this package gathers; methods.py makes methods of them.
"""

# ruff: noqa: F403 (each module's __all__ says what there is)

from torchemu.frontends.numpy._attributes import foresee_attributes
from torchemu.frontends.numpy._shape import Size
from torchemu.frontends.numpy._tensor import (
    comparing,
    creation,
    elementwise,
    extremes,
    formatting,
    from_data,
    gathering,
    indexing,
    joining,
    linalg,
    methods,
    ordering,
    parametric,
    parts,
    promotion,
    random_numbers,
    reductions,
    views,
)
from torchemu.frontends.numpy._tensor.comparing import *
from torchemu.frontends.numpy._tensor.core import HOST_READS as HOST_READS
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import *
from torchemu.frontends.numpy._tensor.elementwise import *
from torchemu.frontends.numpy._tensor.extremes import *
from torchemu.frontends.numpy._tensor.formatting import *
from torchemu.frontends.numpy._tensor.from_data import *
from torchemu.frontends.numpy._tensor.gathering import *
from torchemu.frontends.numpy._tensor.generator import Generator
from torchemu.frontends.numpy._tensor.indexing import *
from torchemu.frontends.numpy._tensor.joining import *
from torchemu.frontends.numpy._tensor.linalg import *
from torchemu.frontends.numpy._tensor.ordering import *
from torchemu.frontends.numpy._tensor.parametric import *
from torchemu.frontends.numpy._tensor.parts import *
from torchemu.frontends.numpy._tensor.promotion import *
from torchemu.frontends.numpy._tensor.random_numbers import *
from torchemu.frontends.numpy._tensor.reductions import *
from torchemu.frontends.numpy._tensor.views import *

__all__ = ["Generator", "Size", "Tensor"]
__all__ += comparing.__all__
__all__ += creation.__all__
__all__ += elementwise.__all__
__all__ += extremes.__all__
__all__ += formatting.__all__
__all__ += from_data.__all__
__all__ += gathering.__all__
__all__ += indexing.__all__
__all__ += joining.__all__
__all__ += linalg.__all__
__all__ += ordering.__all__
__all__ += parametric.__all__
__all__ += parts.__all__
__all__ += promotion.__all__
__all__ += random_numbers.__all__
__all__ += reductions.__all__
__all__ += views.__all__

methods.attach()
foresee_attributes(Tensor)

from torchemu.frontends.numpy import _buffers as _buffers  # noqa: E402 (it makes the class known, which is complete now)
