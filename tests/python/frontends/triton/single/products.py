"""Matrix products with configurations and grouped programs; events and streams."""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BM": 64, "BN": 32, "BK": 32, "GROUP": 4}, num_stages=3, num_warps=4),
        triton.Config({"BM": 32, "BN": 32, "BK": 64, "GROUP": 2}, num_stages=2, num_warps=2),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def product_kernel(
    a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(axis=0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    in_group = GROUP * columns
    first = pid // in_group * GROUP
    size = min(rows - first, GROUP)
    pm = first + (pid % in_group) % size
    pn = (pid % in_group) // size
    tl.assume(pm >= 0)
    i, j, k = (pm * BM + tl.arange(0, BM)) % M, (pn * BN + tl.arange(0, BN)) % N, tl.arange(0, BK)
    left, right = a + (i[:, None] * sam + k[None, :] * sak), b + (k[:, None] * sbk + j[None, :] * sbn)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(tl.cdiv(K, BK)):
        x = tl.load(left, mask=k[None, :] < K - step * BK, other=0.0)
        y = tl.load(right, mask=k[:, None] < K - step * BK, other=0.0)
        total = tl.dot(x, y, total)
        left += BK * sak
        right += BK * sbk
    if ACTIVATION == "leaky_relu":
        total = leaky_relu(total)
    i, j = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN)
    tl.store(c + scm * i[:, None] + scn * j[None, :], total.to(tl.float16), mask=(i[:, None] < M) & (j[None, :] < N))


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


def matmul(a, b, activation=""):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), device=a.device, dtype=torch.float16)
    grid = lambda meta: (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),)  # noqa: E731
    product_kernel[grid](
        a, b, c, m, n, k, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        ACTIVATION=activation,
    )  # fmt: skip
    return c


torch.manual_seed(0)
a = torch.rand((150, 90), device="cuda", dtype=torch.float16) - 0.5
b = torch.rand((90, 70), device="cuda", dtype=torch.float16) - 0.5
torch.testing.assert_close(matmul(a, b), torch.matmul(a, b), atol=1e-2, rtol=0)
expected = torch.nn.functional.leaky_relu(torch.matmul(a, b))
torch.testing.assert_close(matmul(a, b, "leaky_relu"), expected, atol=1e-2, rtol=0)
torch.testing.assert_close(matmul(b.T, a.T), matmul(a, b).T.contiguous(), atol=0, rtol=0)

# Events measure simulated time; another stream runs beside this one, and is waited for.
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
start.record()
c = matmul(a, b)
end.record()
torch.cuda.synchronize()
assert 0 < start.elapsed_time(end) < 10
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    d = matmul(a, b) + 1
torch.cuda.current_stream().wait_stream(side)
assert torch.equal(d, c + 1)
assert triton.testing.do_bench(lambda: matmul(a, b)) > 0
print("ok")
