"""Memory of other ranks that operations use as if it was on the rank's own device: what that costs.

What reads it has a message from there before it, and what writes it has one there after it. The rank's own memory is
charged for the other operands; a copy, or a fill, is nothing but its messages.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from torchemu.frontends.torch.device.ground import go
from torchemu.frontends.torch.unwaited_uses import operands

if TYPE_CHECKING:
    from torchemu.frontends.torch.device.dispatch import RankMode
    from torchemu.frontends.torch.device.operations import Operation

_USING = ("kernel", "move", "read")  # kinds of operations that use elements
_OVERWRITING = ("copy_", "fill_", "zero_")  # operations in place that do not read what they write, and compute nothing


def note(tensor: torch.Tensor, home: int) -> torch.Tensor:
    """Notes that a tensor's memory is that of another rank of the World. Returns the tensor."""
    tensor.untyped_storage()._home = home
    return tensor


def home_of(tensor: torch.Tensor) -> int | None:
    """Returns the rank of the World whose memory a strided tensor is, where that has been noted as another's."""
    home: int | None = getattr(tensor.untyped_storage(), "_home", None)
    return home


def run(mode: RankMode, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Does an operation, or puts it off, and charges what it does in peers' memory."""
    if op.kind not in _USING:
        return mode.at_once(op, args, kwargs)
    with charged(mode, op, *operands(op.func, args, kwargs)):
        return mode.at_once(op, args, kwargs)


def charged(
    mode: RankMode, op: Operation, reads: Sequence[torch.Tensor], writes: Sequence[torch.Tensor]
) -> contextlib.AbstractContextManager[None]:
    """Charges what an operation with these operands does in peers' memory, which is done, or put off, within the with
    block."""
    if op.kind in _USING:
        sources, targets = (
            _far([*reads, *writes] if op.in_place and op.name not in _OVERWRITING else reads),
            _far(writes),
        )
        if sources or targets:
            return _accessed(mode, op, sources, targets)
    return _NOWHERE


_NOWHERE = contextlib.nullcontext()


@contextlib.contextmanager
def _accessed(
    mode: RankMode, op: Operation, sources: list[tuple[int, int]], targets: list[tuple[int, int]]
) -> Iterator[None]:
    """Charges accesses to peers' memory, by their homes and bytes, around what is done within the with block."""
    for home, nbytes in sources:
        _access(mode, home, nbytes, writes=False)
    with _charged_less(mode, op, sum(nbytes for _, nbytes in (*sources, *targets))):
        yield
    for home, nbytes in targets:
        _access(mode, home, nbytes, writes=True)


def _far(tensors: Sequence[torch.Tensor]) -> list[tuple[int, int]]:
    """Returns the homes of those tensors that are peers', and their bytes."""
    homes = [(home_of(t), t) for t in tensors if t.layout is torch.strided]
    return [(home, t.nbytes) for home, t in homes if home is not None]


def _access(mode: RankMode, home: int, nbytes: int, writes: bool) -> None:
    """Puts the message of an access on the rank's current stream."""
    go.Access(mode.rank.stream, mode.rank.world.site(), (home,), nbytes, writes)


@contextlib.contextmanager
def _charged_less(mode: RankMode, op: Operation, nbytes: int) -> Iterator[None]:
    """Charges the rank's memory for so many bytes less within the with block, and not at all for a copy or a fill."""
    launch, computes = mode.launch, op.kind != "move" and op.name not in _OVERWRITING

    def less(name: str, total: int, flops: int, unit: str) -> None:
        if computes:
            launch(name, max(0, total - nbytes), flops, unit)

    mode.launch = less
    try:
        yield
    finally:
        mode.launch = launch
