"""torch.nn.parameter: tensors that a module knows as its parameters and buffers when they become its attributes."""

from __future__ import annotations

from typing import Any

from torchemu.frontends.numpy._tensor.copying import set_data
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import empty

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"]


def _as_subclass(cls: type[Tensor], data: Any, requires_grad: bool) -> Any:
    """A tensor of that class in data's memory.

    Raises:
        AttributeError: data is no tensor. RuntimeError: it is not of floats, and gradients are wanted.
    """
    t = empty(0) if data is None else data.detach()
    if requires_grad and not t.dtype.is_inexact:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    t.__class__ = cls
    t.requires_grad = requires_grad
    return t


def _rebuilt(cls: type[Parameter], data: Tensor, requires_grad: bool) -> Parameter:
    """What pickle makes a parameter of again."""
    return cls(data, requires_grad)


class Parameter(Tensor):
    """A tensor whose gradient is wanted. As an attribute of a module it is among the module's parameters.

    Args:
        data: a tensor, whose memory it shares; None: an empty one.
        requires_grad: whether gradients are recorded for it.
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        return _as_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        known = memo.get(id(self))
        if known is None:
            known = memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return known

    def __repr__(self) -> str:
        return f"Parameter containing:\n{self.detach().requires_grad_(self.requires_grad)!r}"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        _, _, attributes = super().__reduce_ex__(protocol)
        state = {k: v for k, v in attributes.items() if k not in ("requires_grad", "grad", "grad_fn")}
        return _rebuilt, (type(self), self.data, self.requires_grad), state


class Buffer(Tensor):
    """A tensor that as an attribute of a module is among the module's buffers.

    Args:
        data: a tensor, whose memory it shares; None: an empty one.
        persistent: whether it is in the module's state_dict.
    """

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        t = _as_subclass(cls, data, False)
        t.persistent = persistent
        return t


_SHAPELESS = (
    "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` "
    "when trying to load an uninitialized parameter into an initialized one. Call `forward` to initialize the "
    "parameters before accessing their attributes."
)


class UninitializedTensorMixin(Tensor):
    """A parameter or buffer whose shape is yet unknown."""

    cls_to_become: type[Tensor]

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Gives it a shape, and uninitialized memory; it is an ordinary parameter or buffer from now on.

        Args:
            shape: the shape.
            device, dtype: others than it was to have.
        """
        where = self.device if device is None else device
        set_data(self, empty(shape, device=where, dtype=self.dtype if dtype is None else dtype))
        self.__class__ = self.cls_to_become  # type: ignore[assignment]

    @property
    def shape(self) -> Any:
        """Not known.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(_SHAPELESS)

    def numel(self) -> int:
        """Not known.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            "Attempted to use an uninitialized parameter in numel. This error happens when you are using a "
            "`LazyModule` or explicitly manipulating `torch.nn.parameter.UninitializedParameter` objects. When using "
            "LazyModules Call `forward` with a dummy batch to initialize the parameters before calling torch functions"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is yet unknown.

    Args:
        requires_grad: whether gradients are recorded for it.
        device, dtype: that it is to have.
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> UninitializedParameter:
        return _as_subclass(cls, empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        known = memo.get(id(self))
        if known is None:
            known = memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return known

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self.requires_grad, self.device, self.dtype)


class UninitializedBuffer(UninitializedTensorMixin):
    """A buffer whose shape is yet unknown.

    Args:
        requires_grad: as of tensors.
        device, dtype: that it is to have.
        persistent: whether it is in the module's state_dict.
    """

    cls_to_become = Tensor
    persistent: bool

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> UninitializedBuffer:
        made: UninitializedBuffer = _as_subclass(cls, empty(0, device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        return made


def is_lazy(value: Any) -> bool:
    """Whether it is a parameter or buffer whose shape is yet unknown."""
    return isinstance(value, UninitializedTensorMixin)
