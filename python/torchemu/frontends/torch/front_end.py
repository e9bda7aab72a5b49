"""The installed PyTorch as a value of ``--torch``. It is imported when a run begins that asks for it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from torchemu.frontends.base import FrontEnd, Torch

if TYPE_CHECKING:
    from torchemu import runtime


def _opened(world: runtime.World, seed: int, data: bool) -> AbstractContextManager[object]:
    from torchemu.frontends.torch import opened

    return opened(world, seed, data)


def _is_there() -> bool:
    from torchemu.frontends.torch import versions

    return versions.is_known()


FRONT_END = FrontEnd(
    torch=Torch(
        "real",
        "the PyTorch that is installed",
        opened=_opened,
        can_omit_data=True,
        groups_in_tests=False,
        is_there=_is_there,
    ),
    packages={},
    isolates=("hydra", "hydra_plugins"),  # it is initialized once, and keeps the program's configurations
)
