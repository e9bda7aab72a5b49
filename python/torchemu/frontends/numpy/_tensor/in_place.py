"""Methods that change the tensor itself, but for those that elementwise.in_place makes."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torchemu.frontends.numpy._autograd import record
from torchemu.frontends.numpy._shape import dims, row_major
from torchemu.frontends.numpy._tensor import (
    dispatch,
    elementwise,
    gathering,
    linalg,
    parametric,
    reductions,
    views,
)
from torchemu.frontends.numpy._tensor.copying import set_data
from torchemu.frontends.numpy._tensor.core import METHODS, Tensor, method
from torchemu.frontends.numpy._tensor.pointwise import check_cast, pointwise_into


@method
def add_(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """self += alpha·other."""
    return pointwise_into(self, *elementwise.scaled("add", (self, other), alpha))


@method
def sub_(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """self -= alpha·other."""
    return pointwise_into(self, *elementwise.scaled("sub", (self, other), alpha))


@method
def div_(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """self /= other; rounded to an integer with rounding_mode "trunc" or "floor"."""
    return pointwise_into(self, elementwise.division(rounding_mode), (self, other))


@method
def round_(self: Tensor, *, decimals: int = 0) -> Tensor:
    """round, stored in the tensor itself."""
    return pointwise_into(self, *parametric.rounding(self, decimals))


@method
def clamp_(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """clamp, stored in the tensor itself."""
    return pointwise_into(self, *parametric.clamping(self, min, max))


@method
def clamp_min_(self: Tensor, min: Any) -> Tensor:
    """clamp_min, stored in the tensor itself."""
    return clamp_(self, min=min)


@method
def clamp_max_(self: Tensor, max: Any) -> Tensor:
    """clamp_max, stored in the tensor itself."""
    return clamp_(self, max=max)


@method
def addcmul_(self: Tensor, tensor1: Any, tensor2: Any, *, value: float = 1) -> Tensor:
    """self += value·tensor1·tensor2."""
    return pointwise_into(self, parametric.ADDCMUL, (self, tensor1, tensor2), value)


@method
def addcdiv_(self: Tensor, tensor1: Any, tensor2: Any, *, value: float = 1) -> Tensor:
    """self += value·tensor1/tensor2."""
    return pointwise_into(self, parametric.ADDCDIV, (self, tensor1, tensor2), value)


@method
def lerp_(self: Tensor, end: Tensor, weight: Any) -> Tensor:
    """self += weight·(end - self)."""
    return pointwise_into(self, parametric.LERP, (self, end, weight))


@method
def nan_to_num_(self: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """nan_to_num, stored in the tensor itself."""
    bounds = parametric.finite_bounds(self, nan, posinf, neginf)
    return pointwise_into(self, parametric.NAN_TO_NUM, (self,), *bounds)


@method
def logit_(self: Tensor, eps: float | None = None) -> Tensor:
    """logit, stored in the tensor itself."""
    return pointwise_into(self, parametric.LOGIT, (self,), eps)


def _added(op: dispatch.Op, check: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The in-place twin of addmm or one of its kin: check is that, and looks at the arguments."""

    def method(self: Tensor, first: Tensor, second: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        result = check(self, first, second, beta=beta, alpha=alpha)
        if result._shape != self._shape:
            raise RuntimeError(
                f"{op.name}_: the result's shape, {list(result._shape)}, is not the tensor's, {list(self._shape)}"
            )
        return self.copy_(result)

    method.__name__ = method.__qualname__ = op.name + "_"
    method.__doc__ = f"{op.name}, stored in the tensor itself."
    return method


addmm_ = _added(linalg.ADDMM, linalg.addmm)
addmv_ = _added(linalg.ADDMV, linalg.addmv)
addr_ = _added(linalg.ADDR, linalg.addr)
baddbmm_ = _added(linalg.BADDBMM, linalg.baddbmm)
addbmm_ = _added(linalg.ADDBMM, linalg.addbmm)


def _stored(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The in-place twin of a function whose result has the tensor's shape."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        result = function(self, *args, **kwargs)
        check_cast(result.dtype, self)
        return self.copy_(result)

    method.__name__ = method.__qualname__ = function.__name__ + "_"
    method.__doc__ = f"{function.__name__}, stored in the tensor itself."
    return method


tril_, triu_ = _stored(gathering.tril), _stored(gathering.triu)
cumsum_, cumprod_ = _stored(reductions.cumsum), _stored(reductions.cumprod)


@method
def fill_diagonal_(self: Tensor, fill_value: Any) -> Tensor:
    """Makes every element of a matrix's diagonal the value."""
    self.diagonal().fill_(fill_value)
    return self


# -- the tensor's shape


def _reshaped(view: Any) -> Callable[..., Tensor]:
    """The in-place twin of a view."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if self._storage.tracked:
            record.check_write(self)
        reshaped = view(self, *args, **kwargs)
        set_data(self, reshaped)
        if self._storage.tracked:
            record.take_history(self, reshaped)
        return self

    method.__name__ = method.__qualname__ = view.__name__ + "_"
    method.__doc__ = f"Gives the tensor itself the shape and strides of {view.__name__}."
    return method


squeeze_, unsqueeze_ = _reshaped(views.squeeze), _reshaped(views.unsqueeze)
transpose_, t_, as_strided_ = map(_reshaped, (views.transpose, views.t, views.as_strided))


@method
def resize_(self: Tensor, *sizes: Any) -> Tensor:
    """Gives the tensor another shape: of its own memory if that suffices, or of new memory, with its elements first.

    Raises:
        NotImplementedError: the tensor is part of a larger one. RuntimeError: it requires a gradient.
    """
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    shape = dims(sizes)
    wanted = math.prod(shape)
    have = self._storage.nbytes // self.dtype.itemsize
    if wanted <= have - self._offset:
        set_data(self, views.as_strided(self, shape, row_major(shape)))
        return self
    if self._offset or self.numel() != have:
        raise NotImplementedError(f"resize_ of a part of a storage, of {have} elements, to {wanted}")
    larger = self.new_zeros(wanted)
    larger[: self.numel()] = self.reshape(-1)
    set_data(self, larger.view(shape))
    return self


# -- the tensor's memory


@method
def share_memory_(self: Tensor) -> Tensor:
    """Nothing: ranks are in one process, and see each other's memory."""
    return self


@method
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """The tensor itself: there is no other memory than the host's."""
    return self


@method
def record_stream(self: Tensor, stream: Any) -> None:
    """Nothing: memory is not used again while an operation needs it."""


METHODS.update(
    addbmm_=addbmm_,
    addmm_=addmm_,
    addmv_=addmv_,
    addr_=addr_,
    as_strided_=as_strided_,
    baddbmm_=baddbmm_,
    cumprod_=cumprod_,
    cumsum_=cumsum_,
    squeeze_=squeeze_,
    t_=t_,
    transpose_=transpose_,
    tril_=tril_,
    triu_=triu_,
    unsqueeze_=unsqueeze_,
)
