"""Kernels in C++ for tests."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import ROOT
from simpler_cases import RUNTIME

from torchemu.frontends.simpler.task_interface import ArgDirection, ChipCallable, CoreCallable
from torchemu.frontends.simpler_setup.kernel_compiler import KernelCompiler

KERNELS = ROOT / "benches" / "simpler" / "cpp" / "kernels"

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++, which compiles kernels")

HEAD = """#include <cstdint>
#include <stdexcept>
#include <pto/pto-inst.hpp>
#include "pto/comm/pto_comm_inst.hpp"
#include "platform_comm/comm_context.h"
#include "tensor.h"
using namespace pto;

template <typename T>
T *pointer(int64_t tensor) {
    Tensor *t = reinterpret_cast<Tensor *>(tensor);
    return reinterpret_cast<T *>(t->buffer.addr) + t->start_offset;
}

// Elements of a tensor, one after another.
template <typename T, int Count>
using Line = GlobalTensor<T, Shape<1, 1, 1, 1, Count>, Stride<Count, Count, Count, Count, 1>>;

%s
extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
#line 100
%s
}
"""


def source(folder: Path, body: str, before: str = "", name: str = "own_kernel") -> Path:
    """A file with a kernel whose first line has the number 100."""
    file = folder / f"{name}.cpp"
    file.write_text(HEAD % (before, body))
    return file


def callable_of(file: Path, core: str = "aiv") -> ChipCallable:
    """The callable of a kernel, which is called with the task's arguments."""
    binary = KernelCompiler("a2a3sim").compile_incore(file, core)
    child = CoreCallable.build([ArgDirection.IN], binary)
    return ChipCallable.build([ArgDirection.IN], "orchestration", b"", [(0, child)])


def orchestrated(orchestration: Path, kernels: Sequence[Path], name: str = "entry") -> ChipCallable:
    """The callable of an orchestration with kernels 0, 1, …"""
    compiler = KernelCompiler("a2a3sim")
    children = [
        (i, CoreCallable.build([ArgDirection.IN], compiler.compile_incore(file))) for i, file in enumerate(kernels)
    ]
    binary = compiler.compile_orchestration(RUNTIME, orchestration)
    return ChipCallable.build([ArgDirection.IN], name, binary, children)
