"""The stand-ins for simpler's runtime and its set-up."""

from __future__ import annotations

from torchemu.frontends.base import FrontEnd

FRONT_END = FrontEnd(
    fixtures="torchemu.frontends.simpler_setup.fixtures",
    packages={"simpler": "torchemu.frontends.simpler", "simpler_setup": "torchemu.frontends.simpler_setup"},
)
