"""Symmetric memory as it is allocated: in granules, of which programs may use more than they have asked for."""

from __future__ import annotations

import sys
import warnings
import weakref

from torchemu import runtime
from torchemu.frontends.triton._program import Block, Part, asked
from torchemu.language import _windows

GRANULE = 512
"""Bytes of which an allocation has a multiple."""

_warned: weakref.WeakKeyDictionary[runtime.World, set[tuple[str, int]]] = weakref.WeakKeyDictionary()


def inside(part: Part, address: int, nbytes: int) -> None:
    """Warns once a line of what is beyond the end of an allocation and still in its granule."""
    if not part.limit < address + nbytes <= part.end:
        return
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(runtime.PACKAGE):
        frame = frame.f_back
    site = (frame.f_code.co_filename, frame.f_lineno)
    known = _warned.setdefault(runtime.current_world(), set())
    if site in known:
        return
    known.add(site)
    first, wanted = address - part.start, part.limit - part.start
    warnings.warn_explicit(
        f"bytes {first} to {first + nbytes} of an allocation of {wanted} bytes are used; "
        f"they exist because memory comes in pieces of {GRANULE}",
        RuntimeWarning,
        *site,
    )


def is_symmetric(program: Block, address: int) -> bool:
    """Says whether an address is in memory that does not go away at the end of a launch."""
    part = program.part(address)
    if part is None:
        return False
    return part.start in asked.get() or _windows.alike(program.machine.world, part.start) is not None
