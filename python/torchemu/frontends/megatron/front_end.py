"""The stand-in for Megatron-core, which gives way to Megatron itself: who has installed it means it."""

from __future__ import annotations

from torchemu.frontends.base import FrontEnd

FRONT_END = FrontEnd(
    packages={"megatron": "torchemu.frontends.megatron"},
    gives_way={"megatron": "core"},
    isolates=("megatron",),
)
