"""torch.finfo and torch.iinfo: what the element types can express."""

from __future__ import annotations

from typing import Any

import ml_dtypes

from torchemu import dtypes
from torchemu.frontends.numpy import _settings


class finfo:  # noqa: N801 (PyTorch's name)
    """The limits of a float type, or of a complex type's parts; None is the default dtype.

    Attributes:
        bits, eps, max, min, tiny, smallest_normal, resolution: as NumPy's finfo has them.
        dtype: the type's name.

    Raises:
        TypeError: the dtype is not a float type.
    """

    def __init__(self, dtype: dtypes.dtype | None = None) -> None:
        kind = _settings.dtype_or_default(dtype)
        kind = kind.to_real()
        if not kind.is_floating_point:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle {kind!r}")
        about = ml_dtypes.finfo(kind.numpy)
        self.dtype, self.bits = kind.name, int(about.bits)
        self.eps, self.max, self.min = float(about.eps), float(about.max), float(about.min)
        self.tiny = self.smallest_normal = float(about.smallest_normal)
        self.resolution = float(about.resolution)

    def __repr__(self) -> str:
        numbers = ", ".join(f"{n}={getattr(self, n):g}" for n in ("resolution", "min", "max", "eps"))
        return f"finfo({numbers}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, finfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class iinfo:  # noqa: N801 (PyTorch's name)
    """The limits of an integer type.

    Attributes:
        bits, max, min: its width, its largest and its smallest number.
        dtype: the type's name.

    Raises:
        TypeError: the dtype is not an integer type.
    """

    def __init__(self, dtype: dtypes.dtype) -> None:
        kind = dtypes.parse(dtype)
        if kind.category is not dtypes.Category.INTEGER:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle {kind!r}")
        about = ml_dtypes.iinfo(kind.numpy)
        self.dtype, self.bits, self.max, self.min = kind.name, int(about.bits), int(about.max), int(about.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, iinfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)
