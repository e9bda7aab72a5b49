"""Settings of a rank for its tensors: default dtype and device, recording of gradients, printing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torchemu import dtypes, runtime
from torchemu.frontends.numpy import _device
from torchemu.runtime.rank_local import RankLocal
from torchemu.runtime.thread_state import Kept, keep

if TYPE_CHECKING:
    from torchemu.frontends.numpy._tensor.generator import Generator


@dataclass
class Printing:
    """The form in which tensors are printed; see set_printoptions."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


@dataclass
class Settings:
    """One rank's.

    Attributes:
        dtype: of new tensors of floats.
        device: of new tensors; None is the current SIP.
        devices_before: those to come back to when ``with torch.device(…)`` ends, the innermost last.
        accelerator: what the number of a SIP alone means: "ahbm", or "cuda" for a script as torchrun runs it.
        gradients, inference: whether operations are recorded for autograd; whether in torch.inference_mode.
        generator: of random numbers; made at its first use.
        generators: the same of devices, by index, where they have their own.
        device_seed: what the program has seeded all devices with, if it has.
        printing: how tensors are printed.
    """

    dtype: dtypes.dtype = dtypes.float32
    device: _device.device | None = None
    devices_before: list[_device.device | None] = field(default_factory=list)
    accelerator: str = field(default_factory=lambda: "ahbm" if runtime.process() is None else "cuda")
    gradients: bool = True
    inference: bool = False
    generator: Generator | None = None
    generators: dict[int, Generator] = field(default_factory=dict)
    device_seed: int | None = None
    printing: Printing = field(default_factory=Printing)

    def modes(self) -> Modes:
        """Returns what of it is a thread's."""
        return self.gradients, self.inference, self.device, self.devices_before

    def set_modes(self, modes: Modes) -> None:
        """Puts that of a thread in place."""
        self.gradients, self.inference, self.device, self.devices_before = modes


Modes = tuple[bool, bool, _device.device | None, list[_device.device | None]]
"""Of Settings, what each thread of a rank has for itself: gradients, inference, device and devices_before."""

_SETTINGS: RankLocal[Settings] = RankLocal(Settings)

keep(
    Kept(
        save=lambda: current().modes(),
        restore=lambda modes: current().set_modes(modes),
        first=lambda: Settings().modes(),
    )
)


def current() -> Settings:
    """Returns the threads of the running rank."""
    return _SETTINGS.get()


def dtype_or_default(kind: str | type | dtypes.dtype | None) -> dtypes.dtype:
    """The dtype that is given, or the default one."""
    return current().dtype if kind is None else dtypes.parse(kind)


def get_default_dtype() -> dtypes.dtype:
    """The dtype of new tensors of floats."""
    return current().dtype


def set_default_dtype(d: dtypes.dtype) -> None:
    """Makes a float type the dtype of new tensors of floats, in this rank.

    Raises:
        TypeError: not a torch.dtype, or not a float type.
    """
    if not isinstance(d, dtypes.dtype):
        raise TypeError("invalid dtype object")
    if not d.is_floating_point or d.is_float8:
        raise TypeError(f"only floating-point types are supported as the default type, not {d!r}")
    current().dtype = d


def get_default_device() -> _device.device:
    """The device of new tensors."""
    return resolved(None)


def set_default_device(where: _device.device | str | int | None) -> None:
    """Makes a device that of new tensors, in this rank; None: the current SIP again."""
    current().device = None if where is None else _device.device(where)


def resolved(where: _device.device | str | int | None) -> _device.device:
    """The device that a call names; None is the default one, and one without an index the current one.

    Raises:
        RuntimeError: there is no such kind of device.
        ValueError: the topology has no such SIP.
        TypeError: what names no device.
    """
    context = runtime.current()
    if where is None:
        settings = current()
        where = settings.device
        if where is None:
            return _device.UNNAMED if context.process else _device.known(settings.accelerator, context.device)
    if type(where) is str:
        where = _device.named(where)
    elif not isinstance(where, _device.device):
        where = _device.device(where)
    if where.type == _device.CPU:
        return where
    return _device.known(where.type, context.device if where.index is None else _checked(where.index))


def _checked(index: int) -> int:
    from torchemu.frontends.numpy import ahbm

    return ahbm.checked(index)
