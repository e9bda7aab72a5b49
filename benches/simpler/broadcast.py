"""Broadcast of 64 floats from one of 2 to 16 chips to all."""

import sys

import torch
from chips import collective, device_range, flags, scratch, verdict

COUNT = 64


def broadcast(cli, inputs):
    """Runs it; returns what each chip has got."""
    return collective("broadcast", cli, inputs, COUNT, scratch("scratch", COUNT, rows=1), scalars=[cli.root])


def parser():
    """The flags."""
    options = flags(__doc__)
    options.add_argument("--root", type=int, default=0, help="whose floats all get")
    return options


def main() -> int:
    """Runs it; every chip has to get the root's."""
    cli = parser().parse_args()
    n = len(device_range(cli.device))
    inputs = [torch.tensor([100 * rank + i for i in range(COUNT)], dtype=torch.float32) for rank in range(n)]
    return verdict("broadcast", broadcast(cli, inputs), lambda _: [100 * cli.root + i for i in range(COUNT)])


if __name__ == "__main__":
    sys.exit(main())
