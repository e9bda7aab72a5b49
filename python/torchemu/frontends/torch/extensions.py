"""Extensions with kernels in CUDA C++, which packages have compiled at their first use: simulated devices run none.

The kernel of Adam for many parameters at once, with which DeepSpeed takes steps, is PyTorch's own of the same meaning.
"""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Sequence
from typing import Any

import torch

from torchemu.frontends.torch.session import Session

_MODULE = "torch.utils.cpp_extension"


def install(run: Session) -> None:
    """Gives ranks that see devices what there is in the place of an extension, until the run ends."""
    run.on_load[_MODULE] = functools.partial(_stand_in, run)


def _stand_in(run: Session, module: Any) -> None:
    compiled = module._jit_compile

    @functools.wraps(compiled)
    def jit_compile(name: str, sources: Sequence[str] | str, *args: Any, **kwargs: Any) -> Any:
        files = [sources] if isinstance(sources, str) else [*sources]
        kernels = next((file for file in files if file.endswith(".cu")), None)
        if kernels is None or not torch.cuda.is_available():
            return compiled(name, sources, *args, **kwargs)
        if name not in _STAND_INS:
            raise NotImplementedError(
                f"the extension {name!r} has kernels in CUDA C++, in {kernels}, and simulated devices run none: those "
                "of PyTorch and of Triton run"
            )
        run.world.warnings[f"extension {name}"] = (
            f"the extension {name!r}, whose kernels are in CUDA C++, was not compiled: PyTorch's own kernel of the "
            "same meaning has run in its place"
        )
        return types.SimpleNamespace(__name__=name, **_STAND_INS[name])

    run.replace(module, "_jit_compile", jit_compile)


def _multi_tensor_adam(
    chunk_size: int,
    noop_flag: torch.Tensor,
    tensor_lists: Sequence[list[torch.Tensor]],
    lr: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    step: int,
    mode: int,
    bias_correction: int,
    weight_decay: float,
) -> None:
    """Takes a step of Adam, in place.

    Args:
        chunk_size, noop_flag: mean nothing here.
        tensor_lists: gradients, parameters, averages of gradients and of their squares; lists of equal length, and
            tensors of one shape and dtype at each position.
        step: how many there have been, with this one.
        mode: 0 adds the weight decay to gradients, 1 takes it off parameters.
        bias_correction: 0 takes the averages as they are.
    """
    gradients, parameters, averages, squares = tensor_lists
    take = torch._fused_adamw_ if mode else torch._fused_adam_
    steps = float(step) if bias_correction else math.inf  # to the power of which the betas are 0
    take(
        parameters, gradients, averages, squares, [],
        [torch.full((), steps, dtype=torch.float32, device=each.device) for each in parameters],
        lr=lr, beta1=beta1, beta2=beta2, weight_decay=weight_decay, eps=epsilon, amsgrad=False, maximize=False,
    )  # fmt: skip


_STAND_INS: dict[str, dict[str, Any]] = {"fused_adam": {"multi_tensor_adam": _multi_tensor_adam}}
