"""The stand-in for Megatron-core, which gives way to Megatron itself: who has installed it means it."""

from __future__ import annotations

from torchemu.frontends.base import FrontEnd

FRONT_END = FrontEnd(
    packages={"megatron": "torchemu.frontends.megatron"},
    modules={
        "megatron.core.distributed": "torchemu.tp.gradients",
        "megatron.core.model_parallel_config": "torchemu.tp.config",
        "megatron.core.parallel_state": "torchemu.tp.parallel_state",
        "megatron.core.tensor_parallel": "torchemu.tp",
        "megatron.core.transformer.transformer_config": "torchemu.tp.config",
        "megatron.core.utils": "torchemu.tp.utils",
    },
    gives_way={"megatron": "core"},
    isolates=("megatron",),
    lacks="torchemu's stand-in for Megatron has no {name}: install megatron-core, and run with --torch real",
)
