"""The installed PyTorch as a front end: its tensors, its autograd and its torch.distributed, on the Go core.

Ranks are threads that take turns. Tensors are PyTorch's own, in the host's memory, on which collectives work. What
PyTorch keeps once for a process is exchanged when another rank goes on (`session`, `state`). Process groups (`groups`,
`works`) and stores (`stores`) are the World's, under the names of PyTorch's.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from torchemu.frontends.torch import versions

if TYPE_CHECKING:
    from torchemu import runtime
    from torchemu.frontends.torch.session import Session


def opened(world: runtime.World, seed: int = 0, data: bool = True) -> contextlib.AbstractContextManager[Session]:
    """Makes PyTorch that of a World's ranks, which are to be made after this, for the duration of a with block.

    Args:
        world: the World.
        seed: of the ranks' generators.
        data: tensors of devices have elements; without, operations take their time and nothing is computed.

    Raises:
        VersionError: there is no PyTorch that the front end knows.
    """
    versions.check()
    from torchemu.frontends.torch import session

    return session.opened(world, seed, data)
