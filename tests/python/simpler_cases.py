"""Workers of the stand-in for simpler, and kernels in Python, for tests."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import torchemu as torch
from torchemu.frontends.simpler.orchestrator import Orchestrator
from torchemu.frontends.simpler.task_interface import (
    ArgDirection,
    ChipCallable,
    ChipDomainContext,
    CommBufferSpec,
    ContinuousTensor,
    CoreCallable,
    DataType,
    TaskArgs,
    TensorArgType,
)
from torchemu.frontends.simpler.worker import RunTiming, Worker
from torchemu.frontends.simpler_setup.kernel_compiler import KernelCompiler
from torchemu.frontends.simpler_setup.torch_interop import make_tensor_arg

RUNTIME = "tensormap_and_ringbuffer"
IN, OUT, INOUT = TensorArgType.INPUT, TensorArgType.OUTPUT_EXISTING, TensorArgType.INOUT
NO_DEP = TensorArgType.NO_DEP

ADD = """
    from torchemu.pto import *

    def kernel_entry(args):
        '''c = a + b'''
        a, b, c = (GlobalTensor(t.ptr(), t.shapes) for t in args[:3])
        left, right = Tile(1, args[0].numel()), Tile(1, args[0].numel())
        TASSIGN(left, 0)
        TASSIGN(right, 0x8000)
        TLOAD(left, a)
        TLOAD(right, b)
        pipe_barrier(PIPE_ALL)
        TADD(left, left, right)
        pipe_barrier(PIPE_ALL)
        TSTORE(c, left)
"""
"""A kernel of three tensors: c = a + b."""


def compiled(source: str | Path) -> ChipCallable:
    """The callable of a kernel's source."""
    compiler = KernelCompiler("a2a3sim")
    core = CoreCallable.build([ArgDirection.IN], compiler.compile_incore(source))
    return ChipCallable.build([ArgDirection.IN], "orchestration", b"", [(0, core)])


def written(folder: Path, text: str, name: str = "own_kernel") -> ChipCallable:
    """The callable of a kernel in Python."""
    (folder / f"{name}.py").write_text(textwrap.dedent(text))
    return compiled(folder / f"{name}.cpp")


@contextlib.contextmanager
def working(chips: int = 2, sub_workers: int = 0) -> Iterator[Worker]:
    """A Worker over chips 0, 1, …, that can run."""
    worker = Worker(platform="a2a3sim", runtime=RUNTIME, device_ids=list(range(chips)), num_sub_workers=sub_workers)
    worker.init()
    try:
        yield worker
    finally:
        worker.close()


def called(*arguments: Any) -> TaskArgs:
    """TaskArgs of tensors with tags (tensor, tag), and of scalars."""
    args = TaskArgs()
    for argument in arguments:
        if not isinstance(argument, tuple):
            args.add_scalar(argument)
            continue
        tensor, tag = argument
        args.add_tensor(make_tensor_arg(tensor) if isinstance(tensor, torch.Tensor) else tensor, tag)
    return args


def run(worker: Worker, build: Callable[[Orchestrator], object]) -> RunTiming:
    """Runs what build(orch) submits."""
    return worker.run(lambda orch, _args, _config: build(orch))


def tensor(values: Any) -> torch.Tensor:
    """A float32 tensor of the host's."""
    return torch.from_numpy(np.array(values, np.float32))


def domain(orch: Orchestrator, members: Sequence[int], nbytes: int = 4096, name: str = "d") -> list[ChipDomainContext]:
    """Returns what the members of a new domain, with one buffer "all", see of it."""
    buffers = [CommBufferSpec("all", "float32", nbytes // 4, nbytes)]
    with orch.allocate_domain(name=name, workers=members, window_size=nbytes, buffers=buffers) as handle:
        return [handle[w] for w in members]


def window(seen: ChipDomainContext) -> ContinuousTensor:
    """The tensor of that buffer."""
    count = seen.actual_window_size // 4
    return ContinuousTensor.make(seen.buffer_ptrs["all"], (count,), DataType.FLOAT32, child_memory=True)
