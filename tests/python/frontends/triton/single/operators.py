"""Kernels in custom operators and compiled functions, attention, and random operations on what kernels write."""

import torch
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton


@triton.jit
def scale_kernel(x, out, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


@triton_op("torchemu_tests::scale", mutates_args={})
def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
    out = torch.empty_like(x)
    wrap_triton(scale_kernel)[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), factor, 128)
    return out


@torch.library.custom_op("torchemu_tests::scaled_in_place", mutates_args={"x"})
def scaled_in_place(x: torch.Tensor, factor: float) -> None:
    scale_kernel[(triton.cdiv(x.numel(), 128),)](x, x, x.numel(), factor, BLOCK=128)


def setup_context(ctx, inputs, output):
    ctx.factor = inputs[1]


scale.register_autograd(lambda ctx, dy: (scale(dy.contiguous(), ctx.factor), None), setup_context=setup_context)


@triton.jit
def attention_kernel(q, k, v, out, scale, T, BLOCK: tl.constexpr, D: tl.constexpr):
    head = tl.program_id(1)
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = head * T * D
    i = tl.arange(0, D)
    query = tl.load(q + at + rows[:, None] * D + i[None, :], mask=rows[:, None] < T, other=0.0)
    m = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    acc = tl.zeros([BLOCK, D], tl.float32)
    for start in range(0, tl.minimum((tl.program_id(0) + 1) * BLOCK, T), BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns[:, None] < T
        keys = tl.load(k + at + columns[:, None] * D + i[None, :], mask=inside, other=0.0)
        scores = tl.dot(query, tl.trans(keys), input_precision="ieee") * scale
        scores = tl.where((rows[:, None] >= columns[None, :]) & (columns[None, :] < T), scores, -float("inf"))
        new = tl.maximum(m, tl.max(scores, 1))
        p = tl.exp(scores - new[:, None])
        factor = tl.exp(m - new)
        total = total * factor + tl.sum(p, 1)
        values = tl.load(v + at + columns[:, None] * D + i[None, :], mask=inside, other=0.0)
        acc = acc * factor[:, None] + tl.dot(p, values, input_precision="ieee")
        m = new
    tl.store(out + at + rows[:, None] * D + i[None, :], acc / total[:, None], mask=rows[:, None] < T)


def attention(q, k, v):
    heads, t, d = q.shape
    out = torch.empty_like(q)
    attention_kernel[(triton.cdiv(t, 16), heads)](q, k, v, out, d**-0.5, t, BLOCK=16, D=d)
    return out


torch.manual_seed(0)
x = torch.randn(300, device="cuda", requires_grad=True)
y = scale(x, 3.0)
assert torch.equal(y, 3 * x)
y.sum().backward()
assert torch.equal(x.grad, torch.full_like(x, 3))
z = x.detach().clone()
scaled_in_place(z, 2.0)
assert torch.equal(z, 2 * x)

compiled = torch.compile(lambda t: scale(t.sin(), 2.0) + 1)
assert torch.equal(compiled(x), 2 * x.sin() + 1)

q, k, v = (torch.randn(3, 50, 16, device="cuda") for _ in range(3))
torch.testing.assert_close(
    attention(q, k, v), torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
)

# Random operations on what a kernel is yet to write are the same as on what is there.
torch.cuda.manual_seed(5)
late = torch.nn.functional.dropout(scale(x, 1.0), 0.5)
torch.cuda.manual_seed(5)
assert torch.equal(late, torch.nn.functional.dropout(x, 0.5))
late = scale(x, 2.0).detach()
late.index_add_(0, torch.tensor([1, 1, 7], device="cuda"), torch.ones(3, device="cuda"))
wanted = 2 * x.detach()
wanted[1] += 2
wanted[7] += 1
assert torch.equal(late, wanted)
values, order = scale(x, 2.0).sort()
assert torch.equal(values, (2 * x).sort()[0]) and torch.equal(order, x.sort()[1])
assert scale(x, 2.0).nonzero().shape == (300, 1) and (scale(x, 2.0) > 0).sum().item() == (x > 0).sum().item()
host = torch.empty(300, pin_memory=True)
host.copy_(scale(x, 4.0), non_blocking=True)
torch.cuda.synchronize()
assert torch.equal(host, (4 * x).cpu())
source = torch.ones(300)
on_device = scale(x, 4.0).detach()
on_device.copy_(source)
source.zero_()
assert torch.equal(on_device, torch.ones(300, device="cuda"))
assert (
    scale(x, 2.0).tolist() == (2 * x).tolist()
    and (scale(x, 2.0).detach().cpu().numpy() == (2 * x).detach().cpu().numpy()).all()
)
print("ok")
