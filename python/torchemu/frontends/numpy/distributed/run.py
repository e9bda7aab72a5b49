"""torch.distributed.run: torchrun, as a program can call it: ``main(["--nproc-per-node", "4", "train.py"])``.

The command is ``torchemu run``, which has more to offer; from here workers are started by a program that runs already.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

from torchemu.frontends.numpy import cuda
from torchemu.frontends.numpy.distributed.launcher.api import LaunchConfig, elastic_launch

__all__ = [
    "config_from_args",
    "determine_local_world_size",
    "get_args_parser",
    "get_use_env",
    "main",
    "parse_args",
    "parse_min_max_nnodes",
    "run",
]

_WITH_VALUE: dict[str, Any] = {
    "nnodes": "1:1",
    "nproc-per-node": "1",
    "rdzv-backend": "static",
    "rdzv-endpoint": "",
    "rdzv-id": "none",
    "rdzv-conf": "",
    "max-restarts": 0,
    "monitor-interval": 0.1,
    "start-method": "spawn",
    "event-log-handler": "null",
    "role": "default",
    "log-dir": None,
    "redirects": "0",
    "tee": "0",
    "local-ranks-filter": "",
    "duplicate-stdout-filters": "",
    "duplicate-stderr-filters": "",
    "node-rank": 0,
    "master-addr": "127.0.0.1",
    "master-port": 29500,
    "local-addr": None,
    "logs-specs": None,
    "numa-binding": None,
    "signals-to-handle": "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
}
_WITHOUT_VALUE = ("standalone", "module", "no-python", "run-path", "virtual-local-rank")
_SHORT = {"module": "-m", "redirects": "-r", "tee": "-t"}


def get_args_parser() -> argparse.ArgumentParser:
    """torchrun's arguments, of which those about logs, rendezvous and monitoring mean nothing here."""
    parser = argparse.ArgumentParser(description="Torch Distributed Elastic Training Launcher")
    for name, default in _WITH_VALUE.items():
        kind = type(default) if isinstance(default, int | float) else str
        parser.add_argument(*_spellings(name), type=kind, default=default)
    for name in _WITHOUT_VALUE:
        parser.add_argument(*_spellings(name), action="store_true")
    parser.add_argument("training_script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def _spellings(name: str) -> list[str]:
    short = [_SHORT[name]] if name in _SHORT else []
    return [*short, *dict.fromkeys((f"--{name}", f"--{name.replace('-', '_')}"))]


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """The arguments; None: the program's own."""
    return get_args_parser().parse_args(args)


def parse_min_max_nnodes(nnodes: str) -> tuple[int, int]:
    """Of "2" or "1:4".

    Raises:
        RuntimeError: it is neither.
    """
    parts = nnodes.split(":")
    if len(parts) > 2:
        raise RuntimeError(f'nnodes={nnodes} is not in "MIN:MAX" format')
    return int(parts[0]), int(parts[-1])


def determine_local_world_size(nproc_per_node: str) -> int:
    """The number; for auto, cpu and gpu that of the devices.

    Raises:
        ValueError: it is no number, and none of these.
    """
    if nproc_per_node in ("auto", "cpu", "gpu"):
        return cuda.device_count()
    try:
        return int(nproc_per_node)
    except ValueError:
        raise ValueError(f"Unsupported nproc_per_node value: {nproc_per_node}") from None


def get_use_env(args: argparse.Namespace) -> bool:
    """Whether workers look for their local rank in the environment, and not among their arguments."""
    return getattr(args, "use_env", True)


def config_from_args(args: argparse.Namespace) -> tuple[LaunchConfig, Callable[..., Any] | str, list[str]]:
    """What elastic_launch is to be called with: the config, the entrypoint and its arguments.

    Raises:
        ValueError: --no-python: workers are Python programs in this process.
    """
    if args.no_python:
        raise ValueError("--no-python is not supported: workers are Python programs in this process")
    low, high = parse_min_max_nnodes(args.nnodes)
    endpoint = args.rdzv_endpoint or f"{args.master_addr}:{args.master_port}"
    config = LaunchConfig(
        low,
        high,
        determine_local_world_size(args.nproc_per_node),
        run_id=args.rdzv_id,
        role=args.role,
        rdzv_endpoint=endpoint,
        rdzv_backend=args.rdzv_backend,
        max_restarts=args.max_restarts,
        monitor_interval=args.monitor_interval,
        start_method=args.start_method,
    )
    options = ["-u", *(["-m"] if args.module else [])]
    local = [] if get_use_env(args) else ["--local-rank=${local_rank}"]
    return config, sys.executable, [*options, args.training_script, *local, *args.training_script_args]


def run(args: argparse.Namespace) -> None:
    """Runs the workers to their end.

    Raises:
        ChildFailedError: workers failed.
    """
    config, entrypoint, arguments = config_from_args(args)
    elastic_launch(config, entrypoint)(*arguments)


def main(args: Sequence[str] | None = None) -> None:
    """What torchrun does with these arguments."""
    run(parse_args(args))


if __name__ == "__main__":
    main()
