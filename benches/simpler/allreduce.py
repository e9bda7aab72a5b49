"""All-reduce of 256 floats on 2 to 16 chips, in five ways."""

import argparse
import sys

import torch
from chips import collective, device_range, flags, scratch, verdict

COUNT = 256


def buffer_of(mode: str, n: int):
    """The scratch buffer that a mode needs.

    Raises:
        ValueError: so many chips cannot do it this way.
    """
    ring = 2 * (n - 1)
    floats, rows, divisor = {
        "onephase": (COUNT, 1, 1),
        "twophase": (COUNT, 2, n),
        "ring": ((n + 1) * COUNT // n, ring, n),
        "bidirectional_ring": (COUNT, ring + 1, 2 * n),
        "ibing": ((n + 2) * COUNT // n, ring + 1, n),
    }[mode]
    if mode == "ibing" and n != 2:
        raise ValueError(f"ibing is for 2 chips, not {n}")
    if COUNT % divisor:
        raise ValueError(f"{mode} on {n} chips: {COUNT} is no multiple of {divisor}")
    return scratch("scratch", floats, rows)


def allreduce(cli: argparse.Namespace, inputs):
    """Runs it; returns what each chip has got."""
    return collective(f"allreduce_{cli.mode}", cli, inputs, COUNT, buffer_of(cli.mode, len(inputs)))


def parser() -> argparse.ArgumentParser:
    """The flags."""
    options = flags(__doc__)
    modes = ["onephase", "twophase", "ring", "bidirectional_ring", "ibing"]
    options.add_argument("-m", "--mode", choices=modes, default="onephase")
    return options


def main() -> int:
    """Runs it on small integers, whose sums no order of additions can change."""
    cli = parser().parse_args()
    n = len(device_range(cli.device))
    inputs = [torch.tensor([i + 100 * rank for i in range(COUNT)], dtype=torch.float32) for rank in range(n)]
    outputs = allreduce(cli, inputs)
    return verdict(cli.mode, outputs, lambda _: [n * i + 100 * n * (n - 1) // 2 for i in range(COUNT)])


if __name__ == "__main__":
    sys.exit(main())
