"""Parameters of tests that are many or take long: some run always, and the others with the slow tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def marks(is_slow: object) -> list[pytest.MarkDecorator]:
    """Returns the marks of a parameter."""
    return [pytest.mark.slow] if is_slow else []


def sampled(values: Iterable[Any], one_in: int) -> list[Any]:
    """Returns parameters of which the first is not slow, and then one in so many. Tuples are several parameters."""
    several = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*value, marks=marks(at % one_in)) for at, value in enumerate(several)]
