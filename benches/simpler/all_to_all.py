"""All-to-all of a block of 64 floats from each of 2 to 16 chips to each."""

import sys

import torch
from chips import collective, device_range, flags, scratch, verdict

COUNT = 64


def all_to_all(cli, inputs):
    """Runs it; returns what each chip has got."""
    n = len(inputs)
    return collective("all_to_all", cli, inputs, COUNT * n, scratch("scratch", COUNT * n, rows=1))


def main() -> int:
    """Runs it; chip d has to get the others' blocks d, in the order of ranks."""
    cli = flags(__doc__).parse_args()
    n = len(device_range(cli.device))
    inputs = [
        torch.tensor([1000 * rank + 100 * dest + j for dest in range(n) for j in range(COUNT)], dtype=torch.float32)
        for rank in range(n)
    ]
    outputs = all_to_all(cli, inputs)
    return verdict(
        "all_to_all", outputs, lambda d: [1000 * src + 100 * d + j for src in range(n) for j in range(COUNT)]
    )


if __name__ == "__main__":
    sys.exit(main())
