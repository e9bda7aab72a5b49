"""The stand-in for mori: collectives over copy engines and network cards."""

from __future__ import annotations

from torchemu.frontends.base import FrontEnd

FRONT_END = FrontEnd(packages={"mori": "torchemu.frontends.mori.face"}, beside_all=True)
