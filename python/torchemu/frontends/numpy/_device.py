"""torch.device."""

# ruff: noqa: A001, A002 (names are PyTorch's)

from __future__ import annotations

import functools
from typing import Any

CPU = "cpu"
ACCELERATORS = ("ahbm", "cuda")
"""Names of the simulated devices, which mean the same: SIPs."""


class device:  # noqa: N801 (PyTorch's name)
    """The place of a tensor: ``device("ahbm", 3)``, ``device("cuda:3")`` or ``device(3)`` is SIP 3, ``device("cpu")``
    the memory of the rank's host. As a context manager it is the default device meanwhile.

    A device of a SIP is also equal to the SIP's number.

    Attributes:
        type: "ahbm", "cuda" or "cpu".
        index: the SIP's number; None is the current one.
        is_host: whether programs take it for the memory of the host.
        is_sip: whether operations on its tensors are those of a simulated device: also of UNNAMED, whose type is "cpu".

    Raises:
        RuntimeError: there is no such type, or the index is not a number.
        TypeError: what names no device.
    """

    __slots__ = ("index", "is_host", "is_sip", "type")

    type: str
    index: int | None
    is_host: bool
    is_sip: bool

    def __init__(self, type: str | int | device, index: int | None = None) -> None:
        if isinstance(type, device):
            self.type, self.index, self.is_host, self.is_sip = type.type, type.index, type.is_host, type.is_sip
            return
        if isinstance(type, int) and not isinstance(type, bool):
            type, index = _accelerator(), int(type)
        elif not isinstance(type, str):
            raise TypeError(f"device must be a torch.device, an integer or a string such as 'ahbm:0', not {type!r}")
        name, colon, number = type.partition(":")
        if name not in (CPU, *ACCELERATORS):
            kinds = ", ".join((CPU, *ACCELERATORS))
            raise RuntimeError(f"Expected one of {kinds} device type at start of device string: {type}")
        if colon:
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {type}"
                )
            if not number.isdecimal():
                raise RuntimeError(f"Invalid device string: '{type}'")
            index = int(number)
        self.type, self.index, self.is_host, self.is_sip = name, index, name == CPU, name != CPU

    def __eq__(self, other: object) -> bool:
        if isinstance(other, device):
            return self.index == other.index and self.is_host == other.is_host
        if isinstance(other, int):
            return self.is_sip and self.index == other
        return NotImplemented

    def __hash__(self) -> int:
        return hash(CPU) if self.is_host else hash(self.index)

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type, self.index)

    def __enter__(self) -> device:
        from torchemu.frontends.numpy import _settings

        settings = _settings.current()
        settings.devices_before.append(settings.device)
        settings.device = self
        return self

    def __exit__(self, *_: object) -> None:
        from torchemu.frontends.numpy import _settings

        settings = _settings.current()
        settings.device = settings.devices_before.pop()


@functools.cache
def known(type: str, index: int | None) -> device:
    """A device, without looking at its name again."""
    return device(type, index)


@functools.cache
def named(name: str) -> device:
    """The device of a name such as "cuda:3", without reading that again."""
    return device(name)


def _unnamed() -> device:
    meant = device(CPU)
    meant.is_sip = True
    return meant


UNNAMED = _unnamed()
"""Where tensors of a script are that names no device for them. The script sees the host's memory, as in PyTorch, and so
prints what it prints there; operations on them are the SIP's, so that time passes for all that a script does."""


def _accelerator() -> str:
    from torchemu.frontends.numpy import _settings

    return _settings.current().accelerator
