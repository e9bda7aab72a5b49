"""Names that PyTorch has and torchemu has not. They are there, so that imports work; their use says what is missing."""

from __future__ import annotations


def unsupported(name: str, instead: str) -> NotImplementedError:
    """The error that a use of it raises.

    Args:
        name: the full name, as PyTorch's users write it.
        instead: why not, or what to use.
    """
    return NotImplementedError(f"{name} is not supported: {instead}")
