"""Tests of what programs import: today's names and older ones, unknown ones, and the user's own library of kernels."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

NAMES = """
import os
import torch
import triton
import triton.language as tl
from triton.compiler import CompiledKernel
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import KernelInterface
from triton.language import core, math
from triton.language.extra import libdevice, libshmem_device as older
from triton.language.extra.cuda import libdevice as again, language_extra
from triton.language.extra.cuda.utils import num_warps
from triton.tools.tensor_descriptor import TensorDescriptor
from triton_dist import pynvshmem
from triton_dist.autotuner import contextual_autotune
from triton_dist.tools import aot_compile_spaces
from triton_dist.language.extra import libshmem_device
from triton_dist.kernels.mine import double, VALUE
from triton_dist.utils import initialize_distributed
import cuda.bindings.driver, cuda.bindings.runtime, nvshmem.core, nvshmem.bindings.nvshmem
from cuda import cuda, cudart

assert triton.__version__ == "3.4.0"
assert older.putmem_block is libshmem_device.putmem_block


assert double.src.startswith("def double("), double.src


@contextual_autotune(is_dist=True)
def tuned(): pass


@aot_compile_spaces({"x": {}})
@triton.jit
def kernel(words, out, n: tl.constexpr):
    t = language_extra.tid(0)
    if t < n:
        older.signal_wait_until(words + t, older.NVSHMEM_CMP_EQ, 1)
    language_extra.__syncthreads()
    tl.store(out + tl.arange(0, n), double(tl.arange(0, n)) + VALUE)
"""

MAIN = """
initialize_distributed()
pynvshmem.init_nvshmem_by_uniqueid(None)
words = pynvshmem.nvshmem_create_tensor((4,), torch.int64)
words.fill_(1)
pynvshmem.nvshmemx_barrier_all_on_stream(torch.cuda.current_stream().cuda_stream)
out = torch.zeros(4, dtype=torch.int32).cuda()
kernel[(1,)](words, out, 4)
pynvshmem.nvshmem_barrier_all()
print(out.tolist())
"""

LIBRARY = """
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.utils import something_of_another_release
from triton_dist.language.extra import libshmem_device

VALUE = tl.constexpr(100)


@triton.jit
def double(x):
    return 2 * x


@triton.jit
def never(x):
    something_of_another_release(x)
"""


def test_old_and_unknown_names_and_a_library_above(tmp_path: Path) -> None:
    program = NAMES.replace("@contextual_autotune(is_dist=True)\ndef tuned(): pass\n", "") + MAIN
    (tmp_path / "program.py").write_text(program)
    package = tmp_path / "triton_dist"
    (package / "kernels").mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('the real package, which needs a GPU')\n")
    (package / "kernels" / "__init__.py").write_text("")
    (package / "kernels" / "mine.py").write_text(LIBRARY)
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "numpy", "--nproc-per-node", "2", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == ["[100, 102, 104, 106]"] * 2
