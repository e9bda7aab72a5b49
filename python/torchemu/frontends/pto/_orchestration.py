"""Orders of an orchestration to its chip: the kernels to run, and their arguments."""

from __future__ import annotations

from collections.abc import Sequence

from torchemu.bridge.binding import go
from torchemu.frontends.pto._memory import TensorArg
from torchemu.frontends.pto._program import running


def rt_submit_aiv_task(func_id: int, args: Sequence[TensorArg | int]) -> None:
    """Runs a kernel on the chip's vector core, after those that were submitted before it have ended.

    Args:
        func_id: the kernel's number among the children of the ChipCallable.
        args: tensors, then scalars.

    Raises:
        RuntimeError: this is no orchestration.
        KeyError: no child has the number.
    """
    program = running()
    kernels, program.kernels = program.kernels, None  # a kernel submits none
    if kernels is None:
        raise RuntimeError("tasks can be submitted in orchestrations only: in a function of a ChipCallable's source")
    try:
        if func_id not in kernels:
            raise KeyError(f"no kernel has the number {func_id}; those of the orchestration have {sorted(kernels)}")
        kernels[func_id](list(args))
        program.operate(go.PrimOrder, "pipe_barrier")
    finally:
        program.kernels = kernels


rt_submit_aic_task = rt_submit_aiv_task
"""The same for the matrix core: a chip has one program at a time here."""
