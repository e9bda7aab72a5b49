"""The installed PyTorch on a simulated cluster, without the launcher.

To import this makes the backend ``ahbm`` known to ``torch.distributed``. Its process groups are for ranks of simulated
clusters: those of ``torchemu run --torch real``, and those that :func:`spawn` starts.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from torchemu.frontends.torch import versions
from torchemu.launch import testing

versions.check()

from torchemu.frontends.torch.installing import register  # noqa: E402 (it imports PyTorch)

__all__ = ["spawn"]

register()


def spawn(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, topology: str = "default", seed: int = 0
) -> None:
    """Runs ``fn(rank, *args)`` on ranks 0 to nprocs-1 of a simulated cluster, each as in a process of its own.

    Args:
        fn, args: what to call, with the rank before the arguments.
        nprocs: how many ranks.
        topology: a preset's name, which gets more SIPs where there are more ranks, or the path of a topology.yaml.
        seed: of the ranks' random numbers.

    Raises:
        What the first rank to fail raised, with a note that says which one it was. ValueError: nprocs is not positive.
    """
    if nprocs < 1:
        raise ValueError(f"nprocs must be at least 1, not {nprocs}")

    def called(*given: Any) -> None:
        fn(int(os.environ["RANK"]), *given)

    setting = testing.Setting(nprocs, topology, "", seed, (), False, False, None, (), torch="real")
    testing.run(called, setting, args, {})
