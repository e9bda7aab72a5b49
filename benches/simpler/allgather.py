"""All-gather of 64 floats from each of 2 to 16 chips."""

import sys

import torch
from chips import collective, device_range, flags, scratch, verdict

COUNT = 64


def allgather(cli, inputs):
    """Runs it; returns what each chip has got."""
    return collective("allgather", cli, inputs, COUNT * len(inputs), scratch("scratch", COUNT, rows=1))


def main() -> int:
    """Runs it; every chip has to get all blocks in the order of ranks."""
    cli = flags(__doc__).parse_args()
    n = len(device_range(cli.device))
    inputs = [torch.tensor([100 * rank + i for i in range(COUNT)], dtype=torch.float32) for rank in range(n)]
    golden = [100 * rank + i for rank in range(n) for i in range(COUNT)]
    return verdict("allgather", allgather(cli, inputs), lambda _: golden)


if __name__ == "__main__":
    sys.exit(main())
