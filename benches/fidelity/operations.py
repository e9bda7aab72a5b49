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

CALLS = [
    # pointwise, and copies
    "x + y", "x + 1.0", "wide + other", "x * y", "x.exp()", "x.sigmoid()", "F.relu(x)", "F.gelu(x)", "F.silu(x)",
    "x.pow(2)", "wide.sqrt()", "x.clamp(-1, 1)", "x > y", "torch.where(mask, x, y)", "x.masked_fill(mask, 0.0)",
    "x.tril()", "x.float()", "wide.bfloat16()", "x.clone()", "x.t().contiguous()", "torch.cat((x, y))",
    "F.dropout(x, 0.1)", "torch.zeros_like(x)", "torch.randn_like(x)", "z.mul_(1.0)", "z.fill_(1.0)",
    "keys.repeat_interleave(4, 1)",
    # reductions, and what is made of them
    "x.sum()", "x.sum(-1)", "x.sum(0)", "wide.mean(-1)", "x.max(-1)", "x.argmax(-1)", "wide.norm()", "x.cumsum(-1)",
    "torch.var_mean(x, -1)", "x.logsumexp(-1)", "x.softmax(-1)", "x.log_softmax(-1)",
    "x.softmax(-1, dtype=torch.float32)", "F.layer_norm(x, (WIDTH,), weight, weight)",
    "F.rms_norm(x, (WIDTH,), weight)",
    "F.mse_loss(x, y)", "F.cross_entropy(logits, labels)", "F.nll_loss(logits, labels)", "x.topk(8, -1)", "x.sort(-1)",
    # indices
    "F.embedding(tokens, table)", "x.index_select(0, rows)", "x[rows]",
    "x.gather(0, rows[:, None].expand(4096, WIDTH))", "x.index_add(0, rows, y)", "F.one_hot(tokens, 32000)",
    # attention and products
    "F.scaled_dot_product_attention(query, query, query)",
    "F.scaled_dot_product_attention(query, query, query, is_causal=True)",
    "F.scaled_dot_product_attention(query, keys, keys, is_causal=True, enable_gqa=True)",
    "query.flatten(0, 1) @ query.flatten(0, 1).transpose(1, 2)", "x[:16] @ y.t()", "wide @ other.t()",
    # images
    "F.conv2d(image, kernel, padding=1)", "F.batch_norm(image, mean, var, mean, mean, True)", "F.max_pool2d(image, 2)",
    "F.group_norm(image, 32)", "F.adaptive_avg_pool2d(image, 1)", "F.interpolate(image, scale_factor=2)",
    # gradients and optimizers
    "gelu()", "softmax()", "layer_norm()", "rms_norm()", "gate()", "embedding()", "cross_entropy()", "dropout()",
    "attention()", "causal()", "adamw.step()", "fused_adamw.step()", "sgd.step()",
    "torch.nn.utils.clip_grad_norm_(parameters, 1.0)", "torch._foreach_add(parameters, 1.0)",
]  # fmt: skip

WIDTH = 8192


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


def known():
    """Returns what calls are made of, by names."""
    x, y, weight, tokens, table = (
        rand(4096, WIDTH),
        rand(4096, WIDTH),
        rand(WIDTH),
        drawn(32000, 16384),
        rand(32000, 4096),
    )
    logits, labels, query = rand(8192, 32000), drawn(32000, 8192), rand(4, 32, 2048, 128)
    parameters = [torch.nn.Parameter(rand(4096, 4096, dtype=torch.float32)) for _ in range(8)]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    attention = F.scaled_dot_product_attention
    return {
        "torch": torch, "F": F, "WIDTH": WIDTH, "x": x, "y": y, "z": rand(4096, WIDTH), "weight": weight,
        "wide": x.float(), "other": y.float(), "mask": x > 0, "tokens": tokens, "table": table, "logits": logits,
        "labels": labels, "rows": drawn(4096, 4096), "query": query, "keys": rand(4, 8, 2048, 128),
        "image": rand(32, 256, 56, 56), "kernel": rand(256, 256, 3, 3), "parameters": parameters,
        "mean": rand(256, dtype=torch.float32), "var": rand(256, dtype=torch.float32).abs(),
        "gelu": backward(F.gelu, x), "softmax": backward(lambda x: x.softmax(-1), x),
        "layer_norm": backward(lambda x, w, b: F.layer_norm(x, (WIDTH,), w, b), x, weight, weight),
        "rms_norm": backward(lambda x, w: F.rms_norm(x, (WIDTH,), w), x, weight),
        "gate": backward(lambda x, y: F.silu(x) * y, x, y),
        "embedding": backward(lambda table: F.embedding(tokens, table), table),
        "cross_entropy": backward(lambda logits: F.cross_entropy(logits, labels), logits),
        "dropout": backward(lambda x: F.dropout(x, 0.1), x), "attention": backward(attention, query, query, query),
        "causal": backward(lambda q, k, v: attention(q, k, v, is_causal=True), query, query, query),
        "adamw": torch.optim.AdamW(parameters, foreach=True), "fused_adamw": torch.optim.AdamW(parameters, fused=True),
        "sgd": torch.optim.SGD(parameters, momentum=0.9),
    }  # fmt: skip


def times(repeats=10):
    """Returns the microseconds of each call, of several in a row: the median of three."""
    names, found = known(), {}
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for call in CALLS:
        code, spans = compile(call, call, "eval"), []
        for _ in range(4):
            start.record()
            for _ in range(repeats):
                eval(code, names)
            end.record()
            torch.cuda.synchronize()
            spans.append(start.elapsed_time(end) * 1e3 / repeats)
        found[call] = statistics.median(spans[1:])  # the first ones load kernels
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", metavar="FILE", help="write the times instead of comparing them")
    options = parser.parse_args()
    found = times()
    if options.record:
        with open(options.record, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([("call", "us"), *((call, f"{us:.1f}") for call, us in found.items())])
        return
    with RECORDED.open(newline="") as file:
        recorded = {row["call"]: float(row["us"]) for row in csv.DictReader(file)}
    print(f"{'measured us':>12}{'predicted':>12}{'ratio':>8}")
    for call in sorted(recorded, key=lambda call: found[call] / recorded[call]):
        print(f"{recorded[call]:12.1f}{found[call]:12.1f}{found[call] / recorded[call]:8.2f}  {call}")


if __name__ == "__main__":
    main()
