"""Devices that CUDA_VISIBLE_DEVICES lets a program see: they have numbers of their own there, from 0 on.

Which device a rank is on does not follow from it: a rank is on a SIP, and the variable says by which number its program
knows that one. Numbers that a node lacks, as of scripts that were written for a larger one, are those of others of its.
"""

from __future__ import annotations

import os
import re

from torchemu.frontends.torch.device.ground import Context, RankLocal, context

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_NUMBER = re.compile(r"\s*([+-]?\d+)")


def listed(text: str | None) -> tuple[int, ...] | None:
    """Returns the numbers that the variable lists, as CUDA reads it; None where it is not set.

    What comes after a number that is negative, or after what is none, is not read; nothing counts where a number is
    there twice. Names of devices, such as GPU-5a2f, stand for the numbers 0, 1, … in their order.
    """
    if text is None:
        return None
    parts = text.split(",")
    if parts[0].strip().startswith(("GPU-", "MIG-")):
        return tuple(range(len(parts)))
    numbers: list[int] = []
    for part in parts:
        found = _NUMBER.match(part)
        if found is None or int(found[1]) < 0:
            break
        numbers.append(int(found[1]))
    return tuple(numbers) if len({*numbers}) == len(numbers) else ()


class _Visible:
    """The devices that a rank's program sees.

    Attributes:
        numbers: theirs on the node; None for all.
        is_settled: it has used one, and what is set later has no effect.
    """

    def __init__(self) -> None:
        self._at_begin = self._read = os.environ.get(_VARIABLE)
        self.numbers = listed(self._read)
        self.is_settled = False

    def look(self) -> None:
        """Reads what the program has set since."""
        text = os.environ.get(_VARIABLE)
        if text != self._read:
            self._read, self.numbers = text, listed(text)

    def settle(self, rank: Context, number: int | None = None) -> None:
        """Holds what is visible for good, and makes the rank's own device its current one.

        Args:
            number: that of the device that is used. Where the program does not see it, and has set the variable itself,
                CUDA was there before, and did not read it.
        """
        self.look()
        self.is_settled = True
        seen = self.numbers
        if seen is not None and number is not None and number >= len(seen) and self._read != self._at_begin:
            self.numbers = listed(self._at_begin)
        if self.numbers:
            rank.device = rank.first_device = self.own(rank)

    def own(self, rank: Context) -> int:
        """Returns the number of the rank's own device."""
        number, seen = rank.own_device, self.numbers
        if not seen:
            return number
        return seen.index(number) if number in seen else number % min(len(seen), on_node(rank))


_visible: RankLocal[_Visible] = RankLocal(_Visible)


def note_begin() -> None:
    """Notes with what a rank begins."""
    _visible.get()


def on_node(rank: Context) -> int:
    """Returns how many devices a rank's node has."""
    return len(rank.node) if rank.node is not None else rank.world.sips


def count() -> int:
    """Returns how many devices the running rank's program sees."""
    own, devices = _visible.get(), on_node(context())
    if not own.is_settled:
        own.look()
    return devices if own.numbers is None else min(len(own.numbers), devices)


def may_change() -> bool:
    """Reports whether the running rank's program has set which devices it sees, and used none."""
    own = _visible.get()
    own.look()
    return own.numbers is not None and not own.is_settled


def settle(number: int | None = None) -> None:
    """Notes that the running rank's program uses a device of a number, or the current one.

    Raises:
        RuntimeError: it sees none.
    """
    own = _visible.get()
    if not own.is_settled:
        own.settle(context(), number)
    if own.numbers == ():
        raise RuntimeError("No CUDA GPUs are available")


def on_cluster(rank: Context, number: int) -> int:
    """Returns the number that a device of a rank's program has on the node of a cluster."""
    own = _visible.of(rank)
    return number if own is None or not own.numbers or number >= len(own.numbers) else own.numbers[number]


def of_rank(rank: Context) -> int:
    """Returns the number by which a rank's program knows the device that the rank is on."""
    own = _visible.of(rank)
    return rank.own_device if own is None else own.own(rank)


def in_node(rank: Context, number: int) -> int:
    """Returns the number in its node of a device that a rank's program knows by another one."""
    return rank.own_device if number == of_rank(rank) else number
