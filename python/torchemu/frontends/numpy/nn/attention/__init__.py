"""torch.nn.attention: which kernel calculates attention. There is one, and the choice changes nothing."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator, Sequence

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """The kernels that PyTorch has."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: SDPBackend | Sequence[SDPBackend], set_priority: bool = False) -> Iterator[None]:
    """Changes nothing for the duration of a with block.

    Raises:
        AssertionError: neither a kernel nor a list of them.
    """
    given = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(given, list | tuple) or not all(isinstance(each, SDPBackend) for each in given):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    yield
