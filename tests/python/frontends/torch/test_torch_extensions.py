"""Extensions with kernels in CUDA C++: what stands in for those of DeepSpeed's Adam, and the refusal of others."""

import numpy as np
import pytest
import torch
from torch.utils import cpp_extension

import torchemu
from torchemu import runtime

SHAPES = [(1,), (0,), (3, 5), (257,)]


def wanted(given, lr, betas, eps, step, decoupled, corrects, decay):
    """Returns what Adam makes of a gradient, a parameter and two averages, by its formulas, in float64."""
    g, p, m, v = (each.double().cpu().numpy() for each in given)
    if not decoupled:
        g = g + decay * p
    m = betas[0] * m + (1 - betas[0]) * g
    v = betas[1] * v + (1 - betas[1]) * g**2
    first, second = (1 - betas[0] ** step, 1 - betas[1] ** step) if corrects else (1, 1)
    update = m / first / (np.sqrt(v / second) + eps) + (decay * p if decoupled else 0)
    return p - lr * update, m, v


@pytest.mark.parametrize("decoupled", [0, 1])
@pytest.mark.parametrize("corrects", [0, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@torchemu.distributed(world_size=1, torch="real")
def test_steps_of_adam_are_its_formulas(decoupled, corrects, dtype):
    adam = cpp_extension.load("fused_adam", ["frontend.cpp", "multi_tensor_adam.cu"]).multi_tensor_adam
    torch.manual_seed(7)
    lists = [[(torch.randn(shape) ** 2).to("cuda", dtype) for shape in SHAPES] for _ in range(4)]
    lr, betas, eps, decay = 0.25, (0.75, 0.875), 0.5, 0.125
    for step in (1, 2):
        oracle = [wanted(each, lr, betas, eps, step, decoupled, corrects, decay) for each in zip(*lists, strict=True)]
        adam(65536, torch.zeros(1, dtype=torch.int), lists, lr, *betas, eps, step, decoupled, corrects, decay)
        tolerance = 4 * torch.finfo(dtype).eps
        for made, right in zip(zip(*lists[1:], strict=True), oracle, strict=True):
            for tensor, values in zip(made, right, strict=True):
                assert tensor.device.type == "cuda"
                assert tensor.dtype == dtype
                np.testing.assert_allclose(tensor.double().cpu().numpy(), values, rtol=tolerance, atol=tolerance)


@torchemu.distributed(world_size=2, torch="real")
def test_another_extension_is_refused_by_its_name():
    with pytest.raises(RuntimeError, match=r"the extension 'fused_lamb' has kernels in CUDA C\+\+, in lamb.cu, and"):
        cpp_extension.load("fused_lamb", ["lamb.cpp", "lamb.cu"])


@torchemu.distributed(world_size=1, torch="real")
def test_a_run_says_what_stood_in():
    cpp_extension.load("fused_adam", ["multi_tensor_adam.cu"])
    said = runtime.current().world.warnings["extension fused_adam"]
    assert "'fused_adam', whose kernels are in CUDA C++, was not compiled: PyTorch's own kernel" in said
