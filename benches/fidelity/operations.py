"""Times of operations on one device: a user's program, which runs unmodified on a GPU and on torchemu.

On a machine with an H200, to record what h200_operations.csv has:

    python benches/fidelity/operations.py --record benches/fidelity/h200_operations.csv

Beside it, what the preset of that machine predicts:

    torchemu run --torch real --no-data --topology h200_8 --nproc-per-node 1 benches/fidelity/operations.py
"""

import argparse
import csv
import statistics
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 (so the calls read)

RECORDED = Path(__file__).with_name("h200_operations.csv")

SIZES = {
    "4096x8192": (4096, 8192),
    "32768x1024": (32768, 1024),
    "16384x4096": (16384, 4096),
    "1024x32768": (1024, 32768),
}
"""Rows and width of the matrices that most calls take."""

MATRICES = [
    # pointwise, and copies
    "x + y", "x + 1.0", "x * y", "x / y", "x - y", "x.exp()", "x.tanh()", "x.neg()", "x.sigmoid()", "x.rsqrt()",
    "F.relu(x)", "F.gelu(x)", "F.gelu(x, approximate='tanh')", "F.silu(x)", "x.pow(2)", "x.sqrt()", "x.clamp(-1, 1)",
    "x > y", "x == y", "x.abs()", "x.isnan()", "mask.logical_not()", "torch.where(mask, x, y)",
    "x.masked_fill(mask, 0.0)", "torch.addcmul(x, x, y)", "torch.lerp(x, y, 0.5)", "x + weight", "x * column",
    "x.cos()", "x.tril()", "x.float()", "x.bfloat16()", "x.half()", "x.double()", "mask.to(x.dtype)", "x.clone()",
    "x.t().contiguous()", "heads.transpose(1, 2).contiguous()", "torch.cat((x, y))", "torch.cat((x, y), -1)",
    "torch.stack((x, y))", "x[:, : WIDTH // 2].contiguous()", "x.flip(-1)", "x.roll(1, -1)", "F.pad(x, (0, 8))",
    "F.dropout(x, 0.1)", "torch.zeros_like(x)", "torch.ones_like(x)", "torch.randn_like(x)", "torch.rand_like(x)",
    "z.mul_(1.0)", "z.add_(y)", "z.fill_(1.0)", "z.zero_()", "z.copy_(y)", "z.normal_()", "z.uniform_()",
    "z.bernoulli_(0.5)", "x.repeat_interleave(2, 0)", "x.repeat(2, 1)", "torch.arange(ROWS * WIDTH, device='cuda')",
    # reductions, and what is made of them
    "x.sum()", "x.sum(-1)", "x.sum(0)", "x.mean(-1)", "x.mean()", "x.max()", "x.amax(-1)", "x.max(-1)",
    "x.argmax(-1)", "x.norm()", "x.norm(dim=-1)", "mask.any()", "mask.sum()", "x.prod(-1)", "x.cumsum(-1)",
    "x.cumsum(0)", "x.std(-1)", "torch.var_mean(x, -1)", "x.logsumexp(-1)", "x.softmax(-1)", "x.log_softmax(-1)",
    "x.softmax(-1, dtype=torch.float32)", "F.layer_norm(x, (WIDTH,), weight, weight)",
    "F.rms_norm(x, (WIDTH,), weight)", "F.normalize(x, dim=-1)", "F.mse_loss(x, y)",
    "F.binary_cross_entropy_with_logits(x, y)", "F.cross_entropy(x, classes)", "F.nll_loss(x, classes)",
    "x.topk(8, -1)", "x.sort(-1)", "x.argsort(-1)",
    # indices
    "F.embedding(rows, x)", "x.index_select(0, rows)", "x[rows]", "x.gather(0, rows[:, None].expand(ROWS, WIDTH))",
    "x.gather(1, classes[:, None])", "x.index_add(0, rows, y)",
    "x.scatter_add(0, rows[:, None].expand(ROWS, WIDTH), y)", "z.index_copy_(0, rows, y)", "z.index_put_((rows,), y)",
    "z.scatter_(1, classes[:, None], 1.0)",
    # gradients
    "gelu()", "silu()", "relu()", "softmax()", "log_softmax()", "layer_norm()", "rms_norm()", "gate()", "embedding()",
    "cross_entropy()", "dropout()", "tanh()", "index()", "mse_loss()", "bce()",
]  # fmt: skip
"""Calls on matrices of each size, of bfloat16 and of float32."""

