"""What makes ``@torchemu.distributed(world_size=8)`` a decorator, besides torchemu.distributed being a module."""

from __future__ import annotations

import types
from typing import Any


class CallableModule(types.ModuleType):
    """A module that is also the decorator of tests; see torchemu.pytest_plugin."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """As torchemu.pytest_plugin.distributed."""
        from torchemu import pytest_plugin

        return pytest_plugin.distributed(*args, **options)
