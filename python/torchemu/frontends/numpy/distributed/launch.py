"""torch.distributed.launch: torchrun's predecessor, which gives workers ``--local-rank`` as an argument."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence

from torchemu.frontends.numpy.distributed import run as torchrun
from torchemu.frontends.numpy.distributed.run import get_args_parser, run

__all__ = ["get_args_parser", "launch", "main", "parse_args", "run"]


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """torchrun's arguments, and --use-env; None: the program's own."""
    parser = torchrun.get_args_parser()
    parser.add_argument("--use-env", "--use_env", action="store_true", default=False)
    return parser.parse_args(args)


def launch(args: argparse.Namespace) -> None:
    """Runs the workers to their end."""
    run(args)


def main(args: Sequence[str] | None = None) -> None:
    """What the command does with these arguments."""
    warnings.warn(
        "The module torch.distributed.launch is deprecated and will be removed in future. Use torchrun.",
        FutureWarning,
        stacklevel=2,
    )
    launch(parse_args(args))


if __name__ == "__main__":
    main()
