"""Moving a module to a device, and its parameters and buffers to another dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from torchemu import dtypes
from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn.modules._members import Members

Convert = Callable[[Tensor], Tensor]


def _target(args: tuple[Any, ...], device: Any, dtype: Any) -> tuple[Any, dtypes.dtype | None]:
    """The device and the dtype that the arguments of Module.to name.

    Raises:
        TypeError: there is something else among them.
    """
    if len(args) > 4:
        raise TypeError(f"to() takes from 0 to 4 positional arguments but {len(args)} were given")
    for at, value in enumerate(args):
        if isinstance(value, Tensor) and at == 0:
            device, dtype = value.device, value.dtype
        elif isinstance(value, dtypes.dtype) and at < 2:
            dtype = value
        elif at == 0 and value is not None:
            device = value
        elif not isinstance(value, bool | None):
            raise TypeError(f"to() received an invalid combination of arguments: {value!r} at position {at + 1}")
    return device, None if dtype is None else dtypes.parse(dtype)


class Conversion(Members):
    """The part of Module that changes where and of what type its tensors are. Parameters stay the same objects."""

    def _apply(self, fn: Convert, recurse: bool = True) -> Self:
        """Puts fn(t) in the place of every parameter's and its gradient's elements, and of every buffer."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        with no_grad():
            for parameter in self._parameters.values():
                if parameter is not None:
                    parameter.data = fn(parameter)
                    if parameter.grad is not None:
                        parameter.grad.data = fn(parameter.grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(
        self, *args: Any, device: Any = None, dtype: Any = None, non_blocking: bool = False, memory_format: Any = None
    ) -> Self:
        """Moves all tensors to a device, and those of floats to a dtype.

        Args:
            args: a device, a dtype, both, or a tensor that is where and what they shall be; then non_blocking.
            device, dtype: the same by name.
            non_blocking: do not wait for copies to the host.
            memory_format: means nothing here.

        Raises:
            TypeError: the dtype is not one of floats; or other arguments.
        """
        where, kind = _target(args, device, dtype)
        if kind is not None and not kind.is_floating_point:
            raise TypeError(f"nn.Module.to only accepts floating point dtypes, but got desired dtype={kind}")

        def convert(t: Tensor) -> Tensor:
            floats = kind if t.dtype.is_floating_point else None
            return t.to(device=where, dtype=floats, non_blocking=non_blocking)

        return self._apply(convert)

    def _cast(self, kind: dtypes.dtype) -> Self:
        return self._apply(lambda t: t.to(kind) if t.dtype.is_floating_point else t)

    def float(self) -> Self:
        """Tensors of floats become float32."""
        return self._cast(dtypes.float32)

    def double(self) -> Self:
        """Tensors of floats become float64."""
        return self._cast(dtypes.float64)

    def half(self) -> Self:
        """Tensors of floats become float16."""
        return self._cast(dtypes.float16)

    def bfloat16(self) -> Self:
        """Tensors of floats become bfloat16."""
        return self._cast(dtypes.bfloat16)

    def cuda(self, device: Any = None) -> Self:
        """Moves all tensors to a SIP: the current one, or the one given."""
        return self._apply(lambda t: t.cuda(device))

    def cpu(self) -> Self:
        """Moves all tensors to the host's memory."""
        return self._apply(lambda t: t.cpu())
