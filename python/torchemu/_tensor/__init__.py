"""Tensors: what a rank's program calculates with. The Go core has their memory, NumPy does the arithmetic.

Each module has the functions of a family, which ``__all__`` of this package gathers; methods.py makes methods of them.
"""

# ruff: noqa: F403 (each module's __all__ says what there is)

from torchemu._attributes import foresee_attributes
from torchemu._shape import Size
from torchemu._tensor import (
    arrangements,
    comparing,
    complex_numbers,
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
    statistics,
    views,
)
from torchemu._tensor.arrangements import *
from torchemu._tensor.comparing import *
from torchemu._tensor.complex_numbers import *
from torchemu._tensor.core import HOST_READS as HOST_READS
from torchemu._tensor.core import Tensor
from torchemu._tensor.creation import *
from torchemu._tensor.elementwise import *
from torchemu._tensor.extremes import *
from torchemu._tensor.formatting import *
from torchemu._tensor.from_data import *
from torchemu._tensor.gathering import *
from torchemu._tensor.generator import Generator
from torchemu._tensor.indexing import *
from torchemu._tensor.joining import *
from torchemu._tensor.linalg import *
from torchemu._tensor.ordering import *
from torchemu._tensor.parametric import *
from torchemu._tensor.parts import *
from torchemu._tensor.promotion import *
from torchemu._tensor.random_numbers import *
from torchemu._tensor.reductions import *
from torchemu._tensor.statistics import *
from torchemu._tensor.views import *

__all__ = ["Generator", "Size", "Tensor"]
__all__ += arrangements.__all__
__all__ += comparing.__all__
__all__ += complex_numbers.__all__
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
__all__ += statistics.__all__
__all__ += views.__all__

methods.attach()
foresee_attributes(Tensor)
