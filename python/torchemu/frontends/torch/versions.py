"""The versions of PyTorch that the front end knows."""

from __future__ import annotations

import importlib.util
import os

OLDEST, NEWEST = (2, 11), (2, 15)
"""The first and the last minor version that it was tried with."""

_NO_COMPILER = ("TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE")
"""Variables by which PyTorch runs what programs compile as it is."""


class VersionError(ImportError):
    """There is no PyTorch, or one that the front end does not know."""


def is_known() -> bool:
    """Says, without importing it, whether a PyTorch is installed that the front end knows."""
    try:
        if importlib.util.find_spec("torch") is None:
            return False
        from importlib import metadata  # takes milliseconds to load

        return OLDEST <= _minor(metadata.version("torch")) <= NEWEST
    except (ImportError, ValueError):
        return False


def _minor(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def check() -> None:
    """Imports the installed PyTorch.

    Raises:
        VersionError: it is not there, or of another version; the text says which would be right.
    """
    wanted = f"PyTorch {'.'.join(map(str, OLDEST))} to {'.'.join(map(str, NEWEST))}"
    for switch in _NO_COMPILER:
        os.environ.setdefault(switch, "1")
    try:
        import torch
    except ImportError as error:
        raise VersionError(
            f"--torch real runs programs on the installed PyTorch, and it cannot be imported: {error}. Install "
            f"{wanted}, or use --torch numpy"
        ) from error
    if not OLDEST <= _minor(torch.__version__) <= NEWEST:
        raise VersionError(f"--torch real knows {wanted}; {torch.__version__} is installed")
    if not torch.distributed.is_available():
        raise VersionError("the installed PyTorch is built without torch.distributed")
