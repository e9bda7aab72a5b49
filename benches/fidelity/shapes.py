"""Times of products, attention and convolutions in shapes that models have: a program for a GPU and for torchemu.

Nothing of the preset is fitted to h200_shapes.csv, which

    python benches/fidelity/shapes.py --record benches/fidelity/h200_shapes.csv

has recorded on an H200. Beside it, what the preset predicts:

    torchemu run --torch real --no-data --topology h200_8 --nproc-per-node 1 benches/fidelity/shapes.py
"""

import argparse
import csv
import functools
import statistics
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 (as programs have it)
from operations import rand

RECORDED = Path(__file__).with_name("h200_shapes.csv")
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}

LAYERS = [(16384, 8192), (28672, 8192), (8192, 28672), (128256, 4096), (4096, 4096)]
STACKS = [
    (64, 1024, 64), (256, 1024, 64), (32, 4096, 128), (64, 1000, 64), (64, 1023, 64), (512, 256, 64), (4096, 64, 64),
    (16, 128, 4096), (8, 4096, 4096),
]  # fmt: skip
HEADS = [(4, 32, 4096, 128), (16, 12, 1024, 64), (1, 32, 16384, 128), (64, 12, 512, 64)]
CONVOLUTIONS = [
    (64, 64, 56, 3, 1), (128, 128, 28, 3, 1), (256, 256, 14, 3, 1), (512, 512, 7, 3, 1), (256, 64, 56, 1, 1),
    (64, 256, 56, 1, 1), (1024, 256, 14, 1, 1), (2048, 512, 7, 1, 1), (3, 64, 224, 7, 2), (256, 512, 56, 1, 2),
    (3, 768, 224, 16, 16), (320, 320, 64, 3, 1),
]  # fmt: skip
"""Channels of images and of results, the images' side, the kernels' side, the stride."""
IMAGES = [(64, 64, 112, 112), (64, 256, 56, 56), (64, 2048, 7, 7)]


def products():
    """Yields calls by their names: Linear of a few tokens, and stacks of scores and of weighted values."""
    for tokens in (1, 16, 64, 128, 512, 1000):
        for out, width in LAYERS:
            yield f"linear {tokens} {out} {width}", functools.partial(F.linear, rand(tokens, width), rand(out, width))
    for stack, length, depth in STACKS:
        query, key, scores = rand(stack, length, depth), rand(stack, length, depth), rand(stack, length, length)
        yield f"scores {stack} {length} {depth}", functools.partial(torch.bmm, query, key.transpose(1, 2))
        yield f"values {stack} {length} {depth}", functools.partial(torch.bmm, scores, key)


def attentions():
    """Yields calls by their names: causal attention, with and without its gradients."""
    for shape in HEADS:
        name, operands = " ".join(map(str, shape)), [rand(*shape).requires_grad_() for _ in range(3)]
        call = functools.partial(F.scaled_dot_product_attention, *operands, is_causal=True)
        yield f"attention {name}", torch.no_grad()(call)
        yield f"attention, backward {name}", functools.partial(with_gradients, call)


def convolutions():
    """Yields calls by their names: convolutions by dtypes, with and without their gradients; normalization."""
    for sizes in CONVOLUTIONS:
        inner, outer, side, kernel, stride = sizes
        for dtype in DTYPES:
            images = rand(64, inner, side, side, dtype=DTYPES[dtype]).requires_grad_()
            weight = rand(outer, inner, kernel, kernel, dtype=DTYPES[dtype]).requires_grad_()
            padding = kernel // 2 if stride < kernel else 0
            call = functools.partial(F.conv2d, images, weight, stride=stride, padding=padding)
            name = f"{dtype} {' '.join(map(str, sizes))}"
            yield f"convolution {name}", torch.no_grad()(call)
            yield f"convolution, backward {name}", functools.partial(with_gradients, call)
    for shape in IMAGES:
        images, channel = rand(*shape, dtype=torch.float32), rand(shape[1], dtype=torch.float32).abs()
        for training in (True, False):
            call = functools.partial(F.batch_norm, images, channel, channel, channel, channel, training)
            yield f"batch_norm {'training' if training else 'eval'} {' '.join(map(str, shape))}", call


def with_gradients(call):
    result = call()
    result.backward(result)


def microseconds(call, repeats=10):
    """Returns what a call takes: the median of five times so many in a row, after three."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    took = []
    for _ in range(5):
        start.record()
        for _ in range(repeats):
            call()
        end.record()
        end.synchronize()
        took.append(start.elapsed_time(end) * 1e3 / repeats)
    return statistics.median(took)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", metavar="FILE", help="write the times instead of comparing them")
    options = parser.parse_args()
    measured = ((name, microseconds(call)) for kind in (products, attentions, convolutions) for name, call in kind())
    if options.record:
        with open(options.record, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("call", "us"))
            writer.writerows((name, f"{us:.1f}") for name, us in measured)
        return
    with RECORDED.open(newline="") as file:
        recorded = {row["call"]: float(row["us"]) for row in csv.DictReader(file)}
    ratios = sorted((us / recorded[name], us, name) for name, us in measured)
    print(f"{'measured us':>12}{'predicted':>12}{'ratio':>8}")
    for ratio, us, name in ratios:
        print(f"{recorded[name]:12.1f}{us:12.1f}{ratio:8.2f}  {name}")
    for most in (0.15, 0.5):
        print(f"within {most:.0%}: {statistics.fmean(abs(ratio - 1) <= most for ratio, _, _ in ratios):.0%}")


if __name__ == "__main__":
    main()