OTHERS = [
    "F.one_hot(tokens, 32000)", "F.embedding(tokens, table)", "table_grad()", "F.cross_entropy(logits, labels)",
    # attention and products
    "F.scaled_dot_product_attention(query, query, query)",
    "F.scaled_dot_product_attention(query, query, query, is_causal=True)",
    "F.scaled_dot_product_attention(query, keys, keys, is_causal=True, enable_gqa=True)",
    "F.scaled_dot_product_attention(query, query, query, attn_mask=bias)",
    "F.scaled_dot_product_attention(long, long, long)",
    "F.scaled_dot_product_attention(long, long, long, is_causal=True)",
    "F.scaled_dot_product_attention(short, short, short)", "F.scaled_dot_product_attention(narrow, narrow, narrow)",
    "F.scaled_dot_product_attention(narrow, narrow, narrow, is_causal=True)",
    "F.scaled_dot_product_attention(exact, exact, exact)", "F.scaled_dot_product_attention(one, query, query)",
    "query.flatten(0, 1) @ query.flatten(0, 1).transpose(1, 2)", "wide @ wide.t()", "attention()", "causal()",
    "long_attention()", "long_causal()", "narrow_attention()", "narrow_causal()", "grouped()", "biased()",
    "exact_attention()",
    # images
    "F.conv2d(image, kernel, padding=1)", "F.conv2d(image, pointwise)",
    "F.conv2d(pixels, first, stride=2, padding=3)", "F.conv2d(image.float(), kernel.float(), padding=1)",
    "F.batch_norm(image, mean, var, mean, mean, True)", "F.batch_norm(image, mean, var, mean, mean, False)",
    "F.max_pool2d(image, 2)", "F.max_pool2d(image, 3, 2, 1)", "F.avg_pool2d(image, 2)", "F.group_norm(image, 32)",
    "F.adaptive_avg_pool2d(image, 1)", "F.interpolate(image, scale_factor=2)",
    "F.interpolate(image, scale_factor=2, mode='bilinear')", "conv2d()", "conv1x1()", "batch_norm()", "group_norm()",
    "max_pool()", "avg_pool()",
    # optimizers
    "adamw.step()", "fused_adamw.step()", "sgd.step()", "fused_sgd.step()", "adam_loop.step()",
    "torch.nn.utils.clip_grad_norm_(parameters, 1.0)", "torch._foreach_add(parameters, 1.0)",
    "torch._foreach_mul_(buffers, 1.0)", "torch._foreach_add_(buffers, buffers)",
    "torch._foreach_lerp_(buffers, parameters, 0.5)", "torch._foreach_norm(parameters)",
    "torch._foreach_sqrt(buffers)", "torch._foreach_addcdiv_(buffers, parameters, parameters, 0.0)",
    "torch._foreach_addcmul_(buffers, parameters, parameters, 0.0)", "torch._foreach_div_(buffers, 1.0)",
    "torch._foreach_zero_(buffers)", "torch._foreach_copy_(buffers, parameters)",
]  # fmt: skip
"""Calls that are recorded once."""


def rand(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def drawn(below, *shape):
    return torch.randint(0, below, shape, device="cuda")


def backward(function, *operands):
    """Returns what calculates the gradients of a function's operands; its result is calculated once."""
    leaves = [x.detach().requires_grad_() for x in operands]
    out = function(*leaves)
    grad = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, leaves, grad, retain_graph=True)


