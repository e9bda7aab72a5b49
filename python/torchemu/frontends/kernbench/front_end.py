"""The stand-in for kernbench: its tensor parallelism has Megatron's signatures."""

from __future__ import annotations

from torchemu.frontends.base import FrontEnd

FRONT_END = FrontEnd(
    packages={"kernbench": "torchemu.frontends.kernbench"},
    modules={
        "kernbench.policy.placement.dp": "torchemu.frontends.numpy._placement",
        "kernbench.tp": "torchemu.tp",
        "kernbench.tp.primitives": "torchemu.frontends.kernbench.primitives",
    },
)
