"""Records on a machine with a GPU for which calls the host waits until the device has done what came before.

    python record_waits.py recorded_waits.json

The file next to this one has been made so; tests compare the simulated devices with it.
"""

import json
import sys

import torch
import torch.nn.functional as F  # noqa: N812 (so the expressions read)

CALLS = [
    # copies
    "host.cuda()", "pinned.cuda()", "host.cuda(non_blocking=True)", "pinned.cuda(non_blocking=True)", "x.copy_(host)",
    "x.copy_(host, non_blocking=True)", "x.copy_(pinned)", "host.copy_(x, non_blocking=True)", "pinned.copy_(x)",
    "pinned.copy_(x, non_blocking=True)", "x.cpu()", "x.to('cpu', non_blocking=True)", "x.clone()", "x.double()",
    "host.to('cuda', torch.float16)", "host.to('cuda', torch.float16, non_blocking=True)", "x.copy_(ones)",
    "torch.zeros(0).cuda()", "torch.nn.Linear(4, 4).cuda()", "torch.tensor(3.0, device='cuda')",
    "torch.tensor([1, 2], device='cuda')", "torch.tensor([], device='cuda')", "torch.as_tensor([1], device='cuda')",
    "x.new_tensor([1.0])", "torch.full((4,), 3.0, device='cuda')", "torch.scalar_tensor(3.0, device='cuda')",
    "torch.arange(4, device='cuda')", "torch.eye(3, device='cuda')", "x + number", "x.fill_(number)", "x.mul_(2.0)",
    # indices
    "x[mask]", "x[mask, None]", "matrix[matrix > 9]", "x[ints]", "x[[0, 1]]", "x[host_ints]", "put(mask, 0.0)",
    "put(mask, number)", "put(mask, host[:1])", "put(mask, one)", "put(mask, x[mask] + 1)", "put(ints, one)",
    "put(host_ints, one)", "put(0, 3.0)", "put(0, number)", "put(slice(0, 1), host[:1])", "put(0, one[0])",
    "x.index_put_((mask,), number, accumulate=True)", "x.index_select(0, ints)", "x.gather(0, ints)", "x.take(ints)",
    "x.masked_select(mask)", "x.masked_fill_(mask, 1.0)", "x.masked_scatter_(mask, x.clone())", "x.tolist()",
    "torch.where(mask, x, 0.0)", "torch.where(mask, x, number)", "torch.where(mask, x, one)", "torch.where(mask)",
    # sizes and looks
    "mask.nonzero()", "mask.nonzero_static(size=8)", "torch.argwhere(mask)", "ints.unique()",
    "ints.unique_consecutive()", "ints.bincount()", "ints.bincount(minlength=4)", "torch.repeat_interleave(x, ones)",
    "torch.repeat_interleave(x, ones, output_size=8)", "torch.repeat_interleave(x, 2)", "F.one_hot(ones, 4)",
    "one.item()",
    "torch.equal(x, x)", "torch.allclose(x, x)", "bool(one)", "torch.is_nonzero(one)", "mask.any()", "str(x)",
    "torch.isin(ints, ones)", "x.isfinite().all()", "x.count_nonzero()", "x.histc(4)", "x.histc(4, 0, 1)", "x.max()",
    "torch.multinomial(x.abs() + 1, 2)", "torch.bucketize(x, x.sort()[0])", "x.topk(2)", "x.cumsum(0)", "x.median()",
    "x.kthvalue(2)", "F.dropout(x)", "torch.randperm(8, device='cuda')", "torch.bernoulli(one)", "torch.normal(x, 1.0)",
    "torch.nn.utils.clip_grad_norm_([torch.nn.Parameter(x)], 1.0)", "F.cross_entropy(x[None], ones[:1])",
    "F.embedding(ints, matrix)", "F.embedding_bag(ints[None], matrix)", "F.ctc_loss(logits, ones[None, :2], [5], [2])",
    # linear algebra
    *(f"torch.linalg.{name}(square)" for name in (
        "inv", "inv_ex", "cholesky", "cholesky_ex", "eig", "eigh", "eigvalsh", "svd", "svdvals", "pinv", "qr", "det",
        "slogdet", "lu_factor", "lu_factor_ex", "matrix_exp", "matrix_rank", "norm",
    )),
    "torch.linalg.solve(square, square)", "torch.linalg.solve_ex(square, square)", "torch.linalg.lstsq(square, square)",
    "torch.linalg.solve_triangular(square, square, upper=True)", "torch.linalg.matrix_norm(square, 2)",
]  # fmt: skip


def waits(size, times):
    """Returns, by calls, whether what was put on the stream before has been done when the call has returned.

    Args:
        size, times: of products that take longer than the host does to make a call.
    """
    x, one, ones = torch.randn(8, device="cuda"), torch.ones(1, device="cuda"), torch.ones(8, device="cuda").long()
    host = torch.zeros(8)
    known = {
        "torch": torch, "F": F, "x": x, "one": one, "ones": ones, "mask": x > 0, "host": host, "number": torch.ones(()),
        "pinned": torch.zeros(8).pin_memory(), "ints": torch.tensor([0, 1], device="cuda"), "put": x.__setitem__,
        "host_ints": torch.tensor([0, 1]), "matrix": torch.randn(4, 4, device="cuda"),
        "square": torch.eye(3, device="cuda"), "logits": torch.zeros(5, 1, 4, device="cuda"),
    }  # fmt: skip
    large, found = torch.randn(size, size, device="cuda"), {}
    for call in CALLS:
        eval(call, known)
        torch.cuda.synchronize()
        for _ in range(times):
            large @ large
        before = torch.cuda.Event()
        before.record()
        eval(call, known)
        found[call] = before.query()
        torch.cuda.synchronize()
    return found


if __name__ == "__main__":
    found = {"torch": torch.__version__, "device": torch.cuda.get_device_name(), "waits": waits(8192, 20)}
    with open(sys.argv[1], "w") as file:
        json.dump(found, file, indent=0)
        file.write("\n")
