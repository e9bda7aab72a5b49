"""Layer norm and dropout by kernels, with gradients through torch.autograd.Function, in a small training loop."""

import torch
import triton
import triton.language as tl


@triton.jit
def forward_kernel(x, y, w, b, mean, rstd, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row * stride
    y += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x + i, mask=i < N, other=0.0).to(tl.float32)
    m = tl.sum(total, axis=0) / N
    square = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        centered = tl.where(i < N, tl.load(x + i, mask=i < N, other=0.0).to(tl.float32) - m, 0.0)
        square += centered * centered
    r = 1 / tl.sqrt(tl.sum(square, axis=0) / N + eps)
    tl.store(mean + row, m)
    tl.store(rstd + row, r)
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        hat = (tl.load(x + i, mask=i < N, other=0.0).to(tl.float32) - m) * r
        tl.store(y + i, hat * tl.load(w + i, mask=i < N) + tl.load(b + i, mask=i < N), mask=i < N)


@triton.jit
def backward_kernel(dx, dy, dw, db, x, w, mean, rstd, lock, stride, N, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """Gradients of the input; those of weight and bias are added under locks, a group of rows each."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    inside = i < N
    g = row % GROUP
    m, r = tl.load(mean + row), tl.load(rstd + row)
    hat = tl.where(inside, (tl.load(x + row * stride + i, mask=inside, other=0).to(tl.float32) - m) * r, 0.0)
    d = tl.load(dy + row * stride + i, mask=inside, other=0).to(tl.float32)
    wdy = tl.where(inside, tl.load(w + i, mask=inside).to(tl.float32) * d, 0.0)
    c1, c2 = tl.sum(hat * wdy, axis=0) / N, tl.sum(wdy, axis=0) / N
    tl.store(dx + row * stride + i, (wdy - (hat * c1 + c2)) * r, mask=inside)
    lock += g
    count = lock + GROUP
    part_w, part_b = (d * hat).to(w.dtype.element_ty), d.to(w.dtype.element_ty)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        part_w += tl.load(dw + g * N + i, mask=inside)
        part_b += tl.load(db + g * N + i, mask=inside)
    tl.store(dw + g * N + i, part_w, mask=inside)
    tl.store(db + g * N + i, part_b, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def gather_kernel(dw, db, out_w, out_b, M, N, BM: tl.constexpr, BN: tl.constexpr):
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    sum_w, sum_b = tl.zeros((BM, BN), dtype=tl.float32), tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, M, BM):
        rows = start + tl.arange(0, BM)
        mask = (rows[:, None] < M) & (columns[None, :] < N)
        at = rows[:, None] * N + columns[None, :]
        sum_w += tl.load(dw + at, mask=mask, other=0.0)
        sum_b += tl.load(db + at, mask=mask, other=0.0)
    tl.store(out_w + columns, tl.sum(sum_w, axis=0), mask=columns < N)
    tl.store(out_b + columns, tl.sum(sum_b, axis=0), mask=columns < N)


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        y = torch.empty_like(x)
        m, n = x.reshape(-1, x.shape[-1]).shape
        mean, rstd = (torch.empty((m,), dtype=torch.float32, device=x.device) for _ in range(2))
        forward_kernel[(m,)](x, y, weight, bias, mean, rstd, x.stride(-2), n, eps, BLOCK=64, num_warps=2, num_ctas=1)
        ctx.save_for_backward(x, weight, bias, mean, rstd)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w, _, mean, rstd = ctx.saved_tensors
        m, n = x.reshape(-1, x.shape[-1]).shape
        group = 4
        locks = torch.zeros(2 * group, dtype=torch.int32, device=w.device)
        dw, db = (torch.zeros((group, n), dtype=x.dtype, device=w.device) for _ in range(2))
        out_w, out_b = (torch.empty((n,), dtype=w.dtype, device=w.device) for _ in range(2))
        dx = torch.empty_like(dy)
        backward_kernel[(m,)](
            dx, dy, dw, db, x, w, mean, rstd, locks, x.stride(-2), n, GROUP=group, BLOCK=triton.next_power_of_2(n)
        )
        gather_kernel[lambda meta: [triton.cdiv(n, meta["BN"])]](dw, db, out_w, out_b, group, n, BM=8, BN=32)
        return dx, out_w, out_b, None


layer_norm = LayerNorm.apply


@triton.jit
def dropout_kernel(x, out, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, i) > p
    tl.store(out + i, tl.where(keep, tl.load(x + i, mask=i < n) / (1 - p), 0.0), mask=i < n)


def dropout(x, p, seed):
    out = torch.empty_like(x)
    assert x.is_contiguous()
    dropout_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel(), p, seed, BLOCK=256)
    return out


torch.manual_seed(1)
m, n = 37, 100
x = (torch.randn(m, n, device="cuda") * 2 + 1).requires_grad_()
weight, bias = (torch.rand(n, device="cuda", requires_grad=True) for _ in range(2))
dy = torch.randn(m, n, device="cuda") / 10
layer_norm(x, weight, bias, 1e-5).backward(dy, retain_graph=True)
found = [t.grad.clone() for t in (x, weight, bias)]
for t in (x, weight, bias):
    t.grad = None
expected = torch.nn.functional.layer_norm(x, (n,), weight, bias, 1e-5)
torch.testing.assert_close(layer_norm(x, weight, bias, 1e-5), expected)
expected.backward(dy)
for have, t in zip(found, (x, weight, bias), strict=True):
    torch.testing.assert_close(have, t.grad, atol=1e-4, rtol=1e-4)

z = torch.randn(1000, device="cuda")
first, second, other = dropout(z, 0.5, 123), dropout(z, 0.5, 123), dropout(z, 0.5, 512)
assert torch.equal(first, second) and not torch.equal(first, other)
assert 350 < (first != 0).sum().item() < 650 and torch.equal(first[first != 0], (2 * z)[first != 0])


def trained(norm):
    """The losses of a few steps of a model whose norm is ours or PyTorch's."""
    torch.manual_seed(2)
    first, last = torch.nn.Linear(16, 32).cuda(), torch.nn.Linear(32, 4).cuda()
    weight, bias = torch.ones(32, device="cuda", requires_grad=True), torch.zeros(32, device="cuda", requires_grad=True)
    optimizer = torch.optim.AdamW([*first.parameters(), *last.parameters(), weight, bias], lr=0.01)
    data, target = torch.randn(24, 16, device="cuda"), torch.randint(0, 4, (24,), device="cuda")
    losses = []
    for _ in range(5):
        hidden = torch.relu(norm(first(data), weight, bias))
        loss = torch.nn.functional.cross_entropy(last(hidden), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


ours = trained(lambda x, w, b: layer_norm(x, w, b, 1e-5))
theirs = trained(lambda x, w, b: torch.nn.functional.layer_norm(x, (32,), w, b, 1e-5))
torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
assert ours[-1] < ours[0]
print("ok")
