"""simpler_setup.log_config: the level of the program's log."""

from __future__ import annotations

import logging

DEFAULT_LOG_LEVEL = "info"
LOG_LEVEL_CHOICES = ("debug", *(f"v{number}" for number in range(10)), "info", "warn", "error", "null")
_LEVELS = {"warn": logging.WARNING, "null": logging.CRITICAL + 10}
_VERBOSE = 15  # of v0; v5 is info


def configure_logging(level: str = DEFAULT_LOG_LEVEL) -> None:
    """Sets the level of the root logger.

    Raises:
        ValueError: there is no such level.
    """
    name = level.lower()
    if name not in LOG_LEVEL_CHOICES:
        raise ValueError(f"log level {level!r}: want one of {', '.join(LOG_LEVEL_CHOICES)}")
    is_verbose = name[0] == "v"
    number = _VERBOSE + int(name[1:]) if is_verbose else _LEVELS.get(name) or getattr(logging, name.upper())
    logging.getLogger().setLevel(number)
