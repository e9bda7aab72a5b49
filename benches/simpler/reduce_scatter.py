"""Reduce-scatter of a block of 64 floats for each of 2 to 16 chips."""

import sys

import torch
from chips import collective, device_range, flags, scratch, verdict

COUNT = 64


def reduce_scatter(cli, inputs):
    """Runs it; returns what each chip has got."""
    return collective("reduce_scatter", cli, inputs, COUNT, scratch("scratch", COUNT * len(inputs), rows=1))


def main() -> int:
    """Runs it; chip d has to get the sums of all chips' blocks d."""
    cli = flags(__doc__).parse_args()
    n = len(device_range(cli.device))
    inputs = [torch.tensor([i + 100 * rank for i in range(COUNT * n)], dtype=torch.float32) for rank in range(n)]
    outputs = reduce_scatter(cli, inputs)
    return verdict(
        "reduce_scatter", outputs, lambda d: [n * (COUNT * d + j) + 100 * n * (n - 1) // 2 for j in range(COUNT)]
    )


if __name__ == "__main__":
    sys.exit(main())
