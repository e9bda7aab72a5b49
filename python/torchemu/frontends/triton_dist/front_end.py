"""The stand-ins for Triton-distributed and what it stands on: NVSHMEM's Python interface, and CUDA's."""

from __future__ import annotations

from torchemu.frontends.base import FrontEnd

_PACKAGE = "torchemu.frontends.triton_dist"

FRONT_END = FrontEnd(
    packages={"triton_dist": f"{_PACKAGE}.face", "nvshmem": f"{_PACKAGE}.nvshmem", "cuda": f"{_PACKAGE}.cuda"},
    beside_all=True,
)