def matrices(rows, width, dtype):
    """Returns what calls on matrices are made of, by names."""
    x, y, weight = rand(rows, width, dtype=dtype), rand(rows, width, dtype=dtype), rand(width, dtype=dtype)
    drawn_rows, classes = drawn(rows, rows), drawn(width, rows)
    return {
        "torch": torch, "F": F, "ROWS": rows, "WIDTH": width, "x": x, "y": y, "z": rand(rows, width, dtype=dtype),
        "weight": weight, "column": rand(rows, 1, dtype=dtype), "mask": x > 0, "rows": drawn_rows, "classes": classes,
        "heads": x.view(8, rows // 8, 8, width // 8),
        "gelu": backward(F.gelu, x), "silu": backward(F.silu, x), "relu": backward(F.relu, x),
        "tanh": backward(torch.tanh, x),
        "softmax": backward(lambda x: x.softmax(-1), x), "log_softmax": backward(lambda x: x.log_softmax(-1), x),
        "layer_norm": backward(lambda x, w, b: F.layer_norm(x, (width,), w, b), x, weight, weight),
        "rms_norm": backward(lambda x, w: F.rms_norm(x, (width,), w), x, weight),
        "gate": backward(lambda x, y: F.silu(x) * y, x, y),
        "embedding": backward(lambda table: F.embedding(drawn_rows, table), x),
        "cross_entropy": backward(lambda logits: F.cross_entropy(logits, classes), x),
        "dropout": backward(lambda x: F.dropout(x, 0.1), x), "index": backward(lambda x: x[drawn_rows], x),
        "mse_loss": backward(F.mse_loss, x, y),
        "bce": backward(lambda x: F.binary_cross_entropy_with_logits(x, y.sigmoid()), x),
    }  # fmt: skip


def others():
    """Returns what the other calls are made of, by names."""
    tokens, table, logits, labels = drawn(32000, 16384), rand(32000, 4096), rand(8192, 32000), drawn(32000, 8192)
    query, keys, long, short, narrow = (
        rand(4, 32, 2048, 128),
        rand(4, 8, 2048, 128),
        rand(1, 32, 8192, 128),
        rand(32, 32, 512, 128),
        rand(4, 64, 2048, 64),
    )
    exact = rand(4, 16, 1024, 128, dtype=torch.float32)
    bias = rand(1, 1, 2048, 2048)
    parameters = [torch.nn.Parameter(rand(4096, 4096, dtype=torch.float32)) for _ in range(8)]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    attention = F.scaled_dot_product_attention
    image, kernel, pointwise = rand(32, 256, 56, 56), rand(256, 256, 3, 3), rand(512, 256, 1, 1)
    mean, var = rand(256, dtype=torch.float32), rand(256, dtype=torch.float32).abs()

    def causal(q, k, v):
        return attention(q, k, v, is_causal=True)

    return {
        "torch": torch, "F": F, "tokens": tokens, "table": table, "logits": logits, "labels": labels,
        "query": query, "keys": keys, "long": long, "short": short, "narrow": narrow, "exact": exact, "bias": bias,
        "wide": rand(4096, 8192, dtype=torch.float32),
        "one": rand(4, 32, 1, 128),
        "image": image, "kernel": kernel, "pointwise": pointwise, "pixels": rand(64, 3, 224, 224),
        "first": rand(64, 3, 7, 7),
        "parameters": parameters, "buffers": [rand(4096, 4096, dtype=torch.float32).abs() for _ in range(8)],
        "mean": mean, "var": var,
        "table_grad": backward(lambda table: F.embedding(tokens, table), table),
        "attention": backward(attention, query, query, query), "causal": backward(causal, query, query, query),
        "long_attention": backward(attention, long, long, long), "long_causal": backward(causal, long, long, long),
        "narrow_attention": backward(attention, narrow, narrow, narrow),
        "narrow_causal": backward(causal, narrow, narrow, narrow),
        "grouped": backward(lambda q, k, v: attention(q, k, v, is_causal=True, enable_gqa=True), query, keys, keys),
        "biased": backward(lambda q, k, v: attention(q, k, v, attn_mask=bias), query, query, query),
        "exact_attention": backward(attention, exact, exact, exact),
        "conv2d": backward(lambda x, w: F.conv2d(x, w, padding=1), image, kernel),
        "conv1x1": backward(F.conv2d, image, pointwise),
        "batch_norm": backward(lambda x, w: F.batch_norm(x, mean, var, w, w, True), image, mean),
        "group_norm": backward(lambda x: F.group_norm(x, 32), image),
        "max_pool": backward(lambda x: F.max_pool2d(x, 2), image),
        "avg_pool": backward(lambda x: F.avg_pool2d(x, 2), image),
        "adamw": torch.optim.AdamW(parameters, foreach=True), "fused_adamw": torch.optim.AdamW(parameters, fused=True),
        "adam_loop": torch.optim.AdamW(parameters, foreach=False),
        "sgd": torch.optim.SGD(parameters, momentum=0.9),
        "fused_sgd": torch.optim.SGD(parameters, momentum=0.9, fused=True),
    }  # fmt: skip


def times(calls, names, repeats=10):
    """Yields each call and its microseconds, of several in a row: the median of three."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for call in calls:
        code, spans = compile(call, call, "eval"), []
        for _ in range(4):
            start.record()
            for _ in range(repeats):
                eval(code, names)
            end.record()
            torch.cuda.synchronize()
            spans.append(start.elapsed_time(end) * 1e3 / repeats)
        yield call, statistics.median(spans[1:])  # the first ones load kernels


def groups():
    """Yields size and dtype of calls' operands, the calls, and what these are made of, by names."""
    for dtype in (torch.bfloat16, torch.float32):
        for size, (rows, width) in SIZES.items():
            yield (size, str(dtype).removeprefix("torch.")), MATRICES, matrices(rows, width, dtype)
    yield ("", ""), OTHERS, others()


def measured():
    """Yields operand sizes, dtype, call and microseconds of all calls."""
    for of, calls, names in groups():
        for call, us in times(calls, names):
            yield *of, call, us


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", metavar="FILE", help="write the times instead of comparing them")
    options = parser.parse_args()
    if options.record:
        with open(options.record, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("size", "dtype", "call", "us"))
            writer.writerows((*what, f"{us:.1f}") for *what, us in measured())
        return
    with RECORDED.open(newline="") as file:
        recorded = {tuple(row[:3]): float(row[3]) for row in list(csv.reader(file))[1:]}
    found = [(us / recorded[*what], us, what) for *what, us in measured()]
    print(f"{'measured us':>12}{'predicted':>12}{'ratio':>8}")
    for ratio, us, what in sorted(found):
        print(f"{recorded[*what]:12.1f}{us:12.1f}{ratio:8.2f}  {' '.join(what)}")


if __name__ == "__main__":
    main()
