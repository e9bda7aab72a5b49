"""simpler_setup.pto_isa: where the instructions' headers are."""

from __future__ import annotations

from pathlib import Path


def ensure_pto_isa_root(
    verbose: bool = False, commit: str | None = None, clone_protocol: str = "ssh", update_if_exists: bool = False
) -> str:
    """A folder without headers: none are needed, and nothing is fetched."""
    return str(Path(__file__).parent)
