"""Megatron's tensor parallelism: layers whose parameters are divided among ranks, and the groups that ranks form.

A program makes the groups with ``parallel_state.initialize_model_parallel`` on every rank, and then its layers. What
Megatron keeps in globals of the process belongs to the running rank here. Inside a run the same is importable as
``megatron.core.parallel_state`` and ``megatron.core.tensor_parallel``, unless Megatron itself is installed, and as
``kernbench.tp``.
"""

# ruff: noqa: F403 (each module says what there is)

from torchemu.tp import config, data, layers, mappings, random, utils
from torchemu.tp import cross_entropy as cross_entropy
from torchemu.tp import parallel_state as parallel_state
from torchemu.tp.config import *
from torchemu.tp.cross_entropy import vocab_parallel_cross_entropy
from torchemu.tp.data import *
from torchemu.tp.layers import *
from torchemu.tp.mappings import *
from torchemu.tp.random import *
from torchemu.tp.utils import *

__all__ = ["vocab_parallel_cross_entropy"]
__all__ += config.__all__
__all__ += data.__all__
__all__ += layers.__all__
__all__ += mappings.__all__
__all__ += random.__all__
__all__ += utils.__all__
