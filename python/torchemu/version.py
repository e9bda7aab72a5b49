"""torch.version: which PyTorch this is, for programs that ask before they use something."""

from __future__ import annotations

import re
from typing import Any

from torchemu.bridge.binding import go

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

_PYTORCH = "2.11.0"


class TorchVersion(str):
    """A version that is compared number by number, with a string or a tuple."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str | tuple | list) and _numbers(self) == _numbers(other)

    def __lt__(self, other: Any) -> bool:
        return _numbers(self) < _numbers(other)

    def __le__(self, other: Any) -> bool:
        return _numbers(self) <= _numbers(other)

    def __gt__(self, other: Any) -> bool:
        return _numbers(self) > _numbers(other)

    def __ge__(self, other: Any) -> bool:
        return _numbers(self) >= _numbers(other)

    __hash__ = str.__hash__


def _numbers(version: Any) -> tuple[int, ...]:
    """2.11.0+local → (2, 11); zeros at the end mean nothing."""
    parts = re.findall(r"\d+", re.split(r"[+a-zA-Z]", version, maxsplit=1)[0]) if isinstance(version, str) else version
    numbers = [int(part) for part in parts]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


__version__ = TorchVersion(f"{_PYTORCH}+torchemu.{go.Version()}")
debug = False
cuda = "13.0"  # programs take its absence for that of devices
git_version = "torchemu"
hip = rocm = xpu = None
