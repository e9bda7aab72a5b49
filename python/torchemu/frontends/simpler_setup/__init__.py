"""Stands in for ``simpler_setup``, which compiles kernels, with the machine's g++ and torchemu's headers."""

from torchemu.frontends.simpler_setup.elf_parser import extract_text_section
from torchemu.frontends.simpler_setup.kernel_compiler import KernelCompiler
from torchemu.frontends.simpler_setup.pto_isa import ensure_pto_isa_root
from torchemu.frontends.simpler_setup.runtime_builder import RuntimeBuilder
from torchemu.frontends.simpler_setup.scene_test import (
    CallableNamespace,
    Scalar,
    SceneTestCase,
    TaskArgsBuilder,
    Tensor,
    TensorArg,
    scene_test,
)
from torchemu.frontends.simpler_setup.torch_interop import make_tensor_arg, torch_dtype_to_datatype

__all__ = [
    "CallableNamespace",
    "KernelCompiler",
    "RuntimeBuilder",
    "Scalar",
    "SceneTestCase",
    "TaskArgsBuilder",
    "Tensor",
    "TensorArg",
    "ensure_pto_isa_root",
    "extract_text_section",
    "make_tensor_arg",
    "scene_test",
    "torch_dtype_to_datatype",
]
