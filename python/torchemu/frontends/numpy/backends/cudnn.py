"""torch.backends.cudnn: NVIDIA's library, which is not used here. Its switches change nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

enabled = False
benchmark = False
benchmark_limit = 10
deterministic = True
allow_tf32 = False


def is_available() -> bool:
    """False."""
    return False


def version() -> int | None:
    """None: there is none."""
    return None


@contextlib.contextmanager
def flags(*args: Any, **kwargs: Any) -> Iterator[None]:
    """Changes nothing for the duration of a with block."""
    yield
