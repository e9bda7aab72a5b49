"""The stand-in for kernbench."""

from __future__ import annotations

from torchemu.frontends.base import FrontEnd

FRONT_END = FrontEnd(packages={"kernbench": "torchemu.frontends.kernbench"})
