"""The stand-in for Triton: its kernels run in simulated time on a rank's device."""

from __future__ import annotations

from torchemu.frontends.base import FrontEnd

FRONT_END = FrontEnd(packages={"triton": "torchemu.frontends.triton.face"})
