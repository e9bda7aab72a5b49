"""Operations on 16-bit and 8-bit floats with statistics, weights or scales of float32, against float32 of the host.

Of which dtypes CUDA takes which was seen with PyTorch 2.11 on an H200.
"""

import pytest
import torch
from torch.nn import functional

import torchemu


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("training", [False, True])
@torchemu.distributed(world_size=1, torch="real")
def test_batch_norm_with_wide_statistics(dtype, training):
    torch.manual_seed(3)
    x, weight, bias = torch.randn(16, 8).to(dtype), torch.rand(8).to(dtype), torch.rand(8).to(dtype)
    mean, var = torch.rand(8), torch.rand(8) + 1
    ours = [t.cuda().requires_grad_() for t in (x, weight, bias)]
    kept = mean.cuda(), var.cuda()
    out = functional.batch_norm(ours[0], *kept, *ours[1:], training)
    grad = torch.randn(16, 8).to(dtype)
    out.backward(grad.cuda())
    wide = [t.float().requires_grad_() for t in (x, weight, bias)]
    expected = functional.batch_norm(wide[0], mean, var, *wide[1:], training)
    assert out.dtype == dtype
    assert torch.equal(out.cpu(), expected.to(dtype))
    assert torch.equal(kept[0].cpu(), mean)
    assert torch.equal(kept[1].cpu(), var)
    expected.backward(grad.float())
    for got, oracle in zip(ours, wide, strict=True):
        assert got.grad.dtype == dtype
        assert torch.equal(got.grad.cpu(), oracle.grad.to(dtype))


@pytest.mark.parametrize(
    ("kinds", "refusal"),
    [
        ((torch.bfloat16, torch.float32), "Expected running_mean to have type BFloat16 but got Float"),
        ((torch.float32, torch.bfloat16), "Expected running_mean to have type Float but got BFloat16"),
    ],
    ids=["wide-statistics", "wide-weight"],
)
@torchemu.distributed(world_size=1, torch="real")
def test_batch_norm_of_images_wants_statistics_of_its_weight(kinds, refusal):
    x = torch.randn(3, 8, 4, 4, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    weight, mean = (torch.ones(8, device="cuda", dtype=kind) for kind in kinds)
    out = functional.batch_norm(x, mean, mean.clone(), weight, weight.clone(), True)
    with pytest.raises(RuntimeError, match=refusal):
        out.sum().backward()


@pytest.mark.parametrize("shapes", [((4, 1), (1, 48)), ((1, 1), (1, 48)), ((4, 1), (1, 1))], ids=str)
@torchemu.distributed(world_size=1, torch="real")
def test_product_with_scales_of_rows(shapes):
    torch.manual_seed(3)
    a, b = torch.randn(4, 32).to(torch.float8_e4m3fn), torch.randn(48, 32).to(torch.float8_e4m3fn).t()
    scales = [torch.rand(shape) + 0.5 for shape in shapes]
    bias = torch.randn(48).bfloat16()
    product = torch._scaled_mm(
        a.cuda(), b.cuda(), *(s.cuda() for s in scales), bias=bias.cuda(), out_dtype=torch.bfloat16
    )
    expected = (a.double() * scales[0]) @ (b.double() * scales[1]) + bias
    torch.testing.assert_close(product.cpu().double(), expected, rtol=1e-2, atol=1e-2)
