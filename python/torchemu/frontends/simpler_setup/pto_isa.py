"""simpler_setup.pto_isa: where the instructions' headers are."""

from __future__ import annotations

from torchemu.frontends.pto._compiler import HEADERS


def ensure_pto_isa_root(
    verbose: bool = False, commit: str | None = None, clone_protocol: str = "ssh", update_if_exists: bool = False
) -> str:
    """The folder with torchemu's headers in include/pto; nothing is fetched."""
    return str(HEADERS.parent)
